//! Reading Markdown for what it says: headings, paragraphs and items, without code, tables and marks.

use super::text::{alternatives, one_line};

/// A message is read up to here.
const MESSAGE_BYTES_MAX: usize = 65_536;

/// A piece of a message. Texts are on one line, without emphasis and links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// Also a paragraph that is nothing but bold, or ends with a colon.
    Heading(String),
    /// Running text.
    Paragraph(String),
    /// Of a list, if at its first level.
    Item {
        /// Without its bullet.
        text: String,
        /// A box that is ticked, or one that is not.
        is_done: Option<bool>,
    },
}

/// The pieces of a message, in order.
pub(super) fn blocks(message: &str) -> Vec<Block> {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let mut reader = Reader::default();
    for line in message[..end].lines() {
        reader.line(line);
    }
    reader.end_paragraph();
    reader.blocks
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    paragraph: String,
    fence: Option<&'static str>,
    /// The last item was a label for those below it, so that they are the items.
    is_label: bool,
    in_item: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let text = line.trim();
        if let Some(fence) = self.fence {
            if text.starts_with(fence) {
                self.fence = None;
            }
            return;
        }
        self.fence = ["```", "~~~"].into_iter().find(|fence| text.starts_with(fence));
        let indent = line.len() - line.trim_start().len();
        let is_rule =
            text.len() >= 3 && text.chars().all(|c| matches!(c, '-' | '*' | '=' | '_' | ' '));
        if self.fence.is_some() || text.is_empty() || is_rule || text.starts_with('|') {
            self.end_paragraph();
            self.in_item &= self.fence.is_some();
            return;
        }
        if let Some(heading) = heading(text) {
            self.end_paragraph();
            self.blocks.push(Block::Heading(inline(heading)));
        } else if let Some(item) = item(text) {
            self.item(item, indent);
        } else if self.in_item && indent > 0 {
            self.continue_item(text);
        } else if indent < 4 || !self.paragraph.is_empty() {
            self.in_item = false;
            self.paragraph.push_str(text.trim_start_matches(['>', ' ']));
            self.paragraph.push('\n');
        }
    }

    fn item(&mut self, text: &str, indent: usize) {
        self.end_paragraph();
        let (text, is_done) = match text.get(..3) {
            Some("[ ]") => (&text[3..], Some(false)),
            Some("[x]" | "[X]") => (&text[3..], Some(true)),
            _ => (text, None),
        };
        let text = inline(text);
        if indent < 2 {
            self.is_label = text.ends_with(':');
        }
        self.in_item = (indent < 2) != self.is_label;
        if self.in_item && !text.is_empty() {
            self.blocks.push(Block::Item { text, is_done });
        }
    }

    fn continue_item(&mut self, more: &str) {
        if let Some(Block::Item { text, .. }) = self.blocks.last_mut() {
            text.push(' ');
            text.push_str(&inline(more));
        }
    }

    fn end_paragraph(&mut self) {
        let raw = std::mem::take(&mut self.paragraph);
        let raw = raw.trim();
        let text = inline(raw);
        if text.is_empty() {
            return;
        }
        let is_bold = raw.starts_with("**") && raw.trim_end_matches(':').ends_with("**");
        let is_label = text.ends_with([':', '：']) && text.chars().count() < 60;
        let is_heading = is_label || is_bold && raw.matches("**").count() == 2;
        self.blocks.push(if is_heading { Block::Heading(text) } else { Block::Paragraph(text) });
    }
}

fn heading(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    ((1..=6).contains(&level) && rest.starts_with(' ')).then(|| rest.trim())
}

fn item(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let numbered =
        (1..=3).contains(&digits).then(|| text[digits..].strip_prefix(['.', ')'])).flatten();
    let rest = numbered.or_else(|| text.strip_prefix(['-', '*', '•', '–', '+']))?;
    rest.starts_with(' ').then(|| rest.trim())
}

/// Text without emphasis, links and pictures at its start. Code keeps its backticks and all it holds.
pub(super) fn inline(text: &str) -> String {
    #[cfg(test)]
    super::step_count::add(text.len());
    let mut out = String::with_capacity(text.len());
    for (number, piece) in text.split('`').enumerate() {
        if number > 0 {
            out.push('`');
        }
        if number % 2 == 1 {
            out.push_str(piece);
        } else {
            out.push_str(&without_links(
                &piece.replace("**", "").replace("__", "").replace("~~", ""),
            ));
        }
    }
    let out = out.replace("``", "");
    let is_picture =
        |c: char| !c.is_ascii() && !c.is_alphanumeric() && !"«“„‘¿¡「『（《→".contains(c);
    let out = one_line(out.trim_start_matches(|c: char| is_picture(c) || c.is_whitespace()));
    // A single star around words is emphasis; one inside `a * b` is not.
    let starred = out.strip_prefix('*').filter(|rest| !rest.starts_with(' '));
    starred.and_then(|rest| rest.strip_suffix('*')).map_or(out.clone(), str::to_owned)
}

/// `[text](address)` is its text.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        #[cfg(test)]
        super::step_count::add(middle + rest[middle..].find(')').unwrap_or(rest.len() - middle));
        let Some(open) = rest[..middle].rfind('[') else { break };
        let Some(close) = rest[middle..].find(')') else { break };
        out.push_str(rest[..open].trim_end_matches('!'));
        out.push_str(&rest[open + 1..middle]);
        rest = &rest[middle + close + 1..];
    }
    out.push_str(rest);
    out
}

/// Words after whose full stop a sentence goes on.
const ABBREVIATIONS: &str = "e.g.|i.e.|vs.|etc.|z.B.|approx.|cf.|No.|bzw.";

/// The sentences of a text.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut in_code = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        in_code ^= c == '`';
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, next)| *next);
        let is_end = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        #[cfg(test)]
        super::step_count::add(1);
        if !is_end || in_code {
            continue;
        }
        let sentence = text[start..end].trim_start();
        #[cfg(test)]
        super::step_count::add(end - start - sentence.len());
        start = end - sentence.len();
        if !alternatives(ABBREVIATIONS).any(|short| sentence.ends_with(short)) {
            found.push(sentence);
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
            Block::Paragraph(text) => text,
            Block::Item { text, is_done: None } => format!("- {text}"),
            Block::Item { text, is_done: Some(done) } => format!("- ({done}) {text}"),
        };
        blocks(message).into_iter().map(show).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn code_and_tables_are_left_out_and_marks_taken_off() {
        let message = "✅ **Done.** See [the docs](http://x/y_z) and `a**b`.\n\n```rust\nfn x() {}\n- no\n```\n\
                       ## Next steps\n1. First\n   goes on\n2) Second\n  - nested\n\n| a | b |\n|---|---|\n\
                       **Files:**\n- [x] one\n- Group:\n  - inner `x`\n---\nEnd *here*\nnow";
        let expected = "Done. See the docs and `a**b`.\n# Next steps\n- First goes on\n- Second\n# Files:\n\
                        - (true) one\n- inner `x`\nEnd *here* now";
        assert_eq!(shown(message), expected);
    }

    #[test]
    fn sentences_end_where_they_do() {
        let text = "Use e.g. `a. b` in v1.2 of main.rs. Then? これは文です。次。 rest";
        let expected =
            ["Use e.g. `a. b` in v1.2 of main.rs.", "Then?", "これは文です。", "次。", "rest"];
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
    fn odd_text_does_no_harm() {
        for text in [
            "```", "[](", "](x)", "**", "- ", "-", "1.", "# ", "|", "`", "*", "**a", "[x](", "é](é",
        ] {
            let _ = (blocks(text), sentences(text));
        }
    }
}
