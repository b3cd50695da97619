//! Summaries of turns.

use crate::{
    error::Result,
    fold::{
        observations::is_current,
        projection::{Projection, Rows},
        replies::RecordedReply,
        sources::add,
    },
    fts_terms,
    store::sql_values::{list, some},
};
use claude_mem_events::Recorded;
use rusqlite::params;

/// Summaries: usually one per turn.
pub(crate) struct Summaries;

impl Projection for Summaries {
    fn name(&self) -> &'static str {
        "summaries"
    }

    fn version(&self) -> u32 {
        3
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match RecordedReply::of(rows, event) {
            Some(said) => sum_up(rows, event, &said),
            None => Ok(()),
        }
    }
}

/// A row without its id.
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    pub(crate) at_us: i64,
    pub(crate) session: Option<i64>,
    pub(crate) project: i64,
    pub(crate) prompt_number: Option<i64>,
    pub(crate) origin: &'a str,
    /// Request, investigated, learned, completed, next steps, notes.
    pub(crate) texts: [Option<&'a str>; 6],
    pub(crate) files_read: &'a [String],
    pub(crate) files_edited: &'a [String],
    pub(crate) provider: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) prompt_version: Option<&'a str>,
    pub(crate) generation: u32,
    pub(crate) tokens: i64,
    pub(crate) is_visible: bool,
    pub(crate) upstream_id: Option<&'a str>,
}

impl Row<'_> {
    pub(crate) fn insert(&self, rows: &Rows<'_>, event: &Recorded, id: i64) -> Result<()> {
        let lists = [self.files_read, self.files_edited];
        let lists = lists.into_iter().flatten().map(String::as_str);
        let words = fts_terms::of(self.texts.into_iter().flatten().chain(lists));
        let [request, investigated, learned, completed, next_steps, notes] = self.texts;
        let sql = "insert into summaries (id, event, seq, number, at_us, session, project, prompt_number,
                       origin, request, investigated, learned, completed, next_steps, notes, files_read,
                       files_edited, provider, model, prompt_version, generation, tokens, is_visible,
                       identifiers, grams, upstream_id)
                   values (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                       ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)";
        rows.run(
            sql,
            params![
                id,
                event.id.as_bytes(),
                event.seq.raw() as i64,
                self.at_us,
                self.session,
                self.project,
                self.prompt_number,
                self.origin,
                request,
                investigated,
                learned,
                completed,
                next_steps,
                notes,
                list(self.files_read),
                list(self.files_edited),
                self.provider,
                self.model,
                self.prompt_version,
                self.generation,
                self.tokens,
                self.is_visible,
                words.identifiers,
                words.grams,
                self.upstream_id,
            ],
        )?;
        Ok(())
    }
}

fn sum_up(rows: &Rows<'_>, event: &Recorded, said: &RecordedReply<'_>) -> Result<()> {
    let Some(summary) = &said.reply.summary else { return Ok(()) };
    let id = rows.numbers("summaries", 1)?;
    let sources = rows.sources(event)?;
    if sources.is_forgotten {
        return Ok(());
    }
    let files_edited = sources.written_in_turn(rows)?;
    let mut files_read = sources.kept(&summary.files_read);
    add(&mut files_read, sources.kept(&summary.files_edited));
    files_read.retain(|file| !files_edited.contains(file));
    let texts = [
        &summary.request,
        &summary.investigated,
        &summary.learned,
        &summary.completed,
        &summary.next_steps,
        &summary.notes,
    ];
    let row = Row {
        at_us: sources.at_us,
        session: sources.session,
        project: sources.project,
        prompt_number: sources.prompt_number,
        origin: "agent",
        texts: texts.map(Option::as_deref),
        files_read: &files_read,
        files_edited: &files_edited,
        provider: some(&said.replied.provider),
        model: some(&said.replied.model),
        prompt_version: some(&said.replied.prompt_version),
        generation: said.replied.generation,
        tokens: said.tokens(said.memories() - 1),
        is_visible: is_current(rows, event)?,
        ..Row::default()
    };
    row.insert(rows, event, id)
}
