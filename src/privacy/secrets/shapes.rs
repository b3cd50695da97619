//! Secrets that are more than a prefix and a run of letters: JWTs, key blocks, URLs, webhooks.
//!
//! Each check looks at a bounded number of bytes before it decides, or consumes what it looked at, so
//! that a text of nothing but triggers is still read in linear time.

use memchr::memmem;

use super::{
    Found,
    rules::{alphanumeric, base64, is_filler, run, starts_word, word},
    values,
};
use crate::privacy::find::{memchr, memchr2};

/// How much of a URL is searched for a password.
const URL_BYTES_MAX: usize = 256;

/// `sk-` and at least twenty bytes. Names of style classes begin like that too, hence the digit, and
/// either no dash for a while or a capital letter.
pub(super) fn secret_key(text: &[u8], at: usize) -> Option<Found> {
    let body = at + 3;
    let first = text.get(body..body + 20)?;
    let plausible = text[at..].starts_with(b"sk-")
        && starts_word(text, at)
        && first.iter().all(|&byte| word(byte))
        && first.iter().any(u8::is_ascii_digit)
        && (first.iter().all(u8::is_ascii_alphanumeric)
            || first.iter().any(u8::is_ascii_uppercase));
    plausible.then(|| Found { start: at, end: body + run(&text[body..], word), rule: "openai-key" })
}

/// Two or more parts of base64url, the first of which is the beginning of a JSON object.
pub(super) fn jwt(text: &[u8], at: usize) -> Option<Found> {
    const HEADER_BYTES_MIN: usize = 10;
    const PAYLOAD_BYTES_MIN: usize = 4;
    const PARTS_MAX: usize = 5; // of an encrypted one
    let in_a_run = at > 0 && matches!(text[at - 1], b'-' | b'_');
    if in_a_run || !text[at..].starts_with(b"eyJ") || !starts_word(text, at) {
        return None;
    }
    let header = run(&text[at..], word);
    let payload = match text.get(at + header..)? {
        [b'.', rest @ ..] => run(rest, word),
        _ => 0,
    };
    if header < HEADER_BYTES_MIN || payload < PAYLOAD_BYTES_MIN {
        return None;
    }
    let mut end = at + header + 1 + payload;
    for _ in 2..PARTS_MAX {
        if text.get(end) == Some(&b'.') {
            end += 1 + run(&text[end + 1..], word);
        }
    }
    Some(Found { start: at, end, rule: "jwt" })
}

/// A PEM block, from its first dash to its last; to the end of what looks like a key when the block was
/// cut short. A mere mention of the first line is none.
pub(super) fn private_key(text: &[u8], at: usize) -> Option<Found> {
    const LABEL_BYTES_MAX: usize = 48;
    const BEGIN: &[u8] = b"-----BEGIN ";
    let label = &text[at + BEGIN.len()..];
    let label = &label[..label.len().min(LABEL_BYTES_MAX)];
    let label = &label[..memmem::find(label, b"-----")?];
    if !label.ends_with(b"PRIVATE KEY") && !label.ends_with(b"PRIVATE KEY BLOCK") {
        return None;
    }
    let body = at + BEGIN.len() + label.len() + 5;
    let dashes = memmem::find(&text[body..], b"-----").map(|offset| body + offset);
    let end = match dashes {
        Some(dashes) if text[dashes..].starts_with(b"-----END ") => {
            holds_key(&text[body..dashes]).then(|| end_line(text, dashes))?
        }
        _ => body + truncated_key(&text[body..dashes.unwrap_or(text.len())])?,
    };
    Some(Found { start: at, end, rule: "private-key" })
}

/// Whether there is a key between the first and the last line, rather than the code that looks for them.
fn holds_key(inside: &[u8]) -> bool {
    const RUN_BYTES_MIN: usize = 24;
    const KEY_BYTES_MIN: usize = 8;
    let only_key = inside.iter().all(|&byte| {
        base64(byte) || byte.is_ascii_whitespace() || matches!(byte, b'\\' | b':' | b',')
    });
    only_key && inside.len() >= KEY_BYTES_MIN || longest_run(inside) >= RUN_BYTES_MIN
}

fn longest_run(bytes: &[u8]) -> usize {
    bytes.split(|&byte| !base64(byte)).map(<[u8]>::len).max().unwrap_or(0)
}

fn end_line(text: &[u8], dashes: usize) -> usize {
    const LINE_BYTES_MAX: usize = 64;
    let label = dashes + "-----END ".len();
    let rest = &text[label..text.len().min(label + LINE_BYTES_MAX)];
    memmem::find(rest, b"-----").map_or(label, |offset| label + offset + 5)
}

