//! memory.db when it is damaged, missing, too new, or on a read-only disk: commands read what they
//! can, and the database is rebuilt where possible.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, thread};

use serde_json::{Value, json};

use crate::{
    hook_session::HookSession,
    mcp::process::McpProcess,
    model::dump,
    sandbox::{Run, Sandbox},
};

/// Records a turn of a session and folds it. The rules make an observation and a summary of it.
pub(crate) fn work(sandbox: &Sandbox, id: &str, word: &str) {
    let session = HookSession::new(sandbox, id);
    session.prompt(&format!("find the {word}"));
    session.edit(&format!("{id}-{word}"), &format!("{word}.rs"), "a", "b");
    session.stop(&format!("The {word} is found."));
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
}

/// Runs every command that only reads; each must find `word`. Returns the stderr of `search`.
pub(crate) fn assert_readable(sandbox: &Sandbox, word: &str) -> String {
    let has_word = |run: Run, what: &str| {
        assert_eq!(run.code, 0, "{what}: {run:?}");
        assert!(run.stdout.contains(word), "{what}: {run:?}");
        run.stderr
    };
    let printed = has_word(sandbox.run(&["search", word]), "search");
    has_word(sandbox.run(&["search", word, "--json"]), "search --json");
    has_word(sandbox.run(&["context", "--project", "."]), "context");
    has_word(sandbox.run(&["timeline"]), "timeline");
    has_word(sandbox.run(&["log"]), "log");
    has_word(sandbox.run(&["export"]), "export");
    has_word(sandbox.run(&["export", "--format", "markdown"]), "export --format markdown");
    has_word(sandbox.run(&["export", "--project", "home"]), "export --project");
    for arguments in [&["status"][..], &["costs"], &["hosts"]] {
        sandbox.run(arguments).ok();
    }
    let listed = sandbox.run(&["search", word, "--json"]).ok();
    let first: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let id = first["id"].as_str().map_or_else(|| first["id"].to_string(), str::to_owned);
    sandbox.run(&["show", &id]).ok();
    let mut server = McpProcess::with(sandbox);
    let (found, is_error) = server.call("search", &json!({"query": word}));
    assert!(!is_error && found.contains(word), "{found}");
    let (full, is_error) = server.call("get_observations", &json!({"ids": [id]}));
    assert!(!is_error && full.starts_with("# "), "{full}");
    server.end();
    printed
}

