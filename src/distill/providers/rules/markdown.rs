//! Converts Markdown to plain text blocks: headings, paragraphs, list items and table rows.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::text::{alternatives, code, one_line};

/// Longer messages are truncated.
const MESSAGE_BYTES_MAX: usize = 65_536;

/// A code block up to this size is joined with the sentence that announces it.
const CODE_LINES_MAX: usize = 3;
const CODE_CHARS_MAX: usize = 300;

/// A shorter line that ends with a colon is a heading.
const LABEL_CHARS_MAX: usize = 60;

/// Items nested deeper are merged into the item around them. The limit keeps parsing linear.
const DEPTH_MAX: usize = 3;

/// A block of a message, without emphasis and link URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// Includes a short paragraph that ends with a colon.
    Heading(String),
    /// A paragraph that is entirely bold: a heading, or an emphasized statement.
    BoldLine(String),
    /// Line breaks are kept.
    Paragraph(String),
    /// A paragraph that starts with a bold label, such as `**2. Tooltip** stays`: one of several
    /// findings.
    Labelled(String),
    /// A table row, as `header: value; header: value`.
    Row(String),
    Item {
        text: String,
        /// The state of its checkbox, if it has one.
        is_done: Option<bool>,
    },
}

/// The blocks of a message, in order.
pub(super) fn blocks(message: &str) -> Vec<Block> {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let mut reader = Reader::default();
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(&message[..end], options) {
        #[cfg(test)]
        super::step_count::add(1);
        reader.read(event);
    }
    reader.blocks
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    /// Text of the current heading, paragraph or table cell.
    text: String,
    /// Text of the current code block.
    code: Option<String>,
    /// Open list items, outermost first.
    items: Vec<Item>,
    /// Number of open items beyond `DEPTH_MAX`.
    deeper: usize,
    table: Table,
    bold: Bold,
    /// The last block ends with a colon, and no block follows it yet.
    announces: bool,
}

#[derive(Default)]
struct Item {
    text: String,
    is_done: Option<bool>,
    children: Vec<String>,
}

#[derive(Default)]
struct Table {
    header: Vec<String>,
    row: Vec<String>,
}

/// Tracks whether a paragraph is entirely bold.
#[derive(Default)]
struct Bold {
    depth: usize,
    is_strong: bool,
    has_plain: bool,
    /// The paragraph starts with the bold text.
    is_first: bool,
}

