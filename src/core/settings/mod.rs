//! Settings: from the environment, then `settings.json`, then the default.

mod file;
mod folder_pattern;
mod last_good;
mod setting;
pub mod table;
pub mod value;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use folder_pattern::FolderPattern;
use serde_json::{Map, Value};
pub use setting::{AnySetting, Group, Setting, Unit};
use strsim::osa_distance;
pub use value::{ClaudeAuth, Kind, ProviderName, SettingValue, SyncMode, Verbosity};

use crate::{
    diagnostics::{self, Level},
    environment::Environment,
    json_edit::{Document, Unusable},
    paths::Paths,
    user_file::{self, Readers},
};

/// The current settings. Loading reads at most one file; each value is parsed when it is used, so a
/// hook pays only for the few it needs.
#[derive(Debug)]
pub struct Settings {
    environment: Environment,
    file: Map<String, Value>,
    /// Why the file could not be read, if so.
    unusable: Option<Unusable>,
    /// The file could not be read, nor its last good copy: the exclusions are unknown.
    is_unknown: bool,
    credentials: PathBuf,
}

/// The maximum edit distance between a key and its misspelling.
const LETTERS_WRONG_MAX: usize = 2;

/// A value that its setting does not accept.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// The value as written.
    pub given: String,
    /// The accepted values.
    pub accepted: String,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An environment variable.
    Environment,
    /// `.env` in the data directory.
    Credentials,
    /// `settings.json`.
    File,
    /// The default.
    Default,
}

impl Settings {
    /// Reads the settings file. An invalid one is left as it is and reported in the diagnostics;
    /// then the last good copy is used. Without one, nothing is recorded. The environment still
    /// wins.
    pub fn load(paths: &Paths, environment: &Environment) -> Self {
        let mut settings = Self {
            environment: environment.clone(),
            file: Map::new(),
            unusable: None,
            is_unknown: false,
            credentials: paths.credentials(),
        };
        let path = paths.settings();
        let read = file::read(&path).and_then(|read| {
            let Some((bytes, metadata)) = read else {
                // Deleting the file must not lift its exclusions.
                return match last_good::exists(&paths.data) {
                    true => {
                        Err(Unusable::new(&path, "it is missing; to reset, write `{}` into it"))
                    }
                    false => Ok(Map::new()),
                };
            };
            let parsed = file::parse(&path, &bytes)?;
            last_good::keep(&paths.data, &bytes, &metadata);
            Ok(parsed)
        });
        match read {
            Ok(file) => settings.file = file,
            Err(unusable) => {
                diagnostics::record(&paths.data, Level::Warn, &unusable);
                let copy = last_good::load(&paths.data);
                match copy.and_then(|bytes| file::parse(&path, &bytes).ok()) {
                    Some(copy) => settings.file = copy,
                    None => settings.is_unknown = true,
                }
                settings.unusable = Some(unusable);
            }
        }
        settings
    }

    /// Problems of the settings and their consequences, in sentences for people. Empty if there are
    /// none.
    pub fn problems(&self) -> Vec<String> {
        let file = self.unusable.iter().map(|unusable| match self.is_unknown {
            false => format!("{unusable}; the settings last read without an error are used"),
            true => format!("{unusable}; nothing is recorded until it can be read"),
        });
        let values = table::ALL.iter().filter_map(|setting| {
            let (name, closed) = (setting.name(), setting.closed_text()?);
            let what = match (self.problem_of(*setting), self.misspelling(*setting)) {
                (Some(problem), _) => problem,
                (None, Some(key)) => format!("settings.json has `{key}`, which looks like {name}"),
                (None, None) => return None,
            };
            Some(format!("{what}; {}", effect(*setting, &closed)))
        });
        file.chain(values).collect()
    }

    /// What is wrong with the written value of this setting.
    pub fn problem_of(&self, setting: &dyn AnySetting) -> Option<String> {
        let Refused { given, accepted } = self.refusal(setting)?;
        Some(format!("{} is `{given}`, not {accepted}", setting.name()))
    }

