//! Events that programs send over HTTP: captured like those of hooks, and on disk before the
//! response.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::{error::ApiError, state::AppState};
use claude_mem_capture::{
    CLAUDE_CODE, Captured, IncomingKind,
    external::{ExternalEvent, Message, accept},
};
use claude_mem_privacy::{Policy, redact_text};

/// Up to this size, redacting a message takes less time than handing it to another thread.
const AT_ONCE_MAX: usize = 64 << 10;

/// Result of recording an event.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Queued {
    /// `queued`, or `skipped`.
    pub(super) status: &'static str,
    /// Why it was skipped: `private`, `project_excluded`, `tool_excluded`, `session_memory_meta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    /// Number of other pending events of the session, for requests that name it by number.
    #[serde(skip_serializing_if = "Option::is_none", rename = "queueLength")]
    pub(super) queue_length: Option<u32>,
}

impl Queued {
    pub(super) fn of(reason: Option<&'static str>) -> Self {
        let status = if reason.is_none() { "queued" } else { "skipped" };
        Self { status, reason, queue_length: None }
    }
}

/// One event of a session, as a request names it.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionEvent {
    /// Session ID of the client.
    pub(super) session: String,
    /// The client; if not given, the one that the session had before, else Claude Code.
    pub(super) platform: Option<String>,
    pub(super) cwd: Option<String>,
    /// Project name, for sessions without a folder.
    pub(super) project: Option<String>,
    /// Fields with the names of Claude Code's hooks.
    pub(super) fields: Map<String, Value>,
    /// Further fields as raw JSON: tool input and output are not parsed and serialized again.
    pub(super) raw: Vec<(&'static str, Box<RawValue>)>,
}

impl SessionEvent {
    pub(super) fn field(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.fields.insert(name.into(), value.into());
        }
        self
    }

    pub(super) fn raw(mut self, name: &'static str, value: Option<Box<RawValue>>) -> Self {
        self.raw.extend(value.map(|value| (name, value)));
        self
    }

    fn json(self) -> String {
        let mut json = Value::Object(self.fields).to_string();
        for (name, value) in &self.raw {
            json.truncate(json.len() - 1);
            let comma = if json.len() > 1 { "," } else { "" };
            json.extend([comma, "\"", name, "\":", value.get(), "}"]);
        }
        json
    }
}

/// Captures an event. Nothing is appended yet.
pub(super) async fn capture(
    state: &Arc<AppState>,
    kind: IncomingKind,
    mut event: SessionEvent,
) -> Result<Captured, ApiError> {
    if event.session.trim().is_empty() {
        return Err(ApiError::bad("the session ID is empty"));
    }
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
    let (cwd, name) = (text(&event.cwd), text(&event.project));
    let project = state.project(&cwd, &name, &event.session).await?;
    let client = state.client(client(&text(&event.platform)), &event.session).await?;
    let session = std::mem::take(&mut event.session);
    let json = event.field("cwd", Some(cwd)).json();
    let recorder = state.shared.recorder.current();
    let is_short = json.len() <= AT_ONCE_MAX;
    let capture = move || {
        let message = Message::read(&json).map_err(ApiError::bad)?;
        let event = ExternalEvent { kind, session: &session, message, client: &client, project };
        accept(&recorder, event).map_err(ApiError::bad)
    };
    if is_short { capture() } else { state.block(capture).await }
}

/// Records an event. It is on disk when this returns. Returns the reason if it was skipped.
pub(super) async fn record(
    state: &Arc<AppState>,
    kind: IncomingKind,
    event: SessionEvent,
) -> Result<Option<&'static str>, ApiError> {
    match capture(state, kind, event).await? {
        Captured::Skipped(skip) => Ok(Some(skip.reason())),
        Captured::Event { envelope, event } => {
            state.shared.append(envelope, event).await.map_err(ApiError::failed)?;
            Ok(None)
        }
    }
}

/// The client's name as stored in events. Redacted first: in lower case and without spaces, a
/// secret has no longer its form.
fn client(given: &str) -> Option<String> {
    let given = redact_text(given, Policy::default()).text.to_lowercase().replace(' ', "-");
    Some(match given.as_str() {
        "" => return None,
        given if given.contains("claude") => CLAUDE_CODE.name.into(),
        given if given.contains("codex") || given == "transcript" => "codex".into(),
        given if given.contains("cursor") => "cursor".into(),
        given => given.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_client_is_redacted_before_it_is_normalized() {
        let name = client("Acme AKIAQ7ZP3M5R8T2V6W4X").unwrap();
        assert_eq!(name, "acme-[redacted:aws-access-key]");
    }

    #[test]
    fn raw_fields_stay_as_they_were_written() {
        let raw = |json: &str| RawValue::from_string(json.into()).ok();
        let event = SessionEvent::default().raw("tool_input", raw(r#"{"b": 1,  "a": 1e2}"#));
        assert_eq!(event.clone().json(), r#"{"tool_input":{"b": 1,  "a": 1e2}}"#);
        let event = event.field("tool_name", Some("Ba\"sh")).raw("tool_response", raw("null"));
        let expected =
            r#"{"tool_name":"Ba\"sh","tool_input":{"b": 1,  "a": 1e2},"tool_response":null}"#;
        assert_eq!(event.field("cwd", None::<String>).json(), expected);
    }
}
