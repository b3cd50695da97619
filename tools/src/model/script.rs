//! A script: which request gets which response.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::answer::{Answer, Block, Usage};
use super::request::Request;

/// Responses by rules first, then steps in order, then the default.
///
/// A request without a response is rejected with status 400 and a message: a test that sends more
/// requests than expected fails with the reason instead of waiting.
#[derive(Debug, Default)]
pub struct Script {
    rules: Vec<(When, Answer)>,
    steps: Mutex<VecDeque<Answer>>,
    otherwise: Option<Answer>,
}

/// The conditions of a rule. All of them must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    model: Option<String>,
    text: Option<String>,
    tool_result: Option<bool>,
}

/// An error in a script that was read from JSON.
#[derive(Debug)]
pub struct ScriptError(String);

impl Script {
    /// A script without any response.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the response to the next request that no rule matches.
    #[must_use]
    pub fn then(self, answer: Answer) -> Self {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
        self
    }

    /// Adds a rule. Rules are tried in the order they were added, before the steps.
    #[must_use]
    pub fn when(mut self, when: When, answer: Answer) -> Self {
        self.rules.push((when, answer));
        self
    }

    /// Sets the response after the last step.
    #[must_use]
    pub fn otherwise(self, answer: Answer) -> Self {
        Self { otherwise: Some(answer), ..self }
    }

    /// Parses the form that `claude-mem-tools model-server --help` describes.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let written: Written =
            serde_json::from_str(text).map_err(|e| ScriptError(e.to_string()))?;
        let mut script = Self::new();
        for rule in written.rules {
            script = script.when(rule.when, rule.answer.read()?);
        }
        for step in written.steps {
            script = script.then(step.read()?);
        }
        script.otherwise = written.otherwise.map(WrittenAnswer::read).transpose()?;
        Ok(script)
    }

    /// The response to this request, which may use up a step.
    pub fn answer(&self, request: &Request) -> Answer {
        if let Some((_, answer)) = self.rules.iter().find(|(when, _)| when.matches(request)) {
            return answer.clone();
        }
        let step = self.steps.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        step.or_else(|| self.otherwise.clone()).unwrap_or_else(|| {
            let message = format!("the script has no answer for request {}", request.number);
            Answer::error(400, "invalid_request_error", &message)
        })
    }
}

impl When {
    /// Any request.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name of the model contains this.
    #[must_use]
    pub fn model(self, part: &str) -> Self {
        Self { model: Some(part.to_owned()), ..self }
    }

    /// The last user message contains this.
    #[must_use]
    pub fn text(self, part: &str) -> Self {
        Self { text: Some(part.to_owned()), ..self }
    }

    /// The request has the result of a tool, or not.
    #[must_use]
    pub fn tool_result(self, present: bool) -> Self {
        Self { tool_result: Some(present), ..self }
    }

    fn matches(&self, request: &Request) -> bool {
        self.model.as_ref().is_none_or(|part| request.model().contains(part))
            && self.text.as_ref().is_none_or(|part| request.last_user_text().contains(part))
            && self.tool_result.is_none_or(|present| request.has_tool_result() == present)
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the script cannot be read: {}", self.0)
    }
}

impl std::error::Error for ScriptError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    rules: Vec<WrittenRule>,
    #[serde(default)]
    steps: Vec<WrittenAnswer>,
    otherwise: Option<WrittenAnswer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    #[serde(default)]
    when: When,
    answer: WrittenAnswer,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "they are the keys of the JSON form")]
struct WrittenAnswer {
    text: Option<String>,
    tools: Vec<WrittenTool>,
    error: Option<WrittenError>,
    hang: bool,
    malformed: bool,
    cut: bool,
    short: bool,
    stall: bool,
    stop_reason: Option<String>,
    slow_ms: u64,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTool {
    name: String,
    input: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenError {
    status: u16,
    r#type: Option<String>,
    message: Option<String>,
    retry_after: Option<u64>,
}

impl WrittenAnswer {
    fn read(self) -> Result<Answer, ScriptError> {
        let has_content = self.text.is_some() || !self.tools.is_empty();
        let ways = [has_content, self.error.is_some(), self.hang, self.malformed];
        if ways.into_iter().filter(|way| *way).count() != 1 {
            let rule = "an answer has text or tools, or one of error, hang and malformed";
            return Err(ScriptError(rule.to_owned()));
        }
        let mut answer = match self.error {
            Some(error) => error.read(),
            None if self.hang => Answer::hang(),
            None if self.malformed => Answer::malformed(),
            None => {
                let calls = self.tools.into_iter();
                let calls = calls.map(|tool| Block::Tool { name: tool.name, input: tool.input });
                Answer::blocks(self.text.map(Block::Text).into_iter().chain(calls))
            }
        };
        answer.usage = self.usage;
        answer.stop_reason = self.stop_reason;
        answer = answer.slow(Duration::from_millis(self.slow_ms));
        Ok(match (self.cut, self.short, self.stall) {
            (true, _, _) => answer.cut(),
            (_, true, _) => answer.short(),
            (_, _, true) => answer.stall(),
            _ => answer,
        })
    }
}

impl WrittenError {
    fn read(self) -> Answer {
        let answer = match (self.r#type, self.message) {
            (None, None) => Answer::http(self.status),
            (kind, message) => Answer::error(
                self.status,
                kind.as_deref().unwrap_or("api_error"),
                message.as_deref().unwrap_or("scripted"),
            ),
        };
        match self.retry_after {
            Some(seconds) => answer.retry_after(seconds),
            None => answer,
        }
    }
}
