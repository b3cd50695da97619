//! Logs of other machines ("hosts"), folded into the same database as our own.
//!
//! Each log is folded separately and in its own order, so the rows do not depend on which log came
//! first. The number of a host is part of every `seq` ([`local_seq`] removes it) and of every row
//! id: row 57 of host 3 is `3000000057` here and 57 on that machine. Our own log has number 0, so
//! that its row ids stay small.

use crate::{
    error::{Error, Result},
    store::{Store, sql_values::number},
};
use claude_mem_events::{Event, EventItem, Recorded, Seq, TextForm, VisitTexts as _};
use claude_mem_log::{Log, Options};
use claude_mem_privacy::{
    Policy, redact_json_or_text, redact_path, redact_reply, redact_text, work,
};
use rusqlite::OptionalExtension;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The upper bits of a `seq`, from this one on, contain the number of the host. The lower bits have
/// space for eight million segments.
pub(crate) const HOST_SHIFT: u32 = 55;
/// Every `seq` of our own log is below this.
pub(crate) const FIRST_FOREIGN_SEQ: i64 = 1 << HOST_SHIFT;
/// Row ids reserved for each host.
pub(crate) const ROWS_PER_HOST: i64 = 1_000_000_000;
/// Generation numbers reserved for each host.
const GENERATIONS_PER_HOST: u32 = 1_000_000;
/// The highest number of a host.
pub const HOSTS_MAX: u8 = 255;

/// Metadata of another machine, stored in `host.json` next to the copy of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The number of the host here, from 1. Row ids contain it, so it never changes.
    pub number: u8,
    /// The name of the machine.
    #[serde(default)]
    pub name: String,
    /// Whether its memories are hidden.
    #[serde(default)]
    pub is_hidden: bool,
    /// Whether its log is excluded entirely. The number stays reserved.
    #[serde(default)]
    pub is_dropped: bool,
    /// Whether the user confirmed that the machine is theirs. What it forgets is hidden in any
    /// case, and then also erased from our own log.
    #[serde(default)]
    pub is_confirmed: bool,
}

/// The copy of another machine's log.
#[derive(Debug, Clone)]
pub struct HostLog {
    /// The host.
    pub host: Host,
    /// Identity of the log.
    pub id: [u8; 16],
    /// The directory of the copy.
    pub dir: PathBuf,
    /// The log.
    pub log: Log,
}

impl Host {
    /// The file name.
    pub const FILE: &str = "host.json";

    fn is_here(&self) -> bool {
        self.number > 0 && !self.is_dropped
    }

    /// Reads `host.json` in the directory of a copy; `None` if it is missing or unreadable.
    pub fn read(dir: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(dir.join(Self::FILE)).ok()?).ok()
    }
}

/// The copies below `dir`, ordered by number. A copy that is still being made has no `host.json`
/// and is left out.
pub fn host_logs(dir: &Path) -> Result<Vec<HostLog>> {
    let failed = |source| Error::Io { action: "list", path: dir.into(), source };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let dir = entry.map_err(failed)?.path();
        let Some(host) = Host::read(&dir).filter(Host::is_here) else { continue };
        let log = Log::open(&dir, Options::default())?;
        if let Some(id) = log.id() {
            found.push(HostLog { host, id, dir, log });
        }
    }
    found.sort_by_key(|foreign| foreign.host.number);
    found.dedup_by_key(|foreign| foreign.host.number);
    Ok(found)
}

/// The number of the host whose log contains this place; 0 is our own.
pub fn host_of(seq: Seq) -> u8 {
    (seq.raw() >> HOST_SHIFT) as u8
}

/// A place as it is in its own log.
pub fn local_seq(seq: Seq) -> Seq {
    Seq::from_raw(seq.raw() & (FIRST_FOREIGN_SEQ as u64 - 1))
}

/// Redacts an event of another machine, which may have recorded with other rules, or none. The copy
/// of its log stays as it is, because the hash chain covers it. The built-in rules apply, not our
/// settings: the same logs give the same rows.
pub fn redact_foreign(recorded: &mut Recorded) {
    const BYTES_MAX: usize = 256 << 20;
    let policy =
        Policy { field_bytes_max: BYTES_MAX, total_bytes_max: BYTES_MAX, ..Policy::default() };
    let _scope = work::Scope::new(work::EVENT_BYTES_MAX);
    let mut redact = |form, text: &mut String| {
        if text.is_empty() {
            return;
        }
        *text = match form {
            TextForm::Plain => redact_text(text, policy).text,
            TextForm::Json => redact_json_or_text(text, policy),
            TextForm::Reply => redact_reply(text, policy),
            TextForm::Path => redact_path(text, policy),
        };
    };
    recorded.envelope.visit_texts(&mut redact);
    recorded.event.visit_texts(&mut redact);
}

