//! The checks of `doctor`.

use std::fs;

use claude_mem_log::{Log, Options, maintain};
use claude_mem_projections::{Error, Store};

use super::{Finding, clients};
use crate::commands::{ship::runtime, status, verify::check_log};
use claude_mem_capture::Dropped;
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{bytes, count, number},
    os,
    settings::{AnySetting, Kind, Refused, Source, table, variables},
};
use claude_mem_distill::{setup, status::DistillStatus};
use claude_mem_memory::{modes::mode, semantic, store::rebuild_report};
use claude_mem_server::worker::client;
use claude_mem_sync::ship::{
    Error as ShipError, Shipper,
    backup::Backup,
    local,
    remote::{Purpose, Remote},
    status::ShipStatus,
};

/// Below this the log soon cannot grow; a day's events are some megabytes.
const FREE_BYTES_FEW: u64 = 200 << 20;
const FREE_BYTES_MIN: u64 = 20 << 20;

/// All checks, dependencies first.
pub(super) fn all(app: &App, is_fixing: bool) -> Vec<Finding> {
    let mut findings = vec![permissions(app, is_fixing), disk(app)];
    findings.extend(dropped(app, is_fixing));
    findings.extend(clients::all(app));
    findings.extend(settings(app));
    findings.extend(environment(app));
    findings.push(spilled(app, is_fixing));
    findings.push(log(app));
    findings.extend(memory(app));
    findings.push(worker(app));
    findings.extend(shipping(app));
    findings
}

fn permissions(app: &App, is_fixing: bool) -> Finding {
    const CHECK: &str = "data directory";
    let data = &app.paths.data;
    let shown = data.display();
    let Ok(found) = fs::metadata(data) else {
        return Finding::fine(CHECK, format!("{shown} will be created with the first event"));
    };
    if !found.is_dir() {
        return Finding::problem(
            CHECK,
            format!("{shown} is not a directory"),
            "move it away, or set `CLAUDE_MEM_DATA_DIR` to another place",
        );
    }
    for dir in [data.clone(), app.paths.log()] {
        let is_there = dir.exists();
        if is_there && !os::is_writable(&dir) {
            let what = format!("{} cannot be written", dir.display());
            return Finding::problem(CHECK, what, os::how_to_own(data));
        }
    }
    if !os::is_open_to_others(&found) {
        return Finding::fine(CHECK, format!("{shown}, readable only by you"));
    }
    if is_fixing && os::close_to_others(data).is_ok() {
        return Finding::fixed(CHECK, format!("{shown} is now readable only by you"));
    }
    Finding::warning(
        CHECK,
        format!("{shown} can be read by other users of this machine"),
        format!("`chmod 700 '{shown}'`, or `claude-mem doctor --fix`"),
    )
}

fn disk(app: &App) -> Finding {
    const CHECK: &str = "disk space";
    let existing = app.paths.data.ancestors().find(|dir| dir.exists());
    let Some(free) = existing.and_then(os::free_bytes) else {
        return Finding::fine(CHECK, "unknown on this system");
    };
    let what = format!("{} free", bytes(free));
    let remedy = "free some space, or set `CLAUDE_MEM_DATA_DIR` to a larger disk";
    match free {
        free if free < FREE_BYTES_MIN => Finding::problem(CHECK, what, remedy),
        free if free < FREE_BYTES_FEW => Finding::warning(CHECK, what, remedy),
        _ => Finding::fine(CHECK, what),
    }
}

fn dropped(app: &App, is_fixing: bool) -> Option<Finding> {
    const CHECK: &str = "dropped events";
    let data = &app.paths.data;
    let dropped = Dropped::look(data)?;
    let what = format!(
        "{} could not be recorded, the last at {}",
        count(dropped.events, "event"),
        dropped.last
    );
    if is_fixing && Dropped::acknowledge(data).is_ok() {
        return Some(Finding::fixed(CHECK, format!("{what}; the count is reset")));
    }
    let remedy =
        "free some space if the disk is full; acknowledge it with `claude-mem doctor --fix`";
    Some(Finding::warning(CHECK, what, remedy))
}

