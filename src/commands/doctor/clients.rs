//! Checks of the hooks in each client, and of other memory tools.

use std::fs;

use super::{Finding, mcp_servers};
use crate::commands::install::{NOT_LOADED, place};
use claude_mem_capture::{CLAUDE_CODE, CODEX, Client, clients::CLIENTS};
use claude_mem_core::{app::App, format::count, json_edit::Document};
use claude_mem_import::{From, importable_sessions};
use claude_mem_install::{
    Targets, client_status::ClientHooks, codex_trust, registered::Hooks, rival,
};
use claude_mem_projections::Store;

pub(super) fn all(app: &App) -> Vec<Finding> {
    let mut findings = claude_code(app);
    findings.extend(transcripts(app));
    findings.extend(other_clients(app));
    findings.extend(mcp_servers::all(app));
    findings.extend(rivals(app));
    findings
}

fn claude_code(app: &App) -> Vec<Finding> {
    const CHECK: &str = "hooks";
    let hooks = Hooks::look(app);
    let home = app.paths.home.as_deref();
    if !hooks.is_installed && !CLAUDE_CODE.config.is_found(&app.environment, home) {
        let is_registered = |client: &'static Client| {
            client.name != CLAUDE_CODE.name && ClientHooks::look(place(app, client)).is_some()
        };
        if CLIENTS.iter().copied().any(is_registered) {
            return Vec::new();
        }
    }
    let settings = Targets::of_user(app).and_then(|it| Ok(Document::open(&it.settings())?));
    if let Ok(settings) = settings
        && !settings.is_plain()
    {
        let what = format!("{}: {NOT_LOADED}", settings.file().display());
        return vec![Finding::problem(CHECK, what, "remove them from the file")];
    }
    if !hooks.is_installed {
        let what = "Claude Code has no hooks of claude-mem";
        return vec![Finding::problem(CHECK, what, "register it with `claude-mem install`")];
    }
    let mut findings = Vec::new();
    for found in &hooks.registered {
        let file = found.file.display();
        findings.push(if !found.is_program_there {
            let what = format!("{file} calls {}, which does not exist", found.program);
            Finding::problem(CHECK, what, "register this program with `claude-mem install`")
        } else if found.missing.is_empty() {
            Finding::fine(CHECK, format!("all are registered in {file}"))
        } else {
            let what = format!("{file} lacks {}", found.missing.join(", "));
            Finding::problem(CHECK, what, "add them with `claude-mem install`")
        });
    }
    if hooks.is_plugin {
        findings.push(Finding::fine(CHECK, "the plugin is enabled"));
    }
    findings
}

/// Claude Code deletes its transcripts. What is neither recorded nor imported is lost with them.
fn transcripts(app: &App) -> Option<Finding> {
    const CHECK: &str = "transcripts";
    /// The default of Claude Code.
    const DAYS: u64 = 30;
    let targets = Targets::of_user(app).ok()?;
    let mut folders = fs::read_dir(targets.dir.join("projects")).ok()?;
    folders.next()?.ok()?;
    let settings = Document::open(&targets.settings()).ok()?;
    let days = settings.get("cleanupPeriodDays").as_u64().unwrap_or(DAYS);
    if days > DAYS {
        return Some(Finding::fine(CHECK, format!("Claude Code keeps them for {days} days")));
    }
    let store = Store::open_snapshot(&app.paths.memory()).ok().flatten();
    let sessions = importable_sessions(app, store.as_ref(), From::Transcripts).unwrap_or(0);
    if sessions == 0 {
        let what = format!("Claude Code deletes them after {days} days; all are in memory");
        return Some(Finding::fine(CHECK, what));
    }
    let sessions = count(sessions, "session");
    let what =
        format!("Claude Code deletes transcripts after {days} days; {sessions} are not in memory");
    let remedy = "\
        import them with `claude-mem import --from transcripts`, or set `cleanupPeriodDays` in \
        Claude Code's settings.json";
    Some(Finding::warning(CHECK, what, remedy))
}

/// Hooks in clients other than Claude Code. A client that is found and not registered is mentioned
/// once.
fn other_clients(app: &App) -> Vec<Finding> {
    const CHECK: &str = "other clients";
    let mut findings = Vec::new();
    let mut unregistered = Vec::new();
    for client in CLIENTS.iter().copied().filter(|client| client.name != CLAUDE_CODE.name) {
        let place = place(app, client);
        let again = format!("register it again with `claude-mem install --client {}`", client.name);
        let is_found = client.config.is_found(&app.environment, app.paths.home.as_deref());
        // Its hooks are in the file of another client, which is checked anyway.
        if !is_found && client.config.registered_as.is_some() {
            continue;
        }
        let Some(found) = ClientHooks::look(place) else {
            if is_found && client.is_tested {
                unregistered.push(client.title);
            }
            continue;
        };
        let (title, file) = (client.title, found.file.display());
        findings.push(if !found.is_program_there {
            let what = format!("{title}: {file} calls {}, which does not exist", found.program);
            Finding::problem(CHECK, what, again)
        } else if !found.missing.is_empty() {
            let what = format!("{title}: {file} lacks {}", found.missing.join(", "));
            Finding::problem(CHECK, what, again)
        } else {
            Finding::fine(CHECK, format!("{title}: all hooks are registered in {file}"))
        });
        let is_codex = client.name == CODEX.name;
        let server = place.server_file().filter(|_| is_codex);
        if let Some(Ok(events)) = server.map(|config| codex_trust::unapproved(&found.file, &config))
            && !events.is_empty()
        {
            let what = format!(
                "{title} does not run hooks that you have not approved: {}",
                events.join(", ")
            );
            findings.push(Finding::problem(CHECK, what, client.config.after));
        }
    }
    if !unregistered.is_empty() {
        let what = format!("found and not registered: {}", unregistered.join(", "));
        findings.push(Finding::warning(CHECK, what, "register them with `claude-mem install`"));
    }
    findings
}

fn rivals(app: &App) -> Vec<Finding> {
    let found = Targets::of_user(app).map(|targets| rival::find(&targets.dir)).unwrap_or_default();
    let warn =
        |rival: rival::Rival| Finding::warning("other memory tools", rival.what, rival.remedy);
    found.into_iter().map(warn).collect()
}
