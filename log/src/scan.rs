//! The reading rules of [`format`](crate::format), for the bytes of one segment.

use crate::format::{FRAME_HEADER_LEN, FRAME_MAGIC, FrameHeader, GapReason};
use memchr::memmem;
use std::{io, ops::Range};

/// Bytes with random access.
pub trait Source {
    /// The bytes from `offset` on: at least `len` of them, fewer only if the source ends before.
    fn window(&mut self, offset: u64, len: usize) -> io::Result<&[u8]>;
}

impl Source for &[u8] {
    fn window(&mut self, offset: u64, _len: usize) -> io::Result<&[u8]> {
        Ok(self.get(offset as usize..).unwrap_or_default())
    }
}

/// The result of a scan at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanResult {
    /// A whole frame, checksums verified.
    Frame(FrameHeader),
    /// Bytes that are not a record, up to where reading continues.
    Gap {
        /// The bytes.
        range: Range<u64>,
        /// The reason.
        reason: GapReason,
        /// The header of the frame, if it is intact.
        header: Option<FrameHeader>,
    },
    /// Bytes that are not (yet) a record, up to the end.
    Tail {
        /// Their number.
        len: u64,
        /// The header of the frame, if it is intact.
        header: Option<FrameHeader>,
    },
    /// Nothing more.
    End,
}

impl ScanResult {
    /// Where reading continues after what was found at `offset`; `None` at the end.
    pub fn end(&self, offset: u64) -> Option<u64> {
        match self {
            Self::Frame(header) => Some(offset + header.frame_len() as u64),
            Self::Gap { range, .. } => Some(range.end),
            Self::Tail { .. } | Self::End => None,
        }
    }

    /// The result for a segment that is no longer appended to: rule 4 then has nothing to wait for.
    #[must_use]
    pub fn when_closed(self, offset: u64) -> Self {
        let Self::Tail { len, header } = self else { return self };
        let (len, reason) = match header {
            Some(header) if header.frame_len() as u64 <= len => {
                (header.frame_len() as u64, GapReason::DamagedPayload)
            }
            Some(_) => (len, GapReason::TornWrite),
            None if is_too_short_for_a_frame(len) => (len, GapReason::TornWrite),
            None => (len, GapReason::DamagedTail),
        };
        Self::Gap { range: offset..offset + len, reason, header }
    }
}

/// Every frame is at least as long as its header, so no acknowledged record was ever in fewer
/// bytes.
fn is_too_short_for_a_frame(len: u64) -> bool {
    len < FRAME_HEADER_LEN as u64
}

/// Applies the reading rules at `offset`.
#[inline]
pub fn scan(source: &mut impl Source, offset: u64, salt: u32) -> io::Result<ScanResult> {
    let window = source.window(offset, FRAME_HEADER_LEN)?;
    if window.is_empty() {
        return Ok(ScanResult::End);
    }
    let Some(header) = FrameHeader::decode(window, salt) else {
        return resynchronise(source, offset, salt);
    };
    let window = source.window(offset, header.frame_len())?;
    match window.get(FRAME_HEADER_LEN..header.frame_len()) {
        Some(payload) if header.fits(payload) => Ok(ScanResult::Frame(header)),
        _ => damaged_payload(source, offset, salt, header),
    }
}

/// Rule 2: the header is intact, the payload is not.
#[cold]
fn damaged_payload(
    source: &mut impl Source,
    offset: u64,
    salt: u32,
    header: FrameHeader,
) -> io::Result<ScanResult> {
    let end = offset + header.frame_len() as u64;
    let Some(next) = find_frame(source, offset + 1, salt)? else {
        return Ok(ScanResult::Tail { len: remaining(source, offset)?, header: Some(header) });
    };
    // A frame right after it means that all bytes of this one arrived, and changed later.
    let is_torn = next < end && !is_whole(source, end, salt)?;
    let reason = if is_torn { GapReason::TornWrite } else { GapReason::DamagedPayload };
    Ok(ScanResult::Gap { range: offset..next.min(end), reason, header: Some(header) })
}

/// Rules 3 and 4: no header here; looks for the next intact frame.
#[cold]
fn resynchronise(source: &mut impl Source, offset: u64, salt: u32) -> io::Result<ScanResult> {
    let Some(next) = find_frame(source, offset + 1, salt)? else {
        return Ok(ScanResult::Tail { len: remaining(source, offset)?, header: None });
    };
    let reason = match is_too_short_for_a_frame(next - offset) {
        true => GapReason::TornWrite,
        false => GapReason::DamagedFrames,
    };
    Ok(ScanResult::Gap { range: offset..next, reason, header: None })
}

/// The minimum to search at once. A source returns all it has, usually much more; asking for more
/// would read the same bytes again after each false start.
const SEARCH_BYTES_MIN: usize = 4 << 10;

/// The first intact frame at `offset` or after it.
fn find_frame(source: &mut impl Source, mut offset: u64, salt: u32) -> io::Result<Option<u64>> {
    loop {
        let window = source.window(offset, SEARCH_BYTES_MIN)?;
        if window.len() < FRAME_HEADER_LEN {
            return Ok(None);
        }
        let Some(found) = memmem::find(window, &FRAME_MAGIC) else {
            // The magic may straddle the end of this window.
            offset += (window.len() - (FRAME_MAGIC.len() - 1)) as u64;
            continue;
        };
        offset += found as u64;
        if is_whole(source, offset, salt)? {
            return Ok(Some(offset));
        }
        offset += 1;
    }
}

fn is_whole(source: &mut impl Source, offset: u64, salt: u32) -> io::Result<bool> {
    let window = source.window(offset, FRAME_HEADER_LEN)?;
    let Some(header) = FrameHeader::decode(window, salt) else { return Ok(false) };
    let window = source.window(offset, header.frame_len())?;
    Ok(window.get(FRAME_HEADER_LEN..header.frame_len()).is_some_and(|payload| header.fits(payload)))
}

fn remaining(source: &mut impl Source, offset: u64) -> io::Result<u64> {
    let mut end = offset;
    loop {
        let len = source.window(end, SEARCH_BYTES_MIN)?.len() as u64;
        if len == 0 {
            return Ok(end - offset);
        }
        end += len;
    }
}
