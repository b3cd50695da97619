//! Imports of the database of the TypeScript claude-mem.

use std::fs;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{added, import, rows};
use crate::sandbox::Sandbox;

/// The tables of its latest schema that contain memory.
const NEW: &str = "
    create table schema_versions (id integer primary key, version integer, applied_at text);
    insert into schema_versions values (1, 4, '2025-10-01T10:00:00.000Z');
    create table sdk_sessions (id integer primary key autoincrement, content_session_id text not null,
        memory_session_id text unique, project text not null, platform_source text not null default 'claude',
        user_prompt text, started_at text, started_at_epoch integer, completed_at text,
        completed_at_epoch integer, status text, custom_title text);
    create table observations (id integer primary key autoincrement, memory_session_id text not null,
        project text not null, text text, type text not null, title text, subtitle text, narrative text,
        facts text, concepts text, files_read text, files_modified text, prompt_number integer,
        discovery_tokens integer default 0, created_at text not null, created_at_epoch integer not null,
        merged_into_project text, metadata text);
    create table session_summaries (id integer primary key autoincrement, memory_session_id text not null,
        project text not null, request text, investigated text, learned text, completed text,
        next_steps text, files_read text, files_edited text, notes text, prompt_number integer,
        created_at text not null, created_at_epoch integer not null);
    create table user_prompts (id integer primary key autoincrement, session_db_id integer,
        content_session_id text, prompt_number integer, prompt_text text, created_at text,
        created_at_epoch integer);
    create table pending_messages (id integer primary key autoincrement, session_db_id integer,
        content_session_id text, message_type text, tool_name text, tool_input text, tool_response text,
        cwd text, last_user_message text, last_assistant_message text, prompt_number integer, status text,
        created_at_epoch integer, tool_use_id text);
    insert into sdk_sessions values (1, 'c1', 'm1', 'shop', 'claude', 'never twice', '2025-10-02T00:00:00.000Z',
        1759363200000, null, null, 'completed', 'The title');
    insert into sdk_sessions values (2, 'c2', 'm2', 'shop', 'claude', 'only <private>walrus</private> here',
        '2025-10-02T00:00:00.000Z', 1759363200000, null, null, 'active', null);
    insert into user_prompts values (5, 1, 'c1', 1, 'fix <private>walrus</private> AKIAIOSFODNN7EXAMPLQ',
        null, 1759363201000);
    insert into observations values
        (40, 'm1', 'shop', null, 'bugfix', 'First', 'sub', 'the <private>walrus</private> story',
            '[\"one\",\"two\"]', '[\"gotcha: beware\",\"bugfix\"]', 'src/a.rs', '\"src/b.rs\"', 1, 9,
            '2025-10-02T00:00:02.000Z', 1759363202000, null, '{\"a\":1}'),
        (41, 'gone', 'shop/feature-x', 'old body', 'discovery', null, null, null, 'not [json', null, null, null,
            null, 0, '2025-10-02T00:00:03.000Z', 1759363203, null, null),
        (42, 'manual-shop', 'elsewhere', 'by hand', 'note', 'Note', null, null, null, null, null, null, null, 0,
            '2025-10-02T00:00:04.000Z', 1759363204000, 'shop', null);
    insert into session_summaries values
        (7, 'm1', 'shop', 'asked', null, 'learnt', null, null, '[]', null, null, 1, 'x', 1759363205000),
        (8, 'm1', 'shop', 'asked more', null, null, null, null, null, null, null, 2, 'x', 1759363206000),
        (9, 'nobody', 'shop', 'no time', null, null, null, null, null, null, null, 2, 'soon', 0);
    insert into pending_messages values
        (1, 2, 'c2', 'observation', 'Bash', '{\"command\":\"ls\"}', '\"out\"', '/scratch/shop', null, null, 1,
            'pending', 1759363207000, 't1'),
        (2, 2, 'c2', 'summarize', null, null, null, '/scratch/shop', 'u', 'bye', 1, 'pending', 1759363208000, null),
        (3, 2, 'c2', 'observation', 'Bash', '{}', '', '/scratch/shop', null, null, 1, 'processed',
            1759363207000, 't0'),
        (4, 2, 'c2', 'observation', null, '{}', '', '/scratch/shop', null, null, 1, 'failed',
            1759363207000, 't9');";

