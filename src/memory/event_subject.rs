//! One-line descriptions of events: the command, the file, the first words.

use claude_mem_core::format::count;
use claude_mem_events::{Event, Forgotten, Revision, StopScope, Submitter};
use claude_mem_projections::{KINDS, xml::read_reply};
use serde_json::Value;

/// Fields of a tool's input that describe it best, in order of preference.
const SUBJECT_FIELDS: [&str; 9] = [
    "command",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
    "query",
    "description",
    "prompt",
];

/// The subject of an event on one line, without terminal control characters.
pub fn subject(event: &Event) -> String {
    let text = match event {
        Event::SessionStarted(started) => format!("{} in {}", started.source, started.cwd),
        Event::PromptSubmitted(submitted) => match (submitted.is_private, submitted.submitter) {
            (true, _) => "(private)".into(),
            (false, Submitter::TaskNotification) => format!("(client) {}", submitted.prompt),
            (false, Submitter::Teammate) => format!("(teammate) {}", submitted.prompt),
            (false, Submitter::User | Submitter::UserMedia) => submitted.prompt.clone(),
        },
        Event::ToolUsed(used) if used.has_failed => {
            format!("{} failed: {} {}", used.tool, input_subject(&used.input), used.error)
        }
        Event::ToolUsed(used) => format!("{} {}", used.tool, input_subject(&used.input)),
        Event::SummaryRequested(stop) => match stop.scope {
            StopScope::Turn => stop.last_assistant_message.clone(),
            StopScope::Subagent => {
                format!("({}) {}", stop.agent_type, stop.last_assistant_message)
            }
            StopScope::Compaction => format!("(compaction) {}", stop.last_assistant_message),
        },
        Event::SessionEnded(ended) => ended.reason.clone(),
        Event::InputUnreadable(input) => format!("{}: {}: {}", input.hook, input.error, input.text),
        Event::AgentReplied(replied) => {
            format!("{}: {}", replied.provider, response_titles(&replied.reply))
        }
        Event::AgentFailed(failed) => format!("{}: {}", failed.provider, failed.message),
        Event::MemoryAdded(added) => format!("{} {}", added.title, added.text),
        Event::MemoryRevised(revised) => revision(&revised.revision),
        Event::Forgotten(forgotten) => forgetting(forgotten),
        Event::Imported(imported) => format!("{} {}", imported.table, imported.row_id),
        Event::ReprocessStarted(started) => format!("generation {}", started.generation),
        Event::ReprocessFinished(finished) => format!("generation {}", finished.generation),
        Event::MemoryInjected(injected) => count(injected.observations.len(), "observation"),
        Event::ProjectMerged(merged) if merged.from == merged.into && merged.label.is_empty() => {
            format!("{} is a separate project again", merged.from)
        }
        Event::ProjectMerged(merged) if merged.from == merged.into => {
            format!("{} is now called {}", merged.from, merged.label)
        }
        Event::ProjectMerged(merged) => format!("{} belongs to {}", merged.from, merged.into),
        Event::LogCompacted(_) => String::new(),
        Event::Erased { .. } => "(erased)".into(),
        Event::Unknown { version, payload, .. } => {
            format!("(version {version}, {} bytes: written by a newer claude-mem)", payload.len())
        }
    };
    one_line(&text)
}

/// The titles in an XML response; without any, the response itself.
pub fn response_titles(response: &str) -> String {
    let reply = read_reply(response, KINDS);
    let request = reply.summary.and_then(|summary| summary.request);
    let titles = reply.observations.into_iter().filter_map(|observation| observation.title);
    let titles: Vec<String> = titles.chain(request).collect();
    if titles.is_empty() { response.to_owned() } else { titles.join("; ") }
}

/// Describes a forgetting, or the undo of one.
fn forgetting(forgotten: &Forgotten) -> String {
    let Forgotten { events, rows, session, project, file, text, .. } = forgotten;
    let some = |number: usize, what| (number > 0).then(|| count(number, what));
    let named = |what: &str, name: &str| (!name.is_empty()).then(|| format!("{what} {name}"));
    let parts = [
        forgotten.undoes.map(|_| "undone".to_owned()),
        some(events.len(), "event"),
        some(rows.len(), "memory"),
        named("session", session),
        named("project", project),
        named("file", file),
        (!text.is_empty()).then(|| "by text".to_owned()),
        (!forgotten.reason.is_empty()).then(|| forgotten.reason.clone()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn revision(revision: &Revision) -> String {
    match revision {
        Revision::Restored => "restored".into(),
        Revision::Edited { title, text, kind } => {
            let texts: Vec<&str> =
                [kind, title, text].into_iter().flatten().map(|text| &**text).collect();
            format!("edited {}", texts.join(" "))
        }
        Revision::Pinned => "pinned".into(),
        Revision::Unpinned => "unpinned".into(),
        Revision::MarkedWrong { because } => format!("wrong {because}"),
        Revision::SupersededBy(_) => "superseded".into(),
    }
}

/// The most descriptive value of a tool's input.
pub fn input_subject(input: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(input) else { return input.into() };
    let subject = SUBJECT_FIELDS.iter().find_map(|name| fields.get(*name)?.as_str());
    subject.map_or_else(|| if fields.is_empty() { String::new() } else { input.into() }, Into::into)
}

/// Enough for any terminal. The value may be a megabyte.
const SUBJECT_CHARS_MAX: usize = 300;

/// The words of a text on one line, cut if there are many.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty())
    {
        if line.chars().count() > SUBJECT_CHARS_MAX {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().take(SUBJECT_CHARS_MAX));
    }
    if line.chars().count() > SUBJECT_CHARS_MAX {
        line = line.chars().take(SUBJECT_CHARS_MAX - 1).collect();
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use claude_mem_events::{AgentReplied, ToolUsed};

    use super::*;

    #[test]
    fn a_response_is_described_by_its_titles() {
        let replied = |reply: &str| {
            let (provider, reply) = ("claude".into(), reply.into());
            subject(&AgentReplied { provider, reply, ..AgentReplied::default() }.into())
        };
        let one =
            "<observation><type>change</type><title>Caches &amp; builds</title></observation>";
        assert_eq!(replied(one), "claude: Caches & builds");
        assert_eq!(replied("Nothing to note."), "claude: Nothing to note.");
    }

    #[test]
    fn a_forgetting_is_described_by_its_conditions() {
        let rows = vec!["a/1".to_owned(), "a/2".to_owned()];
        let forgotten = Forgotten { rows, reason: "wrong".into(), ..Forgotten::default() };
        assert_eq!(subject(&forgotten.into()), "2 memories, wrong");
        let undone = Forgotten { undoes: Some([1; 16]), ..Forgotten::default() };
        assert_eq!(subject(&undone.into()), "undone");
    }

    #[test]
    fn a_tool_is_described_by_its_input() {
        let used = |input: &str| {
            subject(
                &ToolUsed { tool: "T".into(), input: input.into(), ..ToolUsed::default() }.into(),
            )
        };
        assert_eq!(used(r#"{"description":"d","command":"ls\n -l\u001b[2J"}"#), "T ls -l [2J");
        assert_eq!(used(r#"{"odd": 1}"#), r#"T {"odd": 1}"#);
        assert_eq!(used("{}"), "T");
        assert_eq!(used(""), "T");
        let long = used(&format!(r#"{{"query":"{}"}}"#, "x".repeat(100_000)));
        assert!(long.chars().count() == SUBJECT_CHARS_MAX && long.ends_with('…'));
    }
}
