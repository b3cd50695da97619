//! The views with the names of the TypeScript claude-mem, with queries from its documentation.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod made;

use claude_mem_log::{Log, Options as LogOptions};
use claude_mem_projections::{Options, Store};
use made::Writer;

#[test]
fn queries_written_for_the_typescript_schema_find_sessions_prompts_and_memories() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
    Writer::new(&log_dir).session(3);
    let log = Log::open(&log_dir, LogOptions::default()).unwrap();
    let mut store = Store::open(&path, Options::default()).unwrap();
    store.catch_up(&log, |_| {}).unwrap();
    // The views of a query by `claude-mem sql` stay until the connection is closed.
    let first = store.query_sql("select sdk_session_id, text from observations limit 1").unwrap();
    assert_eq!(first.columns, ["sdk_session_id", "text"]);
    assert!(first.rows[0].iter().all(serde_json::Value::is_string), "{first:?}");
    let ask = |sql: &str| store.dump(sql).unwrap();

    let state = ask("select content_session_id,
            case when memory_session_id is null then 'not captured' else 'captured' end as state
        from sdk_sessions where content_session_id = 'session-3'");
    assert_eq!(state, "session-3|captured\n");
    let orphans = "select o.id from observations o
        left join sdk_sessions s on o.memory_session_id = s.memory_session_id where s.id is null";
    assert_eq!(ask(orphans), "");
    let linked = ask("select count(*) from observations o
        join sdk_sessions s on o.memory_session_id = s.memory_session_id
        where s.content_session_id = 'session-3'");
    assert_eq!(linked, ask("select count(*) from main.observations where is_visible"));
    assert_ne!(linked, "0\n");
    let summaries = ask("select count(*), min(length(y.created_at)) from session_summaries y
        join sdk_sessions s using (memory_session_id) where s.content_session_id = 'session-3'");
    assert_eq!(summaries, ask("select count(*), 24 from summaries where is_visible"));
    let prompts = ask("select prompt_number, prompt_text, created_at_epoch from user_prompts
        where content_session_id = 'session-3' order by created_at_epoch");
    assert_eq!(prompts, ask("select number, text, at_us / 1000 from visible_prompts order by seq"));
    assert!(prompts.lines().count() > 0);
    let older = ask("select p.session_id = s.id, p.prompt = s.first_user_prompt, worker_port
        from user_prompts p join sdk_sessions s using (claude_session_id)
        where s.claude_session_id = 'session-3' and p.prompt_number = 1");
    assert_eq!(older, "1|1|\n");
    let summary =
        ask("select count(*) from session_summaries where summary like '%' || request || '%'
        and sdk_session_id is not null");
    assert_ne!(summary, "0\n");
    // Text and number are the same time.
    let apart = ask("select count(*) from user_prompts
        where cast(round(1000 * unixepoch(created_at, 'subsec')) as integer) != created_at_epoch");
    assert_eq!(apart, "0\n");
}

#[test]
fn the_views_cannot_be_written_to_and_are_in_no_dump() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.db");
    let store = Store::open(&path, Options::default()).unwrap();
    let write = store.query_sql("delete from prompts").unwrap_err().to_string();
    assert_eq!(write, "SQLite error: attempt to write a readonly database");
    let other = rusqlite::Connection::open(&path).unwrap();
    for view in ["sdk_sessions", "user_prompts", "sdk_observations", "session_summaries"] {
        let refused = other.execute(&format!("delete from {view}"), ()).unwrap_err().to_string();
        assert!(refused.contains("because it is a view"), "{refused}");
        let mut dump = Vec::new();
        store.write_dump(&mut dump).unwrap();
        assert!(!String::from_utf8(dump).unwrap().contains(view));
    }
}
