//! Finds secrets in text.
//!
//! The rules are in [`table`]. A hook runs for a millisecond, so nothing is compiled at start: the
//! first three bytes of every trigger are hashed into a table at build time. The text is scanned
//! once, and a rule's check runs only at its triggers.

mod after_name;
mod assignments;
mod commands;
mod credential_files;
mod encoded;
mod escapes;
mod headers;
mod kubernetes;
mod languages;
mod names;
mod punctuation;
mod randomness;
mod rules;
mod shapes;
mod table;
mod tables;
mod values;

pub(super) use assignments::Name;
pub(super) use escapes::redact_escaped;
pub(super) use kubernetes::is_kubernetes_secret;

use std::collections::VecDeque;

use crate::work;
use rules::{Rule, Shape};
use table::{ASSIGNMENT, RULES};

/// A secret in a text.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The rule that matched, as named in the placeholder.
    pub(super) rule: &'static str,
}

/// Finds the secrets of a text, in order.
pub(super) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    /// Secrets that were found before their turn, in order: the cells of a table.
    ahead: VecDeque<Found>,
    /// Up to here, headers of tables were read.
    tables_end: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, ahead: VecDeque::new(), tables_end: 0 }
    }

    /// A scan that also reports a secret which the caller knows.
    pub(super) fn with(text: &'a [u8], known: Option<Found>) -> Self {
        Self { ahead: known.into_iter().collect(), ..Self::new(text) }
    }

    /// The secret at or before `at`, or the earliest of those that are known.
    fn ahead(&mut self) -> Option<Found> {
        while self.ahead.front().is_some_and(|found| found.start < self.at) {
            self.ahead.pop_front();
        }
        self.ahead.front().copied()
    }

    fn read_table(&mut self, trigger: usize) {
        if trigger < self.tables_end {
            return;
        }
        let Some((cells, end)) = assignments::table_around(self.text, trigger) else { return };
        self.tables_end = end;
        self.ahead.extend(cells);
    }
}

impl Iterator for Scan<'_> {
    type Item = Found;

    /// The next secret. Both ends are character boundaries. The result is meaningless if the work
    /// limit was reached.
    fn next(&mut self) -> Option<Found> {
        let (text, from) = (self.text, self.at);
        let mut first = self.ahead();
        let mut at = from;
        // A secret may start after its trigger, and another secret may start before it.
        while first.is_none_or(|first| first.start > at)
            && let Some(trigger) =
                next_trigger(first.map_or(text, |found| &text[..found.start]), at)
            && !work::is_over()
        {
            let mut is_name = false;
            let found = rules_at(text, trigger).find_map(|(rule, length)| {
                is_name |= rule.name == ASSIGNMENT;
                rule.check(text, trigger, length)
            });
            if found.is_none() && is_name {
                self.read_table(trigger);
                first = first.or_else(|| self.ahead());
            }
            let found = found.filter(|found| found.start >= from);
            first = match (found, first) {
                (Some(found), Some(known)) if found.start >= known.start => Some(known),
                (found, known) => found.or(known),
            };
            at = trigger + 1;
        }
        self.at = first.map_or(text.len(), |found| found.end);
        first
    }
}

/// Whether the text contains any trigger. If not, it has neither secrets nor names of secrets.
pub(super) fn may_hold(text: &[u8]) -> bool {
    next_trigger(text, 0).is_some()
}

/// The token of a known format that starts exactly here, such as `ghp_…`.
fn token_at(text: &[u8], at: usize) -> Option<Found> {
    rules_at(text, at).find_map(|(rule, length)| match rule.shape {
        Shape::Token(_) => rule.check(text, at, length),
        Shape::Around(..) | Shape::Custom(_) => None,
    })
}

