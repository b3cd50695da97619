//! Statistics by day and by project.

use crate::{
    Store,
    error::Result,
    store::{row::from_row, sql_values::number},
};
use rusqlite::{Row, named_params};

/// Statistics of one day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DayStats {
    /// `2026-11-16`, in the requested time zone.
    pub day: String,
    /// Events folded.
    pub events: u64,
    pub prompts: u64,
    pub tool_uses: u64,
    /// Visible observations.
    pub observations: u64,
    /// Visible summaries.
    pub summaries: u64,
    /// Input tokens.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
    /// Bytes of tool uses, stops and replies.
    pub bytes: u64,
}

/// Statistics of one project, including those merged into it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectStats {
    pub key: String,
    /// Its name.
    pub label: String,
    /// Its folder.
    pub root: Option<String>,
    /// The clients used in it.
    pub clients: Vec<String>,
    /// Sessions that are not forgotten.
    pub sessions: u64,
    /// Events folded.
    pub events: u64,
    /// Visible observations.
    pub observations: u64,
    /// Visible summaries.
    pub summaries: u64,
    /// Input and output tokens.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
    /// The time of its last session, else of its last event, in microseconds since 1970.
    pub at_us: Option<u64>,
}

/// A key that was merged into another project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectAlias {
    /// The merged key.
    pub key: String,
    /// The name it had; may be empty.
    pub label: String,
    /// The key of the project that it belongs to.
    pub owner: String,
}

/// A damaged range of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRange {
    pub segment: u64,
    pub offset: u64,
    /// The length.
    pub bytes: u64,
    pub reason: String,
}

/// The columns of a day.
const AMOUNTS: [&str; 9] = [
    "events",
    "prompts",
    "tool_uses",
    "observations",
    "summaries",
    "tokens_in",
    "tokens_out",
    "cost_micros",
    "bytes",
];
/// The columns of a reply or a failure.
const SPENT: &[(&str, &str)] = &[
    ("tokens_in", "sum(tokens_in)"),
    ("tokens_out", "sum(tokens_out)"),
    ("cost_micros", "sum(cost_micros)"),
    ("bytes", "sum(bytes)"),
];
/// The counted columns of tables whose rows are read by time.
const COUNTED: [(&str, &[(&str, &str)]); 4] = [
    ("visible_prompts", &[("prompts", "count(*)")]),
    ("stops", &[("bytes", "sum(bytes)")]),
    ("replies", SPENT),
    ("failures", SPENT),
];

/// The rows of one project, and of those that were merged into it.
const OF_PROJECT: &str = "and project in (select id from projects where owner in
    (select owner from projects where label = :project or key = :project))";

/// Sums one table by day. Summing all tables together would sort all their rows: with 100,000
/// observations and a year of days, that takes three times as long.
fn counted((table, sums): (&str, &[(&str, &str)]), within: &str) -> String {
    let amount = |name: &str| {
        let sum = sums.iter().find(|(of, _)| *of == name).map_or("0", |(_, sum)| sum);
        format!("{sum} as {name}")
    };
    format!(
        "select (at_us / 1000000 + :offset) / 86400 as day, {} from {table}
         where at_us >= :since {within} group by 1",
        AMOUNTS.map(amount).join(", ")
    )
}

/// Counts one day after the other in indexes, without reading a row: a tenth of the time of
/// grouping all rows by day.
fn counted_by_day(within: &str) -> String {
    let of_day = "at_us >= max(:since, (day * 86400 - :offset) * 1000000)
        and at_us < ((day + 1) * 86400 - :offset) * 1000000";
    let counted = |name: &str| match name {
        "events" => format!(
            "(select sum((select count(*) from events where project is parts.id and {of_day})) \
             from parts)"
        ),
        "bytes" => {
            format!("coalesce((select sum(bytes) from tool_uses where {of_day} {within}), 0)")
        }
        "tool_uses" => format!("(select count(*) from tool_uses where {of_day} {within})"),
        "observations" | "summaries" => {
            format!("(select count(*) from visible_{name} where {of_day} {within})")
        }
        _ => "0".into(),
    };
    let amounts = AMOUNTS.map(|name| format!("{} as {name}", counted(name)));
    format!("select day, {} from days", amounts.join(", "))
}

