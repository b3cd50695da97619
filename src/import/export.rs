//! Our own export format: each event as one line of JSON, and its import.

use std::{borrow::Cow, fs, path::Path};

use claude_mem_events::{Envelope, Event, Id, Recorded};
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use crate::{
    cannot_read,
    lines::{Line, Lines},
    sink::{DAMAGE_MAX, Sink},
};
use claude_mem_core::failure::Failure;

/// An exported event.
#[derive(Serialize)]
pub struct Exported<'a> {
    id: String,
    kind: &'static str,
    version: u16,
    envelope: &'a Envelope,
    event: Body<'a>,
}

/// The fields of an event, or its bytes if the kind is unknown.
struct Body<'a>(&'a Recorded);

/// An event of an unknown kind, or an erased one.
#[derive(Serialize, Deserialize)]
struct OpaqueEvent {
    kind: u16,
    codec: u8,
    payload: String,
}

/// Kind of an unknown event. No event has this name.
const UNKNOWN: &str = "Unknown";
/// Kind of an event erased by a compaction. No event has this name.
const ERASED: &str = "Erased";

impl<'a> Exported<'a> {
    /// The exported event. An erased one is exported too: memories were distilled from it, and
    /// other rows refer to it.
    pub fn of(recorded: &'a Recorded) -> Self {
        let event = &recorded.event;
        let kind = match event {
            Event::Erased { .. } => ERASED,
            Event::Unknown { .. } => UNKNOWN,
            _ => event.name(),
        };
        let (id, version) = (recorded.id.to_string(), event.version());
        Self { id, kind, version, envelope: &recorded.envelope, event: Body(recorded) }
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match &self.0.event {
            Event::Unknown { kind, codec, payload, .. } => {
                OpaqueEvent { kind: *kind, codec: *codec, payload: hex(payload) }
                    .serialize(serializer)
            }
            Event::Erased { kind, .. } => {
                let (_, codec, payload) = self.0.payload().map_err(S::Error::custom)?;
                OpaqueEvent { kind: *kind, codec, payload: hex(&payload) }.serialize(serializer)
            }
            event => event.serialize_body(serializer),
        }
    }
}

#[derive(Deserialize)]
struct ParsedLine<'a> {
    id: String,
    kind: String,
    version: u16,
    envelope: Envelope,
    #[serde(borrow)]
    event: &'a RawValue,
}

/// Imports a file written by `claude-mem export`.
pub(super) fn import(sink: &mut Sink<'_>, path: &Path) -> Result<(), Failure> {
    let failed = |error| cannot_read(path, &error);
    let mut lines = Lines::open(path).map_err(failed)?;
    sink.progress.set_total(fs::metadata(path).map_or(0, |found| found.len()));
    let (mut number, mut read_bytes) = (0, 0);
    while let Some(Line { bytes, .. }) = lines.next().map_err(failed)? {
        number += 1;
        read_bytes += bytes.map_or(0, <[u8]>::len) as u64 + 1;
        sink.progress.show(read_bytes, "");
        let Some(bytes) = bytes else {
            sink.refuse("lines that are too long");
            continue;
        };
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        match read(bytes) {
            Ok((id, envelope, event)) => {
                let what = event.name();
                sink.add(what, id, &envelope, || event)?;
            }
            Err(reason) => {
                if sink.report.damage.len() < DAMAGE_MAX {
                    sink.report.damage.push(format!("line {number}: {reason}"));
                }
                sink.refuse(reason);
            }
        }
    }
    sink.report.bytes += lines.read;
    Ok(())
}

fn read(bytes: &[u8]) -> Result<(Id, Envelope, Event), Cow<'static, str>> {
    let line: ParsedLine<'_> =
        serde_json::from_slice(bytes).map_err(|_| "it is not an exported event")?;
    let id = Id::parse(&line.id).ok_or("its id is invalid")?;
    let json = line.event.get();
    if line.kind == UNKNOWN || line.kind == ERASED {
        let (kind, codec, payload) = opaque(json).ok_or("its payload is invalid")?;
        let event = match line.kind == ERASED {
            true => Event::erased(kind, &payload)
                .ok_or("its tombstone is not supported by this version")?,
            false => Event::Unknown { kind, version: line.version, codec, payload },
        };
        return Ok((id, line.envelope, event));
    }
    let mut fields = serde_json::Deserializer::from_str(json);
    let event = Event::deserialize_body(&line.kind, line.version, &mut fields)
        .map_err(|_| format!("it is not a {}", line.kind))?
        .ok_or_else(|| format!("version {} of {} is unknown", line.version, line.kind))?;
    Ok((id, line.envelope, event))
}

