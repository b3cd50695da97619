//! What is said when a request cannot be answered, and requests taken apart so that even that is said well.

use axum::{
    Json,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::JsonRejection},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

use claude_mem_core::failure::Failure;

/// An answer, or why there is none.
pub(super) type Answer<T> = Result<Json<T>, Refusal>;

/// Why a request was not answered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// One word for programs, such as `NotFound`.
    #[schema(value_type = String)]
    error: &'static str,
    /// What happened, for people.
    message: String,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// A problem with its status.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    problem: Problem,
}

impl Refusal {
    fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        let problem = Problem { error, message: message.into(), meaning: None, remedy: None };
        Self { status, problem }
    }

    /// The request itself is wrong.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Who asks did not show the token.
    pub(super) fn unauthorized() -> Self {
        let refusal = Self::new(
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "this needs the token that is in worker.json",
        );
        refusal.remedy("open the viewer with `claude-mem viewer`")
    }

    /// The request comes from where none is taken from.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// There is no such thing.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// It is there, but not for this method.
    pub(super) fn method_not_allowed() -> Self {
        let message = "this cannot be done with that method";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// It cannot be done as things stand.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
    }

    /// It would cost more than may be spent.
    pub(super) fn too_expensive(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYMENT_REQUIRED, "TooExpensive", message)
    }

    /// The body is longer than any that is taken.
    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message)
    }

    /// The head is longer than any that is taken.
    pub(super) fn head_too_large(bytes_max: usize) -> Self {
        let message = format!("the head of a request may have {bytes_max} bytes");
        Self::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "TooLarge", message)
    }

    /// The body did not come in time.
    pub(super) fn too_slow() -> Self {
        let message = "the body did not come in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", message)
    }

    /// As many do this as may at the same time.
    pub(super) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "Busy", message)
    }

    /// It was understood, and something else does not work.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Failed", message)
    }

    /// What was asked for cannot be done, and whoever asked can do something about it.
    pub(super) fn unfit(failure: &Failure) -> Self {
        Self::of(StatusCode::UNPROCESSABLE_ENTITY, "Unfit", failure)
    }

    /// As things stand it cannot be done.
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
        Self { status, problem: Problem { error, message: message.into(), meaning, remedy } }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(self.problem)).into_response()
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure.is_usage() {
            true => Self::of(StatusCode::BAD_REQUEST, "BadRequest", &failure),
            false => Self::of(StatusCode::INTERNAL_SERVER_ERROR, "Failed", &failure),
        }
    }
}

impl From<claude_mem_projections::Error> for Refusal {
    fn from(error: claude_mem_projections::Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<claude_mem_log::Error> for Refusal {
    fn from(error: claude_mem_log::Error) -> Self {
        Failure::from(error).into()
    }
}

/// What stands behind the question mark.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => Err(Refusal::bad(error.body_text())),
        }
    }
}

/// What stands in the path.
pub(super) struct Named<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Self(named)),
            Err(error) => Err(Refusal::bad(error.body_text())),
        }
    }
}

/// The body, which is JSON.
pub(super) struct Given<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Given<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match Json::from_request(request, state).await {
            Ok(Json(given)) => Ok(Self(given)),
            Err(error @ JsonRejection::MissingJsonContentType(_)) => {
                Err(Refusal::new(error.status(), "BadRequest", error.body_text()))
            }
            Err(error) => Err(Refusal::bad(error.body_text())),
        }
    }
}
