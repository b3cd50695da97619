//! Search, as every front end offers it.

use claude_mem_core::{app::App, failure::Failure, format, time_arg::When};
use claude_mem_projections::{
    Store,
    search::{Kind, Meaning, Order, Search, SearchResults},
};

use crate::{
    resolve,
    semantic::{QUERY_WORDS_MAX, Ranking, with_meaning},
};

/// Which projects a request covers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProjectScope {
    /// All of them.
    #[default]
    All,
    /// The one in the working directory.
    Current,
    /// The one in the working directory; all of them if it has no match.
    CurrentFirst,
    /// Those of this key or label.
    Named(String),
}

impl ProjectScope {
    /// What a user gave: a name, or nothing.
    pub fn named_or(name: Option<String>, otherwise: Self) -> Self {
        name.map_or(otherwise, Self::Named)
    }
}

/// What to find, and among what.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Words, phrases and operators. Empty lists the newest memories.
    pub query: String,
    /// Whether the query is being typed: its last word may be the start of one.
    pub is_typing: bool,
    /// Which projects.
    pub scope: ProjectScope,
    /// Which kinds of memory; empty for all.
    pub kinds: Vec<Kind>,
    /// Only observations of one of these types.
    pub types: Vec<String>,
    /// Only observations with all of these concepts.
    pub concepts: Vec<String>,
    /// Only memories about one of these files or folders.
    pub files: Vec<String>,
    /// Only from this time on.
    pub since: Option<When>,
    /// Only before this time; a day counts whole.
    pub until: Option<When>,
    /// Only the session whose id begins with this.
    pub session: Option<String>,
    /// Only from the machine with this number; 0 is this one.
    pub host: Option<u8>,
    /// Only sessions of this client, such as `codex`.
    pub client: Option<String>,
    /// Maximum number of hits.
    pub limit: usize,
    /// Skip this many hits.
    pub offset: usize,
    /// How hits are sorted.
    pub order: Order,
    /// Whether scores are explained.
    pub is_explained: bool,
}

/// What was found.
#[derive(Debug)]
pub struct SearchResponse {
    /// The hits and how the query was understood.
    pub results: SearchResults,
    /// The label of the project that was searched; `None` for all.
    pub project: Option<String>,
    /// The label of the current project, if it had no match and all others were searched instead.
    pub no_match_in: Option<String>,
    /// How many more memories match in other projects, if only the current one was searched.
    pub matches_elsewhere: usize,
    /// By what they are ranked.
    pub ranking: Ranking,
}

/// `1 match`, `275 matches`, `2,000+ matches`; `3 matches and 20 by meaning`.
pub fn matches(results: &SearchResults) -> String {
    let count = format::count(results.matched, "match");
    let count = match count.split_once(' ') {
        Some((number, _)) if results.is_capped => format!("{number}+ matches"),
        _ => count,
    };
    match results.near {
        0 => count,
        near => format!("{count} and {near} by meaning"),
    }
}

/// Finds memories by their words, and by meaning if they have vectors. A last word that no memory contains is taken
/// as the start of one, if it is the only word or nothing else is found.
pub fn search(
    app: &App,
    store: &Store,
    request: &SearchRequest,
) -> Result<SearchResponse, Failure> {
    let found = search_words(app, store, request)?;
    let SearchResults { hits, matched, query, .. } = &found.results;
    let is_found = *matched > 0 || !(hits.is_empty() || query.terms.len() == 1);
    if request.is_typing || is_found || query.hint.is_some() {
        return Ok(found);
    }
    let typed = SearchRequest { is_typing: true, ..request.clone() };
    let mut begun = search_words(app, store, &typed)?;
    if begun.results.hits.is_empty() {
        return Ok(found);
    }
    let word = request.query.split_whitespace().next_back().unwrap_or_default();
    begun.results.hint =
        Some(format!("no memory contains `{word}`; these contain words that begin with it"));
    Ok(begun)
}

fn search_words(
    app: &App,
    store: &Store,
    request: &SearchRequest,
) -> Result<SearchResponse, Failure> {
    let query = query(app, request);
    if !query.has_meaning() {
        return search_by(app, store, request, query, None);
    }
    with_meaning(app, store, &request.query, QUERY_WORDS_MAX, |meaning, ranking| {
        let found = search_by(app, store, request, query, meaning)?;
        Ok(SearchResponse { ranking, ..found })
    })
}

fn search_by(
    app: &App,
    store: &Store,
    request: &SearchRequest,
    mut query: Search,
    meaning: Option<&dyn Meaning>,
) -> Result<SearchResponse, Failure> {
    let current = || resolve::current_project(app);
    let mut project = None;
    match &request.scope {
        ProjectScope::All => {}
        ProjectScope::Named(name) => {
            query.project = Some(name.clone());
            project = Some(name.clone());
        }
        ProjectScope::Current | ProjectScope::CurrentFirst => {
            let current = current();
            query.project = Some(current.key);
            project = Some(current.label);
        }
    }
    let results = store.search_by(&query, meaning)?;
    let mut response = SearchResponse {
        results,
        project,
        no_match_in: None,
        matches_elsewhere: 0,
        ranking: Ranking::default(),
    };
    if request.scope != ProjectScope::CurrentFirst {
        return Ok(response);
    }
    let everywhere = Search { project: None, ..query };
    if response.results.hits.is_empty() && response.results.query.hint.is_none() {
        response.results = store.search_by(&everywhere, meaning)?;
        response.no_match_in = response.project.take();
    } else if !everywhere.query.is_empty() {
        let all = store.search(&Search { limit: 1, offset: 0, ..everywhere })?;
        response.matches_elsewhere = all.matched.saturating_sub(response.results.matched);
    }
    Ok(response)
}

fn query(app: &App, request: &SearchRequest) -> Search {
    let now = app.clock.now();
    Search {
        query: request.query.clone(),
        is_typing: request.is_typing,
        kinds: if request.kinds.is_empty() { Kind::ALL.to_vec() } else { request.kinds.clone() },
        project: None,
        types: request.types.clone(),
        concepts: request.concepts.clone(),
        files: request.files.clone(),
        since_us: request.since.as_ref().map(|when| when.start_us(now)),
        until_us: request.until.as_ref().map(|when| when.end_us(now)),
        session: request.session.clone(),
        host: request.host,
        client: request.client.clone(),
        limit: request.limit,
        offset: request.offset,
        order: request.order,
        is_explained: request.is_explained,
    }
}

/// Splits a list of words into kinds of memory and types of observations.
pub fn kinds_and_types(words: Vec<String>, mut types: Vec<String>) -> (Vec<Kind>, Vec<String>) {
    let mut kinds = Vec::new();
    for word in words {
        match word.parse() {
            Ok(kind) => kinds.push(kind),
            Err(_) => types.push(word),
        }
    }
    (kinds, types)
}
