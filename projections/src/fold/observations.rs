//! Observations: distilled by an agent, or written by hand.

use crate::{
    error::Result,
    fold::{
        projection::{Projection, Rows},
        replies::RecordedReply,
        sessions,
        sources::{Sources, add},
    },
    fts_terms,
    store::sql_values::{list, some},
    xml,
};
use claude_mem_events::{Event, MemoryAdded, NoteScope, Recorded};
use rusqlite::params;

/// Observations, numbered in the order of the log.
pub(crate) struct Observations;

impl Projection for Observations {
    fn name(&self) -> &'static str {
        "observations"
    }

    fn version(&self) -> u32 {
        5
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        if let Event::MemoryAdded(memory) = &event.event {
            return add_by_hand(rows, event, memory);
        }
        match RecordedReply::of(rows, event) {
            Some(recorded) => observe(rows, event, &recorded),
            None => Ok(()),
        }
    }
}

/// A row without its id.
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    pub(crate) number: usize,
    pub(crate) at_us: i64,
    pub(crate) session: Option<i64>,
    pub(crate) project: i64,
    pub(crate) prompt_number: Option<i64>,
    pub(crate) origin: &'a str,
    pub(crate) kind: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) subtitle: Option<&'a str>,
    pub(crate) narrative: Option<&'a str>,
    pub(crate) facts: &'a [String],
    pub(crate) concepts: &'a [String],
    pub(crate) files_read: &'a [String],
    pub(crate) files_modified: &'a [String],
    pub(crate) agent_type: Option<&'a str>,
    pub(crate) provider: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) prompt_version: Option<&'a str>,
    pub(crate) generation: u32,
    pub(crate) tokens: i64,
    pub(crate) metadata: Option<&'a str>,
    /// For a note that applies beyond its project: the folder, or empty for every project.
    pub(crate) tree: Option<&'a str>,
    pub(crate) is_visible: bool,
    pub(crate) upstream_id: Option<&'a str>,
}

impl Row<'_> {
    pub(crate) fn insert(&self, rows: &Rows<'_>, event: &Recorded, id: i64) -> Result<()> {
        let texts = [self.title, self.subtitle, self.narrative].into_iter().flatten();
        let lists = [self.facts, self.concepts, self.files_read, self.files_modified];
        let words = fts_terms::of(texts.chain(lists.into_iter().flatten().map(String::as_str)));
        let sql = "insert into observations (id, event, seq, number, at_us, session, project,
                   prompt_number,
                       origin, type, title, subtitle, narrative, facts, concepts, files_read,
                       files_modified, agent_type, provider, model, prompt_version, generation,
                       tokens, metadata, is_visible, identifiers, grams, upstream_id, tree)
                   values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                   ?17, ?18,
                       ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29)";
        rows.run(
            sql,
            params![
                id,
                event.id.as_bytes(),
                event.seq.raw() as i64,
                self.number as i64,
                self.at_us,
                self.session,
                self.project,
                self.prompt_number,
                self.origin,
                self.kind,
                self.title,
                self.subtitle,
                self.narrative,
                list(self.facts),
                list(self.concepts),
                list(self.files_read),
                list(self.files_modified),
                self.agent_type,
                self.provider,
                self.model,
                self.prompt_version,
                self.generation,
                self.tokens,
                self.metadata,
                self.is_visible,
                words.identifiers,
                words.grams,
                self.upstream_id,
                self.tree,
            ],
        )?;
        Ok(())
    }
}

