//! The session so far in few words, for an agent that does not remember it.

use claude_mem_projections::xml::Reply;

/// Half a page: enough to build on, and small beside any question.
const DIGEST_BYTES_MAX: usize = 2_400;

/// One memory of a session, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When what it is about happened.
    pub at_us: u64,
    /// For the agent.
    pub text: String,
}

/// What a reply adds: a line for each of its memories.
pub(crate) fn lines(reply: &Reply, at_us: u64) -> impl Iterator<Item = Line> {
    let observations = reply.observations.iter().filter_map(|observation| {
        let title = observation.title.as_deref().or(observation.narrative.as_deref())?;
        Some(format!("{}: {title}", observation.kind))
    });
    let summary = reply.summary.as_ref().and_then(|summary| {
        let done = summary.completed.as_deref().or(summary.learned.as_deref())?;
        Some(format!("summary: {done}"))
    });
    observations
        .chain(summary)
        .map(move |text| Line { at_us, text: one_line(&text) })
        .collect::<Vec<_>>()
        .into_iter()
}

/// The latest lines of what happened before `before_us`, oldest first; `None` if there are none.
pub(crate) fn digest(lines: &[Line], before_us: u64) -> Option<String> {
    let mut earlier: Vec<&Line> = lines.iter().filter(|line| line.at_us < before_us).collect();
    earlier.sort_by_key(|line| line.at_us);
    let mut bytes = 0;
    let fits = |line: &&&Line| {
        bytes += line.text.len() + 3;
        bytes <= DIGEST_BYTES_MAX
    };
    let mut kept: Vec<String> =
        earlier.iter().rev().take_while(fits).map(|line| format!("- {}", line.text)).collect();
    kept.reverse();
    (!kept.is_empty()).then(|| kept.join("\n"))
}

/// A line of a digest says what it is about, not all about it.
const LINE_CHARS_MAX: usize = 200;

/// Texts in one line, cut where they get long.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claude_mem_projections::xml::read_reply;

    fn line(at_us: u64, text: &str) -> Line {
        Line { at_us, text: text.into() }
    }

    #[test]
    fn only_what_came_before_is_told_in_its_order() {
        let lines = [line(3, "c"), line(1, "a"), line(2, "b")];
        assert_eq!(digest(&lines, 3), Some("- a\n- b".into()));
        assert_eq!(digest(&lines, 1), None);
    }

    #[test]
    fn the_oldest_give_way() {
        let lines: Vec<Line> = (0..100).map(|n| line(n, &format!("{n:0100}"))).collect();
        let digest = digest(&lines, 100).unwrap();
        assert!(digest.len() <= DIGEST_BYTES_MAX && digest.ends_with("99"));
        assert_eq!(digest.lines().count(), 23);
    }

    #[test]
    fn a_reply_is_told_by_its_titles_and_what_was_completed() {
        let kinds = ["bugfix".to_owned()];
        let text = "<observation><type>bugfix</type><title>a\n b</title></observation>
            <observation><type>bugfix</type><narrative>c</narrative></observation>
            <summary><learned>l</learned><completed>d</completed></summary>";
        let told: Vec<String> = lines(&read_reply(text, &kinds), 7).map(|line| line.text).collect();
        assert_eq!(told, ["bugfix: a b", "bugfix: c", "summary: d"]);
    }
}
