//! Events without their content.

use crate::{
    AgentFailed, AgentReplied, Event, InputUnreadable, MemoryAdded, PromptSubmitted, SessionEnded,
    SessionStarted, SummaryRequested, ToolUsed,
};

impl Event {
    /// The same event without text, paths and names from the session. Numbers, ids, the turn and
    /// the cost stay, because other rows depend on them. The JSON of an imported row stays; the
    /// caller must remove its content. `None` for a kind that this version does not know.
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
                remarks: Vec::new(),
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
            Self::MemoryRevised(event) => Self::MemoryRevised(event.blanked()),
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
            // These control how other events are read, or are opaque to this crate.
            Self::Imported(_)
            | Self::ReprocessStarted(_)
            | Self::ReprocessFinished(_)
            | Self::Forgotten(_)
            | Self::ProjectMerged(_)
            | Self::LogCompacted(_)
            | Self::MemoryInjected(_) => self.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryRevised, Remark, Revision};

    #[test]
    fn no_content_stays() {
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
            SummaryRequested {
                last_assistant_message: secret(),
                remarks: vec![Remark { text: secret(), ..Remark::default() }],
                ..SummaryRequested::default()
            }
            .into(),
            PromptSubmitted { prompt: secret(), ..PromptSubmitted::default() }.into(),
            AgentReplied { reply: secret(), tokens_in: 5, ..AgentReplied::default() }.into(),
            MemoryAdded { text: secret(), title: secret(), ..MemoryAdded::default() }.into(),
            MemoryRevised {
                revision: Revision::MarkedWrong { because: secret() },
                ..MemoryRevised::default()
            }
            .into(),
            MemoryRevised {
                revision: Revision::Edited {
                    title: Some(secret()),
                    text: Some(secret()),
                    kind: Some(secret()),
                },
                ..MemoryRevised::default()
            }
            .into(),
        ];
        for event in events {
            let blank = event.blanked().unwrap();
            assert_eq!(blank.kind(), event.kind());
            assert!(!format!("{blank:?}").contains("secret"), "{blank:?}");
        }
    }
}
