//! `claude-mem restore`: everything back from a copy.

use std::{cell::OnceCell, fs, path::PathBuf};

use clap::Args;
use claude_mem_log::Id;
use serde_json::json;

use super::{progress::Progress, ship};
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{bytes, count},
    paths::Paths,
    time_arg::When,
};
use claude_mem_memory::store;
use claude_mem_sync::ship::{
    Error,
    manifest::HostId,
    remote::{Purpose, Remote},
    remote_head,
    restore::{Restored, Until, Wanted, restore},
};

/// Get everything back from a copy
///
/// Brings the log from where it was shipped to, checks every byte on the way, and draws memory from it again.
/// Only into a data directory in which nothing is remembered yet. Stopped half-way it leaves nothing in use, and
/// the next run goes on from there.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Where it was shipped to [default: the setting `CLAUDE_MEM_SHIP_TO`]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Data directory to make [default: the one in use]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Whose log, if there are several: its name, or the beginning of its id
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Stop before this moment, such as `2026-03-01`, or behind the event with this id
    #[arg(long, value_name = "WHEN|EVENT")]
    until: Option<String>,
    /// Take what is whole, and go on without what is damaged or missing
    #[arg(long)]
    salvage: bool,
    /// Leave memory to be drawn from the log later
    #[arg(long)]
    log_only: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Restore {
    /// Fetches, checks, and folds. Ends with code 1 if something could not be had.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let place = ship::place(app, "--from", self.from.as_deref())?;
        let until = self.until(app)?;
        let data = match &self.into {
            Some(dir) => std::path::absolute(dir).unwrap_or_else(|_| dir.clone()),
            None => app.paths.data.clone(),
        };
        let paths = Paths { home: app.paths.home.clone(), data };
        refuse_if_used(&paths)?;
        let remote =
            Remote::open(&place, Purpose::Read, &app.paths, &app.settings, &app.environment)?;
        paths.create_data().map_err(|error| Failure::no_directory(&paths.data, &error))?;
        let progress = OnceCell::new();
        let restored = ship::runtime()?.block_on(async {
            let host = choose(&remote, self.host.as_deref()).await?;
            let wanted = Wanted { data: &paths.data, host, until, is_salvage: self.salvage };
            let show = |done: u64, total: u64| {
                let begin = || Progress::new("restoring", (total >> 20) as usize);
                progress.get_or_init(begin).show((done >> 20) as usize, "MB");
            };
            restore(&remote, wanted, show).await
        })?;
        drop(progress);
        let events = match self.log_only {
            true => None,
            false => Some(fold(app, &paths).map_err(|failure| {
                failure
                    .meaning("the log is all there, every byte of it checked; only memory is not drawn from it yet")
                    .remedy("once the cause is fixed, rebuild it with `claude-mem replay`")
            })?),
        };
        self.tell(app, &paths, &restored, events)
    }

    fn until(&self, app: &App) -> Result<Option<Until>, Failure> {
        let Some(text) = &self.until else { return Ok(None) };
        if let Some(id) = Id::parse(text) {
            return Ok(Some(Until::Event(id)));
        }
        let when: When = text.parse().map_err(|why| {
            Failure::usage(format!("`{text}` is neither a moment nor the id of an event: {why}"))
        })?;
        let end = when.end(app.clock.now()).as_microsecond();
        Ok(Some(Until::Time(end.max(0).cast_unsigned())))
    }

    fn tell(
        &self,
        app: &mut App,
        paths: &Paths,
        restored: &Restored,
        events: Option<u64>,
    ) -> Result<(), Failure> {
        let head = &restored.head;
        if self.json {
            app.output.json(&json!({
                "data_dir": paths.data,
                "host": head.host.to_string(),
                "entry": head.number,
                "hash": head.hash.to_string(),
                "log_bytes": restored.bytes,
                "segments": head.manifest.segments.len(),
                "folded": events,
                "is_cut": restored.is_cut,
                "lost": restored.lost,
            }))?;
        } else {
            let folded = events
                .map(|events| format!("; {} folded", count(events as usize, "event")))
                .unwrap_or_default();
            app.output.line(format_args!(
                "{}: {} of log from entry {}, every byte checked{folded}",
                paths.data.display(),
                bytes(restored.bytes),
                ship::entry(head)
            ))?;
            for lost in &restored.lost {
                app.output.line(format_args!("lost: {lost}"))?;
            }
        }
        match restored.lost.len() {
            0 => Ok(()),
            places => Err(Failure::new(format!("{} could not be had", count(places, "piece")))
                .meaning("everything else is there; readers pass over what is missing")
                .remedy("see what is lost with `claude-mem verify`")),
        }
    }
}

/// A log is never mixed with another, nor replaced.
fn refuse_if_used(paths: &Paths) -> Result<(), Failure> {
    let is_used = |path: PathBuf| match fs::read_dir(&path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    };
    match [paths.log(), paths.memory()].into_iter().find(|path| is_used(path.clone())) {
        None => Ok(()),
        Some(path) => Err(Failure::new(format!("there is a memory already: {}", path.display()))
            .meaning("nothing was changed")
            .remedy("restore beside it with `--into DIR`, or move it away first; to have another machine's memory beside this one, use `claude-mem pull`")),
    }
}

/// The host that is meant: the only one, or the one with this name or id.
async fn choose(remote: &Remote, wanted: Option<&str>) -> Result<HostId, Error> {
    let hosts = remote_head::hosts(remote).await?;
    if let (None, [host]) = (wanted, hosts.as_slice()) {
        return Ok(*host);
    }
    let mut named = Vec::new();
    let mut shown = Vec::new();
    for host in &hosts {
        let described = remote_head::describe(remote, *host).await?;
        let name = described.map(|described| described.name).unwrap_or_default();
        shown.push(format!("{name} ({host})"));
        let is_meant = |wanted: &str| name == wanted || host.to_string().starts_with(wanted);
        if wanted.is_some_and(is_meant) {
            named.push(*host);
        }
    }
    match named.as_slice() {
        [host] => Ok(*host),
        _ if hosts.is_empty() => Err(Error::NoHosts { place: remote.place().into() }),
        _ => Err(Error::WhichHost { place: remote.place().into(), hosts: shown }),
    }
}

/// Draws memory from the log that came back.
fn fold(app: &App, paths: &Paths) -> Result<u64, Failure> {
    let mut there = App::new(app.environment.clone(), paths.clone());
    let mut store = store::open(&mut there)?;
    let log = store::open_log(&there)?;
    Ok(store::fold(&mut store, &log)?.events)
}
