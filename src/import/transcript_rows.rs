//! The lines of a transcript, as far as they matter: nothing is decoded before somebody asks for it.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use claude_mem_capture::json_text;

type Json<'a> = Option<&'a RawValue>;

/// One line. Everything in it may be of another type in another version of the client.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Row<'a> {
    #[serde(borrow, rename = "type")]
    kind: Json<'a>,
    #[serde(borrow)]
    subtype: Json<'a>,
    #[serde(borrow)]
    uuid: Json<'a>,
    #[serde(borrow)]
    timestamp: Json<'a>,
    #[serde(borrow)]
    session_id: Json<'a>,
    #[serde(borrow)]
    cwd: Json<'a>,
    #[serde(borrow)]
    prompt_id: Json<'a>,
    #[serde(borrow)]
    agent_id: Json<'a>,
    #[serde(borrow)]
    attribution_agent: Json<'a>,
    #[serde(borrow)]
    is_sidechain: Json<'a>,
    #[serde(borrow)]
    is_meta: Json<'a>,
    #[serde(borrow)]
    is_compact_summary: Json<'a>,
    #[serde(borrow)]
    is_api_error_message: Json<'a>,
    #[serde(borrow)]
    message: Json<'a>,
    #[serde(borrow)]
    tool_use_result: Json<'a>,
    #[serde(borrow)]
    attachment: Json<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    content: Json<'a>,
}

/// A part of what was said or done.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Json<'a>,
    #[serde(borrow)]
    text: Json<'a>,
    #[serde(borrow)]
    id: Json<'a>,
    #[serde(borrow)]
    name: Json<'a>,
    #[serde(borrow)]
    input: Json<'a>,
    #[serde(borrow)]
    tool_use_id: Json<'a>,
    #[serde(borrow)]
    content: Json<'a>,
    #[serde(borrow)]
    is_error: Json<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Attachment<'a> {
    #[serde(borrow, rename = "type")]
    kind: Json<'a>,
    #[serde(borrow)]
    prompt: Json<'a>,
}

fn text(json: Json<'_>) -> Cow<'_, str> {
    match json.map(RawValue::get) {
        None | Some("null") => Cow::Borrowed(""),
        Some(json) => json_text(json),
    }
}

fn flag(json: Json<'_>) -> bool {
    json.is_some_and(|json| json.get() == "true")
}

impl<'a> Row<'a> {
    pub(super) fn read(line: &'a str) -> Option<Self> {
        // A list would be taken for an object whose fields have no names.
        line.trim_start().starts_with('{').then(|| serde_json::from_str(line).ok())?
    }

    pub(super) fn kind(&self) -> Cow<'a, str> {
        text(self.kind)
    }

    pub(super) fn session(&self) -> Cow<'a, str> {
        text(self.session_id)
    }

    pub(super) fn cwd(&self) -> Cow<'a, str> {
        text(self.cwd)
    }

    pub(super) fn prompt_id(&self) -> Cow<'a, str> {
        text(self.prompt_id)
    }

    pub(super) fn agent_id(&self) -> Cow<'a, str> {
        text(self.agent_id)
    }

    pub(super) fn agent_type(&self) -> Cow<'a, str> {
        text(self.attribution_agent)
    }

    /// Of the client's own doing, and nothing that anybody said.
    pub(super) fn is_hidden(&self) -> bool {
        flag(self.is_meta) || flag(self.is_compact_summary) || flag(self.is_api_error_message)
    }

    /// Of a subagent.
    pub(super) fn is_aside(&self) -> bool {
        flag(self.is_sidechain)
    }

    pub(super) fn is_compaction(&self) -> bool {
        text(self.subtype) == "compact_boundary"
    }

    /// When, in microseconds.
    pub(super) fn time_us(&self) -> Option<u64> {
        let time: Timestamp = text(self.timestamp).parse().ok()?;
        u64::try_from(time.as_microsecond()).ok()
    }

    /// Its own id; of a row without one, its place in the session.
    pub(super) fn identity(&self) -> String {
        match text(self.uuid) {
            uuid if uuid.is_empty() => format!("{}/{}", self.session(), text(self.timestamp)),
            uuid => uuid.into_owned(),
        }
    }

    /// The message's parts. A message that is a string is one part of text.
    pub(super) fn blocks(&self) -> Vec<Block<'a>> {
        let message: Message<'a> = self
            .message
            .and_then(|message| serde_json::from_str(message.get()).ok())
            .unwrap_or_default();
        match message.content {
            None => Vec::new(),
            Some(content) if content.get().starts_with('"') => {
                vec![Block { text: Some(content), ..Block::default() }]
            }
            Some(content) => serde_json::from_str(content.get()).unwrap_or_default(),
        }
    }

    /// What a tool gave back, as hooks are told it.
    pub(super) fn tool_result(&self) -> Option<&'a str> {
        self.tool_use_result.map(RawValue::get).filter(|json| *json != "null")
    }

    /// What the user typed while the assistant was at work.
    pub(super) fn queued_prompt(&self) -> Option<Cow<'a, str>> {
        let attachment: Attachment<'a> = serde_json::from_str(self.attachment?.get()).ok()?;
        (text(attachment.kind) == "queued_command").then(|| text(attachment.prompt))
    }
}

impl<'a> Block<'a> {
    /// What it is; of a message that is a string, `text`.
    pub(super) fn kind(&self) -> Cow<'a, str> {
        match self.kind {
            None => Cow::Borrowed("text"),
            kind => text(kind),
        }
    }

    pub(super) fn text(&self) -> Cow<'a, str> {
        text(self.text)
    }

    /// Of a call: the tool.
    pub(super) fn tool(&self) -> Cow<'a, str> {
        text(self.name)
    }

    /// Of a call or a result: the client's id of the call.
    pub(super) fn call_id(&self) -> Cow<'a, str> {
        text(self.id.or(self.tool_use_id))
    }

    /// Of a call, as JSON.
    pub(super) fn input(&self) -> &'a str {
        self.input.map_or("", RawValue::get)
    }

    /// Of a result, as JSON.
    pub(super) fn output(&self) -> &'a str {
        self.content.map_or("", RawValue::get)
    }

    pub(super) fn is_error(&self) -> bool {
        flag(self.is_error)
    }

    /// Of a result: its words.
    pub(super) fn words(&self) -> String {
        let json = self.output();
        if json.starts_with('"') {
            return json_text(json).into_owned();
        }
        let blocks: Vec<Block<'_>> = serde_json::from_str(json).unwrap_or_default();
        blocks.iter().map(Block::text).collect::<Vec<_>>().join("\n")
    }
}
