//! What time it is: now, or whenever a test says.

use std::{env, fs};

use jiff::{Timestamp, tz::TimeZone};

use crate::environment::Environment;

/// The clock every command and hook reads.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    fixed: Option<Timestamp>,
}

impl Clock {
    /// The system's clock, unless `CLAUDE_MEM_NOW` holds a moment such as `2026-03-01T12:00:00Z`, at which
    /// it then stands still. That is for demonstrations and tests, whose output must not change by the day.
    pub fn new(environment: &Environment) -> Self {
        Self { fixed: environment.text("CLAUDE_MEM_NOW").and_then(|text| text.parse().ok()) }
    }

    /// This moment.
    pub fn now(self) -> Timestamp {
        self.fixed.unwrap_or_else(Timestamp::now)
    }
}

/// The zone that times are shown in. A hook has no time to look through the whole database of zones, which
/// is what finding the name of the system's takes, so its file is read as it is.
pub fn zone() -> TimeZone {
    let local = || TimeZone::tzif("Local", &fs::read("/etc/localtime").ok()?).ok();
    match env::var_os("TZ") {
        Some(_) => TimeZone::system(),
        None => local().unwrap_or(TimeZone::UTC),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stands_still_when_told_and_runs_when_told_nonsense() {
        let moment = "2026-03-01T12:00:00Z";
        let clock = Clock::new(&Environment::fixed(&[("CLAUDE_MEM_NOW", moment)]));
        assert_eq!(clock.now().to_string(), moment);
        let clock = Clock::new(&Environment::fixed(&[("CLAUDE_MEM_NOW", "noon")]));
        assert!(clock.now() <= Timestamp::now());
    }
}
