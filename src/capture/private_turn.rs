//! Private turns: a turn whose prompt was fully private is marked by a file, which all hooks of the
//! session see.
//!
//! The file name is a hash of the session id, and the file contains the client's id of the turn.
//! Neither reveals the prompt. While the file exists, the session is not recorded.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use claude_mem_core::paths::create_private;

/// The marker file of one session.
#[derive(Debug)]
pub(super) struct PrivateTurn {
    file: PathBuf,
}

impl PrivateTurn {
    pub(super) fn of(data: &Path, session: &str) -> Self {
        Self { file: data.join(format!("private/{:016x}", session_hash(session))) }
    }

    /// Whether the session is in a private turn. In an ordinary turn this is one failed `open`. An
    /// unreadable marker counts as private: it is safer to record too little.
    pub(super) fn is_on(&self) -> bool {
        self.prompt_id().is_some()
    }

    /// The id of the private turn; empty if the client has no turn ids.
    pub(super) fn prompt_id(&self) -> Option<String> {
        match fs::read(&self.file) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => None,
                _ => Some(String::new()),
            },
        }
    }

    /// Stops recording the session.
    pub(super) fn begin(&self, prompt_id: &str) -> io::Result<()> {
        create_private(self.file.parent().unwrap_or(&self.file))?;
        fs::write(&self.file, prompt_id)
    }

    /// Records the session again.
    pub(super) fn end(&self) {
        // If it cannot be removed, the session stays private.
        let _ = fs::remove_file(&self.file);
    }
}

/// No turn takes this long: the session of an older marker was killed. If the session is resumed,
/// its next prompt decides again.
const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes markers of sessions that were killed.
pub fn sweep(data: &Path) -> io::Result<()> {
    remove_old(&data.join("private"))
}

/// Removes files of this folder that are older than any turn.
pub(super) fn remove_old(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries.flatten() {
        let made = entry.metadata().and_then(|found| found.modified());
        if made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > AGE_MAX)) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// FNV-1a: stable, and too short to need a library. Attackers do not choose session ids. If two
/// sessions have the same hash, a private turn of one is private in both.
pub(super) fn session_hash(session: &str) -> u64 {
    session.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether the session is in a private turn.
pub fn is_turn_private(data: &Path, session: &str) -> bool {
    PrivateTurn::of(data, session).is_on()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_applies_to_one_session_until_its_turn_ends() {
        let data = tempfile::tempdir().unwrap();
        let (one, other) =
            (PrivateTurn::of(data.path(), "one"), PrivateTurn::of(data.path(), "../other"));
        assert!(!one.is_on());
        one.begin("p1").unwrap();
        assert_eq!(one.prompt_id().as_deref(), Some("p1"));
        assert!(!other.is_on());
        one.end();
        assert!(!one.is_on());
        one.end();
    }

    #[test]
    fn a_marker_that_was_left_behind_is_removed_after_a_week() {
        let data = tempfile::tempdir().unwrap();
        let (old, young) =
            (PrivateTurn::of(data.path(), "old"), PrivateTurn::of(data.path(), "young"));
        old.begin("").unwrap();
        young.begin("").unwrap();
        let long_ago = std::time::SystemTime::now() - AGE_MAX - Duration::from_secs(1);
        fs::File::open(&old.file).unwrap().set_modified(long_ago).unwrap();
        sweep(data.path()).unwrap();
        assert!(!old.is_on() && young.is_on());
        sweep(&data.path().join("nowhere")).unwrap();
    }

    #[test]
    fn a_marker_that_cannot_be_read_counts_and_a_file_in_place_of_the_directory_does_not() {
        let data = tempfile::tempdir().unwrap();
        let turn = PrivateTurn::of(data.path(), "s");
        fs::create_dir_all(&turn.file).unwrap();
        assert!(turn.is_on());
        fs::remove_dir_all(data.path().join("private")).unwrap();
        fs::write(data.path().join("private"), "").unwrap();
        assert!(!turn.is_on());
        assert!(turn.begin("").is_err());
    }
}
