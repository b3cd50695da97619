//! Decides whether the value of a name such as `password` is a secret.
//!
//! `password = get_password()`, `token: string`, `${SECRET}` and `<your-key>` are kept. A value
//! that a person or a program could have chosen as a secret is not.

use super::{
    Found,
    headers::{cookies, credentials},
    names::{Kind, kind_of},
    randomness::{decoded, is_generated, is_sample, looks_random},
    rules::{base64, base64_url, is_filler, run},
    token_at,
};

/// The syntax of an assignment, which determines how much the value must look like a secret.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) enum AssignmentSyntax {
    /// `NAME=value` with the name in capitals: an environment variable, whose value is literal.
    Environment,
    /// `name: "value"`: a string literal.
    Quoted,
    /// `name=value`: a query, a connection string, an argument.
    Tight,
    /// `name: value`, `name = value`: a configuration file, a type, code, prose.
    Loose,
    /// `--name value`.
    Flag,
    /// `name: value` or `a.name=value` alone on a line: a configuration file.
    Line,
    /// `("name", "value")`: arguments, or a list of words.
    Listed,
    /// `the name is value`: a sentence.
    Spoken,
    /// `name value`, `| name | value |`: a sentence or a table.
    Bare,
}

/// How much of a value is classified. Its start suffices, and this limits the cost for untrusted
/// text.
pub(super) const JUDGED_BYTES_MAX: usize = 128;

/// Values that mean "not set": compared as a whole, in any letter case.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "password", "passwd", "pass", "passphrase", "pwd", "secret", "token", "key", "string", "str",
    "null", "none", "nil", "undefined", "true", "false", "yes", "no", "required", "optional",
    "text", "any", "bool", "boolean", "int", "integer", "number", "bytes", "unknown", "never",
    "void", "self", "hidden", "masked", "omitted", "empty", "default", "prompt", "env",
    "user:pass", "user:password", "invalid", "missing", "option", "options", "flag", "flags",
    "argument", "and", "or", "valid", "test", "value", "redacted", "encrypted", "unset",
    "not set", "changeit", "via", "arg", "args", "parameter", "parameters", "the", "with",
    "from", "for", "into", "when", "must", "should", "cannot", "will", "was", "are", "that",
    "this", "instead",
];

/// Prefixes of values that the reader should replace.
#[rustfmt::skip]
const BEGINNINGS: &[&str] = &[
    "your", "example", "changeme", "change-me", "change_me", "placeholder", "insert", "replace",
    "todo", "redacted", "[redacted", "enter-", "enter ", "enter_", "my-secret-here", "xxxx",
    "%s", "{}", "***", "...", "…",
];

/// The range of the value at `start..end` to redact, for a name of this kind.
pub(super) fn secret_in(
    kind: Kind,
    written: AssignmentSyntax,
    text: &[u8],
    start: usize,
    end: usize,
) -> Option<Found> {
    let value = &text[start..end];
    match kind {
        Kind::Authorization => return credentials(text, start, end),
        Kind::Cookie => return cookies(text, start),
        Kind::UserAndPassword => {
            return password_of_login(text, start, end)
                .or_else(|| secret_in(Kind::Secret, written, text, start, end));
        }
        _ => {}
    }
    // The format of a token is more reliable than its name.
    if let Some(token) = token_at(text, start)
        && token.end == end
    {
        return Some(token);
    }
    let judged = &value[..value.len().min(JUDGED_BYTES_MAX)];
    if !is_plausible(kind, written, judged) || is_placeholder(judged) {
        return None;
    }
    Some(Found { start, end, rule: kind.rule() })
}

/// `${SECRET}`, `<your-key>`, `xxxx`, `changeme`: placeholders for a secret.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let bare = value.trim_ascii();
    let is_word = |word: &&str| bare.eq_ignore_ascii_case(word.as_bytes());
    let begins = |beginning: &&str| {
        bare.get(..beginning.len())
            .is_some_and(|given| given.eq_ignore_ascii_case(beginning.as_bytes()))
    };
    bare.is_empty()
        || is_filler(bare)
        || is_sample(bare)
        || WORDS.iter().any(is_word)
        || BEGINNINGS.iter().any(begins)
        || is_reference(bare)
        || holds_placeholder(bare)
}

