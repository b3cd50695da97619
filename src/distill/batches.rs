//! Which events are put to the agent together, and when.
//!
//! Pure: rows and the time come in, batches go out. Tool uses gather per turn until the assistant stops, so
//! that observations and summary are asked for in one call. A turn that grows too large is asked about in
//! pieces, and one whose end does not come is asked about without it.

use claude_mem_events::Seq;

/// Something that happened in a session and is still to be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Where it is in the log.
    pub seq: Seq,
    /// Who it is.
    pub id: [u8; 16],
    /// When it happened.
    pub at_us: u64,
    /// The number of the prompt that began its turn.
    pub turn: u32,
    /// What kind of thing.
    pub what: What,
    /// How much of it there is.
    pub bytes: u64,
    /// How often the agent was asked about it in vain.
    pub attempts: u32,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A tool was used.
    ToolUse,
    /// The assistant stopped: the turn is over, or at least rests.
    Stop,
    /// A subagent stopped, or the client summed up for itself. Its words are in the tool uses already, so
    /// that it goes along with them and is no reason to ask.
    Aside,
}

/// How a session stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    /// Its latest turn: no more comes of those before it.
    pub turn_last: u32,
    /// The turns in which the assistant stopped, answered or not: those are summed up by that question.
    pub turns_stopped: Vec<u32>,
    /// It ended.
    pub is_ended: bool,
    /// What time it is.
    pub now_us: u64,
}

/// When a batch is full, and when it has waited long enough.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Tool uses.
    pub count_max: usize,
    /// Bytes as a question shows them.
    pub bytes_max: u64,
    /// Of one tool use no more than this is shown.
    pub source_bytes_max: u64,
    /// A turn that goes on for this long is asked about before it is over; so is one whose session died.
    /// Nothing waits if there is no age.
    pub age_max_us: Option<u64>,
}

impl Default for Limits {
    /// 64 kB are some 16 000 tokens; of a tool use a question shows at most 4 kB of input and 4 kB of output.
    /// Nearly all turns of the sessions that were looked at end within a quarter of an hour.
    fn default() -> Self {
        Self {
            count_max: 60,
            bytes_max: 64 << 10,
            source_bytes_max: 8_000,
            age_max_us: Some(15 * 60 * 1_000_000),
        }
    }
}

/// Events put to the agent in one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// In the order of the log, never empty.
    pub sources: Vec<Source>,
    /// The turn they are of.
    pub turn: u32,
    /// Nothing more comes of this turn: a summary is asked for, too.
    pub is_over: bool,
}

impl Batch {
    /// Which attempt asking is, from 1.
    pub fn attempt(&self) -> u32 {
        self.sources.iter().map(|source| source.attempts).max().unwrap_or(0) + 1
    }

    /// The events, by id.
    pub fn answers(&self) -> Vec<[u8; 16]> {
        self.sources.iter().map(|source| source.id).collect()
    }
}

/// Everything of one session that is due, in the order in which it must be asked. `sources` are in the order
/// of the log.
pub(crate) fn gather(sources: &[Source], standing: &Standing, limits: &Limits) -> Vec<Batch> {
    let mut batches: Vec<Batch> = turns(sources)
        .into_iter()
        .flat_map(|(turn, sources)| of_turn(turn, sources, standing, limits))
        .collect();
    // What a subagent did in the background may belong to a turn before the last one.
    batches.sort_by_key(|batch| batch.sources.first().map(|source| source.seq));
    batches
}

/// Parts events by turn; turns in the order of their first event.
fn turns(sources: &[Source]) -> Vec<(u32, Vec<Source>)> {
    let mut turns: Vec<(u32, Vec<Source>)> = Vec::new();
    for source in sources {
        match turns.iter_mut().rev().find(|(turn, _)| *turn == source.turn) {
            Some((_, of_turn)) => of_turn.push(source.clone()),
            None => turns.push((source.turn, vec![source.clone()])),
        }
    }
    turns
}

fn of_turn(turn: u32, sources: Vec<Source>, standing: &Standing, limits: &Limits) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut open = Open::default();
    for source in sources {
        let is_stop = source.what == What::Stop;
        if !is_stop && open.would_overflow(&source, limits) {
            batches.push(open.close(turn, false));
        }
        open.add(source, limits);
        if is_stop {
            batches.push(open.close(turn, true));
        }
    }
    let is_past = standing.is_ended || turn < standing.turn_last;
    if open.count > 0 && (is_past || open.is_full(limits) || open.is_old(standing, limits)) {
        batches.push(open.close(turn, is_past && !standing.turns_stopped.contains(&turn)));
    }
    batches
}

/// A batch that is being filled.
#[derive(Default)]
struct Open {
    sources: Vec<Source>,
    count: usize,
    bytes: u64,
}

impl Open {
    fn would_overflow(&self, source: &Source, limits: &Limits) -> bool {
        source.what == What::ToolUse
            && (self.count >= limits.count_max
                || (self.count > 0 && self.bytes + shown(source, limits) > limits.bytes_max))
    }

    fn add(&mut self, source: Source, limits: &Limits) {
        if source.what == What::ToolUse {
            self.count += 1;
            self.bytes += shown(&source, limits);
        }
        self.sources.push(source);
    }

    fn is_full(&self, limits: &Limits) -> bool {
        self.count >= limits.count_max || self.bytes >= limits.bytes_max
    }

