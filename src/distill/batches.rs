//! Groups pending events into requests.
//!
//! Pure: rows and the time in, batches out. Tool uses are collected per turn until the assistant
//! stops, so that one request yields observations and summary. For a model, a large turn is split,
//! and a turn that does not end is sent without its end once it is old enough. The built-in rules
//! have no context window and no price, so they get complete turns.

use claude_mem_events::Seq;

/// A pending event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub seq: Seq,
    pub id: [u8; 16],
    pub at_us: u64,
    /// Number of the prompt that started its turn.
    pub turn: u32,
    pub kind: SourceKind,
    pub bytes: u64,
    /// Failed requests that included it.
    pub attempts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    ToolUse,
    /// The assistant stopped: the turn is over or paused.
    Stop,
    /// A subagent stopped, or the client compacted its context. Its text is in the tool uses
    /// already, so it joins their batch and never starts one.
    Aside,
}

/// State of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionState {
    /// Its latest turn. Earlier turns get no more events.
    pub turn_last: u32,
    /// Turns in which the assistant stopped, distilled or not, in order. The request with the stop
    /// yields their summary.
    pub turns_stopped: Vec<u32>,
    pub is_ended: bool,
    pub now_us: u64,
}

/// When a batch is full or old enough.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Tool uses.
    pub count_max: usize,
    /// Bytes, as rendered in a request.
    pub bytes_max: u64,
    /// At most this much of one tool use is rendered.
    pub source_bytes_max: u64,
    /// Age at which an unfinished turn is sent, for long turns and for sessions that died. `None`
    /// sends at once.
    pub age_max_us: Option<u64>,
    /// A turn is sent as a whole: its age counts from its last event, and a turn without a stop
    /// counts as over when it is sent.
    pub is_whole: bool,
}

impl Default for Limits {
    /// 64 kB are about 16 000 tokens; a request shows at most 4 kB of input and 4 kB of output of a
    /// tool use. Nearly all turns of the sessions we examined end within 15 minutes.
    fn default() -> Self {
        Self {
            count_max: 60,
            bytes_max: 64 << 10,
            source_bytes_max: 8_000,
            age_max_us: Some(15 * MINUTE_US),
            is_whole: false,
        }
    }
}

const MINUTE_US: u64 = 60 * 1_000_000;

impl Limits {
    /// For the built-in rules. The limits only bound memory: no turn of the sessions we examined
    /// reaches a tenth of them. A turn without an event for two hours was abandoned, or waits for a
    /// user who is away.
    pub(crate) fn whole_turns() -> Self {
        Self {
            count_max: 5_000,
            bytes_max: 64 << 20,
            source_bytes_max: u64::MAX,
            age_max_us: Some(120 * MINUTE_US),
            is_whole: true,
        }
    }

    /// When an unfinished turn with these first and last events is due, in microseconds.
    pub(crate) fn due_us(&self, first_us: u64, last_us: u64) -> u64 {
        let from = if self.is_whole { last_us } else { first_us };
        self.age_max_us.map_or(0, |age| from.saturating_add(age))
    }
}

/// Events that go into one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// In log order, never empty.
    pub sources: Vec<Source>,
    pub turn: u32,
    /// The turn is complete: the request asks for a summary as well.
    pub is_over: bool,
}

/// One request as known to the tables; the texts are in the log.
#[derive(Debug)]
pub struct PlannedRequest {
    pub batch: Batch,
    /// Prompts of the turn.
    pub prompts: Vec<Seq>,
    /// Last stop of the previous turn: a short prompt answers its message.
    pub previous_stop: Option<Seq>,
    /// Another request covers the beginning of the turn.
    pub is_continued: bool,
}

impl Batch {
    /// Number of the next attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.sources.iter().map(|source| source.attempts).max().unwrap_or(0) + 1
    }

    pub(crate) fn event_ids(&self) -> Vec<[u8; 16]> {
        self.sources.iter().map(|source| source.id).collect()
    }
}