impl Reader {
    fn read(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.push(&text),
            Event::Code(text) => {
                self.bold.has_plain |= self.bold.depth == 0;
                self.text.push_str(&code(&text));
            }
            Event::SoftBreak | Event::HardBreak => self.text.push('\n'),
            Event::TaskListMarker(is_done) => {
                if let Some(item) = self.items.last_mut() {
                    item.is_done = Some(is_done);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        #[cfg(test)]
        super::step_count::add(text.len());
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        let is_plain = text.chars().any(|c| !c.is_whitespace() && c != ':');
        self.bold.is_first |= is_plain && self.bold.depth > 0 && !self.bold.has_plain;
        self.bold.has_plain |= is_plain && self.bold.depth == 0;
        self.bold.is_strong |= is_plain && self.bold.depth > 0;
        self.text.push_str(text);
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Strong => self.bold.depth += 1,
            Tag::CodeBlock(_) => {
                self.end_item_text();
                self.code = Some(String::new());
            }
            Tag::List(_) => self.end_item_text(),
            Tag::Item => {
                self.announces = false;
                if self.items.len() < DEPTH_MAX {
                    self.items.push(Item::default());
                } else {
                    self.deeper += 1;
                }
            }
            Tag::Paragraph | Tag::Heading { .. } | Tag::HtmlBlock => {
                self.end_item_text();
                self.bold = Bold::default();
            }
            Tag::Table(_) => self.table = Table::default(),
            Tag::TableHead | Tag::TableRow => self.table.row.clear(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong => self.bold.depth = self.bold.depth.saturating_sub(1),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_paragraph(),
            TagEnd::Heading(_) => {
                let text = self.take_text();
                self.emit(Block::Heading(one_line(&text)));
            }
            TagEnd::Item => self.end_item(),
            TagEnd::TableCell => {
                let cell = one_line(&self.take_text());
                self.table.row.push(cell);
            }
            TagEnd::TableHead => self.table.header = std::mem::take(&mut self.table.row),
            TagEnd::TableRow => {
                let text = self.table.describe_row();
                self.emit(Block::Row(text));
            }
            _ => {}
        }
    }

    /// Takes the text collected so far, without leading emoji.
    fn take_text(&mut self) -> String {
        let text = std::mem::take(&mut self.text).replace("~~", "");
        let is_picture =
            |c: char| !c.is_ascii() && !c.is_alphanumeric() && !"«“„‘¿¡「『（《→•–◦".contains(c);
        text.trim_start_matches(|c: char| is_picture(c) || c.is_whitespace()).trim_end().to_owned()
    }

    fn emit(&mut self, block: Block) {
        let text = match &block {
            Block::Heading(text)
            | Block::BoldLine(text)
            | Block::Paragraph(text)
            | Block::Labelled(text)
            | Block::Row(text)
            | Block::Item { text, .. } => text,
        };
        if !text.is_empty() {
            self.announces = text.ends_with([':', '：']);
            self.blocks.push(block);
        }
    }

    /// Moves the collected text into the current list item.
    fn end_item_text(&mut self) {
        if !self.items.is_empty() {
            let text = one_line(&self.take_text());
            if let Some(item) = self.items.last_mut().filter(|_| !text.is_empty()) {
                let separator = if item.text.is_empty() { "" } else { " " };
                item.text.push_str(separator);
                item.text.push_str(&text);
            }
        }
    }

    fn end_item(&mut self) {
        self.end_item_text();
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let Some(item) = self.items.pop() else { return };
        if let Some(parent) = self.items.last_mut() {
            parent.children.push(item.text_with_children());
            return;
        }
        // `- Backend:` labels the items below it.
        if item.text.ends_with(':') && !item.children.is_empty() {
            for child in &item.children {
                let text = format!("{} {child}", item.text);
                self.emit(Block::Item { text, is_done: item.is_done });
            }
        } else {
            let is_done = item.is_done;
            self.emit(Block::Item { text: item.text_with_children(), is_done });
        }
        self.announces = false;
    }

    fn end_paragraph(&mut self) {
        if !self.items.is_empty() {
            self.end_item_text();
            return;
        }
        let text = self.take_text();
        // Bullets that are not Markdown.
        let is_bullet = |line: &str| line.starts_with(['•', '–', '◦']);
        if text.lines().skip(1).any(is_bullet) {
            for line in text.lines() {
                let item = one_line(line.trim_start_matches(['•', '–', '◦', ' ']));
                self.emit(if is_bullet(line) {
                    Block::Item { text: item, is_done: None }
                } else {
                    Block::Paragraph(item)
                });
            }
            return;
        }
        let is_label = text.ends_with([':', '：']) && text.chars().count() < LABEL_CHARS_MAX;
        self.emit(match () {
            () if is_label => Block::Heading(one_line(&text)),
            () if self.bold.is_strong && !self.bold.has_plain => Block::BoldLine(one_line(&text)),
            () if self.bold.is_first => Block::Labelled(one_line(&text)),
            () => Block::Paragraph(text),
        });
    }

    /// Joins `Run this:` and a short code block into one statement. Drops other code.
    fn end_code(&mut self) {
        let text = self.code.take().unwrap_or_default();
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_short =
            (1..=CODE_LINES_MAX).contains(&lines.len()) && text.chars().count() <= CODE_CHARS_MAX;
        let shown = || lines.iter().map(|line| code(line)).collect::<Vec<_>>().join(", ");
        if let Some(item) = self.items.last_mut() {
            if is_short && item.text.ends_with([':', '：']) {
                item.text.push(' ');
                item.text.push_str(&shown());
            }
        } else if is_short && self.announces {
            let last = self.blocks.pop();
            let announcement = match last {
                Some(
                    Block::Heading(text)
                    | Block::BoldLine(text)
                    | Block::Paragraph(text)
                    | Block::Labelled(text)
                    | Block::Row(text)
                    | Block::Item { text, .. },
                ) => text,
                None => String::new(),
            };
            self.emit(Block::Paragraph(format!("{announcement} {}", shown())));
        }
    }
}

impl Item {
    fn text_with_children(self) -> String {
        let children = self.children.join("; ");
        match (self.text.is_empty(), children.is_empty()) {
            (_, true) => self.text,
            (true, false) => children,
            (false, false) if self.text.ends_with(':') => format!("{} {children}", self.text),
            (false, false) => format!("{}: {children}", self.text.trim_end_matches('.')),
        }
    }
}

impl Table {
    /// `header: value; header: value`, without empty cells.
    fn describe_row(&self) -> String {
        let cells = self.row.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
        let cells = cells.map(|(number, cell)| match self.header.get(number) {
            Some(header) if !header.is_empty() && header != "#" => format!("{header}: {cell}"),
            _ => cell.clone(),
        });
        cells.collect::<Vec<_>>().join("; ")
    }
}

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: &str = "e.g.|i.e.|vs.|etc.|z.B.|approx.|cf.|No.|bzw.|т.е.|т.к.";

/// Splits a text into sentences. The end of a line ends a sentence, too.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut in_code = false;
    let mut is_ended = false;
    for (at, c) in text.char_indices() {
        #[cfg(test)]
        super::step_count::add(1);
        let is_boundary = c == '\n' || is_ended && c.is_whitespace();
        if is_boundary {
            let sentence = text[start..at].trim_start();
            #[cfg(test)]
            super::step_count::add(at - start - sentence.len());
            start = at - sentence.len();
            // `The "Why not?" page`: what was quoted is a part of the sentence.
            let is_quoted = sentence.ends_with(['"', '”', '»', ')'])
                && text[at..].trim_start().starts_with(char::is_lowercase);
            let is_short = alternatives(ABBREVIATIONS).any(|short| sentence.ends_with(short));
            let goes_on = c != '\n' && (is_quoted || is_short);
            if !goes_on {
                found.extend(Some(sentence.trim_end()).filter(|sentence| !sentence.is_empty()));
                start = at;
            }
            in_code &= c != '\n';
        }
        in_code ^= c == '`';
        let is_closing = matches!(c, '"' | '\'' | ')' | '”' | '’' | '»');
        is_ended = !in_code && (matches!(c, '.' | '!' | '?') || is_ended && is_closing);
        if !in_code && matches!(c, '。' | '！' | '？') {
            let end = at + c.len_utf8();
            found.push(text[start..end].trim());
            start = end;
        }
    }
    let rest = text[start..].trim();
    if !rest.is_empty() {
        found.push(rest);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{super::step_count, *};

    fn shown(message: &str) -> String {
        let show = |block| match block {
            Block::Heading(text) => format!("# {text}"),
            Block::BoldLine(text) => format!("** {text}"),
            Block::Paragraph(text) => text,
            Block::Labelled(text) => format!("+ {text}"),
            Block::Row(text) => format!("| {text}"),
            Block::Item { text, is_done: None } => format!("- {text}"),
            Block::Item { text, is_done: Some(done) } => format!("- ({done}) {text}"),
        };
        blocks(message).into_iter().map(show).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn marks_are_removed_and_long_code_is_left_out() {
        let message = "\
            ✅ **Done.** See [the docs](http://x/y_z) and `a**b`.\n\n```rust\nfn x() {}\n\
            - no\n```\n## Next steps\n1. First\n   goes on\n2. Second\n   - nested\n\n\
            **Files:**\n- [x] one\n- Group:\n  - inner `x`\n  - other\n---\nEnd *here*";
        let expected = "\
            Done. See the docs and `a**b`.\n# Next steps\n- First goes on\n\
            - Second: nested\n# Files:\n- (true) one\n- Group: inner `x`\n- Group: other\n\
            End here";
        assert_eq!(shown(message), expected);
    }

    #[test]
    fn a_table_row_is_an_item() {
        let message = "\
            | # | Finding | Fix |\n|---|---|---|\n| 1 | cart rounds twice | `round` once |\n\
            | 2 | | none |\n";
        assert_eq!(
            shown(message),
            "| 1; Finding: cart rounds twice; Fix: `round` once\n| 2; Fix: none"
        );
    }

    #[test]
    fn short_code_belongs_to_the_sentence_before_it() {
        let message = "\
            Run this:\n```sh\nmake up\n\nmake seed\n```\nThe whole file:\n```\n1\n2\n3\n4\n\
            ```\n- Then log in with:\n  ```\n  shop login\n  ```\n\nNo colon.\n```\nx\n```";
        assert_eq!(
            shown(message),
            "Run this: `make up`, `make seed`\n# The whole file:\n\
             - Then log in with: `shop login`\nNo colon."
        );
    }

    #[test]
    fn a_bold_line_differs_from_bold_words() {
        assert_eq!(
            shown("**Allow a second cart**\n\n**Note** the limit\n\n• one\n• two"),
            "** Allow a second cart\n+ Note the limit\n- one\n- two"
        );
    }

    #[test]
    fn text_is_split_into_sentences() {
        let text =
            "Use e.g. `a. b` in v1.2 of main.rs. Then? (It works.) これは文です。次。 rest\nline";
        let expected = [
            "Use e.g. `a. b` in v1.2 of main.rs.",
            "Then?",
            "(It works.)",
            "これは文です。",
            "次。",
            "rest",
            "line",
        ];
        assert_eq!(sentences(text), expected);
    }

    #[test]
    fn messages_of_hostile_fragments_are_read_in_linear_time() {
        step_count::assert_linear(MESSAGE_BYTES_MAX, |message| drop(blocks(message)));
        step_count::assert_linear(MESSAGE_BYTES_MAX, |message| {
            let ends = (0..=message.len().min(MESSAGE_BYTES_MAX)).rev();
            let end = ends.into_iter().find(|end| message.is_char_boundary(*end));
            drop(sentences(&message[..end.unwrap_or(0)]));
        });
    }

    #[test]
    fn hostile_text_does_not_panic() {
        let nested = format!("{}x\n\n{}", "- ".repeat(20_000), "\n".repeat(20_000));
        for text in [
            "```", "[](", "](x)", "**", "- ", "-", "1.", "# ", "|", "`", "*", "**a", "[x](",
            "é](é", &nested,
        ] {
            let _ = (blocks(text), sentences(text));
        }
    }
}
