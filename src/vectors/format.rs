//! The bytes of a vector file.
//!
//! All numbers are little-endian. The header has 64 bytes:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `CMVECTOR` |
//! | 8 | 4 | version of this format, 1 |
//! | 12 | 4 | dimensions |
//! | 16 | 16 | model id |
//! | 32 | 8 | a random number, by which readers notice that the file was replaced |
//! | 40 | 8 | number of erasures, by which readers notice that records were overwritten |
//! | 48 | 16 | zero |
//!
//! Records follow without gaps. A record has 40 bytes and one byte per dimension:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | CRC-32 of the rest of the record |
//! | 4 | 1 | kind of the memory plus one |
//! | 5 | 1 | zero |
//! | 6 | 2 | number of the window |
//! | 8 | 8 | row of the memory |
//! | 16 | 16 | digest of the text |
//! | 32 | 4 | scale of the components, a float |
//! | 36 | 4 | dot product of the center and the vector, a float |
//! | 40 | | components of the vector minus the center, divided by the scale and rounded to bytes |
//!
//! An erased record consists of zeros. A record whose checksum is wrong does not count, nor does a
//! part of a record at the end.

use crate::{Digest, MemoryKey, ModelId};

pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const ERASURES_AT: u64 = 40;
const MAGIC: &[u8; 8] = b"CMVECTOR";
const VERSION: u32 = 1;
const RECORD_HEADER_BYTES: usize = 40;
/// A file that claims more than this is not ours.
const DIMENSIONS_MAX: u32 = 4096;

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub dimensions: usize,
    pub model: ModelId,
    pub(crate) file: u64,
    pub(crate) erasures: u64,
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.dimensions as u32).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.model);
        bytes[32..40].copy_from_slice(&self.file.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.erasures.to_le_bytes());
        bytes
    }

    /// Decodes the start of a file. `None` if it is not a vector file of this version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let dimensions = u32::from_le_bytes(four(bytes, 12));
        let is_ours = bytes.starts_with(MAGIC)
            && u32::from_le_bytes(four(bytes, 8)) == VERSION
            && (1..=DIMENSIONS_MAX).contains(&dimensions);
        is_ours.then(|| Self {
            dimensions: dimensions as usize,
            model: sixteen(bytes, 16),
            file: u64::from_le_bytes(eight(bytes, 32)),
            erasures: u64::from_le_bytes(eight(bytes, 40)),
        })
    }

    /// The length of a record.
    pub(crate) fn record_bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.dimensions
    }
}

/// A record, borrowed from the bytes of a file.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    /// Decodes a record. `None` if it is erased, damaged or torn.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let is_whole = bytes.len() > RECORD_HEADER_BYTES
            && bytes[4] != 0
            && crc32fast::hash(&bytes[4..]) == u32::from_le_bytes(four(bytes, 0));
        is_whole.then_some(Self(bytes))
    }

    /// For records that were checked before. An erased one has a scale of zero.
    pub(crate) fn unchecked(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_erased(self) -> bool {
        self.0[4] == 0
    }

    pub fn key(self) -> MemoryKey {
        MemoryKey { kind: self.0[4].wrapping_sub(1), row: i64::from_le_bytes(eight(self.0, 8)) }
    }

    pub fn digest(self) -> Digest {
        sixteen(self.0, 16)
    }

    #[inline]
    pub(crate) fn scale(self) -> f32 {
        f32::from_le_bytes(four(self.0, 32))
    }

    #[inline]
    pub(crate) fn center_product(self) -> f32 {
        f32::from_le_bytes(four(self.0, 36))
    }

    #[inline]
    pub(crate) fn components(self) -> &'a [u8] {
        &self.0[RECORD_HEADER_BYTES..]
    }

    /// Whether scale and components are bit-identical.
    pub(crate) fn has_vector_of(self, other: Record<'_>) -> bool {
        self.0[32..] == other.0[32..]
    }

    /// The vector, with the precision of the record.
    pub fn vector(self, center: &[f32]) -> Vec<f32> {
        let components = self.components().iter().zip(center);
        components
            .map(|(byte, center)| f32::from(byte.cast_signed()) * self.scale() + center)
            .collect()
    }
}

/// Appends a record to `out`.
pub(crate) fn encode_record(
    out: &mut Vec<u8>,
    key: MemoryKey,
    window: u16,
    digest: &Digest,
    vector: &[f32],
    center: &[f32],
) {
    let start = out.len();
    let (scale, components) = quantize(vector, center);
    out.extend([0; 4]);
    out.extend([key.kind + 1, 0]);
    out.extend(window.to_le_bytes());
    out.extend(key.row.to_le_bytes());
    out.extend(digest);
    out.extend(scale.to_le_bytes());
    out.extend(product(vector, center).to_le_bytes());
    out.extend(components.iter().map(|component| component.cast_unsigned()));
    let checksum = crc32fast::hash(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// The vector minus the center as bytes, and the scale to convert them back.
///
/// The center is subtracted first because all vectors of a model are on one side of the origin: one
/// component that is large in all of them would use up the range of the bytes.
pub(crate) fn quantize(vector: &[f32], center: &[f32]) -> (f32, Vec<i8>) {
    let moved: Vec<f32> = vector.iter().zip(center).map(|(value, center)| value - center).collect();
    let largest = moved.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    // The center itself is a vector, too; a scale of zero would mean an erased record.
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    let components = moved.iter().map(|value| (value / scale).round() as i8).collect();
    (scale, components)
}

pub(crate) fn product(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[inline]
fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[at..at + 4]);
    out
}

fn eight(bytes: &[u8], at: usize) -> [u8; 8] {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    out
}

fn sixteen(bytes: &[u8], at: usize) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&bytes[at..at + 16]);
    out
}
