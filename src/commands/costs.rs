//! `claude-mem costs`: tokens and money spent on distilling.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use claude_mem_projections::Cost;
use jiff::tz::TimeZone;
use serde_json::json;

use claude_mem_core::{app::App, failure::Failure, time_arg::When};
use claude_mem_distill::{dollars, tokens};
use claude_mem_memory::store;

/// Show what distilling has cost
///
/// Tokens and money by day, project or model, and the average cost of an observation. The cost is the one that the
/// provider reports, else the list price; models without a known price count as free.
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
        let width = lines.keys().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
        if !self.json {
            app.output.line(app.output.dim(&format!(
                "{:<width$}  {:>9}  {:>8}  {:>9}  {:>6}  {:>12}  {:>9}",
                "", "cost", "tokens", "responses", "failed", "observations", "cost each"
            )))?;
        }
        for (name, cost) in &lines {
            self.print(app, name, cost, width)?;
        }
        if lines.len() > 1 || self.json {
            self.print(app, "total", &all, width)?;
        }
        Ok(())
    }

    fn print(&self, app: &mut App, name: &str, cost: &Cost, width: usize) -> Result<(), Failure> {
        let each = cost.cost_micros.checked_div(cost.observations);
        if self.json {
            let key = match self.by {
                By::Day => "day",
                By::Project => "project",
                By::Model => "model",
            };
            return app.output.json(&json!({
                key: name,
                "replies": cost.replies,
                "failures": cost.failures,
                "observations": cost.observations,
                "tokens_in": cost.tokens_in,
                "tokens_cached": cost.tokens_cached,
                "tokens_out": cost.tokens_out,
                "cost_usd": cost.cost_micros as f64 / 1e6,
                "cost_usd_per_observation": each.map(|micros| micros as f64 / 1e6),
            }));
        }
        let each = each.map_or_else(|| "-".to_owned(), dollars);
        app.output.line(format_args!(
            "{name:<width$}  {:>9}  {:>8}  {:>9}  {:>6}  {:>12}  {each:>9}",
            dollars(cost.cost_micros),
            tokens(cost.tokens_in + cost.tokens_out),
            cost.replies,
            cost.failures,
            cost.observations,
        ))
    }
}
