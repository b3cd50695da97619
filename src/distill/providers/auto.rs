//! `auto`: the best provider that answers.
//!
//! Which one does is known only by asking. So the first one that is set up is asked; if its login or its
//! account fails, that is recorded as a failed request, and the next one is asked, down to the built-in rules.
//! What is recorded also says when the better one is worth another request, for every process alike.

use std::{fs, path::Path, time::UNIX_EPOCH};

use claude_mem_projections::Outage;

use super::{Setup, claude};
use claude_mem_core::settings::{ProviderName, Setting, Source, table};

/// The built-in provider, which is always available.
pub const RULES: &str = ProviderName::Extract.name();

/// How long a provider rests after the first failure; the rest doubles with each further one.
const REST_US: u64 = 15 * 60 * 1_000_000;
/// The same for an account that is empty.
const QUOTA_REST_US: u64 = 60 * 60 * 1_000_000;
/// No rest of our own choosing is longer.
const REST_MAX_US: u64 = 6 * 60 * 60 * 1_000_000;

/// The providers that are set up, the best first. The rules are always the last.
pub fn candidates(setup: &Setup<'_>) -> Vec<&'static str> {
    let set = |setting: &Setting<String>| !setup.settings.get(setting).is_empty();
    let is_elsewhere = setup.settings.find(&table::OPENAI_BASE_URL).1 != Source::Default;
    let has_openai = set(&table::OPENAI_MODEL) && (set(&table::OPENAI_API_KEY) || is_elsewhere);
    let is_set_up = |provider: &&ProviderName| match provider {
        ProviderName::Auto => false,
        ProviderName::Claude => claude::answers(setup),
        ProviderName::Anthropic => set(&table::ANTHROPIC_API_KEY),
        ProviderName::OpenAi => has_openai,
        ProviderName::Extract => true,
    };
    ProviderName::ALL.iter().filter(is_set_up).map(|provider| provider.name()).collect()
}

/// The first of them that is not out.
pub fn choose(candidates: &[&'static str], outages: &[Outage], now_us: u64) -> &'static str {
    let is_out = |name: &str| {
        outages.iter().any(|outage| outage.provider == name && now_us < retry_at_us(outage))
    };
    candidates.iter().find(|name| !is_out(name)).copied().unwrap_or(RULES)
}

/// When a provider that is out is asked again.
pub fn retry_at_us(outage: &Outage) -> u64 {
    let first = if outage.class == "quota" { QUOTA_REST_US } else { REST_US };
    let doublings = outage.attempts.saturating_sub(1).min(16);
    let rest = (first << doublings).min(REST_MAX_US);
    outage.at_us.saturating_add(rest.max(outage.retry_after_ms.saturating_mul(1000)))
}

/// When the user last changed something that a login may depend on. Failures before that say nothing.
pub fn changed_us(setup: &Setup<'_>) -> u64 {
    let home = setup.paths.home.as_deref();
    let login = home.map(|home| home.join(".claude/.credentials.json"));
    let files = [Some(setup.paths.settings()), Some(setup.paths.credentials()), login];
    files.iter().flatten().filter_map(|file| modified_us(file)).max().unwrap_or(0)
}

fn modified_us(file: &Path) -> Option<u64> {
    let modified = fs::metadata(file).ok()?.modified().ok()?;
    u64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()
}

/// The remedy for an outage, with commands ready to paste.
pub fn remedy(provider: &str, class: &str) -> String {
    let help = match (ProviderName::find(provider), class) {
        (Some(ProviderName::Claude), "auth") => {
            "log in with `claude /login`, or use an API key: `claude-mem settings set \
             CLAUDE_MEM_ANTHROPIC_API_KEY KEY` and `claude-mem settings set \
             CLAUDE_MEM_CLAUDE_AUTH_METHOD api-key`"
        }
        (Some(ProviderName::Anthropic), "auth") => {
            "set another key with `claude-mem settings set CLAUDE_MEM_ANTHROPIC_API_KEY KEY`"
        }
        (Some(ProviderName::OpenAi), "auth") => {
            "set another key with `claude-mem settings set CLAUDE_MEM_OPENAI_API_KEY KEY`"
        }
        (_, "quota") => {
            "add credit, or choose another provider with `claude-mem settings set \
             CLAUDE_MEM_PROVIDER NAME`"
        }
        (_, "invalid") => {
            "check the model and the path in `claude-mem settings`, or choose another provider with \
             `claude-mem settings set CLAUDE_MEM_PROVIDER NAME`"
        }
        _ => "choose another provider with `claude-mem settings set CLAUDE_MEM_PROVIDER NAME`",
    };
    format!("{help}; then `claude-mem retry`")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60 * 1_000_000;

    fn outage(provider: &str, class: &str, attempts: u32) -> Outage {
        let (provider, class, message) = (provider.into(), class.into(), String::new());
        Outage { provider, class, message, at_us: 0, attempts, retry_after_ms: 0 }
    }

    #[test]
    fn who_is_out_is_passed_over_until_its_rest_is_over() {
        let all = ["claude", "anthropic", RULES];
        let claude = outage("claude", "auth", 1);
        let anthropic = outage("anthropic", "quota", 1);
        let chosen = |outages: &[Outage], minute| choose(&all, outages, minute * MINUTE);
        assert_eq!(chosen(&[], 0), "claude");
        assert_eq!(chosen(std::slice::from_ref(&claude), 14), "anthropic");
        let both = [claude, anthropic];
        assert_eq!(chosen(&both, 14), RULES);
        assert_eq!(chosen(&both, 15), "claude");
        assert_eq!(choose(&[RULES], &both, 0), RULES);
    }

    #[test]
    fn a_rest_doubles_up_to_a_limit_and_is_as_long_as_the_provider_wants() {
        let rest = |class, attempts| retry_at_us(&outage("claude", class, attempts)) / MINUTE;
        assert_eq!([1, 2, 3, 9, u32::MAX].map(|n| rest("auth", n)), [15, 30, 60, 360, 360]);
        assert_eq!([1, 2, 9].map(|n| rest("quota", n)), [60, 120, 360]);
        let wanted = Outage { retry_after_ms: 600 * 60_000, ..outage("claude", "rate limit", 1) };
        assert_eq!(retry_at_us(&wanted) / MINUTE, 600);
    }
}
