//! Secrets with structure: JWTs, key blocks, URLs, webhooks.
//!
//! Each check reads a bounded number of bytes before it decides, or consumes what it read, so that
//! a text of nothing but triggers takes linear time.

use memchr::memmem;

use super::{
    Found,
    randomness::{decoded, is_generated, is_sample, looks_random},
    rules::{alphanumeric, base64, hex, percent_encoded, run, starts_word, word},
    values,
};
use crate::byte_search::{memchr, memchr2};

/// How much of a URL is searched for a password.
const URL_BYTES_MAX: usize = 256;

/// `sk-` and at least twenty bytes. CSS class names start like that, too. So a digit is required,
/// and either a long part without a dash or a capital letter.
pub(super) fn secret_key(text: &[u8], at: usize) -> Option<Found> {
    let body = at + 3;
    let first = text.get(body..body + 20)?;
    let plausible = text[at..].starts_with(b"sk-")
        && starts_word(text, at)
        && first.iter().all(|&byte| word(byte))
        && first.iter().any(u8::is_ascii_digit)
        && (first.iter().all(u8::is_ascii_alphanumeric)
            || first.iter().any(u8::is_ascii_uppercase))
        && is_generated(first);
    plausible.then(|| Found { start: at, end: body + run(&text[body..], word), rule: "openai-key" })
}

/// Two or more parts of base64url; the first is the start of a JSON object. A terminal or a mail
/// may have wrapped it.
pub(super) fn jwt(text: &[u8], at: usize) -> Option<Found> {
    const HEADER_BYTES_MIN: usize = 10;
    const PAYLOAD_BYTES_MIN: usize = 4;
    const PARTS_MAX: usize = 5; // of an encrypted one
    let in_a_run = at > 0 && matches!(text[at - 1], b'-' | b'_');
    if in_a_run || !text[at..].starts_with(b"eyJ") || !starts_word(text, at) {
        return None;
    }
    let mut header_end = at + run(&text[at..], word);
    for _ in 0..HEADER_BREAKS_MAX {
        if let Some(next) = wrapped_at(text, at, header_end) {
            header_end = next + run(&text[next..], word);
        }
    }
    let payload = match text.get(header_end..)? {
        [b'.', rest @ ..] => run(rest, word),
        _ => 0,
    };
    if header_end - at < HEADER_BYTES_MIN || payload < PAYLOAD_BYTES_MIN {
        return None;
    }
    let mut end = header_end + 1 + payload;
    for _ in 2..PARTS_MAX {
        end = wrapped_end(text, at, end);
        if text.get(end) == Some(&b'.') {
            end += 1 + run(&text[end + 1..], word);
        }
    }
    Some(Found { start: at, end: wrapped_end(text, at, end), rule: "jwt" })
}

const HEADER_BREAKS_MAX: usize = 2;

/// The end of a token from `start` that goes on in the next lines.
pub(super) fn wrapped_end(text: &[u8], start: usize, mut end: usize) -> usize {
    let mut line = start;
    while let Some(next) = wrapped_at(text, line, end) {
        line = next;
        end = next + run(&text[next..], dotted_base64);
    }
    end
}

/// The start of the next line, if a token goes on there: this line from `start` to `end` is long,
/// and the next one has nothing else.
fn wrapped_at(text: &[u8], start: usize, end: usize) -> Option<usize> {
    const LINE_BYTES_MIN: usize = 40;
    const NEXT_BYTES_MAX: usize = 256;
    const REST_BYTES_MIN: usize = 8;
    let rest = text.get(end..text.len().min(end + NEXT_BYTES_MAX))?;
    let is_long = end - start >= LINE_BYTES_MIN
        && text[start..end].iter().rev().take(LINE_BYTES_MIN).all(|&byte| dotted_base64(byte));
    if !is_long || !matches!(rest, [b'\n', ..] | [b'\r', b'\n', ..]) {
        return None;
    }
    let blanks = run(rest, |byte| b"\r\n \t+".contains(&byte));
    let next = &rest[blanks..];
    let line = &next[..run(next, dotted_base64)];
    let is_whole = matches!(next.get(line.len()), None | Some(b'\n' | b'\r'));
    let goes_on = is_whole
        && line.len() >= REST_BYTES_MIN
        && !line.starts_with(b"eyJ")
        && looks_random(line)
        && !rest[..blanks].ends_with(b"\n\n");
    goes_on.then_some(end + blanks)
}

