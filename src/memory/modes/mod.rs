//! Modes: the kind of work to observe, the types and concepts of its memories, and the text of the
//! prompt.
//!
//! `code` is built in. A file `modes/NAME.json` in the data directory adds or replaces a mode;
//! `modes/PARENT--NAME.json` overrides single fields of its parent.

use std::{fmt, fs, io, path::Path};

use claude_mem_core::{
    app::App,
    failure::Failure,
    settings::{Verbosity, table},
};
use serde::{Deserialize, Serialize};

/// The built-in mode.
pub const DEFAULT: &str = "code";

const CODE: &str = include_str!("code.json");

/// Separates the parent from the override in a mode name.
const OVERRIDE: &str = "--";

const NAME_BYTES_MAX: usize = 64;

/// A complete mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mode {
    /// The types of observations.
    pub types: Vec<Word>,
    /// The concepts (keywords) of observations.
    pub concepts: Vec<Word>,
    /// Completes "another session, in which …".
    pub observed: String,
    /// What to record.
    pub record: String,
    /// What to omit.
    pub skip: Skip,
    /// The language in a name such as `code--de`, if there is no file of that name.
    pub language: Option<String>,
}

/// A type or a concept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// Its id in responses and rows.
    pub id: String,
    /// Its meaning, for the prompt.
    #[serde(default, alias = "description")]
    pub means: String,
    /// Its icon in lists.
    #[serde(default, alias = "emoji")]
    pub icon: String,
}

/// What to omit, per verbosity or for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Skip {
    /// For every verbosity.
    Always(String),
    /// Per verbosity.
    ByVerbosity {
        /// Keep little.
        minimal: String,
        /// Keep what helps.
        normal: String,
        /// Keep nearly everything.
        verbose: String,
    },
}

impl Skip {
    /// The text for one verbosity.
    pub fn at(&self, verbosity: Verbosity) -> &str {
        match (self, verbosity) {
            (Self::Always(text), _) => text,
            (Self::ByVerbosity { minimal, .. }, Verbosity::Minimal) => minimal,
            (Self::ByVerbosity { normal, .. }, Verbosity::Normal) => normal,
            (Self::ByVerbosity { verbose, .. }, Verbosity::Verbose) => verbose,
        }
    }
}

/// Why a mode cannot be used.
#[derive(Debug)]
pub enum ModeError {
    /// The name is empty or contains characters of a path.
    Name(String),
    /// The mode does not exist.
    Unknown(String),
    /// Its file cannot be read.
    Read(String, io::Error),
    /// Its file is invalid.
    Json(String, serde_json::Error),
    /// It has no types.
    Empty(String),
}

impl fmt::Display for ModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => {
                write!(f, "`{}` cannot be the name of a mode", name.escape_debug())
            }
            Self::Unknown(name) => {
                write!(f, "there is no mode `{name}`: modes/{name}.json is missing")
            }
            Self::Read(name, error) => write!(f, "cannot read modes/{name}.json: {error}"),
            Self::Json(name, error) => write!(f, "modes/{name}.json is not a mode: {error}"),
            Self::Empty(name) => write!(f, "modes/{name}.json names no types"),
        }
    }
}

impl Mode {
    /// Finds a mode by name: in the data directory, then among the built-in ones.
    pub fn load(data: &Path, name: &str) -> Result<Self, ModeError> {
        if !is_safe(name) {
            return Err(ModeError::Name(name.to_owned()));
        }
        let Some((parent, change)) = name.split_once(OVERRIDE) else {
            let file = read(data, name)?.ok_or_else(|| ModeError::Unknown(name.to_owned()))?;
            return Self::from_file(&file, name);
        };
        let parent = Self::load(data, parent)?;
        match read(data, name)? {
            Some(file) => Ok(parent.changed_by(file)),
            None if is_language(change) => Ok(Self { language: Some(change.to_owned()), ..parent }),
            None => Err(ModeError::Unknown(name.to_owned())),
        }
    }

    /// The built-in mode.
    pub fn code() -> Self {
        Self::from_file(&built_in(), DEFAULT).expect("a test reads the file that is compiled in")
    }

    /// The ids of its types, for [`read_reply`](claude_mem_projections::xml::read_reply).
    pub fn kinds(&self) -> Vec<&str> {
        self.types.iter().map(|word| word.id.as_str()).collect()
    }

    /// A new mode inherits only missing texts from `code`.
    fn from_file(file: &File, name: &str) -> Result<Self, ModeError> {
        let code = built_in().texts;
        let missing = || ModeError::Empty(name.to_owned());
        let texts = &file.texts;
        Ok(Self {
            types: file.types.clone().filter(|types| !types.is_empty()).ok_or_else(missing)?,
            concepts: file.concepts.clone().unwrap_or_default(),
            observed: texts.observed.clone().or(code.observed).unwrap_or_default(),
            record: texts.record.clone().or(code.record).unwrap_or_default(),
            skip: texts.skip.clone().or(code.skip).unwrap_or(Skip::Always(String::new())),
            language: None,
        })
    }

