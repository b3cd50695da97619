//! `auto`: selects the best provider that works.
//!
//! Only a request shows whether a provider works. The first configured provider gets the request.
//! If its login or account fails, the failure is recorded and the next provider is used; the
//! built-in rules are the last. In every process, the recorded failure also determines when the
//! better provider is tried again.

use std::{fs, path::Path, time::UNIX_EPOCH};

use claude_mem_projections::Outage;

use super::{Setup, claude};
use claude_mem_core::settings::{ProviderName, Setting, Source, table};

/// The built-in provider, which is always available.
pub const RULES: &str = ProviderName::Extract.name();

/// Pause after the first failure; doubles with each further one.
const PAUSE_US: u64 = 15 * 60 * 1_000_000;
/// The same for an exhausted quota.
const QUOTA_PAUSE_US: u64 = 60 * 60 * 1_000_000;
/// Longest pause, unless the provider asks for a longer one.
const PAUSE_MAX_US: u64 = 6 * 60 * 60 * 1_000_000;

/// Configured providers, best first. The rules are always the last.
pub fn candidates(setup: &Setup<'_>) -> Vec<&'static str> {
    let set = |setting: &Setting<String>| !setup.settings.get(setting).is_empty();
    let has_own_url = setup.settings.find(&table::OPENAI_BASE_URL).1 != Source::Default;
    let has_openai = set(&table::OPENAI_MODEL) && (set(&table::OPENAI_API_KEY) || has_own_url);
    let is_set_up = |provider: &&ProviderName| match provider {
        ProviderName::Auto => false,
        ProviderName::Claude => claude::is_available(setup),
        ProviderName::Anthropic => set(&table::ANTHROPIC_API_KEY),
        ProviderName::OpenAi => has_openai,
        ProviderName::Extract => true,
    };
    ProviderName::ALL.iter().filter(is_set_up).map(|provider| provider.name()).collect()
}

/// The first candidate without a current outage.
pub fn choose(candidates: &[&'static str], outages: &[Outage], now_us: u64) -> &'static str {
    let is_out = |name: &str| {
        outages.iter().any(|outage| outage.provider == name && now_us < retry_at_us(outage))
    };
    candidates.iter().find(|name| !is_out(name)).copied().unwrap_or(RULES)
}

/// Time of the next attempt after an outage.
pub(crate) fn retry_at_us(outage: &Outage) -> u64 {
    let first = if outage.class == "quota" { QUOTA_PAUSE_US } else { PAUSE_US };
    let doublings = outage.attempts.saturating_sub(1).min(16);
    let pause = (first << doublings).min(PAUSE_MAX_US);
    outage.at_us.saturating_add(pause.max(outage.retry_after_ms.saturating_mul(1000)))
}

/// Time of the last change to a file that a login depends on. Earlier failures do not count.
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

/// The shortest remedy for an outage, for one line at session start.
pub(crate) fn first_step(provider: &str, class: &str) -> String {
    match (ProviderName::find(provider), class) {
        (Some(ProviderName::Claude), "auth") => "Log in with `claude /login`".into(),
        (Some(ProviderName::Anthropic), "auth") => {
            "Set a key with `claude-mem settings set ANTHROPIC_API_KEY KEY`".into()
        }
        (Some(ProviderName::OpenAi), "auth") => {
            "Set a key with `claude-mem settings set OPENAI_API_KEY KEY`".into()
        }
        _ => "Try again with `claude-mem distill retry`".into(),
    }
}

/// The remedy for an outage, with commands ready to paste.
pub fn remedy(provider: &str, class: &str) -> String {
    format!("{}; then `claude-mem distill retry`", fix(provider, class))
}

/// What to change so that a provider works.
pub fn fix(provider: &str, class: &str) -> &'static str {
    match (ProviderName::find(provider), class) {
        (Some(ProviderName::Claude), "auth") => {
            "log in with `claude /login`, or use an API key: `claude-mem settings set \
             CLAUDE_MEM_ANTHROPIC_API_KEY KEY` and `claude-mem settings set \
             CLAUDE_MEM_CLAUDE_AUTH_METHOD api-key`"
        }
        (Some(ProviderName::Anthropic), "auth") => {
            "set a valid key with `claude-mem settings set CLAUDE_MEM_ANTHROPIC_API_KEY KEY`"
        }
        (Some(ProviderName::OpenAi), "auth") => {
            "set a valid key with `claude-mem settings set CLAUDE_MEM_OPENAI_API_KEY KEY`"
        }
        (_, "quota") => {
            "add credit, or choose another provider with `claude-mem settings set \
             CLAUDE_MEM_PROVIDER NAME`"
        }
        (_, "invalid") => {
            "check the model and the path in `claude-mem settings`, or choose another provider \
             with `claude-mem settings set CLAUDE_MEM_PROVIDER NAME`"
        }
        _ => "choose another provider with `claude-mem settings set CLAUDE_MEM_PROVIDER NAME`",
    }
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
    fn a_failing_provider_is_skipped_until_its_pause_ends() {
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
    fn a_pause_doubles_up_to_a_limit_and_respects_retry_after() {
        let pause = |class, attempts| retry_at_us(&outage("claude", class, attempts)) / MINUTE;
        assert_eq!([1, 2, 3, 9, u32::MAX].map(|n| pause("auth", n)), [15, 30, 60, 360, 360]);
        assert_eq!([1, 2, 9].map(|n| pause("quota", n)), [60, 120, 360]);
        let requested =
            Outage { retry_after_ms: 600 * 60_000, ..outage("claude", "rate limit", 1) };
        assert_eq!(retry_at_us(&requested) / MINUTE, 600);
    }
}
