//! Redacts a stored text according to its form: JSON, a model's reply, or a path.

use crate::{Policy, redact_json, redact_text};

/// Redacts JSON, or text if it is not valid JSON. JSON that was cut in the middle may be invalid.
pub fn redact_json_or_text(text: &str, policy: Policy) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => redact_json(text, policy),
        Err(_) => redact_text(text, policy).text,
    }
}

/// Redacts a path. A URL in a path has lost one of its slashes, so no rule would recognize it.
pub fn redact_path(path: &str, policy: Policy) -> String {
    if path.contains(":/") {
        let urls = path.replace("://", ":/").replace(":/", "://");
        let redacted = redact_text(&urls, policy).text;
        if redacted != urls {
            return redacted;
        }
    }
    redact_text(path, policy).text
}

/// Redacts a reply, element by element. No private text is ever sent to a model, so an unclosed
/// `<private>` in a reply only mentions the tag. It removes the rest of its element, not the other
/// memories in the reply.
pub fn redact_reply(reply: &str, policy: Policy) -> String {
    let mut redacted = String::with_capacity(reply.len());
    let mut rest = reply;
    while !rest.is_empty() {
        let (element, after) = rest.split_at(end_of_element(rest));
        redacted.push_str(&redact_text(element, policy).text);
        rest = after;
    }
    redacted
}

/// Elements of a reply that contain text.
const ELEMENTS: [&str; 19] = [
    "type",
    "title",
    "subtitle",
    "narrative",
    "facts",
    "fact",
    "concepts",
    "concept",
    "files",
    "file",
    "observation",
    "request",
    "investigated",
    "learned",
    "completed",
    "next",
    "notes",
    "summary",
    "skip",
];

/// The end of the first element: before the second closing tag, if the text starts with one.
fn end_of_element(reply: &str) -> usize {
    let is_closing = |at: &usize| {
        let name = &reply.as_bytes()[at + 2..];
        let is_name = |element: &&str| {
            name.get(..element.len())
                .is_some_and(|given| given.eq_ignore_ascii_case(element.as_bytes()))
        };
        *at > 0 && ELEMENTS.iter().any(is_name)
    };
    memchr::memmem::find_iter(reply.as_bytes(), b"</").find(is_closing).unwrap_or(reply.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_a_reply_only_mentions_costs_the_rest_of_its_element() {
        let redacted = |reply| redact_reply(reply, Policy::default());
        let reply = "<observation><title>a <private> tag</title><facts><fact>b</fact>\
            <fact>c <private>d</private> e</fact></facts></observation><summary>f</summary>";
        let expected = "<observation><title>a [redacted:private]</title><facts><fact>b</fact>\
            <fact>c [redacted:private] e</fact></facts></observation><summary>f</summary>";
        assert_eq!(redacted(reply), expected);
        for reply in ["", "</title>", "</title></title>", "<", "</", "plain"] {
            assert_eq!(redacted(reply), reply);
        }
    }

    #[test]
    fn a_url_in_a_path_loses_its_password() {
        let redacted = |path| redact_path(path, Policy::default());
        let expected = "/p/postgres://ada:[redacted:url-password]@db/x";
        assert_eq!(redacted("/p/postgres:/ada:hunter2@db/x"), expected);
        assert_eq!(redacted(expected), expected);
        assert_eq!(redacted("C:/Users/ada/x"), "C:/Users/ada/x");
    }
}
