//! Replies and failures of the agent: their costs, and which events they answer.

use crate::{
    error::Result,
    fold::{
        projection::{Projection, Rows},
        sessions,
    },
    store::sql_values::some,
    xml::{Reply, Verdict},
};
use claude_mem_events::{AgentFailed, AgentReplied, Event, FailureClass, Recorded};
use rusqlite::params;
use std::sync::Arc;

/// Unreadable responses after which a request is parked.
const UNREADABLE_MAX: u32 = 3;
/// Time-outs after which a request is parked: it will time out again, and each time is paid for.
const TIMEOUTS_MAX: u32 = 5;

/// Decides if this failure parks its request. Attempt 0 is a failure of the provider, which parks
/// nothing.
pub fn is_parked_after(class: FailureClass, attempt: u32) -> bool {
    let attempts_max = match class {
        FailureClass::Unreadable => UNREADABLE_MAX,
        FailureClass::Transient => TIMEOUTS_MAX,
        // The same bytes would be refused again.
        FailureClass::Invalid => 1,
        FailureClass::RateLimit | FailureClass::Quota | FailureClass::Auth => return false,
    };
    attempt >= attempts_max
}

/// Replies and failures.
pub(crate) struct Replies;

impl Projection for Replies {
    fn name(&self) -> &'static str {
        "replies"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        if let Some(recorded) = RecordedReply::of(rows, event) {
            return insert(rows, event, &recorded);
        }
        match &event.event {
            Event::AgentFailed(failed) => fail(rows, event, failed),
            _ => Ok(()),
        }
    }
}

/// A reply, however it was recorded.
pub(crate) struct RecordedReply<'a> {
    pub(crate) replied: std::borrow::Cow<'a, AgentReplied>,
    pub(crate) reply: Arc<Reply>,
}

impl<'a> RecordedReply<'a> {
    /// The reply in an event, if it is one. Text that an older parser could not read was recorded
    /// with a failure; if today's parser can read it, it is a reply.
    pub(crate) fn of(rows: &Rows<'_>, event: &'a Recorded) -> Option<Self> {
        use std::borrow::Cow::{Borrowed, Owned};
        match &event.event {
            Event::AgentReplied(replied) => {
                Some(Self { replied: Borrowed(replied), reply: rows.reply(event, &replied.reply) })
            }
            Event::AgentFailed(failed)
                if failed.class == FailureClass::Unreadable
                    && (!failed.reply.is_empty() || rows.has_erased_reply()) =>
            {
                let reply = rows.reply(event, &failed.reply);
                let is_readable = reply.verdict != Verdict::Unreadable;
                is_readable.then(|| Self { replied: Owned(as_reply(failed)), reply })
            }
            _ => None,
        }
    }

    pub(crate) fn memories(&self) -> usize {
        self.reply.observations.len() + usize::from(self.reply.summary.is_some())
    }

    /// One memory's share of the tokens; the first one gets the remainder.
    pub(crate) fn tokens(&self, index: usize) -> i64 {
        let total = bounded(self.replied.tokens_in) + bounded(self.replied.tokens_out);
        let count = self.memories().max(1) as i64;
        total / count + if index == 0 { total % count } else { 0 }
    }
}

/// A count reported by a provider, limited so that sums fit a database integer.
fn bounded(count: u64) -> i64 {
    count.min(1 << 40) as i64
}

fn as_reply(failed: &AgentFailed) -> AgentReplied {
    AgentReplied {
        answers: failed.answers.clone(),
        provider: failed.provider.clone(),
        model: failed.model.clone(),
        prompt_version: failed.prompt_version.clone(),
        generation: failed.generation,
        reply: failed.reply.clone(),
        attempt: failed.attempt,
        tokens_in: failed.tokens_in,
        tokens_out: failed.tokens_out,
        cost_micros: failed.cost_micros,
        ..AgentReplied::default()
    }
}

