//! The rows of a report: what happened on this machine in a time range.

use crate::{
    Store,
    error::Result,
    query::{
        pending::{EventFilter, in_range, with_range},
        search::{Kind, MemoryId},
    },
    store::sql_values::{items, number, seq},
};
use claude_mem_events::Seq;
use rusqlite::{Row, ToSql};

/// Time, session and project of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportPlace {
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    pub session: Option<i64>,
    /// Row of the project, merges applied.
    pub project: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportSession {
    pub id: i64,
    /// The client's id.
    pub session: String,
    /// The branch at its last event; empty if it is unknown.
    pub branch: String,
    /// HEAD at its first event; empty if it is unknown.
    pub first_commit: String,
}

/// A prompt of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportPrompt {
    /// Its session and project.
    pub place: ReportPlace,
    pub name: MemoryId,
    pub text: String,
}

/// A tool use. Its input and output are in the log, at `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportToolUse {
    /// Its session and project.
    pub place: ReportPlace,
    /// Its place in the log.
    pub seq: Seq,
    pub tool: String,
    /// False for an interruption by the user.
    pub has_failed: bool,
    /// Files that it wrote.
    pub files_written: Vec<String>,
}

/// A visible summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportSummary {
    /// Its session and project.
    pub place: ReportPlace,
    pub name: MemoryId,
    /// The completed work.
    pub completed: Option<String>,
    /// The remaining work.
    pub next_steps: Option<String>,
}

/// A response or a failed request to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportSpending {
    /// Its session and project.
    pub place: ReportPlace,
    /// Input and output tokens.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
}

/// All rows of a report, each list in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportRows {
    /// Every session that a row belongs to.
    pub sessions: Vec<ReportSession>,
    /// Row, key and name of every project.
    pub projects: Vec<(i64, String, String)>,
    /// Prompts of the user that are not private.
    pub prompts: Vec<ReportPrompt>,
    pub tool_uses: Vec<ReportToolUse>,
    pub summaries: Vec<ReportSummary>,
    /// Requests.
    pub spending: Vec<ReportSpending>,
}

impl Store {
    /// The rows of a report. Rows of other hosts are left out: they write their own reports.
    pub fn report_rows(&self, filter: &EventFilter) -> Result<ReportRows> {
        let place = "row.at_us, row.session, (select owner from projects where id = row.project)";
        let range = in_range("row");
        let select = |columns: &str, table: &str, more: &str| {
            format!(
                "select {place}, {columns} from {table} as row where {range} {more}
                 order by row.at_us, row.seq"
            )
        };
        let spending = "(select seq, at_us, session, project, tokens_in, tokens_out, cost_micros
             from replies
             union all select seq, at_us, session, project, tokens_in, tokens_out, cost_micros
             from failures)";
        Ok(ReportRows {
            sessions: self.rows_in(filter, &sessions(), |row| {
                let text = |at| row.get::<_, Option<String>>(at).map(Option::unwrap_or_default);
                Ok(ReportSession {
                    id: row.get(0)?,
                    session: row.get(1)?,
                    branch: text(2)?,
                    first_commit: text(3)?,
                })
            })?,
            projects: self.rows_in(
                filter,
                "select id, key, coalesce(label, key) from projects where id = owner
                     and coalesce(:since, :until, :project, :session, '') is not null",
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )?,
            prompts: self.rows_in(
                filter,
                &select("row.id, row.text", "visible_prompts", ""),
                |row| {
                    let name = MemoryId { kind: Kind::Prompt, id: row.get(3)? };
                    Ok(ReportPrompt { place: read_place(row)?, name, text: row.get(4)? })
                },
            )?,
            tool_uses: self.rows_in(
                filter,
                &select(
                    "row.seq, coalesce(row.tool, ''), row.has_failed and not row.is_interrupt,
                     row.files_written",
                    "tool_uses",
                    "",
                ),
                |row| {
                    Ok(ReportToolUse {
                        place: read_place(row)?,
                        seq: seq(row, 3)?,
                        tool: row.get(4)?,
                        has_failed: row.get(5)?,
                        files_written: items(row.get::<_, Option<String>>(6)?.as_deref()),
                    })
                },
            )?,
            summaries: self.rows_in(
                filter,
                &select("row.id, row.completed, row.next_steps", "visible_summaries", ""),
                |row| {
                    Ok(ReportSummary {
                        place: read_place(row)?,
                        name: MemoryId { kind: Kind::Summary, id: row.get(3)? },
                        completed: row.get(4)?,
                        next_steps: row.get(5)?,
                    })
                },
            )?,
            spending: self.rows_in(
                filter,
                &select("row.tokens_in + row.tokens_out, row.cost_micros", spending, ""),
                |row| {
                    Ok(ReportSpending {
                        place: read_place(row)?,
                        tokens: number(row, 3)?,
                        cost_micros: number(row, 4)?,
                    })
                },
            )?,
        })
    }

    fn rows_in<T>(
        &self,
        filter: &EventFilter,
        sql: &str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        with_range(filter, &[], |values: &[(&str, &dyn ToSql)]| {
            self.rows(sql, values, |row| read(row))
        })
    }
}

/// SQL: sessions with an event in range.
fn sessions() -> String {
    format!(
        "select id, session, branch, first_commit from sessions where id in
             (select session from prompts as row where {range}
              union select session from tool_uses as row where {range}
              union select session from summaries as row where {range}
              union select session from replies as row where {range})",
        range = in_range("row")
    )
}

fn read_place(row: &Row<'_>) -> rusqlite::Result<ReportPlace> {
    Ok(ReportPlace { at_us: number(row, 0)?, session: row.get(1)?, project: row.get(2)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{BEGIN_US, TestLog};

    #[test]
    fn rows_are_those_of_the_range_and_the_project() {
        let mut scene = TestLog::new();
        scene.envelope.branch = "fix".into();
        scene.envelope.commit = "a1".into();
        scene.prompt("before");
        scene.prompt("fix it");
        let edit = scene.tool("Edit", r#"{"file_path":"/p/a.rs"}"#);
        scene.reply(
            &[edit],
            "<summary><completed>c</completed><next_steps>n</next_steps></summary>",
        );
        scene.envelope.project.key = "other".into();
        scene.envelope.session = "t".into();
        scene.prompt("elsewhere");
        let store = scene.fold();
        let filter = EventFilter {
            since_us: Some(BEGIN_US + 2_000_000),
            project: Some("k".into()),
            ..EventFilter::default()
        };
        let rows = store.report_rows(&filter).unwrap();
        let texts: Vec<&str> = rows.prompts.iter().map(|prompt| prompt.text.as_str()).collect();
        assert_eq!(texts, ["fix it"]);
        let [session] = &rows.sessions[..] else { panic!("{rows:?}") };
        assert_eq!((session.session.as_str(), session.branch.as_str()), ("s", "fix"));
        assert_eq!(session.first_commit, "a1");
        assert_eq!(rows.tool_uses[0].files_written, ["a.rs"]);
        assert_eq!(rows.summaries[0].next_steps.as_deref(), Some("n"));
        let [spent] = &rows.spending[..] else { panic!("{rows:?}") };
        assert_eq!((spent.tokens, spent.cost_micros), (11, 5));
        assert_eq!(store.report_rows(&EventFilter::default()).unwrap().prompts.len(), 3);
    }
}
