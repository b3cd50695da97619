//! Error responses, and extractors that produce them.

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

use claude_mem_core::failure::{Failure, FailureKind};
use claude_mem_events::Id;
use claude_mem_projections::search::MemoryId;

/// Result of a route.
pub(super) type ApiResult<T> = Result<Json<T>, ApiError>;

/// Body of an error response.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Error code, such as `NotFound`.
    #[schema(value_type = String)]
    error: &'static str,
    /// What happened.
    message: String,
    /// Meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The forget operation that removed a memory, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    forgetting: Option<String>,
}

/// An error response with its status.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    problem: Problem,
}

impl ApiError {
    fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        let problem = Problem { error, message, meaning: None, remedy: None, forgetting: None };
        Self { status, problem }
    }

    /// Malformed request.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The token is missing or wrong.
    pub(super) fn unauthorized() -> Self {
        let message = "this needs the token in worker.json";
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message).remedy(
            "a program sends `Authorization: Bearer TOKEN` with the `token` of \
             `~/.claude-mem/worker.json` (docs/api.md); a person opens the viewer with `claude-mem viewer`",
        )
    }

    /// The origin of the request is not allowed.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// The memory existed, and is gone.
    pub(super) fn forgotten(name: MemoryId, forgetting: Option<Id>) -> Self {
        let (message, meaning) = match forgetting {
            Some(_) => {
                (format!("memory {name} was forgotten"), "undo works until the log is compacted")
            }
            None => {
                (format!("memory {name} is gone"), "it was forgotten, or erased by a compaction")
            }
        };
        let mut gone = Self::new(StatusCode::GONE, "Gone", message);
        gone.problem.meaning = Some(meaning.into());
        gone.problem.forgetting = forgetting.map(|id| id.to_string());
        gone
    }

    pub(super) fn method_not_allowed() -> Self {
        let message = "this method is not allowed here";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// The current state does not allow it.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
    }

    /// It would exceed the daily cap.
    pub(super) fn too_expensive(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYMENT_REQUIRED, "TooExpensive", message)
    }

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message)
    }

    pub(super) fn head_too_large(bytes_max: usize) -> Self {
        let message = format!("the request head is larger than {bytes_max} bytes");
        Self::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "TooLarge", message)
    }

    pub(super) fn too_slow() -> Self {
        let message = "the body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", message)
    }

    /// Too many concurrent requests.
    pub(super) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "Busy", message)
    }

    /// An internal error.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed", message)
    }

    /// The request is valid, but cannot be fulfilled; the client can fix that.
    pub(super) fn unfit(failure: &Failure) -> Self {
        Self::of(StatusCode::UNPROCESSABLE_ENTITY, "Unfit", failure)
    }

    /// The current state does not allow it.
    pub(super) fn conflicting(failure: &Failure) -> Self {
        Self::of(StatusCode::CONFLICT, "Conflict", failure)
    }

    /// What to do about it.
    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.problem.remedy = Some(remedy.into());
        self
    }

    fn of(status: StatusCode, error: &'static str, failure: &Failure) -> Self {
        let (message, meaning, remedy) = failure.parts();
        let text = |part: Option<&str>| part.map(str::to_owned);
        let (meaning, remedy) = (text(meaning), text(remedy));
        let message = message.into();
        Self { status, problem: Problem { error, message, meaning, remedy, forgetting: None } }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.problem)).into_response()
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure.kind() {
            FailureKind::Usage => Self::of(StatusCode::BAD_REQUEST, "BadRequest", &failure),
            FailureKind::Ambiguous => Self::conflicting(&failure),
            FailureKind::Operation | FailureKind::Cancelled | FailureKind::Busy => {
                Self::of(StatusCode::INTERNAL_SERVER_ERROR, "Failed", &failure)
            }
        }
    }
}

impl From<claude_mem_projections::Error> for ApiError {
    fn from(error: claude_mem_projections::Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<claude_mem_log::Error> for ApiError {
    fn from(error: claude_mem_log::Error) -> Self {
        Failure::from(error).into()
    }
}

/// Query parameters.
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => Err(ApiError::bad(error.body_text())),
        }
    }
}

/// A path parameter.
pub(super) struct PathParam<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParam<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Self(named)),
            Err(error) => Err(ApiError::bad(error.body_text())),
        }
    }
}

/// A JSON body.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = Bytes::from_request(request, state).await;
        let body =
            body.map_err(|error| ApiError::new(error.status(), "BadRequest", error.body_text()))?;
        let Json(given) =
            Json::from_bytes(&body).map_err(|error| ApiError::bad(error.body_text()))?;
        Ok(Self(given))
    }
}
