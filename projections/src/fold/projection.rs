//! One view of the log, and what it has at hand while it is drawn.

use crate::{
    error::Result,
    fold::{
        files_touched::FilesTouched,
        sessions::{GoneOn, Places},
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

/// Replies that were read ahead of folding, by their place in the log.
pub(crate) type ReadAhead = HashMap<u64, Arc<Reply>>;

/// One view of the log: which rows an event becomes.
pub trait Projection: Sync {
    /// Names it among the versions that are kept. Once released it never changes.
    fn name(&self) -> &'static str;

    /// Raise it and everything is drawn again from the whole log, because projections build on each other.
    fn version(&self) -> u32;

    /// Folds one event into rows. No clock, no network, no environment: the same log gives the same rows.
    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()>;
}

/// The rows, within the transaction that also moves the checkpoint.
pub struct Rows<'a> {
    transaction: &'a Transaction<'a>,
    kinds: &'a [String],
    ahead: &'a ReadAhead,
    /// The number of the log that is folded; 0 is our own.
    pub(crate) host: u8,
    /// The reply read last: several projections look at the same one, and at what it was made of.
    reply: RefCell<Option<(u64, Arc<Reply>)>>,
    sources: RefCell<Option<(u64, Rc<Sources>)>>,
    /// Sessions met in this transaction, so that each event does not look its own up again.
    pub(crate) places: RefCell<Places>,
    pub(crate) gone_on: RefCell<BTreeMap<i64, GoneOn>>,
    /// What is left of the event being folded, if its payload was removed.
    left: RefCell<Option<Tombstone>>,
    /// Events folded in this transaction: replies mostly answer what is just before them.
    pub(crate) seqs: RefCell<HashMap<[u8; 16], i64>>,
    /// What projects were called in this transaction, and by which event last.
    pub(crate) labels: RefCell<Vec<(i64, String, [u8; 16])>>,
    /// The last number given to a row of each kind, by log.
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
            gone_on: RefCell::default(),
            left: RefCell::default(),
            seqs: RefCell::default(),
            labels: RefCell::default(),
            counters: RefCell::default(),
        }
    }

    /// Folds an event of which only this is left.
    pub(crate) fn with_left<T>(&self, left: Tombstone, fold: impl FnOnce() -> T) -> T {
        *self.left.borrow_mut() = Some(left);
        let folded = fold();
        *self.left.borrow_mut() = None;
        folded
    }

    /// How large an event was, whatever is left of it now.
    pub(crate) fn bytes(&self, now: usize) -> i64 {
        self.left.borrow().as_ref().map_or(now as i64, |left| left.bytes as i64)
    }

    /// The files that the input of a tool named, where the input itself is gone.
    pub(crate) fn files_left(&self) -> Option<FilesTouched> {
        let left = self.left.borrow();
        let left = left.as_ref()?;
        Some(FilesTouched { read: left.files_read.clone(), written: left.files_written.clone() })
    }

    /// Whether what the event says as a reply is left, although its text is not.
    pub(crate) fn is_reply_left(&self) -> bool {
        self.left.borrow().as_ref().is_some_and(|left| !left.reply.is_empty())
    }

    fn reply_left(&self) -> Option<Reply> {
        let left = self.left.borrow();
        let left = left.as_ref()?;
        Some(serde_json::from_str(&left.reply).unwrap_or_default())
    }

    /// Runs a statement that is prepared once; gives how many rows it changed.
    pub(crate) fn run(&self, sql: &str, values: impl Params) -> Result<usize> {
        Ok(self.cached(sql)?.execute(values)?)
    }

    pub(crate) fn cached(&self, sql: &str) -> Result<CachedStatement<'_>> {
        Ok(self.transaction.prepare_cached(sql)?)
    }

    /// Uses up `count` numbers for rows of one kind, and gives the first. Each log has its own, the same on
    /// every machine.
    pub(crate) fn numbers(&self, name: &'static str, count: usize) -> Result<i64> {
        let first = self.numbers_of(name, self.host, count)?;
        Ok(i64::from(self.host) * ROWS_PER_HOST + first)
    }

    /// The same for rows that all logs share.
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

    /// Writes down which numbers are used up: once in a transaction.
    pub(crate) fn write_counters(&self) -> Result<()> {
        for ((name, log), last) in &*self.counters.borrow() {
            let sql = "insert or replace into counters (name, last) values (?1, ?2)";
            self.run(sql, (counter(name, *log), last))?;
        }
        Ok(())
    }

    /// What a reply says, under the types in force.
    pub(crate) fn reply(&self, event: &Recorded, text: &str) -> Arc<Reply> {
        let seq = event.seq.raw();
        let mut last = self.reply.borrow_mut();
        match &*last {
            Some((of, reply)) if *of == seq => Arc::clone(reply),
            _ => {
                let read = || {
                    let left = self.reply_left();
                    Arc::new(left.unwrap_or_else(|| xml::read_reply(text, self.kinds)))
                };
                let reply = self.ahead.get(&seq).map_or_else(read, Arc::clone);
                *last = Some((seq, Arc::clone(&reply)));
                reply
            }
        }
    }

    /// The events that the reply in `event` answers. They must have been linked to it.
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

/// What numbers of a log's own are counted under.
fn counter(name: &str, log: u8) -> Cow<'_, str> {
    match log {
        0 => name.into(),
        log => format!("{name}@{log}").into(),
    }
}

/// A list as it is stored: JSON, or nothing if it is empty.
pub(crate) fn list(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| serde_json::to_string(items).expect("strings can be written"))
}

/// A list as it was stored.
pub(crate) fn items(list: Option<&str>) -> Vec<String> {
    list.and_then(|list| serde_json::from_str(list).ok()).unwrap_or_default()
}

/// Text as it is stored: nothing rather than empty.
pub(crate) fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
