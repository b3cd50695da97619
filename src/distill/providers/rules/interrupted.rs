//! Interrupted turns: started, but without a final message.

use super::observations::{FACTS_MAX, file_facts};
use super::parsed_turn::ParsedTurn;
use super::reply::Observation;
use super::text::{add, clip, code, listing, title};

/// The next step recorded for an interrupted turn.
pub(super) const INTERRUPTED: &str = "Interrupted: begun, and not finished";

/// Describes the changes of an interrupted turn from its tools alone. Returns nothing if the turn
/// made a commit, because the commit subject is a better description.
pub(super) fn work(parsed: &ParsedTurn<'_>) -> Option<Observation> {
    let evidence = &parsed.evidence;
    if !parsed.is_interrupted || !evidence.commits().is_empty() {
        return None;
    }
    let request = Some(&parsed.prompt.request).filter(|request| !request.is_empty())?;
    let touched: Vec<String> = evidence.files.iter().map(|file| code(&file.shown)).collect();
    let mut facts = Vec::new();
    if !touched.is_empty() {
        add(&mut facts, format!("Touched: {}", listing(&touched, 6)), FACTS_MAX);
    }
    for fact in file_facts(parsed).iter().chain(&evidence.effects()) {
        add(&mut facts, clip(fact, 240), FACTS_MAX);
    }
    Some(Observation {
        title: title(&format!("Begun: {}", parsed.prompt.title.as_ref().unwrap_or(request))),
        subtitle: INTERRUPTED.to_owned(),
        facts,
        concepts: vec!["what-changed".to_owned()],
        files_modified: evidence.files.iter().take(30).map(|file| file.path.clone()).collect(),
        ..Observation::default()
    })
}
