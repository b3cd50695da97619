//! Status of distilling: the current provider, failing ones, and what the user can do.

use claude_mem_projections::{Outage, Result, Store};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use crate::providers::{
    Setup,
    auto::{RULES, changed_us, first_step, remedy, retry_at_us},
    model,
};
use claude_mem_core::{
    format::count,
    settings::{ProviderName, Settings, table},
};

/// Status of distilling, read from the tables. No provider is started or contacted.
#[derive(Debug, Serialize)]
pub struct DistillStatus {
    /// The provider of the last response, if there is one.
    pub provider: Option<String>,
    /// Providers that fail now.
    pub outages: Vec<ProviderOutage>,
    /// Events distilled by the rules that a model could distill better, if there is a model.
    pub by_rules: Option<Redo>,
    /// Whether another provider replaces a failing one. A provider that the user chose has no
    /// substitute.
    #[serde(skip)]
    is_auto: bool,
}

/// A failing provider.
#[derive(Debug, Serialize)]
pub struct ProviderOutage {
    pub provider: String,
    pub class: String,
    pub message: String,
    /// Time of the last failure, and of the next attempt.
    pub at: String,
    pub retry_at: String,
    pub remedy: String,
}

/// Events distilled by the rules, and the command that redoes them with a model.
#[derive(Debug, Serialize)]
pub struct Redo {
    pub events: u64,
    pub since: String,
    pub command: String,
}

impl DistillStatus {
    pub fn read(store: &Store, setup: &Setup<'_>) -> Result<Self> {
        let outages = outages(store, setup)?;
        let provider = store.last_provider()?;
        let set = setup.settings.get(&table::PROVIDER);
        let by_rules = match set {
            ProviderName::Extract => None,
            _ => redo(store, setup.settings, &outages, provider.as_deref())?,
        };
        Ok(Self {
            provider,
            outages: outages.into_iter().map(ProviderOutage::of).collect(),
            by_rules,
            is_auto: set == ProviderName::Auto,
        })
    }

    /// Whether the rules replace a failing model.
    pub fn is_fallback(&self) -> bool {
        self.is_auto && !self.outages.is_empty() && self.provider.as_deref() == Some(RULES)
    }

    /// The failing provider without which nothing is distilled.
    pub fn blocked_by(&self) -> Option<&ProviderOutage> {
        self.outages.first().filter(|_| !self.is_auto)
    }
}

/// A one-line warning for a new session, if a provider fails. Usually there is none, which costs
/// one query.
pub fn notice(store: &Store, setup: &Setup<'_>) -> Result<Option<String>> {
    let Some(FailingProvider { outage, meanwhile }) = failing(store, setup)? else {
        return Ok(None);
    };
    let (who, why) = (&outage.provider, &outage.message);
    let help = first_step(who, &outage.class);
    Ok(Some(format!(
        "claude-mem: {who} fails ({why}); {meanwhile}. {help}; `claude-mem status` shows more"
    )))
}

/// The same in few words, for a status line: `claude fails`.
pub fn short_notice(store: &Store, setup: &Setup<'_>) -> Result<Option<String>> {
    Ok(failing(store, setup)?.map(|found| format!("{} fails", found.outage.provider)))
}

/// A failing provider, and what happens meanwhile.
#[derive(Debug)]
pub struct FailingProvider {
    pub outage: ProviderOutage,
    pub meanwhile: &'static str,
}

/// The failing provider that matters to the user.
pub fn failing(store: &Store, setup: &Setup<'_>) -> Result<Option<FailingProvider>> {
    if store.outages(0)?.is_empty() {
        return Ok(None);
    }
    let outages = outages(store, setup)?;
    let is_auto = setup.settings.get(&table::PROVIDER) == ProviderName::Auto;
    let meanwhile = match store.last_provider()?.as_deref().filter(|_| is_auto) {
        Some(RULES) => "memories come from the built-in rules",
        Some(other) if outages.iter().all(|outage| outage.provider != other) => return Ok(None),
        _ => "events stay pending",
    };
    let outage = outages.into_iter().next().map(ProviderOutage::of);
    Ok(outage.map(|outage| FailingProvider { outage, meanwhile }))
}

/// Failing providers that the settings allow, best first.
fn outages(store: &Store, setup: &Setup<'_>) -> Result<Vec<Outage>> {
    let set = setup.settings.get(&table::PROVIDER);
    let mut outages = store.outages(changed_us(setup))?;
    outages.retain(|outage| set == ProviderName::Auto || outage.provider == set.name());
    let place = |outage: &Outage| ProviderName::find(&outage.provider).map(|name| name as u8);
    outages.sort_by_key(place);
    Ok(outages)
}

impl ProviderOutage {
    fn of(outage: Outage) -> Self {
        let retry_at = moment(retry_at_us(&outage));
        let (at, remedy) = (moment(outage.at_us), remedy(&outage.provider, &outage.class));
        let Outage { provider, class, message, .. } = outage;
        Self { provider, class, message, at, retry_at, remedy }
    }

    /// One line for the user.
    pub fn line(&self) -> String {
        let Self { provider, class, message, at, retry_at, .. } = self;
        format!("{provider}: {class}, {message} ({at}; next attempt after {retry_at})")
    }
}

impl Redo {
    /// One line for the user.
    pub fn line(&self) -> String {
        let Self { events, since, command } = self;
        let events = count(*events, "event");
        format!(
            "{events} since {since} distilled by the built-in rules; redo them with `{command}`"
        )
    }
}

/// Events distilled by the rules, if a model has responded since, or will respond after its outage.
fn redo(
    store: &Store,
    settings: &Settings,
    outages: &[Outage],
    last: Option<&str>,
) -> Result<Option<Redo>> {
    let working = last.filter(|last| *last != RULES);
    let Some(provider) = working.or(outages.first().map(|outage| outage.provider.as_str())) else {
        return Ok(None);
    };
    let Some(done) = store.distilled_by_rules()? else { return Ok(None) };
    let since = moment(done.since_us);
    let model = model(provider, settings);
    let command =
        format!("claude-mem replay --since '{since}' --provider {provider} --model {model}");
    Ok(Some(Redo { events: done.events, since, command }))
}

/// A time to the minute, as commands accept it. Rounded down, so that `--since` includes the first
/// event.
fn moment(at_us: u64) -> String {
    let moment = Timestamp::from_microsecond(at_us.cast_signed()).unwrap_or_default();
    moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
