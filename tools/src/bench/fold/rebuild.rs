//! Drawing everything again, beside inserting the rows it gives one by one.

use super::sample;
use crate::bench::{
    Contestant, Figure, Outcome, Scratch, Settings, Verdict, contest,
    report::{TIMES, against_first, show},
    time,
};
use claude_mem_log::{Log, Options as LogOptions};
use claude_mem_projections::{Options, Store, rebuild};
use rusqlite::{Connection, params_from_iter, types::Value};
use std::{cell::Cell, fs, path::Path, time::Duration};

/// How many times as fast a rebuild has to be.
const RATIO: f64 = 2.5;
/// As many rows in one transaction as we fold events.
const BATCH: usize = 1000;

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let dir = scratch.place("rebuild-log");
    let events = sample::fill(&dir, settings.size(100_000, 500))?;
    let log = Log::open(&dir, LogOptions::default())?;
    let drawn = scratch.place("drawn.db");
    rebuild(&drawn, &log, &Options::default(), |_| {})?;
    let inserted = Rows::read(&drawn)?;
    let count = inserted.count();
    // A busy machine stretches times, but hardly the work done in them.
    let cpu = [const { Cell::new(Duration::MAX) }; 3];
    let mut contestants = [
        Contestant::new("drawn again from the log", || {
            again(scratch, &cpu[0], |path| {
                rebuild(path, &log, &Options::default(), |_| {})?;
                Ok(())
            })
        }),
        Contestant::new("the same rows inserted, triggers index each", || {
            again(scratch, &cpu[1], |path| inserted.insert(path))
        }),
        Contestant::new("folded on, triggers index each", || {
            again(scratch, &cpu[2], |path| {
                Store::open(path, Options::default())?.fold(&log, |_| true)?;
                Ok(())
            })
        }),
    ];
    let samples = contest(settings.size(5, 1), &mut contestants)?;
    drop(contestants);
    let mut rows = against_first(&samples);
    for (row, cpu) in rows.iter_mut().zip(&cpu) {
        row.values.push(show(cpu.get()));
    }
    let ratio = samples[1].times_min(&samples[0]);
    Ok(vec![Figure {
        title: "Rebuild".into(),
        about: format!(
            "{events} events in the log become {count} rows. Drawing them reads and decodes the log, reads the \
             replies, writes the rows and builds the indexes, up to the rename. Inserting has all values in \
             memory already and prepares each statement once; {BATCH} rows make a transaction, in WAL mode \
             with `synchronous = normal`."
        ),
        columns: TIMES.iter().copied().chain(["processor time, least"]).collect(),
        rows,
        verdict: Some(Verdict {
            target: format!("{RATIO} times as fast as inserting the same rows with triggers"),
            reached: format!("{ratio:.2} times"),
            is_met: ratio >= RATIO,
        }),
    }])
}

/// Makes a database where there is none, and says how long that took.
fn again(
    scratch: &Scratch,
    cpu: &Cell<Duration>,
    make: impl FnOnce(&Path) -> Outcome<()>,
) -> Outcome<Duration> {
    let dir = scratch.place("again");
    fs::create_dir(&dir)?;
    let before = processor_time()?;
    let (took, ()) = time(|| make(&dir.join("memory.db")))?;
    cpu.set(cpu.get().min(processor_time()?.saturating_sub(before)));
    fs::remove_dir_all(dir)?;
    Ok(took)
}

/// What this process has used of the processors so far, all threads together.
fn processor_time() -> Outcome<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(str::parse::<u64>).sum::<Result<_, _>>()?;
    // There are a hundred in a second on every Linux.
    Ok(Duration::from_millis(ticks * 10))
}

/// All rows of a database, in memory.
struct Rows(Vec<(String, Vec<Vec<Value>>)>);

impl Rows {
    fn read(path: &Path) -> Outcome<Self> {
        let database = Connection::open(path)?;
        let mut names = database.prepare(
            "select name from sqlite_schema where type = 'table' and name not like '%fts%'
             and name not like 'sqlite%'",
        )?;
        let names = names.query_map((), |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        let mut tables = Vec::new();
        for name in names {
            let mut statement = database.prepare(&format!("select * from {name}"))?;
            let columns = statement.column_count();
            let read =
                |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
            let rows = statement.query_map((), read)?.collect::<Result<Vec<Vec<Value>>, _>>()?;
            tables.push((name, rows));
        }
        Ok(Self(tables))
    }

    fn count(&self) -> usize {
        self.0.iter().map(|(_, rows)| rows.len()).sum()
    }

    fn insert(&self, path: &Path) -> Outcome<()> {
        drop(Store::open(path, Options::default())?);
        let database = Connection::open(path)?;
        database.pragma_update(None, "synchronous", "normal")?;
        database.pragma_update(None, "foreign_keys", false)?;
        for (name, rows) in &self.0 {
            let Some(first) = rows.first() else { continue };
            let marks = vec!["?"; first.len()].join(", ");
            // The new database already has its versions and its beginning.
            let sql = format!("insert or replace into {name} values ({marks})");
            let mut insert = database.prepare(&sql)?;
            for batch in rows.chunks(BATCH) {
                let transaction = database.unchecked_transaction()?;
                for row in batch {
                    insert.execute(params_from_iter(row))?;
                }
                transaction.commit()?;
            }
        }
        Ok(())
    }
}
