//! From tags to observations and summaries: which text belongs to which element.

use super::tags::{self, Name, Shape, Tag};
use super::{FALLBACK_KIND, Observation, Summary, values};
use crate::text::one_line;

/// Maximum number of fields and items in a block. No memory needs more; a faulty model repeats
/// itself.
const FIELDS_MAX: usize = 1000;

/// Everything in a reply, before filtering.
#[derive(Debug, Default)]
pub(super) struct ParsedReply {
    pub(super) observations: Vec<Block>,
    /// The fields of all summaries; of duplicates the first is used.
    pub(super) summary: Block,
    pub(super) skip: bool,
    pub(super) summary_skipped: Option<String>,
    /// Titles of earlier observations that are withdrawn: named outside of any observation.
    pub(super) corrects: Vec<String>,
    pub(super) cut: bool,
}

/// Reads a whole reply.
pub(super) fn read(text: &str) -> ParsedReply {
    let mut reader = Reader { text, tags: tags::find(text), next: 0, at: 0, cut: false };
    let mut read = ParsedReply::default();
    while let Some((here, tag)) = reader.take() {
        match (tag.name, tag.shape) {
            (Name::Observation, Shape::Open) if !tag.quoted => {
                read.observations.push(reader.block(here));
            }
            (Name::Summary, Shape::Open) if !tag.quoted => {
                let block = reader.block(here);
                read.corrects.extend(block.corrects());
                read.summary.fields.extend(block.fields);
                read.summary
                    .loose
                    .get_or_insert_default()
                    .push_str(&block.loose.unwrap_or_default());
            }
            (Name::Skip, Shape::Open | Shape::Empty) => read.skip = true,
            (Name::SkipSummary, Shape::Open | Shape::Empty) => {
                read.summary_skipped.get_or_insert_with(|| reader.reason(here));
            }
            (Name::Corrects, Shape::Open) if tag.is_meant() => {
                let mut block = Block::default();
                reader.field(here, &mut block);
                read.corrects.extend(block.corrects());
            }
            _ => {}
        }
    }
    read.cut = reader.cut;
    read
}

/// Fewer words between fields are decoration, such as a number or a bullet. Scripts without spaces
/// have no words to count.
const LOOSE_WORDS_MIN: usize = 3;
const LOOSE_WIDE_MIN: usize = 4;

fn is_sentence(loose: &str) -> bool {
    let is_wide = |c: &char| !c.is_ascii() && c.is_alphabetic();
    loose.split_whitespace().nth(LOOSE_WORDS_MIN - 1).is_some()
        || loose.chars().filter(is_wide).count() >= LOOSE_WIDE_MIN
}

/// The text of a field, and the text between fields as another paragraph.
fn with_loose(field: Option<&str>, loose: Option<String>) -> Option<String> {
    match (field, loose.filter(|loose| field.is_none() || is_sentence(loose))) {
        (Some(field), Some(loose)) => Some(format!("{field}\n\n{loose}")),
        (Some(field), None) => Some(field.to_owned()),
        (None, loose) => loose,
    }
}

/// The fields of one block, in order, decoded.
#[derive(Debug, Default)]
pub(super) struct Block {
    fields: Vec<(Name, String)>,
    /// Attributes are used only for fields without an element.
    attributes: Vec<(Name, String)>,
    /// Its text outside of any field, unless the block may only be mentioned in prose.
    loose: Option<String>,
}

impl Block {
    /// As an observation; `None` if it is empty.
    pub(super) fn observation<S: AsRef<str>>(&self, kinds: &[S]) -> Option<Observation> {
        let (kind, unknown) = kind(self.first(Name::Type), kinds);
        let is_echo = |word: &String| values::same_word(word, &kind);
        let concepts =
            self.all(Name::Concepts).into_iter().chain(unknown).filter(|word| !is_echo(word));
        let concepts = values::distinct(concepts);
        let loose = self.loose.as_deref().map(values::without_unknown_tags);
        let loose = loose.and_then(|loose| values::prose(&loose, false));
        let narrative = with_loose(self.first(Name::Narrative), loose);
        let title = self.line(Name::Title).or_else(|| {
            let is_untitled = !self.has(Name::Narrative) && !self.has(Name::Facts);
            narrative.as_deref().filter(|_| is_untitled).map(values::first_sentence)
        });
        let observation = Observation {
            narrative: narrative.filter(|text| title.as_deref() != Some(text.as_str())),
            title,
            subtitle: self.line(Name::Subtitle),
            facts: self.all(Name::Facts),
            files_read: self.all(Name::FilesRead),
            files_modified: self.all(Name::FilesModified),
            corrects: self.corrects(),
            concepts,
            kind,
        };
        let says_nothing = observation.title.is_none()
            && observation.narrative.is_none()
            && observation.facts.is_empty();
        (!says_nothing).then_some(observation)
    }

