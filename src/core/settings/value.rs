//! The types a setting can have: how each is read from text and written as text.
//!
//! All values are stored as text, as the TypeScript claude-mem stores them.

use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf};

/// A type of settings.
pub trait SettingValue: Sized + 'static {
    /// The default as a constant, with the limits of the type if it has any.
    type Spec: Copy + Send + Sync + 'static;
    /// The default.
    fn of_spec(spec: Self::Spec) -> Self;
    /// Parses one trimmed line, or returns the accepted values.
    fn parse(spec: Self::Spec, text: &str) -> Result<Self, String>;
    /// The text that is stored and shown.
    fn to_text(&self) -> String;
    /// The accepted values, for front ends.
    fn kind(spec: Self::Spec) -> Kind;
}

/// The accepted values, independent of the Rust type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// One line of text.
    Text,
    /// One line of text that is never shown. Stored in `.env`, where it can also have this other
    /// name.
    Secret(&'static str),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [Choice]),
    /// A whole number in this range.
    Count(u64, u64),
    /// An amount of money.
    Money,
    /// Words separated by commas.
    List,
}

impl Kind {
    /// The accepted values in words; `None` if any line is.
    pub fn accepted(&self) -> Option<String> {
        match self {
            Self::Flag => Some("`true` or `false`".into()),
            Self::Count(min, max) => Some(between(*min, *max)),
            Self::Money => Some("an amount in US dollars such as `2.50`".into()),
            Self::Choice(choices) => {
                let names = choices.iter().map(|choice| format!("`{}`", choice.name));
                Some(format!("one of {}", names.collect::<Vec<_>>().join(", ")))
            }
            Self::Text | Self::Secret(_) | Self::List => None,
        }
    }

    /// The JSON types that are accepted.
    pub(crate) fn accepted_types(&self) -> &'static str {
        match self {
            Self::List => "text, or a list of texts without commas",
            _ => "text, a number, `true` or `false`",
        }
    }
}

/// One of the words that a setting accepts.
#[derive(Debug, PartialEq)]
pub struct Choice {
    /// The word as written.
    pub name: &'static str,
    /// Its description.
    pub description: &'static str,
}

impl SettingValue for bool {
    type Spec = bool;
    fn of_spec(spec: bool) -> Self {
        spec
    }
    fn parse(_: bool, text: &str) -> Result<Self, String> {
        flag(text).ok_or_else(|| Kind::Flag.accepted().unwrap_or_default())
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
    fn kind(_: bool) -> Kind {
        Kind::Flag
    }
}

/// The default and the limits of a whole number.
#[derive(Debug, Clone, Copy)]
pub struct Count<N> {
    default: N,
    min: N,
    max: N,
}

pub(super) const fn count<N: Copy>(default: N, range: RangeInclusive<N>) -> Count<N> {
    Count { default, min: *range.start(), max: *range.end() }
}

macro_rules! count_values {
    ($($type:ident)*) => {
        $(#[allow(clippy::cast_lossless, reason = "`From` is not there for all of these types")]
        impl SettingValue for $type {
            type Spec = Count<$type>;
            fn of_spec(spec: Count<$type>) -> Self {
                spec.default
            }
            fn parse(spec: Count<$type>, text: &str) -> Result<Self, String> {
                let number = text.parse().ok();
                let is_within = |number: &Self| (spec.min..=spec.max).contains(number);
                number
                    .filter(is_within)
                    .ok_or_else(|| between(spec.min as u64, spec.max as u64))
            }
            fn to_text(&self) -> String {
                self.to_string()
            }
            fn kind(Count { min, max, .. }: Count<$type>) -> Kind {
                Kind::Count(min as u64, max as u64)
            }
        })*
    };
}
count_values! { u16 u32 u64 usize }

fn between(min: u64, max: u64) -> String {
    match max {
        u64::MAX => format!("a whole number, at least {min}"),
        _ => format!("a whole number from {min} to {max}"),
    }
}

/// US dollars.
impl SettingValue for f64 {
    type Spec = f64;
    fn of_spec(spec: f64) -> Self {
        spec
    }
    fn parse(_: f64, text: &str) -> Result<Self, String> {
        let amount = text.trim_start_matches('$').parse().ok();
        amount
            .filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)
            .ok_or_else(|| Kind::Money.accepted().unwrap_or_default())
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
    fn kind(_: f64) -> Kind {
        Kind::Money
    }
}

/// The default of a text, or the other name of a secret, which has no default.
#[derive(Debug, Clone, Copy)]
pub enum Text {
    Plain(&'static str),
    Secret(&'static str),
}

impl SettingValue for String {
    type Spec = Text;
    fn of_spec(spec: Text) -> Self {
        match spec {
            Text::Plain(default) => default.into(),
            Text::Secret(_) => Self::new(),
        }
    }
    fn parse(_: Text, text: &str) -> Result<Self, String> {
        Ok(text.into())
    }
    fn to_text(&self) -> String {
        self.clone()
    }
    fn kind(spec: Text) -> Kind {
        match spec {
            Text::Plain(_) => Kind::Text,
            Text::Secret(other_name) => Kind::Secret(other_name),
        }
    }
}

impl SettingValue for Vec<String> {
    type Spec = &'static [&'static str];
    fn of_spec(spec: Self::Spec) -> Self {
        spec.iter().map(ToString::to_string).collect()
    }
    fn parse(_: Self::Spec, text: &str) -> Result<Self, String> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        Ok(words.map(str::to_owned).collect())
    }
    fn to_text(&self) -> String {
        self.join(",")
    }
    fn kind(_: Self::Spec) -> Kind {
        Kind::List
    }
}

impl SettingValue for Option<PathBuf> {
    type Spec = ();
    fn of_spec((): ()) -> Self {
        None
    }
    fn parse((): (), text: &str) -> Result<Self, String> {
        Ok((!text.is_empty()).then(|| text.into()))
    }
    fn to_text(&self) -> String {
        self.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    }
    fn kind((): ()) -> Kind {
        Kind::Text
    }
}

impl SettingValue for IpAddr {
    type Spec = IpAddr;
    fn of_spec(spec: IpAddr) -> Self {
        spec
    }
    fn parse(_: IpAddr, text: &str) -> Result<Self, String> {
        let text = if text == "localhost" { "127.0.0.1" } else { text };
        let address = text.trim_matches(['[', ']']).parse();
        address.map_err(|_| "an IP address such as `127.0.0.1`, or `localhost`".into())
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
    fn kind(_: IpAddr) -> Kind {
        Kind::Text
    }
}

/// Declares an enum for a setting that accepts a few words, each with its description.
macro_rules! choices {
    ($(#[$about:meta])* $type:ident { $($variant:ident: $name:literal, $description:literal;)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type {
            $(#[doc = $description] $variant,)*
        }
        impl $type {
            /// Every choice, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),*];
            const CHOICES: &[Choice] = &[$(Choice { name: $name, description: $description }),*];
            /// Its name in settings, events and the command line.
            pub const fn name(self) -> &'static str {
                Self::CHOICES[self as usize].name
            }
            /// Its description.
            pub const fn description(self) -> &'static str {
                Self::CHOICES[self as usize].description
            }
            /// The choice of that name; case does not matter.
            pub fn find(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|choice| choice.name().eq_ignore_ascii_case(name)).copied()
            }
        }
        impl SettingValue for $type {
            type Spec = Self;
            fn of_spec(spec: Self) -> Self {
                spec
            }
            fn parse(_: Self, text: &str) -> Result<Self, String> {
                let accepted = Kind::Choice(Self::CHOICES).accepted();
                Self::find(text).ok_or_else(|| accepted.unwrap_or_default())
            }
            fn to_text(&self) -> String {
                self.name().into()
            }
            fn kind(_: Self) -> Kind {
                Kind::Choice(Self::CHOICES)
            }
        }
    };
}

