//! `claude-mem` alone at a terminal: search while you type.

use rustix::process::Signal;

use crate::{
    sandbox::{AtTerminal, Sandbox},
    terminal::remembering,
};

fn start(sandbox: &Sandbox) -> AtTerminal {
    let mut command = sandbox.command::<&str>(&[]);
    command.env("NO_COLOR", "1");
    AtTerminal::start(command, 80, 24)
}

#[test]
fn three_letters_find_a_memory_and_enter_shows_it() {
    let sandbox = remembering();
    sandbox.run(&["remember", "The \u{1b}]0;walrus\u{7} sleeps in the harbour"]).ok();
    let mut terminal = start(&sandbox);
    terminal.read_until("Enter show");
    // The newest memories stay in the list until there is more to look for.
    terminal.keys("w");
    terminal.read_until("> w   type another letter");
    assert!(terminal.read_until("Esc leave").contains("sleeps in the harbour"));
    terminal.keys("al");
    let found = terminal.read_until("> wal   1 match") + &terminal.read_until("Esc leave");
    assert!(found.contains("sleeps in the harbour"), "{found}");
    assert!(!found.contains("\u{1b}]0;"), "{found}");

    terminal.keys("\r");
    let opened = terminal.read_until("Esc back");
    assert!(opened.contains("written by hand"), "provenance in {opened}");
    terminal.keys("y");
    terminal.read_until("\u{1b}]52;c;");
    terminal.keys("\u{1b}");
    terminal.read_until("Esc leave");
    // The preview is next to the list.
    terminal.resize(140, 24);
    let wide = terminal.read_until("│") + &terminal.read_until("Esc leave");
    assert_eq!(wide.matches("sleeps in the harbour").count(), 2, "{wide}");
    terminal.resize(40, 10);
    let small = terminal.read_until("↑↓ move · Esc leave");
    assert!(small.contains("walrus"), "{small}");
    terminal.keys("\u{1b}");
    let (pieces, code) = terminal.finish();
    assert!(pieces.concat().contains("\u{1b}[?1049l"), "{pieces:?}");
    assert_eq!(code, 0);
}

#[test]
fn hits_by_words_are_not_reported_as_near_by_meaning() {
    let sandbox = Sandbox::new();
    sandbox.run(&["settings", "set", "semantic", "off"]).ok();
    // More than the list holds. While typing, `sto` is the start of `stone`; later it is a word.
    for number in 0..45 {
        let word = if number < 15 { "sto" } else { "stone" };
        sandbox.run(&["remember", &format!("walrus {word} number {number}")]).ok();
    }
    let mut terminal = start(&sandbox);
    terminal.read_until("type to search");
    terminal.keys("walrus sto");
    terminal.read_until("> walrus sto   45 matches");
    terminal.read_until("Esc leave");
    // The screen after the search by meaning.
    let later = terminal.read_until("Esc leave");
    assert!(later.contains("45 matches") && !later.contains("by meaning"), "{later}");
    terminal.keys("\u{1b}");
    assert_eq!(terminal.finish().1, 0);
}

#[test]
fn a_signal_restores_the_terminal_and_a_pipe_gets_the_help() {
    let sandbox = Sandbox::new();
    let mut terminal = start(&sandbox);
    terminal.read_until("no memories yet");
    terminal.signal(Signal::TERM);
    let (pieces, code) = terminal.finish();
    assert!(pieces.concat().contains("\u{1b}[?1049l"), "{pieces:?}");
    assert_eq!(code, 1);
    assert!(sandbox.run::<&str>(&[]).fails(2).contains("Usage: claude-mem"));
}

#[test]
fn it_ends_with_its_terminal() {
    let sandbox = Sandbox::new();
    let mut terminal = start(&sandbox);
    terminal.read_until("no memories yet");
    assert_eq!(terminal.hang_up(), 1);
}

#[test]
fn without_a_browser_the_link_to_a_memory_is_shown_whole_and_copied() {
    let sandbox = remembering();
    sandbox.run(&["remember", "The walrus sleeps in the harbour"]).ok();
    let mut terminal = start(&sandbox);
    terminal.read_until("Enter show");
    terminal.keys("\r");
    terminal.read_until("Esc back");
    terminal.keys("o");
    terminal.read_until("within a minute:");
    let link = terminal.read_until("copied the link");
    assert!(link.contains("http://127.0.0.1:") && !link.contains('…'), "{link}");
    terminal.keys("\u{3}");
    terminal.finish();
    sandbox.run(&["worker", "stop"]).ok();
}
