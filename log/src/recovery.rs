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
pub enum Found {
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

/// Applies the reading rules at `offset`.
pub fn scan(source: &mut impl Source, offset: u64, salt: u32) -> io::Result<Found> {
    let window = source.window(offset, FRAME_HEADER_LEN)?;
    if window.is_empty() {
        return Ok(Found::End);
    }
    let Some(header) = FrameHeader::decode(window, salt) else {
        return resynchronise(source, offset, salt);
    };
    let window = source.window(offset, header.frame_len())?;
    match window.get(FRAME_HEADER_LEN..header.frame_len()) {
        Some(payload) if header.fits(payload) => Ok(Found::Frame(header)),
        whole => {
            let is_complete = whole.is_some();
            damaged_payload(source, offset, salt, header, is_complete)
        }
    }
}

/// Rule 2: the head is whole, the payload is not.
fn damaged_payload(
    source: &mut impl Source,
    offset: u64,
    salt: u32,
    header: FrameHeader,
    is_complete: bool,
) -> io::Result<Found> {
    let end = offset + header.frame_len() as u64;
    // A frame may begin at the very end of the damaged one, so its magic may lie beyond it.
    if let Some(next) = find_frame(source, offset + 1..end + 1, salt)? {
        // A frame right behind it means that all bytes of this one arrived, and then changed.
        let reason = if next == end { GapReason::DamagedPayload } else { GapReason::TornWrite };
        return Ok(Found::Gap { range: offset..next, reason, header: Some(header) });
    }
    if is_complete {
        let reason = GapReason::DamagedPayload;
        return Ok(Found::Gap { range: offset..end, reason, header: Some(header) });
    }
    Ok(Found::Tail { len: remaining(source, offset)?, header: Some(header) })
}

/// Rules 3 and 4: no head here; what comes next that is whole?
fn resynchronise(source: &mut impl Source, offset: u64, salt: u32) -> io::Result<Found> {
    Ok(match find_frame(source, offset + 1..u64::MAX, salt)? {
        Some(next) => {
            Found::Gap { range: offset..next, reason: GapReason::DamagedFrames, header: None }
        }
        None => Found::Tail { len: remaining(source, offset)?, header: None },
    })
}

/// How much is looked at in one go when searching: well above most frames.
const SEARCH_BYTES: usize = 256 << 10;

/// The first whole frame that begins in `range`.
fn find_frame(source: &mut impl Source, range: Range<u64>, salt: u32) -> io::Result<Option<u64>> {
    let mut offset = range.start;
    while offset < range.end {
        let window = source.window(offset, SEARCH_BYTES)?;
        if window.len() < FRAME_HEADER_LEN {
            return Ok(None);
        }
        let Some(found) = memmem::find(window, &FRAME_MAGIC) else {
            // The magic may straddle the end of this window.
            offset += (window.len() - (FRAME_MAGIC.len() - 1)) as u64;
            continue;
        };
        offset += found as u64;
        if offset < range.end && is_whole(source, offset, salt)? {
            return Ok(Some(offset));
        }
        offset += 1;
    }
    Ok(None)
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
        let len = source.window(end, SEARCH_BYTES)?.len() as u64;
        if len == 0 {
            return Ok(end - offset);
        }
        end += len;
    }
}
