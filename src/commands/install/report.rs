//! The report of `claude-mem install`: written files, provider and cost, past sessions, the next
//! step.

use std::path::PathBuf;

use claude_mem_capture::{CLAUDE_CODE, Client};
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{count, number},
    paths::with_tilde,
    settings::{ClaudeAuth, ProviderName, table},
};
use claude_mem_distill::{
    caps, configured_providers, dollars,
    providers::{
        Refusal,
        auto::{RULES, fix},
        model,
    },
    test_provider,
};
use claude_mem_import::{DATABASE, From, importable_sessions};
use claude_mem_install::manifest::TextChange;
use claude_mem_projections::Store;

const GOOD: &str = "32";
const BAD: &str = "31";

/// One thing that was done for a client.
pub(super) enum Step {
    Registered {
        what: &'static str,
        file: PathBuf,
        is_new: bool,
    },
    /// A file of the user at the path of ours.
    Kept(PathBuf),
    Note(String),
}

impl Step {
    pub(super) fn of(what: &'static str, change: &TextChange) -> Self {
        Self::Registered { what, file: change.file.clone(), is_new: change.is_changed() }
    }
}

pub(super) fn print_client(app: &mut App, title: &str, steps: &[Step]) -> Result<(), Failure> {
    app.output.line(title)?;
    let home = app.paths.home.clone();
    for step in steps {
        let line = match step {
            Step::Registered { what, file, is_new } => {
                let file = with_tilde(file, home.as_deref());
                let state = if *is_new { "" } else { " (unchanged)" };
                format!("{} {what:<11} {file}{state}", app.output.paint(GOOD, "✓"))
            }
            Step::Kept(file) => {
                format!("note: {} is yours and is kept", with_tilde(file, home.as_deref()))
            }
            Step::Note(note) => format!("note: {note}"),
        };
        app.output.line(format_args!("  {line}"))?;
    }
    Ok(())
}

/// The provider, its cost, and what is sent to it. With `is_tested`, the providers are tried in
/// their order until one responds.
pub(super) fn print_distilling(app: &mut App, is_tested: bool) -> Result<(), Failure> {
    let providers = configured_providers(app);
    let mut failed: Vec<(&str, Refusal)> = Vec::new();
    let mut answered = None;
    for provider in providers.iter().filter(|_| is_tested) {
        if *provider != RULES {
            let who = name(app, provider);
            app.output.say(format_args!("testing {who} with one short request…"));
        }
        match test_provider(app, provider) {
            Ok(time) => {
                answered = Some((*provider, time));
                break;
            }
            Err(refusal) => failed.push((provider, refusal)),
        }
    }
    app.output.line("\nDistilling")?;
    for (provider, refusal) in &failed {
        let (who, cross) = (name(app, provider), app.output.paint(BAD, "✗"));
        let fix = fix(provider, refusal.class.name());
        app.output.line(format_args!("  {cross} {who}: {}\n    {fix}", refusal.message))?;
    }
    let until_then = if failed.is_empty() { "" } else { "until then: " };
    let provider = match answered {
        Some((provider, _)) => provider,
        None if failed.is_empty() => providers[0],
        None => return app.output.line("  until then, recorded events stay pending"),
    };
    app.output.line(format_args!("  {until_then}{}", terms(app, provider)))?;
    match answered {
        _ if provider == RULES => {
            app.output.line("  nothing leaves this machine")?;
            if failed.is_empty() && app.settings.get(&table::PROVIDER) == ProviderName::Auto {
                app.output.line(
                    "  for better notes, install Claude Code, or set a key: `claude-mem settings \
                     set ANTHROPIC_API_KEY KEY`",
                )?;
            }
            Ok(())
        }
        Some((_, time)) => {
            let tick = app.output.paint(GOOD, "✓");
            let seconds = time.as_secs_f64();
            app.output.line(format_args!("  {tick} answered a test request in {seconds:.1} s"))
        }
        None => app.output.line("  not tested; test it with `claude-mem install --test`"),
    }
}

/// The provider as the user knows it.
fn name(app: &App, provider: &str) -> String {
    match ProviderName::find(provider) {
        Some(ProviderName::Claude) => "Claude Code".into(),
        Some(ProviderName::Anthropic) => "the Anthropic API".into(),
        Some(ProviderName::OpenAi) => app.settings.get(&table::OPENAI_BASE_URL),
        _ => "the built-in rules".into(),
    }
}

/// The provider with its model, what it costs, and what is sent to it.
fn terms(app: &App, provider: &str) -> String {
    let who = name(app, provider);
    let cost = match ProviderName::find(provider) {
        Some(ProviderName::Claude)
            if app.settings.get(&table::CLAUDE_AUTH_METHOD) == ClaudeAuth::Subscription =>
        {
            "on your Claude subscription"
        }
        Some(ProviderName::OpenAi) => "billed per token unless the server is yours",
        Some(ProviderName::Claude | ProviderName::Anthropic) => "billed per token to your key",
        _ => return format!("{who}: no model, no network, no cost"),
    };
    let caps = caps(&app.settings);
    let tokens = (caps.tokens_max > 0).then(|| format!("{} tokens", number(caps.tokens_max)));
    let money = (caps.cost_micros_max > 0).then(|| dollars(caps.cost_micros_max));
    let limits: Vec<String> = tokens.into_iter().chain(money).collect();
    let limits = match limits.is_empty() {
        true => "without a daily limit".into(),
        false => format!("at most {} a day", limits.join(" and ")),
    };
    let model = model(provider, &app.settings);
    format!(
        "{who} with {model}, {cost}\n  {limits}; `claude-mem distill costs` shows the spending\n  \
         your sessions are sent to it without secrets and private text; `claude-mem settings set \
         PROVIDER extract` sends nothing"
    )
}

/// The sessions that can be imported. Empty if there are none, or if they cannot be read: this is
/// an offer.
pub(super) fn print_past_sessions(app: &mut App) -> Result<(), Failure> {
    let store = match app.paths.memory().exists() {
        true => Store::open_snapshot(&app.paths.memory()).ok().flatten(),
        false => None,
    };
    let mut offers = Vec::new();
    for (from, client) in From::all().filter_map(|from| Some((from, from.client()?))) {
        let sessions = importable_sessions(app, store.as_ref(), from).unwrap_or(0);
        if sessions > 0 {
            offers.push(format!(
                "{} of {}; see what an import adds with `claude-mem import --from {} --dry-run`",
                count(sessions, "session"),
                client.title,
                from.flag()
            ));
        }
    }
    if app.paths.data.join(DATABASE).is_file() {
        offers.push(
            "the database of the TypeScript claude-mem; see what an import adds with \
             `claude-mem import --from ts --dry-run`"
                .into(),
        );
    }
    if offers.is_empty() {
        return Ok(());
    }
    app.output.line(format_args!("\nFound\n  {}", offers.join("\n  ")))
}

pub(super) fn print_next_step(app: &mut App, installed: &[&Client]) -> Result<(), Failure> {
    let first = installed.iter().find(|client| client.name == CLAUDE_CODE.name);
    let title = first.unwrap_or(&installed[0]).title;
    let data = with_tilde(&app.paths.data, app.paths.home.as_deref());
    app.output.line(format_args!(
        "\nNext\n  start a new session in {title}; it is recorded in {data}\n  \
         `claude-mem status` shows whether everything works"
    ))
}