fn dotted_base64(byte: u8) -> bool {
    base64(byte) || byte == b'.'
}

/// The end of a block of lines, each indented at least as much as the first, which is at `start`.
pub(super) fn block_end(text: &[u8], start: usize, first_end: usize) -> usize {
    let indent = text[..start].iter().rev().take_while(|byte| b" \t".contains(byte)).count();
    let mut end = first_end;
    loop {
        let Some(next) = text[end..].strip_prefix(b"\n") else { return end };
        let blanks = run(&next[..next.len().min(indent)], |byte| b" \t+-".contains(&byte));
        let line = &next[blanks..];
        let line = &line[..run(line, |byte| byte != b'\n')];
        let is_inside = match indent {
            0 => line.len() >= 16 && line.iter().all(|&byte| base64(byte)),
            _ => blanks == indent && !line.trim_ascii().is_empty(),
        };
        if !is_inside {
            return end;
        }
        end += 1 + blanks + line.len();
    }
}

/// A PEM block, from its first dash to its last. If it is truncated, to the end of what looks like
/// a key. The first line without a key does not count.
pub(super) fn private_key(text: &[u8], at: usize) -> Option<Found> {
    const LABEL_BYTES_MAX: usize = 48;
    const BEGIN: &[u8] = b"-----BEGIN ";
    let label = &text[at + BEGIN.len()..];
    let label = &label[..label.len().min(LABEL_BYTES_MAX)];
    let label = &label[..memmem::find(label, b"-----")?];
    let endings: [&[u8]; 3] = [b"PRIVATE KEY", b"PRIVATE KEY BLOCK", b"OpenVPN Static key V1"];
    if !endings.iter().any(|ending| label.ends_with(ending)) {
        return None;
    }
    let body = at + BEGIN.len() + label.len() + 5;
    // The sign of a diff may be one more dash.
    let dashes = memmem::find(&text[body..], b"-----").map(|offset| body + offset);
    let dashes = dashes.map(|at| at + usize::from(text[at..].starts_with(b"------END ")));
    let end = match dashes {
        Some(dashes) if text[dashes..].starts_with(b"-----END ") => {
            holds_key(&text[body..dashes]).then(|| end_line(text, dashes))?
        }
        _ => body + truncated_key(&text[body..dashes.unwrap_or(text.len())])?,
    };
    Some(Found { start: at, end, rule: "private-key" })
}

/// Whether there is a key between the first and the last line, not code that searches for them.
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

/// The length of the key after a first line without a last one: lines of base64, headers of
/// encrypted keys, empty lines. Prefixes such as line numbers are included.
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

/// To the end of the line, which may be written as `\n`.
pub(super) fn line_length(text: &[u8]) -> usize {
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
    let Some(colon) = memchr(b':', authority) else {
        return token_as_user(text, start, &authority[..memchr(b'@', authority)?]);
    };
    let at_sign = match authority.iter().rposition(|byte| *byte == b'@') {
        Some(at_sign) => at_sign,
        // An unescaped slash in the password. But in `host:8080/@name` there is a port and no
        // password.
        None if authority[colon + 1..].iter().all(u8::is_ascii_digit) => return None,
        None => url.iter().rposition(|byte| *byte == b'@')?,
    };
    let password = url.get(colon + 1..at_sign)?;
    if matches!(password, b"x-oauth-basic" | b"") {
        return token_as_user(text, start, &authority[..colon]);
    }
    let is_secret =
        !values::is_placeholder(password) && !values::holds_placeholder(&url[..at_sign]);
    is_secret.then(|| Found {
        start: start + colon + 1,
        end: start + at_sign,
        rule: "url-password",
    })
}

