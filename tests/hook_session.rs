//! A session of Claude Code, as its hooks report it.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Runs the hooks of one session.
pub(crate) struct HookSession<'a> {
    sandbox: &'a Sandbox,
    /// Set in every payload.
    pub(crate) common: Value,
    variables: Vec<(&'a str, &'a str)>,
}

impl<'a> HookSession<'a> {
    /// A session in the home directory.
    pub(crate) fn new(sandbox: &'a Sandbox, id: &str) -> Self {
        let common = json!({"session_id": id, "cwd": sandbox.home()});
        Self { sandbox, common, variables: Vec::new() }
    }

    /// The same in another folder.
    pub(crate) fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.common["cwd"] = json!(folder.into());
        self
    }

    /// Runs its hooks with these variables.
    pub(crate) fn with(mut self, variables: &[(&'a str, &'a str)]) -> Self {
        self.variables.extend(variables);
        self
    }

    /// Runs the hook of an event with these fields, and returns its answer.
    pub(crate) fn hook(&self, event: &str, fields: Value) -> Value {
        let name = match event {
            "SessionStart" => "context",
            "UserPromptSubmit" => "new",
            "Stop" | "SubagentStop" => "summary",
            "SessionEnd" => "cleanup",
            _ => "save",
        };
        let mut payload = self.common.clone();
        payload["hook_event_name"] = event.into();
        let Value::Object(fields) = fields else { panic!("the fields of {event}: {fields}") };
        payload.as_object_mut().unwrap().extend(fields);
        self.sandbox.hook_with(name, &self.variables, payload.to_string())
    }

    pub(crate) fn start(&self) {
        self.hook("SessionStart", json!({"source": "startup"}));
    }

    pub(crate) fn prompt(&self, text: &str) {
        self.hook("UserPromptSubmit", json!({"prompt": text}));
    }

    pub(crate) fn tool(&self, id: &str, tool: &str, input: &Value, response: &Value) {
        let fields = json!({"tool_name": tool, "tool_use_id": id, "tool_input": input,
            "tool_response": response});
        self.hook("PostToolUse", fields);
    }

    /// Replaces a text in a file of its folder.
    pub(crate) fn edit(&self, id: &str, file: &str, old: &str, new: &str) {
        let file = PathBuf::from(self.common["cwd"].as_str().unwrap()).join(file);
        let input = json!({"file_path": file, "old_string": old, "new_string": new});
        self.tool(id, "Edit", &input, &json!({"filePath": file}));
    }

    pub(crate) fn stop(&self, message: &str) {
        self.hook("Stop", json!({"last_assistant_message": message}));
    }
}
