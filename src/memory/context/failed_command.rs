//! The last command of a session that failed and was not run again with success.

use std::collections::HashSet;

use claude_mem_events::{Event, Recorded, ToolUsed};
use claude_mem_log::{Item, Log};
use claude_mem_projections::{Result, SessionState};
use serde_json::Value;

use super::text::clipped;

const COMMAND_CHARS_MAX: usize = 160;
const ERROR_CHARS_MAX: usize = 160;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedCommand {
    pub(super) command: String,
    /// The line of its error that names the cause; may be empty.
    pub(super) error: String,
}

/// Reads the last tool uses of a session from the log, latest first.
pub(super) fn last_failed(log: &Log, state: &SessionState) -> Result<Option<FailedCommand>> {
    let mut passed = HashSet::new();
    for seq in &state.tool_uses {
        let mut reader = log.read_from(*seq);
        let Some(Item::Record(entry)) = reader.next()? else { continue };
        let Event::ToolUsed(tool) = Recorded::from_entry(&entry).event else { continue };
        let Some(command) = command(&tool) else { continue };
        if !tool.has_failed || tool.is_interrupt {
            passed.insert(command);
        } else if !passed.contains(&command) {
            let command = clipped(&command, COMMAND_CHARS_MAX);
            return Ok(Some(FailedCommand { command, error: error_line(&tool.error) }));
        }
    }
    Ok(None)
}

fn command(tool: &ToolUsed) -> Option<String> {
    let input: Value = serde_json::from_str(&tool.input).ok()?;
    Some(input.get("command")?.as_str()?.to_owned())
}

/// The first line that names an error, or else the first one that is not only the exit code.
fn error_line(error: &str) -> String {
    let lines = || error.lines().map(str::trim).filter(|line| !line.is_empty());
    let names_error = |line: &&str| {
        let line = line.to_lowercase();
        ["error", "fail", "panic", "not found", "denied"].iter().any(|word| line.contains(word))
    };
    let is_exit_code = |line: &&str| line.starts_with("Exit code");
    let line = lines().find(names_error).or_else(|| lines().find(|line| !is_exit_code(line)));
    clipped(line.unwrap_or_default(), ERROR_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use claude_mem_events::{Envelope, EventLog, Id};
    use claude_mem_log::Options;

    #[test]
    fn a_command_that_passed_later_is_not_the_last_failing_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = EventLog::open(dir.path(), Options::default()).unwrap();
        let mut tool_uses = Vec::new();
        for (number, (command, error)) in [
            ("cargo test", "Exit code 101\n   Compiling shop\nerror[E0308]: mismatched types"),
            ("make lint", "Exit code 2\nmake: *** no rule"),
            ("make lint", ""),
            ("ls", ""),
        ]
        .into_iter()
        .enumerate()
        {
            let input = serde_json::json!({ "command": command }).to_string();
            let has_failed = !error.is_empty();
            let tool = ToolUsed { input, has_failed, error: error.into(), ..ToolUsed::default() };
            let id = Id::random(1_760_000_000_000_000 + number as u64);
            let appended = log.record(id, &Envelope::default(), &tool.into()).unwrap();
            tool_uses.insert(0, appended.seq.unwrap());
        }
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let state = SessionState { tool_uses, ..SessionState::default() };
        let expected = FailedCommand {
            command: "cargo test".into(),
            error: "error[E0308]: mismatched types".into(),
        };
        assert_eq!(last_failed(&log, &state).unwrap(), Some(expected));
        let passed = SessionState { tool_uses: state.tool_uses[..2].into(), ..state };
        assert_eq!(last_failed(&log, &passed).unwrap(), None);
    }
}
