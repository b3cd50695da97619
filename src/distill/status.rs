//! Who distils now, why not a better provider, and what the user can do about it.

use claude_mem_projections::{Outage, Result, Store};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use crate::providers::{
    Setup,
    auto::{RULES, changed_us, remedy, retry_at_us},
    model,
};
use claude_mem_core::{
    format::count,
    settings::{ProviderName, Settings, table},
};

/// How distilling stands, as far as the log tells. Nothing is started or asked to find out.
#[derive(Debug, Serialize)]
pub struct Distilling {
    /// The provider of the last response, if there is one.
    pub provider: Option<String>,
    /// Providers that fail now.
    pub outages: Vec<Out>,
    /// What the rules did that a model could do better, if there is a model.
    pub by_rules: Option<Redo>,
}

/// A provider that does not answer.
#[derive(Debug, Serialize)]
pub struct Out {
    pub provider: String,
    pub class: String,
    pub message: String,
    /// When it was last asked, and when it is asked again.
    pub at: String,
    pub retry_at: String,
    /// The remedy.
    pub remedy: String,
}

/// What the rules did, and the command that has it done again.
#[derive(Debug, Serialize)]
pub struct Redo {
    pub events: u64,
    pub since: String,
    pub command: String,
}

impl Distilling {
    /// Looks at the tables.
    pub fn look(store: &Store, setup: &Setup<'_>) -> Result<Self> {
        let outages = outages(store, setup)?;
        let provider = store.last_provider()?;
        let by_rules = match setup.settings.get(&table::PROVIDER) {
            ProviderName::Extract => None,
            _ => redo(store, setup.settings, &outages, provider.as_deref())?,
        };
        Ok(Self { provider, outages: outages.into_iter().map(Out::of).collect(), by_rules })
    }

    /// Whether the rules stand in for a model.
    pub fn is_fallback(&self) -> bool {
        !self.outages.is_empty() && self.provider.as_deref() == Some(RULES)
    }
}

/// One line for a session that begins, if the user should know. Nearly always there is nothing to say, and
/// that is found out by one look at the failures.
pub fn notice(store: &Store, setup: &Setup<'_>) -> Result<Option<String>> {
    if store.outages(0)?.is_empty() {
        return Ok(None);
    }
    let outages = outages(store, setup)?;
    let Some(out) = outages.first() else { return Ok(None) };
    let what = match store.last_provider()?.as_deref() {
        Some(RULES) => "memories come from the built-in rules",
        Some(other) if outages.iter().all(|outage| outage.provider != other) => return Ok(None),
        _ => "events wait in the log",
    };
    let (who, why) = (&out.provider, &out.message);
    Ok(Some(format!(
        "claude-mem: {who} does not answer ({why}); {what}. `claude-mem status` says what helps"
    )))
}

/// The providers in question that do not answer, the best first.
fn outages(store: &Store, setup: &Setup<'_>) -> Result<Vec<Outage>> {
    let set = setup.settings.get(&table::PROVIDER);
    let mut outages = store.outages(changed_us(setup))?;
    outages.retain(|outage| set == ProviderName::Auto || outage.provider == set.name());
    let place = |outage: &Outage| ProviderName::find(&outage.provider).map(|name| name as u8);
    outages.sort_by_key(place);
    Ok(outages)
}

impl Out {
    fn of(outage: Outage) -> Self {
        let retry_at = moment(retry_at_us(&outage));
        let (at, remedy) = (moment(outage.at_us), remedy(&outage.provider, &outage.class));
        let Outage { provider, class, message, .. } = outage;
        Self { provider, class, message, at, retry_at, remedy }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let Self { provider, class, message, at, retry_at, .. } = self;
        format!("{provider}: {class}, {message} ({at}; asked again after {retry_at})")
    }
}

impl Redo {
    /// One line for people.
    pub fn line(&self) -> String {
        let Self { events, since, command } = self;
        let events = count(*events, "event");
        format!(
            "{events} since {since} distilled by the built-in rules; redo them with `{command}`"
        )
    }
}

/// What the rules did, if a model has answered since or will when it is mended.
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

/// A moment to the minute, as commands take it. Seconds are left out, so that it is not after what it is of.
fn moment(at_us: u64) -> String {
    let moment = Timestamp::from_microsecond(at_us.cast_signed()).unwrap_or_default();
    moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