    /// Whether its first event has waited long enough.
    fn is_old(&self, standing: &Standing, limits: &Limits) -> bool {
        let Some(age_max_us) = limits.age_max_us else { return true };
        let first = self.sources.first().map_or(standing.now_us, |source| source.at_us);
        first.saturating_add(age_max_us) <= standing.now_us
    }

    fn close(&mut self, turn: u32, is_over: bool) -> Batch {
        let Self { sources, .. } = std::mem::take(self);
        Batch { sources, turn, is_over }
    }
}

/// How many bytes of a tool use a question shows at most.
fn shown(source: &Source, limits: &Limits) -> u64 {
    source.bytes.min(limits.source_bytes_max)
}

#[cfg(test)]
mod tests {
    use std::borrow::Borrow;

    use super::*;

    const MINUTE: u64 = 60 * 1_000_000;

    /// Events at a minute each: `t` a tool use, `s` a stop, `a` an aside, digits begin a turn.
    fn events(text: &str) -> Vec<Source> {
        let mut turn = 1;
        let mut events = Vec::new();
        for letter in text.chars() {
            let what = match letter {
                't' => What::ToolUse,
                's' => What::Stop,
                'a' => What::Aside,
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
                what,
                bytes: 1000,
                attempts: 0,
            });
        }
        events
    }

    /// Batches as text: the number of each event, a bar behind each batch, doubled if the turn is over.
    fn gathered(text: &str, standing: impl Borrow<Standing>, limits: Limits) -> String {
        let batches = gather(&events(text), standing.borrow(), &limits);
        let one = |batch: &Batch| {
            let ids: Vec<String> = batch.sources.iter().map(|s| s.id[0].to_string()).collect();
            format!("{}{}", ids.join(" "), if batch.is_over { "‖" } else { "|" })
        };
        batches.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn at(minute: u64) -> Standing {
        Standing { turn_last: 1, now_us: minute * MINUTE, ..Standing::default() }
    }

    #[test]
    fn a_turn_is_one_question_when_the_assistant_stops() {
        assert_eq!(gathered("ttts", at(4), Limits::default()), "1 2 3 4‖");
        assert_eq!(gathered("s", at(1), Limits::default()), "1‖");
        assert_eq!(gathered("ttstts", at(6), Limits::default()), "1 2 3‖ 4 5 6‖");
        assert_eq!(gathered("", at(6), Limits::default()), "");
    }

    #[test]
    fn a_turn_that_goes_on_waits_until_it_is_old() {
        assert_eq!(gathered("ttt", at(15), Limits::default()), "");
        assert_eq!(gathered("ttt", at(16), Limits::default()), "1 2 3|");
        let impatient = Limits { age_max_us: None, ..Limits::default() };
        assert_eq!(gathered("ttt", at(3), impatient), "1 2 3|");
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_old() {
        assert_eq!(gathered("ttt", at(0), Limits::default()), "");
    }

    #[test]
    fn nothing_more_is_waited_for_once_the_turn_is_past() {
        let next = Standing { turn_last: 2, ..at(3) };
        assert_eq!(gathered("1tt2t", next, Limits::default()), "1 2‖");
        let ended = Standing { is_ended: true, ..at(3) };
        assert_eq!(gathered("ttt", ended, Limits::default()), "1 2 3‖");
    }

    #[test]
    fn a_large_turn_is_asked_in_pieces_and_summed_up_in_the_last() {
        let by_count = Limits { count_max: 2, ..Limits::default() };
        assert_eq!(gathered("ttttts", at(6), by_count), "1 2| 3 4| 5 6‖");
        assert_eq!(gathered("tttt", at(6), by_count), "1 2| 3 4|", "full ones do not wait");
        let by_bytes = Limits { bytes_max: 2500, ..Limits::default() };
        assert_eq!(gathered("ttttts", at(6), by_bytes), "1 2| 3 4| 5 6‖");
        let one_each = Limits { bytes_max: 10, ..Limits::default() };
        assert_eq!(gathered("tts", at(6), one_each), "1| 2 3‖", "one is never too large");
    }

    #[test]
    fn of_a_huge_output_only_what_is_shown_counts() {
        let limits = Limits { bytes_max: 50, source_bytes_max: 10, ..Limits::default() };
        assert_eq!(gathered("tttts", at(6), limits), "1 2 3 4 5‖");
    }

    #[test]
    fn asides_go_along_and_are_no_reason_to_ask() {
        let impatient = Limits { age_max_us: None, ..Limits::default() };
        assert_eq!(gathered("aa", at(60), impatient), "");
        assert_eq!(gathered("tas", at(60), impatient), "1 2 3‖");
        assert_eq!(gathered("tsa", at(60), impatient), "1 2‖");
    }

    #[test]
    fn late_work_of_an_earlier_turn_is_asked_in_the_order_of_the_log() {
        let standing = Standing { turn_last: 2, turns_stopped: vec![1, 2], ..at(6) };
        let batches = gathered("1ts2t1t2s", standing, Limits::default());
        assert_eq!(batches, "1 2‖ 3 5‖ 4|", "its turn was summed up already");
    }

    #[test]
    fn the_attempt_is_one_above_the_highest_before() {
        let mut sources = events("tt");
        sources[1].attempts = 2;
        let batch = Batch { sources, turn: 1, is_over: false };
        assert_eq!(batch.attempt(), 3);
    }
}