choices! {
    /// The provider that distills. The only list of providers, in the order of preference of
    /// `auto`.
    ProviderName {
        Auto: "auto", "the first of the others that works";
        Claude: "claude", "Claude Code with its own login";
        Anthropic: "anthropic", "the Anthropic API with a key";
        OpenAi: "openai", "any OpenAI-compatible API";
        Extract: "extract", "built-in rules, without a model or network";
    }
}

impl clap::ValueEnum for ProviderName {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }
    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()).help(self.description()))
    }
}

choices! {
    /// When tool uses are flushed to the disk.
    SyncMode {
        Default: "default", "within a second";
        Always: "always", "before the hook returns";
    }
}

choices! {
    /// The login of the provider `claude`.
    ClaudeAuth {
        Subscription: "subscription", "the login of Claude Code";
        ApiKey: "api-key", "the Anthropic API key";
    }
}

choices! {
    /// The verbosity: what is worth remembering.
    Verbosity {
        Minimal: "minimal", "lasting results";
        Normal: "normal", "what a successor would want to know";
        Verbose: "verbose", "also small findings and dead ends";
    }
}

/// The usual words for yes and no.
pub fn flag(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["true", "1", "yes", "on"]) {
        Some(true)
    } else if is(&["false", "0", "no", "off"]) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tidied<T: SettingValue>(spec: T::Spec, text: &str) -> Result<String, String> {
        T::parse(spec, text).map(|value| value.to_text())
    }

    #[test]
    fn values_are_checked_and_tidied() {
        let small = count(1, 1..=64);
        let any = count(0, 0..=u64::MAX);
        let host = IpAddr::from([127, 0, 0, 1]);
        let money = "an amount in US dollars such as `2.50`";
        let address = "an IP address such as `127.0.0.1`, or `localhost`";
        let words = "one of `default`, `always`";
        for (tidied, expected) in [
            (tidied::<bool>(true, "Yes"), Ok("true")),
            (tidied::<bool>(true, "maybe"), Err("`true` or `false`")),
            (tidied::<SyncMode>(SyncMode::Default, "ALWAYS"), Ok("always")),
            (tidied::<SyncMode>(SyncMode::Default, "often"), Err(words)),
            (tidied::<u64>(small, "064"), Ok("64")),
            (tidied::<u64>(small, "65"), Err("a whole number from 1 to 64")),
            (tidied::<u64>(any, "-1"), Err("a whole number, at least 0")),
            (tidied::<u16>(count(0, 0..=u16::MAX), "65536"), Err("a whole number from 0 to 65535")),
            (tidied::<f64>(2.0, "$2.50"), Ok("2.5")),
            (tidied::<f64>(2.0, "NaN"), Err(money)),
            (tidied::<Vec<String>>(&[], " a ,, b "), Ok("a,b")),
            (tidied::<Option<PathBuf>>((), "~/bin/claude"), Ok("~/bin/claude")),
            (tidied::<IpAddr>(host, "localhost"), Ok("127.0.0.1")),
            (tidied::<IpAddr>(host, "[::1]"), Ok("::1")),
            (tidied::<IpAddr>(host, "a b c"), Err(address)),
        ] {
            assert_eq!(tidied.as_deref().map_err(String::as_str), expected);
        }
    }
}
