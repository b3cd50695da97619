//! How much there is of everything, by day and by project.

use crate::{
    Store,
    error::Result,
    store::sql_numbers::{number, number_if_any},
};
use rusqlite::{Row, named_params};

/// One day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DayStats {
    /// `2026-11-16`, in the time zone asked for.
    pub day: String,
    /// Events folded.
    pub events: u64,
    /// Prompts.
    pub prompts: u64,
    /// Tool uses.
    pub tool_uses: u64,
    /// Observations that are shown.
    pub observations: u64,
    /// Summaries that are shown.
    pub summaries: u64,
    /// Tokens read.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
    /// What tool uses, stops and replies hold, in bytes.
    pub bytes: u64,
}

/// One project, with all that were merged into it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectStats {
    /// Its key.
    pub key: String,
    /// What people call it.
    pub label: String,
    /// Where it is.
    pub root: Option<String>,
    /// The programs that were watched in it.
    pub platforms: Vec<String>,
    /// Sessions that are not forgotten.
    pub sessions: u64,
    /// Events folded.
    pub events: u64,
    /// Observations that are shown.
    pub observations: u64,
    /// Summaries that are shown.
    pub summaries: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
    /// When something happened in it last, in microseconds since 1970.
    pub at_us: Option<u64>,
}

/// Damage met while reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRange {
    /// Which segment.
    pub segment: u64,
    /// Where in it.
    pub offset: u64,
    /// How much.
    pub bytes: u64,
    /// Why.
    pub reason: String,
}

/// What a day adds up.
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
/// What a reply or a failure took.
const SPENT: &[(&str, &str)] = &[
    ("tokens_in", "sum(tokens_in)"),
    ("tokens_out", "sum(tokens_out)"),
    ("cost_micros", "sum(cost_micros)"),
    ("bytes", "sum(bytes)"),
];
/// Everything that is counted, table by table.
const COUNTED: [(&str, &[(&str, &str)]); 8] = [
    ("events", &[("events", "count(*)")]),
    ("visible_prompts", &[("prompts", "count(*)")]),
    ("tool_uses", &[("tool_uses", "count(*)"), ("bytes", "sum(bytes)")]),
    ("stops", &[("bytes", "sum(bytes)")]),
    ("visible_observations", &[("observations", "count(*)")]),
    ("visible_summaries", &[("summaries", "count(*)")]),
    ("replies", SPENT),
    ("failures", SPENT),
];

/// Adds up one table by day. To add all tables up together would sort every row of them: with 100,000 observations
/// and a year of days that takes three times as long.
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

/// The same by project alone: most of it in the indexes.
const SHARED: &str = "
    select project, max(at_us) as at_us, count(*) as events, 0 as observations, 0 as summaries,
        0 as tokens, 0 as cost_micros from events group by project
    union all select project, max(at_us), 0, count(*), 0, 0, 0 from visible_observations group by project
    union all select project, max(at_us), 0, 0, count(*), 0, 0 from visible_summaries group by project
    union all select project, max(at_us), 0, 0, 0, sum(tokens_in + tokens_out), sum(cost_micros)
        from replies group by project
    union all select project, max(at_us), 0, 0, 0, sum(tokens_in + tokens_out), sum(cost_micros)
        from failures group by project";

impl Store {
    /// What happened from `since_us` on, day by day, in one project or all. Days begin at midnight
    /// `offset_seconds` east of Greenwich; those on which nothing happened are left out.
    pub fn daily_stats(
        &self,
        since_us: u64,
        offset_seconds: i64,
        project: Option<&str>,
    ) -> Result<Vec<DayStats>> {
        let within = match project {
            None => "",
            Some(_) => {
                "and project in (select id from projects where owner in
                     (select owner from projects where label = :project or key = :project))"
            }
        };
        let sql = format!(
            "select date(day * 86400, 'unixepoch'), {} from ({})
             where coalesce(:project, '') is not null group by day order by day",
            AMOUNTS.map(|name| format!("sum({name})")).join(", "),
            COUNTED.map(|table| counted(table, within)).join(" union all ")
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let values = named_params! {
            ":since": since_us as i64, ":offset": offset_seconds, ":project": project,
        };
        let days = statement.query_map(values, read_day)?;
        Ok(days.collect::<rusqlite::Result<_>>()?)
    }