fn observe(rows: &Rows<'_>, event: &Recorded, recorded: &RecordedReply<'_>) -> Result<()> {
    let observations = &recorded.reply.observations;
    if observations.is_empty() {
        return Ok(());
    }
    let first = rows.numbers("observations", observations.len())?;
    let sources = rows.sources(event)?;
    if sources.is_forgotten {
        return note_forgotten(rows, event, observations.len());
    }
    let is_visible = is_current(rows, event)?;
    let is_only = observations.len() == 1;
    for (index, observation) in observations.iter().enumerate() {
        let files = Files::of(observation, &sources, is_only);
        let row = Row {
            number: index + 1,
            at_us: sources.at_us,
            session: sources.session,
            project: sources.project,
            prompt_number: sources.prompt_number,
            origin: "agent",
            kind: Some(&observation.kind),
            title: observation.title.as_deref(),
            subtitle: observation.subtitle.as_deref(),
            narrative: observation.narrative.as_deref(),
            facts: &observation.facts,
            concepts: &observation.concepts,
            files_read: &files.read,
            files_modified: &files.modified,
            agent_type: sources.agent_type.as_deref(),
            provider: some(&recorded.replied.provider),
            model: some(&recorded.replied.model),
            prompt_version: some(&recorded.replied.prompt_version),
            generation: recorded.replied.generation,
            tokens: recorded.tokens(index),
            is_visible,
            ..Row::default()
        };
        row.insert(rows, event, first + index as i64)?;
    }
    Ok(())
}

/// Records that the observations of a reply about forgotten events are forgotten, too. They may
/// have been revised on another machine.
fn note_forgotten(rows: &Rows<'_>, event: &Recorded, count: usize) -> Result<()> {
    let sql = "insert or ignore into forgotten_observations (event, number, forgetting)
               select ?2, ?3, min(forgotten_by) from answers join events on events.seq = source
               where reply = ?1 and forgotten_by is not null";
    for number in 1..=count {
        rows.run(sql, params![event.seq.raw() as i64, event.id.as_bytes(), number as i64])?;
    }
    Ok(())
}

/// Whether the memories of the reply in `event` are the visible ones.
pub(crate) fn is_current(rows: &Rows<'_>, event: &Recorded) -> Result<bool> {
    let sql = "select is_current from replies where seq = ?1";
    Ok(rows.cached(sql)?.query_row([event.seq.raw() as i64], |row| row.get(0))?)
}

struct Files {
    read: Vec<String>,
    modified: Vec<String>,
}

impl Files {
    /// Files count as modified if a write tool named them; a model's claim alone only makes them
    /// read.
    ///
    /// Of several observations in one reply, each gets the written files that it names itself. An
    /// observation that names none of them, or is the only one, gets all.
    fn of(observation: &xml::Observation, sources: &Sources, is_only: bool) -> Self {
        let mut read = sources.kept(&observation.files_modified);
        add(&mut read, sources.kept(&observation.files_read));
        let is_named = |file: &&String| read.iter().any(|claim| is_same(claim, file));
        let named: Vec<String> = sources.written.iter().filter(is_named).cloned().collect();
        let modified = match is_only || named.is_empty() {
            true => sources.written.clone(),
            false => named,
        };
        read.retain(|claim| !modified.iter().any(|file| is_same(claim, file)));
        Self { read, modified }
    }
}

/// Whether a model's path refers to this file: models often omit the folders.
fn is_same(claim: &str, file: &str) -> bool {
    file == claim || file.strip_suffix(claim).is_some_and(|rest| rest.ends_with('/'))
}

/// The author of a note or a revision. Claude calls MCP, or runs the command in a session, possibly
/// prompted by a tool's output. Only a command outside of any session, and the viewer, are
/// attributed to the user.
pub(crate) fn author(event: &Recorded, via: &str) -> &'static str {
    match via {
        "auto-memory" => "auto-memory",
        "mcp" => "claude",
        "http" => "program",
        "cli" if !event.envelope.session.is_empty() => "claude",
        _ => "user",
    }
}

