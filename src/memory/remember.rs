//! Records a memory written by a user or program, for command line, MCP, HTTP and viewer.

use std::path::Path;

use claude_mem_events::{Envelope, Event, EventLog, Id, MemoryAdded, NoteScope};
use claude_mem_log::{Options, system::canonicalize};
use claude_mem_projections::{Store, search::MemoryId};

use crate::{modes::mode, resolve, store};
use claude_mem_capture::{
    CLAUDE_CODE, clients, envelope, excluded_by,
    project::{GitHead, ProjectId},
    redaction,
};
use claude_mem_core::{
    app::App,
    failure::{Failure, nearest},
};
use claude_mem_privacy::{Policy, redact_text};

/// The default type.
pub const NOTE: &str = "note";

/// What to remember.
#[derive(Debug, Default)]
pub struct Note {
    /// The title; may be empty.
    pub title: String,
    pub text: String,
    /// One of the mode's types, or `note`; may be empty.
    pub type_: String,
    /// Keywords.
    pub concepts: Vec<String>,
    /// Related files, relative to the caller's folder.
    pub files: Vec<String>,
    /// Name, key or folder of a project; by default the project of the caller's folder.
    pub project: Option<String>,
    /// The interface: `cli`, `mcp`, `http`, `viewer`.
    pub via: &'static str,
    /// Where it applies.
    pub scope: NoteScope,
}

/// The requested scope: the project, every project, or those below a folder.
pub fn note_scope(is_global: bool, tree: Option<&str>) -> Result<NoteScope, Failure> {
    match (is_global, tree) {
        (true, Some(_)) => {
            Err(Failure::usage("a memory is for all projects or for a folder, not both"))
        }
        (true, None) => Ok(NoteScope::Global),
        (false, None) => Ok(NoteScope::Project),
        (false, Some(folder)) => {
            // Folders of projects are stored as real paths.
            let found = canonicalize(Path::new(folder)).ok().filter(|found| found.is_dir());
            let found =
                found.ok_or_else(|| Failure::usage(format!("there is no folder `{folder}`")))?;
            Ok(NoteScope::Tree(found.to_string_lossy().into_owned()))
        }
    }
}

/// The recorded memory.
#[derive(Debug)]
pub struct Remembered {
    pub event: Id,
    /// The id of the row; `None` if the tables are too far behind.
    pub name: Option<MemoryId>,
    /// The label of its project, or the scope in which it applies.
    pub place: String,
    /// Whether private text or secrets were removed.
    pub is_redacted: bool,
}

/// Records and indexes a memory. It is on disk when this returns.
pub fn remember(app: &mut App, store: &mut Store, note: &Note) -> Result<Remembered, Failure> {
    let project = resolve::project(app, store, note.project.as_deref())?;
    let session = session(app);
    remember_in(app, store, note, &project, session)
}

/// Records and indexes a memory of this project and session. It is on disk when this returns.
pub fn remember_in(
    app: &mut App,
    store: &mut Store,
    note: &Note,
    project: &ProjectId,
    session: String,
) -> Result<Remembered, Failure> {
    let type_ = known_type(app, &note.type_)?;
    admit(app, project, &session)?;
    let mut clean = Redactor::new(app);
    let event = MemoryAdded {
        title: clean.text(&note.title),
        text: clean.text(&note.text),
        kind: type_,
        concepts: note.concepts.iter().map(|concept| clean.text(concept)).collect(),
        files: note.files.iter().map(|file| clean.text(&found_from_here(file, note))).collect(),
        via: note.via.into(),
        metadata: String::new(),
        scope: note.scope.clone(),
    };
    if event.title.is_empty() && event.text.is_empty() {
        let what = if clean.is_redacted { "all of it is private" } else { "there is no text" };
        return Err(Failure::new(format!("nothing was remembered: {what}")));
    }
    let id = record(app, project, session, &event.into())?;
    let log = store::open_log(app)?;
    store::fold_for(store, &log, store::WAIT_MAX)?;
    let name = store.memories_of_event(id)?.first().copied();
    let place = match &note.scope {
        NoteScope::Project => {
            let named = store.project_of_event(id)?.map(|(_, name, _)| name);
            named.filter(|name| !name.is_empty()).unwrap_or_else(|| project.label.clone())
        }
        NoteScope::Global => "all projects".into(),
        NoteScope::Tree(folder) => format!("all projects in {folder}"),
    };
    Ok(Remembered { event: id, name, place, is_redacted: clean.is_redacted })
}

