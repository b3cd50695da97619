//! Which agent session a question belongs to.

/// The agent session that a question goes on with, if any.
///
/// The content session id is Claude Code's and never resumes anything; the memory session id is the
/// agent's own, known only once it has spoken. On the first prompt there is nothing to go on with, and
/// a run that began by force (the worker was restarted, or replays) cannot trust what came before it.
pub fn resumable(
    memory_session_id: Option<&str>,
    prompt_number: u32,
    was_forced: bool,
) -> Option<&str> {
    memory_session_id.filter(|id| !id.is_empty() && prompt_number > 1 && !was_forced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_resumed_only_if_known_past_the_first_prompt_and_not_forced() {
        let cases = [
            // known, prompt, forced → resumed
            (None, 1, false, None),
            (None, 2, false, None),
            (None, 2, true, None),
            (Some(""), 2, false, None),
            (Some("m"), 0, false, None),
            (Some("m"), 1, false, None),
            (Some("m"), 1, true, None),
            (Some("m"), 2, true, None),
            (Some("m"), 2, false, Some("m")),
            (Some("m"), 900, false, Some("m")),
        ];
        for (known, prompt, forced, expected) in cases {
            let resumed = resumable(known, prompt, forced);
            assert_eq!(resumed, expected, "{known:?}, prompt {prompt}, forced {forced}");
        }
    }
}
