//! What programs tell of a session: heard as hooks are heard, and on disk before it is acknowledged.

use std::sync::Arc;

use claude_mem_events::{Envelope, Event};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::{error::Refusal, state::Site};
use claude_mem_capture::{
    PLATFORM,
    external::{Heard, Message, Told, hear},
};

/// Up to so many bytes it takes less to clean what was told than to have another thread do it.
const AT_ONCE_MAX: usize = 64 << 10;

/// What becomes of something that was told.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Queued {
    /// `queued`, or `skipped`.
    pub(super) status: &'static str,
    /// Why it was skipped: `private`, `project_excluded`, `tool_excluded`, `session_memory_meta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
}

impl Queued {
    pub(super) fn of(reason: Option<&'static str>) -> Self {
        let status = if reason.is_none() { "queued" } else { "skipped" };
        Self { status, reason }
    }
}

/// One thing that is told of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Tale {
    /// The watched program's id of the session.
    pub(super) session: String,
    /// Which program is watched; the usual one, if not given.
    pub(super) platform: Option<String>,
    /// Where it happened.
    pub(super) cwd: Option<String>,
    /// The name of a project, where there is no folder.
    pub(super) project: Option<String>,
    /// The fields of the hook that would have told it.
    pub(super) fields: Map<String, Value>,
    /// More of them, as they were written: what tools are given and say is not taken apart to be put together.
    pub(super) raw: Vec<(&'static str, Box<RawValue>)>,
}

impl Tale {
    /// Adds a field, if it is there.
    pub(super) fn field(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.fields.insert(name.into(), value.into());
        }
        self
    }

    /// Adds a field as it was written, if it is there.
    pub(super) fn raw(mut self, name: &'static str, value: Option<Box<RawValue>>) -> Self {
        self.raw.extend(value.map(|value| (name, value)));
        self
    }

    /// All fields, as one JSON object.
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

/// What was made of it.
#[expect(clippy::large_enum_variant, reason = "nearly all are recorded")]
pub(super) enum Made {
    Event(Envelope, Event),
    Skipped(&'static str),
}

/// Makes an event of it, as the hook of this name would have. Nothing is recorded yet.
pub(super) async fn make(
    site: &Arc<Site>,
    hook: &'static str,
    mut tale: Tale,
) -> Result<Made, Refusal> {
    if tale.session.trim().is_empty() {
        return Err(Refusal::bad("the id of the session is empty"));
    }
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
    let (cwd, name) = (text(&tale.cwd), text(&tale.project));
    let project = site.project(&cwd, &name, &tale.session).await?;
    let platform = platform(&text(&tale.platform));
    let session = std::mem::take(&mut tale.session);
    let json = tale.field("cwd", Some(cwd)).json();
    let shared = Arc::clone(&site.shared);
    let is_short = json.len() <= AT_ONCE_MAX;
    let hear = move || {
        let message = Message::read(&json).map_err(Refusal::bad)?;
        let told = Told { hook, session: &session, message, platform: &platform, project };
        hear(&shared.environment, &shared.paths, told).map_err(Refusal::bad)
    };
    let heard = if is_short { hear()? } else { site.block(hear).await? };
    Ok(match heard {
        Heard::Event { envelope, event, .. } => Made::Event(envelope, event),
        Heard::Skipped(skipped) => Made::Skipped(skipped.reason()),
    })
}

/// Records it. It is on disk when this returns; says why, if it was skipped.
pub(super) async fn take(
    site: &Arc<Site>,
    hook: &'static str,
    tale: Tale,
) -> Result<Option<&'static str>, Refusal> {
    match make(site, hook, tale).await? {
        Made::Skipped(reason) => Ok(Some(reason)),
        Made::Event(envelope, event) => {
            site.shared.append(envelope, event).await.map_err(Refusal::failed)?;
            Ok(None)
        }
    }
}

/// The watched program by the name that events have it under.
fn platform(told: &str) -> String {
    let told = told.to_lowercase().replace(' ', "-");
    match told.as_str() {
        "" => PLATFORM.into(),
        told if told.contains("claude") => PLATFORM.into(),
        told if told.contains("codex") || told == "transcript" => "codex".into(),
        told if told.contains("cursor") => "cursor".into(),
        told => told.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_stays_as_it_was_written() {
        let raw = |json: &str| RawValue::from_string(json.into()).ok();
        let tale = Tale::default().raw("tool_input", raw(r#"{"b": 1,  "a": 1e2}"#));
        assert_eq!(tale.clone().json(), r#"{"tool_input":{"b": 1,  "a": 1e2}}"#);
        let tale = tale.field("tool_name", Some("Ba\"sh")).raw("tool_response", raw("null"));
        let expected =
            r#"{"tool_name":"Ba\"sh","tool_input":{"b": 1,  "a": 1e2},"tool_response":null}"#;
        assert_eq!(tale.field("cwd", None::<String>).json(), expected);
    }
}
