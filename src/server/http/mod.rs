//! The HTTP API of the worker.
//!
//! A route parses the request, calls the same functions as the command line, and renders the
//! result. `auth.rs` checks the token, `state.rs` is the state shared by requests, and each group
//! of routes has a file. Everything in `closed` needs the token.

#![expect(clippy::struct_field_names, reason = "field names are those of the JSON")]

mod auth;
mod body_limit;
mod connections;
mod context;
mod costs;
mod diff;
mod error;
mod events;
mod feed;
mod files;
mod forgetting;
mod generations;
mod health;
mod items;
mod known_browsers;
mod memories;
mod parameters;
mod projects;
mod provenance;
mod recording;
mod related;
mod replays;
mod revisions;
mod search;
mod session_event;
mod sessions;
mod settings;
mod state;
mod stats;
mod stream;
mod time_params;
mod timeline;
mod viewer_login;

use std::{future::Future, io, sync::Arc, time::Instant};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request},
    http::header::CONTENT_TYPE,
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::get,
};
use tokio::net::TcpListener;
use utoipa::{
    OpenApi,
    openapi::{
        self, Content, Ref, RefOr, ResponseBuilder,
        security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};
use utoipa_axum::router::OpenApiRouter;

use crate::{shared::Shared, viewer};
use error::{ApiError, Problem};
use state::AppState;

/// Serves until `shutdown` completes; requests in progress are then finished.
pub(crate) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let state = AppState::new(shared)?;
    connections::serve(listener, router(&state), shutdown).await
}

/// The OpenAPI description, collected from the routes.
#[derive(OpenApi)]
#[openapi(
    info(title = "claude-mem", description = "Memory of Claude Code sessions on this machine."),
    components(schemas(Problem))
)]
struct Description;

/// Adds what all routes have in common: the response to a wrong request, and the token.
fn describe_routes(description: &mut openapi::OpenApi, needs_token: bool) {
    let problem = Content::new(Some(Ref::from_schema_name("Problem")));
    let problem = ResponseBuilder::new()
        .description("What is wrong with the request.")
        .content("application/json", problem)
        .build();
    for item in description.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
            let responses = &mut operation.responses.responses;
            responses.insert("4XX".into(), RefOr::T(problem.clone()));
            if needs_token {
                let token = SecurityRequirement::new("token", [""; 0]);
                operation.security = Some(vec![token]);
            }
        }
    }
}

fn router(state: &Arc<AppState>) -> Router {
    let mut open = OpenApiRouter::with_openapi(Description::openapi())
        .merge(health::open_routes())
        .merge(viewer_login::open_routes());
    describe_routes(open.get_openapi_mut(), false);
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = open.get_openapi_mut().components.get_or_insert_default();
    components.add_security_scheme("token", bearer);
    let mut closed = OpenApiRouter::new()
        .merge(feed::routes())
        .merge(events::routes())
        .merge(files::routes())
        .merge(memories::routes())
        .merge(provenance::routes())
        .merge(related::routes())
        .merge(sessions::routes())
        .merge(recording::routes())
        .merge(search::routes())
        .merge(timeline::routes())
        .merge(context::routes())
        .merge(projects::routes())
        .merge(stats::routes())
        .merge(costs::routes())
        .merge(settings::routes())
        .merge(forgetting::routes())
        .merge(revisions::routes())
        .merge(replays::routes())
        .merge(generations::routes())
        .merge(diff::routes())
        .merge(health::closed_routes())
        .merge(viewer_login::closed_routes())
        .merge(stream::routes());
    describe_routes(closed.get_openapi_mut(), true);
    let known = parameters::KnownParameters::of(closed.get_openapi());
    // The last layer runs first: no body is read without a token.
    closed = closed
        // Limited by `body_limit::read`, and only there.
        .route_layer(DefaultBodyLimit::disable())
        .route_layer(middleware::from_fn_with_state(Arc::clone(state), body_limit::read))
        .route_layer(middleware::from_fn_with_state(known, parameters::known_only))
        .route_layer(middleware::from_fn(auth::known_only));
    let (router, description) = open.merge(closed).split_for_parts();
    let router = router.merge(viewer::routes());
    let description = description.to_json().expect("a description is plain data");
    let description = Bytes::from(description);
    let described = get(async move || ([(CONTENT_TYPE, "application/json")], description.clone()));
    router
        .route("/api/openapi.json", described)
        .fallback(|request: Request| std::future::ready(no_route(&request)))
        .method_not_allowed_fallback(|| std::future::ready(ApiError::method_not_allowed()))
        .layer(middleware::from_fn_with_state(Arc::clone(state), auth::guard))
        .layer(middleware::from_fn(log_request))
        .with_state(Arc::clone(state))
}

/// Browsers get a page, programs an error.
fn no_route(request: &Request) -> Response {
    viewer::not_found(request)
        .unwrap_or_else(|| ApiError::not_found("there is no such route").into_response())
}

/// Logs the path without its parameters, which may contain private text or a login.
async fn log_request(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let started = Instant::now();
    let response = next.run(request).await;
    let (status, ms) = (response.status().as_u16(), started.elapsed().as_millis());
    tracing::debug!(%method, path, status, ms, "request");
    response
}
