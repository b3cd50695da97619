//! What there is to ask: every session with its questions in order.

use claude_mem_events::Seq;
use claude_mem_projections::{
    PendingEvent, PendingKind, PendingTurn, RecapEntry, Reprocessing, Result, Store,
};

use crate::{
    batches::{self, Batch, Limits, Source, Standing, What},
    recap::{Line, one_line},
};

/// More memories than these never fit into a digest.
const REMEMBERED_MAX: u32 = 60;

/// Sessions that can be asked about side by side.
#[derive(Debug, Default)]
pub struct Plan {
    /// Each with at least one question.
    pub sessions: Vec<SessionPlan>,
}

/// The questions about one session, to be asked one after another.
#[derive(Debug)]
pub struct SessionPlan {
    /// The watched program's own id of it.
    pub content_session: String,
    /// In order.
    pub questions: Vec<Planned>,
    /// What is remembered of it already.
    pub lines: Vec<Line>,
}

/// One question, as far as the tables know it; the texts are in the log.
#[derive(Debug)]
pub struct Planned {
    /// The events.
    pub batch: Batch,
    /// The prompts of their turn.
    pub prompts: Vec<Seq>,
}

impl Plan {
    /// Gathers what waits in these turns into questions.
    pub fn new(
        store: &Store,
        turns: Vec<PendingTurn>,
        by: Option<&Reprocessing>,
        limits: &Limits,
        now_us: u64,
    ) -> Result<Self> {
        let mut sessions = Vec::new();
        let mut turns = turns.into_iter().peekable();
        while let Some(first) = turns.next() {
            let row = first.session;
            let mut of_session = vec![first];
            while let Some(turn) = turns.next_if(|turn| turn.session == row) {
                of_session.push(turn);
            }
            let progress = store.session_progress(row)?;
            let standing = Standing {
                turn_last: progress.turn_last,
                turns_stopped: progress.turns_stopped,
                is_ended: progress.is_ended,
                now_us,
            };
            let questions = questions(&of_session, &standing, limits);
            if !questions.is_empty() {
                let remembered = store.session_recap(row, by, REMEMBERED_MAX)?;
                let content_session = of_session.swap_remove(0).content_session;
                let lines = remembered.into_iter().map(line).collect();
                sessions.push(SessionPlan { content_session, questions, lines });
            }
        }
        Ok(Self { sessions })
    }

    /// How many questions.
    pub fn questions(&self) -> usize {
        self.sessions.iter().map(|session| session.questions.len()).sum()
    }

    /// How many events.
    pub fn events(&self) -> usize {
        let batches = self.sessions.iter().flat_map(|session| &session.questions);
        batches.map(|question| question.batch.sources.len()).sum()
    }

    /// Whether there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}

fn questions(turns: &[PendingTurn], standing: &Standing, limits: &Limits) -> Vec<Planned> {
    let mut sources: Vec<Source> = turns
        .iter()
        .flat_map(|turn| turn.pending.iter().map(|pending| source(turn.turn, pending)))
        .collect();
    sources.sort_by_key(|source| source.seq);
    let prompts = |number: u32| {
        let turn = turns.iter().find(|turn| turn.turn == number);
        turn.map(|turn| turn.prompts.clone()).unwrap_or_default()
    };
    batches::gather(&sources, standing, limits)
        .into_iter()
        .map(|batch| Planned { prompts: prompts(batch.turn), batch })
        .collect()
}

fn source(turn: u32, pending: &PendingEvent) -> Source {
    let what = match pending.what {
        PendingKind::ToolUse => What::ToolUse,
        PendingKind::Stop => What::Stop,
        PendingKind::SubagentStop | PendingKind::CompactionStop => What::Aside,
    };
    Source {
        seq: pending.seq,
        id: *pending.id.as_bytes(),
        at_us: pending.at_us,
        turn,
        what,
        bytes: pending.bytes,
        attempts: pending.attempts,
    }
}

fn line(remembered: RecapEntry) -> Line {
    let RecapEntry { at_us, kind, text } = remembered;
    Line { at_us, text: one_line(&format!("{kind}: {text}")) }
}
