//! `claude-mem distill costs`: tokens and money spent on distilling.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use claude_mem_projections::Cost;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::table::{Column, Table};
use claude_mem_core::{app::App, failure::Failure, format::number, time_arg::When};
use claude_mem_distill::{dollars, tokens};
use claude_mem_memory::store;

/// Show what distilling has cost
///
/// Tokens and money by day, project or model, and the average cost of an observation. The cost is
/// the one that the provider reports, else the list price; models without a known price count as
/// free.
#[derive(Debug, Args)]
pub(crate) struct Costs {
    /// Start at this time, such as `2026-03-01` or `3d` [default: the beginning]
    #[arg(long, value_name = "WHEN")]
    since: Option<When>,
    /// Group by
    #[arg(long, value_enum, default_value_t = By::Day)]
    by: By,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    Day,
    Project,
    Model,
}

impl Costs {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_whole(app)?;
        let now = app.clock.now();
        let since = self.since.as_ref().map_or(0, |since| since.start(now).as_microsecond());
        let offset = TimeZone::system().to_offset(now).seconds();
        let costs = store.costs(since.max(0).cast_unsigned(), i64::from(offset))?;
        let mut lines: BTreeMap<String, Cost> = BTreeMap::new();
        let mut all = Cost::default();
        for cost in &costs {
            let name = match self.by {
                By::Day => cost.day.clone(),
                By::Project if cost.label.is_empty() => "(no project)".to_owned(),
                By::Project => cost.label.clone(),
                By::Model => format!("{} {}", cost.provider, cost.model),
            };
            *lines.entry(name).or_default() += cost;
            all += cost;
        }
        if lines.is_empty() && !self.json {
            return app.output.line("no requests yet");
        }
        let total = (lines.len() > 1 || self.json).then(|| ("total".to_owned(), all));
        let lines = lines.into_iter().chain(total);
        if self.json {
            return lines
                .into_iter()
                .try_for_each(|(name, cost)| app.output.json(&self.to_json(&name, &cost)));
        }
        let mut table = Table::new([
            Column::text(""),
            Column::number("cost"),
            Column::number("tokens"),
            Column::number("responses"),
            Column::number("failed"),
            Column::number("memories"),
            Column::number("each"),
        ]);
        for (name, cost) in lines {
            table.row([
                name,
                dollars(cost.cost_micros),
                tokens(cost.tokens_in + cost.tokens_out),
                number(cost.replies),
                number(cost.failures),
                number(cost.observations),
                each(&cost).map_or_else(|| "-".to_owned(), dollars),
            ]);
        }
        table.print(app)
    }

    fn to_json(&self, name: &str, cost: &Cost) -> Value {
        let key = match self.by {
            By::Day => "day",
            By::Project => "project",
            By::Model => "model",
        };
        json!({
            key: name,
            "replies": cost.replies,
            "failures": cost.failures,
            "observations": cost.observations,
            "tokens_in": cost.tokens_in,
            "tokens_cached": cost.tokens_cached,
            "tokens_out": cost.tokens_out,
            "cost_usd": cost.cost_micros as f64 / 1e6,
            "cost_usd_per_observation": each(cost).map(|micros| micros as f64 / 1e6),
        })
    }
}

/// The average cost of an observation, in millionths of a dollar.
fn each(cost: &Cost) -> Option<u64> {
    cost.cost_micros.checked_div(cost.observations)
}
