//! Rebuilding the database: into a new file that replaces the old one when it is complete.

use crate::{
    error::{Error, Result},
    fold::{
        batch::{Batch, LogSource},
        fts_rebuild::Indexing,
        incremental::{FoldState, Folded, RebuildReason, fold_within},
    },
    store::{
        Options, Store,
        files::{SCRATCH, open_lock, remove_scratch, sibling},
        system::replace,
    },
};
use claude_mem_events::{
    Event, EventReader, Forgotten, Id, LogCompacted, ProjectMerged, Recorded, Seq, Versioned as _,
};
use claude_mem_log::{Item, Log};
use std::{
    collections::{HashMap, HashSet},
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
};

/// Batches that may be read ahead of those being written.
const AHEAD_MAX: usize = 4;
/// Indexes that folding itself reads. All others that are not unique are created after the rows.
const INDEXES_NEEDED: [&str; 4] =
    ["tool_uses_by_turn", "prompts_by_session", "answers_by_reply", "observations_revised"];

/// An empty database is filled by a rebuild if its logs are larger than this, and by folding
/// otherwise.
const FOLDED_BYTES_MAX: u64 = 1 << 20;

/// Rebuilds the database at `path` from the whole log. Calls `progress` after each batch.
///
/// Readers of the old file keep it until they open the database again. An interruption leaves the
/// old file as it was.
pub fn rebuild(
    path: &Path,
    log: &Log,
    options: &Options,
    progress: impl FnMut(&Folded),
) -> Result<Folded> {
    rebuild_as(path, log, options, progress, |_| Ok(()))
}

/// Like [`rebuild`]; `complete` adds what is not in the log before the new file replaces the old
/// one.
fn rebuild_as(
    path: &Path,
    log: &Log,
    options: &Options,
    mut progress: impl FnMut(&Folded),
    complete: impl FnOnce(&Store) -> Result<()>,
) -> Result<Folded> {
    let _rebuilding = lock_rebuild(path)?;
    let scratch = sibling(path, ".new");
    let mut foreseen = ForeseenEvents::default();
    loop {
        remove_scratch(&scratch)?;
        let mut store = Store::open_scratch(&scratch, options.clone())?;
        store.insert_foreseen(&foreseen)?;
        let folded = store.fold_all(&scratch, log, &mut progress)?;
        if folded.state == FoldState::NeedsRebuild(RebuildReason::EarlierEventsAffected) {
            foreseen = store.read_foreseen(log)?;
            continue;
        }
        complete(&store)?;
        store.finish()?;
        replace(path, &scratch)?;
        return Ok(folded);
    }
}

impl Store {
    /// Brings the tables up to date: folds new events if possible, else rebuilds. An empty database
    /// of a long log is rebuilt, because that is several times as fast as folding. A short log is
    /// folded: a rebuild replaces the file, and what another process folds meanwhile is missing in
    /// the new one until it is folded again.
    ///
    /// If another process is rebuilding the same file, this waits for it and continues from there:
    /// after an undo, all processes need the same rebuild.
    pub fn catch_up(&mut self, log: &Log, mut progress: impl FnMut(&Folded)) -> Result<Folded> {
        let mut rebuilt = None;
        loop {
            self.follow()?;
            let mut because = None;
            match self.fold_new(log, rebuilt.is_some(), &mut progress) {
                Ok(_) if self.is_replaced() => continue,
                Ok(Some(folded)) if folded.state == FoldState::Complete => {
                    return Ok(rebuilt.unwrap_or(folded));
                }
                Ok(Some(Folded { state: FoldState::NeedsRebuild(reason), .. })) => {
                    because = Some(reason);
                }
                Ok(_) => {}
                // A damaged file is rebuilt once: the new one must not be damaged.
                Err(error) if error.is_damage() && rebuilt.is_none() => {}
                Err(error) => return Err(error),
            }
            match self.rebuild_because(because, log, &mut progress) {
                Err(Error::Rebuilding { path }) => wait_for_rebuild(&path)?,
                result => rebuilt = Some(result?),
            }
        }
    }