fn settings(app: &App) -> Vec<Finding> {
    const CHECK: &str = "settings";
    let remedy = || format!("correct {}", app.paths.settings().display());
    let problems = app.settings.problems();
    if !problems.is_empty() {
        let problem = |problem| Finding::problem(CHECK, problem, remedy());
        return problems.into_iter().map(problem).collect();
    }
    let refused = |setting: &&dyn AnySetting| {
        let Refused { given, accepted } = app.settings.refused(*setting)?;
        let what = format!("{} is `{given}`, which is not accepted: {accepted}", setting.name());
        let remedy = format!("set it with `claude-mem settings set {} VALUE`", setting.name());
        // Do not print a secret that was stored under the wrong name.
        let is_secret = matches!(setting.kind(), Kind::Secret(_));
        let what = if is_secret { format!("{} is not accepted", setting.name()) } else { what };
        Some(Finding::warning(CHECK, what, remedy))
    };
    let unusable_mode = mode(app).err().map(|failure| {
        let (what, _, remedy) = failure.parts();
        Finding::problem(CHECK, what, remedy.unwrap_or_default())
    });
    table::ALL.iter().filter_map(refused).chain(unusable_mode).collect()
}

/// Variables that a login, a gateway or a company network may depend on.
const NETWORK: [&str; 18] = [
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "AWS_PROFILE",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CONFIG_DIR",
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
];

/// Variables of the shell that the worker does not inherit, because it serves all projects.
fn environment(app: &App) -> Vec<Finding> {
    const CHECK: &str = "environment";
    let file = app.paths.credentials();
    let chosen = variables(&file);
    let is_missing = |name: &&&str| {
        app.environment.get(name).is_some() && chosen.iter().all(|(known, _)| known != **name)
    };
    let network: Vec<&str> = NETWORK.iter().filter(is_missing).copied().collect();
    let mut findings = Vec::new();
    if !network.is_empty() {
        let what = format!("{} apply to this shell only, not to the worker", network.join(", "));
        let remedy = format!("for all projects, write them to {} as NAME=value", file.display());
        findings.push(Finding::warning(CHECK, what, remedy));
    }
    // Provider, backup and cost settings. The others only matter to the hook or command that has
    // them.
    let groups =
        ["PROVIDER", "MODEL", "CLAUDE_", "ANTHROPIC_", "OPENAI_", "EMBEDDING_", "DAILY_", "SHIP_"];
    let is_set = |setting: &&dyn AnySetting| {
        let name = setting.name().strip_prefix("CLAUDE_MEM_").unwrap_or(setting.name());
        let is_of_worker = groups.iter().any(|group| name.starts_with(group));
        is_of_worker && app.settings.find(*setting).1 == Source::Environment
    };
    let own: Vec<&str> = table::ALL.iter().copied().filter(is_set).map(AnySetting::name).collect();
    if !own.is_empty() {
        let what = format!("{} apply to this shell only, not to the worker", own.join(", "));
        let remedy = "for all projects, save them with `claude-mem settings set NAME VALUE`";
        findings.push(Finding::warning(CHECK, what, remedy));
    }
    findings
}

fn spilled(app: &App, is_fixing: bool) -> Finding {
    const CHECK: &str = "spilled events";
    let dir = app.paths.log();
    let spill_files = || fs::read_dir(dir.join("spill")).map_or(0, Iterator::count);
    let before = spill_files();
    if before == 0 {
        return Finding::fine(CHECK, "none");
    }
    if is_fixing && maintain(&dir, &Options::default()).is_ok() && spill_files() < before {
        return Finding::fixed(
            CHECK,
            format!("merged {} files into the log", before - spill_files()),
        );
    }
    let what = format!("{before} files are not merged into the log yet");
    Finding::warning(CHECK, what, "merge them with `claude-mem doctor --fix`")
}

fn log(app: &App) -> Finding {
    const CHECK: &str = "log";
    let dir = app.paths.log();
    if !dir.exists() {
        return Finding::fine(CHECK, "no events yet");
    }
    match check_log(&dir) {
        Err(error) => {
            let remedy = "see what can be read with `claude-mem status`";
            Finding::problem(CHECK, error.to_string(), remedy)
        }
        Ok(report) if report.is_damaged() => {
            let remedy = "see what is damaged with `claude-mem verify`";
            Finding::problem(CHECK, "some events are damaged", remedy)
        }
        Ok(report) => {
            Finding::fine(CHECK, format!("{}, all intact", count(report.records(), "event")))
        }
    }
}

