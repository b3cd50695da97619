//! Search, as every front end offers it.

use claude_mem_core::{app::App, failure::Failure, format};
use claude_mem_projections::{
    Store,
    search::{Kind, Meaning, Search, SearchResults},
};

use crate::{
    resolve,
    semantic::{QUERY_WORDS_MAX, Ranking, with_meaning},
};

/// Which projects to search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProjectScope {
    /// The project that the request names; without one, all.
    #[default]
    Requested,
    /// The one in the working directory.
    Current,
    /// The one in the working directory; all of them if it has no match.
    CurrentFirst,
}

/// The result of a search.
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
    /// The kind of ranking.
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

/// Finds memories by words, and by meaning if they have vectors. A last word that no memory
/// contains is treated as a prefix, if it is the only word or nothing else is found. A request
/// without kinds searches all kinds.
pub fn search(
    app: &App,
    store: &Store,
    scope: ProjectScope,
    request: &Search,
) -> Result<SearchResponse, Failure> {
    let mut request = request.clone();
    if request.kinds.is_empty() {
        request.kinds = Kind::ALL.to_vec();
    }
    let found = search_words(app, store, scope, &request)?;
    let SearchResults { hits, matched, query, .. } = &found.results;
    let is_found = *matched > 0 || !(hits.is_empty() || query.terms.len() == 1);
    if request.is_typing || is_found || query.hint.is_some() {
        return Ok(found);
    }
    request.is_typing = true;
    let mut begun = search_words(app, store, scope, &request)?;
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
    scope: ProjectScope,
    request: &Search,
) -> Result<SearchResponse, Failure> {
    if !request.has_meaning() {
        return search_by(app, store, scope, request.clone(), None);
    }
    let (found, ranking) = with_meaning(app, store, &request.query, QUERY_WORDS_MAX, |meaning| {
        search_by(app, store, scope, request.clone(), meaning)
    });
    Ok(SearchResponse { ranking, ..found? })
}

fn search_by(
    app: &App,
    store: &Store,
    scope: ProjectScope,
    mut request: Search,
    meaning: Option<&dyn Meaning>,
) -> Result<SearchResponse, Failure> {
    let mut project = request.project.clone();
    if scope != ProjectScope::Requested {
        let current = resolve::named_project(app, store, None)?;
        request.project = Some(current.key);
        project = Some(current.label);
    }
    let results = store.search_by(&request, meaning)?;
    let mut response = SearchResponse {
        results,
        project,
        no_match_in: None,
        matches_elsewhere: 0,
        ranking: Ranking::default(),
    };
    if scope != ProjectScope::CurrentFirst {
        return Ok(response);
    }
    let everywhere = Search { project: None, ..request };
    if response.results.hits.is_empty() && response.results.query.hint.is_none() {
        response.results = store.search_by(&everywhere, meaning)?;
        response.no_match_in = response.project.take();
    } else if !everywhere.query.is_empty() {
        let all = store.search(&Search { limit: 1, offset: 0, ..everywhere })?;
        response.matches_elsewhere = all.matched.saturating_sub(response.results.matched);
    }
    Ok(response)
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
