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
    xml::{Summary, Verdict},
};
use claude_mem_events::Recorded;
use rusqlite::params;

/// Files that a minimal summary names.
const MINIMAL_FILES_MAX: usize = 5;

/// Summaries: usually one per turn.
pub(crate) struct Summaries;

impl Projection for Summaries {
    fn name(&self) -> &'static str {
        "summaries"
    }

    fn version(&self) -> u32 {
        4
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match RecordedReply::of(rows, event) {
            Some(recorded) => sum_up(rows, event, &recorded),
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
        let sql = "insert into summaries (id, event, seq, number, at_us, session, project,
                   prompt_number,
                       origin, request, investigated, learned, completed, next_steps, notes,
                       files_read, files_edited, provider, model, prompt_version, generation,
                       tokens, is_visible, identifiers, grams, upstream_id)
                   values (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
                   ?16, ?17,
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

fn sum_up(rows: &Rows<'_>, event: &Recorded, recorded: &RecordedReply<'_>) -> Result<()> {
    if recorded.reply.verdict == Verdict::Unreadable {
        return Ok(());
    }
    // Each reply takes a number, with or without a row: whether a turn changed files cannot be seen
    // once its events are forgotten, and numbers must not depend on the order in which logs are
    // folded.
    let id = rows.numbers("summaries", 1)?;
    let sources = rows.sources(event)?;
    if sources.is_forgotten {
        return Ok(());
    }
    let files_edited = sources.written_in_turn(rows)?;
    let minimal;
    let (summary, tokens) = match &recorded.reply.summary {
        Some(summary) => (summary, recorded.tokens(recorded.memories() - 1)),
        None if sources.ends_turn && !files_edited.is_empty() => {
            minimal = minimal_summary(&files_edited);
            (&minimal, 0)
        }
        None => return Ok(()),
    };
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
        provider: some(&recorded.replied.provider),
        model: some(&recorded.replied.model),
        prompt_version: some(&recorded.replied.prompt_version),
        generation: recorded.replied.generation,
        tokens,
        is_visible: is_current(rows, event)?,
        ..Row::default()
    };
    row.insert(rows, event, id)
}

/// The summary of a turn that changed files and that the model did not sum up. It repeats neither
/// the prompt nor observations: they can be forgotten one by one, and their text must not stay
/// here.
fn minimal_summary(files_edited: &[String]) -> Summary {
    let named = files_edited.iter().take(MINIMAL_FILES_MAX).map(String::as_str).collect::<Vec<_>>();
    let more = match files_edited.len() - named.len() {
        0 => String::new(),
        1 => " and one more file".to_owned(),
        more => format!(" and {more} more files"),
    };
    let completed = Some(format!("Changed {}{more}.", named.join(", ")));
    Summary { completed, ..Summary::default() }
}

#[cfg(test)]
mod tests {
    use crate::test_log::TestLog;

    /// Folds a turn that edited these files and got this reply; returns `completed` of its
    /// summaries.
    fn completed(files: &[&str], reply: &str) -> Vec<Option<String>> {
        let mut scene = TestLog::new();
        scene.prompt("faster");
        let mut answers = vec![scene.tool("Bash", r#"{"command":"ls"}"#)];
        for file in files {
            answers.push(scene.tool("Write", &format!(r#"{{"file_path":"/p/{file}"}}"#)));
        }
        answers.push(scene.stop());
        scene.reply(&answers, reply);
        let store = scene.fold();
        let mut rows = store.connection.prepare("select completed from summaries").unwrap();
        let texts = rows.query_map([], |row| row.get(0)).unwrap();
        texts.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn a_turn_that_changed_files_has_at_least_a_minimal_summary() {
        let observation = "<observation><type>change</type><title>t</title></observation>";
        let changed = |text: &str| vec![Some(text.to_owned())];
        assert_eq!(completed(&["a.rs"], observation), changed("Changed a.rs."));
        assert_eq!(completed(&["a.rs", "b.rs"], "<skip/>"), changed("Changed a.rs, b.rs."));
        let many = ["1", "2", "3", "4", "5", "6", "7"];
        let listed = "Changed 1, 2, 3, 4, 5 and 2 more files.";
        assert_eq!(completed(&many, "<skip_summary/>"), changed(listed));
        assert_eq!(completed(&[], observation), []);
        assert_eq!(completed(&["a.rs"], "prose without an element"), []);
        let given = "<summary><completed>c</completed></summary>";
        assert_eq!(completed(&["a.rs"], given), changed("c"));
    }
}