/// The rules with a trigger at this offset, and the length of the trigger.
fn rules_at(text: &[u8], at: usize) -> impl Iterator<Item = (&'static Rule, usize)> {
    let rest = &text[at..];
    let mut entry = match rest {
        [a, b, c, ..] => INDEX.heads[head(slot(u32::from_le_bytes([*a, *b, *c, 0])))],
        _ => NONE,
    };
    std::iter::from_fn(move || {
        while entry != NONE {
            let (rule, trigger) = INDEX.entries[usize::from(entry)];
            entry = INDEX.next[usize::from(entry)];
            let rule = &RULES[usize::from(rule)];
            let trigger = rule.triggers[usize::from(trigger)];
            if rule.is_trigger(rest, trigger) {
                return Some((rule, trigger.len()));
            }
        }
        None
    })
}

/// The next offset whose three bytes are those of a trigger, or share its slot.
fn next_trigger(text: &[u8], from: usize) -> Option<usize> {
    let found = find_trigger(text, from);
    work::count(found.unwrap_or(text.len()).saturating_sub(from) + 1);
    found
}

fn find_trigger(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    // Eight bytes have six windows of three. One branch for all six makes this fast.
    while let Some(block) = text[at..].first_chunk::<8>() {
        let block = u64::from_le_bytes(*block);
        let hit = |shift: u32| INDEX.holds[slot((block >> shift) as u32)];
        let hits = [hit(0), hit(8), hit(16), hit(24), hit(32), hit(40)];
        if hits.iter().fold(0, |any, hit| any | hit) != 0 {
            return hits.iter().position(|&hit| hit != 0).map(|offset| at + offset);
        }
        at += 6;
    }
    let rest = &text[at..];
    let mut windows = rest.windows(3);
    let slot_of = |window: &[u8]| slot(u32::from_le_bytes([window[0], window[1], window[2], 0]));
    windows.position(|window| INDEX.holds[slot_of(window)] != 0).map(|offset| at + offset)
}

/// A table of 16 KB. With half the size, there are twice as many false matches.
const SLOT_BITS: u32 = 14;
/// The number of lists, as a power of two.
const HEAD_BITS: u32 = 9;
/// No entry: entries are numbered from 1.
const NONE: u16 = 0;

/// The slot of the three low bytes; the multiplication drops the fourth. It ignores case. Rules
/// that need the case check it again.
const fn slot(window: u32) -> usize {
    let folded = window | 0x2020_2020;
    (folded.wrapping_mul(0xd57b_1b00) >> (32 - SLOT_BITS)) as usize
}

const fn head(slot: usize) -> usize {
    slot >> (SLOT_BITS - HEAD_BITS)
}

struct Index {
    /// Whether a trigger hashes to each slot.
    holds: [u8; 1 << SLOT_BITS],
    /// The first entry of each list.
    heads: [u16; 1 << HEAD_BITS],
    /// The next entry of the same list.
    next: [u16; TRIGGERS + 1],
    /// The rule and the index of its trigger.
    entries: [(u16, u8); TRIGGERS + 1],
}

const TRIGGERS: usize = {
    let (mut count, mut rule) = (0, 0);
    while rule < RULES.len() {
        count += RULES[rule].triggers.len();
        rule += 1;
    }
    count
};

static INDEX: Index = {
    let mut index = Index {
        holds: [0; 1 << SLOT_BITS],
        heads: [NONE; 1 << HEAD_BITS],
        next: [NONE; TRIGGERS + 1],
        entries: [(0, 0); TRIGGERS + 1],
    };
    // Backwards, so that each list has its rules in the order of the table.
    let mut entry = TRIGGERS;
    let mut rule = RULES.len();
    while rule > 0 {
        rule -= 1;
        let mut trigger = RULES[rule].triggers.len();
        while trigger > 0 {
            trigger -= 1;
            let bytes = RULES[rule].triggers[trigger].as_bytes();
            let slot = slot(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
            index.holds[slot] = 1;
            index.entries[entry] = (rule as u16, trigger as u8);
            index.next[entry] = index.heads[head(slot)];
            index.heads[head(slot)] = entry as u16;
            entry -= 1;
        }
    }
    index
};
