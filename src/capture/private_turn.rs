//! A turn whose prompt was wholly private, remembered between hooks by an empty-handed file.
//!
//! The file is named by a hash of the session and holds the client's id of the turn. Nothing of the
//! prompt is in either. As long as it is there, what the session does is not recorded.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use claude_mem_core::paths::create_private;

/// The mark of one session.
#[derive(Debug)]
pub(super) struct PrivateTurn {
    file: PathBuf,
}

impl PrivateTurn {
    pub(super) fn of(data: &Path, session: &str) -> Self {
        Self { file: data.join(format!("private/{:016x}", hash(session))) }
    }

    /// Whether the session is in a private turn. In an ordinary one this is one failed `open`. A mark
    /// that is there and cannot be read counts: to record too little is the safe mistake.
    pub(super) fn is_on(&self) -> bool {
        self.prompt_id().is_some()
    }

    /// The turn that is private; empty where the client gives turns no ids.
    pub(super) fn prompt_id(&self) -> Option<String> {
        match fs::read(&self.file) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => None,
                _ => Some(String::new()),
            },
        }
    }

    /// From now on nothing of this session is recorded.
    pub(super) fn begin(&self, prompt_id: &str) -> io::Result<()> {
        create_private(self.file.parent().unwrap_or(&self.file))?;
        fs::write(&self.file, prompt_id)
    }

    /// From now on it is again.
    pub(super) fn end(&self) {
        // If it cannot be removed, the session stays private.
        let _ = fs::remove_file(&self.file);
    }
}

/// No turn goes on for so long: the session of an older mark was killed. If it is resumed nevertheless, its
/// next prompt says anew whether it is private.
const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes marks that nobody will.
pub fn sweep(data: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(data.join("private")) {
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

/// FNV-1a: stable for ever, and too short to be worth a library. Sessions are not chosen by attackers,
/// and two that meet only share their privacy.
fn hash(session: &str) -> u64 {
    session.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether the session is in a turn of which nothing may be stored.
pub fn is_turn_private(data: &Path, session: &str) -> bool {
    PrivateTurn::of(data, session).is_on()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_session_until_it_ends() {
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
    fn a_mark_that_nobody_took_away_is_swept_after_a_week() {
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
    fn a_mark_that_cannot_be_read_counts_and_a_file_in_the_way_does_not() {
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
