//! Imports: the memory of the TypeScript claude-mem, and Claude Code's own transcripts.

use super::{Contestant, Figure, Group, Outcome, Row, Samples, Scratch, Settings, Verdict};
use super::{binary, contest, report::show, time};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufWriter, Write as _},
    path::Path,
    process::{Command, Stdio},
};

pub(super) const GROUP: Group = Group {
    name: "import",
    about: "The whole command: reading, redacting, recording, folding into an empty database, and \
            estimating the cost of distilling.",
    figures: &[("rows", rows), ("transcripts", transcripts)],
};

/// Sample text of users and tools.
const PROSE: &str = "\
    The log is read in order and folded into rows; a damaged record costs itself alone, and \
    reading continues after it. The process that fills a segment rolls it, and the next hook \
    writes to the new one.";
/// Sample output of tools: this file.
const CODE: &str = include_str!("import.rs");

/// A hundred thousand rows of the TypeScript claude-mem's database.
fn rows(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let count = settings.size(100_000, 1_000);
    let database = scratch.place("claude-mem.db");
    make_database(&database, count)?;
    let samples = measure(settings, scratch, "ts", &database)?;
    let whole = samples[0].min().as_secs_f64();
    let per_second = |one: &Samples| format!("{:.0}", count as f64 / one.min().as_secs_f64());
    Ok(vec![Figure {
        title: format!("{count} rows of the TypeScript claude-mem"),
        about: "Sessions, prompts, observations and summaries as that program stores them, in one \
            database. With `--dry-run` nothing is recorded."
            .into(),
        columns: vec!["fastest", "median", "rows per second"],
        rows: samples.iter().map(|one| described(one, per_second(one))).collect(),
        verdict: Some(Verdict {
            target: "below 10 s".into(),
            reached: format!("{whole:.1} s"),
            is_met: whole < 10.0,
        }),
    }])
}

/// Some hundred megabytes of transcripts.
fn transcripts(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let dir = scratch.place("projects");
    let bytes = make_transcripts(&dir, settings.size(250 << 20, 2 << 20))?;
    let samples = measure(settings, scratch, "transcripts", &dir)?;
    let speed = |one: &Samples| bytes as f64 / 1e6 / one.min().as_secs_f64();
    let whole = speed(&samples[0]);
    Ok(vec![Figure {
        title: format!("{} MB of transcripts", bytes / 1_000_000),
        about: "Sessions of 40 turns with six tool uses each, as Claude Code writes them: the \
                output of a tool is in it twice. With `--dry-run` nothing is recorded."
            .into(),
        columns: vec!["fastest", "median", "MB per second"],
        rows: samples.iter().map(|one| described(one, format!("{:.0}", speed(one)))).collect(),
        verdict: Some(Verdict {
            target: "at least 100 MB/s".into(),
            reached: format!("{whole:.0} MB/s"),
            is_met: whole >= 100.0,
        }),
    }])
}

fn described(one: &Samples, speed: String) -> Row {
    Row::new(&one.name, vec![show(one.min()), show(one.median()), speed])
}

/// The whole command, and a dry run, each in a new home directory.
fn measure(
    settings: &Settings,
    scratch: &Scratch,
    from: &str,
    path: &Path,
) -> Outcome<Vec<Samples>> {
    let program = binary()?;
    let homes = scratch.place(&format!("homes-{from}"));
    let run = |words: &[&str]| {
        let _ = fs::remove_dir_all(&homes);
        fs::create_dir_all(&homes)?;
        let mut command = Command::new(&program);
        command.args(["import", "--from", from]).args(words).arg(path);
        command.env_clear().env("HOME", &homes).env("CLAUDE_MEM_PROVIDER", "extract");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (took, ()) = time(|| match command.status()?.success() {
            true => Ok(()),
            false => Err("the import failed".into()),
        })?;
        Ok(took)
    };
    let mut contestants = [
        Contestant::new("import", || run(&[])),
        Contestant::new("import --dry-run", || run(&["--dry-run"])),
    ];
    contest(settings.size(5, 1), &mut contestants)
}

