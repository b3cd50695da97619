//! The table of secrets: what each is called, what announces it, and what it must look like.

use super::{
    Found,
    assignments::assignment,
    logins::{curl, netrc},
    shapes::{bearer, jwt, private_key, secret_key, telegram_bot, url_password, webhook},
};

/// One kind of secret.
pub(super) struct Rule {
    /// What the placeholder calls it: `[redacted:github-token]`.
    pub(super) name: &'static str,
    /// Literals of at least three bytes, one of which stands in every such secret.
    pub(super) triggers: &'static [&'static str],
    pub(super) shape: Shape,
}

/// What must follow a trigger, or stand around it.
pub(super) enum Shape {
    /// The trigger begins a token and decides its kind.
    Token(Token),
    /// Anything else. The trigger may be in any letter case; the function sees where it stands.
    Custom(fn(text: &[u8], at: usize) -> Option<Found>),
}

/// The body of a token behind its prefix.
#[derive(Clone, Copy)]
pub(super) struct Token {
    body: fn(u8) -> bool,
    /// How many bytes of the body there must be at least. Kept below the real lengths: a token that was
    /// cut short is still worth hiding.
    bytes_min: usize,
    /// Whether the body has exactly that length, for prefixes that occur in other words.
    exact: bool,
}

pub(super) const RULES: &[Rule] = &[
    // Clouds
    token("aws-access-key", &["AKIA", "ASIA", "ABIA", "ACCA"], exactly(16, upper)),
    token("gcp-api-key", &["AIza"], at_least(30, word)),
    token("gcp-oauth-secret", &["GOCSPX-"], at_least(20, word)),
    token("gcp-oauth-token", &["ya29."], at_least(20, dotted)),
    token("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], at_least(32, hex)),
    token("databricks-token", &["dapi"], at_least(32, hex)),
    token("vault-token", &["hvs.", "hvb.", "hvr."], at_least(20, word)),
    token("pulumi-token", &["pul-"], at_least(32, hex)),
    token("dynatrace-token", &["dt0c01."], at_least(24, dotted)),
    token("tailscale-key", &["tskey-"], at_least(12, word)),
    token("fly-token", &["fo1_", "fm1r_", "fm2_"], at_least(24, base64)),
    token("supabase-token", &["sbp_", "sb_secret_"], at_least(20, word)),
    // Code and packages
    token("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], at_least(16, dotted)),
    token("github-token", &["github_pat_"], at_least(16, word)),
    token(
        "gitlab-token",
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-"],
        at_least(12, dotted),
    ),
    token("npm-token", &["npm_"], at_least(30, alphanumeric)),
    token("pypi-token", &["pypi-"], at_least(40, word)),
    token("rubygems-token", &["rubygems_"], at_least(32, hex)),
    token("docker-token", &["dckr_pat_", "dckr_oat_"], at_least(16, word)),
    token("atlassian-token", &["ATATT3x"], at_least(24, base64_url)),
    token("linear-key", &["lin_api_"], at_least(24, alphanumeric)),
    token("postman-key", &["PMAK-"], at_least(24, word)),
    token("figma-token", &["figd_"], at_least(24, word)),
    // Models
    token("anthropic-key", &["sk-ant-"], at_least(8, word)),
    token("openrouter-key", &["sk-or-v1-"], at_least(16, word)),
    token("openai-key", &["sk-proj-", "sk-svcacct-", "sk-admin-"], at_least(12, word)),
    custom("openai-key", &["sk-"], secret_key),
    token("huggingface-token", &["hf_"], at_least(24, alphanumeric)),
    token("huggingface-token", &["api_org_"], at_least(24, alphanumeric)),
    token("groq-key", &["gsk_"], at_least(24, alphanumeric)),
    token("xai-key", &["xai-"], at_least(40, alphanumeric)),
    token("replicate-token", &["r8_"], at_least(30, alphanumeric)),
    token("perplexity-key", &["pplx-"], at_least(32, alphanumeric)),
    // Money and messages
    token(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_"],
        at_least(10, alphanumeric),
    ),
    token("stripe-webhook-secret", &["whsec_"], at_least(16, base64)),
    token("square-token", &["sq0atp-", "sq0csp-"], at_least(20, word)),
    token("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_"], at_least(24, hex)),
    token("sendgrid-key", &["SG."], at_least(40, dotted)),
    token(
        "slack-token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxc-", "xoxd-", "xoxe.", "xapp-"],
        at_least(8, percent_encoded),
    ),
    custom("slack-webhook", &["hooks.slack.com/"], webhook),
    custom("discord-webhook", &["discord.com/api/webhooks/"], webhook),
    custom("telegram-token", &[":AA"], telegram_bot),
    // Watching
    token("sentry-token", &["sntrys_", "sntryu_"], at_least(24, base64)),
    token("newrelic-key", &["NRAK-"], at_least(20, alphanumeric)),
    token("grafana-token", &["glsa_", "glc_"], at_least(24, base64)),
    token("posthog-key", &["phx_"], at_least(24, alphanumeric)),
    // Formats
    token("age-key", &["AGE-SECRET-KEY-1"], at_least(40, upper)),
    token("onepassword-token", &["ops_eyJ"], at_least(40, base64_url)),
    custom("jwt", &["eyJ"], jwt),
    custom("private-key", &["-----BEGIN "], private_key),
    custom("url-password", &["://"], url_password),
    custom("bearer-token", &["bearer "], bearer),
    custom("curl", &[" -u", " -s", " -f", " -k", " -l", " -v", " -i", "-user", " -b"], curl),
    custom("netrc", &["password"], netrc),
    // Anything under a telling name; the rule named in the placeholder is the name's kind.
    custom(
        "assignment",
        &[
            "pass",
            "pwd",
            "secret",
            "token",
            "key",
            "authorization",
            "auth",
            "jwt",
            "credential",
            "cookie",
        ],
        assignment,
    ),
];