    /// Whether the written value of this setting is invalid, or the file could not be read.
    pub fn is_doubtful(&self, setting: &dyn AnySetting) -> bool {
        self.is_unknown || self.refusal(setting).is_some() || self.misspelling(setting).is_some()
    }

    /// Whether neither the settings file nor a copy of it could be read.
    pub fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    /// The current value. An invalid one counts as absent, or as the most private value for a
    /// privacy setting: a typing error must neither stop a session nor expose it.
    pub fn get<T: SettingValue>(&self, setting: &Setting<T>) -> T {
        self.resolve(setting).0
    }

    /// The current value as text, and its source.
    pub fn find(&self, setting: &dyn AnySetting) -> (String, Source) {
        setting.find_in(self)
    }

    fn resolve<T: SettingValue>(&self, setting: &Setting<T>) -> (T, Source) {
        for (text, source) in self.candidates(setting) {
            match (text.and_then(|text| parse(setting, text)), setting.closed_value()) {
                (Ok(value), _) => return (value, source),
                (Err(_), Some(closed)) => return (closed, Source::Default),
                (Err(_), None) => {}
            }
        }
        let value = match setting.closed_value() {
            Some(closed) if self.is_unknown || self.misspelling(setting).is_some() => closed,
            _ => setting.default_value(),
        };
        (value, Source::Default)
    }

    /// The effect of a value that is not accepted.
    pub fn effect_of_refused(setting: &dyn AnySetting) -> String {
        setting.closed_text().map_or("it is ignored".into(), |closed| effect(setting, &closed))
    }

    /// A stored value that the setting does not accept, for error messages.
    pub fn refused(&self, setting: &dyn AnySetting) -> Option<Refused> {
        self.candidates(setting)
            .find_map(|(text, _)| text.and_then(|text| check(setting, text)).err())
    }

    /// Why the value that takes precedence is not accepted.
    fn refusal(&self, setting: &dyn AnySetting) -> Option<Refused> {
        self.candidates(setting).next()?.0.and_then(|text| check(setting, text)).err()
    }

    /// An unknown key in the file that is a likely misspelling of this setting, which is absent.
    fn misspelling(&self, setting: &dyn AnySetting) -> Option<&str> {
        if self.candidates(setting).next().is_some() {
            return None;
        }
        let name = setting.name();
        let is_near = |key: &&String| {
            key.len().abs_diff(name.len()) <= LETTERS_WRONG_MAX
                && table::ALL.iter().all(|known| known.name() != key.as_str())
                && osa_distance(&key.to_ascii_uppercase(), name) <= LETTERS_WRONG_MAX
        };
        self.file.keys().find(is_near).map(String::as_str)
    }

    /// The written values of a setting, by precedence. Only their JSON type is checked.
    fn candidates(
        &self,
        setting: &dyn AnySetting,
    ) -> impl Iterator<Item = (Result<String, Refused>, Source)> + use<> {
        let (name, kind) = (setting.name(), setting.kind());
        let environment = self.environment.text(name);
        let credentials = match kind {
            Kind::Secret(other_name) => self.credential(&[name, other_name]),
            _ => None,
        };
        let written = self.file.get(name).filter(|value| !value.is_null());
        let file = written.and_then(|value| match file::as_text(value, kind) {
            Some(text) if text.trim().is_empty() => None,
            Some(text) => Some(Ok(text)),
            None => {
                let accepted = kind.accepted_types().into();
                Some(Err(Refused { given: value.to_string(), accepted }))
            }
        });
        [
            (environment.map(Ok), Source::Environment),
            (credentials.map(Ok), Source::Credentials),
            (file, Source::File),
        ]
        .into_iter()
        .filter_map(|(text, source)| Some((text?, source)))
    }

