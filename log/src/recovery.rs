//! The reading rules of [`format`](crate::format): what the bytes of one segment hold.

use crate::format::{FRAME_HEADER_LEN, FRAME_MAGIC, FrameHeader, GapReason};
use memchr::memmem;
use std::{io, ops::Range};

/// Bytes that can be looked at anywhere.
pub trait Source {
    /// The bytes from `offset` on: at least `len` of them, fewer only if the source ends before.
    fn window(&mut self, offset: u64, len: usize) -> io::Result<&[u8]>;
}

impl Source for &[u8] {
    fn window(&mut self, offset: u64, _len: usize) -> io::Result<&[u8]> {
        Ok(self.get(offset as usize..).unwrap_or_default())
    }
}

/// What is found at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanResult {
    /// A whole frame, checksums verified.
    Frame(FrameHeader),
    /// Bytes that are no record, up to where reading goes on.
    Gap {
        /// Which bytes.
        range: Range<u64>,
        /// Why.
        reason: GapReason,
        /// The head of the frame, if that much is whole.
        header: Option<FrameHeader>,
    },
    /// Bytes that are no record (yet), up to the end.
    Tail {
        /// How many.
        len: u64,
        /// The head of the frame, if that much is whole.
        header: Option<FrameHeader>,
    },
    /// Nothing more.
    End,
}

impl ScanResult {
    /// Where reading goes on behind what was found at `offset`; `None` at the end.
    pub fn end(&self, offset: u64) -> Option<u64> {
        match self {
            Self::Frame(header) => Some(offset + header.frame_len() as u64),
            Self::Gap { range, .. } => Some(range.end),
            Self::Tail { .. } | Self::End => None,
        }
    }

    /// What this is in a segment that nobody appends to any more: rule 4 then has nothing to wait for.
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

/// Every frame is at least as long as its head, so no acknowledged record was ever in fewer bytes.
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

/// Rule 2: the head is whole, the payload is not.
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
    // A frame right behind it means that all bytes of this one arrived, and then changed.
    let is_torn = next < end && !is_whole(source, end, salt)?;
    let reason = if is_torn { GapReason::TornWrite } else { GapReason::DamagedPayload };
    Ok(ScanResult::Gap { range: offset..next.min(end), reason, header: Some(header) })
}

/// Rules 3 and 4: no head here; what comes next that is whole?
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

/// The least that is worth looking at in one go. A source gives all it holds, which is usually much more;
/// asking for more would make it read the same bytes again behind each false start.
const SEARCH_BYTES_MIN: usize = 4 << 10;

/// The first whole frame that begins at `offset` or behind it.
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
