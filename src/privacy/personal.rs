//! Replaces personal data: e-mail addresses, phone numbers, payment cards, IBANs, US social
//! security numbers.
//!
//! Disabled by default: in a code base most addresses belong to maintainers, examples and licenses.
//! A number is recognized only by its check digits or in a format that other numbers do not have.
//! Names, postal addresses and dates of birth have no recognizable format.

use crate::work;

/// How the text is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    Plain,
    Json,
}

/// Replaces personal data by placeholders; `None` if there is none.
pub(super) fn redact(text: &str, form: Form) -> Option<String> {
    let bytes = text.as_bytes();
    work::count(bytes.len());
    let (mut out, mut copied) = (String::new(), 0);
    let (mut at, mut is_in_string) = (0, false);
    // The character before `at`, decoded as far as it matters.
    let mut before = b'\n';
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        match byte {
            b'\\' if form == Form::Json => {
                at += if bytes.get(at + 1) == Some(&b'u') { 6 } else { 2 };
            }
            b'"' if form == Form::Json => {
                is_in_string = !is_in_string;
                at += 1;
            }
            b'+' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => match data_at(&bytes[at..], before) {
                Some((kind, length)) => {
                    out.push_str(&text[copied..at]);
                    // A bare number becomes a string.
                    let quote = if form == Form::Json && !is_in_string { "\"" } else { "" };
                    for piece in [quote, "[redacted:", kind, "]", quote] {
                        out.push_str(piece);
                    }
                    at += length;
                    copied = at;
                }
                None => at += 1 + run(&bytes[at + 1..], |byte| byte.is_ascii_alphanumeric()),
            },
            _ => at += 1,
        }
        before = match (byte, bytes.get(start + 1)) {
            (b'\\', Some(b'n')) if form == Form::Json => b'\n',
            (b'\\', _) if form == Form::Json => b' ',
            _ => bytes[at - 1],
        };
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// The kind and length of the personal data at the start of a text.
fn data_at(text: &[u8], before: u8) -> Option<(&'static str, usize)> {
    if let Some(length) = email(text) {
        return Some(("email", length));
    }
    if matches!(before, b'.' | b'_') || before.is_ascii_alphanumeric() {
        return None;
    }
    let found = match text[0] {
        b'+' => phone(text, before == b'\n').map(|length| ("phone", length)),
        b'0'..=b'9' => (social_security(text).map(|length| ("ssn", length)))
            .or_else(|| card(text).map(|length| ("card", length))),
        _ => iban(text).map(|length| ("iban", length)),
    };
    let goes_on = |length: usize| text.get(length).is_some_and(u8::is_ascii_alphanumeric);
    found.filter(|(_, length)| !goes_on(*length))
}

/// Names of files such as `logo@2x.png`.
const FILE_EXTENSIONS: [&[u8]; 8] =
    [b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"avif", b"pdf"];

fn email(text: &[u8]) -> Option<usize> {
    const LOCAL_BYTES_MAX: usize = 64;
    const DOMAIN_BYTES_MAX: usize = 253;
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b"._%+-".contains(&byte);
    let local = run(&text[..text.len().min(LOCAL_BYTES_MAX)], is_local);
    if !text[0].is_ascii_alphanumeric() || text.get(local) != Some(&b'@') {
        return None;
    }
    let domain = &text[local + 1..];
    let is_domain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let length = run(&domain[..domain.len().min(DOMAIN_BYTES_MAX)], is_domain);
    let next = domain.get(length);
    // The full stop of a sentence.
    let end = domain[..length].iter().rposition(|byte| !b".-".contains(byte))? + 1;
    let domain = &domain[..end];
    let (first, last) =
        (domain.split(|byte| *byte == b'.').next()?, domain.rsplit(|byte| *byte == b'.').next()?);
    let is_name = first.len() < domain.len()
        && first.iter().any(u8::is_ascii_alphabetic)
        && last.len() >= 2
        && last.iter().all(u8::is_ascii_alphabetic)
        && !FILE_EXTENSIONS.iter().any(|extension| last.eq_ignore_ascii_case(extension));
    // `git@host.org:team/repository` and `ssh://git@host.org/team` name a repository.
    let is_repository = end == length && next.is_some_and(|byte| b":/".contains(byte));
    (is_name && !is_repository).then_some(local + 1 + end)
}

/// A number in international form. A `+` at the start of a line may be the mark of a diff.
fn phone(text: &[u8], is_line_start: bool) -> Option<usize> {
    const DIGITS: std::ops::RangeInclusive<usize> = 9..=15;
    let number = Digits::read(&text[1..], b" -.()");
    let country = run(&text[1..], |byte| byte.is_ascii_digit());
    let is_spaced = country <= 3 && number.length > number.digits.len();
    let is_phone = DIGITS.contains(&number.digits.len())
        && number.digits[0] != 0
        && (is_spaced || !is_line_start && number.length == number.digits.len());
    is_phone.then_some(1 + number.length)
}

fn social_security(text: &[u8]) -> Option<usize> {
    const LENGTH: usize = 11;
    let number = text.get(..LENGTH)?;
    let has_form = number.iter().enumerate().all(|(at, byte)| match at {
        3 | 6 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let is_issued = !matches!(&number[..3], b"000" | b"666" | [b'9', ..])
        && &number[4..6] != b"00"
        && &number[7..] != b"0000";
    let goes_on = text.get(LENGTH) == Some(&b'-');
    (has_form && is_issued && !goes_on).then_some(LENGTH)
}

fn card(text: &[u8]) -> Option<usize> {
    let number = Digits::read(text, b" -");
    let digits = &number.digits[..];
    let head = digits.iter().take(4).fold(0_u32, |head, digit| head * 10 + u32::from(*digit));
    let is_of_issuer = match digits.len() {
        14 => matches!(head / 10, 300..=305 | 360..=369 | 380..=399),
        15 => matches!(head / 100, 34 | 37),
        16 => {
            matches!(head, 2221..=2720 | 3528..=3589 | 4000..=5599 | 6011 | 6200..=6299 | 6440..=6599)
        }
        _ => false,
    };
    let sum: u32 = (digits.iter().rev().enumerate())
        .map(|(at, digit)| match (at % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => 2 * digit - 9,
            (_, digit) => 2 * digit,
        })
        .sum();
    (is_of_issuer && sum.is_multiple_of(10)).then_some(number.length)
}

fn iban(text: &[u8]) -> Option<usize> {
    const LENGTH: std::ops::RangeInclusive<usize> = 15..=34;
    let (country, check) = text.get(..4)?.split_at(2);
    if !country.iter().all(u8::is_ascii_uppercase) || !check.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (mut account, mut length) = (Vec::with_capacity(*LENGTH.end()), 0);
    while let Some(&byte) = text.get(length) {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' if account.len() < *LENGTH.end() => account.push(byte),
            // Between groups of four.
            b' ' if account.len().is_multiple_of(4)
                && matches!(text.get(length + 1), Some(b'0'..=b'9' | b'A'..=b'Z')) => {}
            _ => break,
        }
        length += 1;
    }
    work::count(length);
    // The check digits come last in the calculation. The text starts with four characters that were
    // read.
    account.rotate_left(4);
    let rest = account.iter().fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    (LENGTH.contains(&account.len()) && rest == 1).then_some(length)
}

/// Digits with single separators between them.
struct Digits {
    digits: Vec<u8>,
    /// The bytes that they take in the text.
    length: usize,
}

impl Digits {
    /// Longer numbers are neither cards nor phones.
    const MAX: usize = 20;

    fn read(text: &[u8], separators: &[u8]) -> Self {
        let (mut digits, mut length) = (Vec::with_capacity(Self::MAX), 0);
        let mut separators_before = 0;
        for (at, &byte) in text.iter().enumerate() {
            if byte.is_ascii_digit() && digits.len() < Self::MAX {
                digits.push(byte - b'0');
                (length, separators_before) = (at + 1, 0);
            } else if separators.contains(&byte) && separators_before < 2 {
                separators_before += 1;
            } else {
                break;
            }
        }
        work::count(length);
        Self { digits, length }
    }
}

/// The number of leading bytes that match.
fn run(text: &[u8], matches: impl Fn(u8) -> bool) -> usize {
    let length = text.iter().take_while(|byte| matches(**byte)).count();
    work::count(length);
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, redact_json, redact_text};

    #[test]
    fn personal_data_is_replaced_in_every_usual_form() {
        let cases = [
            ("write to jo.doe+list@mail.example.org.", "write to [redacted:email]."),
            ("邮箱bob@example.cn，谢谢", "邮箱[redacted:email]，谢谢"),
            ("From: Jo <jo@example.co.uk>", "From: Jo <[redacted:email]>"),
            ("4111 1111 1111 1111", "[redacted:card]"),
            ("card=5500-0000-0000-0004;", "card=[redacted:card];"),
            ("amex 378282246310005, ok", "amex [redacted:card], ok"),
            ("IBAN DE89 3704 0044 0532 0130 00 is mine", "IBAN [redacted:iban] is mine"),
            ("GB82WEST12345698765432", "[redacted:iban]"),
            ("call +49 (170) 123-4567 now", "call [redacted:phone] now"),
            ("+1 415 555 2671\n+1.415.555.2671", "[redacted:phone]\n[redacted:phone]"),
            ("tel:+14155552671", "tel:[redacted:phone]"),
            ("SSN 219-09-9999", "SSN [redacted:ssn]"),
        ];
        for (text, expected) in cases {
            assert_eq!(redact(text, Form::Plain).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn text_similar_to_personal_data_is_kept() {
        let unchanged = [
            "git@github.com:team/repository.git ssh://git@example.org/team",
            "react@18.2.0 pkg@1.2.beta logo@2x.png @types/node decorator@ @",
            "4111 1111 1111 1112 and 1760000000000000 and 0.4111111111111111",
            "550e8400-e29b-41d4-a716-446655440000",
            "+2026-11-17 10:00:00 added\n+1760000000000\n+12",
            "DE89 3704 0044 0532 0130 01",
            "000-12-3456 666-12-3456 2026-11-17 219-09-9999-1",
            "a+b=c x+4915112345678y",
        ];
        for text in unchanged {
            assert_eq!(redact(text, Form::Plain), None, "{text}");
        }
    }

    #[test]
    fn json_stays_valid() {
        let policy = Policy { redact_personal: true, ..Policy::default() };
        let raw = r#"{"to":"a\nbo@example.org \u00e9jo@example.org \"x@example.org\"","n":4111111111111111}"#;
        let redacted = redact_json(raw, policy);
        let expected = r#"{"to":"a\n[redacted:email] \u00e9[redacted:email] \"[redacted:email]\"","n":"[redacted:card]"}"#;
        assert_eq!(redacted, expected);
        assert_eq!(redact_json(raw, Policy::default()), raw);
        let text = "mail bo@example.org";
        assert_eq!(redact_text(text, policy).text, "mail [redacted:email]");
        assert_eq!(redact_text(text, Policy::default()).text, text);
    }
}
