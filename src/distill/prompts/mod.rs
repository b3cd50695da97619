//! Prompt texts: compiled in, and replaceable by the user.
//!
//! A file of the same name in `prompts/` of the data directory replaces a built-in text, and
//! `--prompt FILE` replaces `init`. An adopted prompt is stored in `prompts/adopted.txt` and used
//! until another one is adopted or the file is deleted. The version is a hash of all current texts:
//! a response recorded under one version is reused only for requests with the same texts.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::escape::escaped;
use crate::turn_prompt::{self, Limits, Prompt, Turn};
use claude_mem_core::{
    paths::create_private,
    safe_text::clean,
    settings::Verbosity,
    user_file::{self, Readers},
};
use claude_mem_memory::modes::{Mode, Word};

/// Replaceable texts by file name.
const TEXTS: [(&str, &str); 4] = [
    ("init", include_str!("init.txt")),
    ("continue", include_str!("continue.txt")),
    ("observation", include_str!("observation.txt")),
    ("summary", include_str!("summary.txt")),
];

/// The response format. Appended to the user's own text, because the parser depends on it.
const FORMAT: &str = include_str!("format.txt");

/// Instructions of the generation adopted last. They take precedence over `init.txt`, which is the
/// user's file and is never written by us.
const ADOPTED: &str = "adopted.txt";

/// A larger file is a wrong path, not a prompt.
const TEXT_BYTES_MAX: u64 = 256 << 10;

/// Instructions for one reprocessing.
#[derive(Debug, Clone, Copy)]
pub enum Instructions<'a> {
    File(&'a Path),
    /// Inline text, for callers that must not make us open files.
    Text(&'a str),
    /// Those of `init.txt` or built in, ignoring adopted ones.
    Default,
}

/// Source of the current instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionsSource {
    BuiltIn,
    /// `prompts/init.txt`.
    Own,
    /// `prompts/adopted.txt`.
    Adopted,
}

impl InstructionsSource {
    pub fn detect(data: &Path) -> Self {
        let has = |name: &str| data.join("prompts").join(name).exists();
        match () {
            () if has(ADOPTED) => Self::Adopted,
            () if has("init.txt") => Self::Own,
            () => Self::BuiltIn,
        }
    }
}

/// Makes instructions the current ones; `None` returns to `init.txt` or the built-in ones.
pub fn adopt(data: &Path, instructions: Option<&str>) -> io::Result<()> {
    let dir = data.join("prompts");
    match instructions {
        Some(text) => {
            create_private(&dir)?;
            user_file::write(&dir.join(ADOPTED), text.as_bytes(), Readers::Owner)
        }
        None => match fs::remove_file(dir.join(ADOPTED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        },
    }
}

/// The user's options for prompts.
#[derive(Debug, Clone)]
pub struct PromptOptions<'a> {
    pub verbosity: Verbosity,
    /// Language to write in, such as `de`; empty for that of the session.
    pub language: &'a str,
    /// Replaces the current instructions.
    pub prompt: Option<Instructions<'a>>,
}

/// The current prompt texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    /// As given by the user or adopted; `None` for those of `init.txt` or built in.
    instructions: Option<String>,
    system: String,
    earlier: String,
    observation: String,
    summary: String,
    version: String,
}

/// A text that exists but cannot be used. A missing file is an error only if the user named it.
#[derive(Debug)]
pub struct PromptError {
    /// `None` for inline text.
    path: Option<PathBuf>,
    error: io::Error,
}

impl fmt::Display for PromptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "cannot use the prompt {}: {}", path.display(), self.error),
            None => write!(f, "cannot use this prompt: {}", self.error),
        }
    }
}

