//! Today's rules for secrets, applied to everything that was recorded before there were such rules.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use claude_mem_events::{Event, Left, Recorded, Versioned as _};
use claude_mem_log::{
    Damage, Entry, Fate, Gap, Head, Item, Judge, Log, Options as LogOptions, SegmentInfo, maintain,
    roll,
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{begin, catch_up, purge, sealed};
use crate::{
    app::App,
    failure::Failure,
    memory,
    privacy::{Policy, clean_json, clean_text},
};

/// What it came to.
#[derive(Debug, Default)]
pub(crate) struct Redacted {
    /// Events in which something was replaced, or would be.
    pub(crate) events: u64,
    /// How many secrets each rule finds, by the day on which they were recorded.
    pub(crate) by_day: BTreeMap<Date, Rules>,
    /// Segments that were rewritten for that.
    pub(crate) segments: u64,
    /// Segments that had to be left as they are, because they are damaged.
    pub(crate) left: Vec<u64>,
}

/// Rules, and how many secrets each of them finds.
pub(crate) type Rules = BTreeMap<String, u64>;

const BYTES_MAX: usize = 256 << 20;

/// Applies the rules to every event. What was made of events that are others now is drawn again. Killed at any
/// moment, it can be done again: what is clean stays as it is.
pub(crate) fn redact(
    app: &mut App,
    is_dry_run: bool,
    progress: impl Fn(u64, u64),
) -> Result<Redacted, Failure> {
    let (dir, mut redacted) = (app.paths.log(), Redacted::default());
    let mut store = memory::open(app)?;
    let Some(compactor) = begin(app)? else { return Ok(redacted) };
    let log = Log::open(&dir, LogOptions::default())?;
    if !is_dry_run {
        roll(&dir, &LogOptions::default())?;
    }
    maintain(&dir, &LogOptions::default())?;
    let segments = if is_dry_run { log.segments()? } else { sealed(&log)? };
    let total = segments.iter().map(|info| info.bytes).sum();
    let done = AtomicU64::new(0);
    // Nothing is cut: a record is smaller than this.
    let (field_bytes_max, total_bytes_max) = (BYTES_MAX, BYTES_MAX);
    let policy = Policy { redact_secrets: true, field_bytes_max, total_bytes_max };
    let mut judge = Redacting { policy, rules: Rules::new() };
    for info in segments {
        let found = judge.search(&log, &info, &mut redacted.by_day)?;
        progress(done.fetch_add(info.bytes, Relaxed) + info.bytes, total);
        if found == 0 {
            continue;
        }
        redacted.events += found;
        if is_dry_run {
            continue;
        }
        // Before the first byte changes: whoever folds from now on draws everything again.
        store.outdate()?;
        match compactor.rewrite(std::slice::from_ref(&info), &mut judge).map_err(super::failed)? {
            Some(_) => redacted.segments += 1,
            None => redacted.left.push(info.number),
        }
    }
    if redacted.segments > 0 {
        store.outdate()?;
        catch_up(&mut store, &log)?;
        purge::everything(app, &store)?;
        store.tidy()?;
    }
    Ok(redacted)
}

struct Redacting {
    policy: Policy,
    /// What was found since this was last taken.
    rules: Rules,
}

impl Redacting {
    /// How many events of a segment are not clean, and which rules say so.
    fn search(
        &mut self,
        log: &Log,
        info: &SegmentInfo,
        by_day: &mut BTreeMap<Date, Rules>,
    ) -> Result<u64, Failure> {
        let zone = TimeZone::system();
        let mut reader = log.read_from(claude_mem_events::Seq::new(info.number, 0));
        let mut found = 0;
        while let Some(item) = reader.next()? {
            let Item::Record(entry) = item else { continue };
            if entry.seq.segment() > info.number_last {
                break;
            }
            self.rules.clear();
            if self.judge(&entry) == Fate::Keep {
                continue;
            }
            found += 1;
            let micros = i64::try_from(entry.id.time_us()).unwrap_or(i64::MAX);
            let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
            let day = by_day.entry(time.to_zoned(zone.clone()).date()).or_default();
            for (rule, count) in std::mem::take(&mut self.rules) {
                *day.entry(rule).or_default() += count;
            }
        }
        Ok(found)
    }

    fn text(&mut self, text: &mut String) {
        if !text.is_empty() {
            let cleaned = clean_text(text, self.policy).text;
            self.replace(text, cleaned);
        }
    }

    /// Counts the placeholders that the text did not have before.
    fn replace(&mut self, text: &mut String, cleaned: String) {
        if *text != cleaned {
            let mut before: Rules = BTreeMap::new();
            for rule in placeholders(text) {
                *before.entry(rule.to_owned()).or_default() += 1;
            }
            for rule in placeholders(&cleaned) {
                match before.get_mut(rule) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ => *self.rules.entry(rule.to_owned()).or_default() += 1,
                }
            }
            *text = cleaned;
        }
    }

    fn texts(&mut self, texts: &mut [String]) {
        for text in texts {
            self.text(text);
        }
    }

    /// JSON, if it is that; cut in the middle it may be no longer.
    fn json(&mut self, json: &mut String) {
        match serde_json::from_str::<serde::de::IgnoredAny>(json) {
            Ok(_) => {
                let cleaned = clean_json(json, self.policy);
                self.replace(json, cleaned);
            }
            Err(_) => self.text(json),
        }
    }

    fn clean(&mut self, event: &mut Event) {
        match event {
            Event::SessionStarted(started) => self.json(&mut started.extra),
            Event::PromptSubmitted(prompt) => {
                self.text(&mut prompt.prompt);
                self.json(&mut prompt.extra);
            }
            Event::ToolUsed(used) => {
                self.json(&mut used.input);
                self.json(&mut used.output);
                self.text(&mut used.error);
                self.json(&mut used.extra);
            }
            Event::SummaryRequested(stop) => {
                self.text(&mut stop.last_user_message);
                self.text(&mut stop.last_assistant_message);
                self.json(&mut stop.extra);
            }
            Event::SessionEnded(ended) => self.json(&mut ended.extra),
            Event::AgentReplied(replied) => self.text(&mut replied.reply),
            Event::AgentFailed(failed) => {
                self.text(&mut failed.message);
                self.text(&mut failed.reply);
            }
            Event::MemoryAdded(memory) => {
                self.text(&mut memory.title);
                self.text(&mut memory.text);
                self.texts(&mut memory.concepts);
                self.json(&mut memory.metadata);
            }
            Event::Forgotten(forgotten) => self.text(&mut forgotten.reason),
            Event::Imported(imported) => self.json(&mut imported.row),
            Event::InputUnreadable(input) => {
                self.text(&mut input.error);
                self.text(&mut input.text);
            }
            Event::ReprocessStarted(_)
            | Event::ReprocessFinished(_)
            | Event::ProjectMerged(_)
            | Event::LogCompacted(_)
            | Event::Erased { .. }
            | Event::Unknown { .. } => {}
        }
    }

    fn clean_left(&mut self, left: &Left) -> Left {
        let mut left = left.clone();
        self.json(&mut left.reply);
        if let Some(event) = &mut left.event {
            self.clean(event);
        }
        left
    }
}

