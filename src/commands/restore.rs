//! `claude-mem restore`: restore the log from a backup.

use std::{cell::OnceCell, fs, path::PathBuf};

use clap::Args;
use claude_mem_log::Id;
use serde_json::json;

use super::{ship, verify};
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{bytes, count},
    paths::Paths,
    progress::Progress,
    time_arg::When,
};
use claude_mem_memory::store;
use claude_mem_sync::ship::{
    Error,
    manifest::HostId,
    remote::{Purpose, Remote},
    remote_head,
    restore::{RestoreEnd, RestoreRequest, Restored, restore},
};

/// Restore everything from a backup
///
/// Downloads the log, checks every byte, and rebuilds the database. The data directory must not
/// contain a log yet. If interrupted, nothing is in use, and the next run continues.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Backup location [default: the setting `CLAUDE_MEM_SHIP_TO`]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Data directory to create [default: the current one]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Machine to restore, if there are several: its name or a prefix of its ID
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Stop before this time, such as `2026-03-01`, or after the event with this ID
    #[arg(long, value_name = "WHEN|EVENT")]
    until: Option<String>,
    /// Continue without damaged or missing parts
    #[arg(long)]
    salvage: bool,
    /// Restore the log only, and build the database later
    #[arg(long)]
    log_only: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Restore {
    /// Exits with code 1 if something could not be restored.
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
            let request =
                RestoreRequest { data: &paths.data, host, until, is_salvage: self.salvage };
            let show = |done: u64, total: u64| {
                let begin = || Progress::bytes("restoring", total).with_lines();
                progress.get_or_init(begin).show(done, "bytes");
            };
            restore(&remote, request, show).await
        })?;
        drop(progress);
        let events = match self.log_only {
            true => None,
            false => Some(fold(app, &paths).map_err(|failure| {
                failure
                    .meaning(
                        "the log is restored, every byte checked; only the database is not \
                         built yet",
                    )
                    .remedy("fix the cause, then build it with `claude-mem replay`")
            })?),
        };
        let damage = verify::list_damage(app, &paths.log())?;
        self.print_result(app, &paths, &restored, events)?;
        if !restored.lost.is_empty() {
            let pieces = count(restored.lost.len(), "piece");
            return Err(Failure::new(format!("{pieces} could not be restored"))
                .meaning("everything else is restored; readers skip the missing parts")
                .remedy("see what is lost with `claude-mem verify`"));
        }
        damage.map_or(Ok(()), |damage| {
            Err(damage.meaning("it was shipped so; everything else is restored"))
        })
    }

    fn until(&self, app: &App) -> Result<Option<RestoreEnd>, Failure> {
        let Some(text) = &self.until else { return Ok(None) };
        if let Some(id) = Id::parse(text) {
            return Ok(Some(RestoreEnd::Event(id)));
        }
        let when: When = text.parse().map_err(|why| {
            Failure::usage(format!("`{text}` is neither a time nor the ID of an event: {why}"))
        })?;
        let end = when.end(app.clock.now()).as_microsecond();
        Ok(Some(RestoreEnd::Time(end.max(0).cast_unsigned())))
    }

    fn print_result(
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
                .map(|events| format!("; {} indexed", count(events as usize, "event")))
                .unwrap_or_default();
            app.output.line(format_args!(
                "{}: {} of log from entry {}, every byte as it was shipped{folded}",
                paths.data.display(),
                bytes(restored.bytes),
                ship::entry(head)
            ))?;
            for lost in &restored.lost {
                app.output.line(format_args!("lost: {lost}"))?;
            }
        }
        Ok(())
    }
}

/// A restore never merges logs or replaces one.
fn refuse_if_used(paths: &Paths) -> Result<(), Failure> {
    let is_used = |path: PathBuf| match fs::read_dir(&path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    };
    match [paths.log(), paths.memory()].into_iter().find(|path| is_used(path.clone())) {
        None => Ok(()),
        Some(path) => {
            Err(Failure::new(format!("a data directory with a log exists: {}", path.display()))
                .meaning("nothing was changed")
                .remedy(
                    "restore to another place with `--into DIR`, or move it away first; to add \
                     another machine's memories, use `claude-mem remote pull`",
                ))
        }
    }
}

/// The host to restore: the only one, or the one with this name or ID.
async fn choose(remote: &Remote, request: Option<&str>) -> Result<HostId, Error> {
    let hosts = remote_head::hosts(remote).await?;
    if let (None, [host]) = (request, hosts.as_slice()) {
        return Ok(*host);
    }
    let mut named = Vec::new();
    let mut shown = Vec::new();
    for host in &hosts {
        let described = remote_head::describe(remote, *host).await?;
        let name = described.map(|described| described.name).unwrap_or_default();
        shown.push(format!("{name} ({host})"));
        let is_meant = |request: &str| name == request || host.to_string().starts_with(request);
        if request.is_some_and(is_meant) {
            named.push(*host);
        }
    }
    match named.as_slice() {
        [host] => Ok(*host),
        _ if hosts.is_empty() => Err(Error::NoHosts { place: remote.place().into() }),
        _ => Err(Error::SeveralHosts { place: remote.place().into(), hosts: shown }),
    }
}

fn fold(app: &App, paths: &Paths) -> Result<u64, Failure> {
    let mut there = App::new(app.environment.clone(), paths.clone());
    let mut store = store::open(&mut there)?;
    let log = store::open_log(&there)?;
    Ok(store::fold(&mut store, &log)?.events)
}
