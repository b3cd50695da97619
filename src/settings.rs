//! Settings: what the user chose. Environment, then `settings.json`, then the default.

mod exclusion;
mod file;
pub(crate) mod table;
pub(crate) mod value;

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
pub(crate) use table::Setting;
pub(crate) use value::Kind;

use crate::{
    diagnostics::{self, Level},
    document::{Document, Unusable},
    environment::Environment,
    paths::Paths,
    user_file::{self, Readers},
};

/// Values in force. Loading reads one file, or finds none; each value is looked up when asked for, so a
/// hook pays only for the few it needs.
#[derive(Debug)]
pub(crate) struct Settings {
    environment: Environment,
    file: Map<String, Value>,
    /// Why the file could not be read, if it could not.
    unusable: Option<Unusable>,
    credentials: PathBuf,
}

/// Who decided on a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// An environment variable.
    Environment,
    /// `.env` in the data directory.
    Credentials,
    /// `settings.json`.
    File,
    /// Nobody.
    Default,
}

impl Settings {
    /// Reads the settings file. One that cannot be used is left as it is and said so in the diagnostics;
    /// then the defaults are in force, and the environment still wins.
    pub(crate) fn load(paths: &Paths, environment: &Environment) -> Self {
        let (file, unusable) = match file::read_object(&paths.settings()) {
            Ok(file) => (file, None),
            Err(unusable) => {
                diagnostics::record(&paths.data, Level::Warn, &unusable);
                (Map::new(), Some(unusable))
            }
        };
        Self {
            environment: environment.clone(),
            file: file::flatten(file),
            unusable,
            credentials: paths.credentials(),
        }
    }

    /// Why none of the file's values is in force, if that is so.
    pub(crate) fn unusable(&self) -> Option<&Unusable> {
        self.unusable.as_ref()
    }

    /// The value in force. One that its setting does not accept counts as absent: a typing error in a
    /// file must not stop a session.
    pub(crate) fn text(&self, setting: &Setting) -> String {
        self.find(setting).0
    }

    /// The value in force of a [`Kind::Flag`].
    pub(crate) fn flag(&self, setting: &Setting) -> bool {
        value::flag(&self.text(setting)).unwrap_or(false)
    }

    /// The value in force, and who decided on it.
    pub(crate) fn find(&self, setting: &Setting) -> (String, Source) {
        self.candidates(setting)
            .find_map(|(text, source)| Some((setting.kind.check(&text).ok()?, source)))
            .unwrap_or_else(|| (setting.default.into(), Source::Default))
    }

    /// What somebody wrote and the setting does not accept, for whoever wants to mend it.
    pub(crate) fn refused(&self, setting: &Setting) -> Option<(String, String)> {
        self.candidates(setting)
            .find_map(|(text, _)| setting.kind.check(&text).err().map(|accepted| (text, accepted)))
    }

    fn candidates(&self, setting: &Setting) -> impl Iterator<Item = (String, Source)> {
        let environment = self.environment.text(setting.name);
        let credentials = match setting.kind {
            Kind::Secret(other_name) => self.credential(&[setting.name, other_name]),
            _ => None,
        };
        let file = self.file.get(setting.name).and_then(file::as_text);
        [
            (environment, Source::Environment),
            (credentials, Source::Credentials),
            (file.filter(|text| !text.trim().is_empty()), Source::File),
        ]
        .into_iter()
        .filter_map(|(text, source)| Some((text?, source)))
    }

