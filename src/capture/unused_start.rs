//! Starts of sessions whose memory was not given yet, for clients that take memory only with a
//! prompt. A file per session holds how it started, until its first prompt.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use claude_mem_core::paths::create_private;

use crate::private_turn::{remove_old, session_hash};

/// The file of one session.
#[derive(Debug)]
pub(super) struct UnusedStart {
    file: PathBuf,
}

impl UnusedStart {
    pub(super) fn of(data: &Path, session: &str) -> Self {
        Self { file: data.join(format!("starts/{:016x}", session_hash(session))) }
    }

    /// Keeps how the session started. If that fails, the session gets memory only for its prompts.
    pub(super) fn keep(&self, source: &str) {
        let dir = self.file.parent().unwrap_or(&self.file);
        let _ = create_private(dir).and_then(|()| fs::write(&self.file, source));
    }

    /// How the session started, once.
    pub(super) fn take(&self) -> Option<String> {
        let source = fs::read_to_string(&self.file).ok()?;
        fs::remove_file(&self.file).ok()?;
        Some(source)
    }
}

/// Removes files of sessions that had no prompt.
pub fn sweep(data: &Path) -> io::Result<()> {
    remove_old(&data.join("starts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_used_once_and_by_its_session() {
        let data = tempfile::tempdir().unwrap();
        let (one, other) = (UnusedStart::of(data.path(), "1"), UnusedStart::of(data.path(), "2"));
        one.keep("resume");
        assert_eq!(other.take(), None);
        assert_eq!(one.take().as_deref(), Some("resume"));
        assert_eq!(one.take(), None);
    }
}