/// A token instead of a user name: `https://ghp_…@github.com`.
fn token_as_user(text: &[u8], start: usize, user: &[u8]) -> Option<Found> {
    const TOKEN_BYTES_MIN: usize = 20;
    let found = Found { start, end: start + user.len(), rule: "url-password" };
    let is_token =
        user.len() >= TOKEN_BYTES_MIN && user.iter().all(|&byte| word(byte)) && is_generated(user);
    super::token_at(text, start).or_else(|| is_token.then_some(found))
}

fn in_url(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
}

/// The secret part of a webhook URL.
pub(super) fn webhook(text: &[u8], at: usize) -> Option<Found> {
    const HOSTS: [(&[u8], &str); 5] = [
        (b"hooks.slack.com/", "slack-webhook"),
        (b"discord.com/api/webhooks/", "discord-webhook"),
        (b"discordapp.com/api/webhooks/", "discord-webhook"),
        (b"hooks.zapier.com/hooks/catch/", "zapier-webhook"),
        (b".webhook.office.com/webhook", "teams-webhook"),
    ];
    let fits = |host: &[u8]| {
        text[at..].get(..host.len()).is_some_and(|given| given.eq_ignore_ascii_case(host))
    };
    let (host, rule) = HOSTS.into_iter().find(|(host, _)| fits(host))?;
    let mut start = at + host.len();
    if matches!(rule, "slack-webhook" | "teams-webhook") {
        start += run(text.get(start..)?, alphanumeric);
        start += usize::from(*text.get(start)? == b'/');
    }
    let path = text.get(start..)?;
    let judged = &path[..run(&path[..path.len().min(64)], in_path)];
    let plausible = judged.len() >= 12
        && !is_sample(judged)
        && judged.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    plausible.then(|| Found { start, end: start + run(path, in_path), rule })
}