fn opaque(json: &str) -> Option<(u16, u8, Vec<u8>)> {
    let OpaqueEvent { kind, codec, payload } = serde_json::from_str(json).ok()?;
    let digits: Vec<u8> =
        payload.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect::<Option<_>>()?;
    let payload = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    digits.len().is_multiple_of(2).then_some((kind, codec, payload))
}

#[cfg(test)]
mod tests {
    use claude_mem_events::{
        AgentReplied, PromptSubmitted, Seq, Submitter, SummaryRequested, Tombstone, ToolUsed,
        Versioned as _,
    };

    use super::*;

    fn there_and_back(event: Event) {
        let envelope = Envelope {
            session: "s\u{0}\"".into(),
            branch: "main".into(),
            commit: "c0ffee".into(),
            ..Envelope::default()
        };
        let recorded = Recorded { seq: Seq::START, id: Id::new(5, 7), envelope, event };
        let line = serde_json::to_string(&Exported::of(&recorded)).unwrap();
        assert!(!line.contains('\n'));
        let (id, envelope, event) = read(line.as_bytes()).unwrap();
        assert_eq!((id, envelope, event), (recorded.id, recorded.envelope, recorded.event));
    }

    #[test]
    fn events_come_back_as_they_were() {
        let duration_ms = Some(u64::MAX);
        let (input, output) = ("{\"a\": 1.50}".into(), "\u{7f}\u{2028}\n\\".into());
        there_and_back(ToolUsed { input, output, duration_ms, ..ToolUsed::default() }.into());
        let submitter = Submitter::TaskNotification;
        there_and_back(PromptSubmitted { submitter, ..PromptSubmitted::default() }.into());
        let answers = vec![[7; 16], [255; 16]];
        there_and_back(AgentReplied { answers, ..AgentReplied::default() }.into());
        let payload = vec![1, 0, 255];
        there_and_back(Event::Unknown { kind: 999, version: 3, codec: 1, payload });
        let left =
            Tombstone { bytes: 9, ..Tombstone::of_forgotten(Some(ToolUsed::default().into())) };
        let kind = ToolUsed::KIND;
        there_and_back(Event::Erased { kind, left: Some(Box::new(left)) });
        there_and_back(Event::Erased { kind, left: None });
    }

    #[test]
    fn a_stop_of_the_first_version_has_no_remarks() {
        let event = Event::from(SummaryRequested::default());
        let recorded =
            Recorded { seq: Seq::START, id: Id::new(5, 7), envelope: Envelope::default(), event };
        let line = serde_json::to_string(&Exported::of(&recorded)).unwrap();
        let old = line.replace("\"version\":2", "\"version\":1").replace(",\"remarks\":[]", "");
        assert!(old.len() < line.len() && old.contains("\"version\":1"), "{old}");
        assert_eq!(read(old.as_bytes()).unwrap().2, recorded.event);
    }

    #[test]
    fn an_export_from_before_the_git_state_is_read() {
        let line = r#"{"id":"00000000-0000-7000-8000-000000000001","kind":"SessionEnded","version":1,
            "envelope":{"host":"h","platform":"p","session":"s",
                "project":{"key":"k","label":"l","root":"r"}},
            "event":{"reason":"clear","extra":""}}"#;
        let (_, envelope, _) = read(line.as_bytes()).unwrap();
        assert_eq!((envelope.session.as_str(), envelope.branch.as_str()), ("s", ""));
    }

    #[test]
    fn invalid_events_are_rejected_with_a_reason() {
        let line = |kind: &str, version: u16, event: &str| {
            let envelope = serde_json::to_string(&Envelope::default()).unwrap();
            let id = Id::new(1, 1);
            let json = format!(
                "{{\"id\":\"{id}\",\"kind\":\"{kind}\",\"version\":{version},\
                  \"envelope\":{envelope},\"event\":{event}}}"
            );
            read(json.as_bytes()).unwrap_err().into_owned()
        };
        assert_eq!(read(b"{}").unwrap_err(), "it is not an exported event");
        assert_eq!(line("ToolUsed", 1, "{}"), "it is not a ToolUsed");
        assert_eq!(line("ToolUsed", 9, "{}"), "version 9 of ToolUsed is unknown");
        assert_eq!(
            line("Unknown", 1, "{\"kind\":1,\"codec\":1,\"payload\":\"abc\"}"),
            "its payload is invalid"
        );
        assert_eq!(
            line("Erased", 1, "{\"kind\":1,\"codec\":1,\"payload\":\"ff\"}"),
            "its tombstone is not supported by this version"
        );
    }
}
