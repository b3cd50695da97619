//! Tests of reading the end of a transcript.

use std::{fs, io::Write};

use claude_mem_events::StopScope;

use super::*;
use crate::clients::CLAUDE_CODE;

fn last_in(path: &Path) -> LastTexts {
    let read_line = CLAUDE_CODE.transcript_line.unwrap();
    last_messages(path, |line| read_line(line, StopScope::Turn))
}

fn message(kind: &str, content: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"message\":{{\"content\":{content}}}}}\n")
}

fn read(text: &[u8]) -> LastTexts {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.jsonl");
    fs::write(&file, text).unwrap();
    last_in(&file)
}

fn messages(user: &str, assistant: &str) -> LastTexts {
    let is_answered = !assistant.is_empty();
    LastTexts { user: user.into(), assistant: assistant.into(), is_answered }
}

#[test]
fn tools_side_chains_and_invalid_lines_are_skipped() {
    let text = message("user", r#""fix \"it\"""#)
        + &message(
            "assistant",
            r#"[{"type":"text","text":"Done."},{"type":"text","text":"Bye."}]"#,
        )
        + &message("assistant", r#"[{"type":"tool_use","name":"Bash","input":{}}]"#)
        + &message("user", r#"[{"type":"tool_result","content":"out"}]"#)
        + "{\"type\":\"assistant\",\"isSidechain\":true,\"message\":{\"content\":\"other\"}}\n"
        + "{\"type\":\"user\",\"isMeta\":true,\"message\":{\"content\":\"meta\"}}\n"
        + "not json\n\n{\"type\":\"assistant\"}\n{\"type\":\"assis";
    assert_eq!(read(text.as_bytes()), messages("fix \"it\"", "Done.\nBye."));
    assert_eq!(read(b""), LastTexts::default());
    assert_eq!(read(b"\xff\xfe\n\n\n"), LastTexts::default());
}

#[test]
fn an_answer_that_comes_after_the_event_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.jsonl");
    fs::write(&file, message("assistant", r#""earlier""#) + &message("user", r#""and now?""#))
        .unwrap();
    let read_line = CLAUDE_CODE.transcript_line.unwrap();
    let is_written = std::cell::Cell::new(false);
    // The answer is written while the transcript is read for the first time.
    let read = |line: &[u8]| {
        if !is_written.replace(true) {
            let mut file = fs::OpenOptions::new().append(true).open(&file).unwrap();
            file.write_all(message("assistant", r#""late""#).as_bytes()).unwrap();
        }
        read_line(line, StopScope::Turn)
    };
    let last = last_messages_within(&file, Duration::from_secs(60), read);
    assert_eq!(last, messages("and now?", "late"));
}

#[test]
fn the_answer_of_a_private_turn_is_not_taken_for_a_later_one() {
    let secret = message("user", "\"<private>x</private>\"") + &message("assistant", "\"hush\"");
    let later = message("user", "\"go on\"") + &message("assistant", "[{\"type\":\"tool_use\"}]");
    assert_eq!(read((secret + &later).as_bytes()), messages("go on", ""));
    let public = message("user", "\"hi\"") + &message("assistant", "\"hello\"");
    let earlier = LastTexts { is_answered: false, ..messages("go on", "hello") };
    assert_eq!(read((public + &later).as_bytes()), earlier);
}

#[test]
fn lines_across_blocks_are_complete_and_nothing_beyond_the_limit_is_read() {
    let long = "x".repeat(3 * BLOCK_BYTES + 17);
    let before = message("user", "\"u\"") + &message("assistant", &format!("\"{long}\""));
    let noise = "{\"type\":\"system\"}\n".repeat(20_000);
    let mut text = before + &noise;
    assert_eq!(read(text.as_bytes()), messages("u", &long));
    text.push_str(&"y".repeat(BYTES_MAX));
    assert_eq!(read(text.as_bytes()), LastTexts::default());
}

fn parts_of(text: &str, prompt_id: &str) -> Vec<TurnPart> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.jsonl");
    fs::write(&file, text).unwrap();
    turn_parts(&file, prompt_id, CLAUDE_CODE.turn_row.unwrap())
}

fn narration_part(text: &str) -> TurnPart {
    TurnPart::AssistantText(text.into())
}

fn prompted(id: &str, text: &str) -> String {
    format!("{{\"type\":\"user\",\"promptId\":\"{id}\",\"message\":{{\"content\":\"{text}\"}}}}\n")
}

#[test]
fn the_last_turn_is_read_from_its_prompt_on_and_no_other() {
    let first = prompted("p1", "one") + &message("assistant", "\"first\"");
    let second = prompted("p2", "two") + &message("assistant", "\"second\"");
    let both = first.clone() + &second;
    assert_eq!(parts_of(&both, "p2"), [narration_part("second")]);
    assert_eq!(parts_of(&both, ""), [narration_part("second")], "older clients have no ids");
    assert_eq!(parts_of(&both, "p3"), [], "its rows are not written yet");
    let stopped = "{\"type\":\"system\",\"subtype\":\"stop_hook_summary\"}\n";
    let on = both + stopped + &message("assistant", "\"more\"");
    assert_eq!(
        parts_of(&on, "p2"),
        [narration_part("more")],
        "the rest was read by the stop before"
    );
    assert_eq!(parts_of(&message("assistant", "\"x\""), ""), [], "whose turn it is is unknown");
    let private = prompted("p1", "<private>x</private>") + &message("assistant", "\"hush\"");
    assert_eq!(parts_of(&private, "p1"), []);
}

#[test]
fn a_compaction_before_the_prompt_counts_unless_something_was_private() {
    let summary =
        "{\"type\":\"user\",\"isCompactSummary\":true,\"message\":{\"content\":\"sum\"}}\n";
    let turn = message("assistant", "\"old\"") + summary + &prompted("p2", "two");
    let compacted = TurnPart::Compacted("sum".into());
    assert_eq!(parts_of(&turn, "p2"), [compacted]);
    for tag in ["<private>x</private>", "< PRIVATE x>"] {
        let early = prompted("p0", &format!("see {tag}"));
        assert_eq!(parts_of(&(early + &turn), "p2"), [], "{tag}");
    }
}

#[test]
fn a_private_tag_is_found_across_blocks_and_in_doubt() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.jsonl");
    for before in [0, (1 << 20) - 4, (1 << 20) + 5] {
        fs::write(&file, "x".repeat(before) + "<private>").unwrap();
        assert!(mentions_private(&file), "{before}");
        fs::write(&file, "x".repeat(before) + "<privat>").unwrap();
        assert!(!mentions_private(&file), "{before}");
    }
    assert!(mentions_private(Path::new("/nowhere")));
}

#[test]
fn only_the_end_of_a_large_transcript_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let mut file = File::create(&path).unwrap();
    // A sparse file: a gigabyte to the reader, no block on the disk.
    file.set_len(1 << 30).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
    write!(file, "\n{}{}", message("user", "\"u\""), message("assistant", "\"a\"")).unwrap();
    assert_eq!(last_in(&path), messages("u", "a"));
}

#[test]
fn pipes_and_devices_do_not_block() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [dir.path(), &pipe, Path::new("/dev/zero"), Path::new("/nowhere")] {
        assert_eq!(last_in(path), LastTexts::default());
    }
}
