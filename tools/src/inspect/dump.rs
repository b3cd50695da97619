//! `inspect dump`: prints the frames.

use super::{FrameOrGap, OpenedLog, Outcome, show_time};
use claude_mem_log::{
    Seq,
    format::{FLAG_AGAIN, FLAG_MOVED, FLAG_TOMBSTONE, FLAG_ZSTD, FrameHeader},
};
use serde::Serialize;
use std::{io::Write, path::Path};

/// Bytes of a payload to print.
const PREVIEW_CHARS: usize = 60;

/// A frame or a gap, on one line.
#[derive(Debug, Default, Serialize)]
struct Line {
    seq: u64,
    segment: u64,
    offset: u64,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codec: Option<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<&'static str>,
    /// As stored, without the frame's header; for a gap, all of it.
    bytes: u64,
    preview: String,
}

/// Prints every frame of the log in `dir`, or of one segment.
pub(crate) fn dump(dir: &Path, only: Option<u64>, json: bool, out: &mut impl Write) -> Outcome<()> {
    let inspected = OpenedLog::open(dir)?;
    let wanted = |number| only.is_none_or(|only| only == number);
    for segment in inspected.segments.iter().filter(|segment| wanted(segment.number)) {
        inspected.walk(segment, |offset, met| {
            let line = line(Seq::new(segment.number, offset), met);
            let text = if json { serde_json::to_string(&line)? } else { line.to_text() };
            Ok(writeln!(out, "{text}")?)
        })?;
    }
    Ok(())
}

fn line(seq: Seq, met: FrameOrGap<'_>) -> Line {
    let at =
        Line { seq: seq.raw(), segment: seq.segment(), offset: seq.offset(), ..Line::default() };
    match met {
        FrameOrGap::Record(header, stored) => {
            Line { what: "record", preview: preview(&header, stored), ..of_header(at, &header) }
        }
        FrameOrGap::Seal(header) => Line { what: "seal", ..of_header(at, &header) },
        FrameOrGap::Gap { len, reason, header } => {
            let known = match &header {
                Some(header) => of_header(at, header),
                None => at,
            };
            Line { what: "gap", bytes: len, preview: reason.describe().into(), ..known }
        }
        FrameOrGap::Unfinished(len) => Line {
            what: "unfinished",
            bytes: len,
            preview: "incomplete, or still being written".into(),
            ..at
        },
    }
}

fn of_header(at: Line, header: &FrameHeader) -> Line {
    let names = [
        (FLAG_ZSTD, "zstd"),
        (FLAG_MOVED, "moved"),
        (FLAG_TOMBSTONE, "tombstone"),
        (FLAG_AGAIN, "again"),
    ];
    Line {
        id: Some(header.id.to_string()),
        time: Some(show_time(header.id.time_us())),
        kind: Some(header.kind),
        schema: Some(header.schema),
        codec: Some(header.codec),
        flags: names
            .into_iter()
            .filter(|(flag, _)| header.has(*flag))
            .map(|(_, name)| name)
            .collect(),
        bytes: header.len as u64,
        ..at
    }
}

/// The start of a payload, printable.
fn preview(header: &FrameHeader, stored: &[u8]) -> String {
    let payload = super::stat::payload(header, stored);
    let text = String::from_utf8_lossy(&payload[..payload.len().min(4 * PREVIEW_CHARS)]);
    let printable = |char: char| if char.is_control() || char == '\u{FFFD}' { '·' } else { char };
    let mut preview: String = text.chars().take(PREVIEW_CHARS).map(printable).collect();
    if text.chars().nth(PREVIEW_CHARS).is_some() {
        preview.push('…');
    }
    preview
}

impl Line {
    fn to_text(&self) -> String {
        let Self { segment, offset, what, bytes, preview, .. } = self;
        let place = format!("{segment}:{offset}");
        match (&self.id, self.kind, self.schema) {
            (Some(id), Some(kind), Some(schema)) => {
                let flags = self.flags.join(",");
                let text = format!(
                    "{place:<16} {what:<7} {id} kind {kind} schema {schema} {bytes:>8} B \
                     {flags:<5} {preview}"
                );
                text.trim_end().to_owned()
            }
            _ => format!("{place:<16} {what:<7} {bytes} B: {preview}"),
        }
    }
}
