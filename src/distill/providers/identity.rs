//! Selects the agent session that a request continues.

/// The agent session that a request continues, if any.
///
/// The content session id is Claude Code's and never resumes anything; the memory session id is the
/// agent's own, known only after its first response. The first prompt continues nothing.
pub(crate) fn resumable(memory_session_id: Option<&str>, prompt_number: u32) -> Option<&str> {
    memory_session_id.filter(|id| !id.is_empty() && prompt_number > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_resumed_only_if_known_and_past_the_first_prompt() {
        let cases = [
            // known, prompt → resumed
            (None, 1, None),
            (None, 2, None),
            (Some(""), 2, None),
            (Some("m"), 0, None),
            (Some("m"), 1, None),
            (Some("m"), 2, Some("m")),
            (Some("m"), 900, Some("m")),
        ];
        for (known, prompt, expected) in cases {
            assert_eq!(resumable(known, prompt), expected, "{known:?}, prompt {prompt}");
        }
    }
}
