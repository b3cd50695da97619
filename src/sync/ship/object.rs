//! The format of an object in a remote.
//!
//! | at | size | what |
//! |---|---|---|
//! | 0 | 4 | magic `F9 63 6D 6F` |
//! | 4 | 1 | version of this format: 1 |
//! | 5 | 1 | flags: 1 = compressed with zstd, 2 = encrypted |
//! | 6 | 2 | zero |
//! | 8 | 8 | length of the bytes within, little-endian |
//! | 16 | 16 | not encrypted: BLAKE3 of bytes 0 to 15, the object's name, a zero and the body, cut to 16 bytes |
//! | 16 | 32 | encrypted: fingerprint of the key, 8 bytes, and a random nonce, 24 bytes |
//! | | | the body; encrypted with XChaCha20-Poly1305, which also covers bytes 0 to 23 and the name |
//!
//! The checksum covers the object's name within its log, so an object cannot be used under another
//! name.

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};

use crate::ship::{
    Error,
    key::{self, Key},
};
use claude_mem_core::os;

const MAGIC: [u8; 4] = [0xF9, b'c', b'm', b'o'];
const VERSION: u8 = 1;
const FLAG_ZSTD: u8 = 1;
const FLAG_ENCRYPTED: u8 = 2;
const HEAD_LEN: usize = 16;
const SUM_LEN: usize = 16;
const KEY_LEN: usize = 8;
const NONCE_LEN: usize = 24;
/// Larger than any object we write. A greater length is invalid and is not allocated.
const BYTES_MAX: u64 = 256 << 20;
/// Fast enough not to slow down shipping. Higher levels save a few percent for twice the time.
const ZSTD_LEVEL: i32 = 3;

/// Packs bytes into an object.
pub(super) fn pack_object(
    name: &str,
    bytes: &[u8],
    key: Option<&Key>,
    compress: bool,
) -> std::io::Result<Vec<u8>> {
    let compressed = match compress {
        true => Some(zstd::bulk::compress(bytes, ZSTD_LEVEL)?),
        false => None,
    };
    let compressed = compressed.filter(|shorter| shorter.len() < bytes.len());
    let body = compressed.as_deref().unwrap_or(bytes);
    let flags = if compressed.is_some() { FLAG_ZSTD } else { 0 }
        | if key.is_some() { FLAG_ENCRYPTED } else { 0 };
    let mut packed = Vec::with_capacity(body.len() + 96);
    packed.extend_from_slice(&MAGIC);
    packed.extend_from_slice(&[VERSION, flags, 0, 0]);
    packed.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    let Some(key) = key else {
        let sum = sum(&packed, name, body);
        packed.extend_from_slice(&sum);
        packed.extend_from_slice(body);
        return Ok(packed);
    };
    packed.extend_from_slice(&key.fingerprint());
    let covered = [&packed, bound_name(name).as_bytes()].concat();
    let mut nonce = [0; NONCE_LEN];
    os::fill_at_random(&mut nonce)?;
    packed.extend_from_slice(&nonce);
    let cipher = XChaCha20Poly1305::new(key.bytes().into());
    let encrypted = cipher
        .encrypt(&XNonce::from(nonce), Payload { msg: body, aad: &covered })
        .map_err(|_| std::io::Error::other("too long to be encrypted"))?;
    packed.extend_from_slice(&encrypted);
    Ok(packed)
}

/// Whether the flags mark an object as encrypted.
pub(super) fn is_encrypted(packed: &[u8]) -> bool {
    packed.starts_with(&MAGIC) && packed.get(5).is_some_and(|flags| flags & FLAG_ENCRYPTED != 0)
}

/// Unpacks and verifies an object. The result borrows from `packed` or from `buffer`. Reuse the
/// buffer: allocating a new one costs most of the time.
pub(super) fn unpack_object<'a>(
    name: &str,
    packed: &'a [u8],
    key: Option<&Key>,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    let damaged = |why: &str| Error::Damaged { object: name.into(), why: why.into() };
    let (head, rest) = packed
        .split_first_chunk::<HEAD_LEN>()
        .filter(|(head, _)| head[..4] == MAGIC)
        .ok_or_else(|| damaged("it was not written by claude-mem"))?;
    if head[4] != VERSION {
        return Err(Error::Newer { object: name.into() });
    }
    let (is_zstd, is_encrypted) = (head[5] & FLAG_ZSTD != 0, head[5] & FLAG_ENCRYPTED != 0);
    let len = u64::from_le_bytes(head[8..].try_into().expect("eight bytes are left"));
    if len > BYTES_MAX {
        return Err(damaged("its length is invalid"));
    }
    let decrypted;
    let body = if is_encrypted {
        decrypted = decrypt(name, head, rest, key)?;
        decrypted.as_slice()
    } else {
        let (found, body) =
            rest.split_first_chunk::<SUM_LEN>().ok_or_else(|| damaged("it is truncated"))?;
        if *found != sum(head, name, body) {
            return Err(damaged("its checksum is wrong"));
        }
        if !is_zstd && body.len() as u64 == len {
            return Ok(body);
        }
        body
    };
    buffer.clear();
    if is_zstd {
        buffer.reserve(len as usize);
        zstd::bulk::Decompressor::new()
            .and_then(|mut decompressor| decompressor.decompress_to_buffer(body, buffer))
            .map_err(|_| damaged("it cannot be decompressed"))?;
    } else {
        buffer.extend_from_slice(body);
    }
    match buffer.len() as u64 == len {
        true => Ok(buffer),
        false => Err(damaged("its length is wrong")),
    }
}

