//! Changes single elements of a JSON text, with or without comments, and keeps every other byte.
//!
//! A parser does not preserve the format of numbers, comments, white space and the order of
//! members. So the text itself is edited: an element is inserted, replaced or removed in place.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};
use std::{fmt, ops::Range};

/// The text with one member of the outermost object set to a value, or removed if that is null.
/// `members` are those of the text.
pub(super) fn set(text: &str, members: &Map<String, Value>, key: &str, value: &Value) -> String {
    let mut wanted = members.clone();
    if value.is_null() {
        wanted.shift_remove(key);
    } else {
        wanted.insert(key.into(), value.clone());
    }
    let (before, wanted) = (Value::Object(members.clone()), Value::Object(wanted));
    let mut editor = Editor::new(text);
    editor.update(&mut Vec::new(), &before, &wanted);
    if parse(&editor.text).is_ok_and(|value| value == wanted) {
        return editor.text;
    }
    // If the text has several members of one name, the value contains the last one.
    let end = if text.ends_with('\n') { "\n" } else { "" };
    format!("{}{end}", editor.rendered(&wanted, ""))
}

/// The value of a text that can contain comments and trailing commas.
pub(super) fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| {
        let (code, _) = without_comments(text);
        serde_json::from_str(&without_last_commas(code)).map_err(|_| error)
    })
}

/// One step from an object or array to a value in it.
#[derive(Debug, Clone, Copy)]
enum Step<'k> {
    Member(&'k str),
    Item(usize),
}

/// A member of an object or an item of an array, by its place in the text.
#[derive(Debug)]
struct Element {
    /// Empty for an item.
    name: String,
    /// Where the name starts; of an item, the value.
    start: usize,
    value: Range<usize>,
}

#[derive(Debug)]
struct Editor {
    text: String,
    /// The white space of one level; `None` for a text in one line.
    indent: Option<String>,
    line_end: &'static str,
    /// The text with comments replaced by blanks, so that every offset stays valid.
    code: String,
    /// The same with trailing commas replaced by blanks, so that it can be parsed.
    json: String,
    comments: Vec<Range<usize>>,
}

impl Editor {
    fn new(text: &str) -> Self {
        let mut editor = Self {
            text: text.to_owned(),
            indent: indent(text),
            line_end: if text.contains("\r\n") { "\r\n" } else { "\n" },
            code: String::new(),
            json: String::new(),
            comments: Vec::new(),
        };
        editor.scan();
        editor
    }

    fn scan(&mut self) {
        (self.code, self.comments) = without_comments(&self.text);
        self.json = without_last_commas(self.code.clone());
    }

    fn replace(&mut self, range: Range<usize>, new: &str) {
        self.text.replace_range(range, new);
        self.scan();
    }

