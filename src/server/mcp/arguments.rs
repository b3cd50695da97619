//! What a tool takes: told to the model as a JSON schema, and held against what it sends.
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
    pub(super) takes: Takes,
    pub(super) is_required: bool,
    pub(super) means: &'static str,
}

/// What may be given.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
    /// Text.
    Text,
    /// A whole number from one to another.
    Number(u64, u64),
    /// One of these.
    Choice(&'static [&'static str]),
    /// A list of texts, or one text with commas.
    List,
    /// The name of a memory, or whatever else text can say.
    Anchor,
    /// Names of memories: 12, "S3", "P9".
    Ids,
}

/// An optional parameter.
pub(super) const fn optional(name: &'static str, takes: Takes, means: &'static str) -> Parameter {
    Parameter { name, takes, is_required: false, means }
}

/// A parameter that must be given.
pub(super) const fn required(name: &'static str, takes: Takes, means: &'static str) -> Parameter {
    Parameter { name, takes, is_required: true, means }
}

impl Takes {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Number(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
            Self::Choice(choices) => json!({"type": "string", "enum": choices}),
            Self::List => json!({"type": ["array", "string"], "items": {"type": "string"}}),
            Self::Anchor => json!({"type": ["integer", "string"]}),
            Self::Ids => {
                json!({"type": "array", "items": {"type": ["integer", "string"]}, "minItems": 1})
            }
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

/// A number without a fraction, whichever way it is written.
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

/// The schema of a tool's input.
pub(super) fn schema(parameters: &[Parameter]) -> Value {
    let described = |parameter: &Parameter| {
        let mut schema = parameter.takes.schema();
        schema["description"] = parameter.means.into();
        (parameter.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = parameters.iter().map(described).collect();
    let required: Vec<&str> = parameters
        .iter()
        .filter(|parameter| parameter.is_required)
        .map(|parameter| parameter.name)
        .collect();
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// What a tool was given, known to be what it takes.
#[derive(Debug, Default)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Holds what was given against what is taken. Everything that is wrong is said at once.
    pub(super) fn check(given: Value, parameters: &[Parameter]) -> Result<Self, String> {
        let mut given = match given {
            Value::Null => Map::new(),
            Value::Object(given) => given,
            _ => return Err("arguments must be an object".into()),
        };
        // Some clients send what is not given as null.
        given.retain(|_, value| !value.is_null());
        let mut wrong = String::new();
        for (name, value) in &given {
            match parameters.iter().find(|parameter| parameter.name == name) {
                None => wrong += &unknown(name, parameters),
                Some(parameter) if !parameter.takes.accepts(value) => {
                    let expected = parameter.takes.expected();
                    let _ = writeln!(wrong, "`{name}` must be {expected}, not {}", shown(value));
                }
                Some(_) => {}
            }
        }
        for parameter in parameters.iter().filter(|parameter| parameter.is_required) {
            if !given.contains_key(parameter.name) {
                let expected = parameter.takes.expected();
                let _ = writeln!(wrong, "`{}` is required: {expected}", parameter.name);
            }
        }
        if wrong.is_empty() { Ok(Self(given)) } else { Err(wrong.trim_end().into()) }
    }

    /// A text, if it was given and is not blank.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// A number, if it was given.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.0.get(name).and_then(whole).map(|number| number as usize)
    }

    /// The items of a list; none if it was not given.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let items: Vec<&str> = match self.0.get(name) {
            Some(Value::String(text)) => text.split(',').collect(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        items.into_iter().map(str::trim).filter(|item| !item.is_empty()).map(Into::into).collect()
    }

    /// A number or a text, as text.
    pub(super) fn anchor(&self, name: &str) -> Option<String> {
        let value = self.0.get(name)?;
        let text = value.as_str().map(|text| text.trim().to_owned());
        text.or_else(|| Some(whole(value)?.to_string())).filter(|text| !text.is_empty())
    }

    /// Names of memories, each once, in the order given.
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
    format!("there is no parameter `{name}`; there are: {}\n", names.join(", "))
}

/// A value as it was sent, but not all of a long one.
fn shown(value: &Value) -> String {
    const CHARS_MAX: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