    /// Every project that something was recorded of, the latest first.
    pub fn project_stats(&self) -> Result<Vec<ProjectStats>> {
        let sql = format!(
            "select owners.key, coalesce(owners.label, owners.key), owners.root,
                 (select group_concat(distinct platform) from sessions
                      where project in (select id from projects where owner = owners.id)),
                 (select count(*) from sessions where forgotten_by is null
                      and project in (select id from projects where owner = owners.id)),
                 sum(events), sum(observations), sum(summaries), sum(tokens), sum(cost_micros),
                 max(counted.at_us)
             from ({SHARED}) counted join projects on projects.id = counted.project
                 join projects owners on owners.id = projects.owner
             group by owners.id order by max(counted.at_us) desc, owners.id"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let shares = statement.query_map((), read_share)?;
        Ok(shares.collect::<rusqlite::Result<_>>()?)
    }

    /// The names of projects that have sessions or memories, and the programs watched in each.
    pub fn project_names(&self) -> Result<Vec<(String, Vec<String>)>> {
        let sql =
            "select coalesce(owners.label, owners.key), group_concat(distinct sessions.platform)
                   from projects join projects owners on owners.id = projects.owner
                       left join sessions on sessions.project = projects.id
                           and sessions.forgotten_by is null
                   where sessions.id is not null
                       or exists (select 1 from visible_observations where project = projects.id)
                   group by 1 order by lower(1), 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let names = statement.query_map((), |row| Ok((row.get(0)?, words(row, 1)?)))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    /// When the first observation that is shown happened.
    pub fn first_observation_us(&self) -> Result<Option<u64>> {
        let sql = "select min(at_us) from observations where is_visible";
        let mut statement = self.connection.prepare_cached(sql)?;
        let at_us: Option<i64> = statement.query_row((), |row| row.get(0))?;
        Ok(at_us.map(|at_us| at_us as u64))
    }

    /// The places in the log that could not be read, at most `limit`.
    pub fn damaged_ranges(&self, limit: u32) -> Result<Vec<DamagedRange>> {
        let sql =
            "select segment, offset, bytes, reason from gaps order by segment, offset limit ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let damage = statement.query_map([limit], |row| {
            Ok(DamagedRange {
                segment: number(row, 0)?,
                offset: number(row, 1)?,
                bytes: number(row, 2)?,
                reason: row.get(3)?,
            })
        })?;
        Ok(damage.collect::<rusqlite::Result<_>>()?)
    }
}

fn words(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<String>> {
    let words: Option<String> = row.get(at)?;
    Ok(words.map(|words| words.split(',').map(str::to_owned).collect()).unwrap_or_default())
}

fn read_day(row: &Row<'_>) -> rusqlite::Result<DayStats> {
    Ok(DayStats {
        day: row.get(0)?,
        events: number(row, 1)?,
        prompts: number(row, 2)?,
        tool_uses: number(row, 3)?,
        observations: number(row, 4)?,
        summaries: number(row, 5)?,
        tokens_in: number(row, 6)?,
        tokens_out: number(row, 7)?,
        cost_micros: number(row, 8)?,
        bytes: number(row, 9)?,
    })
}

fn read_share(row: &Row<'_>) -> rusqlite::Result<ProjectStats> {
    Ok(ProjectStats {
        key: row.get(0)?,
        label: row.get(1)?,
        root: row.get(2)?,
        platforms: words(row, 3)?,
        sessions: number(row, 4)?,
        events: number(row, 5)?,
        observations: number(row, 6)?,
        summaries: number(row, 7)?,
        tokens: number(row, 8)?,
        cost_micros: number(row, 9)?,
        at_us: number_if_any(row, 10)?,
    })
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
    fn every_day_tells_what_happened_and_what_it_cost() {
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
        assert_eq!(store.daily_stats(0, 0, Some("nobody's")).unwrap(), []);
    }

    #[test]
    fn every_project_has_its_share() {
        let store = store();
        let shares = store.project_stats().unwrap();
        let of = |share: &ProjectStats| (share.label.clone(), share.sessions, share.observations);
        assert_eq!(
            shares.iter().map(of).collect::<Vec<_>>(),
            [("q".into(), 1, 0), ("p".into(), 1, 1)]
        );
        assert_eq!(shares[1].platforms, ["claude-code"]);
        let names = store.project_names().unwrap();
        let names: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["p", "q"]);
        assert_eq!(store.first_observation_us().unwrap(), Some(BEGIN_US + 2_000_000));
        assert_eq!(store.damaged_ranges(10).unwrap(), []);
    }
}
