//! The same turn for every agent: read, edit, a failing command, a failing edit, a successful
//! command, an answer.

use std::path::Path;

use super::agents::{Agent, Work};
use crate::model::{Answer, Block, Request};

/// The file before the turn, and after it.
pub const BEFORE: &str = "def total(a, b):\n    return a - b\n";
pub const AFTER: &str = "def total(a, b):\n    return a + b\n";

impl Agent {
    /// The next response of the model in the turn. Requests without tools, for titles and the like,
    /// are not part of it.
    pub fn next_in_turn(&self, request: &Request, cwd: &Path, file: &str, answer: &str) -> Answer {
        if request.tool_names().is_empty() {
            return Answer::text("Totals");
        }
        let (old, new) = (BEFORE.trim_end(), AFTER.trim_end());
        let call = |work: &Work<'_>| {
            let (name, input) = self.call(work, cwd);
            Block::Tool { name: name.to_owned(), input }
        };
        let work = match request.tool_results_so_far() {
            0 => {
                let look = Block::Text("I look first.".into());
                return Answer::blocks([look, call(&Work::Read { file })]);
            }
            1 => Work::Edit { file, old, new },
            2 => Work::Run { command: "echo one failed; exit 3" },
            3 => Work::Edit { file: "gone.py", old, new },
            4 => Work::Run { command: "echo all passed" },
            _ => return Answer::text(answer),
        };
        Answer::blocks([call(&work)])
    }
}