/// Batches of one session that are due, in the order to send them. `sources` are in log order.
pub(crate) fn gather(sources: &[Source], state: &SessionState, limits: &Limits) -> Vec<Batch> {
    let mut by_turn = sources.to_vec();
    by_turn.sort_by_key(|source| source.turn);
    let of_turn = |sources: &[Source]| of_turn(sources[0].turn, sources, state, limits);
    let mut batches: Vec<Batch> =
        by_turn.chunk_by(|one, next| one.turn == next.turn).flat_map(of_turn).collect();
    // Background work of a subagent may belong to a turn before the last one.
    batches.sort_by_key(|batch| batch.sources.first().map(|source| source.seq));
    batches
}

fn of_turn(turn: u32, sources: &[Source], state: &SessionState, limits: &Limits) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut open = Open::default();
    for source in sources {
        let is_stop = source.kind == SourceKind::Stop;
        if !is_stop && open.would_overflow(source, limits) {
            batches.push(open.close(turn, false));
        }
        open.add(source.clone(), limits);
        if is_stop {
            batches.push(open.close(turn, true));
        }
    }
    let is_past = state.is_ended || turn < state.turn_last;
    if open.count > 0 && (is_past || open.is_full(limits) || open.is_old(state, limits)) {
        let is_over = is_past || limits.is_whole && !open.is_full(limits);
        batches
            .push(open.close(turn, is_over && state.turns_stopped.binary_search(&turn).is_err()));
    }
    batches
}

#[derive(Default)]
struct Open {
    sources: Vec<Source>,
    count: usize,
    bytes: u64,
}

impl Open {
    fn would_overflow(&self, source: &Source, limits: &Limits) -> bool {
        source.kind == SourceKind::ToolUse
            && (self.count >= limits.count_max
                || (self.count > 0 && self.bytes + shown(source, limits) > limits.bytes_max))
    }

    fn add(&mut self, source: Source, limits: &Limits) {
        if source.kind == SourceKind::ToolUse {
            self.count += 1;
            self.bytes += shown(&source, limits);
        }
        self.sources.push(source);
    }

    fn is_full(&self, limits: &Limits) -> bool {
        self.count >= limits.count_max || self.bytes >= limits.bytes_max
    }

    /// Whether it reached the maximum age.
    fn is_old(&self, state: &SessionState, limits: &Limits) -> bool {
        let at_us = |source: Option<&Source>| source.map_or(state.now_us, |source| source.at_us);
        limits.due_us(at_us(self.sources.first()), at_us(self.sources.last())) <= state.now_us
    }

    fn close(&mut self, turn: u32, is_over: bool) -> Batch {
        let Self { sources, .. } = std::mem::take(self);
        Batch { sources, turn, is_over }
    }
}

/// Bytes of a tool use that a request shows at most.
fn shown(source: &Source, limits: &Limits) -> u64 {
    source.bytes.min(limits.source_bytes_max)
}

#[cfg(test)]
mod tests {
    use std::borrow::Borrow;

    use super::*;

    const MINUTE: u64 = MINUTE_US;

    /// One event per minute: `t` a tool use, `s` a stop, `a` an aside, digits start a turn.
    fn events(text: &str) -> Vec<Source> {
        let mut turn = 1;
        let mut events = Vec::new();
        for letter in text.chars() {
            let kind = match letter {
                't' => SourceKind::ToolUse,
                's' => SourceKind::Stop,
                'a' => SourceKind::Aside,
                digit => {
                    turn = digit.to_digit(10).unwrap();
                    continue;
                }
            };
            let number = events.len() as u64 + 1;
            events.push(Source {
                seq: Seq::new(1, number),
                id: [number as u8; 16],
                at_us: number * MINUTE,
                turn,
                kind,
                bytes: 1000,
                attempts: 0,
            });
        }
        events
    }

