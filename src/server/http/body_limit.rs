//! Request bodies: read as a whole before the route runs, limited in size, in time, and in sum over all requests.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::header::CONTENT_LENGTH,
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{error::Refusal, state::Site};

/// The longest body. A tool's output is cut to less before it is stored.
pub(super) const BYTES_MAX: usize = 8 << 20;
/// How long one may take to arrive. Whoever dribbles shall not keep others out.
const TIME_MAX: Duration = Duration::from_secs(10);
/// The bodies that are gathered at the same time may come to so many of these together.
pub(super) const UNITS_MAX: usize = 32;
const UNIT_BYTES: usize = 1 << 20;

/// Reads the body, then goes on.
pub(super) async fn read(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    match body_of(&site, request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn body_of(site: &Site, request: Request) -> Result<Request, Refusal> {
    let (parts, body) = request.into_parts();
    let told =
        parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let is_empty = http_body::Body::is_end_stream(&body);
    if is_empty {
        return Ok(Request::from_parts(parts, Body::empty()));
    }
    let length = told.unwrap_or(BYTES_MAX);
    let too_large = || Refusal::too_large(format!("a body may have {BYTES_MAX} bytes"));
    if length > BYTES_MAX {
        return Err(too_large());
    }
    let units = length.div_ceil(UNIT_BYTES).max(1) as u32;
    let _room = site.bodies.acquire_many(units).await.map_err(|_| Refusal::busy("it is ending"))?;
    match tokio::time::timeout(TIME_MAX, to_bytes(body, BYTES_MAX)).await {
        Err(_) => Err(Refusal::too_slow()),
        Ok(Err(_)) => Err(too_large()),
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
    }
}