fn make_database(path: &Path, rows: u64) -> Outcome<()> {
    let mut database = Connection::open(path)?;
    database.execute_batch(
        "create table schema_versions (id integer primary key, version integer, applied_at text);
         insert into schema_versions values (1, 30, '2025-01-01T00:00:00.000Z');
         create table sdk_sessions (id integer primary key, content_session_id text, memory_session_id text,
             project text, user_prompt text, started_at text, started_at_epoch integer, status text);
         create table user_prompts (id integer primary key, content_session_id text, prompt_number integer,
             prompt_text text, created_at text, created_at_epoch integer);
         create table observations (id integer primary key, memory_session_id text, project text, text text,
             type text, title text, subtitle text, facts text, narrative text, concepts text, files_read text,
             files_modified text, prompt_number integer, discovery_tokens integer, created_at text,
             created_at_epoch integer);
         create table session_summaries (id integer primary key, memory_session_id text, project text,
             request text, investigated text, learned text, completed text, next_steps text, notes text,
             prompt_number integer, created_at text, created_at_epoch integer);",
    )?;
    let filling = database.transaction()?;
    for number in 0..rows as i64 {
        let (session, at) = (number / 50, 1_740_000_000_000 + number * 1000);
        let names = (format!("content-{session}"), format!("memory-{session}"));
        let project = format!("project-{}", session % 7);
        match number % 50 {
            0 => filling.prepare_cached(
                "insert into sdk_sessions values (?1, ?2, ?3, ?4, 'begin', \
                 '2025-02-19T21:20:00.000Z', ?5, 'completed')",
            )?.execute((session + 1, names.0, names.1, project, at))?,
            1..=5 => filling.prepare_cached(
                "insert into user_prompts values (?1, ?2, ?3, ?4, '2025-02-19T21:20:00.000Z', ?5)",
            )?.execute((number, names.0, number % 50, format!("{number}: {PROSE}"), at))?,
            6..=9 => filling.prepare_cached(
                "insert into session_summaries values (?1, ?2, ?3, ?4, ?5, ?5, ?5, 'none', null, 1,
                     '2025-02-19T21:20:00.000Z', ?6)",
            )?.execute((number, names.1, project, format!("request {number}"), PROSE, at))?,
            _ => filling.prepare_cached(
                "insert into observations values (?1, ?2, ?3, null, 'feature', ?4, 'subtitle', ?5, ?6,
                     '[\"how-it-works\"]', '[\"src/a.rs\"]', '[\"src/b.rs\"]', 1, 500, '2025-02-19T21:20:00.000Z', ?7)",
            )?.execute((
                number, names.1, project, format!("observation {number}"),
                format!("[\"fact {number}\", \"another one\"]"), PROSE, at,
            ))?,
        };
    }
    Ok(filling.commit()?)
}

/// Writes sessions up to this many bytes; returns the actual number.
fn make_transcripts(dir: &Path, bytes_min: u64) -> Outcome<u64> {
    let mut bytes = 0;
    for session in 0.. {
        if bytes >= bytes_min {
            break;
        }
        let folder = dir.join(format!("-home-user-project-{}", session % 5));
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{session:08}-aaaa-4aaa-8aaa-aaaaaaaaaaaa.jsonl"));
        let mut out = BufWriter::new(fs::File::create(&path)?);
        let mut transcript = Transcript { session, lines: 0 };
        for turn in 0..40 {
            for line in transcript.turn(turn) {
                writeln!(out, "{line}")?;
            }
        }
        out.flush()?;
        bytes += fs::metadata(&path)?.len();
    }
    Ok(bytes)
}

struct Transcript {
    session: u64,
    lines: u64,
}

impl Transcript {
    fn turn(&mut self, turn: u64) -> Vec<Value> {
        let prompt = json!({"role": "user", "content": format!("{turn}: {PROSE}")});
        let mut lines = vec![self.line("user", &prompt, turn, None)];
        for tool in 0..6 {
            let id = format!("toolu_{}_{turn}_{tool}", self.session);
            let input = json!({"file_path": format!("/home/user/project/src/part_{tool}.rs")});
            let used = json!({"role": "assistant", "content": [
                {"type": "text", "text": PROSE},
                {"type": "tool_use", "id": id, "name": "Read", "input": input},
            ]});
            lines.push(self.line("assistant", &used, turn, None));
            let from = (self.lines as usize * 977) % (CODE.len() / 2);
            let content: String = CODE.chars().skip(from).collect();
            let answered = json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": content},
            ]});
            let result = json!({"type": "text", "file": {"filePath": input["file_path"], "content": content}});
            lines.push(self.line("user", &answered, turn, Some(result)));
        }
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": PROSE}]});
        lines.push(self.line("assistant", &message, turn, None));
        lines
    }

    fn line(&mut self, kind: &str, message: &Value, turn: u64, result: Option<Value>) -> Value {
        self.lines += 1;
        let (session, number) = (self.session, self.lines);
        let second = session * 3600 + number;
        let (day, rest) = (second / 86_400 % 28 + 1, second % 86_400);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        let mut line = json!({
            "parentUuid": null, "isSidechain": false, "type": kind, "message": message,
            "promptId": format!("{session:08}-0000-4000-8000-{turn:012}"),
            "uuid": format!("{session:08}-0000-4000-9000-{number:012}"),
            "timestamp": format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z"),
            "userType": "external", "cwd": "/home/user/project", "version": "2.1.325",
            "sessionId": format!("{session:08}-aaaa-4aaa-8aaa-aaaaaaaaaaaa"), "gitBranch": "main",
        });
        if let Some(result) = result {
            line["toolUseResult"] = result;
        }
        line
    }
}