    /// Folds new events; `None` if a rebuild is needed. Also used after a rebuild, for events
    /// appended meanwhile: others may have folded them into the file that was replaced.
    ///
    /// A connection whose write-ahead log was deleted must not be used, nor any other connection to
    /// the same file in this process: SQLite shares its knowledge of the old write-ahead log
    /// between them. A new file avoids that.
    fn fold_new(
        &mut self,
        log: &Log,
        is_drawn: bool,
        progress: &mut impl FnMut(&Folded),
    ) -> Result<Option<Folded>> {
        if self.is_wal_replaced() {
            return Ok(None);
        }
        let is_empty = self.position(0)? == Seq::START && self.hosts()?.is_empty();
        if is_empty && self.path().is_some() && !is_drawn && self.is_long(log)? {
            return Ok(None);
        }
        let folded = self.fold(log, |folded| {
            progress(folded);
            true
        })?;
        Ok(Some(folded))
    }

    fn is_long(&self, log: &Log) -> Result<bool> {
        let mut bytes = 0;
        for source in LogSource::all(log, &self.host_logs()?) {
            bytes += source.log.segments()?.iter().map(|segment| segment.bytes).sum::<u64>();
        }
        Ok(bytes > FOLDED_BYTES_MAX)
    }

    /// Reopens the database if its file was replaced.
    fn follow(&mut self) -> Result<()> {
        if !self.is_replaced() {
            return Ok(());
        }
        let Some(path) = self.path().map(Path::to_owned) else { return Ok(()) };
        *self = Self::open(&path, self.options.clone())?;
        Ok(())
    }

    /// Rebuilds the database.
    pub fn rebuild(&mut self, log: &Log, progress: impl FnMut(&Folded)) -> Result<Folded> {
        self.rebuild_because(None, log, progress)
    }

    fn rebuild_because(
        &mut self,
        because: Option<RebuildReason>,
        log: &Log,
        progress: impl FnMut(&Folded),
    ) -> Result<Folded> {
        let options = self.options.clone();
        let Some(path) = self.path().map(Path::to_owned) else {
            return self.rebuild_in_memory(log, progress);
        };
        let note = |new: &Self| match self.is_wal_replaced() {
            true => Ok(()),
            false => new.record_history_rebuild(self, because),
        };
        let folded = rebuild_as(&path, log, &options, progress, note)?;
        *self = Self::open(&path, options)?;
        Ok(folded)
    }

    fn rebuild_in_memory(
        &mut self,
        log: &Log,
        mut progress: impl FnMut(&Folded),
    ) -> Result<Folded> {
        let mut foreseen = ForeseenEvents::default();
        loop {
            *self = Self::in_memory_with(self.options.clone())?;
            self.insert_foreseen(&foreseen)?;
            let folded = self.fold(log, |folded| {
                progress(folded);
                true
            })?;
            if folded.state != FoldState::NeedsRebuild(RebuildReason::EarlierEventsAffected) {
                return Ok(folded);
            }
            foreseen = self.read_foreseen(log)?;
        }
    }

    /// Reads all logs for events that affect earlier ones.
    fn read_foreseen(&self, log: &Log) -> Result<ForeseenEvents> {
        let mut foreseen = ForeseenEvents::default();
        for source in LogSource::all(log, &self.host_logs()?) {
            foreseen.read(source.log)?;
        }
        Ok(foreseen)
    }

    fn insert_foreseen(&self, foreseen: &ForeseenEvents) -> Result<()> {
        for id in foreseen.void_forgettings() {
            let sql = "insert into void_forgettings (event) values (?1)";
            self.connection.execute(sql, [id.as_bytes()])?;
        }
        for (id, merged) in &foreseen.merges {
            let sql = "insert or ignore into project_merges (event, source, target, label)
                       values (?1, ?2, ?3, ?4)";
            let ProjectMerged { from, into, label } = merged;
            self.connection.execute(sql, (id.as_bytes(), from, into, label))?;
        }
        Ok(())
    }