    /// As a summary; `None` if it is empty. Text outside of its fields is kept as notes.
    pub(super) fn summary(&self) -> Option<Summary> {
        let text = |name| self.first(name).map(str::to_owned);
        let loose = self.loose.as_deref().and_then(|loose| values::prose(loose, false));
        let summary = Summary {
            request: text(Name::Request),
            investigated: text(Name::Investigated),
            learned: text(Name::Learned),
            completed: text(Name::Completed),
            next_steps: text(Name::NextSteps),
            notes: match self.fields.is_empty() {
                true => loose,
                false => {
                    with_loose(self.first(Name::Notes), loose.filter(|loose| is_sentence(loose)))
                }
            },
            files_read: self.all(Name::FilesRead),
            files_edited: self.all(Name::FilesModified),
        };
        (summary != Summary::default()).then_some(summary)
    }

    /// Titles of earlier observations that this block corrects.
    pub(super) fn corrects(&self) -> Vec<String> {
        self.all(Name::Corrects).iter().map(|title| one_line(title)).collect()
    }

    fn has(&self, name: Name) -> bool {
        self.first(name).is_some()
    }

    fn first(&self, name: Name) -> Option<&str> {
        let mut fields = self.fields.iter().chain(&self.attributes);
        fields.find(|field| field.0 == name).map(|field| field.1.as_str())
    }

    fn line(&self, name: Name) -> Option<String> {
        self.first(name).map(one_line)
    }

    fn push(&mut self, name: Name, value: Option<String>) {
        if self.fields.len() < FIELDS_MAX {
            self.fields.extend(value.map(|value| (name, value)));
        }
    }

    fn push_lines(&mut self, list: Name, raw: &str, cut: bool) {
        let room = FIELDS_MAX - self.fields.len();
        if room > 0 {
            let lines = values::lines(list, raw, cut, room);
            self.fields.extend(lines.into_iter().map(|line| (list, line)));
        }
    }

    fn all(&self, name: Name) -> Vec<String> {
        let items = self.fields.iter().filter(|field| field.0 == name);
        values::distinct(items.map(|field| field.1.clone()))
    }
}

/// The mode's spelling of the given type; for an unknown one the fallback and the given word.
fn kind<S: AsRef<str>>(given: Option<&str>, kinds: &[S]) -> (String, Option<String>) {
    let known =
        |word: &str| kinds.iter().map(AsRef::as_ref).find(|kind| values::same_word(kind, word));
    let given = given.map(one_line);
    // A model that copies the template gives `bugfix | feature`.
    let found = given
        .as_deref()
        .and_then(|given| known(given).or_else(|| given.split(['|', ',', '/']).find_map(known)));
    if let Some(kind) = found {
        return (kind.to_owned(), None);
    }
    let first = kinds.first().map_or(FALLBACK_KIND, AsRef::as_ref);
    (known(FALLBACK_KIND).unwrap_or(first).to_owned(), given)
}

/// Walks the tags once, from the first to the last.
struct Reader<'t> {
    text: &'t str,
    tags: Vec<Tag>,
    /// The tag to look at next.
    next: usize,
    /// The byte up to which text was assigned to an element.
    at: usize,
    /// The text ended inside a block.
    cut: bool,
}

impl<'t> Reader<'t> {
    fn take(&mut self) -> Option<(usize, Tag)> {
        #[cfg(test)]
        crate::scan_counter::add(1);
        let here = self.next;
        let tag = *self.tags.get(here)?;
        self.next += 1;
        Some((here, tag))
    }

    /// Reads the block opened by the tag at `open`, up to its end or the start of another.
    fn block(&mut self, open: usize) -> Block {
        let mut block = Block::default();
        self.attributes(open, &mut block);
        self.at = self.tags[open].end as usize;
        let mut loose = String::new();
        // An unclosed tag within a sentence is probably only mentioned in prose.
        let is_meant = self.tags[open].leads && self.tags[open].name == Name::Observation;
        while let Some((here, tag)) = self.take() {
            if tag.quoted {
                continue;
            }
            loose.push_str(self.text_up_to(tag.start));
            self.at = tag.end as usize;
            match tag.shape {
                Shape::Close if tag.name.is_block() => {
                    block.loose = Some(loose);
                    return block;
                }
                Shape::Open if tag.name.is_block() => {
                    self.next = here;
                    block.loose = is_meant.then_some(loose);
                    return block;
                }
                Shape::Open if tag.name.is_text() => self.field(here, &mut block),
                Shape::Open if tag.name.is_list() => self.list(here, &mut block),
                Shape::Open => self.stray_item(here, &mut block),
                _ => {}
            }
        }
        self.cut = true;
        if is_meant {
            loose.push_str(values::without_cut_tail(self.text_up_to(self.text.len() as u32)));
            block.loose = Some(loose);
        }
        block
    }