    /// The first of these names in `.env`. That file belongs to claude-mem, so `ANTHROPIC_API_KEY`
    /// is safe there; in the environment it could belong to any project.
    fn credential(&self, names: &[&str]) -> Option<String> {
        let text = String::from_utf8(user_file::read(&self.credentials).ok()?).ok()?;
        names.iter().find_map(|name| {
            let line = text.lines().rev().find_map(|line| assignment(line, name))?;
            Some(line.trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
        })
    }
}

fn parse<T: SettingValue>(setting: &Setting<T>, given: String) -> Result<T, Refused> {
    setting.parse(&given).map_err(|accepted| Refused { given, accepted })
}

fn check(setting: &dyn AnySetting, given: String) -> Result<(), Refused> {
    match setting.check(&given) {
        Ok(_) => Ok(()),
        Err(accepted) => Err(Refused { given, accepted }),
    }
}

/// The effect of an invalid value of a privacy setting, which then has the value `closed`.
fn effect(setting: &dyn AnySetting, closed: &str) -> String {
    let effect = match setting.kind() {
        Kind::List if setting.name() == table::SKIP_TOOLS.name => "no tool use is recorded".into(),
        Kind::List => "nothing is recorded".into(),
        _ => format!("{} counts as `{closed}`", setting.name()),
    };
    format!("until that is corrected, {effect}")
}

/// The variables in `.env` that are not settings or keys of claude-mem. They are passed to programs
/// that work for all projects, such as the client that distills.
pub fn variables(credentials: &Path) -> Vec<(String, String)> {
    let is_ours = |name: &str| {
        let is_key = |setting: &&dyn AnySetting| matches!(setting.kind(), Kind::Secret(other) if other == name);
        name.starts_with("CLAUDE_MEM_") || table::ALL.iter().any(is_key)
    };
    let text =
        String::from_utf8(user_file::read(credentials).unwrap_or_default()).unwrap_or_default();
    let variable = |line: &str| {
        let line = line.trim();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let (name, value) = (name.trim(), value.trim().trim_matches(['"', '\'']));
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_usable = !name.is_empty() && name.chars().all(is_name) && !value.contains('\0');
        (is_usable && !is_ours(name)).then(|| (name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(variable).collect()
}

/// The value of a line `NAME=value` or `export NAME=value`.
fn assignment<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (found, value) = line.split_once('=')?;
    (found.trim() == name).then(|| value.trim())
}

/// Stores a checked value in the file of its kind; all other lines and keys are kept. `None`
/// removes it.
pub fn keep(paths: &Paths, setting: &dyn AnySetting, value: Option<&str>) -> Result<(), Unusable> {
    paths.create_data().map_err(|error| Unusable::new(&paths.data, error))?;
    let file = paths.settings();
    if !file.exists()
        && let Some(copy) = last_good::load(&paths.data)
    {
        user_file::write(&file, &copy, Readers::Owner)
            .map_err(|error| Unusable::new(&file, error))?;
    }
    let mut document = Document::open(&file)?;
    let in_settings = match setting.kind() {
        Kind::Secret(other_name) => {
            keep_credential(paths, &[setting.name(), other_name], value)
                .map_err(|error| Unusable::new(&paths.credentials(), error))?;
            None
        }
        _ => value,
    };
    document.set(setting.name(), &in_settings.map_or(Value::Null, Value::from));
    if let Value::Object(mut nested) = document.get("env")
        && nested.shift_remove(setting.name()).is_some()
    {
        document.set("env", &Value::Object(nested));
    }
    document.save()
}

/// Shows only the last four characters of a key, and only if enough characters stay hidden.
pub fn masked(setting: &dyn AnySetting, value: &str) -> String {
    let length = value.chars().count();
    match setting.kind() {
        Kind::Secret(_) if length >= 16 => {
            format!("…{}", value.chars().skip(length - 4).collect::<String>())
        }
        Kind::Secret(_) if length > 0 => "…".into(),
        _ => value.into(),
    }
}

fn keep_credential(paths: &Paths, names: &[&str], value: Option<&str>) -> io::Result<()> {
    let text = match user_file::read(&paths.credentials()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => String::from_utf8(read?).map_err(io::Error::other)?,
    };
    let is_ours = |line: &str| names.iter().any(|name| assignment(line, name).is_some());
    let mut lines: Vec<String> =
        text.lines().filter(|line| !is_ours(line)).map(str::to_owned).collect();
    lines.extend(value.map(|value| format!("{}={value}", names[0])));
    let mut text = lines.join("\n");
    text.push('\n');
    user_file::write(&paths.credentials(), text.as_bytes(), Readers::Owner)
}

#[cfg(test)]
mod tests;
