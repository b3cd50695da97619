//! The list of tools.

use serde_json::{Value, json};

use super::{
    Server,
    arguments::{Arguments, Parameter, schema},
    forget, get_observations, remember, revise, search, session_start_context, timeline,
};
use claude_mem_core::failure::{Failure, nearest};

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// Title, for people.
    pub(super) title: &'static str,
    /// For the model: when to use it, and what it returns.
    pub(super) description: &'static str,
    pub(super) parameters: &'static [Parameter],
    pub(super) effect: Effect,
    pub(super) run: fn(&mut Server<'_>, &Arguments) -> Result<String, Failure>,
}

/// Effect on memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Adds,
    Removes,
}

const TOOLS: [&Tool; 7] = [
    &search::SEARCH,
    &timeline::TIMELINE,
    &get_observations::GET_OBSERVATIONS,
    &remember::REMEMBER,
    &revise::REVISE,
    &forget::FORGET,
    &session_start_context::SESSION_START_CONTEXT,
];

/// All tools, for `tools/list`.
pub(super) fn described() -> Vec<Value> {
    TOOLS.iter().map(|tool| tool.described()).collect()
}

/// The tool of this name.
pub(super) fn named(name: &str) -> Result<&'static Tool, String> {
    let names = || TOOLS.iter().map(|tool| tool.name);
    if let Some(tool) = TOOLS.into_iter().find(|tool| tool.name == name) {
        return Ok(tool);
    }
    if let Some(nearest) = nearest(name, names()) {
        return Err(format!("there is no tool `{name}`: did you mean `{nearest}`?"));
    }
    let names: Vec<&str> = names().collect();
    Err(format!("there is no tool `{name}`; expected one of: {}", names.join(", ")))
}

impl Tool {
    fn described(&self) -> Value {
        let is_reading = self.effect == Effect::Reads;
        let mut annotations = json!({"readOnlyHint": is_reading, "openWorldHint": false});
        if !is_reading {
            annotations["destructiveHint"] = (self.effect == Effect::Removes).into();
        }
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": schema(self.parameters),
            "annotations": annotations,
        })
    }
}
