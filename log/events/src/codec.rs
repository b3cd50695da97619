//! Encodes events with bincode. No other file uses bincode.
//!
//! bincode is complete but no longer maintained, so it is pinned to 1.3.3, and every frame names
//! its codec. Another codec can be added without changing existing logs. The log verifies the
//! checksum before anything is decoded, and lengths are bounded by the available bytes.

use crate::DecodeError;
use bincode::Options as _;
use claude_mem_log::{Error, format::PAYLOAD_BYTES_MAX};
use serde::{Serialize, de::DeserializeOwned};
use std::io;

/// The codec byte of [`write`]: bincode 1.3.3, variable-length integers, little-endian.
pub(crate) const CODEC: u8 = 1;

fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_limit(PAYLOAD_BYTES_MAX as u64).allow_trailing_bytes()
}

/// Appends `value` to `out`, the payload of one record. Fails without a change if the payload would
/// be too large for a record.
pub(crate) fn write(value: &impl Serialize, out: &mut Vec<u8>) -> Result<(), Error> {
    let failed = |error: bincode::Error| Error::Io {
        action: "encode",
        path: "an event".into(),
        source: io::Error::other(error.to_string()),
    };
    let bytes = options().with_no_limit().serialized_size(value).map_err(failed)?;
    let len = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(out.len());
    if len > PAYLOAD_BYTES_MAX {
        return Err(Error::TooLarge { len, max: PAYLOAD_BYTES_MAX });
    }
    out.reserve_exact(len - out.len());
    options().serialize_into(out, value).map_err(failed)
}

/// Decodes a value that takes up all of `bytes`.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    match read_prefix(bytes)? {
        (value, []) => Ok(value),
        (_, rest) => Err(DecodeError::Malformed(format!("{} bytes too many", rest.len()))),
    }
}

/// Decodes a value and returns the rest.
pub(crate) fn read_prefix<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), DecodeError> {
    let mut rest = bytes;
    let value = options()
        .deserialize_from(&mut rest)
        .map_err(|error| DecodeError::Malformed(error.to_string()))?;
    Ok((value, rest))
}
