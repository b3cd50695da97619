//! Commands at a real terminal: no line is too wide, long work shows progress, and declining is not
//! an error.

use std::collections::BTreeSet;

use claude_mem_tools::model::{Answer, Server, Usage};
use serde_json::{Value, json};

use crate::{
    hook_session::HookSession,
    model::{Session, provider, run},
    sandbox::{AtTerminal, Sandbox},
};

const PROMPT: &str = "\
    Please find out why the invoice of a customer in another time zone has the date of the \
    previous day, and add a test that fails without the fix, as the nightly export depends on \
    this date.";

/// A memory of one session with long texts, wide characters, long names and a commit.
pub(crate) fn remembering() -> Sandbox {
    let sandbox = Sandbox::new();
    let project = sandbox.home().join("a-project-with-a-rather-long-name-请求");
    std::fs::create_dir(&project).unwrap();
    let session = HookSession::new(&sandbox, "b7c1fd90-6a0f-4c8c-9d33-0a1b2c3d4e5f");
    let session = session.in_folder(&project).with(&[("CLAUDE_MEM_PROVIDER", "extract")]);
    session.start();
    session.prompt(&format!("{PROMPT} {}", "请求超时的时候".repeat(20)));
    for number in 0..3 {
        let file = format!("services/billing/src/invoices/time_zone_{number}.rs");
        let id = format!("toolu_01EditOfAFile0000000{number}");
        session.edit(&id, &file, "let day = now;", PROMPT);
        let filter = "time_zone ".repeat(12);
        let command = format!("cargo test --package billing --test invoices_{number} -- {filter}");
        let response = json!({"stdout": "3 passed", "stderr": ""});
        let id = format!("toolu_01Bash{number}");
        session.tool(&id, "Bash", &json!({"command": command}), &response);
    }
    session.stop(&format!("Fixed: {PROMPT}"));
    for title in [PROMPT, "short"] {
        let note = ["remember", PROMPT, "--title", title];
        sandbox.run(&note).ok();
    }
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
    sandbox
}

/// The output of a command at a terminal of this width; a question is answered with no.
fn shown(sandbox: &Sandbox, arguments: &[&str], columns: u16) -> String {
    let mut command = sandbox.command(arguments);
    command.env("CLAUDE_MEM_PROVIDER", "extract");
    let mut terminal = AtTerminal::start(command, columns, 24);
    terminal.keys("n\n");
    let (pieces, _) = terminal.finish();
    pieces.concat().replace("\r\n", "\n")
}

/// Without colours.
fn plain(shown: &str) -> String {
    let mut pieces = shown.split("\x1b[");
    let first = pieces.next().unwrap().to_owned();
    let after = |piece: &str| {
        piece.split_once(|c: char| c.is_ascii_alphabetic()).map(|(_, text)| text.to_owned())
    };
    first + &pieces.filter_map(after).collect::<String>()
}

/// The columns of a line in which Han characters take two.
fn columns_of(line: &str) -> usize {
    line.chars().map(|c| if ('\u{2e80}'..='\u{ffef}').contains(&c) { 2 } else { 1 }).sum()
}

/// Lines that are wider than the terminal. A single wider word, such as a path or an address, is
/// not broken, so that it can be copied.
pub(crate) fn too_wide(what: &str, text: &str, columns: u16) -> Vec<String> {
    let text = plain(text);
    let is_too_wide = |line: &&str| {
        columns_of(line) > usize::from(columns)
            && line.trim().trim_start_matches("- ").contains(' ')
    };
    let lines = text.split(['\n', '\r']).filter(is_too_wide);
    lines.map(|line| format!("{what} at {columns}: {line}")).collect()
}