/// Whether this was redacted before. Redaction is idempotent.
pub(super) fn holds_placeholder(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"[redacted:").is_some()
}

/// A reference to a value: a variable, a template placeholder, the output of a command.
fn is_reference(value: &[u8]) -> bool {
    let name = |rest: &[u8]| {
        !rest.is_empty()
            && rest.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"_:.-".contains(&byte))
    };
    match value {
        [b'$', b'(', ..] | [b'$' | b'{' | b'#', b'{', ..] | [b'%', b's' | b'v' | b'd'] => true,
        [b'$' | b'@', rest @ ..] => name(rest) && !looks_random(rest),
        [b'%', middle @ .., b'%'] | [b'<', middle @ .., b'>'] | [b'{', middle @ .., b'}'] => {
            !middle.is_empty()
        }
        [b'[', middle @ .., b']'] => {
            middle.iter().all(|&byte| byte.is_ascii_alphabetic() || b" :_-".contains(&byte))
        }
        _ => false,
    }
}

fn is_plausible(kind: Kind, written: AssignmentSyntax, value: &[u8]) -> bool {
    match kind {
        Kind::Password => is_password(written, value),
        Kind::MaybePassword => match written {
            AssignmentSyntax::Line | AssignmentSyntax::Bare => is_chosen(value),
            AssignmentSyntax::Loose => {
                is_chosen(value) || value.len() >= 20 && is_generated_key(value)
            }
            _ => {
                is_random(value, 6) && !is_path(value) && !is_code(value) && !value.contains(&b'/')
            }
        },
        Kind::AnyKey => match written {
            AssignmentSyntax::Environment => {
                is_random(value, 16) && !is_path(value) && !is_sample(value)
            }
            AssignmentSyntax::Quoted => value.len() >= 24 && is_generated_key(value),
            _ => false,
        },
        Kind::AwsSecretKey => is_random(value, 16) && !is_sample(value),
        Kind::Login => is_login(value),
        Kind::Otp => is_otp(value),
        Kind::JwkPart => {
            value.len() >= 40 && value.iter().all(|&byte| base64_url(byte)) && looks_random(value)
        }
        _ => is_made_secret(written, value),
    }
}

/// The password of `jo:…` or `jo / …`, up to the end of the word.
fn password_of_login(text: &[u8], start: usize, end: usize) -> Option<Found> {
    const USER_BYTES_MAX: usize = 64;
    const SEPARATORS: [&[u8]; 3] = [b":", b" / ", b"/"];
    let rest = &text[start..text.len().min(start + USER_BYTES_MAX)];
    let user = run(rest, |byte| byte.is_ascii_alphanumeric() || b"@._+-".contains(&byte));
    let separator = SEPARATORS.iter().find(|separator| rest[user..].starts_with(separator))?;
    let start = start + user + separator.len();
    let length = run(text.get(start..text.len().min(start + USER_BYTES_MAX))?, in_login);
    let end = end.max(start + length).min(start + length);
    let password = &text[start..end];
    let plausible = user > 0 && is_random(password, 6) && !is_placeholder(password);
    (plausible && !is_code(password) && !is_version(password)).then_some(Found {
        start,
        end,
        rule: Kind::Password.rule(),
    })
}

/// The password of `jo@host.org / …`, whose slash is at `at`.
pub(super) fn login_with_address(text: &[u8], at: usize) -> Option<Found> {
    const USER_BYTES_MAX: usize = 64;
    let user = text[..at].iter().rev().take(USER_BYTES_MAX);
    let user = &text[at - user.take_while(|byte| in_login(**byte)).count()..at];
    let start = at + 3;
    let rest = &text[start..text.len().min(start + USER_BYTES_MAX)];
    let password = &rest[..run(rest, in_login)];
    let is_login = user.contains(&b'@') && is_chosen(password) && !is_placeholder(password);
    let end = start + password.len();
    is_login.then_some(Found { start, end, rule: Kind::Password.rule() })
}

fn in_login(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b",;\"'`|<>()".contains(&byte)
}

/// A few digits, as people type them.
fn is_otp(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_code = value.iter().all(|byte| byte.is_ascii_digit() || b" -".contains(byte));
    is_code && (4..=8).contains(&digits) || is_random(value, 8) && is_generated(value)
}

