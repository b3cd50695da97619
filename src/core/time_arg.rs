//! Times as people write them: `2026-03-01`, `2026-03-01 14:30`, `3d`, `yesterday`.

use std::{fmt, str::FromStr};

use jiff::{
    Span, Timestamp, ToSpan, Zoned,
    civil::{Date, DateTime},
    tz::TimeZone,
};

/// A time or a day as a user wrote it. Its meaning depends on the current time and the time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct When(TimeArg);

#[derive(Debug, Clone)]
enum TimeArg {
    Instant(Timestamp),
    Local(DateTime),
    Day(Date),
    DaysAgo(i64),
    Ago(Span),
}

impl PartialEq for TimeArg {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Instant(left), Self::Instant(right)) => left == right,
            (Self::Local(left), Self::Local(right)) => left == right,
            (Self::Day(left), Self::Day(right)) => left == right,
            (Self::DaysAgo(left), Self::DaysAgo(right)) => left == right,
            (Self::Ago(left), Self::Ago(right)) => left.fieldwise() == right.fieldwise(),
            _ => false,
        }
    }
}

/// The text is not a time.
#[derive(Debug, PartialEq)]
pub struct InvalidTime;

impl fmt::Display for InvalidTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write it like `2026-03-01`, `2026-03-01 14:30`, `3d`, `12h` or `yesterday`")
    }
}

impl std::error::Error for InvalidTime {}

impl FromStr for When {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let text = text.trim();
        let keyword = match text {
            "now" => Some(TimeArg::Ago(Span::new())),
            "today" => Some(TimeArg::DaysAgo(0)),
            "yesterday" => Some(TimeArg::DaysAgo(1)),
            _ => None,
        };
        // A date also parses as a time, so it is tried first.
        let is_date_only = text.len() == "2026-03-01".len();
        keyword
            .or_else(|| Some(TimeArg::Day(text.parse().ok().filter(|_| is_date_only)?)))
            .or_else(|| Some(TimeArg::Instant(text.parse().ok()?)))
            .or_else(|| Some(TimeArg::Instant(text.parse::<Zoned>().ok()?.timestamp())))
            .or_else(|| Some(TimeArg::Local(text.parse().ok()?)))
            .or_else(|| Some(TimeArg::Ago(text.parse::<Span>().ok()?.abs())))
            .map(Self)
            .ok_or(InvalidTime)
    }
}

/// The time range options of a command.
#[derive(Debug, Clone, clap::Args)]
pub struct TimeRange {
    /// Only from this time on, such as `2026-03-01` or `3d`
    #[arg(long, value_name = "WHEN")]
    pub since: Option<When>,
    /// Only before this time; a day is included
    #[arg(long, value_name = "WHEN")]
    pub until: Option<When>,
}

impl TimeRange {
    /// The start in microseconds since 1970.
    pub fn since_us(&self, now: Timestamp) -> Option<u64> {
        self.since.as_ref().map(|when| when.start_us(now))
    }

    /// The end in microseconds since 1970.
    pub fn until_us(&self, now: Timestamp) -> Option<u64> {
        self.until.as_ref().map(|when| when.end_us(now))
    }
}

/// An RFC 3339 timestamp in UTC, as every JSON output has it.
pub fn rfc3339(at_us: u64) -> String {
    Timestamp::from_microsecond(at_us.cast_signed()).unwrap_or_default().to_string()
}