    /// Changes the value at this path from `old` to `new`.
    fn update<'k>(&mut self, path: &mut Vec<Step<'k>>, old: &'k Value, new: &'k Value) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(old), Value::Object(new)) => {
                for name in old.keys().filter(|name| !new.contains_key(*name)) {
                    self.remove(path, Step::Member(name));
                }
                for (name, value) in new {
                    match old.get(name) {
                        Some(old) => self.update_at(path, Step::Member(name), old, value),
                        None => self.append(path, Some(name), value),
                    }
                }
            }
            (Value::Array(old), Value::Array(new)) => self.update_items(path, old, new),
            _ => {
                let Some(range) = self.find(path) else { return };
                let rendered = self.rendered(new, self.indent_of_line(range.start));
                self.replace(range, &rendered);
            }
        }
    }

    fn update_at<'k>(
        &mut self,
        path: &mut Vec<Step<'k>>,
        step: Step<'k>,
        old: &'k Value,
        new: &'k Value,
    ) {
        path.push(step);
        self.update(path, old, new);
        path.pop();
    }

    /// Items that stay keep their position. An unwanted item is removed if the next wanted one
    /// comes later or if there are too many; otherwise it is replaced by the wanted one.
    fn update_items<'k>(&mut self, path: &mut Vec<Step<'k>>, old: &'k [Value], new: &'k [Value]) {
        let mut kept = 0;
        for (at, item) in old.iter().enumerate() {
            let (rest, wanted) = (&old[at + 1..], &new[kept..]);
            let is_removed = wanted.first().is_none_or(|next| {
                !wanted.contains(item) && (rest.len() >= wanted.len() || rest.contains(next))
            });
            if is_removed {
                self.remove(path, Step::Item(kept));
            } else {
                self.update_at(path, Step::Item(kept), item, &wanted[0]);
                kept += 1;
            }
        }
        for item in &new[kept..] {
            self.append(path, None, item);
        }
    }

    /// The place of the value at this path.
    fn find(&self, path: &[Step<'_>]) -> Option<Range<usize>> {
        let mut range = self.json.len() - self.json.trim_start().len()..self.json.trim_end().len();
        for step in path {
            let mut elements = self.elements(&range);
            let at = position(&elements, *step)?;
            range = elements.swap_remove(at).value;
        }
        Some(range)
    }

    fn elements(&self, range: &Range<usize>) -> Vec<Element> {
        let json = &self.json[range.clone()];
        let values: Vec<(String, &RawValue)> = if json.starts_with('{') {
            serde_json::from_str(json).map(|Members(members)| members).unwrap_or_default()
        } else {
            let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            items.into_iter().map(|item| (String::new(), item)).collect()
        };
        let mut elements = Vec::new();
        let mut end = range.start + 1;
        for (name, value) in values {
            let start = value.get().as_ptr() as usize - self.json.as_ptr() as usize;
            let value = start..start + value.get().len();
            let is_named = json.starts_with('{');
            let quote = self.json[end..start].find('"').filter(|_| is_named);
            let start = quote.map_or(start, |quote| end + quote);
            end = value.end;
            elements.push(Element { name, start, value });
        }
        elements
    }

    /// Adds an element after the last one.
    fn append(&mut self, path: &[Step<'_>], name: Option<&String>, value: &Value) {
        let Some(range) = self.find(path) else { return };
        let elements = self.elements(&range);
        let blank = if self.indent.is_some() { " " } else { "" };
        let name =
            name.map_or_else(String::new, |name| format!("{}:{blank}", Value::from(name.as_str())));
        let (Some(first), Some(last)) = (elements.first(), elements.last()) else {
            return self.fill(range, &name, value);
        };
        let end = last.value.end;
        let comma = self.comma_behind(end);
        let behind = comma.map_or(end, |comma| comma + 1);
        let (at, new) = match self.own_line(first.start) {
            Some(indent) => {
                let value = self.rendered(value, indent);
                (self.end_of_line(behind), format!("{}{indent}{name}{value}", self.line_end))
            }
            None => (behind, format!("{blank}{name}{value}")),
        };
        // The later position is edited first, so that the earlier one stays valid.
        if comma.is_some() {
            self.replace(at..at, &format!("{new},"));
        } else {
            self.replace(at..at, &new);
            self.replace(end..end, ",");
        }
    }

    /// Adds the first element to an object or array.
    fn fill(&mut self, range: Range<usize>, name: &str, value: &Value) {
        let inside = range.start + 1..range.end - 1;
        let Some(unit) = self.indent.clone() else {
            return self.replace(inside.start..inside.start, &format!("{name}{value}"));
        };
        let outer = self.indent_of_line(range.start).to_owned();
        let indent = format!("{outer}{unit}");
        let line_end = self.line_end;
        let element = format!("{line_end}{indent}{name}{}", self.rendered(value, &indent));
        // After the comments.
        let at = inside.start + self.text[inside.clone()].trim_end().len();
        self.replace(at..inside.end, &format!("{element}{line_end}{outer}"));
    }

    /// Removes an element with its comma, and its line if nothing else is there.
    fn remove(&mut self, path: &[Step<'_>], step: Step<'_>) {
        let Some(range) = self.find(path) else { return };
        let elements = self.elements(&range);
        let Some(at) = position(&elements, step) else { return };
        let Element { start, value, .. } = &elements[at];
        let comma = self.comma_behind(value.end);
        let end = comma.map_or(value.end, |comma| comma + 1);
        let rest = &self.text[end..];
        let is_line_free = rest.trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        let removed = match self.own_line(*start) {
            Some(_) if is_line_free => self.text[..*start].trim_end().len()..end,
            // The next element stays on a separate line, in case a comment ends the line before.
            Some(_) => *start..end + (rest.len() - rest.trim_start_matches(' ').len()),
            None if at == 0 => *start..end + (rest.len() - rest.trim_start_matches(' ').len()),
            None => self.text[..*start].trim_end_matches(' ').len()..end,
        };
        self.replace(removed, "");
        let previous = at.checked_sub(1).filter(|_| comma.is_none());
        if let Some(previous) = previous
            && let Some(comma) = self.comma_behind(elements[previous].value.end)
        {
            self.replace(comma..comma + 1, "");
        }
        if elements.len() == 1
            && let Some(range) = self.find(path)
            && self.text[range.start + 1..range.end - 1].trim().is_empty()
        {
            self.replace(range.start + 1..range.end - 1, "");
        }
    }

    /// The comma after a value.
    fn comma_behind(&self, end: usize) -> Option<usize> {
        let rest = &self.code[end..];
        let blank = rest.len() - rest.trim_start().len();
        rest[blank..].starts_with(',').then_some(end + blank)
    }

    /// The white space before an element that is the first in its line.
    fn own_line(&self, start: usize) -> Option<&str> {
        let line = &self.code[..start];
        let line = &self.text[line.rfind('\n')? + 1..start];
        line.trim().is_empty().then_some(line)
    }

    /// The white space at the start of the line of a place.
    fn indent_of_line(&self, at: usize) -> &str {
        let line = &self.text[self.text[..at].rfind('\n').map_or(0, |end| end + 1)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// The end of the line, after its comments, if there is nothing else in it. Otherwise the place
    /// itself.
    fn end_of_line(&self, from: usize) -> usize {
        let is_in_comment = |at: usize| self.comments.iter().any(|it| it.start < at && at < it.end);
        let mut ends = self.text[from..].match_indices('\n').map(|(at, _)| from + at);
        let end = ends.find(|at| !is_in_comment(*at)).unwrap_or(self.text.len());
        if !self.code[from..end].trim().is_empty() {
            return from;
        }
        from + self.text[from..end].trim_end().len()
    }

    /// A value, formatted with this indentation.
    fn rendered(&self, value: &Value, indent: &str) -> String {
        let Some(unit) = &self.indent else { return value.to_string() };
        pretty(value, unit).replace('\n', &format!("{}{indent}", self.line_end))
    }
}

/// Of members with the same name, the last one is used.
fn position(elements: &[Element], step: Step<'_>) -> Option<usize> {
    match step {
        Step::Member(name) => elements.iter().rposition(|element| element.name == name),
        Step::Item(at) => (at < elements.len()).then_some(at),
    }
}

/// The white space of the first indented line; two spaces if there is none; `None` for a text on
/// one line.
fn indent(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.contains('\n') && text != "{}" {
        return None;
    }
    let white = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let is_code = |line: &&str| white(line) > 0 && !line.trim_start().starts_with('*');
    let line = text.lines().find(is_code);
    Some(line.map_or("  ", |line| &line[..white(line)]).to_owned())
}

fn pretty(value: &Value, indent: &str) -> String {
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(value, &mut serializer).expect("a JSON value can be written");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// The text with comments replaced by blanks of the same length, and their positions.
fn without_comments(text: &str) -> (String, Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut comments = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (end, is_comment) = match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => (end_of_string(bytes, at), false),
            (b'/', Some(b'/')) => (find(bytes, at, b"\n").unwrap_or(bytes.len()), true),
            (b'/', Some(b'*')) => {
                (find(bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2), true)
            }
            _ => (at + 1, false),
        };
        if is_comment {
            comments.push(at..end);
            let of_comment = code[at..end].iter_mut();
            of_comment.filter(|byte| !byte.is_ascii_whitespace()).for_each(|byte| *byte = b' ');
        }
        at = end;
    }
    (String::from_utf8(code).unwrap_or_else(|_| text.to_owned()), comments)
}

/// Replaces trailing commas by blanks.
fn without_last_commas(code: String) -> String {
    let mut bytes = code.into_bytes();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at = end_of_string(&bytes, at);
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if !byte.is_ascii_whitespace() => comma = None,
            _ => {}
        }
        at += 1;
    }
    String::from_utf8(bytes).expect("only commas were replaced")
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn find(bytes: &[u8], start: usize, wanted: &[u8]) -> Option<usize> {
    let rest = bytes.get(start..)?;
    rest.windows(wanted.len()).position(|part| part == wanted).map(|at| start + at)
}

/// The members of an object in order, with the raw text of their values.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(text: &str, key: &str, value: &Value) -> String {
        let Value::Object(members) = parse(text).unwrap() else { panic!("{text}") };
        set(text, &members, key, value)
    }

    const COMMENTED: &str =
        "{\n  // mine: \"é\", {\n  \"a\": \"// no\", /* keep */\n  \"b\": [1, 2,], // two\n}\n";

    #[test]
    fn comments_stay_when_a_member_is_added_changed_and_removed() {
        let added = changed(COMMENTED, "new", &json!({"x": 1}));
        let expected = "// two\n  \"new\": {\n    \"x\": 1\n  },";
        assert_eq!(added, COMMENTED.replace("// two", expected));
        assert_eq!(changed(&added, "new", &Value::Null), COMMENTED);
        assert_eq!(changed(COMMENTED, "a", &json!(7)), COMMENTED.replace("\"// no\"", "7"));
        assert!(changed(COMMENTED, "a", &Value::Null).contains("/* keep */"));
        assert_eq!(changed("{} // empty", "a", &json!(1)), "{\"a\":1} // empty");
    }

    #[test]
    fn elements_inside_a_member_come_and_go_and_everything_around_them_stays() {
        let before = "\
            {\r\n\t\"hooks\": { // all\r\n\t\t/* the\r\n\t\t   end */\r\n\
            \t\t\"Stop\": [ { \"x\" : 1.0 } ], // mine\r\n\t\t\"End\": []\r\n\
            \t}, // hooks\r\n\t\"n\": 1.50\r\n}";
        let hooks = json!({"Stop": [{"x": 1.0}, {"y": 2}], "End": [3], "New": [4]});
        let added = changed(before, "hooks", &hooks);
        let expected = before
            .replace("1.0 } ]", "1.0 }, {\"y\":2} ]")
            .replace("[]\r\n", "[\r\n\t\t\t3\r\n\t\t],\r\n\t\t\"New\": [\r\n\t\t\t4\r\n\t\t]\r\n");
        assert_eq!(added, expected);
        let removed = json!({"Stop": [{"x": 1.0}], "End": []});
        assert_eq!(changed(&added, "hooks", &removed), before);
        let emptied = changed(before, "hooks", &json!({}));
        assert!(emptied.contains("// all") && emptied.contains("// hooks"), "{emptied}");
    }

    #[test]
    fn an_item_before_others_is_removed_alone() {
        let before = "{\n  \"a\": [\n    1, // one\n    [2, 2.50],\n    3\n  ]\n}";
        let after = changed(before, "a", &json!([[2, 2.5], 3, 4]));
        assert_eq!(after, "{\n  \"a\": [\n    // one\n    [2, 2.50],\n    3,\n    4\n  ]\n}");
        assert_eq!(changed(before, "a", &json!([1, [2, 7], 3])), before.replace("2.50", "7"));
        assert_eq!(changed("{\"a\":[1,2,3]}", "a", &json!([2])), "{\"a\":[2]}");
    }

    #[test]
    fn every_value_that_is_set_is_read_back() {
        let values = [
            json!(1),
            json!({}),
            json!([]),
            json!({"a": {"b": [1, {"c": null}]}, "d": "x\n\"y\""}),
            json!({"a": {"b": [{"c": null}]}}),
            json!([[1], [2], {"a": 1}]),
            json!([[2], {"a": 2}, [1]]),
        ];
        let texts = [
            "{}",
            "{ }\n",
            "{ // none\n}",
            "{\n}",
            "{\"k\":1}",
            "{ \"k\" : {\"a\":{}}, }",
            "{ // c\n \"k\": [1, // d\n 2 // e\n ] /* f\n g */ }",
            "{ \"z\": 1 // c\n, \"k\": 2, \"y\": 3 // d\n}",
            "{\"k\": 1, \"k\": 2}",
        ];
        for text in texts {
            for (first, second) in
                values.iter().flat_map(|it| values.iter().map(move |to| (it, to)))
            {
                let mut text = text.to_owned();
                for value in [first, second, &Value::Null, first] {
                    text = changed(&text, "k", value);
                    let read = parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                    assert_eq!(read["k"], *value, "{text}");
                }
            }
        }
        for odd in ["/", "/*", "//", "\"", "\"\\", "{\"a\": 1, /", ",}"] {
            assert!(parse(odd).is_err(), "{odd}");
        }
    }
}
