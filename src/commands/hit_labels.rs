//! Search hits as lines, for `search`, `timeline` and `show`.

use claude_mem_projections::search::{Hit, Kind, Query};
use jiff::Timestamp;

use claude_mem_core::{app::Output, time_arg::micros};

/// Age as `now`, `5m`, `3h`, `12d`, `7w` or `2y`.
pub(crate) fn ago(at_us: u64, now: Timestamp) -> String {
    let seconds = micros(now).saturating_sub(at_us) / 1_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match () {
        () if minutes == 0 => "now".into(),
        () if hours == 0 => format!("{minutes}m"),
        () if days == 0 => format!("{hours}h"),
        () if days < 60 => format!("{days}d"),
        () if days < 730 => format!("{}w", days / 7),
        () => format!("{}y", days / 365),
    }
}

pub(crate) fn label(hit: &Hit) -> &str {
    match hit.kind {
        Kind::Observation => hit.type_.as_deref().unwrap_or("note"),
        kind => kind.name(),
    }
}

pub(crate) fn colour(hit: &Hit) -> &'static str {
    match (hit.kind, hit.type_.as_deref()) {
        (Kind::Prompt, _) => "36",
        (Kind::Summary, _) => "35",
        (_, Some("bugfix")) => "31",
        (_, Some("feature")) => "32",
        (_, Some("decision" | "rule")) => "33",
        _ => "34",
    }
}

/// The text on one line, without terminal control characters.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The text with the query's words in bold.
pub(crate) fn marked(query: &Query, text: &str, output: &Output) -> String {
    let mut out = String::new();
    let mut at = 0;
    for mark in query.marks(text) {
        out.push_str(&text[at..mark.start]);
        out.push_str(&output.paint("1;33", &text[mark.clone()]));
        at = mark.end;
    }
    out + &text[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_fitting_unit() {
        let now = Timestamp::from_second(1_000_000_000).unwrap();
        let table =
            [(0, "now"), (59, "now"), (60, "1m"), (7200, "2h"), (86400, "1d"), (86400 * 70, "10w")];
        for (seconds, text) in table {
            assert_eq!(ago((1_000_000_000 - seconds) * 1_000_000, now), text);
        }
        assert_eq!(ago((1_000_000_000 - 86400 * 800) * 1_000_000, now), "2y");
        assert_eq!(ago(2_000_000_000_000_000, now), "now");
    }

    #[test]
    fn lines_hold_nothing_that_moves_the_cursor() {
        assert_eq!(plain("a\u{1b}[31m\nb"), "a [31m b");
    }
}