/// A time in the user's time zone, in a format of `strftime`.
pub fn local(at_us: u64, format: &str) -> String {
    let time = Timestamp::from_microsecond(at_us.cast_signed()).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// Microseconds since 1970; 0 for earlier times.
pub fn micros(moment: Timestamp) -> u64 {
    u64::try_from(moment.as_microsecond()).unwrap_or(0)
}

impl When {
    /// A time in a request of a program: as people write it, or in seconds or milliseconds since
    /// 1970.
    pub fn from_api(text: &str) -> Result<Self, InvalidTime> {
        let Ok(number) = text.trim().parse::<i64>() else { return text.parse() };
        // A number that would be after the year 5000 in seconds counts milliseconds.
        let is_seconds = number < 100_000_000_000;
        let milliseconds = if is_seconds { number.saturating_mul(1000) } else { number };
        let time = Timestamp::from_millisecond(milliseconds).map_err(|_| InvalidTime)?;
        Ok(Self(TimeArg::Instant(time)))
    }

    /// [`When::start`] in microseconds since 1970.
    pub fn start_us(&self, now: Timestamp) -> u64 {
        micros(self.start(now))
    }

    /// [`When::end`] in microseconds since 1970.
    pub fn end_us(&self, now: Timestamp) -> u64 {
        micros(self.end(now))
    }

    /// The time as the start of a range. A day starts at midnight, local time.
    pub fn start(&self, now: Timestamp) -> Timestamp {
        self.resolve(&now.to_zoned(TimeZone::system()), 0)
    }

    /// The time as the exclusive end of a range. A day ends at the next midnight.
    pub fn end(&self, now: Timestamp) -> Timestamp {
        self.resolve(&now.to_zoned(TimeZone::system()), 1)
    }

    fn resolve(&self, now: &Zoned, days_after: i64) -> Timestamp {
        let zone = now.time_zone();
        let midnight = |date: Date| {
            let date = date.saturating_add(days_after.days());
            date.to_zoned(zone.clone()).map(|midnight| midnight.timestamp())
        };
        let moment = match &self.0 {
            TimeArg::Instant(moment) => Ok(*moment),
            TimeArg::Local(local) => local.to_zoned(zone.clone()).map(|moment| moment.timestamp()),
            TimeArg::Day(date) => midnight(*date),
            TimeArg::DaysAgo(days) => midnight(now.date().saturating_sub(days.days())),
            TimeArg::Ago(span) => now.checked_sub(*span).map(|moment| moment.timestamp()),
        };
        // Only times outside the calendar's range cannot be resolved.
        moment.unwrap_or(Timestamp::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, days_after: i64) -> String {
        // Berlin's rules in POSIX form: not every machine has a zone database.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now = jiff::civil::date(2026, 3, 29).at(12, 0, 0, 0).to_zoned(zone).unwrap();
        text.parse::<When>().unwrap().resolve(&now, days_after).to_string()
    }

    #[test]
    fn times_are_resolved_in_the_local_time_zone() {
        let cases = [
            ("2026-03-01", "2026-02-28T23:00:00Z"),
            ("2026-03-01 14:30", "2026-03-01T13:30:00Z"),
            ("2026-03-01T14:30:15", "2026-03-01T13:30:15Z"),
            ("2026-03-01T14:30:00Z", "2026-03-01T14:30:00Z"),
            ("2026-03-01T14:30:00+05:00", "2026-03-01T09:30:00Z"),
            ("12h", "2026-03-28T22:00:00Z"),
            // The clock was set forward that night: a day ago is the same time of day.
            ("1d", "2026-03-28T11:00:00Z"),
            ("2w", "2026-03-15T11:00:00Z"),
            ("1h 30m", "2026-03-29T08:30:00Z"),
            ("3 days ago", "2026-03-26T11:00:00Z"),
            ("today", "2026-03-28T23:00:00Z"),
            ("yesterday", "2026-03-27T23:00:00Z"),
            ("now", "2026-03-29T10:00:00Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(resolve(text, 0), expected, "{text}");
        }
    }

    #[test]
    fn a_day_as_an_end_is_included() {
        assert_eq!(resolve("2026-03-01", 1), "2026-03-01T23:00:00Z");
        assert_eq!(resolve("today", 1), "2026-03-29T22:00:00Z");
        assert_eq!(resolve("12h", 1), resolve("12h", 0));
    }

    #[test]
    fn invalid_times_are_rejected_and_the_far_past_is_not() {
        for text in ["", "soon", "2026-13-01", "3", "d", "2026", "--"] {
            assert_eq!(text.parse::<When>(), Err(InvalidTime), "{text}");
        }
        assert_eq!(resolve("15000y", 0), Timestamp::MIN.to_string());
    }
}