    /// The first of these names in `.env`. That file is ours alone, so a name as plain as
    /// `ANTHROPIC_API_KEY` is safe there; in the environment it would belong to somebody's project.
    fn credential(&self, names: &[&str]) -> Option<String> {
        let text = String::from_utf8(user_file::read(&self.credentials).ok()?).ok()?;
        names.iter().find_map(|name| {
            let line = text.lines().rev().find_map(|line| assignment(line, name))?;
            Some(line.trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
        })
    }
}

/// The variables in `.env` that are no settings or keys of ours: what the user wants programs to get that
/// work for all projects, such as the client that distils.
pub(crate) fn variables(credentials: &Path) -> Vec<(String, String)> {
    let is_ours = |name: &str| {
        let is_key =
            |setting: &&Setting| matches!(setting.kind, Kind::Secret(other) if other == name);
        name.starts_with("CLAUDE_MEM_")
            || table::ALL.iter().copied().any(|setting| is_key(&setting))
    };
    let text = String::from_utf8(user_file::read(credentials).unwrap_or_default()).unwrap_or_default();
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

/// The value of a line `NAME=value` or `export NAME=value` of this name.
fn assignment<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (found, value) = line.split_once('=')?;
    (found.trim() == name).then(|| value.trim())
}

/// Keeps a checked value where its kind belongs; every other line and key stays as it was. `None` removes.
pub(crate) fn keep(paths: &Paths, setting: &Setting, value: Option<&str>) -> Result<(), Unusable> {
    paths.create_data().map_err(|error| Unusable::new(&paths.data, error))?;
    let mut document = Document::open(&paths.settings())?;
    let in_settings = match setting.kind {
        Kind::Secret(other_name) => {
            keep_credential(paths, &[setting.name, other_name], value)
                .map_err(|error| Unusable::new(&paths.credentials(), error))?;
            None
        }
        _ => value,
    };
    document.set(setting.name, &in_settings.map_or(Value::Null, Value::from));
    if let Value::Object(mut nested) = document.get("env")
        && nested.shift_remove(setting.name).is_some()
    {
        document.set("env", &Value::Object(nested));
    }
    document.save()
}

/// A key is told apart by its last four characters, and only if that leaves enough to guess.
pub(crate) fn masked(setting: &Setting, value: &str) -> String {
    let length = value.chars().count();
    match setting.kind {
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
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::{table::*, *};

    struct Case {
        dir: tempfile::TempDir,
        environment: Environment,
    }

    fn case(file: &str, environment: &[(&str, &str)]) -> Case {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("settings.json"), file).unwrap();
        Case { dir, environment: Environment::fixed(environment) }
    }

    impl Case {
        fn paths(&self) -> Paths {
            Paths { home: None, data: self.dir.path().into() }
        }
        fn load(&self) -> Settings {
            Settings::load(&self.paths(), &self.environment)
        }
        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
        }
    }

