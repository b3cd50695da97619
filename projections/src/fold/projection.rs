//! The `Projection` trait, and the rows that projections write to.

use crate::{
    error::Result,
    fold::{
        files_touched::FilesTouched,
        sessions::{Places, SessionChanges},
        sources::Sources,
    },
    hosts::ROWS_PER_HOST,
    xml::{self, Reply},
};
use claude_mem_events::{Recorded, Tombstone};
use rusqlite::{CachedStatement, OptionalExtension, Params, Transaction};
use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{BTreeMap, HashMap, btree_map::Entry},
    ops::Deref,
    rc::Rc,
    sync::Arc,
};

/// Replies parsed ahead of folding, by their place in the log.
pub(crate) type ReadAhead = HashMap<u64, Arc<Reply>>;

/// One view of the log: which rows an event becomes.
pub trait Projection: Sync {
    /// Names its version row. Never changes once released.
    fn name(&self) -> &'static str;

    /// Raising it rebuilds the whole database from the log, because projections read each other's
    /// rows.
    fn version(&self) -> u32;

    /// Folds one event into rows. No clock, no network, no environment: the same log gives the same
    /// rows.
    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()>;
}

/// The rows, within the transaction that also moves the checkpoint.
pub struct Rows<'a> {
    transaction: &'a Transaction<'a>,
    kinds: &'a [String],
    ahead: &'a ReadAhead,
    /// The host whose log is folded; 0 is our own.
    pub(crate) host: u8,
    /// The reply parsed last, and its sources: several projections read the same one.
    reply: RefCell<Option<(u64, Arc<Reply>)>>,
    sources: RefCell<Option<(u64, Rc<Sources>)>>,
    /// Sessions looked up in this transaction.
    pub(crate) places: RefCell<Places>,
    pub(crate) session_changes: RefCell<BTreeMap<i64, SessionChanges>>,
    /// The tombstone of the event being folded, if it was erased.
    tombstone: RefCell<Option<Tombstone>>,
    /// Events folded in this transaction: replies mostly answer recent events.
    pub(crate) seqs: RefCell<HashMap<[u8; 16], i64>>,
    /// Names of projects in this transaction, each with the last event that uses it.
    pub(crate) labels: RefCell<Vec<(i64, String, [u8; 16])>>,
    /// The last row id given out per kind and host.
    counters: RefCell<BTreeMap<(&'static str, u8), i64>>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(
        transaction: &'a Transaction<'a>,
        kinds: &'a [String],
        ahead: &'a ReadAhead,
        host: u8,
    ) -> Self {
        Self {
            transaction,
            kinds,
            ahead,
            host,
            reply: RefCell::default(),
            sources: RefCell::default(),
            places: RefCell::default(),
            session_changes: RefCell::default(),
            tombstone: RefCell::default(),
            seqs: RefCell::default(),
            labels: RefCell::default(),
            counters: RefCell::default(),
        }
    }

    /// Folds an event of which only a tombstone is left.
    pub(crate) fn with_tombstone<T>(&self, tombstone: Tombstone, fold: impl FnOnce() -> T) -> T {
        *self.tombstone.borrow_mut() = Some(tombstone);
        let folded = fold();
        *self.tombstone.borrow_mut() = None;
        folded
    }

    /// The original size of an event; `now` if it was not erased.
    pub(crate) fn bytes(&self, now: usize) -> i64 {
        self.tombstone.borrow().as_ref().map_or(now as i64, |tombstone| tombstone.bytes as i64)
    }

    /// The files named by the input of a tool use that was erased.
    pub(crate) fn files_of_tombstone(&self) -> Option<FilesTouched> {
        let tombstone = self.tombstone.borrow();
        let tombstone = tombstone.as_ref()?;
        Some(FilesTouched {
            read: tombstone.files_read.clone(),
            written: tombstone.files_written.clone(),
        })
    }

    /// Whether the parsed reply is kept although its text was erased.
    pub(crate) fn has_erased_reply(&self) -> bool {
        self.tombstone.borrow().as_ref().is_some_and(|tombstone| !tombstone.reply.is_empty())
    }

    fn reply_of_tombstone(&self) -> Option<Reply> {
        let tombstone = self.tombstone.borrow();
        let tombstone = tombstone.as_ref()?;
        Some(serde_json::from_str(&tombstone.reply).unwrap_or_default())
    }

    /// Executes a cached statement; returns the number of changed rows.
    pub(crate) fn run(&self, sql: &str, values: impl Params) -> Result<usize> {
        Ok(self.cached(sql)?.execute(values)?)
    }

    pub(crate) fn cached(&self, sql: &str) -> Result<CachedStatement<'_>> {
        Ok(self.transaction.prepare_cached(sql)?)
    }

    /// Allocates `count` row ids of one kind and returns the first. Each host has its own range,
    /// the same on every machine.
    pub(crate) fn numbers(&self, name: &'static str, count: usize) -> Result<i64> {
        let first = self.numbers_of(name, self.host, count)?;
        Ok(i64::from(self.host) * ROWS_PER_HOST + first)
    }

    /// The same for rows shared by all hosts.
    pub(crate) fn numbers_for_all(&self, name: &'static str, count: usize) -> Result<i64> {
        self.numbers_of(name, 0, count)
    }

    fn numbers_of(&self, name: &'static str, log: u8, count: usize) -> Result<i64> {
        let mut counters = self.counters.borrow_mut();
        let last = match counters.entry((name, log)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let (sql, name) = ("select last from counters where name = ?1", counter(name, log));
                let last = self.cached(sql)?.query_row([name], |row| row.get(0)).optional()?;
                unknown.insert(last.unwrap_or(0))
            }
        };
        *last += count as i64;
        Ok(*last - count as i64 + 1)
    }

    /// Stores the allocated row ids, once per transaction.
    pub(crate) fn write_counters(&self) -> Result<()> {
        for ((name, log), last) in &*self.counters.borrow() {
            let sql = "insert or replace into counters (name, last) values (?1, ?2)";
            self.run(sql, (counter(name, *log), last))?;
        }
        Ok(())
    }

    /// The parsed reply, under the current observation types.
    pub(crate) fn reply(&self, event: &Recorded, text: &str) -> Arc<Reply> {
        let seq = event.seq.raw();
        let mut last = self.reply.borrow_mut();
        match &*last {
            Some((of, reply)) if *of == seq => Arc::clone(reply),
            _ => {
                let read = || {
                    let tombstone = self.reply_of_tombstone();
                    Arc::new(tombstone.unwrap_or_else(|| xml::read_reply(text, self.kinds)))
                };
                let reply = self.ahead.get(&seq).map_or_else(read, Arc::clone);
                *last = Some((seq, Arc::clone(&reply)));
                reply
            }
        }
    }

    /// The events that the reply in `event` answers. They must be linked to it before.
    pub(crate) fn sources(&self, event: &Recorded) -> Result<Rc<Sources>> {
        let seq = event.seq.raw();
        if let Some((of, sources)) = &*self.sources.borrow()
            && *of == seq
        {
            return Ok(Rc::clone(sources));
        }
        let sources = Rc::new(Sources::of(self, event)?);
        *self.sources.borrow_mut() = Some((seq, Rc::clone(&sources)));
        Ok(sources)
    }
}

impl<'a> Deref for Rows<'a> {
    type Target = Transaction<'a>;

    fn deref(&self) -> &Self::Target {
        self.transaction
    }
}

/// The name of a host's counter.
fn counter(name: &str, log: u8) -> Cow<'_, str> {
    match log {
        0 => name.into(),
        log => format!("{name}@{log}").into(),
    }
}
