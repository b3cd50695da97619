//! Plan of a distill run: the requests of every session, in order, and what they cost.

use claude_mem_core::progress::Progress;
use claude_mem_events::Seq;
use claude_mem_log::Log;
use claude_mem_projections::{
    PendingEvent, PendingKind, PendingTurn, RecapEntry, Reprocessing, Result, Store,
};

use crate::{
    batches::{self, Limits, PlannedRequest, SessionState, Source, SourceKind},
    prompt_set::PromptSet,
    providers::{Spent, price},
    turn_input::TurnInput,
};

/// Maximum number of earlier memories of a session that a request can refer to. The recap for a
/// model has fewer.
const RECAP_ENTRIES_MAX: u32 = 400;

/// Sessions that can be distilled concurrently.
#[derive(Debug, Default)]
pub struct Plan {
    /// Each with at least one request.
    pub sessions: Vec<SessionPlan>,
}

/// The requests of one session, sent one after another.
#[derive(Debug)]
pub struct SessionPlan {
    /// The client's session id.
    pub content_session: String,
    pub requests: Vec<PlannedRequest>,
    /// The session's memories so far, oldest first.
    pub recap: Vec<RecapEntry>,
}

impl Plan {
    /// Groups the pending events of these turns into requests.
    pub fn new(
        store: &Store,
        turns: Vec<PendingTurn>,
        by: Option<&Reprocessing>,
        limits: &Limits,
        now_us: u64,
    ) -> Result<Self> {
        let mut sessions = Vec::new();
        let planning = Progress::items("planning", turns.len());
        let mut turns = turns.into_iter().peekable();
        while let Some(first) = turns.next() {
            let row = first.session;
            let mut of_session = vec![first];
            while let Some(turn) = turns.next_if(|turn| turn.session == row) {
                of_session.push(turn);
            }
            planning.advance(of_session.len() as u64);
            let progress = store.session_progress(row)?;
            let state = SessionState {
                turn_last: progress.turn_last,
                turns_stopped: progress.stops.iter().map(|(turn, _)| *turn).collect(),
                is_ended: progress.is_ended,
                now_us,
            };
            let mut requests = requests(&of_session, &progress.stops, &state, limits);
            mark_continued(store, row, by, &mut requests)?;
            if !requests.is_empty() {
                let recap = store.session_recap(row, by, RECAP_ENTRIES_MAX)?;
                let content_session = of_session.swap_remove(0).content_session;
                sessions.push(SessionPlan { content_session, requests, recap });
            }
        }
        Ok(Self { sessions })
    }

    pub fn requests(&self) -> usize {
        self.sessions.iter().map(|session| session.requests.len()).sum()
    }

    pub fn events(&self) -> usize {
        let batches = self.sessions.iter().flat_map(|session| &session.requests);
        batches.map(|request| request.batch.sources.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}

/// Tokens of a full recap.
const DIGEST_TOKENS: u64 = 600;

/// Estimated size and cost of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    pub events: usize,
    pub requests: usize,
    /// Requests sent to a model.
    pub calls: usize,
    /// Tokens and cost; no cost if the price of the model is unknown.
    pub spent: Spent,
}

impl Estimate {
    /// Renders every request and counts its tokens.
    pub fn of(
        plan: &Plan,
        prompt_set: &PromptSet,
        log: &Log,
    ) -> Result<Self, claude_mem_log::Error> {
        let (events, requests) = (plan.events(), plan.requests());
        let mut estimate = Self { events, requests, ..Self::default() };
        if prompt_set.is_free() {
            estimate.spent.cost_micros = Some(0);
            return Ok(estimate);
        }
        let progress = Progress::items("estimating", requests);
        for session in &plan.sessions {
            for (index, planned) in session.requests.iter().enumerate() {
                progress.advance(1);
                let Some(input) = TurnInput::read(log, planned)? else { continue };
                let has_past = index > 0 || !session.recap.is_empty();
                estimate.calls += 1;
                estimate.spent.add(&prompt_set.request(&input, None).expected());
                estimate.spent.tokens_in += if has_past { DIGEST_TOKENS } else { 0 };
            }
        }
        estimate.spent.cost_micros = price(&prompt_set.model, &estimate.spent);
        Ok(estimate)
    }
}

/// Marks requests whose turn was started by an earlier request, in this run or before it. A
/// reprocessing restarts every turn.
fn mark_continued(
    store: &Store,
    session: i64,
    by: Option<&Reprocessing>,
    requests: &mut [PlannedRequest],
) -> Result<()> {
    let mut last = None;
    for request in requests {
        let turn = request.batch.turn;
        request.is_continued = last == Some(turn);
        if by.is_none() && last != Some(turn) {
            let from = request.prompts.first().copied().unwrap_or(Seq::START);
            let until = request.batch.sources[0].seq;
            request.is_continued = store.is_turn_begun(session, turn, from, until)?;
        }
        last = Some(turn);
    }
    Ok(())
}

fn requests(
    turns: &[PendingTurn],
    stops: &[(u32, Seq)],
    state: &SessionState,
    limits: &Limits,
) -> Vec<PlannedRequest> {
    let mut sources: Vec<Source> = turns
        .iter()
        .flat_map(|turn| turn.pending.iter().map(|pending| source(turn.turn, pending)))
        .collect();
    sources.sort_by_key(|source| source.seq);
    let prompts = |number: u32| {
        let turn = turns.binary_search_by_key(&number, |turn| turn.turn);
        turn.map(|index| turns[index].prompts.clone()).unwrap_or_default()
    };
    let previous_stop = |number: u32| {
        let before = stops.partition_point(|(turn, _)| *turn < number);
        before.checked_sub(1).map(|index| stops[index].1)
    };
    batches::gather(&sources, state, limits)
        .into_iter()
        .map(|batch| PlannedRequest {
            prompts: prompts(batch.turn),
            previous_stop: previous_stop(batch.turn),
            is_continued: false,
            batch,
        })
        .collect()
}

fn source(turn: u32, pending: &PendingEvent) -> Source {
    let kind = match pending.what {
        PendingKind::ToolUse => SourceKind::ToolUse,
        PendingKind::Stop => SourceKind::Stop,
        PendingKind::SubagentStop | PendingKind::CompactionStop => SourceKind::Aside,
    };
    Source {
        seq: pending.seq,
        id: *pending.id.as_bytes(),
        at_us: pending.at_us,
        turn,
        kind,
        bytes: pending.bytes,
        attempts: pending.attempts,
    }
}
