//! `settings.good`: a checksummed copy of the last readable `settings.json`.
//!
//! A typing error in `settings.json`, or its removal, must not switch recording back on for a
//! project that was excluded, so an unreadable or missing file is replaced by this copy. The copy has the modification time of
//! its original: one `stat` shows that it is current, and it is written only after the settings
//! have changed.

use std::{
    fs::{self, File, Metadata},
    path::{Path, PathBuf},
};

use crate::user_file::{self, Readers};

/// The file name, in the data directory.
const FILE: &str = "settings.good";
/// Hexadecimal digits of the checksum before the text.
const CHECKSUM_DIGITS: usize = 64;

/// Saves a copy of a readable settings file. This costs one `stat` unless the file has changed, and
/// errors are ignored.
pub(super) fn keep(data: &Path, bytes: &[u8], original: &Metadata) {
    let Ok(modified) = original.modified() else { return };
    let file = path(data);
    let kept = fs::metadata(&file).and_then(|copy| copy.modified());
    if kept.is_ok_and(|kept| kept == modified) {
        return;
    }
    // Only the time may differ, on a disk that rounds it.
    if load(data).as_deref() != Some(bytes) {
        let mut copy = blake3::hash(bytes).to_hex().as_bytes().to_vec();
        copy.push(b'\n');
        copy.extend_from_slice(bytes);
        if user_file::write(&file, &copy, Readers::Owner).is_err() {
            return;
        }
    }
    let _ = File::options().write(true).open(&file).and_then(|copy| copy.set_modified(modified));
}

/// Whether there is a copy, so that a missing `settings.json` was there before.
pub(super) fn exists(data: &Path) -> bool {
    path(data).exists()
}

/// The text of the copy, if it exists and its checksum is right.
pub(super) fn load(data: &Path) -> Option<Vec<u8>> {
    let copy = user_file::read(&path(data)).ok()?;
    let (checksum, rest) = copy.split_at_checked(CHECKSUM_DIGITS)?;
    let text = rest.strip_prefix(b"\n")?;
    (blake3::hash(text).to_hex().as_bytes() == checksum).then(|| text.to_vec())
}

fn path(data: &Path) -> PathBuf {
    data.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_written_once_per_change_and_read_only_if_it_is_whole() {
        let data = tempfile::tempdir().unwrap();
        let original = data.path().join("settings.json");
        let keep = |text: &str| {
            fs::write(&original, text).unwrap();
            super::keep(data.path(), text.as_bytes(), &fs::metadata(&original).unwrap());
        };
        assert_eq!(load(data.path()), None);
        keep("{\"a\":1}");
        assert_eq!(load(data.path()).unwrap(), b"{\"a\":1}");
        let copy = path(data.path());
        let inode = |file: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(file).unwrap());
        let before = inode(&copy);
        super::keep(data.path(), b"{\"a\":1}", &fs::metadata(&original).unwrap());
        assert_eq!(inode(&copy), before, "it is not written again");
        keep("{\"a\":2}");
        assert_eq!(load(data.path()).unwrap(), b"{\"a\":2}");
        for at in [0, 70] {
            let mut bytes = fs::read(&copy).unwrap();
            bytes[at] ^= 1;
            fs::write(&copy, &bytes).unwrap();
            assert_eq!(load(data.path()), None, "damaged at {at}");
            bytes[at] ^= 1;
            fs::write(&copy, &bytes).unwrap();
        }
        fs::write(&copy, "short").unwrap();
        assert_eq!(load(data.path()), None);
    }
}