    /// Folds all logs from their beginnings into an empty scratch file. Reading and decoding run in
    /// one thread, full-text indexing in another.
    fn fold_all(
        &mut self,
        scratch: &Path,
        log: &Log,
        progress: &mut impl FnMut(&Folded),
    ) -> Result<Folded> {
        let triggers =
            self.drop_objects("type = 'trigger' and name like '%\\_fts\\_%' escape '\\'")?;
        let indexes = self.drop_objects(&deferred_indexes())?;
        let indexing = Indexing::begin(&self.connection, &triggers, sibling(scratch, SCRATCH[1]))?;
        let mut folded = Folded::default();
        let events_max = self.options.batch_events;
        let kinds = &self.options.kinds.clone();
        let foreign = self.host_logs()?;
        let sources = &LogSource::all(log, &foreign);
        // A single transaction: there are no other users to wait for it, and each page is written
        // only when the cache is full.
        let transaction = self.connection.unchecked_transaction()?;
        thread::scope(|scope| {
            let (sender, batches) = mpsc::sync_channel(AHEAD_MAX);
            scope.spawn(move || {
                for source in sources {
                    let mut reader = EventReader::from(source.log, Seq::START);
                    loop {
                        let mut batch = Batch::read(source, &mut reader, events_max);
                        if let Ok(batch) = &mut batch {
                            batch.read_replies(kinds);
                        }
                        if batch.as_ref().is_ok_and(|batch| batch.items.is_empty()) {
                            break;
                        }
                        if sender.send(batch).is_err() {
                            return;
                        }
                    }
                }
            });
            for batch in batches {
                fold_within(&transaction, &batch?, &mut folded, kinds)?;
                if folded.state != FoldState::Complete {
                    return Ok(());
                }
                progress(&folded);
            }
            Ok::<_, Error>(())
        })?;
        transaction.commit()?;
        if folded.state != FoldState::Complete {
            return Ok(folded);
        }
        self.create_objects(&indexes)?;
        indexing.finish(&self.connection)?;
        self.create_objects(&triggers)?;
        Ok(folded)
    }

    /// Drops the schema objects that match the condition; returns the statements that create them.
    fn drop_objects(&self, condition: &str) -> Result<Vec<String>> {
        let sql =
            format!("select type, name, sql from sqlite_schema where {condition} order by name");
        let mut statement = self.connection.prepare(&sql)?;
        let taken: Vec<(String, String, String)> = statement
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (kind, name, _) in &taken {
            self.connection.execute(&format!("drop {kind} {name}"), ())?;
        }
        Ok(taken.into_iter().map(|(_, _, sql)| sql).collect())
    }

    /// Creates the dropped objects again.
    fn create_objects(&self, taken: &[String]) -> Result<()> {
        let make = self.connection.unchecked_transaction()?;
        for sql in taken {
            make.execute_batch(sql)?;
        }
        Ok(make.commit()?)
    }

    /// Turns a scratch file into a regular database, and closes it.
    fn finish(self) -> Result<()> {
        // A sample of a few hundred rows of each index is enough for the planner. Statistics of
        // small tables are dropped: the planner would keep scanning them after they have grown.
        let sql = "pragma analysis_limit = 400; analyze;
                   delete from sqlite_stat1 where cast(stat as integer) < 1000";
        self.connection.execute_batch(sql)?;
        self.connection.pragma_update(None, "journal_mode", "delete")?;
        self.connection.pragma_update(None, "locking_mode", "normal")?;
        self.connection.pragma_update(None, "journal_mode", "wal")?;
        self.connection.close().map_err(|(_, error)| error.into())
    }
}

fn deferred_indexes() -> String {
    let needed = INDEXES_NEEDED.map(|name| format!("'{name}'")).join(", ");
    format!("type = 'index' and sql like 'create index%' and name not in ({needed})")
}