impl Prompts {
    /// Reads the texts for `mode` from the data directory, with the built-in ones as default.
    pub fn load(
        data: &Path,
        mode: &Mode,
        options: &PromptOptions<'_>,
    ) -> Result<Self, PromptError> {
        let mut texts = TEXTS.map(|(_, text)| text.to_owned());
        for (text, (name, _)) in texts.iter_mut().zip(TEXTS) {
            if let Some(own) = read(&data.join("prompts").join(format!("{name}.txt")), false)? {
                *text = own;
            }
        }
        let [init, earlier, observation, summary] = texts;
        let instructions = match options.prompt {
            Some(Instructions::File(path)) => read(path, true)?,
            Some(Instructions::Text(text)) => {
                let problem = |error| PromptError { path: None, error };
                Some(validated(text.to_owned()).map_err(problem)?)
            }
            Some(Instructions::Default) => None,
            None => read(&data.join("prompts").join(ADOPTED), false)?,
        };
        let system = system(instructions.as_deref().unwrap_or(&init), mode, options);
        let version = version(&[&system, &earlier, &observation, &summary]);
        Ok(Self { instructions, system, earlier, observation, summary, version })
    }

    /// 16 hexadecimal digits, recorded with each response.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All texts as JSON, recorded with a reprocessing. Includes `instructions` only if the user
    /// gave some, before substitution, so that they can be adopted later.
    pub fn texts(&self) -> String {
        let Self { instructions, system, earlier, observation, summary, .. } = self;
        let mut texts = serde_json::json!({
            "init": system, "continue": earlier, "observation": observation, "summary": summary,
        });
        if let Some(instructions) = instructions {
            texts["instructions"] = instructions.as_str().into();
        }
        texts.to_string()
    }

    /// The user's instructions, if they come from neither `init.txt` nor the binary.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Introduces the recap of a session to a provider without its history.
    pub fn earlier(&self, digest: &str) -> String {
        filled(&self.earlier, &[("digest", &escaped(digest.trim()))]).trim().to_owned()
    }

    /// Renders a turn.
    pub fn prompt(&self, turn: &Turn<'_>, limits: &Limits) -> Prompt {
        let earlier = turn.digest.map(|digest| self.earlier(digest));
        let closing = if turn.is_over { &self.summary } else { &self.observation };
        Prompt {
            system: self.system.clone(),
            data: clean(&turn_prompt::data(turn, earlier.as_deref(), limits)).into_owned(),
            closing: closing.trim().to_owned(),
        }
    }
}

/// The system prompt: the part that all requests share.
fn system(init: &str, mode: &Mode, options: &PromptOptions<'_>) -> String {
    let mut text = init.trim().to_owned();
    if !text.contains("{{format}}") {
        text.push_str("\n\n{{format}}");
    }
    let language = mode.language.as_deref().filter(|_| options.language.is_empty());
    let language = language.unwrap_or(options.language);
    if !language.is_empty() {
        text.push_str(
            "\n\
            Write all texts in this language: {{language}}. Tags, types, concepts, names and code \
            stay as they are.",
        );
    }
    filled(
        &text,
        &[
            ("observed", &mode.observed),
            ("record", &mode.record),
            ("skip", mode.skip.at(options.verbosity)),
            ("types", &list(&mode.types)),
            ("concepts", &list(&mode.concepts)),
            ("format", FORMAT.trim()),
            ("language", language),
        ],
    )
}

fn list(words: &[Word]) -> String {
    let entry = |word: &Word| match word.means.as_str() {
        "" => word.id.clone(),
        means => format!("{}: {means}", word.id),
    };
    words.iter().map(entry).collect::<Vec<_>>().join("\n")
}

/// Replaces `{{name}}` by its value in one pass: values are never substituted again.
fn filled(text: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let found = values.iter().find_map(|(name, value)| {
            let after = rest.strip_prefix("{{")?.strip_prefix(name)?.strip_prefix("}}")?;
            Some((*value, after))
        });
        let (value, after) = found.unwrap_or(rest.split_at(2));
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The first 16 hexadecimal digits of a hash over length-prefixed texts.
fn version(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path, must_be_there: bool) -> Result<Option<String>, PromptError> {
    let text = match fs::metadata(path) {
        Ok(file) if file.len() > TEXT_BYTES_MAX => Err(too_large()),
        Ok(_) => user_file::read_to_string(path),
        Err(error) => Err(error),
    };
    match text.and_then(validated) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_be_there => Ok(None),
        Err(error) => Err(PromptError { path: Some(path.to_owned()), error }),
    }
}

