//! A rebuild from the log, compared with inserting the same rows one by one.

use super::sample;
use crate::bench::{
    BenchResult, Contestant, Figure, Scratch, Settings, Verdict, contest,
    report::{TIMES, against_first, show},
    time,
};
use claude_mem_log::{Log, Options as LogOptions};
use claude_mem_projections::{Options, Store, rebuild};
use rusqlite::{Connection, params_from_iter, types::Value};
use std::{cell::Cell, fs, path::Path, time::Duration};

/// The required ratio.
const RATIO: f64 = 2.5;
/// Events per transaction, as in a fold.
const BATCH: usize = 1000;

pub(super) fn measure_rebuild(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let dir = scratch.place("rebuild-log");
    let events = sample::fill_sample(&dir, settings.size(100_000, 500))?;
    let log = Log::open(&dir, LogOptions::default())?;
    let drawn = scratch.place("drawn.db");
    rebuild(&drawn, &log, &Options::default(), |_| {})?;
    let inserted = Rows::read(&drawn)?;
    let count = inserted.count();
    // A busy machine affects wall-clock times, but hardly processor times.
    let cpu = [const { Cell::new(Duration::MAX) }; 3];
    let mut contestants = [
        Contestant::new("rebuilt from the log", || {
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
            "{events} events in the log become {count} rows. A rebuild reads and decodes the log, \
             parses the replies, writes the rows and builds the indexes, up to the rename. \
             Inserting starts with all values in memory, in the order of the log, and prepares \
             each statement once. A transaction has the rows of {BATCH} events, in WAL mode with \
             `synchronous = normal` and foreign keys checked, as in incremental folding."
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

/// Creates a database, and returns the time.
fn again(
    scratch: &Scratch,
    cpu: &Cell<Duration>,
    make: impl FnOnce(&Path) -> BenchResult<()>,
) -> BenchResult<Duration> {
    let dir = scratch.place("again");
    fs::create_dir(&dir)?;
    let before = processor_time()?;
    let (took, ()) = time(|| make(&dir.join("memory.db")))?;
    cpu.set(cpu.get().min(processor_time()?.saturating_sub(before)));
    fs::remove_dir_all(dir)?;
    Ok(took)
}

/// The processor time of this process so far, of all threads.
fn processor_time() -> BenchResult<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(str::parse::<u64>).sum::<Result<_, _>>()?;
    // 100 ticks per second on every Linux.
    Ok(Duration::from_millis(ticks * 10))
}

/// All rows of a database, in memory, in the order of their events.
///
/// A program that indexes by triggers writes them as events happen: the rows of one event together,
/// not one table after the other. So does this one, into the same schema, with the settings and
/// transactions of a fold (WAL, foreign keys, as many events per transaction), and nothing else: no
/// log, no decoding, no reads, no updates, each statement prepared once.
struct Rows {
    tables: Vec<(String, usize)>,
    rows: Vec<Row>,
}

struct Row {
    /// The position of its event. The few rows without one come last, because they refer to others.
    seq: i64,
    table: usize,
    values: Vec<Value>,
}

impl Rows {
    fn read(path: &Path) -> BenchResult<Self> {
        let database = Connection::open(path)?;
        // Within an event, referenced rows come first.
        let mut names = database.prepare(
            "select name from sqlite_schema where type = 'table' and name not like '%fts%'
             and name not like 'sqlite%'
             order by name = 'projects' desc, name = 'sessions' desc, name = 'events' desc, name",
        )?;
        let names = names.query_map((), |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        let (mut tables, mut rows) = (Vec::new(), Vec::new());
        for name in names {
            let stored: String = database.query_row(
                "select group_concat(name) from pragma_table_info(?1)",
                [&name],
                |row| row.get(0),
            )?;
            let mut statement = database.prepare(&format!("select {stored} from {name}"))?;
            let columns = statement.column_count();
            let origin = if name == "answers" { "reply" } else { "seq" };
            let seq = statement.column_index(origin).ok();
            let read = statement.query_map((), |row| {
                let seq = seq.map_or(Ok(i64::MAX), |column| row.get(column))?;
                let values =
                    (0..columns).map(|column| row.get(column)).collect::<Result<_, _>>()?;
                Ok(Row { seq, table: tables.len(), values })
            })?;
            rows.extend(read.collect::<Result<Vec<_>, _>>()?);
            tables.push((name, columns));
        }
        rows.sort_by_key(|row| row.seq);
        Ok(Self { tables, rows })
    }

    fn count(&self) -> usize {
        self.rows.len()
    }

    fn insert(&self, path: &Path) -> BenchResult<()> {
        drop(Store::open(path, Options::default())?);
        let database = Connection::open(path)?;
        database.pragma_update(None, "synchronous", "normal")?;
        database.pragma_update(None, "foreign_keys", true)?;
        // The new database already has these rows.
        database.execute_batch("delete from checkpoint; delete from projections")?;
        let prepare = |(name, columns): &(String, usize)| {
            let marks = vec!["?"; *columns].join(", ");
            database.prepare(&format!("insert into {name} values ({marks})"))
        };
        let mut inserts = self.tables.iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
        let mut events = 0;
        let batches = self.rows.chunk_by(|left, right| {
            events += usize::from(left.seq != right.seq);
            left.seq == right.seq || !events.is_multiple_of(BATCH)
        });
        for batch in batches {
            let transaction = database.unchecked_transaction()?;
            for row in batch {
                inserts[row.table].execute(params_from_iter(&row.values))?;
            }
            transaction.commit()?;
        }
        Ok(())
    }
}
