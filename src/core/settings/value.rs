//! What a setting accepts, and the text it is kept as.

/// The kinds of values. All are kept as text, as the TypeScript claude-mem keeps them.
#[derive(Debug, PartialEq)]
pub enum Kind {
    /// Anything on one line.
    Text,
    /// Anything on one line; never shown, kept in `.env`, where it may also go by this other name.
    Secret(&'static str),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number between these two.
    Count(u64, u64),
    /// An amount of money.
    Money,
    /// Words between commas.
    List,
}

impl Kind {
    /// What to write in JSON.
    pub fn accepted_types(&self) -> &'static str {
        match self {
            Self::List => "text, or a list of texts",
            _ => "text, a number, `true` or `false`",
        }
    }

    /// The value as it should be kept, or what would have been accepted.
    pub fn check(&self, text: &str) -> Result<String, String> {
        let text = text.trim();
        if text.contains(['\n', '\r', '\0']) {
            return Err("one line".into());
        }
        match self {
            Self::Text | Self::Secret(_) => Ok(text.into()),
            Self::Flag => flag(text).map(|on| on.to_string()).ok_or("`true` or `false`".into()),
            Self::Choice(words) => words
                .iter()
                .find(|word| word.eq_ignore_ascii_case(text))
                .map(ToString::to_string)
                .ok_or_else(|| one_of(words)),
            Self::Count(min, max) => text
                .parse::<u64>()
                .ok()
                .filter(|number| (min..=max).contains(&number))
                .map(|number| number.to_string())
                .ok_or_else(|| between(*min, *max)),
            Self::Money => text
                .trim_start_matches('$')
                .parse::<f64>()
                .ok()
                .filter(|amount| amount.is_finite() && *amount >= 0.0)
                .map(|amount| amount.to_string())
                .ok_or("an amount in US dollars such as `2.50`".into()),
            Self::List => Ok(words(text).collect::<Vec<_>>().join(",")),
        }
    }
}

/// What people write for yes and no.
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

/// The words of a list, without the white space around them.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    format!("one of {}", quoted.join(", "))
}

fn between(min: u64, max: u64) -> String {
    if max == u64::MAX {
        format!("a whole number, at least {min}")
    } else {
        format!("a whole number from {min} to {max}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_and_tidied() {
        let cases = [
            (Kind::Flag, " Yes ", Ok("true")),
            (Kind::Flag, "maybe", Err("`true` or `false`")),
            (Kind::Choice(&["auto", "claude"]), "CLAUDE", Ok("claude")),
            (Kind::Choice(&["auto", "claude"]), "gpt", Err("one of `auto`, `claude`")),
            (Kind::Count(1, 64), "064", Ok("64")),
            (Kind::Count(1, 64), "65", Err("a whole number from 1 to 64")),
            (Kind::Count(0, u64::MAX), "-1", Err("a whole number, at least 0")),
            (Kind::Money, "$2.50", Ok("2.5")),
            (Kind::Money, "NaN", Err("an amount in US dollars such as `2.50`")),
            (Kind::List, " a ,, b ", Ok("a,b")),
            (Kind::Text, "two\nlines", Err("one line")),
        ];
        for (kind, text, expected) in cases {
            let checked = kind.check(text);
            assert_eq!(checked.as_deref().map_err(String::as_str), expected, "{kind:?} {text}");
        }
    }
}
