//! What the worker answers over HTTP.

use std::{future::Future, io, sync::Arc};

use axum::{Json, Router, extract::State, routing::get};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{viewer, worker::Shared};

/// Serves until `shutdown` is there; requests under way are then answered to their end.
pub(crate) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router =
        Router::new().route("/health", get(health)).merge(viewer::routes()).with_state(shared);
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}

async fn health(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(json!({
        "status": "ok",
        "version": shared.presence.version,
        "uptime": shared.started.elapsed().as_secs(),
    }))
}