    fn changed_by(self, file: File) -> Self {
        Self {
            types: file.types.filter(|types| !types.is_empty()).unwrap_or(self.types),
            concepts: file.concepts.unwrap_or(self.concepts),
            observed: file.texts.observed.unwrap_or(self.observed),
            record: file.texts.record.unwrap_or(self.record),
            skip: file.texts.skip.unwrap_or(self.skip),
            language: self.language,
        }
    }
}

/// A mode file. The aliases are the names in files of the TypeScript claude-mem.
#[derive(Debug, Default, Deserialize)]
struct File {
    #[serde(alias = "observation_types")]
    types: Option<Vec<Word>>,
    #[serde(alias = "observation_concepts")]
    concepts: Option<Vec<Word>>,
    #[serde(default, alias = "prompts")]
    texts: Texts,
}

#[derive(Debug, Default, Deserialize)]
struct Texts {
    observed: Option<String>,
    #[serde(alias = "recording_focus")]
    record: Option<String>,
    #[serde(alias = "skip_guidance")]
    skip: Option<Skip>,
}

fn built_in() -> File {
    serde_json::from_str(CODE).expect("a test reads the file that is compiled in")
}

fn read(data: &Path, name: &str) -> Result<Option<File>, ModeError> {
    match fs::read(data.join("modes").join(format!("{name}.json"))) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| ModeError::Json(name.to_owned(), error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok((name == DEFAULT).then(built_in))
        }
        Err(error) => Err(ModeError::Read(name.to_owned(), error)),
    }
}

/// Only letters, digits, `-` and `_`, so that the name cannot leave the directory.
fn is_safe(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('-')
        && name.matches(OVERRIDE).count() <= 1
}

/// `de`, `pt-br`.
fn is_language(name: &str) -> bool {
    let mut parts = name.split('-');
    let is_code = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_alphabetic());
    parts.next().is_some_and(is_code) && parts.next().is_none_or(is_code) && parts.next().is_none()
}

/// The current mode.
pub fn mode(app: &App) -> Result<Mode, Failure> {
    let name = app.settings.get(&table::MODE);
    Mode::load(&app.paths.data, &name).map_err(|error| {
        Failure::new(error.to_string())
            .meaning("memory is unchanged")
            .remedy("choose another with `claude-mem settings set CLAUDE_MEM_MODE code`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("modes")).unwrap();
        for (name, text) in files {
            fs::write(data.path().join("modes").join(name), text).unwrap();
        }
        data
    }

    #[test]
    fn the_mode_code_is_built_in() {
        let mode = Mode::load(Path::new("/nonexistent"), "code").unwrap();
        assert_eq!(mode, Mode::code());
        let kinds =
            "bugfix feature refactor change discovery decision rule security_alert security_note";
        assert_eq!(mode.kinds().join(" "), kinds);
        let concepts: Vec<_> = mode.concepts.iter().map(|word| word.id.as_str()).collect();
        let expected =
            "how-it-works why-it-exists what-changed problem-solution gotcha pattern trade-off";
        assert_eq!(concepts.join(" "), expected);
    }

    #[test]
    fn a_file_brings_its_own_types_and_words() {
        let law = r#"{"types":[{"id":"holding","means":"what was decided"}],
            "texts":{"observed":"a student reads cases","skip":"Gossip."}}"#;
        let data = data_with(&[("law.json", law)]);
        let mode = Mode::load(data.path(), "law").unwrap();
        assert_eq!(mode.kinds(), ["holding"]);
        assert_eq!(mode.observed, "a student reads cases");
        assert_eq!(mode.skip.at(Verbosity::Verbose), "Gossip.");
        assert_eq!(mode.record, Mode::code().record);
    }

    #[test]
    fn an_override_changes_only_what_it_names() {
        let data = data_with(&[
            ("code--calm.json", r#"{"texts":{"skip":"Nearly all."}}"#),
            (
                "code--old.json",
                r#"{"observation_types":[{"id":"x","description":"y","emoji":"z"}],
                "prompts":{"recording_focus":"All."}}"#,
            ),
        ]);
        let calm = Mode::load(data.path(), "code--calm").unwrap();
        let expected = Mode { skip: Skip::Always("Nearly all.".to_owned()), ..Mode::code() };
        assert_eq!(calm, expected);
        let old = Mode::load(data.path(), "code--old").unwrap();
        assert_eq!((old.kinds(), old.record.as_str()), (vec!["x"], "All."));
        let german = Mode::load(data.path(), "code--de").unwrap();
        assert_eq!(german.language.as_deref(), Some("de"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let data = data_with(&[("empty.json", "{}"), ("broken.json", "{")]);
        let long = "a".repeat(65);
        let load = |name: &str| Mode::load(data.path(), name).unwrap_err();
        for name in ["", "..", "../code", "a/b", "a.json", "a\0b", "-x", "a--b--c", "\u{fc}", &long]
        {
            assert!(matches!(load(name), ModeError::Name(_)), "{name:?}");
        }
        let error = load("none").to_string();
        assert_eq!(error, "there is no mode `none`: modes/none.json is missing");
        assert_eq!(load("empty").to_string(), "modes/empty.json names no types");
        assert!(load("broken").to_string().starts_with("modes/broken.json is not a mode: EOF"));
        assert!(matches!(load("code--none"), ModeError::Unknown(_)));
    }
}
