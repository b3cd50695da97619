//! Small files next to the segments: `log.id`, `synced`, `suspect`.

use super::{FORMAT, u32_at, u64_at};
use crate::Id;

/// How far the log is known to be on disk, as stored in `synced`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncMark {
    /// Number of the segment; all before it are on disk.
    pub segment: u64,
    /// Number of its bytes on disk.
    pub bytes: u64,
}

impl SyncMark {
    /// Length of the file.
    pub const LEN: usize = 20;

    /// Encodes the file.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0..8].copy_from_slice(&self.segment.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..16]);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes the file; `None` if it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::LEN)?;
        (crc32fast::hash(&bytes[..16]) == u32_at(bytes, 16))
            .then(|| Self { segment: u64_at(bytes, 0), bytes: u64_at(bytes, 8) })
    }
}

/// The text of `log.id`.
pub fn encode_log_id(log_id: [u8; 16]) -> String {
    let digits: String = log_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("claude-mem log {FORMAT} {digits} {:08x}\n", crc32fast::hash(&log_id))
}

/// Decodes `log.id`; `None` if it is damaged.
pub fn decode_log_id(text: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.strip_prefix("claude-mem log ")?.split_whitespace().skip(1);
    let log_id = *Id::parse(words.next()?)?.as_bytes();
    let crc = u32::from_str_radix(words.next()?, 16).ok()?;
    (crc == crc32fast::hash(&log_id)).then_some(log_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG_ID: [u8; 16] = *b"sixteen bytes ok";

    #[test]
    fn a_log_id_reads_back_and_a_damaged_one_does_not() {
        let text = encode_log_id(LOG_ID);
        assert_eq!(decode_log_id(text.as_bytes()), Some(LOG_ID));
        assert_eq!(decode_log_id(text.replace('7', "8").as_bytes()), None);
    }
}