fn insert(rows: &Rows<'_>, event: &Recorded, recorded: &RecordedReply<'_>) -> Result<()> {
    let (replied, reply) = (&recorded.replied, &recorded.reply);
    let seq = event.seq.raw() as i64;
    let sources = link(rows, seq, &replied.answers)?;
    let is_readable = reply.verdict != Verdict::Unreadable;
    let is_current = is_readable
        && replied.generation == 0
        && !rows.sources(event)?.is_forgotten
        && (sources == 0 || has_open_source(rows, seq)?);
    let verdict = match reply.verdict {
        Verdict::Answer => "answer",
        Verdict::Nothing => "nothing",
        Verdict::Unreadable => "unreadable",
    };
    let place = sessions::place(rows, event)?;
    let sql =
        "insert into replies (seq, event, at_us, session, project, provider, model, prompt_version,
             generation, memory_session, attempt, verdict, observations, summaries, skip_reason,
             is_cut, tokens_in, tokens_cached, tokens_out, cost_micros, duration_ms, bytes,
             sources, is_current)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
         ?19, ?20,
             ?21, ?22, ?23, ?24)";
    rows.run(
        sql,
        params![
            seq,
            event.id.as_bytes(),
            event.at_us() as i64,
            place.session,
            place.project,
            replied.provider,
            replied.model,
            replied.prompt_version,
            replied.generation,
            some(&replied.memory_session_id),
            replied.attempt,
            verdict,
            reply.observations.len() as i64,
            reply.summary.is_some(),
            reply.summary_skipped,
            reply.cut,
            bounded(replied.tokens_in),
            bounded(replied.tokens_cached),
            bounded(replied.tokens_out),
            bounded(replied.cost_micros),
            bounded(replied.duration_ms),
            rows.bytes(replied.reply.len()),
            sources as i64,
            is_current,
        ],
    )?;
    match (replied.generation, is_readable) {
        (0, true) => cover(rows, seq),
        (0, false) => {
            count_attempt(rows, &replied.answers, FailureClass::Unreadable, replied.attempt)
        }
        _ => Ok(()),
    }
}

/// Stores which events a reply answers; returns how many of them are known.
fn link(rows: &Rows<'_>, reply: i64, answers: &[[u8; 16]]) -> Result<usize> {
    let (known, sought) = (
        "insert or ignore into answers (source, reply) values (?1, ?2)",
        "insert or ignore into answers (source, reply)
             select seq, ?2 from events where event = ?1 and host = ?3",
    );
    let seqs = rows.seqs.borrow();
    let mut insert = rows.cached(known)?;
    answers.iter().try_fold(0, |sum, event| match seqs.get(event) {
        Some(seq) => Ok(sum + insert.execute((seq, reply))?),
        None => Ok(sum + rows.run(sought, (event, reply, rows.host))?),
    })
}

/// Whether any of the events that a reply answers has no current reply yet. If none has, another
/// process sent the same request and was faster.
fn has_open_source(rows: &Rows<'_>, reply: i64) -> Result<bool> {
    let sql = "select exists (select 1 from answers where reply = ?1 and not exists (
                   select 1 from answers as other join replies on replies.seq = other.reply
                   where other.source = answers.source and replies.is_current))";
    Ok(rows.cached(sql)?.query_row([reply], |row| row.get(0))?)
}

/// Marks the events that a reply answers as answered.
pub(crate) fn cover(rows: &Rows<'_>, reply: i64) -> Result<()> {
    let mut sources = rows.cached("select source from answers where reply = ?1")?;
    let mut sources = sources.query([reply])?;
    let mut tool_uses = rows.cached(
        "update tool_uses set answered_by = ?1, is_parked = 0 where seq = ?2 and answered_by is \
         null",
    )?;
    let mut stops = rows.cached(
        "update stops set answered_by = ?1, is_parked = 0 where seq = ?2 and answered_by is null",
    )?;
    while let Some(row) = sources.next()? {
        let source: i64 = row.get(0)?;
        if tool_uses.execute((reply, source))? == 0 {
            stops.execute((reply, source))?;
        }
    }
    Ok(())
}

/// Counts an attempt on every event of a request, and parks them after the last one.
fn count_attempt(
    rows: &Rows<'_>,
    answers: &[[u8; 16]],
    class: FailureClass,
    attempt: u32,
) -> Result<()> {
    let is_parked = is_parked_after(class, attempt);
    for table in ["tool_uses", "stops"] {
        let sql = format!(
            "update {table} set attempts = max(attempts, ?2), is_parked = max(is_parked, ?3)
             where answered_by is null
                 and seq = (select seq from events where event = ?1 and host = ?4)"
        );
        for event in answers {
            rows.run(&sql, (event, attempt, is_parked, rows.host))?;
        }
    }
    Ok(())
}

