//! Properties that must hold for any bytes. Used by the fuzz targets and by the tests of the log.

use claude_mem_log::{
    format::{
        FRAME_HEADER_LEN, FrameHeader, GapReason, Seal, SegmentHeader, SyncMark, decode_log_id,
    },
    scan::{self, ScanResult, Source},
};
use std::io;

/// Scans `data` (a salt, then a segment without its header) to the end. Each step must match a slow
/// implementation of the rules, both with all bytes available and with only the requested ones.
pub fn scan(data: &[u8]) {
    let Some((salt, bytes)) = data.split_first_chunk::<4>() else { return };
    let salt = u32::from_le_bytes(*salt);
    let mut offset = 0;
    loop {
        let found = scan::scan(&mut &*bytes, offset, salt).expect("memory does not fail");
        assert_eq!(found, slow(bytes, offset as usize, salt), "at {offset}");
        let narrow = scan::scan(&mut Narrow(bytes), offset, salt).expect("memory does not fail");
        assert_eq!(found, narrow, "at {offset}");
        match found.when_closed(offset).end(offset) {
            Some(next) => {
                assert!(next > offset && next <= bytes.len() as u64, "from {offset} to {next}");
                offset = next;
            }
            None => return assert_eq!(offset, bytes.len() as u64),
        }
    }
}

/// A source that returns only the requested bytes.
struct Narrow<'a>(&'a [u8]);

impl Source for Narrow<'_> {
    fn window(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        Ok(&rest[..rest.len().min(len)])
    }
}

/// The reading rules, applied byte by byte.
fn slow(bytes: &[u8], offset: usize, salt: u32) -> ScanResult {
    let Some(header) = bytes.get(offset..).filter(|rest| !rest.is_empty()) else {
        return ScanResult::End;
    };
    let header = FrameHeader::decode(header, salt);
    if let Some(header) = header.filter(|_| is_whole(bytes, offset, salt)) {
        return ScanResult::Frame(header);
    }
    let next = (offset + 1..bytes.len()).find(|at| is_whole(bytes, *at, salt));
    let Some(next) = next else {
        return ScanResult::Tail { len: (bytes.len() - offset) as u64, header };
    };
    let (end, reason) = match header {
        Some(header) => {
            let end = offset + header.frame_len();
            match next < end && !is_whole(bytes, end, salt) {
                true => (next, GapReason::TornWrite),
                false => (next.min(end), GapReason::DamagedPayload),
            }
        }
        None if next - offset < FRAME_HEADER_LEN => (next, GapReason::TornWrite),
        None => (next, GapReason::DamagedFrames),
    };
    ScanResult::Gap { range: offset as u64..end as u64, reason, header }
}

fn is_whole(bytes: &[u8], offset: usize, salt: u32) -> bool {
    let rest = bytes.get(offset..).unwrap_or_default();
    FrameHeader::decode(rest, salt).is_some_and(|header| {
        rest.get(FRAME_HEADER_LEN..header.frame_len()).is_some_and(|payload| header.fits(payload))
    })
}

/// A decoded seal is encoded as the same bytes, except for those that are always zero.
pub fn seal(data: &[u8]) {
    let Some(seal) = Seal::decode(data) else { return };
    let frame = seal.encode_frame(claude_mem_log::Id::new(0, 0), 0);
    assert_eq!(Seal::decode(&frame[FRAME_HEADER_LEN..]), Some(seal));
    assert_eq!(frame.len() - FRAME_HEADER_LEN, data.len());
}

/// The small files and the header of a segment.
pub fn marks(data: &[u8]) {
    if let Some(synced) = SyncMark::decode(data) {
        assert_eq!(synced.encode(), data[..SyncMark::LEN]);
    }
    if let Some(header) = SegmentHeader::decode(data) {
        assert_eq!(SegmentHeader::decode(&header.encode()), Some(header));
    }
    if let Some(log_id) = decode_log_id(data) {
        let text = claude_mem_log::format::encode_log_id(log_id);
        assert_eq!(decode_log_id(text.as_bytes()), Some(log_id));
    }
}
