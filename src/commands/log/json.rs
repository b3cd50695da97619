//! Events as JSON, one object each. Field names are stable.

use claude_mem_events::{Event, Gap, Id, Recorded};
use jiff::Timestamp;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, value::RawValue};

use claude_mem_memory::event_subject::subject;

/// Fields that contain JSON, in events from hooks.
const JSON_FIELDS: [&str; 3] = ["input", "output", "extra"];

#[derive(Serialize)]
pub(in crate::commands) struct Shown<'a> {
    seq: String,
    id: String,
    time: String,
    kind: &'static str,
    session: &'a str,
    project: &'a str,
    project_key: &'a str,
    root: &'a str,
    branch: &'a str,
    commit: &'a str,
    host: &'a str,
    platform: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_failed: Option<bool>,
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Body<'a>>,
}

/// An event, with all fields if `--raw` was passed.
pub(in crate::commands) fn event(recorded: &Recorded, is_raw: bool) -> Shown<'_> {
    let envelope = &recorded.envelope;
    let used = match &recorded.event {
        Event::ToolUsed(used) => Some(used),
        _ => None,
    };
    Shown {
        seq: recorded.seq.to_string(),
        id: recorded.id.to_string(),
        time: time(recorded.id),
        kind: recorded.event.name(),
        session: &envelope.session,
        project: &envelope.project.label,
        project_key: &envelope.project.key,
        root: &envelope.project.root,
        branch: &envelope.branch,
        commit: &envelope.commit,
        host: &envelope.host,
        platform: &envelope.platform,
        tool: used.map(|used| used.tool.as_str()),
        tool_use_id: used.map(|used| used.tool_use_id.as_str()),
        has_failed: used.map(|used| used.has_failed),
        subject: subject(&recorded.event),
        event: is_raw.then_some(Body(&recorded.event)),
    }
}

pub(super) fn gap(gap: &Gap) -> impl Serialize {
    serde_json::json!({
        "seq": format!("{}:{}", gap.segment, gap.offset),
        "kind": "Damage",
        "bytes": gap.len,
        "reason": gap.reason.describe(),
        "id": gap.id.map(|id| id.to_string()),
        "event_kind": gap.kind.map(Event::name_of),
        "subject": gap.to_string(),
    })
}

fn time(id: Id) -> String {
    let micros = id.time_us().cast_signed();
    Timestamp::from_microsecond(micros).map_or_else(|_| String::new(), |time| format!("{time:.6}"))
}

/// The fields of an event. Embedded JSON is embedded unchanged, with every number as it was sent.
struct Body<'a>(&'a Event);

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = fields(self.0);
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (name, value) in &fields {
            let json = value.as_str().filter(|_| JSON_FIELDS.contains(&name.as_str()));
            match json.and_then(compact) {
                Some(json) => map.serialize_entry(name, &json)?,
                None => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// The fields of an event by name. IDs are text.
pub(super) fn fields(event: &Event) -> Vec<(String, Value)> {
    let mut fields: Vec<_> = match event.serialize_body(serde_json::value::Serializer) {
        Ok(Value::Object(fields)) => fields.into_iter().collect(),
        Ok(Value::Array(bytes)) => vec![("payload".into(), hex(&bytes))],
        _ => Vec::new(),
    };
    for (_, value) in &mut fields {
        write_ids(value);
    }
    fields
}

fn write_ids(value: &mut Value) {
    let items = match value {
        Value::Array(items) => items,
        Value::Object(fields) => return fields.values_mut().for_each(write_ids),
        _ => return,
    };
    let byte = |item: &Value| item.as_u64().and_then(|number| u8::try_from(number).ok());
    match items.iter().map(byte).collect::<Option<Vec<u8>>>().map(<[u8; 16]>::try_from) {
        Some(Ok(bytes)) => *value = Id::from_bytes(bytes).to_string().into(),
        _ => items.iter_mut().for_each(write_ids),
    }
}

fn hex(bytes: &[Value]) -> Value {
    bytes
        .iter()
        .map(|byte| format!("{:02x}", byte.as_u64().unwrap_or(0)))
        .collect::<String>()
        .into()
}

/// JSON without whitespace between values, otherwise unchanged. `None` if it is invalid.
pub(super) fn compact(json: &str) -> Option<Box<RawValue>> {
    let mut line = String::with_capacity(json.len());
    let (mut is_in_string, mut is_escaped) = (false, false);
    for character in json.chars() {
        let is_blank = matches!(character, ' ' | '\t' | '\n' | '\r');
        if is_in_string || !is_blank {
            line.push(character);
        }
        is_in_string ^= character == '"' && !is_escaped;
        is_escaped = is_in_string && character == '\\' && !is_escaped;
    }
    RawValue::from_string(line).ok()
}

#[cfg(test)]
mod tests {
    use claude_mem_events::{AgentReplied, ToolUsed};

    use super::*;

    #[test]
    fn json_stays_as_it_was_sent_on_one_line() {
        let used = ToolUsed {
            input: "{\n \"a b\": [ 1.50, 12345678901234567890123, \"q\\\" \\\\\" ]\n}".into(),
            output: "\"no end".into(),
            ..ToolUsed::default()
        };
        let shown = serde_json::to_string(&Body(&used.into())).unwrap();
        let expected =
            r#""input":{"a b":[1.50,12345678901234567890123,"q\" \\"]},"output":"\"no end""#;
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn ids_are_written_as_ids_and_bytes_of_the_future_in_hex() {
        let replied = AgentReplied { answers: vec![[7; 16]], ..AgentReplied::default() };
        let shown = serde_json::to_string(&Body(&replied.into())).unwrap();
        assert!(shown.contains(r#""answers":["07070707-0707-0707-0707-070707070707"]"#), "{shown}");
        let unknown = Event::Unknown { kind: 999, version: 1, codec: 1, payload: vec![1, 255] };
        assert_eq!(serde_json::to_string(&Body(&unknown)).unwrap(), r#"{"payload":"01ff"}"#);
    }
}