/// The rules named by the placeholders in a text.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |rule: &&str| {
        !rule.is_empty() && rule.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.split("[redacted:")
        .skip(1)
        .filter_map(|rest| rest.split_once(']'))
        .map(|(rule, _)| rule)
        .filter(is_name)
}

impl Judge for Redacting {
    fn concerns(&mut self, head: &Head) -> bool {
        head.kind != claude_mem_events::LogCompacted::KIND
    }

    fn judge(&mut self, entry: &Entry<'_>) -> Fate {
        let mut recorded = Recorded::from_entry(entry);
        if let Event::Erased { left, .. } = &recorded.event {
            let Some(left) = left else { return Fate::Keep };
            // A payload that no record can hold is erased: to keep it would keep the secret.
            let payload = self.clean_left(left).encode(&recorded.envelope).unwrap_or_default();
            return if payload == entry.payload { Fate::Keep } else { Fate::Erase(payload) };
        }
        let before = recorded.event.clone();
        self.clean(&mut recorded.event);
        if recorded.event == before {
            return Fate::Keep;
        }
        match recorded.payload() {
            Ok((schema, codec, payload)) => Fate::Replace { schema, codec, payload },
            Err(_) => Fate::Erase(Vec::new()),
        }
    }

    /// Nobody can tell what is in there, and it may be mended.
    fn damage(&mut self, _gap: &Gap) -> Damage {
        Damage::Keep
    }
}
