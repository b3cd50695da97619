//! `inspect`: prints the frames of a log, as stored on the disk.

use std::{
    borrow::Cow,
    error::Error,
    fs,
    io::{self, BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
};

use claude_mem_log::{
    Log, Options, SegmentInfo, SegmentState,
    format::{
        self, FLAG_AGAIN, FLAG_MOVED, FLAG_TOMBSTONE, FLAG_ZSTD, FrameHeader, KIND_SEAL,
        SEGMENT_HEADER_LEN, SegmentHeader,
    },
    scan::{ScanResult, scan},
};

/// Bytes of a payload to print.
const PREVIEW_CHARS: usize = 60;

/// Print every frame of a log
///
/// Position, id, kind, schema, size, flags and the start of the payload; damaged places in between.
/// Reads the files as they are and changes nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// The directory of the log
    dir: PathBuf,
    /// Only this segment, by its number
    #[arg(long, value_name = "NUMBER")]
    segment: Option<u64>,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let log = Log::open(&self.dir, Options::default())?;
        let segments = log.segments()?;
        if segments.is_empty() {
            return Err(format!("there is no log in {}", self.dir.display()).into());
        }
        let is_chosen =
            |segment: &&SegmentInfo| self.segment.is_none_or(|number| number == segment.number);
        let mut out = BufWriter::new(io::stdout().lock());
        let log_id = log.id().unwrap_or_default();
        let printed = segments.iter().filter(is_chosen).try_for_each(|segment| {
            inspect_segment(segment, log_id, &mut out).and_then(|()| out.flush())
        });
        match printed {
            // The reader closed the pipe, as in `… | head`.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(ExitCode::SUCCESS),
        }
    }
}

fn inspect_segment(
    segment: &SegmentInfo,
    log_id: [u8; 16],
    out: &mut impl Write,
) -> io::Result<()> {
    let bytes = fs::read(&segment.path)?;
    let header = SegmentHeader::decode(&bytes);
    if header.is_none() {
        writeln!(out, "{}:0 the header is damaged", segment.number)?;
    }
    let salt = header.map_or_else(|| format::salt(log_id, segment.number), |header| header.salt());
    let mut offset = SEGMENT_HEADER_LEN as u64;
    loop {
        let mut found = scan(&mut bytes.as_slice(), offset, salt)?;
        if segment.state != SegmentState::Active {
            found = found.when_closed(offset);
        }
        let place = format!("{}:{offset}", segment.number);
        match found {
            ScanResult::End => return Ok(()),
            ScanResult::Frame(header) => {
                offset += header.frame_len() as u64;
                let stored = &bytes[offset as usize - header.len..offset as usize];
                let preview =
                    if header.kind == KIND_SEAL { "seal".into() } else { preview(&header, stored) };
                let FrameHeader { id, kind, schema, len, .. } = header;
                let flags = flags(&header);
                writeln!(out, "{place} {id} kind {kind}.{schema} {len} B{flags} {preview}")?;
            }
            ScanResult::Gap { range, reason, .. } => {
                offset = range.end;
                let bytes = range.end - range.start;
                writeln!(out, "{place} {}, {bytes} B", reason.describe())?;
            }
            ScanResult::Tail { len, .. } => {
                offset += len;
                writeln!(out, "{place} incomplete, or still being written, {len} B")?;
            }
        }
    }
}

fn flags(header: &FrameHeader) -> String {
    let names = [
        (FLAG_ZSTD, " zstd"),
        (FLAG_MOVED, " moved"),
        (FLAG_TOMBSTONE, " tombstone"),
        (FLAG_AGAIN, " again"),
    ];
    names.iter().filter(|(flag, _)| header.has(*flag)).map(|(_, name)| *name).collect()
}

/// The start of a payload, decompressed and printable.
fn preview(header: &FrameHeader, stored: &[u8]) -> String {
    // Both start with the first position of the record.
    let stored = match header.has(FLAG_MOVED | FLAG_AGAIN) {
        true => stored.get(8..).unwrap_or_default(),
        false => stored,
    };
    let payload = match header.has(FLAG_ZSTD).then(|| zstd::decode_all(stored)) {
        Some(Ok(payload)) => Cow::Owned(payload),
        _ => Cow::Borrowed(stored),
    };
    let text = String::from_utf8_lossy(&payload[..payload.len().min(4 * PREVIEW_CHARS)]);
    let printable = |char: char| if char.is_control() || char == '\u{FFFD}' { '·' } else { char };
    text.chars().take(PREVIEW_CHARS).map(printable).collect()
}
