//! Recap of a session, for a provider without its history.

use claude_mem_projections::xml::Reply;

/// Half a page: enough to build on, and small compared with any request.
const DIGEST_BYTES_MAX: usize = 2_400;

/// One memory of a session, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecapLine {
    /// Time of the remembered work.
    pub at_us: u64,
    pub text: String,
}

/// One line for each memory in a response.
pub(crate) fn lines(reply: &Reply, at_us: u64) -> impl Iterator<Item = RecapLine> {
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
        .map(move |text| RecapLine { at_us, text: one_line(&text) })
        .collect::<Vec<_>>()
        .into_iter()
}

/// The latest lines before `before_us`, oldest first; `None` if there are none.
pub(crate) fn digest(lines: &[RecapLine], before_us: u64) -> Option<String> {
    let mut earlier: Vec<&RecapLine> = lines.iter().filter(|line| line.at_us < before_us).collect();
    earlier.sort_by_key(|line| line.at_us);
    let mut bytes = 0;
    let fits = |line: &&&RecapLine| {
        bytes += line.text.len() + 3;
        bytes <= DIGEST_BYTES_MAX
    };
    let mut kept: Vec<String> =
        earlier.iter().rev().take_while(fits).map(|line| format!("- {}", line.text)).collect();
    kept.reverse();
    (!kept.is_empty()).then(|| kept.join("\n"))
}

/// A recap names its subjects; it does not repeat them.
const LINE_CHARS_MAX: usize = 200;

/// Joins a text into one line and truncates it.
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

    fn line(at_us: u64, text: &str) -> RecapLine {
        RecapLine { at_us, text: text.into() }
    }

    #[test]
    fn only_earlier_lines_are_included_in_order() {
        let lines = [line(3, "c"), line(1, "a"), line(2, "b")];
        assert_eq!(digest(&lines, 3), Some("- a\n- b".into()));
        assert_eq!(digest(&lines, 1), None);
    }

    #[test]
    fn the_oldest_lines_are_dropped_first() {
        let lines: Vec<RecapLine> = (0..100).map(|n| line(n, &format!("{n:0100}"))).collect();
        let digest = digest(&lines, 100).unwrap();
        assert!(digest.len() <= DIGEST_BYTES_MAX && digest.ends_with("99"));
        assert_eq!(digest.lines().count(), 23);
    }

    #[test]
    fn a_response_is_recapped_by_its_titles_and_completed_work() {
        let kinds = ["bugfix".to_owned()];
        let text = "<observation><type>bugfix</type><title>a\n b</title></observation>
            <observation><type>bugfix</type><narrative>c</narrative></observation>
            <summary><learned>l</learned><completed>d</completed></summary>";
        let texts: Vec<String> =
            lines(&read_reply(text, &kinds), 7).map(|line| line.text).collect();
        assert_eq!(texts, ["bugfix: a b", "bugfix: c", "summary: d"]);
    }
}