/// Each command at least once, with its output and its errors.
const COMMANDS: &str = "\
status
status -v
doctor
log
log -n 3
log --raw
costs
costs --by project
costs --by model
report
worker status
worker logs
settings
settings project
settings get no_such_setting
settings set provider nobody
search invoice
search invoice --explain
search
search nothing-like-it
timeline
timeline 1
show 1 2 P1 S1
show 1 --raw
show b7c1fd90
show 4711
why a-project-with-a-rather-long-name-请求/services/billing/src/invoices/time_zone_1.rs
why no/such/file.rs
context
context --budget 4000
projects
projects split nothing
remember a-note
remember
edit 4711 --title x
pin 1
unpin 1
wrong 2 --reason because
supersede 4711 4712
forget 1
forget --text invoice
forget
redact
distill
index
replay --dry-run
replay --offline
diff
retry
compact --dry-run
verify
export --output export.jsonl
import export.jsonl
import
ship --to copy
ship
verify --remote
restore
restore --from copy --into elsewhere
pull
hosts
hosts hide nobody
memory pin 1
remote hosts
generate completions
sql nothing
key show
eval
statusline
man pages
plugin a-plugin
install
uninstall
viewer --help
mcp --help
completions
no-such-command
status --no-such-option
save
--help
--version";

