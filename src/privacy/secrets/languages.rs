//! Passwords named in other languages, in SQL, in PowerShell and in calls of libraries.

use super::{Found, names::Kind, punctuation::quote_at, rules::run, values::is_spoken_secret};

/// How much is read after the word.
const SIGN_BYTES_MAX: usize = 24;

/// The value after `Passwort:`, `contraseña =`, `密码：` or `Kennwort ist`.
pub(super) fn spoken_password(text: &[u8], at: usize) -> Option<Found> {
    let end = at + word_length(&text[at..]);
    let glued = text[..at].last().is_some_and(u8::is_ascii_lowercase);
    let behind = text.get(end..text.len().min(end + SIGN_BYTES_MAX))?;
    let start = end + sign_length(behind)?;
    if glued && text[at].is_ascii_lowercase() {
        return None;
    }
    secret_at(text, start)
}

/// The password in `CREATE USER app IDENTIFIED BY '…'`.
pub(super) fn identified_by(text: &[u8], at: usize) -> Option<Found> {
    let is_sql =
        text[at].is_ascii_uppercase() || text.get(at + "identified by ".len()) == Some(&b'\'');
    if is_sql { quoted_behind(text, at + "identified by".len()) } else { None }
}

/// The password in `IDENTIFIED WITH mysql_native_password BY '…'`.
pub(super) fn identified_with(text: &[u8], at: usize) -> Option<Found> {
    const PLUGIN_BYTES_MAX: usize = 64;
    const BY: &[u8] = b" by";
    let start = at + "identified with".len();
    let plugin = text.get(start..text.len().min(start + PLUGIN_BYTES_MAX))?;
    let by = plugin.windows(BY.len()).position(|part| part.eq_ignore_ascii_case(BY))?;
    quoted_behind(text, start + by + BY.len())
}

/// The password in `ConvertTo-SecureString "…" -AsPlainText`.
pub(super) fn secure_string(text: &[u8], at: usize) -> Option<Found> {
    let mut start = at + "convertto-securestring".len();
    if text[start..].starts_with(b" -String") {
        start += " -String".len();
    }
    quoted_behind(text, start)
}

/// The password in `HTTPBasicAuth("me", "…")`: the second string.
pub(super) fn login_call(text: &[u8], at: usize) -> Option<Found> {
    const USER_BYTES_MAX: usize = 64;
    let open = at + memchr::memchr(b'(', &text[at..text.len().min(at + 32)])? + 1;
    let (quote, backslashes) = quote_at(&text[open..])?;
    let user = open + backslashes + 1;
    let inside = &text[user..text.len().min(user + USER_BYTES_MAX)];
    let behind = user + memchr::memchr(quote, inside)? + 1;
    let rest = text[behind..].strip_prefix(b",")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"Some(").unwrap_or(rest);
    let found = quoted_behind(text, text.len() - rest.len())?;
    text[found.start..found.end].iter().any(u8::is_ascii_digit).then_some(found)
}

/// The key in `jwt.sign(payload, "…")`: the second argument.
pub(super) fn signing_call(text: &[u8], at: usize) -> Option<Found> {
    const CALL_BYTES_MAX: usize = 96;
    let call = &text[at..text.len().min(at + CALL_BYTES_MAX)];
    let open = memchr::memchr(b'(', call)? + 1;
    let has_payload =
        call.get(open).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'{');
    let comma = memchr::memchr(b',', &call[..run(call, |byte| byte != b'\n')])?;
    if !has_payload {
        return None;
    }
    quoted_behind(text, at + comma + 1)
}

fn quoted_behind(text: &[u8], start: usize) -> Option<Found> {
    let start = start + run(&text[start..text.len().min(start + 8)], |byte| byte == b' ');
    let start = start + run(&text[start..text.len().min(start + 8)], |byte| byte == b'\\');
    let is_quoted = matches!(text.get(start), Some(b'\'' | b'"'));
    if is_quoted { secret_at(text, start) } else { None }
}

/// The word consists of letters of any language and the characters of names: `db_passwort_neu`.
fn word_length(rest: &[u8]) -> usize {
    const MOT_DE_PASSE: &[u8] = b"mot de passe";
    let spaced = rest.get(..MOT_DE_PASSE.len());
    if spaced.is_some_and(|given| given.eq_ignore_ascii_case(MOT_DE_PASSE)) {
        return MOT_DE_PASSE.len();
    }
    let rest = &rest[..rest.len().min(48)];
    // A fullwidth colon ends a word, although its bytes look like a letter's.
    let colon = memchr::memmem::find(rest, "：".as_bytes()).unwrap_or(rest.len());
    let verb = ["是", "は", "为"];
    let verb = verb.iter().filter_map(|verb| memchr::memmem::find(rest, verb.as_bytes())).min();
    let end = colon.min(verb.unwrap_or(rest.len()));
    run(&rest[..end], |byte| byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'_')
}

