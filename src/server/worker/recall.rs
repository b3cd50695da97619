//! Ranks memories for a prompt, over `worker.sock`: the request of a hook, and the response of the
//! worker.
//!
//! A hook can rank by itself, so the worker has little time, and its absence is not an error.

use std::{borrow::Cow, path::Path, sync::Arc, sync::mpsc, thread, time::Duration};

use claude_mem_core::os;
use claude_mem_memory::context::rank_by_meaning;
use claude_mem_projections::search::Recall;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::line_socket::{SOCKET, failed};
use crate::shared::Shared;

/// Maximum time that a prompt waits for the worker, which embeds only the beginning of it for that
/// reason.
const RESPONSE_MAX: Duration = Duration::from_millis(30);

/// A prompt, and which memories to search.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecallMessage<'a> {
    #[serde(rename = "type", default)]
    kind: Cow<'a, str>,
    prompt: Cow<'a, str>,
    /// Key of the project.
    project: Cow<'a, str>,
    #[serde(default)]
    root: Cow<'a, str>,
    #[serde(default)]
    session: Cow<'a, str>,
    until_us: u64,
    limit: usize,
}

#[derive(Debug, Deserialize)]
struct RecallResponse {
    observations: Vec<i64>,
}

/// The worker's ranking for a prompt. `None` if no worker responds in time.
///
/// The request runs on a separate thread, because connecting to a stuck worker can block, too. The
/// thread ends with the process.
pub fn ask(data: &Path, recall: &Recall<'_>) -> Option<Vec<i64>> {
    let message = RecallMessage {
        kind: "recall".into(),
        prompt: recall.prompt.into(),
        project: recall.project.into(),
        root: recall.root.into(),
        session: recall.session.into(),
        until_us: recall.until_us,
        limit: recall.limit,
    };
    let line = serde_json::to_string(&message).ok()?;
    let data = data.to_owned();
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .spawn(move || sender.send(os::ask(&data, SOCKET, &line, RESPONSE_MAX)))
        .ok()?;
    let response = receiver.recv_timeout(RESPONSE_MAX).ok()?.ok()?;
    serde_json::from_str(&response).ok().map(|RecallResponse { observations }| observations)
}

impl RecallMessage<'static> {
    pub(super) fn read(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }

    /// The response to a hook.
    pub(super) async fn answer(self, shared: &Arc<Shared>) -> Value {
        let shared = Arc::clone(shared);
        let ranked = tokio::task::spawn_blocking(move || {
            let recall = Recall {
                prompt: &self.prompt,
                project: &self.project,
                root: &self.root,
                until_us: self.until_us,
                session: &self.session,
                limit: self.limit,
            };
            let _searching = shared.searching();
            let app = shared.app();
            shared.read(|store| {
                Ok(store.map_or(Ok(Vec::new()), |store| rank_by_meaning(&app, store, &recall))?)
            })
        });
        match ranked.await {
            Ok(Ok(observations)) => json!({"status": "ok", "observations": observations}),
            _ => failed("the memories could not be ranked"),
        }
    }
}
