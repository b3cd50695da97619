//! Revises an observation: edit, pin, mark as wrong, supersede. For every front end.
//!
//! A revision is an event. It applies on all machines, and to the rows of every rebuild.

use claude_mem_events::{Id, MemoryRevised, ObservationRef, Revision};
use claude_mem_projections::{
    Retired, Store,
    details::{MemoryBody, MemoryDetails},
    search::{Kind, MemoryId},
    text::first_line,
};

use crate::{
    forget::known_project,
    remember::{Redactor, known_type, record, session},
    semantic::erase_memory,
    store,
};
use claude_mem_core::{app::App, failure::Failure};

/// What to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// New texts.
    Edit(Edit),
    /// It comes first in the context of sessions.
    Pin,
    /// It loses its pin.
    Unpin,
    /// It is wrong; the reason may be empty.
    Wrong(String),
    /// This observation replaces it.
    Supersede(MemoryId),
    /// It is neither wrong nor superseded.
    Restore,
}

/// New texts of an observation. `None` leaves a part as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edit {
    pub title: Option<String>,
    /// The text: it replaces subtitle, narrative and facts.
    pub text: Option<String>,
    /// One of the mode's types, or `note`.
    pub type_: Option<String>,
}

/// The parts of an observation that can be edited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Editable {
    pub title: String,
    /// Subtitle, narrative and facts.
    pub text: String,
    pub type_: String,
}

/// A recorded revision.
#[derive(Debug)]
pub struct Revised {
    pub event: Id,
    /// Whether private text or secrets were removed.
    pub is_redacted: bool,
    /// The title of the observation after the change, or the first line of its text.
    pub title: String,
}

/// The texts of an observation that can be edited.
pub fn editable(store: &Store, name: MemoryId) -> Result<Editable, Failure> {
    let details = find(store, name)?;
    let MemoryBody::Observation(body) = details.body else { return Err(missing(name)) };
    let facts: Vec<String> = body.facts.iter().map(|fact| format!("- {fact}")).collect();
    let facts = Some(facts.join("\n")).filter(|facts| !facts.is_empty());
    let parts: Vec<String> = [body.subtitle, body.narrative, facts].into_iter().flatten().collect();
    Ok(Editable {
        title: body.title.unwrap_or_default(),
        text: parts.join("\n\n"),
        type_: body.type_.unwrap_or_default(),
    })
}

/// Records a revision and indexes it. It is on disk when this returns.
pub fn revise(
    app: &mut App,
    store: &mut Store,
    name: MemoryId,
    change: &Change,
    via: &str,
) -> Result<Revised, Failure> {
    let details = find(store, name)?;
    let target = reference(store, name)?;
    let mut redactor = Redactor::new(app);
    let revision = match change {
        Change::Edit(edit) => edited(app, store, name, edit, &mut redactor)?,
        Change::Pin if details.marks.is_pinned => return Err(unchanged(name, "is pinned")),
        Change::Pin => Revision::Pinned,
        Change::Unpin if !details.marks.is_pinned => return Err(unchanged(name, "is not pinned")),
        Change::Unpin => Revision::Unpinned,
        Change::Wrong(because) => {
            let because = redactor.text(because);
            if matches!(&details.marks.retired, Some(Retired::Wrong { because: given, .. })
                if given.as_deref().unwrap_or_default() == because)
            {
                return Err(unchanged(name, "is marked as wrong"));
            }
            Revision::MarkedWrong { because }
        }
        Change::Supersede(by) => superseded(store, &details, *by)?,
        Change::Restore if details.marks.retired.is_none() => {
            return Err(unchanged(name, "is neither wrong nor superseded"));
        }
        Change::Restore => Revision::Restored,
    };
    let session = session(app);
    if claude_mem_capture::is_turn_private(&app.paths.data, &session) {
        return Err(Failure::new("nothing was changed: this turn is private")
            .remedy("say it again in a turn without `<private>`"));
    }
    let project = known_project(store.project_of_event(Id::from_bytes(target.event))?);
    let event = MemoryRevised { target, revision, via: via.into() };
    let event = record(app, &project, session, &event.into())?;
    let log = store::open_log(app)?;
    store::fold_for(store, &log, store::WAIT_MAX)?;
    if matches!(change, Change::Edit(_)) {
        // The worker gives the new text its vectors.
        erase_memory(app, name)?;
    }
    let Editable { mut title, text, .. } = editable(store, name).unwrap_or_default();
    if title.is_empty() {
        first_line(&text).clone_into(&mut title);
    }
    Ok(Revised { event, is_redacted: redactor.is_redacted, title })
}

/// The observation with this id, even if it is wrong or superseded.
fn find(store: &Store, name: MemoryId) -> Result<MemoryDetails, Failure> {
    if name.kind != Kind::Observation {
        let kind = name.kind.name();
        return Err(Failure::usage(format!(
            "{name} is a {kind}: only observations can be revised"
        ))
        .remedy(format!("forget it with `claude-mem forget {name}`")));
    }
    store.details(&[name])?.pop().ok_or_else(|| missing(name))
}

fn missing(name: MemoryId) -> Failure {
    Failure::usage(format!("there is no memory {name}"))
        .meaning("nothing was changed")
        .remedy("find its ID with `claude-mem search`")
}

fn unchanged(name: MemoryId, state: &str) -> Failure {
    Failure::usage(format!("{name} {state}")).meaning("nothing was changed")
}

fn reference(store: &Store, name: MemoryId) -> Result<ObservationRef, Failure> {
    store.observation_refs(&[name.id])?.pop().ok_or_else(|| missing(name))
}

fn edited(
    app: &App,
    store: &Store,
    name: MemoryId,
    edit: &Edit,
    redactor: &mut Redactor,
) -> Result<Revision, Failure> {
    let now = editable(store, name)?;
    let mut new = |given: &Option<String>, now: &str, what: &str| match given {
        Some(text) if text.trim() == now.trim() => Ok(None),
        Some(text) => match redactor.text(text) {
            redacted if redacted.is_empty() => {
                Err(Failure::usage(format!("the {what} is empty")).meaning("nothing was changed"))
            }
            redacted => Ok(Some(redacted)),
        },
        None => Ok(None),
    };
    let title = new(&edit.title, &now.title, "title")?;
    let text = new(&edit.text, &now.text, "text")?;
    let kind = match &edit.type_ {
        Some(type_) if *type_ != now.type_ => Some(known_type(app, type_)?),
        _ => None,
    };
    if title.is_none() && text.is_none() && kind.is_none() {
        return Err(unchanged(name, "has these texts already"));
    }
    Ok(Revision::Edited { title, text, kind })
}

fn superseded(store: &Store, old: &MemoryDetails, by: MemoryId) -> Result<Revision, Failure> {
    if by == old.name {
        return Err(unchanged(by, "cannot supersede itself"));
    }
    let new = find(store, by)?;
    if let Some(retired) = &new.marks.retired {
        return Err(unchanged(by, &format!("is itself {retired}"))
            .remedy("name the observation that replaces it"));
    }
    let is_superseded_by = |correction: &claude_mem_projections::Correction| {
        correction.by.as_ref().is_some_and(|(name, _)| *name == by)
    };
    if old.marks.correction().is_some_and(is_superseded_by) {
        return Err(unchanged(old.name, &format!("is superseded by {by}")));
    }
    Ok(Revision::SupersededBy(reference(store, by)?))
}