fn in_path(byte: u8) -> bool {
    word(byte) || matches!(byte, b'/' | b'@')
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

/// `Bearer` and a token, anywhere, also on the next line; a header is also found by its name.
pub(super) fn bearer(text: &[u8], at: usize) -> Option<Found> {
    const TOKEN_BYTES_MIN: usize = 16;
    let behind = text.get(at + "bearer".len()..)?;
    let blanks = run(&behind[..behind.len().min(16)], |byte| byte.is_ascii_whitespace());
    let start = at + "bearer".len() + blanks;
    if blanks == 0 || !starts_word(text, at) {
        return None;
    }
    if let Some(token) = super::token_at(text, start).or_else(|| jwt(text, start)) {
        return Some(token);
    }
    let rest = &text[start..];
    let first = &rest[..run(&rest[..rest.len().min(TOKEN_BYTES_MIN * 2)], in_bearer)];
    let has = |class: fn(&u8) -> bool| first.iter().any(class);
    let random =
        has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_next_line = behind[..blanks].contains(&b'\n');
    let plausible = first.len() >= TOKEN_BYTES_MIN
        && random
        && (!is_next_line || has(u8::is_ascii_digit) && is_generated(first))
        && !values::is_placeholder(first);
    let end = start + run(rest, in_bearer);
    plausible.then(|| Found { start, end: wrapped_end(text, start, end), rule: "bearer-token" })
}

fn in_bearer(byte: u8) -> bool {
    base64(byte) || matches!(byte, b'.' | b'~' | b':')
}

/// `pat`, 14 letters and digits, a dot and hexadecimal digits.
pub(super) fn airtable(text: &[u8], at: usize) -> Option<Found> {
    const ID_BYTES: usize = 14;
    const SECRET_BYTES_MIN: usize = 24;
    let dot = at + 3 + ID_BYTES;
    let id = text.get(at + 3..dot)?;
    let secret = text.get(dot + 1..)?;
    let length = run(&secret[..secret.len().min(64)], hex);
    let plausible = text[dot] == b'.'
        && length >= SECRET_BYTES_MIN
        && id.iter().all(u8::is_ascii_alphanumeric)
        && starts_word(text, at);
    plausible.then(|| Found { start: at, end: dot + 1 + length, rule: "airtable-token" })
}

/// `s.` and 24 letters and digits: tokens of Vault before version 1.10.
pub(super) fn vault_token(text: &[u8], at: usize) -> Option<Found> {
    const BODY_BYTES: usize = 24;
    let (start, body) = (at + 1, at + 3);
    let rest = text.get(body..)?;
    let length = run(&rest[..rest.len().min(BODY_BYTES + 1)], alphanumeric);
    let plausible = text[start] == b's' && length == BODY_BYTES && is_generated(&rest[..length]);
    plausible.then(|| Found { start, end: body + length, rule: "vault-token" })
}

/// 32 hexadecimal digits before the data center: `…-us12`.
pub(super) fn mailchimp(text: &[u8], at: usize) -> Option<Found> {
    const KEY_BYTES: usize = 32;
    let start = at.checked_sub(KEY_BYTES)?;
    let digits = run(&text[at + 3..text.len().min(at + 6)], |byte| byte.is_ascii_digit());
    let key = &text[start..at];
    let plausible = digits > 0
        && key.iter().all(u8::is_ascii_hexdigit)
        && starts_word(text, start)
        && is_generated(key);
    plausible.then(|| Found { start, end: at + 3 + digits, rule: "mailchimp-key" })
}

/// A base64-encoded PEM block with a private key, as in Kubernetes and CI systems.
pub(super) fn base64_pem(text: &[u8], at: usize) -> Option<Found> {
    let mut room = [0; 48];
    let plain = decoded(&text[at..text.len().min(at + 64)], &mut room);
    let plausible = memmem::find(plain, b"PRIVATE").is_some() && starts_word(text, at);
    plausible.then(|| Found { start: at, end: at + run(&text[at..], base64), rule: "private-key" })
}

/// A PuTTY key file, whose private lines follow the public ones.
pub(super) fn putty_key(text: &[u8], at: usize) -> Option<Found> {
    const FILE_BYTES_MAX: usize = 2 << 10;
    const LINES: &[u8] = b"Private-Lines:";
    const MAC: &[u8] = b"Private-MAC:";
    const LINE_BYTES_MAX: usize = 128;
    let file = &text[at..text.len().min(at + FILE_BYTES_MAX)];
    let lines = at + memmem::find(file, LINES)? + LINES.len();
    let line_length = |at: usize| line_length(&text[at..text.len().min(at + LINE_BYTES_MAX)]);
    let start = lines + line_length(lines);
    let mut end = start;
    while end < text.len() {
        let next = end + newline_length(&text[end..]);
        let length = line_length(next);
        let line = text[next..next + length].trim_ascii();
        let line = line.strip_prefix(b"+").unwrap_or(line); // a diff
        let is_key = !line.is_empty() && line.iter().all(|&byte| base64(byte));
        if !is_key && !line.starts_with(MAC) || length == LINE_BYTES_MAX {
            break;
        }
        end = next + length;
    }
    (end > start).then_some(Found { start, end, rule: "private-key" })
}

/// A password hash of `crypt` and its successors: `$6$salt$hash`, `{SSHA}…`.
pub(super) fn crypt_hash(text: &[u8], at: usize) -> Option<Found> {
    const HASH_BYTES_MIN: usize = 20;
    let rest = &text[at..];
    let in_hash = |byte: u8| alphanumeric(byte) || b"$./+={},-_".contains(&byte);
    let judged = &rest[..run(&rest[..rest.len().min(128)], in_hash)];
    let last = judged.rsplit(|byte| matches!(byte, b'$' | b'}')).next()?;
    let parts = judged.iter().filter(|byte| matches!(byte, b'$' | b'}')).count();
    let plausible = parts >= 2 - usize::from(rest[0] == b'{')
        && last.len() >= HASH_BYTES_MIN
        && is_generated(last);
    plausible.then(|| Found { start: at, end: at + run(rest, in_hash), rule: "password-hash" })
}

/// The signature in a presigned URL.
pub(super) fn signature(text: &[u8], at: usize) -> Option<Found> {
    let start = at + 1 + memchr(b'=', &text[at..text.len().min(at + 16)])?;
    let rest = &text[start..];
    let judged = &rest[..run(&rest[..rest.len().min(64)], percent_encoded)];
    let plausible = judged.len() >= 20 && is_generated(judged);
    plausible.then(|| Found { start, end: start + run(rest, percent_encoded), rule: "signature" })
}

/// A key in the query of a URL.
pub(super) fn query_key(text: &[u8], at: usize) -> Option<Found> {
    let start = at + 1 + memchr(b'=', &text[at..text.len().min(at + 16)])?;
    if let Some(token) = super::token_at(text, start) {
        return Some(token);
    }
    let rest = &text[start..];
    let judged = &rest[..run(&rest[..rest.len().min(64)], percent_encoded)];
    let plausible = judged.len() >= 20 && is_generated(judged);
    plausible.then(|| Found { start, end: start + run(rest, percent_encoded), rule: "api-key" })
}

/// An AWS access key followed by its secret key, as in the CSV file of the console.
pub(super) fn aws_pair(text: &[u8], at: usize) -> Option<Found> {
    const ID_BYTES: usize = 20;
    const SECRET_BYTES: usize = 40;
    let id = text.get(at..at + ID_BYTES)?;
    let rest = text.get(at + ID_BYTES..)?;
    let between = run(&rest[..rest.len().min(8)], |byte| b" \t,;:|\"'\n/".contains(&byte));
    let secret = rest.get(between..between + SECRET_BYTES)?;
    let plausible = between > 0
        && starts_word(text, at)
        && id.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && secret.iter().all(|&byte| base64(byte))
        && rest.get(between + SECRET_BYTES).is_none_or(|&byte| !base64(byte))
        && is_generated(secret);
    let end = at + ID_BYTES + between + SECRET_BYTES;
    plausible.then_some(Found { start: at, end, rule: "aws-access-key" })
}

/// A share of the key of a Vault: `Unseal Key 1: …`.
pub(super) fn unseal_key(text: &[u8], at: usize) -> Option<Found> {
    const KEY_BYTES_MIN: usize = 40;
    let behind = at + "unseal key".len();
    let number = &text[behind..text.len().min(behind + 8)];
    let start = behind + run(number, |byte| byte.is_ascii_digit() || b" :=".contains(&byte));
    let key = &text[start..text.len().min(start + 64)];
    let key = &key[..run(key, base64)];
    let plausible = start > behind && key.len() >= KEY_BYTES_MIN && is_generated(key);
    plausible.then(|| Found { start, end: start + run(&text[start..], base64), rule: "vault-key" })
}

/// The private part of a JSON Web Key: the member `d` next to `kty`.
pub(super) fn jwk(text: &[u8], at: usize) -> Option<Found> {
    const KEY_BYTES_MAX: usize = 1024;
    let behind = at + 2 + memchr(b'"', text.get(at + 1..text.len().min(at + 4))?)?;
    let skipped = run(&text[behind..text.len().min(behind + 8)], |byte| b": \"\\".contains(&byte));
    let start = behind + skipped;
    let judged = &text[start..text.len().min(start + 64)];
    let judged = &judged[..run(judged, word)];
    let around = &text[at.saturating_sub(KEY_BYTES_MAX)..text.len().min(at + KEY_BYTES_MAX)];
    let plausible =
        judged.len() >= 40 && is_generated(judged) && memmem::find(around, b"kty").is_some();
    let end = start + run(&text[start..], word);
    plausible.then_some(Found { start, end, rule: "private-key" })
}