impl Rule {
    /// Whether the text goes on with this trigger, minding letter case only where the rule does.
    pub(super) fn is_trigger(&self, rest: &[u8], trigger: &str) -> bool {
        let trigger = trigger.as_bytes();
        match self.shape {
            Shape::Token(_) => rest.starts_with(trigger),
            Shape::Custom(_) => {
                rest.get(..trigger.len()).is_some_and(|given| given.eq_ignore_ascii_case(trigger))
            }
        }
    }

    /// The secret whose trigger of `length` bytes stands at `at`.
    pub(super) fn check(&self, text: &[u8], at: usize, length: usize) -> Option<Found> {
        match self.shape {
            Shape::Token(token) => {
                let end = token.end(text, at, at + length)?;
                Some(Found { start: at, end, rule: self.name })
            }
            Shape::Custom(check) => check(text, at),
        }
    }
}

impl Token {
    /// Only the first `bytes_min` bytes decide, and the rest is taken when they do: a prefix repeated
    /// over megabytes costs no more than its length.
    fn end(self, text: &[u8], start: usize, body: usize) -> Option<usize> {
        let first = text.get(body..body + self.bytes_min)?;
        if !starts_word(text, start) || !first.iter().all(|&byte| (self.body)(byte)) {
            return None;
        }
        if is_filler(first) {
            return None;
        }
        if self.exact {
            let end = body + self.bytes_min;
            return text.get(end).is_none_or(|byte| !byte.is_ascii_alphanumeric()).then_some(end);
        }
        Some(body + self.bytes_min + run(&text[body + self.bytes_min..], self.body))
    }
}

/// Whether a word can start here: behind no letter or digit, except one that is part of an escape such
/// as the `n` of `\n`, for JSON within a text.
pub(super) fn starts_word(text: &[u8], at: usize) -> bool {
    match &text[..at] {
        [] | [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., b'\\', b'u', a, b, c, d]
            if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            true
        }
        [.., before] => !before.is_ascii_alphanumeric(),
    }
}

/// `xxxxxxxx`, as documents write where a token goes.
pub(super) fn is_filler(body: &[u8]) -> bool {
    body.iter().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.' | b'_' | b'-' | b':' | b'0'))
}

/// How many bytes from the start are of a class.
pub(super) fn run(bytes: &[u8], class: fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !class(byte)).unwrap_or(bytes.len())
}

pub(super) fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn dotted(byte: u8) -> bool {
    word(byte) || byte == b'.'
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'-'
}

pub(super) fn base64(byte: u8) -> bool {
    word(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn base64_url(byte: u8) -> bool {
    word(byte) || byte == b'='
}

fn percent_encoded(byte: u8) -> bool {
    base64(byte) || byte == b'%' || byte == b'.'
}

const fn token(name: &'static str, triggers: &'static [&'static str], token: Token) -> Rule {
    Rule { name, triggers, shape: Shape::Token(token) }
}

const fn custom(
    name: &'static str,
    triggers: &'static [&'static str],
    check: fn(&[u8], usize) -> Option<Found>,
) -> Rule {
    Rule { name, triggers, shape: Shape::Custom(check) }
}

const fn at_least(bytes_min: usize, body: fn(u8) -> bool) -> Token {
    Token { body, bytes_min, exact: false }
}

const fn exactly(bytes: usize, body: fn(u8) -> bool) -> Token {
    Token { body, bytes_min: bytes, exact: true }
}
