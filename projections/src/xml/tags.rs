//! Finds the tags of our contract in text that may contain any other `<` and `>`.
//!
//! A tag is recognized by its name. `Vec<String>` has none of our names and is text. For names that
//! are also words in code (`Vec<File>`, `the <title> tag`) each tag records its position and links
//! to the next relevant tags, so that the parser can decide without searching.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use quick_xml::events::attributes::Attributes;

/// No such tag.
const NONE: u32 = u32::MAX;

/// The elements of a reply. Some have several spellings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Name {
    Observation,
    Summary,
    Skip,
    SkipSummary,
    Type,
    Title,
    Subtitle,
    Narrative,
    Request,
    Investigated,
    Learned,
    Completed,
    NextSteps,
    Notes,
    Corrects,
    Facts,
    Concepts,
    FilesRead,
    FilesModified,
    Fact,
    Concept,
    File,
    Item,
}

/// How many [`Name`]s there are.
const NAMES: usize = Name::Item as usize + 1;

/// The longest spelling of any of them.
const NAME_BYTES_MAX: usize = 14;

const SPELLINGS: [(&str, Name); 29] = [
    ("observation", Name::Observation),
    ("summary", Name::Summary),
    ("skip", Name::Skip),
    ("skip_summary", Name::SkipSummary),
    ("type", Name::Type),
    ("title", Name::Title),
    ("subtitle", Name::Subtitle),
    ("narrative", Name::Narrative),
    ("request", Name::Request),
    ("investigated", Name::Investigated),
    ("learned", Name::Learned),
    ("completed", Name::Completed),
    ("next_steps", Name::NextSteps),
    ("next_step", Name::NextSteps),
    ("nextsteps", Name::NextSteps),
    ("notes", Name::Notes),
    ("corrects", Name::Corrects),
    ("facts", Name::Facts),
    ("concepts", Name::Concepts),
    ("files_read", Name::FilesRead),
    ("filesread", Name::FilesRead),
    ("files_modified", Name::FilesModified),
    ("filesmodified", Name::FilesModified),
    ("files_edited", Name::FilesModified),
    ("fact", Name::Fact),
    ("concept", Name::Concept),
    ("file", Name::File),
    ("item", Name::Item),
    ("li", Name::Item),
];

impl Name {
    /// Finds a name, ignoring case, with `-` for `_`.
    fn of(word: &[u8]) -> Option<Self> {
        if word.len() < 2 || word.len() > NAME_BYTES_MAX {
            return None;
        }
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = &mut lower[..word.len()];
        for (to, from) in lower.iter_mut().zip(word) {
            *to = if *from == b'-' { b'_' } else { from.to_ascii_lowercase() };
        }
        SPELLINGS.iter().find(|(spelling, _)| spelling.as_bytes() == lower).map(|(_, name)| *name)
    }

    /// Contains fields.
    pub(super) fn is_block(self) -> bool {
        matches!(self, Self::Observation | Self::Summary)
    }

    /// Contains items.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::Facts | Self::Concepts | Self::FilesRead | Self::FilesModified)
    }

    /// Is an item of a list.
    pub(super) fn is_item(self) -> bool {
        matches!(self, Self::Fact | Self::Concept | Self::File | Self::Item)
    }

    /// Contains text, directly in a block.
    pub(super) fn is_text(self) -> bool {
        (Self::Type as u8..=Self::Corrects as u8).contains(&(self as u8))
    }
}

/// Whether `word` is the start of one of our tags: the remainder of a cut tag.
pub(super) fn begins_a_tag(word: &str) -> bool {
    let word = word.strip_prefix('/').unwrap_or(word);
    let word = word.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or(word);
    SPELLINGS.iter().any(|(spelling, _)| {
        spelling.len() >= word.len()
            && spelling.as_bytes()[..word.len()].eq_ignore_ascii_case(word.as_bytes())
    })
}

/// The shape of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Open,
    Close,
    Empty,
}

/// A tag of the contract, its position, and the tags that follow it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) name: Name,
    pub(super) shape: Shape,
    /// In quotation marks or backticks: mentioned, not used.
    pub(super) quoted: bool,
    /// Is at a position of a real tag: first on its line, right after another tag, or (in lower
    /// case, unlike a type's name in code) right after a word.
    pub(super) leads: bool,
    pub(super) start: u32,
    pub(super) end: u32,
    /// The next closing tag of this name.
    pub(super) next_close: u32,
    /// The next real opening tag of this name.
    pub(super) next_open: u32,
    /// The next real opening tag of a block.
    pub(super) next_block: u32,
}

impl Tag {
    /// Whether this is a real tag rather than text that looks like one. An opening tag is, if it is
    /// at the right position or has a closing tag.
    pub(super) fn is_meant(&self) -> bool {
        let is_ours = !matches!(self.name, Name::Skip | Name::SkipSummary);
        let stands = match self.shape {
            Shape::Close => true,
            Shape::Empty => self.leads,
            Shape::Open => self.leads || self.next_close != NONE,
        };
        is_ours && !self.quoted && stands
    }

    /// The value of an attribute, as written.
    pub(super) fn attribute<'t>(&self, text: &'t str, key: &str) -> Option<Cow<'t, str>> {
        let inside = text[self.start as usize..self.end as usize].trim_matches(['<', '>', '/']);
        #[cfg(test)]
        crate::scan_counter::add(inside.len());
        let name_bytes = inside.bytes().take_while(|b| is_name_byte(*b)).count();
        if name_bytes == inside.len() {
            return None;
        }
        // `html` allows unquoted values, and without checks a repeated key is accepted.
        Attributes::html(inside, name_bytes)
            .with_checks(false)
            .flatten()
            .find(|attribute| attribute.key.as_ref().eq_ignore_ascii_case(key))
            .map(|attribute| attribute.value)
    }
}

