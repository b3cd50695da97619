//! Names of secrets: `DB_PASSWORD`, `apiKey`, `X-Auth-Token`.

/// What a name implies about its value.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(crate) enum Kind {
    /// Chosen by people: any text.
    Password,
    /// A plain `pass` or `pwd`: a password, a test result, or a directory.
    MaybePassword,
    /// Generated, and looks random.
    Token,
    ApiKey,
    Secret,
    AwsSecretKey,
    PrivateKey,
    /// Some key. Most are not secrets, so the value must look like one.
    AnyKey,
    /// A header value: a scheme, then the secret.
    Authorization,
    /// A header value: names and values, some of them secrets.
    Cookie,
    /// A login in base64, as Docker stores it.
    Login,
    /// A user name and a password: `jo:…`, `jo / …`.
    UserAndPassword,
    /// A one-time password or a PIN: a few digits.
    Otp,
    /// A private part of a JSON Web Key.
    JwkPart,
}

impl Kind {
    /// The name in the placeholder.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Self::Password | Self::MaybePassword | Self::UserAndPassword => "password",
            Self::Otp => "one-time-password",
            Self::Token => "token",
            Self::ApiKey => "api-key",
            Self::Secret | Self::AnyKey => "secret",
            Self::AwsSecretKey => "aws-secret-key",
            Self::PrivateKey | Self::JwkPart => "private-key",
            Self::Authorization => "authorization",
            Self::Cookie => "cookie",
            Self::Login => "docker-auth",
        }
    }
}

/// Name endings of secrets, in lower case with `_` between words. The longest match counts.
#[rustfmt::skip]
const WORDS: &[(Kind, &[&str])] = &[
    (Kind::AwsSecretKey, &["secret_access_key", "aws_secret_key", "aws_secret"]),
    (Kind::ApiKey, &[
        "api_key", "app_key", "application_key", "access_key", "account_key", "subscription_key",
        "service_key", "role_key", "admin_key", "auth_key", "license_key",
    ]),
    (Kind::Secret, &[
        "api_secret", "secret_key", "secret_key_base", "signing_key", "encryption_key",
        "master_key", "shared_key", "hmac_key", "jwt_key", "storage_key", "client_key",
        "preshared_key", "pre_shared_key", "pepper", "auth_ident", "secret", "secret_string",
        "secret_id", "totp_seed", "recovery_code", "backup_code",
    ]),
    (Kind::Password, &["psk", "pass", "pwd", "pw"]),
    (Kind::PrivateKey, &["client_key_data", "private_key", "private_key_id"]),
    (Kind::UserAndPassword, &["credential", "credentials", "creds", "login"]),
    (Kind::Otp, &[
        "otp", "otp_code", "factor_code", "mfa_code", "verification_code", "one_time_code",
        "security_code", "pin",
    ]),
    (Kind::Token, &["token", "bearer_auth", "jwt"]),
    (Kind::Authorization, &["authorization"]),
    (Kind::Cookie, &["cookie", "cookies"]),
    (Kind::AnyKey, &["key", "pat"]),
];

/// Endings that match without a word boundary, as in `PGPASSWORD`.
#[rustfmt::skip]
const GLUED: &[(Kind, &[&str])] = &[
    (Kind::Password, &[
        "password", "passwd", "passcode", "storepass", "keypass", "requirepass", "passphrase",
        "sshpass", "bindpw", "masterauth",
    ]),
    (Kind::ApiKey, &["apikey", "accesskey", "accountkey"]),
    (Kind::Secret, &["secretkey", "clientsecret"]),
    (Kind::Token, &["authtoken", "accesstoken", "refreshtoken"]),
];

/// Suffixes that are ignored: `DB_PASSWORD_PROD`, `API_KEY_2`.
#[rustfmt::skip]
const SUFFIXES: &[&str] = &[
    "prod", "production", "dev", "development", "staging", "stage", "test", "live", "value",
    "old", "new", "primary", "secondary", "base64", "b64", "plain", "raw", "output",
];

/// Words before `token` and `key` that make it something else: positions in a list, parts of
/// speech, columns of a table.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "next", "page", "continuation", "cursor", "sync", "eos", "bos", "pad", "unk", "sep", "cls",
    "mask", "stop", "start", "end", "prev", "previous", "special", "current", "last", "first",
    "public", "publishable", "primary", "foreign", "cache", "sort", "partition", "row", "range",
    "hash", "lookup", "host", "site", "measurement", "change", "idempotency", "action",
];

/// What the name implies about its value, if anything. Reads at most 128 bytes.
pub(crate) fn kind_of(name: &[u8]) -> Option<Kind> {
    let mut buffer = [0_u8; 192];
    let words = without_suffixes(lowered(name, &mut buffer));
    if matches!(words, b"htpasswd" | b"chpasswd") {
        return None; // commands and their files
    }
    if words == b"auth" && name.starts_with(b"_") {
        return Some(Kind::Secret); // a registry's, in .npmrc
    }
    if words == b"auth" {
        return Some(Kind::Login);
    }
    if matches!(words, b"d" | b"k" | b"p" | b"q" | b"dp" | b"dq" | b"qi") {
        return Some(Kind::JwkPart);
    }
    let (ending, kind) = ending_of(words)?;
    let before = words[..words.len() - ending.len()].trim_suffix_underscore();
    let last_word = before.rsplit(|&byte| byte == b'_').next().unwrap_or_default();
    let harmless = matches!(kind, Kind::Token | Kind::AnyKey)
        && HARMLESS.iter().any(|harmless| harmless.as_bytes() == last_word);
    match kind {
        _ if harmless => None,
        Kind::AnyKey if before.is_empty() => None,
        Kind::Password if before.is_empty() && matches!(ending, "pass" | "pwd" | "pw") => {
            Some(Kind::MaybePassword)
        }
        _ => Some(kind),
    }
}