/// Sums by project. Without `within`, mostly from the indexes.
fn shared(within: &str) -> String {
    let events = "from events where events.project = projects.id and at_us >= :since";
    format!(
        "select id as project, (select max(at_us) {events}) as at_us,
             (select count(*) {events}) as events, 0 as observations, 0 as summaries,
             0 as tokens, 0 as cost_micros from projects
             where exists (select 1 {events})
         union all select project, max(at_us), 0, count(*), 0, 0, 0
             from visible_observations {within} group by project
         union all select project, max(at_us), 0, 0, count(*), 0, 0
             from visible_summaries {within} group by project
         union all select project, max(at_us), 0, 0, 0, sum(tokens_in + tokens_out),
         sum(cost_micros)
             from replies {within} group by project
         union all select project, max(at_us), 0, 0, 0, sum(tokens_in + tokens_out),
         sum(cost_micros)
             from failures {within} group by project"
    )
}

impl Store {
    /// Statistics by day from `since_us` on, of one project or all. Days begin at midnight,
    /// `offset_seconds` east of Greenwich; days without events are left out.
    pub fn daily_stats(
        &self,
        since_us: u64,
        offset_seconds: i64,
        project: Option<&str>,
    ) -> Result<Vec<DayStats>> {
        let within = project.map_or("", |_| OF_PROJECT);
        // Events outside of projects belong to all of them together only.
        let parts = match project {
            None => "select id from projects union all select null",
            Some(_) => {
                "select id from projects where owner in
                     (select owner from projects where label = :project or key = :project)"
            }
        };
        let sql = format!(
            "with recursive parts(id) as ({parts}),
             ends(first, last) as (
                 select min((select min(at_us) from events where project is parts.id
                 and at_us >= :since)),
                     max((select max(at_us) from events where project is parts.id)) from parts),
             days(day) as (
                 select (first / 1000000 + :offset) / 86400 from ends where first is not null
                 union all select day + 1 from days, ends
                     where day < (last / 1000000 + :offset) / 86400)
             select date(day * 86400, 'unixepoch') as day, {sums} from ({tables}) counted
             where coalesce(:project, '') is not null group by counted.day having {any} order by counted.day",
            sums = AMOUNTS.map(|name| format!("sum({name}) as {name}")).join(", "),
            any = AMOUNTS.map(|name| format!("sum({name}) > 0")).join(" or "),
            tables = [counted_by_day(within)]
                .into_iter()
                .chain(COUNTED.map(|table| counted(table, within)))
                .collect::<Vec<_>>()
                .join(" union all "),
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let values = named_params! {
            ":since": since_us as i64, ":offset": offset_seconds, ":project": project,
        };
        let days = statement.query_map(values, read_day)?;
        Ok(days.collect::<rusqlite::Result<_>>()?)
    }

    /// The number of visible observations of each type from `since_us` on, the most frequent first.
    pub fn type_stats(&self, since_us: u64, project: Option<&str>) -> Result<Vec<(String, u64)>> {
        let within = project.map_or("", |_| OF_PROJECT);
        let sql = format!(
            "select coalesce(type, 'note'), count(*) from visible_observations
             where at_us >= :since and coalesce(:project, '') is not null {within}
             group by 1 order by 2 desc, 1"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let values = named_params! { ":since": since_us as i64, ":project": project };
        let types = statement.query_map(values, |row| Ok((row.get(0)?, number(row, 1)?)))?;
        Ok(types.collect::<rusqlite::Result<_>>()?)
    }

    /// Every project with events from `since_us` on, the one with the latest session first.
    pub fn project_stats(&self, since_us: u64) -> Result<Vec<ProjectStats>> {
        let within = if since_us > 0 { "where at_us >= :since" } else { "" };
        let sql = format!(
            "select owners.key, coalesce(owners.label, owners.key) as label, owners.root,
                 (select group_concat(distinct client) from sessions
                      where project in (select id from projects where owner = owners.id)),
                 (select count(*) from sessions where forgotten_by is null and at_us >= :since
                      and project in (select id from projects where owner = owners.id)) as sessions,
                 sum(events) as events, sum(observations) as observations,
                 sum(summaries) as summaries, sum(tokens) as tokens,
                 sum(cost_micros) as cost_micros,
                 coalesce((select max(at_us) from sessions
                      where project in (select id from projects where owner = owners.id)),
                     max(counted.at_us)) as at_us
             from ({}) counted join projects on projects.id = counted.project
                 join projects owners on owners.id = projects.owner
             where owners.key != ''
             group by owners.id order by 11 desc, owners.id",
            shared(within)
        );
        self.rows(&sql, named_params! { ":since": since_us as i64 }, read_share)
    }

    /// The keys that were merged into other projects.
    pub fn project_aliases(&self) -> Result<Vec<ProjectAlias>> {
        let sql = "select projects.key, coalesce(projects.label, '') as label, owners.key as owner
                   from projects join projects owners on owners.id = projects.owner
                   where projects.owner != projects.id order by 3, 1";
        self.rows(sql, (), |row| Ok(from_row!(row, ProjectAlias { key, label, owner })))
    }

    /// The names of projects that have sessions or memories, and the clients used in each.
    pub fn project_names(&self) -> Result<Vec<(String, Vec<String>)>> {
        let sql =
            "select coalesce(owners.label, owners.key), group_concat(distinct sessions.client)
                   from projects join projects owners on owners.id = projects.owner
                       left join sessions on sessions.project = projects.id
                           and sessions.forgotten_by is null
                   where owners.key != '' and (sessions.id is not null
                       or exists (select 1 from visible_observations where project = projects.id))
                   group by 1 order by lower(1), 1";
        self.rows(sql, (), |row| Ok((row.get(0)?, words(row, 1)?)))
    }

    /// The time of the first visible observation.
    pub fn first_observation_us(&self) -> Result<Option<u64>> {
        let sql = "select min(at_us) from observations where is_visible";
        let mut statement = self.connection.prepare_cached(sql)?;
        let at_us: Option<i64> = statement.query_row((), |row| row.get(0))?;
        Ok(at_us.map(|at_us| at_us as u64))
    }

    /// The damaged ranges of the log, at most `limit`.
    pub fn damaged_ranges(&self, limit: u32) -> Result<Vec<DamagedRange>> {
        let sql =
            "select segment, offset, bytes, reason from gaps order by segment, offset limit ?1";
        self.rows(sql, [limit], |row| {
            Ok(from_row!(row, DamagedRange { segment, offset, bytes, reason }))
        })
    }
}

fn words(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<String>> {
    let words: Option<String> = row.get(at)?;
    Ok(words.map(|words| words.split(',').map(str::to_owned).collect()).unwrap_or_default())
}

fn read_day(row: &Row<'_>) -> rusqlite::Result<DayStats> {
    Ok(from_row!(
        row,
        DayStats {
            day,
            events,
            prompts,
            tool_uses,
            observations,
            summaries,
            tokens_in,
            tokens_out,
            cost_micros,
            bytes
        }
    ))
}

fn read_share(row: &Row<'_>) -> rusqlite::Result<ProjectStats> {
    let clients = words(row, 3)?;
    Ok(from_row!(row, ProjectStats {
        key, label, root, sessions, events, observations, summaries, tokens, cost_micros, at_us
    } { clients }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{BEGIN_US, TestLog, titled};

    const DAY_US: u64 = 86_400_000_000;

    fn store() -> Store {
        let mut scene = TestLog::new();
        scene.prompt("go");
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &titled("a"));
        scene.at_us += DAY_US;
        scene.envelope.project = claude_mem_events::Project {
            key: "other".into(),
            label: "q".into(),
            root: String::new(),
        };
        scene.envelope.session = "t".into();
        scene.prompt("elsewhere");
        scene.fold()
    }

    #[test]
    fn each_day_has_its_counts_and_costs() {
        let store = store();
        let days = store.daily_stats(0, 0, None).unwrap();
        let [first, second] = &days[..] else { panic!("{days:?}") };
        assert_eq!((first.events, first.prompts, first.tool_uses), (3, 1, 1));
        assert_eq!((first.observations, first.summaries, first.cost_micros), (1, 0, 5));
        assert_eq!((first.tokens_in, first.tokens_out), (10, 1));
        assert!(first.bytes > 0);
        assert_eq!((second.events, second.observations), (1, 0));
        assert_eq!(store.daily_stats(0, 0, Some("q")).unwrap().len(), 1);
        assert_eq!(store.daily_stats(BEGIN_US + DAY_US, 0, None).unwrap(), days[1..]);
        assert_eq!(store.daily_stats(0, 0, Some("unknown")).unwrap(), []);
        let types = |project| store.type_stats(0, project).unwrap();
        assert_eq!(
            (types(None).len(), types(Some("p")), types(Some("q"))),
            (1, types(None), vec![])
        );
        assert_eq!(types(None)[0].1, 1);
    }

    #[test]
    fn every_project_has_its_share() {
        let store = store();
        let shares = store.project_stats(0).unwrap();
        let of = |share: &ProjectStats| (share.label.clone(), share.sessions, share.observations);
        assert_eq!(
            shares.iter().map(of).collect::<Vec<_>>(),
            [("q".into(), 1, 0), ("p".into(), 1, 1)]
        );
        assert_eq!(shares[1].clients, ["claude-code"]);
        let names = store.project_names().unwrap();
        let names: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["p", "q"]);
        assert_eq!(store.first_observation_us().unwrap(), Some(BEGIN_US + 2_000_000));
        assert_eq!(store.damaged_ranges(10).unwrap(), []);
    }
}