/// An older schema: before the columns were renamed, and without later tables.
const OLD: &str = "
    create table sdk_sessions (id integer primary key, claude_session_id text, sdk_session_id text,
        project text, user_prompt text, started_at text, started_at_epoch integer, status text);
    create table observations (id integer primary key, sdk_session_id text, project text, text text,
        type text, created_at text, created_at_epoch integer);
    insert into sdk_sessions values (1, 'c1', 'm1', 'shop', 'begin', '2025-09-02T00:00:00.000Z',
        1756771200, 'active');
    insert into observations values (1, 'm1', 'shop', 'a body', 'feature', '2025-09-02T00:00:01.000Z', null);";

/// Its database, at its usual path.
pub(crate) fn left_behind(sandbox: &Sandbox) {
    database(sandbox, NEW);
}

fn database(sandbox: &Sandbox, sql: &str) -> String {
    let path = sandbox.write(".claude-mem/claude-mem.db", "");
    fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    path.to_str().unwrap().into()
}

#[test]
fn every_row_with_memory_is_imported_once() {
    let sandbox = Sandbox::new();
    database(&sandbox, NEW);
    let report = import(&sandbox, &["--from", "ts"]);
    let expected = json!({"SummaryRequested": 1, "observation": 3, "pending": 1, "prompt": 2,
        "session": 2, "summary": 2});
    assert_eq!(report["added"], expected);
    let refused = json!({"pending_messages: rows without a tool": 1, "session_summaries: rows without a time": 1});
    assert_eq!((&report["refused"], &report["known"]), (&refused, &json!(0)));
    let again = import(&sandbox, &["--from", "ts"]);
    assert_eq!((added(&again), &again["known"]), (0, &json!(11)));

    let sql =
        "select upstream_id, type, title, narrative, facts, concepts, files_read, files_modified,
        at_us / 1000, origin from observations order by id";
    let expected = "\
        40|bugfix|First|the [redacted:private] \
        story|[\"one\",\"two\"]|[\"gotcha\"]|[\"src/a.rs\"]|[\"src/b.rs\"]|1759363202000|import\n\
        41|discovery||old body|[\"not [json\"]||||1759363203000|import\n\
        42|note|Note|by hand|||||1759363204000|user\n";
    assert_eq!(rows(&sandbox, sql), expected);
    let sql = "select session, title, ended_at_us is null from sessions order by session";
    assert_eq!(
        rows(&sandbox, sql),
        "c1|The title|0\nc2||1\norphan-gone||1\norphan-manual-shop||1\n"
    );
    let prompts = rows(&sandbox, "select number, text from prompts order by id");
    assert_eq!(
        prompts,
        "1|only [redacted:private] here\n1|fix [redacted:private] [redacted:aws-access-key]\n"
    );
    assert_eq!(
        rows(&sandbox, "select upstream_id, request from summaries"),
        "7|asked\n8|asked more\n"
    );
    assert_eq!(
        rows(&sandbox, "select tool, tool_use_id, upstream_id from tool_uses"),
        "Bash|t1|1\n"
    );
    // The folder of a pending message identifies its project; worktrees and merged projects are the
    // same.
    assert_eq!(rows(&sandbox, "select key, label from projects"), "/scratch/shop|shop\n");
    let events = format!("{:?}", sandbox.events());
    assert!(!events.contains("walrus") && !events.contains("AKIAIOSF"), "{events}");
}

#[test]
fn the_oldest_schema_is_read_like_the_newest() {
    let sandbox = Sandbox::new();
    let path = database(&sandbox, OLD);
    let report = import(&sandbox, &[&path]);
    assert_eq!(report["added"], json!({"observation": 1, "prompt": 1, "session": 1}));
    let sql = "select type, narrative, at_us / 1000, session from observations";
    assert_eq!(rows(&sandbox, sql), "feature|a body|1756771201000|1\n");
    let sql = "select session, memory_session, started_at_us / 1000 from sessions";
    assert_eq!(rows(&sandbox, sql), "c1|m1|1756771200000\n");
    assert_eq!(added(&import(&sandbox, &[&path])), 0);
}

#[test]
fn a_transcript_identifies_the_project_of_a_name() {
    let sandbox = Sandbox::new();
    let path = database(&sandbox, OLD);
    let row = json!({"type": "user", "sessionId": "c1", "cwd": "/scratch/work/shop",
        "timestamp": "2025-09-02T00:00:00.000Z", "message": {"content": "begin"}});
    sandbox.write(".claude/projects/p/c1.jsonl", &format!("{row}\n"));
    import(&sandbox, &[&path]);
    assert_eq!(rows(&sandbox, "select key, label from projects"), "/scratch/work/shop|shop\n");
    // Imported memories of a session are not distilled again from its transcript.
    let report = import(&sandbox, &["--from", "transcripts"]);
    assert_eq!(added(&report), 0, "{report}");
}

