//! Who is asked, and in which words: a provider with its model, or the rules that need none.

use std::time::Duration;

use claude_mem_projections::Store;
use sha2::{Digest as _, Sha256};

use crate::turn_input::Loaded;
use crate::{
    conversations::Conversations,
    prompts::{self, Choice, Instructions, Prompts},
    providers::{
        self, Answer, Ask, Cancel, Limits, Provider, Refusal, Setup,
        auto::{self, RULES},
        identity::resumable,
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

/// What the user wants other than the settings say, for one run.
#[derive(Debug, Clone, Default)]
pub struct Wishes<'a> {
    /// Another provider.
    pub provider: Option<ProviderName>,
    /// Another model.
    pub model: Option<&'a str>,
    /// Other instructions.
    pub prompt: Option<Instructions<'a>>,
    /// For `auto`: failures before this moment do not count.
    pub failures_since_us: u64,
    /// For `auto`: the rules are no choice where there is another one.
    pub wants_model: bool,
}

/// The words of every question, and who they are for.
#[derive(Debug)]
pub struct Words {
    /// As settings and events name it.
    pub provider: String,
    /// As it is asked for.
    pub model: String,
    /// Under which replies are recorded.
    pub version: String,
    /// The types an observation can have.
    pub kinds: Vec<String>,
    /// Whom `auto` can ask, the best first; empty if the user chose.
    candidates: Vec<&'static str>,
    prompts: Prompts,
    mode: Mode,
    verbosity: Verbosity,
    limits: Limits,
}

impl Words {
    /// Loads the texts in force. Nobody is asked for that, and nothing is started but, for `auto`, the
    /// client that may be there.
    pub fn load(app: &App, store: &Store, wishes: &Wishes<'_>) -> Result<Self, Failure> {
        let mode = mode(app)?;
        let verbosity = app.settings.get(&table::VERBOSITY);
        let language = app.settings.get(&table::LANGUAGE);
        let choice = Choice { verbosity, language: &language, prompt: wishes.prompt };
        let prompts = Prompts::load(&app.paths.data, &mode, &choice)
            .map_err(|error| Failure::new(error.to_string()).meaning("nothing was asked"))?;
        let provider = wishes.provider.unwrap_or_else(|| app.settings.get(&table::PROVIDER));
        let (provider, candidates) = match provider {
            ProviderName::Auto => {
                let candidates = auto::candidates(&setup(app));
                let chosen = chosen(app, store, &candidates, wishes.failures_since_us)?;
                let is_wrong = wishes.wants_model && chosen == RULES;
                let chosen = if is_wrong { candidates[0] } else { chosen };
                (chosen.to_owned(), candidates)
            }
            chosen => (chosen.name().to_owned(), Vec::new()),
        };
        let is_rules = provider == RULES;
        let model = match wishes.model {
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

    /// Whether `auto` would still choose the same one, as far as the log tells.
    pub fn are_still_chosen(&self, app: &App, store: &Store) -> Result<bool, Failure> {
        let is_chosen = self.candidates.is_empty();
        Ok(is_chosen || chosen(app, store, &self.candidates, 0)? == self.provider)
    }

    /// Whether nobody has to be paid, or even to be there.
    pub fn are_free(&self) -> bool {
        self.provider == RULES
    }

    /// Whether the same one would be asked the same.
    pub fn are_same(&self, other: &Self) -> bool {
        (&self.provider, &self.model, &self.version)
            == (&other.provider, &other.model, &other.version)
    }

    /// The texts, for the record.
    pub fn texts(&self) -> String {
        if self.are_free() { String::new() } else { self.prompts.texts() }
    }

    /// Uses these instructions for what comes next. Rules follow none, and change nothing.
    pub fn put_in_force(&self, app: &App) -> Result<(), Failure> {
        match self.are_free() {
            true => Ok(()),
            false => adopt_instructions(app, self.prompts.instructions()),
        }
    }

    /// Puts a turn into words.
    pub fn ask(&self, loaded: &Loaded, digest: Option<&str>, resume: Option<&str>) -> Ask {
        let question = self.prompts.question(&loaded.turn(None), &turn_prompt::Limits::default());
        Ask {
            content_session: loaded.envelope.session.clone(),
            system: question.system,
            digest: digest.map(|digest| self.prompts.earlier(digest)).unwrap_or_default(),
            text: question.data,
            closing: question.closing,
            resume: resume.map(str::to_owned),
            model: self.model.clone(),
            limits: self.limits,
            cancel: Cancel::default(),
        }
    }
}

/// Keeps instructions for what comes next; without any, goes back to those of the settings.
pub(crate) fn adopt_instructions(app: &App, instructions: Option<&str>) -> Result<(), Failure> {
    prompts::adopt(&app.paths.data, instructions).map_err(|error| {
        Failure::new(format!("the prompt cannot be kept in prompts/adopted.txt: {error}"))
            .meaning("memory is as it was")
    })
}

/// Someone who answers.
pub enum Agent {
    /// A model, and its conversation about each session.
    Provider(Box<dyn Provider>, Conversations),
    /// Nobody: rules.
    Rules,
}

impl Agent {
    /// Prepares to ask, or says in one line what is wrong with the settings.
    pub fn open(app: &App, words: &Words) -> Result<Self, Refusal> {
        if words.are_free() {
            return Ok(Self::Rules);
        }
        let provider = providers::open(&words.provider, &setup(app))?;
        Ok(Self::Provider(provider, Conversations::default()))
    }

    /// Asks about a turn, and waits for the answer.
    pub fn ask(
        &self,
        words: &Words,
        loaded: &Loaded,
        digest: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Answer, Refusal> {
        let (provider, conversations) = match self {
            Self::Provider(provider, conversations) => (provider, conversations),
            Self::Rules => {
                return Ok(rules::answer(&loaded.turn(digest), &words.mode, words.verbosity));
            }
        };
        let session = &loaded.envelope.session;
        // Whoever fails to answer has ended this conversation.
        let known = conversations.take(session);
        let resume = resumable(known.as_deref(), loaded.number);
        let question = Ask { cancel: cancel.clone(), ..words.ask(loaded, digest, resume) };
        let answer = provider.ask(&question).map_err(|refusal| refusal.paid_for(&question))?;
        if let Some(id) = &answer.memory_session_id {
            conversations.keep(session, id);
        }
        Ok(answer)
    }
}

/// The provider that `auto` takes now.
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

/// What providers are made from.
pub fn setup(app: &App) -> Setup<'_> {
    Setup { settings: &app.settings, paths: &app.paths, environment: &app.environment }
}

/// Rules do not follow the prompts, but the mode and the verbosity.
fn rules_version(mode: &Mode, verbosity: Verbosity) -> String {
    let mode = serde_json::to_string(mode).unwrap_or_default();
    let hash = Sha256::digest(format!("{verbosity:?}\n{mode}"));
    let digits: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digits}", rules::MODEL)
}
