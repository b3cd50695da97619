//! A received request, with accessors for scripts and tests.

use serde_json::Value;

/// One HTTP request, recorded before it is answered.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Request {
    /// Counts from 0 in the order of arrival.
    pub number: usize,
    /// `POST`, `GET`, ….
    pub method: String,
    /// Without the query: `/v1/messages`.
    pub path: String,
    /// The query after the `?`: `beta=true`, or empty.
    pub query: String,
    /// In the order sent, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; `null` when it is empty or not JSON.
    pub body: Value,
}

impl Request {
    /// The value of the first header of this name, in any letter case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The requested model, or empty.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// Whether a stream of events is requested.
    pub fn wants_stream(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or(false)
    }

    /// The text of the system prompt, wherever the protocol puts it, blocks joined by newlines.
    pub fn system_text(&self) -> String {
        let mut texts = Vec::new();
        collect_text(&self.body["system"], &mut texts);
        for message in self.messages().iter().filter(|message| message["role"] == "system") {
            collect_text(&message["content"], &mut texts);
        }
        texts.join("\n")
    }

    /// The text of the last user message, blocks joined by newlines; tool results are not part of
    /// it.
    pub fn last_user_text(&self) -> String {
        let mut texts = Vec::new();
        if let Some(message) = self.last_of_user() {
            collect_text(&message["content"], &mut texts);
        }
        texts.join("\n")
    }

    /// Every text of every message, whatever its role: clients put the context of hooks in
    /// different places for different models, so a test searches here.
    pub fn all_text(&self) -> String {
        let mut texts = Vec::new();
        collect_text(&self.body["system"], &mut texts);
        for message in self.messages() {
            collect_text(&message["content"], &mut texts);
        }
        texts.join("\n")
    }

    /// The results of tools in the last user message (Anthropic) or after the last answer (OpenAI),
    /// as `(id of the call, text of the result)`.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        let after_answer =
            self.messages().iter().rev().take_while(|one| one["role"] != "assistant");
        let mut results: Vec<_> = after_answer.flat_map(results_of).collect();
        results.reverse();
        results
    }

    /// Whether the last message has the result of a tool.
    pub fn has_tool_result(&self) -> bool {
        !self.tool_results().is_empty()
    }

    /// The number of tool results in the whole conversation, in any of the protocols.
    pub fn tool_results_so_far(&self) -> usize {
        let is_result = |part: &&Value| {
            let kind = part["type"].as_str().unwrap_or_default();
            part["role"] == "tool"
                || kind == "tool_result"
                || kind.ends_with("_call_output")
                || part["functionResponse"].is_object()
        };
        let items =
            ["messages", "input", "contents"].into_iter().flat_map(|it| list(&self.body[it]));
        let parts = |item: &Value| {
            let parts = list(&item["content"]).iter().chain(list(&item["parts"]));
            parts.filter(is_result).count()
        };
        items.map(|item| usize::from(is_result(&item)) + parts(item)).sum()
    }

    /// The names of the tools the model may call.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = list(&self.body["tools"]).iter();
        let tools = tools.flat_map(|tool| match list(&tool["functionDeclarations"]) {
            [] => std::slice::from_ref(tool),
            declared => declared,
        });
        let names = tools.map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()));
        names.flatten().collect()
    }

    fn messages(&self) -> &[Value] {
        list(&self.body["messages"])
    }

    fn last_of_user(&self) -> Option<&Value> {
        self.messages().iter().rev().find(|message| message["role"] == "user")
    }
}

/// The elements of an array; empty for other values.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Text is a string, or the `text` of blocks of type `text`.
fn collect_text<'a>(content: &'a Value, into: &mut Vec<&'a str>) {
    match content {
        Value::String(text) => into.push(text),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            into.extend(texts.filter_map(|block| block["text"].as_str()));
        }
        _ => {}
    }
}

/// Last first, since messages are read from the end.
fn results_of(message: &Value) -> Vec<(String, String)> {
    if message["role"] == "tool" {
        return vec![result(&message["tool_call_id"], &message["content"])];
    }
    let results =
        list(&message["content"]).iter().rev().filter(|block| block["type"] == "tool_result");
    results.map(|block| result(&block["tool_use_id"], &block["content"])).collect()
}

fn result(id: &Value, content: &Value) -> (String, String) {
    let mut texts = Vec::new();
    collect_text(content, &mut texts);
    (id.as_str().unwrap_or_default().to_owned(), texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asking(body: Value) -> Request {
        let (method, path) = ("POST".to_owned(), "/v1/messages".to_owned());
        Request { number: 0, method, path, query: String::new(), headers: Vec::new(), body }
    }

    #[test]
    fn text_is_found_as_a_string_and_in_blocks() {
        let request =
            asking(json!({"system": [{"type": "text", "text": "be brief"}], "messages": [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "not the user's"},
                {"type": "text", "text": "three"}, {"type": "text", "text": "four"}]}]}));
        assert_eq!(request.system_text(), "be brief");
        assert_eq!(request.last_user_text(), "three\nfour");
        assert_eq!(request.all_text(), "be brief\none\ntwo\nthree\nfour");
    }

    #[test]
    fn tool_results_keep_their_order_in_both_protocols() {
        let expected = [("a", "1"), ("b", "2")].map(|(id, text)| (id.to_owned(), text.to_owned()));
        let anthropic = asking(json!({"messages": [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "1"},
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}]}]}]}));
        assert_eq!(anthropic.tool_results(), expected);
        let openai = asking(json!({"messages": [
            {"role": "tool", "tool_call_id": "old", "content": "0"},
            {"role": "assistant", "content": null},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "content": "2"}]}));
        assert_eq!(openai.tool_results(), expected);
    }

    #[test]
    fn results_and_tools_are_counted_in_every_protocol() {
        for body in [
            json!({"messages": [{"role": "tool", "content": "1"}, {"role": "assistant"},
                {"role": "tool", "content": "2"}], "tools": [{"function": {"name": "a"}}]}),
            json!({"messages": [{"role": "user", "content": [{"type": "text"}, {"type": "tool_result"},
                {"type": "tool_result"}]}], "tools": [{"name": "a"}]}),
            json!({"input": [{"type": "function_call_output"}, {"type": "message"},
                {"type": "custom_tool_call_output"}], "tools": [{"type": "custom", "name": "a"}]}),
            json!({"contents": [{"parts": [{"functionResponse": {}}, {"functionResponse": {}}]}],
                "tools": [{"functionDeclarations": [{"name": "a"}]}]}),
        ] {
            let request = asking(body);
            let found = (request.tool_results_so_far(), request.tool_names());
            assert_eq!(found, (2, vec!["a"]), "{}", request.body);
        }
    }
}
