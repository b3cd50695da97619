//! Events without what was said in them.

use crate::{
    AgentFailed, AgentReplied, Event, InputUnreadable, MemoryAdded, PromptSubmitted, SessionEnded,
    SessionStarted, SummaryRequested, ToolUsed,
};

impl Event {
    /// The same event without anything that somebody said, saw or named. What stays is what other rows
    /// depend on: numbers, ids, which turn it belongs to, and what it cost. Of an imported row its JSON stays;
    /// whoever knows what is in it has to take that out. `None` if this program does not know the kind.
    pub fn blanked(&self) -> Option<Self> {
        let none = String::new;
        Some(match self {
            Self::SessionStarted(event) => Self::SessionStarted(SessionStarted {
                cwd: none(),
                transcript_path: none(),
                extra: none(),
                ..event.clone()
            }),
            Self::PromptSubmitted(event) => Self::PromptSubmitted(PromptSubmitted {
                prompt: none(),
                cwd: none(),
                extra: none(),
                ..event.clone()
            }),
            Self::ToolUsed(event) => Self::ToolUsed(ToolUsed {
                input: none(),
                output: none(),
                error: none(),
                cwd: none(),
                extra: none(),
                ..event.clone()
            }),
            Self::SummaryRequested(event) => Self::SummaryRequested(SummaryRequested {
                last_user_message: none(),
                last_assistant_message: none(),
                cwd: none(),
                extra: none(),
                ..event.clone()
            }),
            Self::AgentReplied(event) => {
                Self::AgentReplied(AgentReplied { reply: none(), ..event.clone() })
            }
            Self::AgentFailed(event) => {
                Self::AgentFailed(AgentFailed { message: none(), reply: none(), ..event.clone() })
            }
            Self::MemoryAdded(event) => {
                Self::MemoryAdded(MemoryAdded { via: event.via.clone(), ..MemoryAdded::default() })
            }
            Self::InputUnreadable(event) => Self::InputUnreadable(InputUnreadable {
                hook: event.hook.clone(),
                bytes: event.bytes,
                ..InputUnreadable::default()
            }),
            Self::Erased { left, .. } => return left.as_ref()?.event.as_ref()?.blanked(),
            Self::Unknown { .. } => return None,
            Self::SessionEnded(event) => {
                Self::SessionEnded(SessionEnded { extra: none(), ..event.clone() })
            }
            // These say how to read others, or are not ours to understand.
            Self::Imported(_)
            | Self::ReprocessStarted(_)
            | Self::ReprocessFinished(_)
            | Self::Forgotten(_)
            | Self::ProjectMerged(_)
            | Self::LogCompacted(_) => self.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_said_stays() {
        let secret = || "secret".to_owned();
        let events: Vec<Event> = vec![
            ToolUsed {
                input: secret(),
                output: secret(),
                error: secret(),
                cwd: secret(),
                extra: secret(),
                tool_use_id: "id".into(),
                ..ToolUsed::default()
            }
            .into(),
            PromptSubmitted { prompt: secret(), ..PromptSubmitted::default() }.into(),
            AgentReplied { reply: secret(), tokens_in: 5, ..AgentReplied::default() }.into(),
            MemoryAdded { text: secret(), title: secret(), ..MemoryAdded::default() }.into(),
        ];
        for event in events {
            let blank = event.blanked().unwrap();
            assert_eq!(blank.kind(), event.kind());
            assert!(!format!("{blank:?}").contains("secret"), "{blank:?}");
        }
    }
}