#[test]
fn every_command_fits_the_terminal() {
    let sandbox = remembering();
    let mut found = Vec::new();
    for columns in [80, 160] {
        for line in COMMANDS.lines() {
            let arguments: Vec<&str> = line.split_whitespace().collect();
            found.extend(too_wide(line, &shown(&sandbox, &arguments, columns), columns));
        }
    }

    let help = shown(&sandbox, &["--help"], 80);
    let help = plain(&help);
    let listed = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names: BTreeSet<&str> = listed
        .filter(|line| {
            line.starts_with(|c: char| c.is_ascii_lowercase()) && line.get(11..13) == Some("  ")
        })
        .map(|line| line.split(' ').next().unwrap())
        // An example.
        .filter(|name| *name != "claude-mem")
        .collect();
    assert!(names.len() > 30, "{names:?}");
    // The demo takes seconds, so its own test looks at it.
    let elsewhere = ["demo"];
    for name in names {
        let is_tried = COMMANDS.lines().any(|line| line.split(' ').next() == Some(name))
            || elsewhere.contains(&name);
        assert!(is_tried, "`{name}` is not tried at a terminal");
        found.extend(too_wide(name, &shown(&sandbox, &[name, "--help"], 80), 80));
    }
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn nothing_is_cut_without_a_terminal() {
    let sandbox = remembering();
    let title = sandbox.run(&["search", "invoice"]).ok();
    assert!(title.lines().any(|line| line.contains(PROMPT)), "{title}");
    let log = sandbox.run(&["log"]).ok();
    assert!(log.contains("a-project-with-a-rather-long-name-请求"), "{log}");
}

#[test]
fn a_list_contains_the_same_text_once() {
    let sandbox = remembering();
    let found = sandbox.run(&["search", "invoice", "--kind", "prompt"]).ok();
    assert_eq!(found.matches("nightly export").count(), 1, "{found}");
    let narrow = plain(&shown(&sandbox, &["search", "invoice", "--kind", "prompt"], 80));
    assert_eq!(narrow.matches("Please find out").count(), 1, "{narrow}");
}

#[test]
fn a_memory_is_shown_with_its_model_cost_and_sources() {
    let sandbox = Sandbox::new();
    let mut session = Session::start(&sandbox, "s");
    session.prompt("find out why invoices have the wrong date");
    session.tool();
    session.stop("The date is taken in UTC now.");
    let server = Server::answering(|_| {
        let usage = Usage { input: 14_812, output: 1_611, ..Usage::default() };
        Answer::text(
            "<observation><type>bugfix</type><title>Dates are taken in UTC</title>\
             <narrative>The server is in Sydney, and the invoice of a customer in another time \
             zone had the date of the previous day.</narrative>\
             <facts><fact>`Invoice::day` takes a `Zoned`</fact></facts></observation>",
        )
        .usage(usage)
    });
    run(&sandbox, &["distill"], &provider("anthropic", &server.unwrap())).ok();
    let text = plain(&shown(&sandbox, &["show", "1"], 120));
    // Times and ids differ in each run.
    let steady = |line: &str| match line.split(' ').next() {
        Some("1") => "1  bugfix  TIME  PROJECT".to_owned(),
        Some("event") => "event ID at PLACE".to_owned(),
        Some("prompt") => {
            let words: Vec<&str> = line.split(", ").filter(|word| !word.ends_with(" s")).collect();
            words.join(", ").replace(words[0], "prompt VERSION")
        }
        Some("from") => line.split_whitespace().skip(2).collect::<Vec<_>>().join(" "),
        _ => line.to_owned(),
    };
    // The first line is the input that the terminal echoes.
    let lines: Vec<String> = text.lines().skip(1).map(steady).collect();
    assert_eq!(
        lines,
        [
            "1  bugfix  TIME  PROJECT",
            "Dates are taken in UTC",
            "The server is in Sydney, and the invoice of a customer in another time zone had the \
             date of the previous day.",
            "facts:",
            "  - `Invoice::day` takes a `Zoned`",
            "modified:",
            "  - s-1.rs",
            "anthropic claude-haiku-4-5, in claude-code",
            "prompt VERSION, 14,812 tokens in, 1,611 out, $0.02, for 2 memories",
            "event ID at PLACE",
            "Write s-1.rs",
            "SummaryRequested The date is taken in UTC now.",
        ]
    );
}

#[test]
fn declining_is_not_an_error() {
    let sandbox = remembering();
    let shown = plain(&shown(&sandbox, &["forget", "1"], 80));
    assert!(shown.contains("[y/N]") && shown.ends_with("cancelled\n"), "{shown}");
    assert!(!shown.contains("error"), "{shown}");
    sandbox.run(&["show", "1"]).ok();
}

/// An import of many events, made from the export of one.
fn many_events(sandbox: &Sandbox, count: usize) {
    sandbox.run(&["remember", &PROMPT.repeat(5)]).ok();
    let line = sandbox.run(&["export"]).ok().lines().next().unwrap().to_owned();
    let id = serde_json::from_str::<Value>(&line).unwrap()["id"].as_str().unwrap().to_owned();
    let other = |number: usize| line.replace(&id, &format!("{}{number:06x}", &id[..id.len() - 6]));
    let lines: Vec<String> = (0..count).map(other).collect();
    sandbox.write("many.jsonl", &lines.join("\n"));
    sandbox.run(&["import", "many.jsonl"]).ok();
}

#[test]
fn long_work_shows_percent_rate_and_remaining_time() {
    let sandbox = Sandbox::new();
    many_events(&sandbox, 2000);
    // The export cannot end before its reader reads, and the reader waits for the progress bar.
    let pipe = sandbox.home().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let command = sandbox.command(&["export", "--output", "pipe"]);
    let mut terminal = AtTerminal::start(command, 80, 24);
    let mut reader = std::fs::File::open(&pipe).unwrap();
    let mut shown = terminal.read_until("left");
    let exported = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    let (pieces, code) = terminal.finish();
    assert!(code == 0 && exported.join().unwrap().unwrap() > 1_000_000);
    shown += &pieces.concat();
    assert!(shown.contains("exporting") && shown.contains('%') && shown.contains("/s,"), "{shown}");
    assert_eq!(too_wide("export", &shown, 80), Vec::<String>::new());
    assert!(pieces.len() < 200, "{} writes for 2000 events", pieces.len());
    assert!(pieces.concat().contains("events written to pipe"), "{shown}");
    let silent = sandbox.run(&["export", "--output", "file"]);
    assert_eq!(silent.stderr, "2,001 events written to file\n");
}

#[test]
fn a_provider_that_does_not_answer_is_named_while_it_is_awaited() {
    let sandbox = remembering();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let session = HookSession::new(&sandbox, "b").in_folder("/");
    session.prompt("another");
    session.stop("Done.");
    let mut command = sandbox.command(&["distill"]);
    command.env("CLAUDE_MEM_PROVIDER", "anthropic").env("ANTHROPIC_BASE_URL", &url);
    command
        .env("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-ant-x")
        .env("CLAUDE_MEM_ANTHROPIC_BASE_URL", &url);
    let mut terminal = AtTerminal::start(command, 80, 24);
    terminal.read_until("waiting for anthropic");
    terminal.read_until("distilling");
}
