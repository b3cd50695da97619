//! Errors of commands: what happened, what it means, what to do.

use std::{fmt::Write as _, io, path::Path};

use crate::{
    json_edit::Unusable,
    paths::{NoHome, data_dir::OtherOwner},
    safe_text::clean,
    wrap::wrap_hanging,
};

/// An error of a command. Libraries describe the error; the advice is added here, because only the
/// binary knows its commands.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    what: String,
    meaning: Option<String>,
    remedy: Option<String>,
    kind: FailureKind,
}

/// Decides the exit code, and the status of an HTTP response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The operation failed.
    Operation,
    /// Wrong usage.
    Usage,
    /// A name has several meanings here.
    Ambiguous,
    /// The user declined: not an error, but not done either.
    Cancelled,
    /// Another program changed a file at the same time.
    Busy,
}

impl Failure {
    /// A failed operation: exit code 1.
    pub fn new(what: impl Into<String>) -> Self {
        let kind = FailureKind::Operation;
        Self { what: what.into(), meaning: None, remedy: None, kind }
    }

    /// Wrong usage: exit code 2.
    pub fn usage(what: impl Into<String>) -> Self {
        Self { kind: FailureKind::Usage, ..Self::new(what) }
    }

    /// A name that several things have; `keys` tell them apart. Exit code 2.
    pub fn ambiguous(what: impl Into<String>, keys: &[impl AsRef<str>]) -> Self {
        let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
        Self { kind: FailureKind::Ambiguous, ..Self::new(what) }
            .remedy(format!("name one of them: {}", keys.join(", ")))
    }

    /// The user declined: exit code 1.
    pub fn cancelled() -> Self {
        Self { kind: FailureKind::Cancelled, ..Self::new("cancelled") }
    }

    /// The data directory cannot be created.
    pub fn no_directory(dir: &Path, error: &io::Error) -> Self {
        Self::new(format!("{} cannot be created: {error}", dir.display()))
            .meaning("nothing can be stored there")
            .remedy(
                "set `CLAUDE_MEM_DATA_DIR` to a directory of your own, or see `claude-mem doctor`",
            )
    }

    /// What it means for the user.
    #[must_use]
    pub fn meaning(self, meaning: impl Into<String>) -> Self {
        Self { meaning: Some(meaning.into()), ..self }
    }

    /// What the user can do, with commands ready to paste.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            FailureKind::Usage | FailureKind::Ambiguous => 2,
            FailureKind::Operation | FailureKind::Cancelled | FailureKind::Busy => 1,
        }
    }

    /// All parts on one line, for the diagnostics.
    pub fn in_one_line(&self) -> String {
        let (what, meaning, remedy) = self.parts();
        let parts: Vec<&str> = [Some(what), meaning, remedy].into_iter().flatten().collect();
        clean(&parts.join("; ")).into_owned()
    }

    /// Repeats what failed only because another program changed a file at the same time.
    pub fn retried<T>(mut attempt: impl FnMut() -> Result<T, Self>) -> Result<T, Self> {
        const ATTEMPTS_MAX: usize = 20;
        for _ in 1..ATTEMPTS_MAX {
            match attempt() {
                Err(failure) if failure.kind == FailureKind::Busy => {}
                done => return done,
            }
        }
        attempt()
    }

    /// Its kind.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// What happened, what it means, and what to do.
    pub fn parts(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.what, self.meaning.as_deref(), self.remedy.as_deref())
    }

    /// The lines for stderr, wrapped to a terminal's width.
    pub fn render_wrapped(&self, is_coloured: bool, columns: Option<usize>) -> String {
        let text = self.render(is_coloured);
        match columns {
            Some(columns) => wrap_hanging(&text, columns, "note: ".len()),
            None => text,
        }
    }

    /// The lines for stderr.
    pub fn render(&self, is_coloured: bool) -> String {
        if self.kind == FailureKind::Cancelled {
            return format!("{}\n", self.what);
        }
        let mut text = String::new();
        let parts = [
            ("error", "1;31", Some(&self.what)),
            ("note", "1;36", self.meaning.as_ref()),
            ("hint", "1;32", self.remedy.as_ref()),
        ];
        for (label, colour, part) in parts {
            let Some(part) = part else { continue };
            let line = if is_coloured {
                writeln!(text, "\x1b[{colour}m{label}:\x1b[0m {}", clean(part))
            } else {
                writeln!(text, "{label}: {}", clean(part))
            };
            line.expect("writing to a string cannot fail");
        }
        text
    }
}

impl From<NoHome> for Failure {
    fn from(error: NoHome) -> Self {
        Self::new(error.to_string())
            .meaning("there is no directory for the memory")
            .remedy("set `CLAUDE_MEM_DATA_DIR` to a directory of your own")
    }
}

impl From<OtherOwner> for Failure {
    fn from(refused: OtherOwner) -> Self {
        Self::new(refused.to_string())
            .meaning("the memory of another user is neither read nor written")
            .remedy("run it as that user, or set `CLAUDE_MEM_DATA_DIR` to a directory of your own")
    }
}

impl From<Unusable> for Failure {
    fn from(error: Unusable) -> Self {
        let is_busy = error.is_busy();
        let remedy = match is_busy {
            true => "try again",
            false => "correct it by hand, then try again",
        };
        let failure = Self::new(error.to_string()).meaning("the file is unchanged").remedy(remedy);
        Self { kind: if is_busy { FailureKind::Busy } else { failure.kind }, ..failure }
    }
}

impl From<claude_mem_log::Error> for Failure {
    fn from(error: claude_mem_log::Error) -> Self {
        use claude_mem_log::Error as E;
        let failure = Self::new(error.to_string());
        match error {
            E::Full { .. } => failure
                .meaning("nothing more can be recorded")
                .remedy("free disk space, or set `CLAUDE_MEM_DATA_DIR` to a larger disk"),
            E::NotWritable { .. } => failure
                .meaning("nothing can be recorded")
                .remedy("see what is wrong with `claude-mem doctor`"),
            E::NewerFormat { .. } => {
                failure.meaning("nothing was changed").remedy("use a newer version of claude-mem")
            }
            E::SyncFailed { .. } => failure.meaning("a loss of power may lose the newest events"),
            E::Busy { .. } | E::TooLarge { .. } | E::ReservedKind { .. } | E::Io { .. } => failure,
        }
    }
}

/// The candidate nearest to a misspelled name, if one is near enough.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(typed, candidate), candidate))
        .filter(|(closeness, _)| *closeness > 0.8)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_renders_what_meaning_and_remedy() {
        let failure =
            Failure::new("the disk is full").meaning("nothing was lost").remedy("free disk space");
        assert_eq!(
            failure.render(false),
            "error: the disk is full\nnote: nothing was lost\nhint: free disk space\n"
        );
        assert!(failure.render(true).starts_with("\x1b[1;31merror:\x1b[0m the disk"));
        assert_eq!(Failure::usage("what?").render(false), "error: what?\n");
    }

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        assert_eq!(nearest("instal", ["install", "uninstall"]), Some("install"));
        assert_eq!(nearest("xyzzy", ["install", "uninstall"]), None);
    }
}