fn decrypt(
    name: &str,
    head: &[u8; HEAD_LEN],
    rest: &[u8],
    key: Option<&Key>,
) -> Result<Vec<u8>, Error> {
    let damaged = |why: &str| Error::Damaged { object: name.into(), why: why.into() };
    let cut = || damaged("it is truncated");
    let (needed, rest) = rest.split_first_chunk::<KEY_LEN>().ok_or_else(cut)?;
    let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>().ok_or_else(cut)?;
    let ours = key.map(Key::fingerprint);
    let Some(key) = key.filter(|_| ours == Some(*needed)) else {
        return Err(Error::WrongKey {
            object: name.into(),
            needed: key::show(*needed),
            ours: ours.map(key::show),
        });
    };
    let covered = [head.as_slice(), needed, bound_name(name).as_bytes()].concat();
    XChaCha20Poly1305::new(key.bytes().into())
        .decrypt(&XNonce::from(*nonce), Payload { msg: body, aad: &covered })
        .map_err(|_| damaged("it was modified after encryption"))
}

/// The part of a name that is covered by the checksum. It excludes the host, so that a manifest
/// copied from another log is detected and reported.
fn bound_name(name: &str) -> &str {
    name.strip_prefix("hosts/").and_then(|rest| rest.split_once('/')).map_or(name, |(_, rest)| rest)
}

fn sum(head: &[u8], name: &str, body: &[u8]) -> [u8; SUM_LEN] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head).update(bound_name(name).as_bytes()).update(&[0]).update(body);
    hasher.finalize().as_bytes().first_chunk().copied().expect("a hash is longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"the same words again, the same words again, the same words again";

    fn ways() -> [(Option<Key>, bool); 4] {
        let key = || Some(Key::generate().unwrap());
        [(None, false), (None, true), (key(), false), (key(), true)]
    }

    fn unpack(name: &str, packed: &[u8], key: Option<&Key>) -> Result<Vec<u8>, Error> {
        unpack_object(name, packed, key, &mut b"left from before".to_vec()).map(<[u8]>::to_vec)
    }

    #[test]
    fn objects_round_trip_and_modified_ones_are_rejected() {
        for (key, compress) in ways() {
            let packed = pack_object("a/b", TEXT, key.as_ref(), compress).unwrap();
            assert_eq!(unpack("a/b", &packed, key.as_ref()).unwrap(), TEXT);
            assert!(unpack("a/c", &packed, key.as_ref()).is_err(), "under another name");
            for len in 0..packed.len() {
                assert!(unpack("a/b", &packed[..len], key.as_ref()).is_err(), "cut to {len}");
            }
            for at in (0..packed.len()).filter(|at| !matches!(at, 6 | 7)) {
                let mut changed = packed.clone();
                changed[at] ^= 4;
                assert!(unpack("a/b", &changed, key.as_ref()).is_err(), "changed at {at}");
            }
        }
    }

    #[test]
    fn an_encrypted_object_needs_its_key() {
        let key = Key::generate().unwrap();
        let packed = pack_object("a", TEXT, Some(&key), false).unwrap();
        assert!(memchr::memmem::find(&packed, b"words").is_none());
        let other = Key::generate().unwrap();
        let error = unpack("a", &packed, Some(&other)).unwrap_err().to_string();
        let (needed, ours) = (key::show(key.fingerprint()), key::show(other.fingerprint()));
        assert_eq!(error, format!("a is encrypted with key {needed}, and the key here is {ours}"));
        assert!(matches!(unpack("a", &packed, None), Err(Error::WrongKey { ours: None, .. })));
    }

    /// These bytes are in users' buckets. If this fails, add a version; do not edit the bytes.
    #[test]
    fn the_bytes_of_version_1_are_fixed() {
        let packed = pack_object("a/b", b"hello", None, true).unwrap();
        assert_eq!(&packed[..16], b"\xF9cmo\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00");
        assert_eq!(&packed[32..], b"hello");
        let hash = blake3::hash(&[&packed[..16], b"a/b\0hello"].concat());
        assert_eq!(packed[16..32], hash.as_bytes()[..16]);
    }
}
