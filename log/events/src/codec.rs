//! How events become bytes: the only file that names bincode.
//!
//! bincode is complete but no longer maintained, so it is pinned to 1.3.3 and every frame says which codec
//! wrote it. Another one can be added beside it without touching what is on users' disks. The log checks
//! the checksum before anything is decoded, and lengths are bounded by the bytes that are there.

use crate::DecodeError;
use bincode::Options as _;
use claude_mem_log::format::PAYLOAD_BYTES_MAX;
use serde::{Serialize, de::DeserializeOwned};

/// The codec byte of what [`write`] makes: bincode 1.3.3, variable-length integers, little-endian.
pub(crate) const CODEC: u8 = 1;

fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_limit(PAYLOAD_BYTES_MAX as u64).allow_trailing_bytes()
}

/// Adds `value` to `out`.
pub(crate) fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    out.reserve_exact(options().serialized_size(value).map_or(0, |size| size as usize));
    options().serialize_into(out, value).expect("events hold nothing that cannot be encoded");
}

/// Reads a value that takes up all of `bytes`.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    match read_prefix(bytes)? {
        (value, []) => Ok(value),
        (_, rest) => Err(DecodeError::Malformed(format!("{} bytes too many", rest.len()))),
    }
}

/// Reads a value, and gives back what follows it.
pub(crate) fn read_prefix<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), DecodeError> {
    let mut rest = bytes;
    let value = options()
        .deserialize_from(&mut rest)
        .map_err(|error| DecodeError::Malformed(error.to_string()))?;
    Ok((value, rest))
}