/// Rejects an empty or oversized text.
fn validated(text: String) -> io::Result<String> {
    match text.len() as u64 {
        len if len > TEXT_BYTES_MAX => Err(too_large()),
        _ if text.trim().is_empty() => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"))
        }
        _ => Ok(text),
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 256 kB")
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Default for PromptOptions<'_> {
        fn default() -> Self {
            Self { verbosity: Verbosity::Normal, language: "", prompt: None }
        }
    }

    fn load(data: &Path, options: &PromptOptions<'_>) -> Prompts {
        Prompts::load(data, &Mode::code(), options).unwrap()
    }

    fn built_in(options: &PromptOptions<'_>) -> Prompts {
        load(Path::new("/nonexistent"), options)
    }

    #[test]
    fn recorded_text_is_sent_without_control_and_invisible_characters() {
        let hostile = "a\x1b[2J\u{9b}b\u{202e}\u{200b}\u{e0041}c";
        let turn = Turn {
            project: hostile,
            cwd: hostile,
            prompt: hostile,
            last_assistant_message: Some(hostile),
            digest: Some(hostile),
            is_over: true,
            ..Turn::default()
        };
        let data = built_in(&PromptOptions::default()).prompt(&turn, &Limits::default()).data;
        assert!(!data.contains(claude_mem_core::safe_text::is_unsafe), "{data:?}");
        assert!(data.contains("a[2Jbc"), "{data}");
    }

    #[test]
    // Every byte is paid for with every request: keep the text short.
    fn the_built_in_instructions_match_the_fixture() {
        let prompts = built_in(&PromptOptions::default());
        let expected = include_str!("../../../tests/fixtures/prompts/code.txt");
        assert_eq!(prompts.system, expected.trim_end(), "\n{}", prompts.system);
        assert!(prompts.system.len() < 4_500, "{} bytes", prompts.system.len());
    }

    #[test]
    fn the_version_depends_on_every_option() {
        let data = tempfile::tempdir().unwrap();
        let own = data.path().join("own.txt");
        fs::write(&own, "Watch {{observed}}.").unwrap();
        let all_options = [
            PromptOptions::default(),
            PromptOptions { verbosity: Verbosity::Minimal, ..PromptOptions::default() },
            PromptOptions { verbosity: Verbosity::Verbose, ..PromptOptions::default() },
            PromptOptions { language: "de", ..PromptOptions::default() },
            PromptOptions { prompt: Some(Instructions::File(&own)), ..PromptOptions::default() },
        ];
        let mut versions: Vec<_> =
            all_options.iter().map(|options| built_in(options).version).collect();
        let again: Vec<_> = all_options.iter().map(|options| built_in(options).version).collect();
        assert_eq!(versions, again);
        let other = Mode { record: "All.".to_owned(), ..Mode::code() };
        versions.push(Prompts::load(data.path(), &other, &all_options[0]).unwrap().version);
        fs::create_dir(data.path().join("prompts")).unwrap();
        fs::write(data.path().join("prompts/summary.txt"), "Sum it up.").unwrap();
        versions.push(load(data.path(), &all_options[0]).version);
        let distinct: std::collections::HashSet<_> = versions.iter().collect();
        assert_eq!(distinct.len(), versions.len());
        assert!(versions.iter().all(|v| v.len() == 16 && v.bytes().all(|b| b.is_ascii_hexdigit())));
    }

    #[test]
    fn a_text_of_the_user_replaces_the_built_in_one() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("prompts")).unwrap();
        fs::write(data.path().join("prompts/init.txt"), "Watch. {{record}} {{unknown}}\n").unwrap();
        fs::write(data.path().join("prompts/observation.txt"), "Go.\n").unwrap();
        let prompts =
            load(data.path(), &PromptOptions { language: "fr", ..PromptOptions::default() });
        assert!(prompts.system.starts_with("Watch. What someone who opens"));
        assert!(prompts.system.contains(" {{unknown}}\n\nAnswer with these elements"));
        assert!(prompts.system.contains("in this language: fr."));
        assert_eq!(prompts.prompt(&Turn::default(), &Limits::default()).closing, "Go.");
    }

    #[test]
    fn adopted_instructions_replace_the_users_file_until_they_are_withdrawn() {
        let data = tempfile::tempdir().unwrap();
        let version = |prompt| {
            let prompts = load(data.path(), &PromptOptions { prompt, ..PromptOptions::default() });
            (prompts.version.clone(), InstructionsSource::detect(data.path()))
        };
        let (built_in, _) = version(None);
        fs::create_dir(data.path().join("prompts")).unwrap();
        fs::write(data.path().join("prompts/init.txt"), "Mine.").unwrap();
        let (own, source) = version(None);
        assert_eq!(source, InstructionsSource::Own);
        let (given, _) = version(Some(Instructions::Text("Given {{record}}.")));
        adopt(data.path(), Some("Given {{record}}.")).unwrap();
        assert_eq!(
            version(None),
            (given, InstructionsSource::Adopted),
            "the same text, the same version"
        );
        assert_eq!(version(Some(Instructions::Default)).0, own);
        for _ in 0..2 {
            adopt(data.path(), None).unwrap();
            assert_eq!(version(None), (own.clone(), InstructionsSource::Own));
        }
        assert_ne!(own, built_in);
        assert_eq!(fs::read_to_string(data.path().join("prompts/init.txt")).unwrap(), "Mine.");
    }

    #[test]
    fn the_error_names_an_unusable_text() {
        let data = tempfile::tempdir().unwrap();
        let missing = data.path().join("missing.txt");
        let options = PromptOptions {
            prompt: Some(Instructions::File(&missing)),
            ..PromptOptions::default()
        };
        let error = Prompts::load(data.path(), &Mode::code(), &options).unwrap_err().to_string();
        assert!(error.contains("missing.txt: No such file"), "{error}");
        fs::create_dir(data.path().join("prompts")).unwrap();
        fs::write(data.path().join("prompts/init.txt"), " \n").unwrap();
        let error =
            Prompts::load(data.path(), &Mode::code(), &PromptOptions::default()).unwrap_err();
        assert!(error.to_string().ends_with("init.txt: it is empty"), "{error}");
    }

    #[test]
    fn a_prompt_asks_for_a_summary_once_the_turn_is_over() {
        let prompts = built_in(&PromptOptions::default());
        let turn = Turn { digest: Some("- fixed <cart>\n"), ..Turn::default() };
        let unfinished = prompts.prompt(&turn, &Limits::default());
        assert_eq!(
            unfinished.data,
            "Already remembered from this session. Build on it; do not record it again, but \
             correct what turned out wrong:\n\
             - fixed &lt;cart>\n<session project=\"\" cwd=\"\">\n</session>"
        );
        assert!(
            unfinished.closing.contains("<skip/>") && !unfinished.closing.contains("<summary>")
        );
        let over = prompts.prompt(&Turn { is_over: true, ..turn }, &Limits::default());
        assert!(over.closing.contains("<observation>") && over.closing.contains("one <summary>"));
        assert_eq!(over.system, unfinished.system);
    }

    #[test]
    fn the_example_in_the_instructions_can_be_parsed() {
        let reply = claude_mem_projections::xml::read_reply(FORMAT, &Mode::code().kinds());
        let observation = &reply.observations[0];
        assert!(observation.title.is_some() && observation.subtitle.is_some());
        assert!(observation.narrative.is_some() && observation.facts.len() == 1);
        assert!(observation.files_read == ["path"] && observation.files_modified == ["path"]);
        let summary = reply.summary.unwrap();
        assert!(summary.request.is_some() && summary.investigated.is_some());
        assert!(summary.learned.is_some() && summary.completed.is_some());
        assert!(summary.next_steps.is_some() && summary.notes.is_some());
    }

    #[test]
    fn values_are_not_filled_in_again() {
        let text = filled("{{a}} {{b}} {{c}} {{", &[("a", "{{b}}"), ("b", "B")]);
        assert_eq!(text, "{{b}} B {{c}} {{");
    }
}
