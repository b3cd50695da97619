//! Finding secrets in text: which bytes must not be kept, and what kind of secret they were.
//!
//! The rules are in [`rules`], one table. A hook lives for a millisecond, so nothing is compiled when
//! it starts: the first three bytes of every trigger are hashed into a table at build time, a text is
//! looked through once, and a rule's own check runs only where one of its triggers stands.

mod assignments;
mod cookies;
mod logins;
mod names;
mod rules;
mod shapes;
mod values;

pub(super) use assignments::Name;

use rules::{RULES, Rule, Shape};

/// A secret in a text.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The rule that found it, as named in the placeholder.
    pub(super) rule: &'static str,
}

/// The first secret at or after `from`. Both its ends are character boundaries of the text.
pub(super) fn next(text: &[u8], from: usize) -> Option<Found> {
    let mut first: Option<Found> = None;
    let mut at = from;
    // A secret may begin some way behind its trigger, and another one in between.
    let before = |first: Option<Found>| first.map_or(text, |found| &text[..found.start]);
    while let Some(trigger) = next_trigger(before(first), at) {
        if let Some(found) = at_trigger(text, trigger)
            && found.start >= from
            && first.is_none_or(|first| found.start < first.start)
        {
            first = Some(found);
        }
        at = trigger + 1;
        if first.is_some_and(|first| first.start <= at) {
            break;
        }
    }
    first
}

/// Whether any trigger stands in the text: false means there is no secret and no telling name in it.
pub(super) fn may_hold(text: &[u8]) -> bool {
    next_trigger(text, 0).is_some()
}

/// The token of a known shape that starts exactly here, such as `ghp_…`.
fn token_at(text: &[u8], at: usize) -> Option<Found> {
    rules_at(text, at).find_map(|(rule, length)| match rule.shape {
        Shape::Token(_) => rule.check(text, at, length),
        Shape::Custom(_) => None,
    })
}

fn at_trigger(text: &[u8], at: usize) -> Option<Found> {
    rules_at(text, at).find_map(|(rule, length)| rule.check(text, at, length))
}

/// The rules with a trigger at this place, and the trigger's length.
fn rules_at(text: &[u8], at: usize) -> impl Iterator<Item = (&'static Rule, usize)> {
    let rest = &text[at..];
    let mut entry = match rest {
        [a, b, c, ..] => INDEX.heads[slot(u32::from_le_bytes([*a, *b, *c, 0]))],
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

/// Where the next three bytes are those of a trigger, or share its slot.
fn next_trigger(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    // Eight bytes hold six windows of three; one branch for all six is what makes this fast.
    while let Some(block) = text[at..].first_chunk::<8>() {
        let block = u64::from_le_bytes(*block);
        let hit = |shift: u32| INDEX.heads[slot((block >> shift) as u32)];
        let hits = [hit(0), hit(8), hit(16), hit(24), hit(32), hit(40)];
        if hits.iter().fold(NONE, |any, hit| any | hit) != NONE {
            return hits.iter().position(|&hit| hit != NONE).map(|offset| at + offset);
        }
        at += 6;
    }
    let rest = &text[at..];
    let windows = rest.windows(3);
    let mut hits = windows
        .map(|window| INDEX.heads[slot(u32::from_le_bytes([window[0], window[1], window[2], 0]))]);
    hits.position(|hit| hit != NONE).map(|offset| at + offset)
}

/// A table of eight kilobytes: half of that and chance sends twice as many places to the rules.
const SLOT_BITS: u32 = 13;
/// No entry. Entries count from one, so that several lookups can be joined by `|`.
const NONE: u8 = 0;

/// The slot of the three low bytes: the fourth is multiplied out of sight. Of three thousand factors this
/// one meets the fewest other words in source code, prose and output. Letters lose their case here;
/// rules that mind it look again.
const fn slot(window: u32) -> usize {
    let folded = window | 0x2020_2020;
    (folded.wrapping_mul(0xd57b_1b00) >> (32 - SLOT_BITS)) as usize
}

struct Index {
    /// For each slot the first entry whose trigger hashes to it.
    heads: [u8; 1 << SLOT_BITS],
    /// For each entry the next one of the same slot.
    next: [u8; TRIGGERS + 1],
    /// The rule and which of its triggers.
    entries: [(u8, u8); TRIGGERS + 1],
}

const TRIGGERS: usize = {
    let (mut count, mut rule) = (0, 0);
    while rule < RULES.len() {
        count += RULES[rule].triggers.len();
        rule += 1;
    }
    assert!(count < u8::MAX as usize, "entries are counted in a byte");
    count
};

static INDEX: Index = {
    let mut index = Index {
        heads: [NONE; 1 << SLOT_BITS],
        next: [NONE; TRIGGERS + 1],
        entries: [(0, 0); TRIGGERS + 1],
    };
    // From the last to the first, so that each slot lists its rules in the order of the table.
    let mut entry = TRIGGERS;
    let mut rule = RULES.len();
    while rule > 0 {
        rule -= 1;
        let mut trigger = RULES[rule].triggers.len();
        while trigger > 0 {
            trigger -= 1;
            let bytes = RULES[rule].triggers[trigger].as_bytes();
            let slot = slot(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
            index.entries[entry] = (rule as u8, trigger as u8);
            index.next[entry] = index.heads[slot];
            index.heads[slot] = entry as u8;
            entry -= 1;
        }
    }
    index
};