fn memory(app: &App) -> Vec<Finding> {
    const CHECK: &str = "memory";
    let rebuild = "rebuild it with `claude-mem replay`";
    let store = match Store::open_read_only(&app.paths.memory()) {
        Ok(Some(store)) => store,
        Ok(None) => return vec![Finding::fine(CHECK, "built from the log when needed")],
        Err(error @ Error::Newer { .. }) => {
            let remedy = "\
                use the newer version of claude-mem that wrote it; until then results come from \
                the log";
            return vec![Finding::problem(CHECK, error.to_string(), remedy)];
        }
        Err(error) => return vec![Finding::problem(CHECK, error.to_string(), rebuild)],
    };
    match store.damage() {
        Ok(damage) if damage.is_empty() => {}
        Ok(damage) => return vec![Finding::problem(CHECK, damage.join("; "), rebuild)],
        Err(error) => return vec![Finding::problem(CHECK, error.to_string(), rebuild)],
    }
    let mut findings = Vec::new();
    let log = Log::open(&app.paths.log(), Options::default());
    if log.is_ok_and(|log| store.history_mismatch(&log).ok().flatten().is_some()) {
        let what = "memory.db has events that the log does not";
        findings.push(Finding::warning(CHECK, what, "rebuild it with `claude-mem distill`"));
    } else if let Some(what) = rebuild_report(app, &store) {
        let remedy = "look for them in a backup of the log with `claude-mem restore`";
        findings.push(Finding::warning(CHECK, what, remedy));
    }
    if let Ok(counts) = store.counts() {
        let what = format!(
            "{}, {}; pending: {}",
            count(counts.observations, "observation"),
            count(counts.summaries, "summary"),
            count(counts.outstanding, "event")
        );
        findings.push(Finding::fine(CHECK, what));
        if counts.parked > 0 {
            let what = format!("parked: {}", count(counts.parked, "event"));
            findings.push(Finding::warning(CHECK, what, "retry with `claude-mem distill retry`"));
        }
    }
    findings.extend(provider(app, &store));
    findings.extend(vectors(app, &store));
    findings
}

/// The embedding model, and how many memories it has not read yet.
fn vectors(app: &App, store: &Store) -> Option<Finding> {
    const CHECK: &str = "vectors";
    if let Some(failure) = semantic::endpoint_failure(app) {
        let remedy = "\
            try again with `claude-mem index`; use the built-in model with `claude-mem settings \
            unset EMBEDDING_BASE_URL`";
        return Some(Finding::warning(CHECK, failure, remedy));
    }
    match semantic::count(app, store) {
        Ok(None) => None,
        Ok(Some(counts)) if counts.total == 0 => Some(Finding::fine(CHECK, "none yet")),
        Ok(Some(counts)) if counts.missing == 0 => {
            Some(Finding::fine(CHECK, format!("all {}", number(counts.total))))
        }
        Ok(Some(counts)) => Some(Finding::fine(
            CHECK,
            format!(
                "{} of {} missing; the worker or `claude-mem index` adds them",
                number(counts.missing),
                number(counts.total)
            ),
        )),
        Err(failure) => {
            let remedy = "\
                correct the settings `CLAUDE_MEM_EMBEDDING_…`, or unset them for the built-in \
                model";
            Some(Finding::problem(CHECK, failure.in_one_line(), remedy))
        }
    }
}