/// All tags of the contract in `text`, in order, linked.
pub(super) fn find(text: &str) -> Vec<Tag> {
    let bytes = text.as_bytes();
    let mut tags: Vec<Tag> = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr(b'<', &bytes[at..]) {
        let start = at + found;
        #[cfg(test)]
        crate::scan_counter::add(found + 1);
        let before = tags.last().map_or(0, |tag| tag.end as usize);
        at = match tag_at(bytes, start) {
            Some(mut tag) => {
                tag.leads = leads(&bytes[before..start], bytes[start + 1]);
                tags.push(tag);
                tag.end as usize
            }
            None => tags
                .last()
                .filter(|tag| tag.shape == Shape::Open)
                .and_then(|_| cdata_end(bytes, before, start))
                .unwrap_or(start + 1),
        };
    }
    link(&mut tags);
    tags
}

/// Reads the tag at the `<` at `start`, if it is one of ours.
fn tag_at(bytes: &[u8], start: usize) -> Option<Tag> {
    let closing = bytes.get(start + 1) == Some(&b'/');
    let name_start = start + 1 + usize::from(closing);
    let first = *bytes.get(name_start)?;
    if !first.is_ascii_alphabetic() {
        return None;
    }
    let rest = &bytes[name_start..bytes.len().min(name_start + NAME_BYTES_MAX + 1)];
    let name_bytes = rest.iter().take_while(|b| is_name_byte(**b)).count();
    let name = Name::of(&rest[..name_bytes])?;
    let (end, shape) = if closing {
        (closing_end(bytes, name_start + name_bytes)?, Shape::Close)
    } else {
        let (end, empty) = opening_end(bytes, name_start + name_bytes)?;
        (end, if empty { Shape::Empty } else { Shape::Open })
    };
    let quote = start.checked_sub(1).map(|before| bytes[before]);
    let quoted = matches!(quote, Some(b'`' | b'"' | b'\'')) && quote == bytes.get(end).copied();
    Some(Tag {
        name,
        shape,
        quoted,
        leads: false,
        start: start as u32,
        end: end as u32,
        next_close: NONE,
        next_open: NONE,
        next_block: NONE,
    })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The end of the closing tag whose name ends at `at`. It may lack its `>` if the text ends there
/// or the next tag begins.
fn closing_end(bytes: &[u8], at: usize) -> Option<usize> {
    let blanks = bytes[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    #[cfg(test)]
    crate::scan_counter::add(blanks);
    match bytes.get(at + blanks) {
        Some(b'>') => Some(at + blanks + 1),
        Some(b'<') | None => Some(at),
        Some(_) => None,
    }
}

/// The end of the opening tag whose name ends at `at`, and whether it is self-closing.
///
/// A `<` ends the attempt unless it is in a quoted value. Quotes only switch between three states
/// (none, single, double), so attempts begun at different positions stay in different states: no
/// byte is read by more than three of them, for any text.
fn opening_end(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let (mut quote, mut assigned) = (None, false);
    for (here, byte) in bytes.iter().enumerate().skip(at) {
        #[cfg(test)]
        crate::scan_counter::add(1);
        match (quote, *byte) {
            (None, b'>') => {
                let empty = bytes[here - 1] == b'/';
                let blank = bytes[at..here - usize::from(empty)].trim_ascii().is_empty();
                return (blank || assigned).then_some((here + 1, empty));
            }
            (None, b'<') => return None,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(mark), byte) if mark == byte => quote = None,
            (None, b'=') => assigned = true,
            (None, byte) if here == at && !byte.is_ascii_whitespace() && byte != b'/' => {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// Whether a tag is at the position of a real one. `gap` is the text since the tag before it, or
/// since the beginning; `initial` the first byte of its name.
fn leads(gap: &[u8], initial: u8) -> bool {
    let blanks = gap.iter().rev().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
    #[cfg(test)]
    crate::scan_counter::add(blanks);
    match gap.len().checked_sub(blanks + 1) {
        Some(last) => gap[last] == b'\n' || (blanks == 0 && initial.is_ascii_lowercase()),
        None => true,
    }
}

/// The end of a CDATA section that begins at `start`, if it is the first thing in its element:
/// elsewhere it is more likely a mention. An unclosed one runs to the end of the text.
fn cdata_end(bytes: &[u8], element: usize, start: usize) -> Option<usize> {
    if !bytes[start..].starts_with(b"<![CDATA[") || !bytes[element..start].trim_ascii().is_empty() {
        return None;
    }
    let end = memmem::find(&bytes[start..], b"]]>").map_or(bytes.len(), |end| start + end + 3);
    #[cfg(test)]
    crate::scan_counter::add(end - start);
    Some(end)
}

/// Links each tag to those after it, from the last to the first.
fn link(tags: &mut [Tag]) {
    let (mut closes, mut opens, mut block) = ([NONE; NAMES], [NONE; NAMES], NONE);
    for here in (0..tags.len()).rev() {
        let tag = &mut tags[here];
        let name = tag.name as usize;
        (tag.next_close, tag.next_open, tag.next_block) = (closes[name], opens[name], block);
        if tag.quoted {
            continue;
        }
        match tag.shape {
            Shape::Close => closes[name] = here as u32,
            Shape::Open if tag.leads => {
                opens[name] = here as u32;
                if tag.name.is_block() {
                    block = here as u32;
                }
            }
            _ => {}
        }
    }
}