/// A user name and password in base64.
fn is_login(value: &[u8]) -> bool {
    const LOGIN_BYTES_MIN: usize = 12;
    let mut room = [0; JUDGED_BYTES_MAX];
    let plain = decoded(value, &mut room);
    let printable = plain.iter().all(u8::is_ascii_graphic);
    value.len() >= LOGIN_BYTES_MIN && printable && plain.contains(&b':')
}

/// A mix of capitals, lower-case letters and digits, as in a key of any name.
fn is_generated_key(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has_digit(value)
        && value.iter().all(|&byte| base64(byte))
        && looks_random(value)
        && !is_sample(value)
}

/// Whether the value in a sentence or a command can be a password.
pub(super) fn is_spoken_secret(value: &[u8], quoted: bool) -> bool {
    let written = if quoted { AssignmentSyntax::Quoted } else { AssignmentSyntax::Loose };
    !is_placeholder(value) && is_password(written, value)
}

fn is_password(written: AssignmentSyntax, value: &[u8]) -> bool {
    let letters = value.iter().all(u8::is_ascii_alphabetic);
    match written {
        AssignmentSyntax::Environment | AssignmentSyntax::Flag => {
            value.len() >= 3 && !is_call(value) && !is_directory(value) && value[0] != b'-'
        }
        AssignmentSyntax::Quoted => value.len() >= 3 && !is_label(value) && !is_directory(value),
        AssignmentSyntax::Listed => {
            is_random(value, 6) && !is_label(value) && !is_path(value) && kind_of(value).is_none()
        }
        AssignmentSyntax::Line => {
            is_password(AssignmentSyntax::Loose, value) || is_plain_word(value)
        }
        AssignmentSyntax::Spoken => is_random(value, 6) && !is_code(value) && !is_path(value),
        AssignmentSyntax::Bare => is_chosen(value),
        AssignmentSyntax::Tight => {
            value.len() >= 4 && !letters && !is_code(value) && !is_identifier(value)
        }
        AssignmentSyntax::Loose => {
            value.len() >= 6
                && !letters
                && !is_code(value)
                && !is_identifier(value)
                && !is_sized_type(value)
        }
    }
}

/// A capital, a lower-case letter and a digit, as password rules require. Not a file or a name in
/// code.
fn is_chosen(value: &[u8]) -> bool {
    is_random(value, 8)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && !value.iter().any(|byte| b"/._:=".contains(byte))
        && !is_code(value)
}

/// A lower-case word that is not a type, state or variable.
fn is_plain_word(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 10;
    value.len() >= BYTES_MIN && value.iter().all(u8::is_ascii_lowercase) && !is_label(value)
}

fn is_made_secret(written: AssignmentSyntax, value: &[u8]) -> bool {
    let has_blank = value.iter().any(u8::is_ascii_whitespace);
    if is_path(value) || has_blank || is_sample(value) || is_version(value) {
        return false;
    }
    let long = value.len() >= 12;
    match written {
        AssignmentSyntax::Environment => value.len() >= 6 && !is_call(value) && !is_number(value),
        AssignmentSyntax::Quoted => {
            is_random(value, 8)
                || long && (is_mixed(value) || is_number(value) || looks_random(value))
        }
        AssignmentSyntax::Listed | AssignmentSyntax::Spoken => {
            long && has_digit(value) && looks_random(value)
        }
        // Excludes the time in a list of names of secrets.
        AssignmentSyntax::Bare => {
            long && has_digit(value) && looks_random(value) && !value.contains(&b':')
        }
        AssignmentSyntax::Tight | AssignmentSyntax::Flag => {
            (is_random(value, 8) || long && looks_random(value))
                && !is_code(value)
                && !is_identifier(value)
        }
        AssignmentSyntax::Loose | AssignmentSyntax::Line => {
            let is_word = value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            (is_random(value, 16) && !is_word || long && looks_random(value))
                && !is_code(value)
                && !is_identifier(value)
                && !is_sized_type(value)
        }
    }
}

/// Whether a cookie's value was generated to be hard to guess.
pub(super) fn looks_made(value: &[u8]) -> bool {
    const LONG_BYTES_MIN: usize = 16;
    let long = value.len() >= LONG_BYTES_MIN && (is_number(value) || is_mixed(value));
    (is_random(value, 8) || long) && !is_placeholder(value) && !is_code(value)
}

