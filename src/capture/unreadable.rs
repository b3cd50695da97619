//! Payloads that cannot be parsed: kept as redacted text.

use claude_mem_events::InputUnreadable;
use claude_mem_privacy::{Policy, redact_bytes, redact_text};

use crate::{input::Input, payload::Malformed};

/// A payload as redacted text. The last word of a truncated one is dropped: it may be the first
/// half of a secret, which no rule would recognize.
pub(crate) fn unreadable(
    hook: &str,
    malformed: &Malformed,
    input: &Input,
    policy: Policy,
) -> InputUnreadable {
    let is_cut = malformed.is_truncated || input.cut.is_some();
    let bytes = if is_cut { without_last_word(&input.bytes) } else { &input.bytes };
    let error = match input.cut {
        Some(cut) => format!("{} ({cut})", malformed.error),
        None => malformed.error.clone(),
    };
    InputUnreadable {
        hook: hook.into(),
        error: redact_text(&error, policy).text,
        text: redact_bytes(bytes, policy),
        bytes: input.len,
    }
}

/// The bytes up to the last one that cannot be part of a key or a password.
fn without_last_word(bytes: &[u8]) -> &[u8] {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+/=.-%~".contains(byte);
    let end = bytes.iter().rposition(|byte| !is_word(byte)).map_or(0, |at| at + 1);
    &bytes[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_secret_at_the_end_is_left_out() {
        let cases = [("{\"key\":\"sk-ant-ab", "{\"key\":\""), ("a b ", "a b "), ("word", "")];
        for (text, expected) in cases {
            assert_eq!(without_last_word(text.as_bytes()), expected.as_bytes());
        }
    }
}
