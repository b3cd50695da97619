//! The context that a session is given when it starts.

use std::fs;

use claude_mem_events::{
    AgentReplied, Envelope, Event, EventLog, Id, MemoryAdded, Project, PromptSubmitted, ToolUsed,
};
use claude_mem_log::Options;
use serde_json::json;

use crate::sandbox::Sandbox;

const MINUTE_US: u64 = 60_000_000;

/// A home directory with one project, to which sessions can be added.
pub(crate) struct Past {
    pub(crate) sandbox: Sandbox,
    log: EventLog,
    at_us: u64,
}

impl Past {
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.home().join("shop")).unwrap();
        let log = EventLog::open(&sandbox.data().join("log"), Options::default()).unwrap();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
        Self { sandbox, log, at_us: now - 10_000 * MINUTE_US }
    }

    pub(crate) fn root(&self) -> String {
        fs::canonicalize(self.sandbox.home().join("shop")).unwrap().to_string_lossy().into()
    }

    pub(crate) fn record(&mut self, session: &str, event: impl Into<Event>) {
        self.at_us += MINUTE_US;
        let root = self.root();
        let project = Project { key: root.clone(), label: "shop".into(), root };
        let platform = "claude-code".into();
        let envelope = Envelope {
            host: "here".into(),
            platform,
            session: session.into(),
            project,
            ..Envelope::default()
        };
        self.log.record(Id::random(self.at_us), &envelope, &event.into()).unwrap();
    }

    /// Adds this response of a provider for a session.
    pub(crate) fn reply(&mut self, session: &str, reply: &str) {
        let replied = AgentReplied {
            provider: "extract".into(),
            model: "rules".into(),
            prompt_version: "1".into(),
            reply: reply.into(),
            ..AgentReplied::default()
        };
        self.record(session, replied);
    }

    pub(crate) fn observe(&mut self, session: &str, kind: &str, title: &str, file: &str) {
        self.reply(
            session,
            &format!(
                "<observation><type>{kind}</type><title>{title}</title>\
                 <narrative>The story of {title}.</narrative>\
                 <files_read><file>{file}</file></files_read></observation>"
            ),
        );
    }

    fn begin(&self, session: &str, source: &str) -> String {
        let sent = json!({"session_id": session, "hook_event_name": "SessionStart", "source": source,
            "cwd": self.root(), "transcript_path": "/none"});
        let answer = self.sandbox.hook("context", sent.to_string());
        let output = &answer["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "SessionStart");
        output["additionalContext"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_new_session_gets_past_work_and_next_steps() {
    let mut past = Past::new();
    past.observe("one", "bugfix", "Rounding happens once, at the end", "cart.rs");
    past.reply(
        "one",
        "<summary><request>Fix the total</request><completed>Total is exact</completed>\
         <next_steps>Check invoices</next_steps></summary>",
    );
    let added = MemoryAdded {
        text: "Never touch the ledger table".into(),
        via: "cli".into(),
        ..MemoryAdded::default()
    };
    past.record("", added);
    for source in ["startup", "clear", "compact"] {
        let page = past.begin(&format!("new-{source}"), source);
        for part in [
            "# shop: memory, as of",
            "not instructions",
            "Never touch the ledger table",
            "Check invoices",
            "- Fix the total → Total is exact",
            "Rounding happens once, at the end [cart.rs, gone]",
            "The story of Rounding",
        ] {
            assert!(page.contains(part), "{source}: no `{part}` in\n{page}");
        }
        let places = ["Never touch", "Check invoices", "Fix the total", "Rounding happens"];
        let places = places.map(|text| page.find(text).unwrap());
        assert!(places.is_sorted(), "{page}");
    }
}

#[test]
fn rules_of_the_user_come_first_at_any_age() {
    let mut past = Past::new();
    let rule = "<observation><type>rule</type><title>US English everywhere</title></observation>";
    past.reply("first", rule);
    for number in 0..300 {
        past.observe(&format!("s{number}"), "bugfix", &format!("Fix number {number}"), "a.rs");
    }
    past.sandbox.run(&["distill"]).ok();
    let page = past.begin("new", "startup");
    let (rules, rest) = page.split_once("## Known").unwrap();
    assert!(rules.contains("## Said by the user\n- #1 US English everywhere\n"), "{page}");
    assert!(!rest.contains("US English"), "{page}");
}

#[test]
fn sessions_that_a_program_starts_do_not_crowd_the_context() {
    let mut past = Past::new();
    let summary = |text: &str| {
        format!("<summary><request>{text}</request><completed>{text} is done</completed></summary>")
    };
    let prompt = |text: &str| PromptSubmitted { prompt: text.into(), ..PromptSubmitted::default() };
    past.record("typed", prompt("add the invoice"));
    past.reply("typed", &summary("The invoice"));
    for number in 0..40 {
        let session = format!("review-{number}");
        past.record(&session, prompt("Review this change for security vulnerabilities. Files:"));
        past.observe(&session, "discovery", &format!("Review {number} found nothing"), "a.rs");
        past.reply(&session, &summary("A review"));
    }
    past.sandbox.run(&["distill"]).ok();
    let page = past.begin("new", "startup");
    assert!(page.contains("- The invoice → The invoice is done"), "{page}");
    assert!(!page.contains("A review is done"), "{page}");
    assert!(page.matches("found nothing [").count() < 10, "{page}");
}

#[test]
fn after_a_compaction_a_session_is_given_its_own_state() {
    let mut past = Past::new();
    past.observe("one", "decision", "Known before", "a.rs");
    let prompt = PromptSubmitted { prompt: "make the tests pass".into(), ..Default::default() };
    past.record("two", prompt);
    past.reply(
        "two",
        "<summary><request>Fix the total</request><completed>Total is exact</completed>\
         <next_steps>Check invoices</next_steps></summary>",
    );
    for (command, error) in [("cargo test", "Exit code 101\nerror: two tests failed"), ("ls", "")] {
        past.record(
            "two",
            ToolUsed {
                tool: "Bash".into(),
                input: json!({ "command": command }).to_string(),
                has_failed: !error.is_empty(),
                error: error.into(),
                tool_use_id: command.into(),
                ..ToolUsed::default()
            },
        );
    }
    let page = past.begin("two", "compact");
    let expected = "\n## Where this session stands\n- Asked last: make the tests pass\n\
        - Open: Check invoices\n- Last failing command: `cargo test`: error: two tests failed\n\
        \n## Done in this session\n- Fix the total → Total is exact\n";
    assert!(page.contains(expected), "{page}");
    assert!(page.contains("# shop: after the compaction, as of"), "{page}");
    assert!(!page.contains("Known before"), "the client keeps its context: {page}");
}

#[test]
fn one_line_reports_what_was_loaded_or_why_nothing_was() {
    let mut past = Past::new();
    let notice = |past: &Past, session: &str, source: &str| {
        let sent = json!({"session_id": session, "hook_event_name": "SessionStart",
            "source": source, "cwd": past.root()});
        let answer = past.sandbox.hook("context", sent.to_string());
        answer["systemMessage"].as_str().map(str::to_owned)
    };
    let first = notice(&past, "one", "startup").unwrap();
    let expected =
        "claude-mem: recording the first session of this project; the next one gets its memories";
    assert_eq!(first, expected);
    assert_eq!(notice(&past, "one", "resume"), None);
    let nothing = "claude-mem: no memories of this project yet";
    past.record("one", ToolUsed { tool_use_id: "t".into(), ..ToolUsed::default() });
    assert_eq!(notice(&past, "two", "startup").unwrap(), nothing, "nothing is indexed");
    past.sandbox.run(&["search", "x"]);
    let pending = notice(&past, "three", "startup").unwrap();
    assert_eq!(pending, format!("{nothing}: 1 event not distilled; run `claude-mem status`"));
    past.observe("one", "decision", "Use WAL", "a.rs");
    let loaded = notice(&past, "four", "startup").unwrap();
    assert!(loaded.starts_with("claude-mem: 1 memory (about "), "{loaded}");
    let off = r#"{"CLAUDE_MEM_CONTEXT_SHOW_TERMINAL_OUTPUT": "false"}"#;
    past.sandbox.write(".claude-mem/settings.json", off);
    assert_eq!(notice(&past, "five", "startup"), None);
}

#[test]
fn a_resumed_session_gets_only_what_others_added_since() {
    let mut past = Past::new();
    past.observe("one", "bugfix", "Known before", "a.rs");
    past.begin("two", "startup");
    assert_eq!(past.begin("two", "resume"), "");
    past.at_us = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
    past.at_us -= MINUTE_US - 1_000;
    past.observe("three", "decision", "Learned meanwhile", "a.rs");
    let later = past.at_us + MINUTE_US;
    let later = jiff::Timestamp::from_microsecond(later as i64).unwrap().to_string();
    let sent = json!({"session_id": "two", "hook_event_name": "SessionStart", "source": "resume",
        "cwd": past.root()});
    let answer = past.sandbox.hook_with("context", &[("CLAUDE_MEM_NOW", &later)], sent.to_string());
    let page = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(page.contains("Learned meanwhile"), "{page}");
    assert!(!page.contains("Known before"), "{page}");
}

#[test]
fn the_client_accepts_the_context_of_any_memory_size() {
    let mut past = Past::new();
    let words = ["ledger", "basket", "rounding", "tax", "coupon", "refund", "invoice", "session"];
    for number in 0..1000_usize {
        let title: Vec<_> = (0..5).map(|place| words[(number >> place) % 8]).collect();
        let title = format!("{} \"number\" {number}", title.join(" "));
        past.observe(&format!("s{}", number % 90), "discovery", &title, "a.rs");
    }
    // A hook does not wait until all events are indexed; a command does.
    past.sandbox.run(&["distill"]).ok();
    let page = past.begin("new", "startup");
    assert!(page.encode_utf16().count() < 9_800, "{}", page.len());
    assert!(page.contains("of 1000 memories"), "{page}");
    let shown =
        past.sandbox.run(&["context", "--project", "shop", "--budget", "800", "--json"]).ok();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert!(shown["tokens"].as_u64().unwrap() <= 800, "{shown}");
}

#[test]
fn the_injected_context_is_never_recorded_as_new() {
    let mut past = Past::new();
    past.observe("one", "decision", "A memorable decision", "a.rs");
    let page = past.begin("two", "startup");
    assert!(page.contains("A memorable decision"));
    let prompt = json!({"session_id": "two", "hook_event_name": "UserPromptSubmit", "cwd": past.root(),
        "prompt": format!("please go on{page}")});
    past.sandbox.hook("new", prompt.to_string());
    let events = past.sandbox.events();
    let prompts: Vec<_> = events
        .iter()
        .filter(|event| event["kind"] == "PromptSubmitted")
        .map(ToString::to_string)
        .collect();
    assert_eq!(prompts.len(), 1);
    assert!(
        prompts[0].contains("please go on") && !prompts[0].contains("memorable"),
        "{prompts:?}"
    );
}

#[test]
fn a_memory_of_changed_or_deleted_files_is_marked() {
    let mut past = Past::new();
    fs::write(past.sandbox.home().join("shop/changed.rs"), "new").unwrap();
    past.observe("one", "bugfix", "About a file rewritten later", "changed.rs");
    past.observe("two", "bugfix", "On something since removed", "gone.rs");
    let page = past.begin("new", "startup");
    assert!(page.contains("rewritten later [changed.rs, changed since]"), "{page}");
    assert!(page.contains("since removed [gone.rs, gone]"), "{page}");
}

#[test]
fn a_project_without_memories_gets_no_context() {
    let past = Past::new();
    assert_eq!(past.begin("first", "startup"), "");
}

impl Past {
    /// The memories added to a prompt; `None` if there are none.
    pub(crate) fn prompt(&self, session: &str, prompt: &str) -> Option<String> {
        let sent = json!({"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": prompt,
            "cwd": self.root(), "transcript_path": "/none"});
        let answer = self.sandbox.hook("new", sent.to_string());
        let output = answer.get("hookSpecificOutput")?;
        assert_eq!(output["hookEventName"], "UserPromptSubmit");
        Some(output["additionalContext"].as_str().unwrap().to_owned())
    }

    fn with_decisions() -> Self {
        let mut past = Self::new();
        past.observe("one", "decision", "Moved off Postgres to SQLite for simple backups", "db.rs");
        for title in ["Prices are in cents", "Images shrink on upload", "Carts expire at night"] {
            past.observe("one", "discovery", title, "cart.rs");
        }
        past.sandbox.run(&["distill"]).ok();
        past
    }
}

const WHY: &str = "why did we move off Postgres?";

#[test]
fn a_prompt_brings_the_memory_it_is_about_once() {
    let past = Past::with_decisions();
    assert_eq!(past.prompt("two", "write a poem about the sea"), None);
    assert_eq!(past.prompt("two", "yes"), None);
    let given = past.prompt("two", WHY).unwrap();
    assert!(given.contains("#1 (") && given.contains("The story of Moved off Postgres"), "{given}");
    assert!(!given.contains("cents"), "{given}");
    assert_eq!(past.prompt("two", WHY), None, "given already, and not indexed yet");
    past.sandbox.run(&["distill"]).ok();
    assert_eq!(past.prompt("two", WHY), None, "given already");
    assert!(past.prompt("three", WHY).is_some(), "another session");
    assert_eq!(past.prompt("one", WHY), None, "its own session");
    let injected = past.sandbox.events();
    let injected: Vec<_> =
        injected.iter().filter(|event| event["kind"] == "MemoryInjected").collect();
    assert_eq!(injected.len(), 2, "{injected:?}");
    assert_eq!(injected[0]["event"]["moment"], "Prompt", "{injected:?}");
}

#[test]
fn memories_removed_by_a_compaction_are_given_again() {
    let past = Past::with_decisions();
    past.begin("two", "resume");
    assert!(past.prompt("two", WHY).is_some());
    past.begin("two", "resume");
    assert_eq!(past.prompt("two", WHY), None, "a resumed session has its history");
    past.begin("two", "compact");
    assert!(past.prompt("two", WHY).is_some());
    assert_eq!(past.prompt("two", WHY), None);
    past.sandbox.run(&["distill"]).ok();
    assert_eq!(past.prompt("two", WHY), None, "indexed");
    past.begin("two", "compact");
    past.sandbox.run(&["distill"]).ok();
    assert!(past.prompt("two", WHY).is_some(), "the compaction is indexed");
}

#[test]
fn memories_shown_in_full_at_the_start_are_not_given_again() {
    let past = Past::with_decisions();
    let page = past.begin("two", "startup");
    assert!(page.contains("The story of Moved off Postgres"), "{page}");
    assert_eq!(past.prompt("two", WHY), None);
}

#[test]
fn memories_with_prompts_can_be_switched_off_while_recording_goes_on() {
    let past = Past::with_decisions();
    past.sandbox.write(
        ".claude-mem/settings.json",
        r#"{"CLAUDE_MEM_CONTEXT_PROMPT_TOKENS_MAX": "0", "CLAUDE_MEM_CONTEXT_TOKENS_MAX": "0"}"#,
    );
    assert_eq!(past.begin("two", "startup"), "");
    assert_eq!(past.prompt("two", WHY), None);
    let events = past.sandbox.events();
    assert!(events.iter().any(|event| event["event"]["prompt"] == WHY), "{events:?}");
    assert!(!events.iter().any(|event| event["kind"] == "MemoryInjected"), "{events:?}");
}

#[test]
fn private_prompts_bring_nothing() {
    let past = Past::with_decisions();
    assert_eq!(past.prompt("two", &format!("<private>{WHY}</private>")), None);
}

#[test]
fn context_shows_what_a_prompt_would_bring() {
    let past = Past::with_decisions();
    past.sandbox.write(".claude-mem/settings.json", r#"{"CLAUDE_MEM_CONTEXT_FULL_COUNT": "0"}"#);
    let run = |arguments: &[&str]| {
        let mut all = vec!["context", "--project", "shop"];
        all.extend(arguments);
        past.sandbox.run(&all).ok()
    };
    let page = run(&[]);
    let both = run(&["--prompt", WHY]);
    assert!(
        both.starts_with(page.trim_end()) && both.contains("may concern this prompt"),
        "{both}"
    );
    assert_eq!(run(&["--prompt", "yes"]), page);
    let json: serde_json::Value = serde_json::from_str(&run(&["--prompt", WHY, "--json"])).unwrap();
    assert_eq!(json["with_prompt"]["observations"], json!(["1"]), "{json}");
}
