//! Replies that end too early.

use super::{FULL, Reply, read, shown};

/// A truncated reply gives nothing that the whole one does not.
#[test]
fn a_reply_cut_at_any_byte_keeps_what_was_complete() {
    let whole = read(FULL);
    let mut before = 0;
    for cut in 0..=FULL.len() {
        let text = String::from_utf8_lossy(&FULL.as_bytes()[..cut]);
        let part = read(&text);
        assert_begins(&part, &whole, cut);
        let kept = weight(&part);
        // A possible beginning of a tag is dropped until the next bytes show that it is text.
        assert!(
            kept + "`<title>`".len() >= before,
            "byte {cut} lost what was there: {kept} after {before}"
        );
        before = before.max(kept);
    }
    assert_eq!(before, weight(&whole));
}

#[test]
fn elements_closed_before_a_cut_are_complete() {
    let closed = FULL.find("</observation>").unwrap() + "</observation>".len();
    for cut in closed..FULL.len() {
        let part = read(&String::from_utf8_lossy(&FULL.as_bytes()[..cut]));
        assert_eq!(part.observations[0], read(FULL).observations[0], "cut at {cut}");
    }
}

fn assert_begins(part: &Reply, whole: &Reply, cut: usize) {
    assert!(part.observations.len() <= whole.observations.len(), "cut at {cut}");
    for (p, w) in part.observations.iter().zip(&whole.observations) {
        assert!(p.kind == w.kind, "cut at {cut}: {p:?}");
        let texts =
            [(&p.title, &w.title), (&p.subtitle, &w.subtitle), (&p.narrative, &w.narrative)];
        assert!(texts.iter().all(|(p, w)| begins(p.as_ref(), w.as_ref())), "cut at {cut}: {p:?}");
        let lists = [
            (&p.facts, &w.facts),
            (&p.concepts, &w.concepts),
            (&p.files_read, &w.files_read),
            (&p.files_modified, &w.files_modified),
        ];
        assert!(lists.iter().all(|(p, w)| w.starts_with(p)), "cut at {cut}: {p:?}");
    }
    if let Some(p) = &part.summary {
        let w = whole.summary.as_ref().unwrap();
        let texts = [
            (&p.request, &w.request),
            (&p.investigated, &w.investigated),
            (&p.learned, &w.learned),
            (&p.completed, &w.completed),
            (&p.next_steps, &w.next_steps),
            (&p.notes, &w.notes),
        ];
        assert!(texts.iter().all(|(p, w)| begins(p.as_ref(), w.as_ref())), "cut at {cut}: {p:?}");
        assert!(
            w.files_read.starts_with(&p.files_read) && w.files_edited.starts_with(&p.files_edited)
        );
    }
}

fn begins(part: Option<&String>, whole: Option<&String>) -> bool {
    part.is_none_or(|part| whole.is_some_and(|whole| whole.starts_with(part.as_str())))
}

fn weight(reply: &Reply) -> usize {
    shown(&Reply { cut: false, ..reply.clone() }).len()
}