/// Letters and digits together, as in generated secrets.
fn is_random(value: &[u8], bytes_min: usize) -> bool {
    value.len() >= bytes_min
        && has_digit(value)
        && value.iter().any(u8::is_ascii_alphabetic)
        && !value.iter().any(u8::is_ascii_whitespace)
}

/// No digits, but not a word either: capitals among lower-case letters, and no separators.
fn is_mixed(value: &[u8]) -> bool {
    let capitals = value.iter().skip(1).filter(|byte| byte.is_ascii_uppercase()).count();
    value.iter().all(u8::is_ascii_alphabetic)
        && capitals * 4 >= value.len()
        && value.iter().any(u8::is_ascii_lowercase)
}

pub(super) fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

fn is_number(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// A file or URL: the location of a secret, not the secret.
fn is_path(value: &[u8]) -> bool {
    let is_base64 =
        value.len() >= 32 && value.iter().all(|&byte| base64(byte)) && looks_random(value);
    is_directory(value) && !is_base64
        || memchr::memmem::find(&value[..value.len().min(16)], b"://").is_some()
        || memchr::memmem::find(value, b"/secrets/").is_some()
}

fn is_directory(value: &[u8]) -> bool {
    [&b"/"[..], b"./", b"../", b"~/", b"C:\\"].iter().any(|start| value.starts_with(start))
}

/// The label of a form field: it mentions passwords, in several words or without a digit.
fn is_label(value: &[u8]) -> bool {
    const WORDS_MAX: usize = 6;
    let lower = value.to_ascii_lowercase();
    let mentions = memchr::memmem::find(&lower, b"pass").is_some();
    let words = value.split(u8::is_ascii_whitespace).count();
    !has_digit(value) && mentions || words > WORDS_MAX
}

/// Brackets and similar, which unquoted values of configuration files do not contain.
pub(super) fn is_code(value: &[u8]) -> bool {
    value
        .iter()
        .any(|byte| matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b'`'))
}

/// A name followed by a bracket: `get_password(`, `os.environ[`.
fn is_call(value: &[u8]) -> bool {
    let name =
        run(value, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':'));
    name >= 3 && matches!(value.get(name), Some(b'(' | b'[')) || value[0] == b'`'
}

/// `config.password`, `DB_PASSWORD`, `passwordField`: a variable, a constant, a member.
fn is_identifier(value: &[u8]) -> bool {
    let word = |word: &[u8]| {
        word.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let value = value.strip_prefix(b"*").unwrap_or(value); // a pointer
    let path = value.contains(&b'.') || memchr::memmem::find(value, b"::").is_some();
    let separates = |byte: &u8| matches!(byte, b'.' | b':');
    let all_words = value.split(separates).filter(|part| !part.is_empty()).all(word);
    let made = |part: &[u8]| part.len() >= 12 && looks_random(part);
    let is_name = path || !has_digit(value) || is_constant(value);
    all_words && is_name && !value.split(separates).any(made)
}

/// `WIN32_ERROR`: capitals that form words.
pub(super) fn is_constant(value: &[u8]) -> bool {
    value.contains(&b'_')
        && value
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
        && !looks_random(value)
}

/// `^9.0.2`, `4.0.1-beta.2`: a version.
fn is_version(value: &[u8]) -> bool {
    let value = value.strip_prefix(b"^").or_else(|| value.strip_prefix(b"~")).unwrap_or(value);
    let value = value.strip_prefix(b"v").unwrap_or(value);
    let digits = run(value, |byte| byte.is_ascii_digit());
    let is_dotted = matches!(value.get(digits..digits + 2), Some([b'.', b'0'..=b'9']));
    digits > 0 && digits < 4 && is_dotted
}

/// `uint64`, `utf8`, `sha256`: letters and a number of bits.
fn is_sized_type(value: &[u8]) -> bool {
    let letters = run(value, |byte| byte.is_ascii_alphabetic());
    let size = &value[letters..];
    let sizes: [&[u8]; 7] = [b"8", b"16", b"32", b"64", b"128", b"256", b"512"];
    sizes.contains(&size)
}
