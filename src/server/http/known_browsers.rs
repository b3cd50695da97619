//! `browsers.json`: browsers that may get a new key after a restart of the worker.
//!
//! A secret that outlives the worker would not be safe in a browser. While no worker runs, another
//! user can listen on its port, and their page reads everything stored for this address. So the
//! browser has a key pair whose private key no page can read, and the file has the public key. The
//! browser proves its identity by signing a challenge, which only a running worker can provide. A
//! worker on another port rejects the signature, so an attacker on this port cannot relay the
//! challenge.

use std::{collections::VecDeque, path::Path};

use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use claude_mem_core::user_file::{self, Readers};

/// Known browsers; the one that was not used for the longest time is dropped.
const BROWSERS_MAX: usize = 16;
/// A browser that was not used for this long is dropped.
const UNUSED_US_MAX: u64 = 30 * 24 * 3600 * 1_000_000;

/// One browser, at one address of the worker.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KnownBrowser {
    /// A point on P-256, in hexadecimal digits.
    public_key: String,
    /// The address that the browser opened, such as `http://127.0.0.1:37777`.
    address: String,
    /// Microseconds since 1970.
    last_used_us: u64,
}

/// Adds a browser that used a link. On a full disk it is not stored, and needs a link again.
pub(super) fn add(file: &Path, public_key: &str, address: &str, now_us: u64) {
    // An uncompressed point.
    if unhex(public_key).is_none_or(|key| key.len() != 65) {
        return;
    }
    let mut known = read(file, now_us);
    known.retain(|browser| browser.public_key != public_key || browser.address != address);
    let (public_key, address) = (public_key.to_owned(), address.to_owned());
    known.push_back(KnownBrowser { public_key, address, last_used_us: now_us });
    while known.len() > BROWSERS_MAX {
        known.pop_front();
    }
    if let Ok(text) = serde_json::to_vec_pretty(&known) {
        let _ = user_file::write(file, &text, Readers::Owner);
    }
}

/// Whether a known browser signed the challenge. If so, it stays known for another month.
pub(super) fn accept(
    file: &Path,
    public_key: &str,
    address: &str,
    (challenge, signature): (&str, &str),
    now_us: u64,
) -> bool {
    let is_known = read(file, now_us)
        .iter()
        .any(|browser| browser.public_key == public_key && browser.address == address);
    let is_signed = unhex(public_key).zip(unhex(signature)).is_some_and(|(key, signature)| {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
        key.verify(challenge.as_bytes(), &signature).is_ok()
    });
    if is_known && is_signed {
        add(file, public_key, address, now_us);
    }
    is_known && is_signed
}

/// The valid browsers, oldest first. An unreadable file has none: the next link adds one again.
fn read(file: &Path, now_us: u64) -> VecDeque<KnownBrowser> {
    let bytes = user_file::read(file).unwrap_or_default();
    let mut known: VecDeque<KnownBrowser> = serde_json::from_slice(&bytes).unwrap_or_default();
    known.retain(|browser| browser.last_used_us.saturating_add(UNUSED_US_MAX) > now_us);
    known
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
    };

    use super::*;

    const HERE: &str = "http://127.0.0.1:37777";

    /// A browser with its key pair.
    struct Browser(EcdsaKeyPair);

    impl Browser {
        fn new() -> Self {
            let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap())
        }

        fn public_key(&self) -> String {
            hex(self.0.public_key().as_ref())
        }

        fn sign(&self, challenge: &str) -> String {
            hex(self.0.sign(&SystemRandom::new(), challenge.as_bytes()).unwrap().as_ref())
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_browser_is_recognized_by_its_signature_only_at_its_address() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("browsers.json");
        let (browser, other) = (Browser::new(), Browser::new());
        let (key, signature) = (browser.public_key(), browser.sign("now"));
        let accept = |key: &str, address: &str, challenge: &str, signature: &str| {
            accept(&file, key, address, (challenge, signature), 2)
        };
        assert!(!accept(&key, HERE, "now", &signature), "no browser is known yet");
        add(&file, &key, HERE, 1);
        assert!(accept(&key, HERE, "now", &signature));
        assert!(!accept(&key, HERE, "later", &signature), "the challenge of another worker");
        assert!(!accept(&key, "http://127.0.0.1:40001", "now", &signature), "another port");
        assert!(!accept(&key, HERE, "now", &other.sign("now")), "signed by another browser");
        assert!(!accept(&other.public_key(), HERE, "now", &other.sign("now")), "unknown");
        for broken in ["", "0", "zz", "é", &signature[2..]] {
            assert!(!accept(&key, HERE, "now", broken), "{broken}");
        }
    }

    #[test]
    fn browsers_that_are_not_used_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("browsers.json");
        let browsers: Vec<Browser> = (0..=BROWSERS_MAX).map(|_| Browser::new()).collect();
        let accepts = |browser: &Browser, now_us: u64| {
            let (key, signature) = (browser.public_key(), browser.sign("now"));
            accept(&file, &key, HERE, ("now", &signature), now_us)
        };
        for browser in &browsers[..BROWSERS_MAX] {
            add(&file, &browser.public_key(), HERE, 1);
        }
        assert!(accepts(&browsers[0], 2), "it was used again, so the second is the oldest");
        add(&file, &browsers[BROWSERS_MAX].public_key(), HERE, 3);
        assert!(!accepts(&browsers[1], 4) && accepts(&browsers[0], 4));
        assert!(accepts(&browsers[0], UNUSED_US_MAX) && !accepts(&browsers[2], 2 * UNUSED_US_MAX));
        assert!(accepts(&browsers[0], 2 * UNUSED_US_MAX - 1), "each use counts");
    }

    #[test]
    fn a_public_key_in_another_format_is_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("browsers.json");
        for key in ["", "04", "not hex", &"ab".repeat(64)] {
            add(&file, key, HERE, 1);
        }
        assert!(!file.exists());
    }
}