/// The provider, and why a better one is not used.
fn provider(app: &App, store: &Store) -> Vec<Finding> {
    const CHECK: &str = "provider";
    let mut findings = Vec::new();
    let Ok(distilling) = DistillStatus::read(store, &setup(app)) else { return findings };
    if let Ok(Some(failure)) = store.last_failure()
        && distilling.outages.iter().all(|out| out.provider != failure.provider)
    {
        let message = failure.message.unwrap_or_default();
        let what = format!("{} failed last: {} {message}", failure.provider, failure.class);
        let remedy = "\
            try again with `claude-mem distill`; choose another with `claude-mem settings set \
            PROVIDER NAME`";
        findings.push(Finding::warning(CHECK, what.trim_end(), remedy));
    }
    for out in &distilling.outages {
        let instead =
            if distilling.is_fallback() { "; using the built-in rules meanwhile" } else { "" };
        let what = format!("{}{instead}", out.line());
        findings.push(Finding::warning(CHECK, what, out.remedy.clone()));
    }
    if let Some(redo) = &distilling.by_rules {
        findings.push(Finding::fine(CHECK, redo.line()));
    }
    findings
}

/// A worker can respond and still be stuck.
fn worker(app: &App) -> Finding {
    const CHECK: &str = "worker";
    let worker = status::worker(app);
    let what = worker.summary();
    match worker.status.as_deref() {
        None => match client::failed_starts(&app.paths.data) {
            0 | 1 => Finding::fine(CHECK, what),
            count => Finding::warning(
                CHECK,
                format!("failed to start {count} times"),
                "see why with `claude-mem worker run`",
            ),
        },
        Some("ok") => Finding::fine(CHECK, what),
        Some("degraded") => Finding::warning(
            CHECK,
            what,
            "see details with `claude-mem worker status`; choose another provider with \
             `claude-mem settings set PROVIDER NAME`",
        ),
        _ => Finding::problem(CHECK, what, "restart it with `claude-mem worker restart`"),
    }
}

/// Queries the remote, because the saved state may be outdated.
fn shipping(app: &App) -> Vec<Finding> {
    const CHECK: &str = "shipping";
    let Some(ShipStatus { place, .. }) = ShipStatus::look(app, 0) else {
        let what = "not configured; your data is only on this disk";
        return vec![match Backup::look(app) {
            Some(Backup { error: Some(error), .. }) => Finding::warning(
                CHECK,
                format!("{what}, and the backup failed: {error}"),
                "the worker tries again; `claude-mem ship --to PLACE` copies the log elsewhere",
            ),
            Some(Backup { copied_at: Some(_), place, log_bytes, .. }) => {
                let backup = format!("{} of log in {}", bytes(log_bytes), place.display());
                Finding::fine(CHECK, format!("{what}, with a backup of {backup}"))
            }
            _ => Finding::fine(CHECK, what),
        }];
    };
    let mut findings = Vec::new();
    let key = app.paths.ship_key();
    if fs::metadata(&key).is_ok_and(|key| os::is_open_to_others(&key)) {
        let (what, remedy) =
            ("other users can read the key", format!("`chmod 600 '{}'`", key.display()));
        findings.push(Finding::problem(CHECK, what, remedy));
    }
    findings.push(match query_remote(app, &place) {
        Ok(what) => Finding::fine(CHECK, what),
        // Waiting does not help, so it is more than a warning.
        Err(error) if error.is_other_history() => Finding::problem(
            CHECK,
            Failure::from(error).in_one_line(),
            "nothing is shipped until this is repaired with `claude-mem verify --remote --repair`",
        ),
        Err(error) => Finding::warning(
            CHECK,
            Failure::from(error).in_one_line(),
            "the local log is complete; `claude-mem ship` tries again and shows details",
        ),
    });
    findings
}

/// The state of the remote, or the error that the next `ship` would return.
fn query_remote(app: &App, place: &str) -> Result<String, ShipError> {
    let App { paths, settings, environment, clock, .. } = app;
    // A directory that does not exist is not created.
    Remote::open(place, Purpose::Read, paths, settings, environment)?;
    if local::host(&paths.log())?.is_none() {
        return Ok(format!("to {place}, after the first event"));
    }
    let mut shipper = Shipper::open(place, paths, settings, environment, *clock)?;
    let compared = runtime()?.block_on(shipper.check())?;
    let Some(head) = shipper.head() else {
        return Err(ShipError::NoHosts { place: place.into() });
    };
    let what = format!("{place} has {} of log as of entry {}", bytes(head.bytes()), head.number);
    Ok(match compared.behind_bytes {
        0 => what,
        behind => format!("{what}, {} behind", bytes(behind)),
    })
}