/// Redacts an item of another machine's log, and adds the number of the host to its place and
/// generation.
pub(crate) fn with_host(met: EventItem, log: u8) -> EventItem {
    let EventItem::Event(mut recorded) = met else { return met };
    if log > 0 {
        redact_foreign(&mut recorded);
    }
    let seq = Seq::from_raw(u64::from(log) << HOST_SHIFT | recorded.seq.raw());
    let mut recorded = Recorded { seq, ..recorded };
    let generation = match &mut recorded.event {
        Event::AgentReplied(event) => &mut event.generation,
        Event::AgentFailed(event) => &mut event.generation,
        Event::ReprocessStarted(event) => &mut event.generation,
        Event::ReprocessFinished(event) => &mut event.generation,
        _ => return EventItem::Event(recorded),
    };
    // Generation 0 is the initial distillation, in every log.
    if *generation > 0 {
        *generation = u32::from(log) * GENERATIONS_PER_HOST + *generation % GENERATIONS_PER_HOST;
    }
    EventItem::Event(recorded)
}

/// The state of another machine's log in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostState {
    /// The number of the host.
    pub number: u8,
    /// Identity of its log.
    pub id: [u8; 16],
    /// The name of the machine.
    pub name: String,
    /// Whether its memories are hidden.
    pub is_hidden: bool,
    /// Number of events folded.
    pub events: u64,
    /// The latest time of an event.
    pub at_us: u64,
    /// Number of visible memories.
    pub memories: u64,
}

impl Store {
    /// The other machines whose logs are in the database.
    pub fn hosts(&self) -> Result<Vec<HostState>> {
        let sql = "select log, id, coalesce(name, ''), is_hidden, events, at_us,
                       (select count(*) from observations where is_visible
                       and observations.host = log)
                   from hosts order by log";
        self.rows(sql, (), |row| {
            Ok(HostState {
                number: row.get(0)?,
                id: row.get(1)?,
                name: row.get(2)?,
                is_hidden: row.get(3)?,
                events: number(row, 4)?,
                at_us: number(row, 5)?,
                memories: number(row, 6)?,
            })
        })
    }

    /// The name of the host with this number; `None` for our own.
    pub(crate) fn host_name(&self, log: u8) -> Result<Option<String>> {
        if log == 0 {
            return Ok(None);
        }
        let sql = "select name from hosts where log = ?1";
        let name = self.connection.prepare_cached(sql)?.query_row([log], |row| row.get(0));
        Ok(name.optional()?.flatten().or_else(|| Some(format!("machine {log}"))))
    }

    /// SQL: the numbers of the logs whose forgettings may erase bytes: ours, and those of machines
    /// that the user confirmed.
    pub(crate) fn erasing_hosts(&self) -> Result<String> {
        let mut numbers = String::from("(0");
        for copy in self.host_logs()?.iter().filter(|copy| copy.host.is_confirmed) {
            numbers.push_str(", ");
            numbers.push_str(&copy.host.number.to_string());
        }
        Ok(numbers + ")")
    }

    /// The copies of logs to fold after our own log.
    pub(crate) fn host_logs(&self) -> Result<Vec<HostLog>> {
        match self.options.foreign.as_os_str().is_empty() {
            true => Ok(Vec::new()),
            false => host_logs(&self.options.foreign),
        }
    }

    /// Whether the database contains rows of a host that is hidden, shown again or dropped since,
    /// or whose log has another identity.
    pub(crate) fn have_hosts_changed(&self) -> Result<bool> {
        if self.options.foreign.as_os_str().is_empty() {
            return Ok(false);
        }
        let copies = self.host_logs()?;
        let mut statement =
            self.connection.prepare_cached("select log, id, is_hidden from hosts")?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let (number, id, is_hidden): (u8, [u8; 16], bool) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let is_same = |copy: &HostLog| {
                (copy.host.number, copy.id, copy.host.is_hidden) == (number, id, is_hidden)
            };
            if !copies.iter().any(is_same) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
