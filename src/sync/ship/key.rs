//! The optional encryption key of a remote.

use std::{fmt, io, path::Path};

use crate::ship::Error;
use claude_mem_core::{os, user_file};

/// A 256-bit key. Shown to people by its fingerprint.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// A short hash that identifies a key.
pub type Fingerprint = [u8; 8];

const TEXT_START: &str = "claude-mem-key-1";
/// RFC 4648 base 32 in lower case. It has no `0`, `1`, `8` and `9`, which are easily misread.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const CHECK_BYTES: usize = 3;

impl Key {
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0; 32];
        os::fill_at_random(&mut bytes)?;
        Ok(Self(bytes))
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The fingerprint, which is not secret.
    pub fn fingerprint(&self) -> Fingerprint {
        let hash = blake3::derive_key("claude-mem 2026 key fingerprint", &self.0);
        hash.first_chunk().copied().expect("a hash is longer than a fingerprint")
    }

    /// The key as text: groups of letters and digits, with a checksum against typing errors.
    pub fn to_text(&self) -> String {
        let mut bytes = self.0.to_vec();
        bytes.extend_from_slice(&check(&self.0));
        let digits = to_base32(&bytes);
        let groups: Vec<&str> = digits
            .as_bytes()
            .chunks(7)
            .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
            .collect();
        format!("{TEXT_START}-{}", groups.join("-"))
    }

    /// Parses the output of [`to_text`](Self::to_text), ignoring case, spaces and dashes.
    pub fn from_text(text: &str) -> Result<Self, &'static str> {
        let squeeze = |text: &str| -> String {
            let kept = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
            kept.map(|c| c.to_ascii_lowercase()).collect()
        };
        let text = squeeze(text);
        let digits = text
            .strip_prefix(&squeeze(TEXT_START))
            .ok_or("it does not start with the prefix of a key")?;
        let bytes = from_base32(digits).ok_or("it contains an invalid character")?;
        let (key, sum) = bytes.split_first_chunk::<32>().ok_or("it is too short")?;
        match sum {
            sum if sum == check(key) => Ok(Self(*key)),
            sum if sum.len() < CHECK_BYTES => Err("it is too short"),
            sum if sum.len() > CHECK_BYTES => Err("it is too long"),
            _ => Err("its checksum is wrong: a character is mistyped"),
        }
    }

    /// Reads the key file; `None` if it does not exist.
    pub fn load(path: &Path) -> Result<Option<Self>, Error> {
        let text = match user_file::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        Self::from_text(&text).map(Some).map_err(|why| Error::io("use", path, invalid(why)))
    }

    /// Writes the key file, readable by its owner only. Never overwrites a key: everything
    /// encrypted with it would be lost.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let text = format!("{}\n", self.to_text());
        user_file::write_new(path, text.as_bytes()).map_err(|error| Error::io("write", path, error))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key({})", show(self.fingerprint()))
    }
}

pub fn show(fingerprint: Fingerprint) -> String {
    fingerprint.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check(key: &[u8; 32]) -> [u8; CHECK_BYTES] {
    let hash = blake3::derive_key("claude-mem 2026 key checksum", key);
    hash.first_chunk().copied().expect("a hash is longer than a checksum")
}

fn to_base32(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(5) {
        let bits =
            (0..5).fold(0_u64, |bits, at| bits << 8 | u64::from(*group.get(at).unwrap_or(&0)));
        for digit in 0..(group.len() * 8).div_ceil(5) {
            text.push(char::from(DIGITS[(bits >> (35 - 5 * digit)) as usize & 31]));
        }
    }
    text
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut bits = 0_u64;
    let mut count = 0;
    for digit in text.bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        bits = (bits << 5 | value as u64) & 0xFFFF;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_round_trips_through_its_text() {
        let key = Key::generate().unwrap();
        let text = key.to_text();
        assert_eq!(Key::from_text(&text), Ok(key.clone()));
        assert_eq!(
            Key::from_text(&format!(" {} \n", text.to_uppercase().replace('-', " "))),
            Ok(key)
        );
        assert_eq!(Key([7; 32]).to_text().len(), TEXT_START.len() + 8 * 8);
    }

    #[test]
    fn every_single_wrong_character_is_detected() {
        let text = Key([7; 32]).to_text();
        for at in TEXT_START.len() + 1..text.len() {
            let mut wrong = text.clone().into_bytes();
            if wrong[at] == b'-' {
                continue;
            }
            wrong[at] = if wrong[at] == b'a' { b'b' } else { b'a' };
            assert!(Key::from_text(std::str::from_utf8(&wrong).unwrap()).is_err(), "at {at}");
        }
        assert!(Key::from_text(&text[..text.len() - 2]).is_err());
        assert!(Key::from_text(&format!("{text}aa")).is_err());
        assert!(Key::from_text("hello").is_err());
    }

    #[test]
    fn a_key_file_is_private_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ship.key");
        assert_eq!(Key::load(&path).unwrap(), None);
        let key = Key::generate().unwrap();
        key.save(&path).unwrap();
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o777, 0o600);
        assert!(Key::generate().unwrap().save(&path).is_err());
        assert_eq!(Key::load(&path).unwrap(), Some(key));
    }
}