/// How many bytes behind a first line without a last one are a key: lines of base64, with the headers
/// an encrypted key has and blank lines between. What stands before the base64 on a line, such as a
/// line number, goes with it.
fn truncated_key(text: &[u8]) -> Option<usize> {
    const LINE_BYTES_MIN: usize = 16;
    const RUN_BYTES_MIN: usize = 32;
    let (mut at, mut key) = (0, None);
    while at < text.len() {
        let end = at + line_length(&text[at..]);
        let line = text[at..end].trim_ascii();
        let all_base64 = line.iter().all(|&byte| base64(byte));
        let goes_on = key.is_some() || line.len() >= LINE_BYTES_MIN || end == text.len();
        let header = memmem::find(line, b": ").is_some() && line.len() < 80;
        if !line.is_empty() && all_base64 && goes_on || longest_run(line) >= RUN_BYTES_MIN {
            key = Some(end);
        } else if !line.is_empty() && !header {
            break;
        }
        at = end + newline_length(&text[end..]);
    }
    key
}

/// To the end of the line, which may also be written as `\n`.
fn line_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(offset) = memchr2(b'\n', b'\\', &text[at..]) {
        at += offset;
        if matches!(text[at..], [b'\n', ..] | [b'\\', b'n' | b'r', ..]) {
            return at;
        }
        at += 1;
    }
    text.len()
}

fn newline_length(text: &[u8]) -> usize {
    match text {
        [b'\n', ..] => 1,
        [] => 0,
        _ => 2,
    }
}

/// The password in `scheme://user:password@host`.
pub(super) fn url_password(text: &[u8], at: usize) -> Option<Found> {
    if at == 0 || !text[at - 1].is_ascii_alphanumeric() {
        return None;
    }
    let start = at + 3;
    let rest = &text[start..text.len().min(start + URL_BYTES_MAX)];
    memchr(b'@', rest)?;
    let url = &rest[..run(rest, in_url)];
    let authority = &url[..run(url, |byte| !matches!(byte, b'/' | b'?' | b'#'))];
    let colon = memchr(b':', authority)?;
    let at_sign = match authority.iter().rposition(|byte| *byte == b'@') {
        Some(at_sign) => at_sign,
        // An unescaped slash in the password; but in `host:8080/@name` there is a port, and no password.
        None if authority[colon + 1..].iter().all(u8::is_ascii_digit) => return None,
        None => url.iter().rposition(|byte| *byte == b'@')?,
    };
    let password = url.get(colon + 1..at_sign)?;
    let hide = !password.is_empty()
        && !values::is_placeholder(password)
        && !values::holds_placeholder(&url[..at_sign]);
    hide.then(|| Found { start: start + colon + 1, end: start + at_sign, rule: "url-password" })
}

fn in_url(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
}

/// The part of a webhook's address that lets one post to it.
pub(super) fn webhook(text: &[u8], at: usize) -> Option<Found> {
    const SLACK: &[u8] = b"hooks.slack.com/";
    let (start, rule) = if text[at..at + SLACK.len()].eq_ignore_ascii_case(SLACK) {
        let kind = at + SLACK.len();
        let slash = kind + run(&text[kind..], alphanumeric);
        (text.get(slash) == Some(&b'/')).then_some((slash + 1, "slack-webhook"))?
    } else {
        (at + "discord.com/api/webhooks/".len(), "discord-webhook")
    };
    let path = text.get(start..)?;
    let first = &path[..path.len().min(16)];
    let plausible = first.len() >= 12
        && first.iter().all(|&byte| in_path(byte))
        && first.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    plausible.then(|| Found { start, end: start + run(path, in_path), rule })
}

fn in_path(byte: u8) -> bool {
    word(byte) || byte == b'/'
}

/// `123456789:AA…`, with the number before the trigger.
pub(super) fn telegram_bot(text: &[u8], at: usize) -> Option<Found> {
    const BODY_BYTES: usize = 35;
    let digits = text[..at].iter().rev().take(12).take_while(|byte| byte.is_ascii_digit()).count();
    let body = text.get(at + 1..at + 1 + BODY_BYTES)?;
    let plausible = (8..=10).contains(&digits) && body.iter().all(|&byte| word(byte));
    plausible.then(|| Found {
        start: at - digits,
        end: at + 1 + BODY_BYTES,
        rule: "telegram-token",
    })
}

/// `Bearer` and a token, wherever it stands; a header is found by its name as well.
pub(super) fn bearer(text: &[u8], at: usize) -> Option<Found> {
    const TOKEN_BYTES_MIN: usize = 16;
    let start = at + "bearer ".len();
    if let Some(token) = super::token_at(text, start).or_else(|| jwt(text, start)) {
        return Some(token);
    }
    let rest = text.get(start..)?;
    let first = &rest[..run(&rest[..rest.len().min(TOKEN_BYTES_MIN * 2)], in_bearer)];
    let has = |class: fn(&u8) -> bool| first.iter().any(class);
    let random =
        has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let long = first.len() >= TOKEN_BYTES_MIN;
    let plausible = starts_word(text, at) && long && random && !is_filler(first);
    plausible.then(|| Found {
        start,
        end: start + run(&text[start..], in_bearer),
        rule: "bearer-token",
    })
}

fn in_bearer(byte: u8) -> bool {
    base64(byte) || matches!(byte, b'.' | b'~')
}