fn add_by_hand(rows: &Rows<'_>, event: &Recorded, memory: &MemoryAdded) -> Result<()> {
    let id = rows.numbers("observations", 1)?;
    let place = sessions::place(rows, event)?;
    let root = &event.envelope.project.root;
    let files: Vec<_> = memory
        .files
        .iter()
        .map(|file| crate::fold::files_touched::relative(file, "", root))
        .collect();
    let row = Row {
        number: 1,
        at_us: event.at_us() as i64,
        session: place.session,
        project: place.project,
        prompt_number: Some(place.prompt_number).filter(|number| *number > 0),
        origin: author(event, &memory.via),
        kind: some(&memory.kind).or(Some("note")),
        title: some(&memory.title),
        narrative: some(&memory.text),
        concepts: &memory.concepts,
        files_read: &files,
        metadata: some(&memory.metadata),
        tree: match &memory.scope {
            NoteScope::Project => None,
            NoteScope::Global => Some(""),
            NoteScope::Tree(folder) => some(folder),
        },
        is_visible: true,
        ..Row::default()
    };
    row.insert(rows, event, id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    #[test]
    fn a_reply_folded_twice_is_one_row() {
        let mut scene = TestLog::new();
        scene.prompt("go");
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &titled("tests live in tests/"));
        let mut store = scene.fold();
        let again = store.fold_events(&scene.events).unwrap();
        assert_eq!((again.events, again.duplicates), (0, 3));
        let rows = "select id, number, type, title, prompt_number, tokens from observations";
        assert_eq!(store.dump(rows).unwrap(), "1|1|feature|tests live in tests/|1|11\n");
    }

    #[test]
    fn files_are_modified_only_if_a_write_tool_names_them() {
        let mut scene = TestLog::new();
        let edit = scene.tool("Edit", r#"{"file_path":"/p/src/a.rs"}"#);
        let read = scene.tool("Read", r#"{"file_path":"/p/src/b.rs"}"#);
        scene.reply(
            &[edit, read],
            "<observation><title>t</title><files_modified><file>src/b.rs</file><file>/p/c.rs</file>\
             </files_modified></observation>",
        );
        let store = scene.fold();
        let rows = "select files_modified, files_read from observations";
        assert_eq!(store.dump(rows).unwrap(), "[\"src/a.rs\"]|[\"src/b.rs\",\"c.rs\"]\n");
    }

    #[test]
    fn each_of_several_observations_gets_the_written_files_it_names() {
        let mut scene = TestLog::new();
        let a = scene.tool("Edit", r#"{"file_path":"/p/src/a.rs"}"#);
        let b = scene.tool("Write", r#"{"file_path":"/p/src/b.rs"}"#);
        let names = "<files_modified><file>a.rs</file></files_modified>";
        let first = format!("<observation><title>1</title>{names}</observation>");
        scene.reply(&[a, b], &(first + &titled("2")));
        let store = scene.fold();
        let rows = "select title, files_modified, files_read from observations";
        assert_eq!(
            store.dump(rows).unwrap(),
            "1|[\"src/a.rs\"]|\n2|[\"src/a.rs\",\"src/b.rs\"]|\n"
        );
    }

    #[test]
    fn a_memory_written_by_hand_is_an_observation_of_the_user() {
        let mut scene = TestLog::new();
        scene.envelope.session = String::new();
        let (title, text) = (String::new(), "use tabs".into());
        scene.add(MemoryAdded {
            title,
            text,
            files: vec!["/p/x".into()],
            ..MemoryAdded::default()
        });
        let rows =
            "select origin, type, session, narrative, files_read, is_visible from observations";
        assert_eq!(scene.fold().dump(rows).unwrap(), "user|note||use tabs|[\"x\"]|1\n");
    }

    #[test]
    fn a_note_is_the_users_only_if_neither_claude_nor_a_program_can_have_written_it() {
        for (via, session, origin) in [
            ("cli", "", "user"),
            ("viewer", "", "user"),
            ("cli", "s", "claude"),
            ("mcp", "s", "claude"),
            ("mcp", "", "claude"),
            ("http", "", "program"),
        ] {
            let mut scene = TestLog::new();
            scene.envelope.session = session.into();
            let (text, via) = ("use tabs".into(), via.into());
            scene.add(MemoryAdded { text, via, ..MemoryAdded::default() });
            let rows = scene.fold().dump("select origin from observations").unwrap();
            assert_eq!(rows.trim(), origin);
        }
    }

    #[test]
    fn compound_names_are_found_by_their_parts() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &titled("readReply in 記憶喪失 keeps naïve café"));
        let store = scene.fold();
        for query in ["read", "reply", "\"憶喪 喪失\"", "naive", "keep"] {
            let sql = format!("select rowid from observations_fts ('{query}')");
            assert_eq!(store.dump(&sql).unwrap(), "1\n", "{query}");
        }
    }
}
