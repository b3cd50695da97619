//! The selected provider with its model and prompts, and the requests built from them.

use std::time::Duration;

use claude_mem_projections::Store;
use sha2::{Digest as _, Sha256};

use crate::turn_input::TurnInput;
use crate::{
    batches,
    prompts::{self, Instructions, PromptOptions, Prompts},
    providers::{
        self, Cancel, Limits, Request, Setup,
        auto::{self, RULES},
        rules,
    },
    turn_prompt,
};
use claude_mem_core::{
    app::App,
    failure::Failure,
    settings::{ProviderName, Verbosity, table},
};
use claude_mem_memory::modes::{Mode, mode};

/// Values that replace settings for one run.
#[derive(Debug, Clone, Default)]
pub struct Overrides<'a> {
    pub provider: Option<ProviderName>,
    pub model: Option<&'a str>,
    /// Instructions instead of the current ones.
    pub prompt: Option<Instructions<'a>>,
    /// For `auto`: ignore failures before this time.
    pub failures_since_us: u64,
    /// For `auto`: use the built-in rules only if no model is configured.
    pub requires_model: bool,
}

/// The provider, the model and the prompts that requests are built from.
#[derive(Debug)]
pub struct PromptSet {
    /// As named in settings and events.
    pub provider: String,
    pub model: String,
    /// Version of the prompts, recorded with each response.
    pub version: String,
    /// Valid types of observations.
    pub kinds: Vec<String>,
    /// Candidates of `auto`, best first; empty if the user chose a provider.
    candidates: Vec<&'static str>,
    prompts: Prompts,
    mode: Mode,
    verbosity: Verbosity,
    limits: Limits,
}

impl PromptSet {
    /// Loads the current prompts and selects the provider. Sends no request; `auto` may run the
    /// client once to see whether it works.
    pub fn load(app: &App, store: &Store, overrides: &Overrides<'_>) -> Result<Self, Failure> {
        let mode = mode(app)?;
        let verbosity = app.settings.get(&table::VERBOSITY);
        let language = app.settings.get(&table::LANGUAGE);
        let options = PromptOptions { verbosity, language: &language, prompt: overrides.prompt };
        let prompts = Prompts::load(&app.paths.data, &mode, &options)
            .map_err(|error| Failure::new(error.to_string()).meaning("no request was sent"))?;
        let provider = overrides.provider.unwrap_or_else(|| app.settings.get(&table::PROVIDER));
        let (provider, candidates) = match provider {
            ProviderName::Auto => {
                let candidates = auto::candidates(&setup(app));
                let chosen = chosen(app, store, &candidates, overrides.failures_since_us)?;
                let is_rejected = overrides.requires_model && chosen == RULES;
                let chosen = if is_rejected { candidates[0] } else { chosen };
                (chosen.to_owned(), candidates)
            }
            chosen => (chosen.name().to_owned(), Vec::new()),
        };
        let is_rules = provider == RULES;
        let model = match overrides.model {
            _ if is_rules => rules::MODEL.to_owned(),
            Some(model) => model.to_owned(),
            None => providers::model(&provider, &app.settings),
        };
        let version = match is_rules {
            true => rules_version(&mode, verbosity),
            false => prompts.version().to_owned(),
        };
        let kinds = mode.kinds().into_iter().map(str::to_owned).collect();
        let time_max = Duration::from_secs(app.settings.get(&table::REQUEST_TIMEOUT));
        let limits = Limits { time_max, ..Limits::default() };
        Ok(Self { provider, model, version, kinds, candidates, prompts, mode, verbosity, limits })
    }

    /// Whether `auto` would still choose this provider, according to the recorded failures.
    /// Failures before `since_us` do not count.
    pub(crate) fn is_still_chosen(
        &self,
        app: &App,
        store: &Store,
        since_us: u64,
    ) -> Result<bool, Failure> {
        let is_chosen = self.candidates.is_empty();
        Ok(is_chosen || chosen(app, store, &self.candidates, since_us)? == self.provider)
    }

    /// Whether requests cost nothing because the built-in rules respond.
    pub fn is_free(&self) -> bool {
        self.provider == RULES
    }

    /// How pending events are grouped into requests; `is_due_only` leaves out turns in progress.
    pub fn batches(&self, is_due_only: bool) -> batches::Limits {
        let limits = match self.is_free() {
            true => batches::Limits::whole_turns(),
            false => batches::Limits::default(),
        };
        let age_max_us = limits.age_max_us.filter(|_| is_due_only);
        batches::Limits { age_max_us, ..limits }
    }

    /// Whether provider, model and prompts are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.provider, &self.model, &self.version)
            == (&other.provider, &other.model, &other.version)
    }

    /// The prompt texts as JSON, recorded with a reprocessing.
    pub fn texts(&self) -> String {
        if self.is_free() { String::new() } else { self.prompts.texts() }
    }

    /// Makes these instructions the current ones. The rules have none and change nothing.
    pub fn adopt(&self, app: &App) -> Result<(), Failure> {
        match self.is_free() {
            true => Ok(()),
            false => adopt_instructions(app, self.prompts.instructions()),
        }
    }

    /// What the built-in rules depend on.
    pub(crate) fn rule_options(&self) -> (&Mode, Verbosity) {
        (&self.mode, self.verbosity)
    }

    /// Builds the request for a turn, in a new conversation.
    pub fn request(&self, input: &TurnInput, digest: Option<&str>) -> Request {
        let prompt = self.prompts.prompt(&input.turn(None), &turn_prompt::Limits::default());
        Request {
            content_session: input.envelope.session.clone(),
            system: prompt.system,
            digest: digest.map(|digest| self.prompts.earlier(digest)).unwrap_or_default(),
            text: prompt.data,
            closing: prompt.closing,
            resume: None,
            model: self.model.clone(),
            limits: self.limits,
            cancel: Cancel::default(),
        }
    }
}

/// Stores the adopted instructions; `None` returns to those of the settings.
pub(crate) fn adopt_instructions(app: &App, instructions: Option<&str>) -> Result<(), Failure> {
    prompts::adopt(&app.paths.data, instructions).map_err(|error| {
        Failure::new(format!("cannot write prompts/adopted.txt: {error}"))
            .meaning("memory is unchanged")
    })
}

/// The provider that `auto` selects now.
fn chosen(
    app: &App,
    store: &Store,
    candidates: &[&'static str],
    since_us: u64,
) -> Result<&'static str, Failure> {
    let outages = store.outages(auto::changed_us(&setup(app)).max(since_us))?;
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    Ok(auto::choose(candidates, &outages, now_us))
}

/// Everything a provider is opened with.
pub fn setup(app: &App) -> Setup<'_> {
    Setup { settings: &app.settings, paths: &app.paths, environment: &app.environment }
}

/// The rules depend on the mode and the verbosity, not on the prompts.
fn rules_version(mode: &Mode, verbosity: Verbosity) -> String {
    let mode = serde_json::to_string(mode).unwrap_or_default();
    let hash = Sha256::digest(format!("{verbosity:?}\n{mode}"));
    let digits: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digits}", rules::MODEL)
}
