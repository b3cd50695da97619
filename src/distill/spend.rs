//! Daily caps and the spending of today.

use claude_mem_projections::{Result, Store};
use jiff::tz::TimeZone;

use crate::providers::{Spent, policy::Caps};
use claude_mem_core::{
    clock::Clock,
    settings::{Settings, table},
};

pub fn caps(settings: &Settings) -> Caps {
    Caps {
        tokens_max: settings.get(&table::DAILY_TOKENS_MAX),
        cost_micros_max: (settings.get(&table::DAILY_COST_MAX) * 1e6).round() as u64,
    }
}

/// Spending of one day.
#[derive(Debug, Clone, Copy, Default)]
pub struct Today {
    pub spent: Spent,
    /// Cost of the most expensive request; `None` if there was none.
    pub largest: Option<Spent>,
}

/// Spending since local midnight.
pub fn spent_today(store: &Store, clock: Clock) -> Result<Today> {
    let now = clock.now().to_zoned(TimeZone::system());
    let midnight = now.start_of_day().map_or(now.timestamp(), |midnight| midnight.timestamp());
    let found = store.spent(midnight.as_microsecond().cast_unsigned())?;
    let spent =
        |tokens, cost| Spent { tokens_in: tokens, cost_micros: Some(cost), ..Spent::default() };
    Ok(Today {
        spent: spent(found.tokens, found.cost_micros),
        largest: (found.tokens_largest > 0)
            .then(|| spent(found.tokens_largest, found.cost_micros_largest)),
    })
}

/// Dollars, with four decimals below a cent.
pub fn dollars(micros: u64) -> String {
    let dollars = micros as f64 / 1e6;
    if micros > 0 && micros < 10_000 { format!("${dollars:.4}") } else { format!("${dollars:.2}") }
}

/// A token count: `1234`, `12.3k`, `4.5M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_and_tokens_are_short_and_never_look_free() {
        assert_eq!(
            [0, 1234, 10_000, 2_500_000].map(dollars),
            ["$0.00", "$0.0012", "$0.01", "$2.50"]
        );
        assert_eq!([0, 9999, 12_345, 4_500_000].map(tokens), ["0", "9999", "12.3k", "4.5M"]);
    }
}
