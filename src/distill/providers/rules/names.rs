//! Finds the name that a line of a file defines: a function, type, heading or section.

use super::text::is_among;

/// Modifiers before the keyword of a definition.
const MODIFIERS: &str = "\
    pub|export|default|async|static|public|private|protected|abstract|final|unsafe|declare|\
    override|suspend|inline|open|data|sealed|internal|virtual|partial|extern|\"C\"|const|\
    constexpr|readonly|local";

/// Keywords of definitions.
const KEYWORDS: &str = "\
    fn|def|class|struct|enum|trait|interface|func|function|fun|module|type|record|protocol|\
    object|namespace|defmodule|defp|union|actor";

const CODE: &str = "\
    rs|py|js|jsx|ts|tsx|mjs|cjs|vue|svelte|go|java|kt|kts|cs|swift|rb|php|scala|ex|exs|c|cc|cpp|\
    h|hpp|m|dart|zig|lua|pyi";

/// The name that a line defines, by the syntax of the file extension.
pub(super) fn defined(line: &str, extension: &str) -> Option<String> {
    let text = line.trim();
    if text.is_empty() || text.len() > 400 {
        return None;
    }
    match extension {
        "md" | "mdx" | "markdown" => heading(text),
        "toml" | "ini" | "cfg" => section(text),
        "yml" | "yaml" => top_key(line),
        "sql" => table(text),
        "sh" | "bash" | "zsh" => shell_function(text),
        extension if is_among(extension, CODE) => code(text),
        _ => None,
    }
}

/// The extension of a path, in lower case.
pub(super) fn extension(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase()).unwrap_or_default()
}

fn code(text: &str) -> Option<String> {
    let mut rest = text;
    for _ in 0..6 {
        let (word, after) = first_word(rest);
        if is_among(word, KEYWORDS) {
            return named(after, word);
        }
        if matches!(word, "const" | "let" | "var") && !first_word(after).0.eq("fn") {
            return arrow(after);
        }
        if !is_among(word, MODIFIERS) && !word.starts_with("pub(") {
            return None;
        }
        rest = after;
    }
    None
}

fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn named(after: &str, keyword: &str) -> Option<String> {
    // In Go, `func (c *Cart) Total(` has a receiver before the name.
    let after = match after.strip_prefix('(') {
        Some(receiver) if keyword == "func" => receiver.split_once(')')?.1.trim_start(),
        _ => after,
    };
    let name = identifier(after.trim_start_matches(['*', '&']))?;
    // `type` and `object` are also ordinary words.
    let follows = after[after.find(name)? + name.len()..].trim_start();
    let is_definition = match keyword {
        "type" => {
            follows.starts_with(['=', '<', '['])
                || follows.starts_with("struct")
                || follows.starts_with("interface")
                || follows.starts_with("func")
        }
        "object" | "record" | "module" | "data" => name.starts_with(char::is_uppercase),
        _ => true,
    };
    (is_definition && name != "tests").then(|| name.to_owned())
}

/// Matches a function expression: `const total = (items) =>`.
fn arrow(after: &str) -> Option<String> {
    let name = identifier(after)?;
    let value = after[name.len()..].split_once('=')?.1;
    (value.contains("=>") || value.trim_start().starts_with("function")).then(|| name.to_owned())
}

fn identifier(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let name = &text[..end];
    (name.len() > 1 && !name.starts_with(|c: char| c.is_ascii_digit()) && name.len() <= 60)
        .then_some(name)
}

fn heading(text: &str) -> Option<String> {
    let title = text.trim_start_matches('#');
    let level = text.len() - title.len();
    let title = title.trim();
    ((1..=6).contains(&level) && !title.is_empty()).then(|| title.chars().take(60).collect())
}

fn section(text: &str) -> Option<String> {
    let name = text.strip_prefix('[')?.split_once(']')?.0.trim_start_matches('[');
    (!name.is_empty() && !name.contains(['"', ','])).then(|| format!("[{name}]"))
}

fn top_key(line: &str) -> Option<String> {
    let (key, _) = line.split_once(':')?;
    let is_key = key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    (is_key && !key.is_empty() && !key.starts_with('-')).then(|| key.to_owned())
}

fn table(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let kinds = "table|index|view|trigger|function";
    let [verb, rest @ ..] = words.as_slice() else { return None };
    let at = rest.iter().position(|word| is_among(word, kinds))?;
    let name = rest[at + 1..].iter().find(|word| !["if", "not", "exists"].contains(word))?;
    let name = name.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    (["create", "alter", "drop"].contains(verb) && at < 3 && !name.is_empty())
        .then(|| name.to_owned())
}

fn shell_function(text: &str) -> Option<String> {
    let name = text.split_once("()")?.0.trim_start_matches("function ").trim();
    identifier(name).filter(|found| found.len() == name.len()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_in_many_languages() {
        let cases = [
            ("pub async fn total(&self) -> u32 {", "rs", "total"),
            ("const fn limit() -> usize {", "rs", "limit"),
            ("    def add_item(self, x):", "py", "add_item"),
            ("export default class Cart extends Base {", "ts", "Cart"),
            ("export const total = (items: Item[]) => {", "tsx", "total"),
            ("func (c *Cart) Total() int {", "go", "Total"),
            ("type Cart struct {", "go", "Cart"),
            ("## Getting started", "md", "Getting started"),
            ("[dependencies]", "toml", "[dependencies]"),
            ("services:", "yml", "services"),
            ("CREATE TABLE IF NOT EXISTS users (", "sql", "users"),
            ("deploy() {", "sh", "deploy"),
        ];
        for (line, extension, name) in cases {
            assert_eq!(defined(line, extension).as_deref(), Some(name), "{line}");
        }
    }

    #[test]
    fn ordinary_lines_define_nothing() {
        let cases = [
            ("const x = 3;", "ts"),
            ("let total = 3;", "rs"),
            ("type: string", "ts"),
            ("# comment", "py"),
            ("class", "py"),
            ("fn", "rs"),
            ("fn main() {}", "txt"),
            ("  image: redis", "yml"),
            ("", "rs"),
            ("func (", "go"),
            ("\"a\": 1,", "json"),
            ("mod tests {", "rs"),
        ];
        for (line, extension) in cases {
            assert_eq!(defined(line, extension), None, "{line}");
        }
    }
}
