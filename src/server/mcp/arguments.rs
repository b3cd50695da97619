//! Parameters of tools: the JSON schema for the model, and validation of what it sends.
//!
//! Both come from one list of parameters, so that they cannot disagree.

use std::fmt::Write as _;

use claude_mem_projections::search::MemoryId;
use serde_json::{Map, Value, json};

use claude_mem_core::failure::nearest;

/// One parameter of a tool.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) type_: ParameterType,
    pub(super) is_required: bool,
    pub(super) description: &'static str,
}

/// Type of a parameter.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParameterType {
    /// Text.
    Text,
    /// An integer in a range.
    Number(u64, u64),
    /// One of these.
    Choice(&'static [&'static str]),
    /// An array of strings, or a comma-separated string.
    List,
    /// The ID of a memory, or text.
    Anchor,
    /// IDs of memories: 12, "S3", "P9".
    Ids,
}

/// An optional parameter.
pub(super) const fn optional(
    name: &'static str,
    type_: ParameterType,
    description: &'static str,
) -> Parameter {
    Parameter { name, type_, is_required: false, description }
}

/// A required parameter.
pub(super) const fn required(
    name: &'static str,
    type_: ParameterType,
    description: &'static str,
) -> Parameter {
    Parameter { name, type_, is_required: true, description }
}

impl ParameterType {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Number(..) => json!({"type": "integer"}),
            Self::Choice(choices) => json!({"type": "string", "enum": choices}),
            Self::List => json!({"type": ["array", "string"], "items": {"type": "string"}}),
            Self::Anchor => json!({"type": ["integer", "string"]}),
            Self::Ids => json!({"type": "array", "items": {"type": ["integer", "string"]}}),
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Number(0, u64::MAX) => "a whole number".into(),
            Self::Number(min, max) => format!("a whole number from {min} to {max}"),
            Self::Choice(choices) => format!("one of \"{}\"", choices.join("\", \"")),
            Self::List => "an array of strings, or a string with commas".into(),
            Self::Anchor => "a number or a string".into(),
            Self::Ids => r#"an array of IDs such as [12, "S3", "P9"]"#.into(),
        }
    }

    fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text | Self::List, Value::String(_)) => true,
            (Self::Number(min, max), value) => {
                whole(value).is_some_and(|number| (min..=max).contains(&number))
            }
            (Self::Choice(choices), Value::String(text)) => choices.contains(&text.as_str()),
            (Self::List, Value::Array(items)) => items.iter().all(Value::is_string),
            (Self::Anchor, value) => value.is_string() || whole(value).is_some(),
            (Self::Ids, Value::Array(items)) => {
                !items.is_empty() && items.iter().all(|item| name(item).is_some())
            }
            _ => false,
        }
    }
}

/// An integer, also if written as `5.0`.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
    })
}

fn name(value: &Value) -> Option<MemoryId> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => whole(value)?.to_string().parse().ok(),
    }
}

/// The schema of a tool's input. Every session pays for it, so it leaves out what is checked and
/// explained anyway when a call is wrong: limits of numbers, and that no other names are accepted.
pub(super) fn schema(parameters: &[Parameter]) -> Value {
    let described = |parameter: &Parameter| {
        let mut schema = parameter.type_.schema();
        schema["description"] = parameter.description.into();
        (parameter.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = parameters.iter().map(described).collect();
    let required: Vec<&str> = parameters
        .iter()
        .filter(|parameter| parameter.is_required)
        .map(|parameter| parameter.name)
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Validated arguments of a tool.
#[derive(Debug, Default)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Validates arguments. The error lists all problems.
    pub(super) fn check(given: Value, parameters: &[Parameter]) -> Result<Self, String> {
        let mut given = match given {
            Value::Null => Map::new(),
            Value::Object(given) => given,
            _ => return Err("arguments must be an object".into()),
        };
        // Some clients send missing arguments as null.
        given.retain(|_, value| !value.is_null());
        let mut wrong = String::new();
        for (name, value) in &given {
            match parameters.iter().find(|parameter| parameter.name == name) {
                None => wrong += &unknown(name, parameters),
                Some(parameter) if !parameter.type_.accepts(value) => {
                    let expected = parameter.type_.expected();
                    let _ = writeln!(wrong, "`{name}` must be {expected}, not {}", shown(value));
                }
                Some(_) => {}
            }
        }
        for parameter in parameters.iter().filter(|parameter| parameter.is_required) {
            if !given.contains_key(parameter.name) {
                let expected = parameter.type_.expected();
                let _ = writeln!(wrong, "`{}` is required: {expected}", parameter.name);
            }
        }
        if wrong.is_empty() { Ok(Self(given)) } else { Err(wrong.trim_end().into()) }
    }

    /// A string that is not blank.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.0.get(name).and_then(whole).map(|number| number as usize)
    }

    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let items: Vec<&str> = match self.0.get(name) {
            Some(Value::String(text)) => text.split(',').collect(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        items.into_iter().map(str::trim).filter(|item| !item.is_empty()).map(Into::into).collect()
    }

    /// A number or a string, as text.
    pub(super) fn anchor(&self, name: &str) -> Option<String> {
        let value = self.0.get(name)?;
        let text = value.as_str().map(|text| text.trim().to_owned());
        text.or_else(|| Some(whole(value)?.to_string())).filter(|text| !text.is_empty())
    }

    /// IDs of memories without duplicates, in the given order.
    pub(super) fn ids(&self, parameter: &str) -> Vec<MemoryId> {
        let mut ids = Vec::new();
        for id in self.0.get(parameter).and_then(Value::as_array).into_iter().flatten() {
            ids.extend(name(id).filter(|id| !ids.contains(id)));
        }
        ids
    }
}

fn unknown(name: &str, parameters: &[Parameter]) -> String {
    let names = || parameters.iter().map(|parameter| parameter.name);
    if let Some(nearest) = nearest(name, names()) {
        return format!("there is no parameter `{name}`: did you mean `{nearest}`?\n");
    }
    let names: Vec<&str> = names().collect();
    format!("there is no parameter `{name}`; expected one of: {}\n", names.join(", "))
}

/// A value as it was sent, cut if long.
fn shown(value: &Value) -> String {
    const CHARS_MAX: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