/// Later events that affect earlier ones.
#[derive(Default)]
struct ForeseenEvents {
    /// Forgettings that undo another one, and which.
    undoings: Vec<(Id, Id)>,
    merges: Vec<(Id, ProjectMerged)>,
    /// Places of forgettings: the index of the log, and the number of events before it.
    places: HashMap<Id, (usize, u64)>,
    /// Compactions and their places.
    compactions: Vec<(Id, (usize, u64))>,
    logs: usize,
}

impl ForeseenEvents {
    fn read(&mut self, log: &Log) -> Result<()> {
        let mut reader = log.read_from_start();
        self.logs += 1;
        let mut order = 0;
        while let Some(item) = reader.next()? {
            let Item::Record(entry) = item else { continue };
            if ![Forgotten::KIND, ProjectMerged::KIND, LogCompacted::KIND].contains(&entry.kind) {
                continue;
            }
            order += 1;
            let place = (self.logs, order);
            let recorded = Recorded::from_entry(&entry);
            match recorded.event {
                Event::Forgotten(Forgotten { undoes, .. }) => {
                    self.places.insert(recorded.id, place);
                    self.undoings.extend(undoes.map(|id| (recorded.id, Id::from_bytes(id))));
                }
                Event::ProjectMerged(merged) => self.merges.push((recorded.id, merged)),
                Event::LogCompacted(_) => self.compactions.push((recorded.id, place)),
                _ => {}
            }
        }
        Ok(())
    }

    /// An undo can be undone: a forgetting is void if a forgetting that is not void undoes it.
    fn void_forgettings(&self) -> HashSet<Id> {
        let undone = self.undoings.iter().map(|(_, undone)| *undone);
        undone.filter(|id| self.is_void(*id, 0)).collect()
    }

    fn is_void(&self, id: Id, depth: usize) -> bool {
        let mut undoers = self
            .undoings
            .iter()
            .filter(|(undoer, undone)| *undone == id && !self.is_too_late(*undoer, id));
        // Only an existing event can be undone, so this ends unless the log was forged.
        depth <= self.undoings.len() && undoers.any(|(undoer, _)| !self.is_void(*undoer, depth + 1))
    }

    /// Returns true if a compaction ran after the forgetting and before its undo, so that nothing
    /// can be restored. Compares events of different logs by id, and those of one log by position.
    fn is_too_late(&self, undoer: Id, undone: Id) -> bool {
        let (undoer, undone) =
            ((undoer, self.places.get(&undoer)), (undone, self.places.get(&undone)));
        let is_before = |earlier: (Id, Option<&(usize, u64)>),
                         later: (Id, Option<&(usize, u64)>)| {
            match (earlier.1, later.1) {
                (Some(earlier), Some(later)) if earlier.0 == later.0 => earlier.1 < later.1,
                _ => earlier.0 < later.0,
            }
        };
        self.compactions.iter().any(|(id, place)| {
            let compaction = (*id, Some(place));
            is_before(undone, compaction) && is_before(compaction, undoer)
        })
    }
}

/// Only one rebuild at a time: they would write to the same file.
pub(crate) fn lock_rebuild(path: &Path) -> Result<File> {
    let (lock, file) = rebuild_lock(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Rebuilding { path: path.into() }),
        Err(TryLockError::Error(source)) => Err(Error::Io { action: "lock", path: lock, source }),
    }
}

fn wait_for_rebuild(path: &Path) -> Result<()> {
    let (lock, file) = rebuild_lock(path)?;
    file.lock_shared().map_err(|source| Error::Io { action: "lock", path: lock, source })
}

fn rebuild_lock(path: &Path) -> Result<(PathBuf, File)> {
    let lock = sibling(path, ".rebuild");
    match open_lock(&lock) {
        Ok(file) => Ok((lock, file)),
        Err(source) => Err(Error::Io { action: "create", path: lock, source }),
    }
}
