//! Request bodies: read in full before the route runs; limited in size, in time, and in total over
//! all requests.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::header::CONTENT_LENGTH,
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{error::ApiError, state::AppState};

/// Maximum size of a body. A tool's output is cut to less before it is stored.
pub(super) const BYTES_MAX: usize = 8 << 20;
/// Maximum time to receive a body, so that slow clients do not block others.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum total size of bodies being received, in units of `UNIT_BYTES`.
pub(super) const UNITS_MAX: usize = 32;
const UNIT_BYTES: usize = 1 << 20;

pub(super) async fn read(
    State(state): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Response {
    match body_of(&state, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn body_of(state: &AppState, request: Request) -> Result<Request, ApiError> {
    let (parts, body) = request.into_parts();
    let declared =
        parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let is_empty = http_body::Body::is_end_stream(&body);
    if is_empty {
        return Ok(Request::from_parts(parts, Body::empty()));
    }
    let length = declared.unwrap_or(BYTES_MAX);
    let too_large = || ApiError::too_large(format!("the body is larger than {BYTES_MAX} bytes"));
    if length > BYTES_MAX {
        return Err(too_large());
    }
    let units = length.div_ceil(UNIT_BYTES).max(1) as u32;
    let _room = state
        .bodies
        .acquire_many(units)
        .await
        .map_err(|_| ApiError::busy("the worker is stopping"))?;
    match tokio::time::timeout(TIME_MAX, to_bytes(body, BYTES_MAX)).await {
        Err(_) => Err(ApiError::too_slow()),
        Ok(Err(_)) => Err(too_large()),
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
    }
}
