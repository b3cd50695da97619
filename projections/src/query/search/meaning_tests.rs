//! Search by words and meaning, with cosines that a test gives.

use super::{Kind, Meaning, MemoryId, Order, Recall, Search, SearchResults};
use crate::{Store, error::Result, test_log::TestLog};
use claude_mem_events::{Event, MemoryAdded};

/// The cosine of each observation, from the first on. Unrelated texts have 0.5.
struct Cosines(Vec<Option<f64>>);

impl Meaning for Cosines {
    fn nearest(
        &self,
        count: usize,
        accept: &mut dyn FnMut(MemoryId) -> bool,
    ) -> Vec<(MemoryId, f64)> {
        let memories = self.0.iter().enumerate().filter_map(|(at, cosine)| {
            Some((MemoryId { kind: Kind::Observation, id: at as i64 + 1 }, (*cosine)?))
        });
        let mut memories: Vec<_> = memories.filter(|(memory, _)| accept(*memory)).collect();
        memories.sort_by(|left, right| right.1.total_cmp(&left.1));
        memories.truncate(count);
        memories
    }

    fn cosine(&self, memory: MemoryId) -> Result<Option<f64>> {
        Ok(self.0.get(memory.id as usize - 1).copied().flatten())
    }

    fn past_cosine(&self, memory: MemoryId) -> Option<f64> {
        self.0.get(memory.id as usize - 1).copied().flatten()
    }

    /// Memories with the same cosine count as equal.
    fn similarity(&self, left: MemoryId, right: MemoryId) -> Result<Option<f64>> {
        let (left, right) = (self.cosine(left)?, self.cosine(right)?);
        Ok(left.zip(right).map(|(left, right)| f64::from(u8::from(left.total_cmp(&right).is_eq()))))
    }

    fn noise(&self) -> f64 {
        0.5
    }

    fn words_weight(&self) -> f64 {
        0.2
    }
}

fn notes(notes: &[(&str, &str)]) -> Store {
    let mut scene = TestLog::new();
    for (project, text) in notes {
        scene.envelope.project.key = (*project).into();
        let text = (*text).to_owned();
        scene.add(Event::MemoryAdded(MemoryAdded { text, ..MemoryAdded::default() }));
    }
    scene.fold()
}

fn ids(found: &SearchResults) -> Vec<i64> {
    found.hits.iter().map(|hit| hit.name.id).collect()
}

const NOTES: [(&str, &str); 4] = [
    ("/p", "Five attempts per minute and address, then the endpoint answers 429."),
    ("/p", "People pay by card or by invoice."),
    ("/p", "The cat sleeps."),
    ("/q", "Throttle of the sign-in form."),
];

#[test]
fn memories_without_shared_words_are_found_by_meaning_and_counted_separately() {
    let store = notes(&NOTES);
    let search =
        Search { query: "how do we keep people from signing in".into(), ..Search::default() };
    assert_eq!(ids(&store.search(&search).unwrap()), [4, 2]);
    let meaning = Cosines(vec![Some(0.84), Some(0.52), Some(0.51), Some(0.8)]);
    let found = store.search_by(&search, Some(&meaning)).unwrap();
    assert_eq!(ids(&found), [4, 1, 2], "memories no nearer than usual are left out");
    assert_eq!((found.matched, found.near, found.is_by_meaning), (2, 1, true));
    let here = Search { project: Some("/p".into()), ..search.clone() };
    assert_eq!(ids(&store.search_by(&here, Some(&meaning)).unwrap()), [1, 2]);
    // The second note has no vector yet: it counts as near as the other note with a word.
    let meaning = Cosines(vec![Some(0.6), None, Some(0.51), Some(0.8)]);
    assert_eq!(ids(&store.search_by(&search, Some(&meaning)).unwrap()), [4, 2, 1]);
}

#[test]
fn words_count_as_much_in_a_long_prompt_as_in_a_short_query() {
    let mut texts = vec![
        ("/p", "The invoice export of the shop rounds cents."),
        ("/p", "Totals of bills are computed with decimals."),
    ];
    texts.resize(30, ("/p", "The cat sleeps."));
    let store = notes(&texts);
    let long = "\
        good morning, yesterday my colleague told me that some customers complained loudly: the \
        invoice export of the shop shows strange cents";
    let mut meaning = Cosines(vec![Some(0.6), Some(0.75)]);
    meaning.0.resize(30, Some(0.5));
    for query in ["invoice export of the shop: cents", long] {
        let search = Search { query: query.into(), ..Search::default() };
        assert_eq!(ids(&store.search_by(&search, Some(&meaning)).unwrap()), [1, 2], "{query}");
    }
}

#[test]
fn a_small_project_is_searched_completely_among_many_nearer_memories() {
    let mut texts = vec![("/big", "nothing of interest"); 1500];
    texts.push(("/small", "the answer"));
    let store = notes(&texts);
    let mut cosines = vec![Some(0.9); 1500];
    cosines.push(Some(0.7));
    let search =
        Search { query: "a question".into(), project: Some("/small".into()), ..Search::default() };
    let found = store.search_by(&search, Some(&Cosines(cosines))).unwrap();
    assert_eq!(ids(&found), [1501]);
}

#[test]
fn queries_with_operators_are_ranked_by_words() {
    let has_meaning =
        |query: &str| Search { query: query.into(), ..Search::default() }.has_meaning();
    for query in ["why did the login fail?", "login", "naïve parser", "a.b and c"] {
        assert!(has_meaning(query), "{query}");
    }
    for query in [
        "",
        "?!",
        "\"login fails\"",
        "+login fails",
        "login -fails",
        "migr*",
        "read_reply",
        "readReply",
        "std::fs",
        "src/main.rs",
        "main.rs",
    ] {
        assert!(!has_meaning(query), "{query}");
    }
    let typing = Search { query: "login".into(), is_typing: true, ..Search::default() };
    let newest = Search { query: "login".into(), order: Order::Newest, ..Search::default() };
    assert!(!typing.has_meaning() && !newest.has_meaning());
}

#[test]
fn a_prompt_recalls_only_clearly_near_memories() {
    let store = notes(&NOTES);
    let recalled = |cosines: [f64; 4]| {
        let recall = Recall {
            prompt: "stop strangers from guessing passwords",
            project: "/p",
            until_us: i64::MAX as u64,
            limit: 5,
            ..Recall::default()
        };
        let meaning = Cosines(cosines.map(Some).to_vec());
        store.recall(&recall, Some(&meaning)).unwrap()
    };
    assert_eq!(recalled([0.8, 0.55, 0.5, 0.9]), [1]);
    assert_eq!(recalled([0.6, 0.55, 0.5, 0.9]), [0; 0]);
}
