//! Times in requests and responses.

use claude_mem_core::time_arg::When;
pub(super) use claude_mem_core::time_arg::rfc3339;

use super::error::ApiError;

/// Parses a time (`2026-03-01`, `3d`), or seconds or milliseconds since 1970.
pub(super) fn time(name: &str, text: Option<&str>) -> Result<Option<When>, ApiError> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let when = When::from_api(text);
    when.map(Some).map_err(|error| ApiError::bad(format!("`{name}` is not a time: {error}")))
}

/// A time in milliseconds since 1970.
pub(super) fn epoch(at_us: u64) -> u64 {
    at_us / 1000
}