    /// Batches as text: event numbers, then `|`, or `‖` if the turn is over.
    fn gathered(text: &str, state: impl Borrow<SessionState>, limits: Limits) -> String {
        let batches = gather(&events(text), state.borrow(), &limits);
        let one = |batch: &Batch| {
            let ids: Vec<String> = batch.sources.iter().map(|s| s.id[0].to_string()).collect();
            format!("{}{}", ids.join(" "), if batch.is_over { "‖" } else { "|" })
        };
        batches.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn at(minute: u64) -> SessionState {
        SessionState { turn_last: 1, now_us: minute * MINUTE, ..SessionState::default() }
    }

    #[test]
    fn a_turn_is_one_request_when_the_assistant_stops() {
        assert_eq!(gathered("ttts", at(4), Limits::default()), "1 2 3 4‖");
        assert_eq!(gathered("s", at(1), Limits::default()), "1‖");
        assert_eq!(gathered("ttstts", at(6), Limits::default()), "1 2 3‖ 4 5 6‖");
        assert_eq!(gathered("", at(6), Limits::default()), "");
    }

    #[test]
    fn an_unfinished_turn_is_sent_once_it_is_old() {
        assert_eq!(gathered("ttt", at(15), Limits::default()), "");
        assert_eq!(gathered("ttt", at(16), Limits::default()), "1 2 3|");
        let impatient = Limits { age_max_us: None, ..Limits::default() };
        assert_eq!(gathered("ttt", at(3), impatient), "1 2 3|");
    }

    #[test]
    fn the_rules_get_complete_or_abandoned_turns() {
        let whole = Limits::whole_turns();
        let many = "t".repeat(200);
        let all: Vec<String> = (1..=200).map(|n: u8| n.to_string()).collect();
        assert_eq!(gathered(&many, at(200), whole), "", "however long it takes");
        assert_eq!(gathered(&many, at(319), whole), "");
        assert_eq!(gathered(&many, at(320), whole), format!("{}‖", all.join(" ")));
        let now = Limits { age_max_us: None, ..whole };
        assert_eq!(gathered("ttt", at(3), now), "1 2 3‖");
        let next = SessionState { turn_last: 2, ..at(3) };
        assert_eq!(gathered("1tt2t", next, whole), "1 2‖");
        let bounded = Limits { count_max: 2, ..whole };
        assert_eq!(gathered("ttttts", at(6), bounded), "1 2| 3 4| 5 6‖", "memory is bounded");
    }

    #[test]
    fn a_turn_is_not_old_after_the_clock_is_set_back() {
        assert_eq!(gathered("ttt", at(0), Limits::default()), "");
    }

    #[test]
    fn a_past_turn_is_sent_at_once() {
        let next = SessionState { turn_last: 2, ..at(3) };
        assert_eq!(gathered("1tt2t", next, Limits::default()), "1 2‖");
        let ended = SessionState { is_ended: true, ..at(3) };
        assert_eq!(gathered("ttt", ended, Limits::default()), "1 2 3‖");
    }

    #[test]
    fn a_large_turn_is_split_and_summarized_in_the_last_part() {
        let by_count = Limits { count_max: 2, ..Limits::default() };
        assert_eq!(gathered("ttttts", at(6), by_count), "1 2| 3 4| 5 6‖");
        assert_eq!(gathered("tttt", at(6), by_count), "1 2| 3 4|", "full batches are due at once");
        let by_bytes = Limits { bytes_max: 2500, ..Limits::default() };
        assert_eq!(gathered("ttttts", at(6), by_bytes), "1 2| 3 4| 5 6‖");
        let one_each = Limits { bytes_max: 10, ..Limits::default() };
        assert_eq!(
            gathered("tts", at(6), one_each),
            "1| 2 3‖",
            "a single event is never too large"
        );
    }

    #[test]
    fn only_the_shown_part_of_a_huge_output_counts() {
        let limits = Limits { bytes_max: 50, source_bytes_max: 10, ..Limits::default() };
        assert_eq!(gathered("tttts", at(6), limits), "1 2 3 4 5‖");
    }

    #[test]
    fn asides_join_a_batch_and_never_start_one() {
        let impatient = Limits { age_max_us: None, ..Limits::default() };
        assert_eq!(gathered("aa", at(60), impatient), "");
        assert_eq!(gathered("tas", at(60), impatient), "1 2 3‖");
        assert_eq!(gathered("tsa", at(60), impatient), "1 2‖");
    }

    #[test]
    fn late_work_of_an_earlier_turn_is_sent_in_log_order() {
        let state = SessionState { turn_last: 2, turns_stopped: vec![1, 2], ..at(6) };
        let batches = gathered("1ts2t1t2s", state, Limits::default());
        assert_eq!(batches, "1 2‖ 3 5‖ 4|", "its turn has a summary already");
    }

    #[test]
    fn the_attempt_is_one_above_the_highest_so_far() {
        let mut sources = events("tt");
        sources[1].attempts = 2;
        let batch = Batch { sources, turn: 1, is_over: false };
        assert_eq!(batch.attempt(), 3);
    }
}