fn fail(rows: &Rows<'_>, event: &Recorded, failed: &AgentFailed) -> Result<()> {
    let place = sessions::place(rows, event)?;
    let sql =
        "insert into failures (seq, event, at_us, session, project, provider, model, prompt_version,
             generation, class, message, attempt, retry_after_ms, tokens_in, tokens_out,
             cost_micros, bytes, sources)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    rows.run(
        sql,
        params![
            event.seq.raw() as i64,
            event.id.as_bytes(),
            event.at_us() as i64,
            place.session,
            place.project,
            failed.provider,
            failed.model,
            failed.prompt_version,
            failed.generation,
            failed.class.name(),
            some(&failed.message),
            failed.attempt,
            bounded(failed.retry_after_ms),
            bounded(failed.tokens_in),
            bounded(failed.tokens_out),
            bounded(failed.cost_micros),
            rows.bytes(failed.reply.len()),
            failed.answers.len() as i64,
        ],
    )?;
    match (failed.generation, failed.class) {
        // These are not caused by the request.
        (_, FailureClass::RateLimit | FailureClass::Quota | FailureClass::Auth) => Ok(()),
        (0, class) if failed.attempt > 0 => {
            count_attempt(rows, &failed.answers, class, failed.attempt)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventFilter, test_log::TestLog};

    /// Fails a request this many times; returns the numbers of pending and parked events.
    fn after(class: FailureClass, attempts: u32) -> (u64, u64) {
        let mut scene = TestLog::new();
        let answers = vec![scene.tool("Bash", "{}"), scene.stop()];
        for attempt in 1..=attempts {
            let answers = answers.clone();
            scene.add(AgentFailed { answers, class, attempt, ..AgentFailed::default() });
        }
        let counts = scene.fold().counts().unwrap();
        (counts.outstanding, counts.parked)
    }

    #[test]
    fn a_request_is_parked_when_another_attempt_is_pointless() {
        assert_eq!(after(FailureClass::Unreadable, 2), (2, 0));
        assert_eq!(after(FailureClass::Unreadable, 3), (0, 2));
        assert_eq!(after(FailureClass::Transient, 4), (2, 0));
        assert_eq!(after(FailureClass::Transient, 5), (0, 2));
        assert_eq!(after(FailureClass::Invalid, 1), (0, 2));
        for class in [FailureClass::RateLimit, FailureClass::Quota, FailureClass::Auth] {
            assert_eq!(after(class, 9), (2, 0), "{class:?}");
        }
    }

    #[test]
    fn a_failure_counts_until_the_next_reply() {
        let mut scene = TestLog::new();
        let answers = vec![scene.tool("Bash", "{}")];
        let (class, message) = (FailureClass::Auth, "no".to_owned());
        scene.add(AgentFailed { class, message, ..AgentFailed::default() });
        let trouble = scene.fold().last_failure().unwrap().unwrap();
        assert_eq!((trouble.class.as_str(), trouble.message.as_deref()), ("auth", Some("no")));
        scene.reply(&answers, "<skip/>");
        assert_eq!(scene.fold().last_failure().unwrap(), None);
    }

    #[test]
    fn a_time_out_is_an_attempt_and_a_failure_of_the_provider_is_none() {
        let mut scene = TestLog::new();
        let answers = vec![scene.tool("Bash", "{}")];
        let mut attempts_after = |attempt| {
            let (answers, class) = (answers.clone(), FailureClass::Transient);
            scene.add(AgentFailed { answers, class, attempt, ..AgentFailed::default() });
            let turns = scene.fold().pending_turns(&EventFilter::default(), 9).unwrap();
            turns[0].pending[0].attempts
        };
        assert_eq!(attempts_after(0), 0);
        assert_eq!(attempts_after(1), 1);
        assert_eq!(attempts_after(2), 2);
        assert_eq!(attempts_after(0), 2);
    }
}
