//! Applies today's redaction rules to all recorded events.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use claude_mem_events::{Event, Recorded, Versioned as _};
use claude_mem_log::{
    CompactionPolicy, Damage, Entry, Gap, Head, Item, Log, Options as LogOptions, RecordAction,
    SegmentInfo, maintain, roll,
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use crate::{
    compact::{begin, catch_up, sealed},
    purge,
};
use claude_mem_capture::redaction::{policy, redact as redact_event};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_memory::{semantic::erase_changed, store};
use claude_mem_privacy::Policy;

/// Result of a redaction.
#[derive(Debug, Default)]
pub struct Redacted {
    pub events: u64,
    /// Secrets found per rule, by day of recording.
    pub by_day: BTreeMap<Date, Rules>,
    pub segments: u64,
    /// Damaged segments that were not rewritten.
    pub left: Vec<u64>,
}

pub type Rules = BTreeMap<String, u64>;

/// Applies the rules to every event. Rows of changed events are rebuilt. It can be repeated after a
/// crash: clean events stay as they are.
pub fn redact(
    app: &mut App,
    is_dry_run: bool,
    progress: impl Fn(u64, u64),
) -> Result<Redacted, Failure> {
    let (dir, mut redacted) = (app.paths.log(), Redacted::default());
    let mut store = store::open(app)?;
    let Some(compactor) = begin(app)? else { return Ok(redacted) };
    let log = Log::open(&dir, LogOptions::default())?;
    if !is_dry_run {
        roll(&dir, &LogOptions::default())?;
    }
    maintain(&dir, &LogOptions::default())?;
    let segments = if is_dry_run { log.segments()? } else { sealed(&log)? };
    let total = segments.iter().map(|info| info.bytes).sum();
    let done = AtomicU64::new(0);
    // Secrets are always redacted: that is the purpose of the command.
    let policy = Policy { redact_secrets: true, ..policy(&app.settings) };
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
        // Before the first byte changes: the next fold rebuilds everything.
        store.mark_outdated()?;
        match compactor
            .rewrite(std::slice::from_ref(&info), &mut judge)
            .map_err(crate::compact::failed)?
        {
            Some(_) => redacted.segments += 1,
            None => redacted.left.push(info.number),
        }
    }
    if redacted.segments > 0 {
        store.mark_outdated()?;
        catch_up(&mut store, &log)?;
        purge::purge_all(app, &store)?;
        erase_changed(app, &store)?;
        store.vacuum()?;
        crate::repair::refresh_backup(app)?;
    }
    Ok(redacted)
}

struct Redacting {
    policy: Policy,
    /// Rules found since the last call.
    rules: Rules,
}

impl Redacting {
    /// Number of events of a segment with secrets, and their rules.
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
            if self.judge(&entry) == RecordAction::Keep {
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

    /// Counts the placeholders that redaction added.
    fn count(&mut self, before: &str, after: &str) {
        let mut known: Rules = BTreeMap::new();
        for rule in placeholders(before) {
            *known.entry(rule.to_owned()).or_default() += 1;
        }
        for rule in placeholders(after) {
            match known.get_mut(rule) {
                Some(count) if *count > 0 => *count -= 1,
                _ => *self.rules.entry(rule.to_owned()).or_default() += 1,
            }
        }
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

impl CompactionPolicy for Redacting {
    fn concerns(&mut self, head: &Head) -> bool {
        head.kind != claude_mem_events::LogCompacted::KIND
    }

    fn judge(&mut self, entry: &Entry<'_>) -> RecordAction {
        let mut recorded = Recorded::from_entry(entry);
        let is_unknown =
            matches!(recorded.event, Event::Unknown { .. } | Event::Erased { left: None, .. });
        if is_unknown {
            return RecordAction::Keep;
        }
        let before = (recorded.envelope.clone(), recorded.event.clone());
        redact_event(&mut recorded.envelope, &mut recorded.event, self.policy);
        if (&recorded.envelope, &recorded.event) == (&before.0, &before.1) {
            return RecordAction::Keep;
        }
        self.count(&format!("{before:?}"), &format!("{:?}", (&recorded.envelope, &recorded.event)));
        // A payload too large for a record is erased: keeping it would keep the secret.
        match (recorded.payload(), &recorded.event) {
            (Ok((_, _, payload)), Event::Erased { .. }) => RecordAction::Erase(payload),
            (Ok((schema, codec, payload)), _) => RecordAction::Replace { schema, codec, payload },
            (Err(_), _) => RecordAction::Erase(Vec::new()),
        }
    }

    /// Damage cannot be parsed, and it may be repaired later: keep it.
    fn damage(&mut self, _gap: &Gap) -> Damage {
        Damage::Keep
    }
}
