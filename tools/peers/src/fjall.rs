//! `fjall`: a log-structured merge tree. Its blocks are checksummed, and checked when they are
//! read.

use crate::{Outcome, Peer, Sum};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;

pub(crate) struct Fjall;

impl Peer for Fjall {
    fn fill(&self, dir: &Path, payloads: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<()> {
        let (database, records) = open(dir)?;
        for (number, payload) in (0_u64..).zip(payloads) {
            records.insert(number.to_be_bytes(), payload)?;
        }
        // In tables rather than in the journal, which would be replayed when it is opened.
        records.rotate_memtable_and_wait()?;
        records.major_compact()?;
        Ok(database.persist(PersistMode::SyncAll)?)
    }

    fn read(&self, dir: &Path) -> Outcome<Sum> {
        let (_database, records) = open(dir)?;
        let mut sum = Sum::default();
        for record in records.iter() {
            sum.add(&record.value()?);
        }
        Ok(sum)
    }
}

fn open(dir: &Path) -> Outcome<(Database, Keyspace)> {
    let database = Database::builder(dir).open()?;
    let records = database.keyspace("records", KeyspaceCreateOptions::default)?;
    Ok((database, records))
}