fn ending_of(words: &[u8]) -> Option<(&'static str, Kind)> {
    let at_word = |ending: &str| {
        let before = words.len() - ending.len();
        before == 0 || words[before - 1] == b'_'
    };
    let endings = |table: &'static [(Kind, &'static [&'static str])]| {
        let of_kind = |(kind, words): &'static (Kind, &'static [&'static str])| {
            words.iter().map(move |word| (*word, *kind))
        };
        let last = words.last();
        let fits = move |(word, _): &(&str, Kind)| {
            word.as_bytes().last() == last && words.ends_with(word.as_bytes())
        };
        table.iter().flat_map(of_kind).filter(fits)
    };
    let longest = |(ending, _): &(&str, Kind)| ending.len();
    let glued = endings(GLUED).max_by_key(longest);
    glued.or_else(|| endings(WORDS).filter(|(word, _)| at_word(word)).max_by_key(longest))
}

fn without_suffixes(mut words: &[u8]) -> &[u8] {
    // `password1`, but not `sha256`.
    let digits = words.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if (1..=2).contains(&digits) {
        words = &words[..words.len() - digits];
    }
    while let Some(cut) = words.iter().rposition(|&byte| byte == b'_') {
        let last = &words[cut + 1..];
        let is_suffix = last.iter().all(u8::is_ascii_digit)
            || SUFFIXES.iter().any(|suffix| suffix.as_bytes() == last);
        if !is_suffix {
            break;
        }
        words = &words[..cut];
    }
    words
}

/// Writes the name in lower case with `_` between its words.
fn lowered<'a>(name: &[u8], buffer: &'a mut [u8; 192]) -> &'a [u8] {
    let name = &name[name.len().saturating_sub(128)..];
    let mut length = 0;
    for (at, &byte) in name.iter().enumerate() {
        let before = at.checked_sub(1).map_or(b'_', |before| name[before]);
        let after = name.get(at + 1).copied().unwrap_or(b'_');
        let starts_word = byte.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || before.is_ascii_uppercase() && after.is_ascii_lowercase());
        if starts_word && length < buffer.len() {
            buffer[length] = b'_';
            length += 1;
        }
        if length < buffer.len() {
            let separates = !byte.is_ascii_alphanumeric();
            buffer[length] = if separates { b'_' } else { byte.to_ascii_lowercase() };
            length += 1;
        }
    }
    buffer[..length].trim_prefix_underscore()
}

trait TrimUnderscore {
    fn trim_suffix_underscore(&self) -> &Self;
    fn trim_prefix_underscore(&self) -> &Self;
}

impl TrimUnderscore for [u8] {
    fn trim_suffix_underscore(&self) -> &Self {
        self.strip_suffix(b"_").unwrap_or(self)
    }

    fn trim_prefix_underscore(&self) -> &Self {
        let start = self.iter().position(|&byte| byte != b'_').unwrap_or(self.len());
        &self[start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_classified() {
        let cases = [
            ("password", Some(Kind::Password)),
            ("DB_PASSWORD", Some(Kind::Password)),
            ("dbPassword", Some(Kind::Password)),
            ("PGPASSWORD", Some(Kind::Password)),
            ("DB_PASSWORD_PROD", Some(Kind::Password)),
            ("SMTP_PASS", Some(Kind::Password)),
            ("spring.datasource.password", Some(Kind::Password)),
            ("apiKey", Some(Kind::ApiKey)),
            ("APIKey", Some(Kind::ApiKey)),
            ("x-api-key", Some(Kind::ApiKey)),
            ("API_KEY_2", Some(Kind::ApiKey)),
            ("api key", Some(Kind::ApiKey)),
            ("AccountKey", Some(Kind::ApiKey)),
            ("aws_secret_access_key", Some(Kind::AwsSecretKey)),
            ("SecretAccessKey", Some(Kind::AwsSecretKey)),
            ("client_secret", Some(Kind::Secret)),
            ("SECRET_KEY_BASE", Some(Kind::Secret)),
            ("_auth", Some(Kind::Secret)),
            ("_authToken", Some(Kind::Token)),
            ("GITHUB_TOKEN", Some(Kind::Token)),
            ("private_key_id", Some(Kind::PrivateKey)),
            ("STRIPE_KEY", Some(Kind::AnyKey)),
            ("Proxy-Authorization", Some(Kind::Authorization)),
            ("Set-Cookie", Some(Kind::Cookie)),
            ("document.cookie", Some(Kind::Cookie)),
            ("cookie_jar", None),
            ("pass", Some(Kind::MaybePassword)),
            ("PWD", Some(Kind::MaybePassword)),
            ("key", None),
            ("max_tokens", None),
            ("token_count", None),
            ("nextToken", None),
            ("pad_token", None),
            ("ChangeToken", None),
            ("public_key", None),
            ("primary_key", None),
            ("passwords_file", None),
            ("secretName", None),
            ("keyboard", None),
            ("monkey", None),
            ("bypass", None),
            ("author", None),
            ("auth", Some(Kind::Login)),
            ("PresharedKey", Some(Kind::Secret)),
            ("ldap_bind_pw", Some(Kind::Password)),
            (".htpasswd", None),
            ("psk", Some(Kind::Password)),
            ("client-key-data", Some(Kind::PrivateKey)),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(kind_of(name.as_bytes()), expected, "{name}");
        }
    }
}
