//! Memories in full, with their provenance.

use crate::{
    Store,
    error::Result,
    hosts::host_of,
    query::{
        injections::Usage,
        marks::Marks,
        search::{Kind, MemoryId},
    },
    store::sql_values::{items, number, seq},
};
use claude_mem_events::{Event, Id, Seq};
use rusqlite::{OptionalExtension, Row};
use serde::Serialize;
use utoipa::ToSchema;

/// A memory in full.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryDetails {
    /// Its id: `12`, `S3`, `P9`.
    pub name: MemoryId,
    pub kind: Kind,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// The name of its project.
    pub project: String,
    /// The client's id of its session.
    pub session: Option<String>,
    /// The client of its session, such as `codex`.
    pub client: Option<String>,
    /// The number of its prompt in the session.
    pub prompt_number: Option<u32>,
    /// For a note that applies beyond its project: the folder, or empty for every project.
    pub tree: Option<String>,
    /// Its content.
    pub body: MemoryBody,
    /// True if a later reprocessing or correction superseded it.
    pub is_superseded: bool,
    /// Whether it is pinned, edited, wrong or superseded.
    pub marks: Marks,
    pub provenance: Provenance,
    /// How often an observation was used; `None` for other kinds.
    pub usage: Option<Usage>,
}

/// The content of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum MemoryBody {
    Observation(ObservationBody),
    Summary(SummaryBody),
    /// The text is missing if the prompt was private.
    Prompt {
        text: Option<String>,
    },
}

/// The content of an observation: what was learned or done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ObservationBody {
    /// Such as `bugfix`.
    #[serde(rename = "type")]
    pub type_: Option<String>,
    pub title: Option<String>,
    pub subtitle: Option<String>,
    pub narrative: Option<String>,
    pub facts: Vec<String>,
    pub concepts: Vec<String>,
    pub files_read: Vec<String>,
    pub files_modified: Vec<String>,
}

/// The content of a summary of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SummaryBody {
    pub request: Option<String>,
    pub investigated: Option<String>,
    pub learned: Option<String>,
    pub completed: Option<String>,
    pub next_steps: Option<String>,
    pub notes: Option<String>,
    pub files_read: Vec<String>,
    pub files_edited: Vec<String>,
}

/// Where a memory comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provenance {
    /// `agent`, `user`, `import`; `hook` for prompts.
    pub origin: String,
    /// The event that it was made of, or the reply that contains it.
    pub event: String,
    /// The place of that event in the log.
    pub seq: Seq,
    /// The machine, if it is another one.
    pub host: Option<String>,
    /// The branch that its session worked on, if it is known.
    pub branch: Option<String>,
    /// The reply, if an agent made it.
    pub reply: Option<SourceReply>,
    /// The events that the reply answers.
    pub sources: Vec<SourceEvent>,
}

/// The reply that contains a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceReply {
    /// The provider: `claude`, `anthropic`, `openai`, `extract`.
    pub provider: String,
    pub model: String,
    /// The hash of the prompt texts.
    pub prompt_version: String,
    /// 0 for the initial distillation; else the number of the reprocessing.
    pub generation: u32,
    /// How many memories share its cost.
    pub memories: u32,
    /// Input tokens.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// Millionths of a dollar for the whole reply.
    pub cost_micros: u64,
    /// How long it took.
    pub duration_ms: u64,
}

/// An event that a memory was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEvent {
    /// Its place in the log.
    pub seq: Seq,
    /// Its id.
    pub event: String,
    /// Its kind: `ToolUsed`.
    pub kind: &'static str,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// The tool, if it is a tool use.
    pub tool: Option<String>,
}

impl Store {
    /// The memories with these ids, in this order. Unknown ids are left out.
    pub fn details(&self, names: &[MemoryId]) -> Result<Vec<MemoryDetails>> {
        names.iter().filter_map(|name| self.detail(*name).transpose()).collect()
    }