/// Runs the hook at the start of a session, and returns the context.
pub(crate) fn begin_session(sandbox: &Sandbox) -> String {
    let start = json!({"session_id": "next", "cwd": sandbox.home(), "hook_event_name": "SessionStart", "source": "startup"});
    let answer = sandbox.hook("context", start.to_string());
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

fn sql(sandbox: &Sandbox, sql: &str) {
    let connection = rusqlite::Connection::open(sandbox.data().join("memory.db")).unwrap();
    connection.execute_batch(sql).unwrap();
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn hooks_respond_with_anything_at_the_path_of_the_database_and_it_is_rebuilt() {
    type Damage = fn(&Sandbox);
    let damages: [(&str, Damage); 8] = [
        ("a dropped table", |sandbox| sql(sandbox, "drop table imports")),
        ("a dropped index", |sandbox| sql(sandbox, "drop table observations_fts")),
        ("a deleted checkpoint", |sandbox| sql(sandbox, "delete from checkpoint")),
        ("a directory", |sandbox| {
            sandbox.delete_database();
            fs::create_dir(sandbox.data().join("memory.db")).unwrap();
            fs::write(sandbox.data().join("memory.db/kept"), "somebody's").unwrap();
        }),
        ("a FIFO", |sandbox| {
            sandbox.delete_database();
            fifo(&sandbox.data().join("memory.db"));
        }),
        ("a FIFO as write-ahead log", |sandbox| fifo(&sandbox.data().join("memory.db-wal"))),
        ("a FIFO as shared memory", |sandbox| fifo(&sandbox.data().join("memory.db-shm"))),
        ("a device", |sandbox| {
            sandbox.delete_database();
            std::os::unix::fs::symlink("/dev/zero", sandbox.data().join("memory.db")).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let sandbox = Sandbox::new();
        work(&sandbox, "s1", "walrus");
        let before = dump(&sandbox.data());
        damage(&sandbox);
        // The context may be empty, but the hook exits.
        begin_session(&sandbox);
        for (arguments, code) in [(["verify", "--json"], 1), (["status", "--json"], 0)] {
            let run = sandbox.run(&arguments);
            assert!(run.code == code || what == "a deleted checkpoint", "{what}: {run:?}");
        }
        let replayed = sandbox.run(&["replay", "--offline"]);
        assert_eq!(replayed.code, 0, "{what}: {replayed:?}");
        let after = dump(&sandbox.data());
        // The session that started meanwhile is the only difference.
        assert!(after.contains("find the walrus"), "{what}");
        assert_eq!(after.matches("walrus").count(), before.matches("walrus").count(), "{what}");
        assert_eq!(sandbox.run(&["verify"]).code, 0, "{what}");
        assert!(begin_session(&sandbox).contains("walrus"), "{what}");
        if what == "a directory" {
            let aside = fs::read_dir(sandbox.data()).unwrap().find_map(|entry| {
                let path = entry.unwrap().path();
                path.to_str().unwrap().contains(".broken-").then_some(path)
            });
            assert_eq!(fs::read_to_string(aside.unwrap().join("kept")).unwrap(), "somebody's");
            sandbox.run(&["compact"]).ok();
        }
    }
}

#[test]
fn a_lock_file_that_is_a_fifo_or_a_link_does_no_harm() {
    let sandbox = Sandbox::new();
    work(&sandbox, "s1", "walrus");
    let lock = sandbox.data().join("memory.db.lock");
    fifo(&lock);
    assert!(begin_session(&sandbox).contains("walrus"));
    assert!(sandbox.run(&["search", "walrus"]).ok().contains("walrus"));
    let error = sandbox.run(&["replay", "--offline"]).fails(1);
    assert!(error.contains("memory.db.lock: it is not a regular file"), "{error}");
    fs::remove_file(&lock).unwrap();
    for name in ["memory.db.lock", "memory.db.rebuild"] {
        let _ = fs::remove_file(sandbox.data().join(name));
        let precious = sandbox.write(name, "x");
        std::os::unix::fs::symlink(precious, sandbox.data().join(name)).unwrap();
    }
    sandbox.run(&["replay", "--offline"]).ok();
    assert_eq!(sandbox.read("memory.db.lock") + &sandbox.read("memory.db.rebuild"), "xx");
    for name in ["ask.lock", "injection.lock", "ship.lock", "worker.lock"] {
        let _ = fs::remove_file(sandbox.data().join(name));
        fifo(&sandbox.data().join(name));
    }
    assert!(begin_session(&sandbox).contains("walrus"));
    sandbox.run(&["distill"]).fails(1);
}

#[test]
fn with_a_database_of_a_newer_version_commands_read_the_log() {
    let sandbox = Sandbox::new();
    work(&sandbox, "s1", "walrus");
    sql(&sandbox, "pragma user_version = 4711");
    let before = fs::read(sandbox.data().join("memory.db")).unwrap();
    let printed = assert_readable(&sandbox, "walrus");
    assert!(
        printed.contains("has schema 4711") && printed.contains("from the log alone"),
        "{printed}"
    );
    let status = sandbox.run(&["status"]).ok();
    assert!(status.contains("has schema 4711"), "{status}");
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.stdout.contains("use the newer version"), "{doctor:?}");
    // Commands that write are refused, and hooks still record.
    let error = sandbox.run(&["distill"]).fails(1);
    assert!(error.contains("the database was not touched"), "{error}");
    begin_session(&sandbox);
    let events = sandbox.events().len();
    sandbox.hook("new", json!({"session_id": "s2", "prompt": "more"}).to_string());
    assert_eq!(sandbox.events().len(), events + 1);
    assert_eq!(fs::read(sandbox.data().join("memory.db")).unwrap(), before);
}

#[test]
fn a_read_only_directory_can_be_read() {
    let sandbox = Sandbox::new();
    work(&sandbox, "s1", "walrus");
    let dirs = || {
        let below = |dir: &Path| {
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
        };
        let mut dirs = vec![sandbox.data()];
        dirs.extend(below(&sandbox.data()).into_iter().filter(|path| path.is_dir()));
        dirs
    };
    // Root can write everywhere, so the directory belongs to another user who can only read.
    let is_root = rustix::process::geteuid().is_root();
    let owner = if is_root { Some(65534) } else { None };
    let root = sandbox.home().parent().unwrap().to_owned();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    for dir in dirs() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
                std::os::unix::fs::chown(&path, owner, None).unwrap();
            }
        }
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o555)).unwrap();
        std::os::unix::fs::chown(&dir, owner, None).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        if let Some(owner) = owner {
            std::os::unix::process::CommandExt::uid(&mut command, owner);
        }
        command.output().unwrap()
    };
    for arguments in [
        &["search", "walrus"][..],
        &["context", "--project", "."],
        &["timeline"],
        &["export"],
        &["export", "--format", "markdown"],
        &["log"],
    ] {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("walrus"), "{arguments:?}: {output:?}");
    }
    assert!(run(&["status"]).status.success());
    for dir in dirs() {
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn first_use_by_many_sessions_at_once_leaves_no_complaint() {
    for round in 0..6 {
        let sandbox = Sandbox::new();
        thread::scope(|scope| {
            for number in 0..8 {
                let sandbox = &sandbox;
                scope.spawn(move || {
                    let session = format!("s{round}-{number}");
                    let start = json!({"session_id": session, "cwd": "/p", "hook_event_name": "SessionStart", "source": "startup"});
                    sandbox.hook("context", start.to_string());
                    if number % 2 == 0 {
                        sandbox.run(&["remember", "the walrus is in the cellar"]).ok();
                    } else {
                        sandbox.run(&["search", "walrus"]).ok();
                    }
                    sandbox.hook("context", start.to_string());
                });
            }
        });
        assert_eq!(sandbox.diagnostics(), "", "round {round}");
        let found = sandbox.run(&["search", "walrus", "--json"]).ok();
        assert_eq!(found.lines().count(), 4, "{found}");
    }
}
