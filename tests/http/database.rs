//! The worker's database, while other programs read, copy, replace and delete its files.

use std::{fs, os::unix::fs::MetadataExt as _, path::PathBuf, process::Command};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::Site;
use crate::{model::dump, serving::until};

impl Site {
    fn database(&self) -> PathBuf {
        self.sandbox.data().join("memory.db")
    }

    /// Records a prompt with a hook, and waits until the worker returns it.
    fn prompt(&self, text: &str) {
        let prompt = json!({"session_id": "s1", "cwd": "/p", "hook_event_name": "UserPromptSubmit", "prompt": text});
        self.sandbox.hook("new", prompt.to_string());
        until(|| self.ask("GET", "/api/prompts", None).body.contains(text));
    }

    /// `worker status` reports no problem, and the worker holds no deleted file.
    fn assert_well(&self) {
        let status = self.sandbox.run(&["worker", "status", "--json"]).ok();
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["status"], "ok", "{status}");
        // Readers close the replaced file.
        until(|| {
            self.get("/api/prompts");
            let open = fs::read_dir(format!("/proc/{}/fd", self.serving.child.id())).unwrap();
            let names = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
            let mut names = names.map(|name| name.to_string_lossy().into_owned());
            !names.any(|name| name.contains("memory.db") && name.ends_with("(deleted)"))
        });
    }

    /// Whether the worker holds its lock on the database: without it, others delete the write-ahead
    /// log.
    ///
    /// The list of locks is not read at once: while others take locks, an entry can be missing. A
    /// lock that was dropped does not come back.
    fn is_locked(&self) -> bool {
        let inode = fs::metadata(self.database()).unwrap().ino().to_string();
        let pid = self.serving.child.id().to_string();
        (0..5).any(|_| {
            let locks = fs::read_to_string("/proc/locks").unwrap();
            locks.lines().any(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words[1] == "POSIX" && words[4] == pid && words[5].ends_with(&format!(":{inode}"))
            })
        })
    }

    fn is_there_and_locked(&self) -> bool {
        let files = ["", "-wal"].map(|suffix| format!("{}{suffix}", self.database().display()));
        files.iter().all(|file| fs::metadata(file).is_ok()) && self.is_locked()
    }
}

/// Queries with the `sqlite3` program, or in this process if there is none. The newest SQLite
/// checks twice before it deletes a write-ahead log; older programs do not.
fn look(site: &Site, sql: &str) -> String {
    match Command::new("sqlite3").arg(site.database()).arg(sql).output() {
        Ok(output) => String::from_utf8(output.stdout).unwrap().trim_end().to_owned(),
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
            let other = Connection::open(site.database()).unwrap();
            let sql = format!("select cast(({sql}) as text)");
            other.query_row(&sql, (), |row| row.get(0)).unwrap()
        }
    }
}

#[test]
fn a_look_by_another_program_does_the_worker_no_harm() {
    let site = Site::new();
    site.prompt("one");
    site.assert_well();
    assert_eq!(look(&site, "select count(*) from prompts"), "1");
    site.prompt("two");
    site.assert_well();
    let sql = "select group_concat(prompt_text) from user_prompts";
    assert_eq!(look(&site, sql), "one,two");
    site.prompt("three");
    site.assert_well();
}

#[test]
fn nothing_that_the_worker_does_drops_its_lock_on_the_database() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    assert!(site.is_locked());
    let described = site.get("/api/openapi.json");
    let mut asked = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        // A stream does not end, and paths with braces need the id of a row.
        if methods.get("get").is_none() || path == "/stream" {
            continue;
        }
        let path = path.replace("{id}", "1").replace("{generation}", "1");
        let reply = site.ask("GET", &path, None);
        assert!(reply.status < 500, "{path}: {reply:?}");
        assert!(site.is_locked(), "after GET {path}");
        asked += 1;
    }
    assert!(asked > 15, "{asked}");
    for arguments in [
        &["worker", "status"][..],
        &["status"],
        &["doctor"],
        &["verify"],
        &["search", "cart"],
        &["export"],
        &["remember", "the walrus is in the cellar"],
        &["compact"],
        &["replay", "--offline"],
    ] {
        sandboxed(&site, arguments);
        // A rebuild replaces the file, and the worker opens the new one.
        until(|| site.is_locked());
        site.prompt(&format!("after {}", arguments.join(" ")));
        assert!(site.is_locked(), "after {arguments:?}");
    }
    let written = json!({"text": "the walrus is in the attic", "project": "shop"});
    site.ask("POST", "/api/memory/save", Some(&written));
    assert!(site.is_locked());
    site.assert_well();
}

fn sandboxed(site: &Site, arguments: &[&str]) {
    let run = site.sandbox.run(arguments);
    // `doctor` finds no hooks here.
    assert!(run.code == 0 || arguments == ["doctor"], "{run:?}");
}

#[test]
fn a_worker_whose_files_are_deleted_or_replaced_opens_them_again() {
    let site = Site::new();
    site.prompt("first");
    let data = site.sandbox.data();
    let older = data.join("older.db");
    Connection::open(site.database())
        .unwrap()
        .execute("vacuum into ?1", [older.to_str().unwrap()])
        .unwrap();
    let remove = |names: &[&str]| {
        for name in names {
            fs::remove_file(data.join(name)).unwrap();
        }
    };
    let disturbances: [(&str, &dyn Fn()); 5] = [
        ("log deleted", &|| remove(&["memory.db-wal"])),
        ("log and shared memory deleted", &|| remove(&["memory.db-wal", "memory.db-shm"])),
        ("database deleted", &|| remove(&["memory.db"])),
        ("all deleted", &|| remove(&["memory.db", "memory.db-wal", "memory.db-shm"])),
        ("an older copy in its place", &|| {
            remove(&["memory.db-wal", "memory.db-shm"]);
            fs::rename(&older, site.database()).unwrap();
        }),
    ];
    for (what, disturb) in disturbances {
        site.prompt(&format!("before: {what}"));
        disturb();
        // The worker notices without a new event.
        until(|| site.is_there_and_locked());
        site.prompt(&format!("after: {what}"));
        site.assert_well();
    }
    let listed = site.get("/api/prompts?limit=100").to_string();
    assert_eq!(listed.matches("before: ").count(), 5, "{listed}");
    assert_eq!(listed.matches("after: ").count(), 5, "{listed}");
    let followed = dump(&data);
    site.sandbox.run(&["replay", "--offline"]).ok();
    assert_eq!(dump(&data), followed);
}