/// The length of the separator before the value.
fn sign_length(behind: &[u8]) -> Option<usize> {
    const SIGNS: [&str; 14] = [
        "：", "=>", ":=", ":", "=", "ist ", "lautet ", "es ", "est ", "is ", "är ", "是", "は",
        "为",
    ];
    let quote = usize::from(matches!(behind.first(), Some(b'"' | b'\'')));
    let blanks = run(&behind[quote..], |byte| byte == b' ');
    let rest = &behind[quote + blanks..];
    let sign = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes()))?;
    let length = quote + blanks + sign.len();
    let more = run(&behind[length..], |byte| matches!(byte, b' ' | b':'));
    Some(length + more)
}

/// The value that starts here, quoted or not.
fn secret_at(text: &[u8], start: usize) -> Option<Found> {
    const VALUE_BYTES_MAX: usize = 128;
    let quote = text.get(start).copied().filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let start = start + usize::from(quote.is_some());
    let rest = text.get(start..text.len().min(start + VALUE_BYTES_MAX))?;
    let length = if let Some(quote) = quote {
        let length = memchr::memchr2(quote, b'\n', rest)?;
        rest[..length].strip_suffix(b"\\").unwrap_or(&rest[..length]).len()
    } else {
        let length = run(rest, |byte| !byte.is_ascii_whitespace() && !b"\"'`<;,".contains(&byte));
        length - usize::from(rest[..length].ends_with(b"."))
    };
    if length == VALUE_BYTES_MAX {
        return None;
    }
    let (from, to) = match std::str::from_utf8(&rest[..length]) {
        Ok(value) if quote.is_none() => outside_of_prose(value)?,
        _ => (0, length),
    };
    let found = Found { start: start + from, end: start + to, rule: Kind::Password.rule() };
    is_spoken_secret(&rest[from..to], quote.is_some()).then_some(found)
}

/// The part of an unquoted value that can be a password, excluding words of a sentence. Chinese and
/// Japanese have no spaces between words, so a value that starts with one of their letters is a
/// sentence. Only its end can be a password.
fn outside_of_prose(value: &str) -> Option<(usize, usize)> {
    let value = &value[..value.find(is_wide_punctuation).unwrap_or(value.len())];
    if value.chars().all(char::is_alphabetic) {
        return None;
    }
    if !value.starts_with(is_wide_letter) {
        return Some((0, value.len()));
    }
    let end = value.trim_end_matches(|letter: char| letter.is_ascii_graphic()).len();
    (end < value.len()).then_some((end, value.len()))
}

/// Letters of scripts without spaces between words: Han, Hiragana and Katakana.
fn is_wide_letter(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// Punctuation of these scripts. A password that is typed has none.
fn is_wide_punctuation(letter: char) -> bool {
    "、。，；：！？（）「」《》“”".contains(letter)
}

#[cfg(test)]
mod tests {
    use crate::{Policy, redact_text};

    #[test]
    fn sentences_about_passwords_are_kept() {
        for text in [
            "密码：使用Argon2id哈希",
            "密码使用Argon2id哈希",
            "密码为空时返回错误",
            "密码是必填项，不能少于8位",
            "パスワードは必須です。",
            "パスワードはbcryptでハッシュ化する",
            "пароль: обязательное",
            "Passwort: müssen",
        ] {
            assert_eq!(redact_text(text, Policy::default()).unless_private(), text);
        }
    }

    #[test]
    fn passwords_after_and_in_such_sentences_are_removed() {
        for text in [
            "密码：Sommer2024!",
            "密码是Sommer2024!",
            "密码：已改成Sommer2024!",
            "密码：Sommer2024!，请保密",
            "パスワードは「x」ではなく、パスワード：Sommer2024!",
            "密码：\"夏天Sommer\"",
            "пароль: Лето2024!",
            "Passwort ist Sömmer2024",
        ] {
            let redacted = redact_text(text, Policy::default()).unless_private();
            let has_secret = ["2024", "夏天Sommer"].iter().any(|part| redacted.contains(part));
            assert!(redacted.contains("[redacted:") && !has_secret, "{text}: {redacted}");
        }
        let kept = redact_text("密码：Sommer2024!，请保密", Policy::default()).unless_private();
        assert!(kept.ends_with("，请保密"), "{kept}");
    }
}
