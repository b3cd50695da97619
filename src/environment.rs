//! Where environment variables come from: the process, or a list in a test.

use std::ffi::OsString;

/// A view of environment variables. Everything that depends on one asks here, so that tests can give
/// each case an environment of its own while others run beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    #[cfg(test)]
    fixed: Option<Vec<(String, String)>>,
}

impl Environment {
    /// The environment this process was started with.
    pub(crate) fn of_process() -> Self {
        Self::default()
    }

    /// An environment that holds these variables and no others.
    #[cfg(test)]
    pub(crate) fn fixed(variables: &[(&str, &str)]) -> Self {
        let owned = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Self { fixed: Some(owned.collect()) }
    }

    /// The variable's value. Set to nothing counts as not set, as shells and Claude Code have it.
    pub(crate) fn get(&self, name: &str) -> Option<OsString> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// The variable's value as text. A value that is not Unicode counts as not set.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.into_string().ok()
    }

    /// Every variable, for a program that is started with nearly all of them.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "in tests the variables are in self")]
    pub(crate) fn all(&self) -> Vec<(OsString, OsString)> {
        std::env::vars_os().collect()
    }

    /// Every variable, for a program that is started with nearly all of them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<(OsString, OsString)> {
        let Some(fixed) = &self.fixed else { return std::env::vars_os().collect() };
        fixed.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "in tests the variables are in self")]
    fn raw(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    #[cfg(test)]
    fn raw(&self, name: &str) -> Option<OsString> {
        let Some(fixed) = &self.fixed else { return std::env::var_os(name) };
        fixed.iter().find(|(known, _)| known == name).map(|(_, value)| value.into())
    }
}
