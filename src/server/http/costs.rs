//! Tokens and money spent on distilling.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::{Cost, Store};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiResult, QueryParams},
    feed::given,
    state::AppState,
    time_params::time,
};
use claude_mem_core::app::App;
use claude_mem_distill::{caps, spent_today};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct CostsParams {
    /// Start time: `2026-03-01`, `3d`, or milliseconds since 1970.
    since: Option<String>,
    /// Project name or key.
    project: Option<String>,
    /// Maximum number of rows; 500 if absent, at most 5,000.
    limit: Option<usize>,
    /// Skip this many rows.
    offset: Option<usize>,
}

/// Default and maximum number of rows.
const LIMIT: usize = 500;
const LIMIT_MAX: usize = 5000;

/// Tokens and money spent on distilling.
#[derive(Debug, Serialize, ToSchema)]
struct Costs {
    /// One row per day, project and model, the newest day first.
    days: Vec<Line>,
    has_more: bool,
    /// The total of all rows, also of those that were skipped.
    total: Sum,
    /// Since midnight, independent of `since`.
    today: Spent,
    /// The daily cap.
    cap: Cap,
}

/// Cost of one model on one day for one project.
#[derive(Debug, Serialize, ToSchema)]
struct Line {
    /// `2026-11-16`.
    day: String,
    project: String,
    provider: String,
    model: String,
    #[serde(flatten)]
    sum: Sum,
}

#[derive(Debug, Serialize, ToSchema)]
struct Sum {
    /// Number of responses.
    calls: u64,
    /// Number of failed requests.
    failures: u64,
    observations: u64,
    tokens_in: u64,
    tokens_cached: u64,
    tokens_out: u64,
    cost_usd: f64,
}

#[derive(Debug, Serialize, ToSchema)]
struct Spent {
    tokens: u64,
    cost_usd: f64,
}

/// Daily limits; null for none.
#[derive(Debug, Serialize, ToSchema)]
struct Cap {
    tokens: Option<u64>,
    cost_usd: Option<f64>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(costs))
}

/// Tokens and money spent on distilling.
#[utoipa::path(get, path = "/api/costs", tag = "reading", params(CostsParams),
    responses((status = 200, body = Costs)))]
async fn costs(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<CostsParams>,
) -> ApiResult<Costs> {
    let found = move |store: &Store, app: &App| {
        let since_us = time("since", params.since.as_deref())?
            .map_or(0, |when| when.start_us(app.clock.now()));
        let offset = TimeZone::system().to_offset(app.clock.now()).seconds();
        let mut costs = store.costs(since_us, i64::from(offset))?;
        if let Some(project) = given(params.project) {
            costs.retain(|cost| cost.label == project || cost.project == project);
        }
        let mut total = Cost::default();
        for cost in &costs {
            total += cost;
        }
        let (today, caps) = (spent_today(store, app.clock)?.spent, caps(&app.settings));
        costs.sort_by(|one, other| other.day.cmp(&one.day));
        let limit = params.limit.unwrap_or(LIMIT).min(LIMIT_MAX);
        let offset = params.offset.unwrap_or(0);
        Ok(Costs {
            has_more: costs.len() > offset.saturating_add(limit),
            days: costs.into_iter().skip(offset).take(limit).map(Line::from).collect(),
            total: Sum::from(&total),
            today: Spent {
                tokens: today.tokens_in + today.tokens_out,
                cost_usd: dollars(today.cost_micros.unwrap_or(0)),
            },
            cap: Cap {
                tokens: (caps.tokens_max > 0).then_some(caps.tokens_max),
                cost_usd: (caps.cost_micros_max > 0).then(|| dollars(caps.cost_micros_max)),
            },
        })
    };
    state.read(found).await.map(Json)
}

fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl From<Cost> for Line {
    fn from(cost: Cost) -> Self {
        let sum = Sum::from(&cost);
        let project = if cost.label.is_empty() { cost.project } else { cost.label };
        Self { day: cost.day, project, provider: cost.provider, model: cost.model, sum }
    }
}

impl From<&Cost> for Sum {
    fn from(cost: &Cost) -> Self {
        Self {
            calls: cost.replies,
            failures: cost.failures,
            observations: cost.observations,
            tokens_in: cost.tokens_in,
            tokens_cached: cost.tokens_cached,
            tokens_out: cost.tokens_out,
            cost_usd: dollars(cost.cost_micros),
        }
    }
}
