//! One setting: its name, type, default, unit, group and description.

use super::{
    Settings, Source,
    value::{Kind, SettingValue},
};

/// A row of the settings table. The name is both the key in `settings.json` and the environment
/// variable that overrides it.
#[derive(Debug)]
pub struct Setting<T: SettingValue> {
    /// Key and environment variable.
    pub name: &'static str,
    spec: T::Spec,
    closed: Option<T::Spec>,
    unit: Unit,
    group: Group,
    label: &'static str,
    description: &'static str,
}

impl<T: SettingValue> Setting<T> {
    pub(super) const fn new(
        name: &'static str,
        spec: T::Spec,
        (group, label, description): (Group, &'static str, &'static str),
    ) -> Self {
        Self { name, spec, closed: None, unit: Unit::None, group, label, description }
    }

    pub(super) const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// For a privacy setting: the value if the written one is invalid, misspelled or unreadable.
    pub(super) const fn fails_closed(self, value: T::Spec) -> Self {
        Self { closed: Some(value), ..self }
    }

    /// The default value.
    pub fn default_value(&self) -> T {
        T::of_spec(self.spec)
    }

    pub(super) fn closed_value(&self) -> Option<T> {
        self.closed.map(T::of_spec)
    }

    /// Parses a text, or returns the accepted values.
    pub(super) fn parse(&self, text: &str) -> Result<T, String> {
        let text = text.trim();
        if text.contains(['\n', '\r', '\0']) {
            return Err("one line".into());
        }
        T::parse(self.spec, text)
    }
}

/// A setting of any type, as text.
pub trait AnySetting: Send + Sync {
    /// Key and environment variable.
    fn name(&self) -> &'static str;
    /// A short label.
    fn label(&self) -> &'static str;
    /// The description, in a sentence or two.
    fn description(&self) -> &'static str;
    /// The unit of its number.
    fn unit(&self) -> Unit;
    /// The section of the list.
    fn group(&self) -> Group;
    /// The accepted values.
    fn kind(&self) -> Kind;
    /// The default; empty if there is none.
    fn default_text(&self) -> String;
    /// For a privacy setting, the value instead of an invalid one.
    fn closed_text(&self) -> Option<String>;
    /// The text to store, or the accepted values.
    fn check(&self, text: &str) -> Result<String, String>;
    /// The current value, and its source.
    fn find_in(&self, settings: &Settings) -> (String, Source);
}

impl<T: SettingValue> AnySetting for Setting<T> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn label(&self) -> &'static str {
        self.label
    }
    fn description(&self) -> &'static str {
        self.description
    }
    fn unit(&self) -> Unit {
        self.unit
    }
    fn group(&self) -> Group {
        self.group
    }
    fn kind(&self) -> Kind {
        T::kind(self.spec)
    }
    fn default_text(&self) -> String {
        self.default_value().to_text()
    }
    fn closed_text(&self) -> Option<String> {
        self.closed_value().map(|value| value.to_text())
    }
    fn check(&self, text: &str) -> Result<String, String> {
        self.parse(text).map(|value| value.to_text())
    }
    fn find_in(&self, settings: &Settings) -> (String, Source) {
        let (value, source) = settings.resolve(self);
        (value.to_text(), source)
    }
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    None,
    Bytes,
    Megabytes,
    Tokens,
    Dollars,
    Seconds,
    Days,
}

impl Unit {
    /// Its name for people; empty if there is none.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Bytes => Some("bytes"),
            Self::Megabytes => Some("MB"),
            Self::Tokens => Some("tokens"),
            Self::Dollars => Some("US dollars"),
            Self::Seconds => Some("seconds"),
            Self::Days => Some("days"),
        }
    }
}

/// A section of the list of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Recording,
    Distilling,
    Context,
    Search,
    Sync,
    Retention,
    Worker,
}

impl Group {
    /// Its heading.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recording => "Recording",
            Self::Distilling => "Distilling",
            Self::Context => "Context",
            Self::Search => "Search",
            Self::Sync => "Backup and sync",
            Self::Retention => "Retention",
            Self::Worker => "Worker",
        }
    }
}