/// Appends an event on behalf of the user. It is on disk when this returns.
pub fn record(
    app: &App,
    project: &ProjectId,
    session: String,
    event: &Event,
) -> Result<Id, Failure> {
    let dir = &app.paths.data;
    app.paths.create_data().map_err(|error| Failure::no_directory(dir, &error))?;
    let GitHead { branch, commit } = project.head();
    let mut envelope =
        Envelope { branch, commit, ..envelope(CLAUDE_CODE.name, session, project.clone()) };
    let id = Id::random(app.clock.now().as_microsecond().cast_unsigned());
    let mut event = event.clone();
    redaction::redact(&mut envelope, &mut event, redaction::policy(&app.settings));
    let mut log = EventLog::open(&app.paths.log(), Options::default())?;
    log.record(id, &envelope, &event)?;
    log.sync()?;
    claude_mem_core::worker_process::wake(&app.paths.data);
    Ok(id)
}

/// The session of the client that started this process, if any.
pub fn session(app: &App) -> String {
    clients::session_of_process(&app.environment).unwrap_or_default()
}

/// Exclusions apply to memories written by hand, too.
pub(crate) fn admit(app: &App, project: &ProjectId, session: &str) -> Result<(), Failure> {
    let cwd = std::env::current_dir().unwrap_or_default();
    if let Some(setting) = excluded_by(&app.settings, project, &cwd, app.paths.home.as_deref()) {
        let label = &project.label;
        let failure =
            Failure::new(format!("nothing was remembered: {label} is excluded by {setting}"));
        return Err(match app.settings.problems().into_iter().next() {
            Some(problem) => failure.meaning(problem).remedy("correct settings.json"),
            None => failure.remedy(format!("see it with `claude-mem settings get {setting}`")),
        });
    }
    if claude_mem_capture::is_turn_private(&app.paths.data, session) {
        return Err(Failure::new("nothing was remembered: this turn is private")
            .remedy("say it again in a turn without `<private>`"));
    }
    Ok(())
}

/// The type, if the mode has it.
pub(crate) fn known_type(app: &App, given: &str) -> Result<String, Failure> {
    let types: Vec<String> = mode(app)?.types.into_iter().map(|word| word.id).collect();
    if given.is_empty() || given == NOTE || types.iter().any(|known| known == given) {
        return Ok(given.into());
    }
    let names = || types.iter().map(String::as_str).chain([NOTE]);
    let failure = Failure::usage(format!("there is no type `{given}`"));
    Err(match nearest(given, names()) {
        Some(nearest) => failure.remedy(format!("did you mean `{nearest}`?")),
        None => failure.remedy(format!("there are {}", names().collect::<Vec<_>>().join(", "))),
    })
}

/// File names are relative to the caller's folder, unless the memory belongs to another project.
fn found_from_here(file: &str, note: &Note) -> String {
    let path = Path::new(file);
    if path.is_absolute() || note.project.is_some() {
        return file.into();
    }
    let here = std::env::current_dir().unwrap_or_default();
    here.join(path.strip_prefix(".").unwrap_or(path)).to_string_lossy().into_owned()
}

/// Redacts texts that a user or program wrote, and notes whether anything was removed.
pub(crate) struct Redactor {
    policy: Policy,
    pub(crate) is_redacted: bool,
}

impl Redactor {
    pub(crate) fn new(app: &App) -> Self {
        Self { policy: redaction::policy(&app.settings), is_redacted: false }
    }

    pub(crate) fn text(&mut self, text: &str) -> String {
        let redacted = redact_text(text, self.policy).unless_private();
        self.is_redacted |= redacted != text;
        redacted.trim().to_owned()
    }
}
