//! Finding the tags of our contract in text that may hold any other `<` and `>`.
//!
//! A tag counts by its name. `Vec<String>` has none of ours and is text. For names that are words in
//! code as well (`Vec<File>`, `the <title> tag`) each tag notes where it stands, and links to the next
//! tags that matter to it, so that the reader can decide without searching.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use quick_xml::events::attributes::Attributes;

/// No such tag.
const NONE: u32 = u32::MAX;

/// The elements a reply may hold. Several spellings may mean one.
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

const SPELLINGS: [(&str, Name); 28] = [
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
    /// Finds a name, whatever its case, with `-` for `_`.
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

    /// Holds fields.
    pub(super) fn is_block(self) -> bool {
        matches!(self, Self::Observation | Self::Summary)
    }

    /// Holds items.
    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::Facts | Self::Concepts | Self::FilesRead | Self::FilesModified)
    }

    /// Stands in a list.
    pub(super) fn is_item(self) -> bool {
        matches!(self, Self::Fact | Self::Concept | Self::File | Self::Item)
    }

    /// Holds text, directly in a block.
    pub(super) fn is_text(self) -> bool {
        (Self::Type as u8..=Self::Notes as u8).contains(&(self as u8))
    }
}

/// Whether `word` is how one of our tags may begin: what a cut leaves at the end of a text.
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

/// One tag of the contract, where it stands, and which tags follow it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) name: Name,
    pub(super) shape: Shape,
    /// In quotation marks or backticks: spoken of, not used.
    pub(super) quoted: bool,
    /// Stands where a tag that is meant stands: first on its line, straight after another tag, or (in
    /// lower case, unlike a type's name in code) straight after a word.
    pub(super) leads: bool,
    pub(super) start: u32,
    pub(super) end: u32,
    /// The next closing tag of this name.
    pub(super) next_close: u32,
    /// The next opening tag of this name that is meant.
    pub(super) next_open: u32,
    /// The next opening tag of a block that is meant.
    pub(super) next_block: u32,
}

impl Tag {
    /// Whether this is structure rather than text that looks like it, where either may stand. An
    /// opening tag is, if it stands in the right place or has its counterpart.
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
        // `html` lets values go without quotation marks, and without checks a repeated key is no error.
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

/// Where the closing tag ends whose name ends at `at`. It may lack its `>` if nothing else can follow:
/// the text ends there, or the next tag begins.
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

/// Where the opening tag ends whose name ends at `at`, and whether it closes itself.
///
/// A `<` ends the attempt unless it stands in a quoted value. Marks only swap the three states (none,
/// single, double), so attempts begun at different places stay in different states: no byte is looked
/// at by more than three of them, however hostile the text.
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

/// Whether a tag stands where one that is meant does. `gap` is the text since the tag before it, or
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

/// Where a CDATA section ends that begins at `start`, if it does and is the first thing in its element:
/// anywhere else it is more likely spoken of. One never closed runs to the end of the text.
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
