//! Recap of a session, for a provider without its history.

use claude_mem_projections::{RecapEntry, names_observation, xml::Reply};

/// An observation of an earlier turn of the session, or of an earlier part of this turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EarlierRow<'a> {
    /// Its type: `bugfix`.
    pub kind: &'a str,
    /// In full; the narrative if the observation has no title.
    pub title: &'a str,
    pub narrative: &'a str,
    pub facts: &'a [String],
    /// Time of its events in microseconds since 1970.
    pub at: i64,
}

/// Half a page: enough to build on, and small compared with any request.
const DIGEST_BYTES_MAX: usize = 2_400;

/// The kind of a summary in a recap.
const SUMMARY: &str = "summary";

/// Adds the memories of a response to the recap, and removes those that it corrects. Matches the
/// rows in the database, so that any process can distill the next turn.
pub(crate) fn extend(recap: &mut Vec<RecapEntry>, reply: &Reply, at_us: u64) {
    let replaced = reply.observations.iter().flat_map(|observation| &observation.corrects);
    for title in replaced.chain(&reply.corrects) {
        let is_meant = |entry: &RecapEntry| {
            entry.kind != SUMMARY
                && entry.at_us <= at_us
                && names_observation(title, &entry.kind, &entry.title)
        };
        let meant = recap.iter().enumerate().filter(|(_, entry)| is_meant(entry));
        if let Some((newest, _)) = meant.max_by_key(|(index, entry)| (entry.at_us, *index)) {
            recap.remove(newest);
        }
    }
    recap.extend(entries(reply, at_us));
}

/// One entry for each memory in a response.
fn entries(reply: &Reply, at_us: u64) -> Vec<RecapEntry> {
    let observations = reply.observations.iter().filter_map(|observation| {
        let narrative = observation.narrative.as_deref();
        Some(RecapEntry {
            at_us,
            kind: observation.kind.clone(),
            title: observation.title.as_deref().or(narrative)?.to_owned(),
            narrative: observation.title.as_ref().and(narrative).unwrap_or_default().to_owned(),
            facts: observation.facts.clone(),
        })
    });
    let summary = reply.summary.as_ref().and_then(|summary| {
        let done = [&summary.completed, &summary.learned, &summary.notes];
        let title = done.into_iter().find_map(Option::as_deref)?.to_owned();
        Some(RecapEntry { at_us, kind: SUMMARY.to_owned(), title, ..RecapEntry::default() })
    });
    observations.chain(summary).collect()
}

/// The memories before `before_us`, oldest first.
pub(crate) fn before(recap: &[RecapEntry], before_us: u64) -> Vec<&RecapEntry> {
    let mut earlier: Vec<&RecapEntry> =
        recap.iter().filter(|entry| entry.at_us < before_us).collect();
    earlier.sort_by_key(|entry| entry.at_us);
    earlier
}

/// The observations among earlier memories, for the rules provider.
pub(crate) fn rows<'a>(earlier: &[&'a RecapEntry]) -> Vec<EarlierRow<'a>> {
    let row = |entry: &&'a RecapEntry| EarlierRow {
        kind: &entry.kind,
        title: &entry.title,
        narrative: &entry.narrative,
        facts: &entry.facts,
        at: entry.at_us.cast_signed(),
    };
    earlier.iter().filter(|entry| entry.kind != SUMMARY).map(row).collect()
}

/// The latest of these memories in one line each, oldest first; `None` if there are none.
pub(crate) fn digest(earlier: &[&RecapEntry]) -> Option<String> {
    let lines = earlier.iter().rev().map(|entry| {
        let line = one_line(&format!("{}: {}", entry.kind, entry.title));
        format!("- {line}")
    });
    let mut bytes = 0;
    let fits = |line: &String| {
        bytes += line.len() + 1;
        bytes <= DIGEST_BYTES_MAX
    };
    let mut kept: Vec<String> = lines.take_while(fits).collect();
    kept.reverse();
    (!kept.is_empty()).then(|| kept.join("\n"))
}

/// One line identifies a memory; it does not repeat it.
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

    fn entry(at_us: u64, title: &str) -> RecapEntry {
        RecapEntry { at_us, kind: "bugfix".into(), title: title.into(), ..RecapEntry::default() }
    }

    fn titles(recap: &[RecapEntry]) -> Vec<&str> {
        recap.iter().map(|entry| entry.title.as_str()).collect()
    }

    #[test]
    fn only_earlier_memories_are_included_in_order() {
        let recap = [entry(3, "c"), entry(1, "a"), entry(2, "b")];
        assert_eq!(digest(&before(&recap, 3)), Some("- bugfix: a\n- bugfix: b".into()));
        assert_eq!(digest(&before(&recap, 1)), None);
        let rows: Vec<&str> = rows(&before(&recap, 3)).iter().map(|row| row.title).collect();
        assert_eq!(rows, ["a", "b"]);
    }

    #[test]
    fn the_oldest_memories_are_dropped_first() {
        let recap: Vec<RecapEntry> = (0..100).map(|n| entry(n, &format!("{n:092}"))).collect();
        let digest = digest(&before(&recap, 100)).unwrap();
        assert!(digest.len() <= DIGEST_BYTES_MAX && digest.ends_with("99"));
        assert_eq!(digest.lines().count(), 23);
    }

    #[test]
    fn a_response_is_recapped_by_its_titles_and_completed_work() {
        let kinds = ["bugfix".to_owned()];
        let text = "<observation><type>bugfix</type><title>a\n b</title></observation>
            <observation><type>bugfix</type><narrative>c</narrative></observation>
            <summary><learned>l</learned><completed>d</completed></summary>";
        let mut recap = Vec::new();
        extend(&mut recap, &read_reply(text, &kinds), 7);
        let digest = digest(&before(&recap, 8)).unwrap();
        assert_eq!(digest, "- bugfix: a b\n- bugfix: c\n- summary: d");
        assert_eq!(rows(&before(&recap, 8)).len(), 2, "a summary is not an observation");
    }

    #[test]
    fn corrected_memories_are_removed_from_the_recap() {
        let kinds = ["bugfix".to_owned()];
        let mut recap = vec![entry(1, "a"), entry(3, "a"), entry(2, "a"), entry(2, "b")];
        let text = "<observation><title>not a</title><corrects>A</corrects></observation>
            <corrects>bugfix: b</corrects>";
        extend(&mut recap, &read_reply(text, &kinds), 9);
        assert_eq!(titles(&recap), ["a", "a", "not a"]);
        assert_eq!(recap[1].at_us, 2, "the newest one is gone");
    }
}
