//! Files that pass a text from one hook of a session to a later one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use claude_mem_core::paths::create_private;

use crate::private_turn::{remove_old, session_hash};

const STARTS: &str = "starts";
const ANSWERS: &str = "answers";
const FAILURES: &str = "failures";

/// The file of one session in a folder of the data directory.
#[derive(Debug)]
pub(super) struct SessionFile {
    file: PathBuf,
}

impl SessionFile {
    /// How a session started, until its first prompt, for clients that take memory only with a
    /// prompt.
    pub(super) fn start(data: &Path, session: &str) -> Self {
        Self::of(data, STARTS, session)
    }

    /// The last answer of a turn, until it stops, for clients whose stop event lacks it.
    pub(super) fn answer(data: &Path, session: &str) -> Self {
        Self::of(data, ANSWERS, session)
    }

    /// The ids of failed tools that were found in the transcript.
    pub(super) fn failures(data: &Path, session: &str) -> Self {
        Self::of(data, FAILURES, session)
    }

    fn of(data: &Path, folder: &str, session: &str) -> Self {
        Self { file: data.join(format!("{folder}/{:016x}", session_hash(session))) }
    }

    /// Stores a text. If that fails, the later hook works without it.
    pub(super) fn keep(&self, text: &str) {
        let dir = self.file.parent().unwrap_or(&self.file);
        let _ = create_private(dir).and_then(|()| fs::write(&self.file, text));
    }

    pub(super) fn read(&self) -> Option<String> {
        fs::read_to_string(&self.file).ok()
    }

    /// Takes the text and removes the file.
    pub(super) fn take(&self) -> Option<String> {
        let text = self.read()?;
        fs::remove_file(&self.file).ok()?;
        Some(text)
    }
}

/// Removes files of sessions that did not continue.
pub fn sweep(data: &Path) -> io::Result<()> {
    [STARTS, ANSWERS, FAILURES].iter().try_for_each(|folder| remove_old(&data.join(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_once_and_by_its_session() {
        let data = tempfile::tempdir().unwrap();
        let start = |session| SessionFile::start(data.path(), session);
        start("1").keep("resume");
        assert_eq!(start("2").take(), None);
        assert_eq!(SessionFile::answer(data.path(), "1").take(), None);
        assert_eq!(start("1").take().as_deref(), Some("resume"));
        assert_eq!(start("1").take(), None);
    }
}
