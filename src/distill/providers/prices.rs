//! List prices, for providers that report no cost.
//!
//! A model that is not listed has no known price: its tokens are counted, its cost is not.

use super::Spent;

/// Millionths of a dollar per million tokens.
struct Price {
    family: &'static str,
    input: u64,
    cached: u64,
    output: u64,
}

const fn price(family: &'static str, input: u64, cached: u64, output: u64) -> Price {
    Price { family, input, cached, output }
}

/// The longest family that is a prefix of the model name applies.
const PRICES: &[Price] = &[
    price("claude-3-haiku", 250_000, 30_000, 1_250_000),
    price("claude-3-5-haiku", 800_000, 80_000, 4_000_000),
    price("claude-haiku-4-5", 1_000_000, 100_000, 5_000_000),
    price("claude-3-5-sonnet", 3_000_000, 300_000, 15_000_000),
    price("claude-3-7-sonnet", 3_000_000, 300_000, 15_000_000),
    price("claude-sonnet-4", 3_000_000, 300_000, 15_000_000),
    price("claude-opus-4", 15_000_000, 1_500_000, 75_000_000),
    price("claude-opus-4-5", 5_000_000, 500_000, 25_000_000),
    price("claude-opus-4-6", 5_000_000, 500_000, 25_000_000),
    price("gpt-4-1", 2_000_000, 500_000, 8_000_000),
    price("gpt-4-1-mini", 400_000, 100_000, 1_600_000),
    price("gpt-4-1-nano", 100_000, 25_000, 400_000),
    price("gpt-4o", 2_500_000, 1_250_000, 10_000_000),
    price("gpt-4o-mini", 150_000, 75_000, 600_000),
    price("gpt-5", 1_250_000, 125_000, 10_000_000),
    price("gpt-5-mini", 250_000, 25_000, 2_000_000),
    price("gpt-5-nano", 50_000, 5_000, 400_000),
    price("gemini-2-5-flash", 300_000, 75_000, 2_500_000),
    price("gemini-2-5-flash-lite", 100_000, 25_000, 400_000),
];

/// Cost in millionths of a dollar, rounded up so that no spending looks free. `written_to_cache`
/// are the `tokens_in` that Anthropic stores at a surcharge of a quarter.
pub(super) fn cost_micros(model: &str, spent: &Spent, written_to_cache: u64) -> Option<u64> {
    let price = find(model)?;
    let fresh =
        spent.tokens_in.saturating_sub(spent.tokens_cached.saturating_add(written_to_cache));
    let parts = [
        (fresh, price.input),
        (written_to_cache, price.input + price.input / 4),
        (spent.tokens_cached, price.cached),
        (spent.tokens_out, price.output),
    ];
    let total: u128 = parts.iter().map(|(n, each)| u128::from(*n) * u128::from(*each)).sum();
    u64::try_from(total.div_ceil(1_000_000)).ok()
}

fn find(model: &str) -> Option<&'static Price> {
    // Routers prefix the vendor and write `4.5` where the vendor writes `4-5`.
    let name = model.rsplit('/').next().unwrap_or(model).replace('.', "-");
    let is_of = |price: &&Price| {
        let rest = name.strip_prefix(price.family);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    PRICES.iter().filter(is_of).max_by_key(|price| price.family.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(tokens_in: u64, tokens_cached: u64, tokens_out: u64) -> Spent {
        Spent { tokens_in, tokens_cached, tokens_out, cost_micros: None }
    }

    #[test]
    fn cached_tokens_cost_less_and_stored_ones_more() {
        let cost = |spent, stored| cost_micros("claude-haiku-4-5-20251001", &spent, stored);
        assert_eq!(cost(spent(1_000_000, 0, 0), 0), Some(1_000_000));
        assert_eq!(cost(spent(1_000_000, 1_000_000, 0), 0), Some(100_000));
        assert_eq!(cost(spent(1_000_000, 0, 0), 1_000_000), Some(1_250_000));
        assert_eq!(cost(spent(0, 0, 1000), 0), Some(5000));
        assert_eq!(cost(spent(1, 1, 0), 0), Some(1), "rounded up");
        assert_eq!(cost(spent(u64::MAX, 0, u64::MAX), 0), None, "no wrapping round");
    }

    #[test]
    fn the_longest_family_prefix_determines_the_price() {
        let family = |model| find(model).map(|price| price.family);
        assert_eq!(family("anthropic/claude-haiku-4.5"), Some("claude-haiku-4-5"));
        assert_eq!(family("gpt-4.1-mini-2025-04-14"), Some("gpt-4-1-mini"));
        assert_eq!(family("claude-opus-4-1"), Some("claude-opus-4"));
        assert_eq!(family("claude-opus-4-5"), Some("claude-opus-4-5"));
        assert_eq!(family("gpt-4omega"), None);
        assert_eq!(family("qwen3:8b"), None);
    }
}