    fn detail(&self, name: MemoryId) -> Result<Option<MemoryDetails>> {
        let tree = if name.kind == Kind::Observation { "row.tree" } else { "null" };
        let sql = select(
            name.kind,
            &format!("row.event, row.seq, sessions.branch, {tree}, sessions.client"),
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let found = statement.query_row([name.id], |row| read(row, name)).optional()?;
        let Some(mut details) = found else { return Ok(None) };
        self.add_reply(&mut details.provenance)?;
        if name.kind == Kind::Observation {
            details.usage = Some(self.usage_of(name.id)?);
        }
        details.marks = self.marks(name)?;
        details.is_superseded |= details.marks.correction().is_some();
        details.provenance.host = self.host_name(host_of(details.provenance.seq))?;
        Ok(Some(details))
    }

    fn add_reply(&self, provenance: &mut Provenance) -> Result<()> {
        let reply = provenance.seq.raw() as i64;
        let sql = "select provider, model, prompt_version, generation, observations + summaries,
                       tokens_in, tokens_out, cost_micros, duration_ms from replies where seq = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([reply], |row| {
            Ok(SourceReply {
                provider: row.get(0)?,
                model: row.get(1)?,
                prompt_version: row.get(2)?,
                generation: row.get(3)?,
                memories: row.get(4)?,
                tokens_in: number(row, 5)?,
                tokens_out: number(row, 6)?,
                cost_micros: number(row, 7)?,
                duration_ms: number(row, 8)?,
            })
        });
        provenance.reply = found.optional()?;
        let sql = "select events.seq, events.event, events.kind, events.at_us, tool_uses.tool
                   from answers
                       join events on events.seq = answers.source
                       left join tool_uses on tool_uses.seq = answers.source
                   where answers.reply = ?1 order by answers.source";
        let mut statement = self.connection.prepare_cached(sql)?;
        let sources = statement.query_map([reply], |row| {
            Ok(SourceEvent {
                seq: seq(row, 0)?,
                event: Id::from_bytes(row.get(1)?).to_string(),
                kind: Event::name_of(row.get(2)?),
                at_us: number(row, 3)?,
                tool: row.get(4)?,
            })
        })?;
        provenance.sources = sources.collect::<rusqlite::Result<_>>()?;
        Ok(())
    }
}

/// SQL that reads a memory: time, project and session, then `columns`, then the columns of
/// [`MemoryBody::read`].
pub(crate) fn select(kind: Kind, columns: &str) -> String {
    let (number, origin, superseded) = match kind {
        Kind::Prompt => ("row.number", "'hook'", "0"),
        _ => ("row.prompt_number", "row.origin", "not row.is_visible"),
    };
    let body = match kind {
        Kind::Observation => {
            "row.type, row.title, row.subtitle, row.narrative, row.facts, row.concepts,
             row.files_read, row.files_modified"
        }
        Kind::Summary => {
            "row.request, row.investigated, row.learned, row.completed, row.next_steps, row.notes,
                 row.files_read, row.files_edited"
        }
        Kind::Prompt => "row.text",
    };
    format!(
        "select row.at_us, coalesce(owners.label, owners.key), sessions.session, {number}, {origin},
             {superseded}, {columns}, {body}
         from {} row join projects on projects.id = row.project
             join projects owners on owners.id = projects.owner
             left join sessions on sessions.id = row.session
         where row.id = ?1",
        kind.table()
    )
}

impl MemoryBody {
    /// The content, if this is an observation.
    pub fn observation(&self) -> Option<&ObservationBody> {
        if let Self::Observation(body) = self { Some(body) } else { None }
    }

    /// Reads the content of a memory from the columns from `first` on.
    pub(crate) fn read(row: &Row<'_>, kind: Kind, first: usize) -> rusqlite::Result<Self> {
        let text = |at: usize| row.get::<_, Option<String>>(first + at);
        let list = |at: usize| text(at).map(|list| items(list.as_deref()));
        Ok(match kind {
            Kind::Observation => Self::Observation(ObservationBody {
                type_: text(0)?,
                title: text(1)?,
                subtitle: text(2)?,
                narrative: text(3)?,
                facts: list(4)?,
                concepts: list(5)?,
                files_read: list(6)?,
                files_modified: list(7)?,
            }),
            Kind::Summary => Self::Summary(SummaryBody {
                request: text(0)?,
                investigated: text(1)?,
                learned: text(2)?,
                completed: text(3)?,
                next_steps: text(4)?,
                notes: text(5)?,
                files_read: list(6)?,
                files_edited: list(7)?,
            }),
            Kind::Prompt => Self::Prompt { text: text(0)? },
        })
    }
}

fn read(row: &Row<'_>, name: MemoryId) -> rusqlite::Result<MemoryDetails> {
    Ok(MemoryDetails {
        name,
        kind: name.kind,
        at_us: number(row, 0)?,
        project: row.get(1)?,
        session: row.get(2)?,
        prompt_number: row.get(3)?,
        tree: row.get(9)?,
        client: row.get(10)?,
        body: MemoryBody::read(row, name.kind, 11)?,
        is_superseded: row.get(5)?,
        marks: Marks::default(),
        usage: None,
        provenance: Provenance {
            origin: row.get(4)?,
            event: Id::from_bytes(row.get(6)?).to_string(),
            seq: seq(row, 7)?,
            branch: row.get(8)?,
            ..Provenance::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::TestLog;

    #[test]
    fn a_memory_shows_its_sources_and_cost() {
        let mut scene = TestLog::new();
        scene.envelope.branch = "fix".into();
        let prompt = scene.prompt("fix it");
        let tool = scene.tool("Edit", r#"{"file_path":"/p/a.rs"}"#);
        let reply = "\
            <observation><type>bugfix</type><title>fixed</title><facts><fact>a</fact>\
            <fact>b</fact></facts></observation><summary><request>fix it</request></summary>";
        let reply = scene.reply(&[tool], reply);
        let names: Vec<MemoryId> = ["S1", "1", "P1", "7"].map(|name| name.parse().unwrap()).into();
        let found = scene.fold().details(&names).unwrap();
        let [summary, observation, submitted] = &found[..] else { panic!("{found:?}") };
        assert!(
            matches!(&observation.body, MemoryBody::Observation(ObservationBody { title: Some(title), facts, .. })
            if title == "fixed" && facts[..] == ["a", "b"])
        );
        assert!(
            matches!(&summary.body, MemoryBody::Summary(summary) if summary.request.as_deref() == Some("fix it"))
        );
        assert_eq!(submitted.body, MemoryBody::Prompt { text: Some("fix it".into()) });
        assert_eq!(submitted.provenance.event, Id::from_bytes(prompt).to_string());
        let provenance = &observation.provenance;
        assert_eq!(provenance.event, Id::from_bytes(reply).to_string());
        let cost = provenance.reply.as_ref().map(|reply| (reply.memories, reply.cost_micros));
        assert_eq!(cost, Some((2, 5)));
        assert_eq!(provenance.branch.as_deref(), Some("fix"));
        let [source] = &provenance.sources[..] else { panic!("{provenance:?}") };
        assert_eq!((source.kind, source.tool.as_deref()), ("ToolUsed", Some("Edit")));
        assert_eq!(source.event, Id::from_bytes(tool).to_string());
        assert_eq!(summary.provenance.sources, provenance.sources);
    }
}