#[test]
fn an_exported_file_has_the_same_rows_as_the_database_it_is_of() {
    let export = json!({"exportedAt": "2025-10-03", "exportedAtEpoch": 1, "query": "shop",
        "sessions": [{"id": 1, "content_session_id": "c1", "memory_session_id": "m1", "project": "shop",
            "platform_source": "claude", "started_at_epoch": 1_759_363_200_000_u64}],
        "observations": [{"id": 40, "memory_session_id": "m1", "project": "shop", "type": "bugfix",
            "title": "First", "subtitle": "sub", "narrative": "the <private>walrus</private> story",
            "facts": "[\"one\",\"two\"]", "created_at_epoch": 1_759_363_202_000_u64}],
        "summaries": [
            {"id": 7, "memory_session_id": "m1", "project": "shop", "request": "asked", "learned": "learnt",
                "prompt_number": 1, "created_at_epoch": 1_759_363_205_000_u64},
            {"id": 8, "memory_session_id": "m1", "project": "shop", "request": "asked more",
                "prompt_number": 2, "created_at_epoch": 1_759_363_206_000_u64}],
        "prompts": []});
    let sandbox = Sandbox::new();
    let file = sandbox.write("export.json", &serde_json::to_string_pretty(&export).unwrap());
    let file = file.to_str().unwrap();
    let first = import(&sandbox, &[file]);
    assert_eq!(first["added"], json!({"observation": 1, "session": 1, "summary": 2}));
    assert_eq!(added(&import(&sandbox, &[file])), 0);
    database(&sandbox, NEW);
    let rest = import(&sandbox, &["--from", "ts"]);
    assert_eq!((&rest["known"], &rest["added"]["observation"]), (&json!(4), &json!(2)));
    assert_eq!(rows(&sandbox, "select count(*) from observations"), "3\n");
}

#[test]
fn other_databases_are_rejected_and_nothing_is_imported() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("x.db", "");
    let fails = |arguments: &[&str]| {
        let mut all = vec!["import"];
        all.extend(arguments);
        sandbox.run(&all).fails(1)
    };
    let error = fails(&["--from", "ts", "x.db"]);
    assert!(error.contains("it is empty") && error.contains("nothing was imported"), "{error}");
    assert!(fails(&["--from", "ts", "."]).contains("it is not a file"));
    assert!(fails(&["x.db"]).contains("cannot be imported"));
    fs::write(&path, "SQLite format 3\0 and then nothing").unwrap();
    assert!(fails(&["x.db"]).contains("x.db"));
    sandbox.write("x.json", "{\"observations\": [");
    assert!(fails(&["--from", "ts", "x.json"]).contains("EOF"));
    sandbox.write("y.json", "{}");
    assert!(fails(&["--from", "ts", "y.json"]).contains("no `observations`"));
    assert_eq!(sandbox.events(), [""; 0].map(Value::from));
}

#[test]
fn a_locked_database_is_retried_and_then_an_error() {
    let sandbox = Sandbox::new();
    let path = database(&sandbox, NEW);
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("begin exclusive").unwrap();
    let error = sandbox.run(&["import", "--from", "ts"]).fails(1);
    assert!(error.contains("is locked by another program"), "{error}");
    holder.execute_batch("rollback").unwrap();
    // In WAL mode, which that program uses, readers are not blocked while it writes.
    holder
        .execute_batch("pragma journal_mode = wal; begin immediate; delete from observations")
        .unwrap();
    assert_eq!(added(&import(&sandbox, &["--from", "ts"])), 11);
}

#[test]
fn all_readable_rows_of_a_damaged_database_are_imported() {
    let sandbox = Sandbox::new();
    let many = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 500)
        insert into observations (memory_session_id, project, type, title, created_at, created_at_epoch)
        select 'm1', 'shop', 'change', 'title ' || i || hex(randomblob(100)), '', 1759363300000 + i from n;";
    let path = database(&sandbox, &format!("{NEW}{many}"));
    let root: i64 = {
        let sql = "select max(pageno) from dbstat where name = 'observations'";
        let connection = Connection::open(&path).unwrap();
        connection.query_row(sql, (), |row| row.get(0)).unwrap()
    };
    let mut bytes = fs::read(&path).unwrap();
    let page = (root as usize - 1) * 4096;
    bytes[page..page + 4096].fill(0xAB);
    fs::write(&path, &bytes).unwrap();
    let run = sandbox.run(&["import", "--from", "ts", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("is damaged: observations"), "{run:?}");
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(report["added"]["observation"].as_u64().unwrap() > 100, "{report}");
    assert_eq!((&report["added"]["summary"], &report["added"]["session"]), (&json!(2), &json!(2)));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
