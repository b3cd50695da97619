//! The clock: the system's, or a fixed time in tests.

use std::{env, fs};

use jiff::{Timestamp, tz::TimeZone};

use crate::environment::Environment;

/// The clock of every command and hook.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    fixed: Option<Timestamp>,
}

impl Clock {
    /// The system's clock. `CLAUDE_MEM_NOW`, such as `2026-03-01T12:00:00Z`, fixes the time for
    /// demos and tests.
    pub fn new(environment: &Environment) -> Self {
        Self { fixed: environment.text("CLAUDE_MEM_NOW").and_then(|text| text.parse().ok()) }
    }

    /// The current time.
    pub fn now(self) -> Timestamp {
        self.fixed.unwrap_or_else(Timestamp::now)
    }
}

/// The time zone for output. Finding the name of the system's zone means scanning the zone
/// database, which is too slow for a hook, so its file is read directly.
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
    fn a_fixed_clock_stands_still_and_an_invalid_setting_is_ignored() {
        let moment = "2026-03-01T12:00:00Z";
        let clock = Clock::new(&Environment::fixed(&[("CLAUDE_MEM_NOW", moment)]));
        assert_eq!(clock.now().to_string(), moment);
        let clock = Clock::new(&Environment::fixed(&[("CLAUDE_MEM_NOW", "noon")]));
        assert!(clock.now() <= Timestamp::now());
    }
}