    /// `<observation type="bugfix">`: attributes are used as fields if the elements are missing.
    fn attributes(&self, open: usize, block: &mut Block) {
        let tag = self.tags[open];
        for (key, name) in [("type", Name::Type), ("title", Name::Title)] {
            let value = tag.attribute(self.text, key).and_then(|raw| values::prose(&raw, false));
            block.attributes.extend(value.map(|value| (name, value)));
        }
    }

    /// Reads an element that contains text.
    fn field(&mut self, open: usize, block: &mut Block) {
        let name = self.tags[open].name;
        let (raw, cut) = self.element(open, self.tags.len());
        // Half a sentence is still useful, but half a type or title is wrong.
        if !(cut && matches!(name, Name::Type | Name::Corrects)) {
            block.push(name, values::prose(raw, cut));
        }
    }

    /// Reads the items of a list, and the lines between them.
    fn list(&mut self, open: usize, block: &mut Block) {
        let Tag { name: list, next_close, .. } = self.tags[open];
        let bound = self.tags.len().min(next_close as usize);
        while let Some((here, tag)) = self.take() {
            if !tag.is_meant() {
                continue;
            }
            block.push_lines(list, self.text_up_to(tag.start), false);
            self.at = tag.end as usize;
            match (tag.name.is_item(), tag.shape) {
                (true, Shape::Open) => self.item(here, bound, list, block),
                (false, Shape::Close) if tag.name.is_list() => return,
                (false, Shape::Open | Shape::Close) => {
                    self.next = here;
                    return;
                }
                _ => {}
            }
        }
        block.push_lines(list, self.text_up_to(self.text.len() as u32), true);
        self.at = self.text.len();
    }

    /// Reads one item. An incomplete one is dropped: half a path is a different path.
    fn item(&mut self, open: usize, bound: usize, list: Name, block: &mut Block) {
        let (raw, cut) = self.element(open, bound);
        if !cut {
            block.push(list, values::item(list, raw));
        }
    }

    /// Reads an item outside of a list. A file is then recorded as read, not modified: claiming
    /// less is safer.
    fn stray_item(&mut self, open: usize, block: &mut Block) {
        match self.tags[open].name {
            Name::Fact => self.item(open, self.tags.len(), Name::Facts, block),
            Name::Concept => self.item(open, self.tags.len(), Name::Concepts, block),
            Name::File => self.item(open, self.tags.len(), Name::FilesRead, block),
            _ => {}
        }
    }

    /// The text of the element opened at `open`, before the tag at `bound`; and whether it was cut
    /// off.
    fn element(&mut self, open: usize, bound: usize) -> (&'t str, bool) {
        let tag = self.tags[open];
        // A type is one word: any tag ends it.
        let is_next = tag.next_close as usize == open + 1;
        let is_closed = (is_next || tag.name != Name::Type)
            && (tag.next_close as usize) < bound
            && tag.next_close < tag.next_open
            && tag.next_close < tag.next_block;
        let end = if is_closed { tag.next_close as usize } else { self.unclosed_end(open, bound) };
        self.next = end;
        self.at = tag.end as usize;
        let text_end = self.tags.get(end).map_or(self.text.len() as u32, |tag| tag.start);
        let text = self.text_up_to(text_end);
        self.at = text_end as usize;
        if is_closed {
            self.next = end + 1;
            self.at = self.tags[end].end as usize;
        }
        (text, end == self.tags.len())
    }

    /// The tag before which an element without a closing tag ends: any closing tag, or the next
    /// element of the same rank. Items end only items.
    fn unclosed_end(&self, open: usize, bound: usize) -> usize {
        let is_item = self.tags[open].name.is_item();
        let ends = |tag: &Tag| {
            #[cfg(test)]
            crate::scan_counter::add(1);
            tag.is_meant() && (is_item || tag.shape == Shape::Close || !tag.name.is_item())
        };
        let after = open + 1;
        self.tags[after..bound].iter().position(ends).map_or(bound, |found| after + found)
    }

    /// Why no summary was written: an attribute, or the element's text.
    fn reason(&mut self, open: usize) -> String {
        let tag = self.tags[open];
        if let Some(reason) = tag.attribute(self.text, "reason") {
            return values::prose(&reason, false).unwrap_or_default();
        }
        if tag.shape != Shape::Open || tag.next_close as usize != self.next {
            return String::new();
        }
        let (raw, cut) = self.element(open, self.tags.len());
        values::prose(raw, cut).unwrap_or_default()
    }

    fn text_up_to(&self, end: u32) -> &'t str {
        &self.text[self.at.min(end as usize)..end as usize]
    }
}