    #[test]
    fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
        let case = case(
            r#"{"CLAUDE_MEM_MODEL": "from-file", "CLAUDE_MEM_PROVIDER": "openai"}"#,
            &[("CLAUDE_MEM_PROVIDER", "extract"), ("CLAUDE_MEM_MODE", "")],
        );
        let settings = case.load();
        assert_eq!(settings.find(&PROVIDER), ("extract".into(), Source::Environment));
        assert_eq!(settings.find(&MODEL), ("from-file".into(), Source::File));
        assert_eq!(settings.find(&MODE), ("code".into(), Source::Default));
    }

    #[test]
    fn numbers_booleans_lists_a_mark_and_the_old_nesting_are_understood() {
        let file =
            "\u{feff}{\"env\": {\"CLAUDE_MEM_CONTEXT_OBSERVATIONS\": 40, \"CLAUDE_MEM_MODE\": \"old\"},
            \"CLAUDE_MEM_WORKER_AUTOSTART\": false, \"CLAUDE_MEM_MODE\": \"new\",
            \"CLAUDE_MEM_SKIP_TOOLS\": [\"Read\", \"Bash\"], \"CLAUDE_MEM_LANGUAGE\": null}";
        let settings = case(file, &[]).load();
        assert_eq!(settings.text(&CONTEXT_OBSERVATIONS), "40");
        assert!(!settings.flag(&WORKER_AUTOSTART));
        assert_eq!(settings.text(&MODE), "new");
        assert_eq!(settings.text(&SKIP_TOOLS), "Read,Bash");
        assert_eq!(settings.find(&LANGUAGE).1, Source::Default);
    }

    #[test]
    fn a_value_nobody_can_use_gives_way_to_the_next() {
        let settings =
            case(r#"{"CLAUDE_MEM_SYNC": "always"}"#, &[("CLAUDE_MEM_SYNC", "sometimes")]).load();
        assert_eq!(settings.find(&SYNC), ("always".into(), Source::File));
        let refused = settings.refused(&SYNC).unwrap();
        assert_eq!(refused, ("sometimes".into(), "one of `default`, `always`".into()));
    }

    #[test]
    fn an_unusable_file_is_left_alone_and_logged() {
        for broken in ["{\"a\": ", "[1]", "null", "\u{0}\u{1}"] {
            let case = case(broken, &[("CLAUDE_MEM_MODEL", "still-wins")]);
            let settings = case.load();
            assert_eq!(settings.text(&PROVIDER), "auto");
            assert_eq!(settings.text(&MODEL), "still-wins");
            assert_eq!(case.read("settings.json"), broken);
            assert!(case.read("logs/claude-mem.log").contains("settings.json cannot be used"));
            assert!(keep(&case.paths(), &MODEL, Some("x")).is_err());
            assert_eq!(case.read("settings.json"), broken);
        }
        assert_eq!(case("", &[]).load().text(&PROVIDER), "auto");
    }

    #[test]
    fn keeping_a_value_keeps_the_keys_we_do_not_know() {
        let case = case(r#"{"z": {"deep": 1}, "CLAUDE_MEM_MODEL": "a", "b": "2"}"#, &[]);
        keep(&case.paths(), &MODEL, Some("other")).unwrap();
        keep(&case.paths(), &SYNC, Some("always")).unwrap();
        keep(&case.paths(), &MODE, None).unwrap();
        let compact: Value = serde_json::from_str(&case.read("settings.json")).unwrap();
        assert_eq!(
            compact.to_string(),
            r#"{"z":{"deep":1},"CLAUDE_MEM_MODEL":"other","b":"2","CLAUDE_MEM_SYNC":"always"}"#
        );
        keep(&case.paths(), &MODEL, None).unwrap();
        assert_eq!(case.load().find(&MODEL).1, Source::Default);
    }

    #[test]
    fn a_value_in_the_old_nesting_can_be_taken_back() {
        let case = case(r#"{"env": {"CLAUDE_MEM_MODEL": "a", "other": 1}}"#, &[]);
        assert_eq!(case.load().text(&MODEL), "a");
        keep(&case.paths(), &MODEL, None).unwrap();
        assert_eq!(case.load().find(&MODEL).1, Source::Default);
        assert_eq!(case.read("settings.json"), r#"{"env":{"other":1}}"#);
    }

    #[test]
    fn a_key_in_the_callers_environment_is_never_ours() {
        let case = case("{}", &[("ANTHROPIC_API_KEY", "sk-of-a-project")]);
        assert_eq!(case.load().text(&ANTHROPIC_API_KEY), "");
        fs::write(case.paths().credentials(), "# mine\nexport ANTHROPIC_API_KEY=\"sk-mine\"\n")
            .unwrap();
        let found = case.load().find(&ANTHROPIC_API_KEY);
        assert_eq!(found, ("sk-mine".into(), Source::Credentials));
    }

    #[test]
    fn a_key_is_kept_apart_from_the_settings_and_only_its_owner_may_read_it() {
        let case = case(r#"{"CLAUDE_MEM_OPENAI_API_KEY": "sk-old"}"#, &[]);
        assert_eq!(case.load().text(&OPENAI_API_KEY), "sk-old");
        keep(&case.paths(), &OPENAI_API_KEY, Some("sk-new")).unwrap();
        assert_eq!(case.load().find(&OPENAI_API_KEY), ("sk-new".into(), Source::Credentials));
        assert!(!case.read("settings.json").contains("sk-"));
        let mode = fs::metadata(case.paths().credentials()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        keep(&case.paths(), &OPENAI_API_KEY, None).unwrap();
        assert_eq!(case.load().text(&OPENAI_API_KEY), "");
    }
}
