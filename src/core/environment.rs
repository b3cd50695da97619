//! Environment variables: of the process, or a fixed list in tests.

use std::ffi::OsString;

/// Variables of the user and the machine: names, paths, language, time zone. Programs on Windows do
/// not start without the last ones.
const OWN: [&str; 30] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "ALLUSERSPROFILE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "OS",
    "COMPUTERNAME",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "PUBLIC",
];

/// Prefixes of further such variables.
const OWN_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

fn is_own(name: &str) -> bool {
    // Names ignore case on Windows.
    let name = if cfg!(windows) { name.to_ascii_uppercase() } else { name.to_owned() };
    OWN.contains(&name.as_str()) || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Environment variables. All code reads them here, so that parallel tests can each have their own.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    fixed: Option<Vec<(String, String)>>,
}

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        Self::default()
    }

    /// Only these variables, for tests.
    pub fn fixed(variables: &[(&str, &str)]) -> Self {
        let owned = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Self { fixed: Some(owned.collect()) }
    }

    /// The value of a variable. Empty counts as unset, as in shells and Claude Code.
    pub fn get(&self, name: &str) -> Option<OsString> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// The value of a variable as text. A value that is not Unicode counts as unset.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.into_string().ok()
    }

    /// The variables for a child process that serves all projects: those of the machine and its
    /// user. Tokens, URLs, profiles and proxies are dropped, because they may belong to the project
    /// that started us. To set them for all projects, write them to `.env` in the data directory.
    pub fn own(&self) -> Vec<(OsString, OsString)> {
        let mut all = self.all();
        all.retain(|(name, _)| name.to_str().is_some_and(is_own));
        all
    }

    /// All variables.
    pub fn all(&self) -> Vec<(OsString, OsString)> {
        let Some(fixed) = &self.fixed else { return std::env::vars_os().collect() };
        fixed.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn raw(&self, name: &str) -> Option<OsString> {
        let Some(fixed) = &self.fixed else { return std::env::var_os(name) };
        fixed.iter().find(|(known, _)| known == name).map(|(_, value)| value.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_may_belong_to_a_project_are_not_passed_on() {
        let kept =
            [("HOME", "/home/ada"), ("PATH", "/bin"), ("LC_ALL", "C"), ("XDG_RUNTIME_DIR", "/r")];
        let dropped = [
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_AUTH_TOKEN", "t"),
            ("ANTHROPIC_BASE_URL", "http://gateway"),
            ("AWS_PROFILE", "work"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "t"),
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
            ("CLAUDE_CODE_USE_VERTEX", "1"),
            ("CLAUDE_CONFIG_DIR", "/work/.claude"),
            ("CLAUDE_MEM_OPENAI_BASE_URL", "http://gateway"),
            ("CLAUDE_MEM_PROVIDER", "openai"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/k.json"),
            ("HTTPS_PROXY", "http://proxy"),
            ("NODE_EXTRA_CA_CERTS", "/ca.pem"),
            ("NODE_OPTIONS", "--require /x.js"),
            ("OPENAI_API_KEY", "k"),
        ];
        let all: Vec<_> = dropped.into_iter().chain(kept).collect();
        let expected = kept.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        assert_eq!(Environment::fixed(&all).own(), expected);
    }
}
