//! Ids of records: 128 bits that sort by time and are unique across machines.

use std::fmt;

use crate::system;

/// Identity of a record: a version 7 UUID whose time part is kept to the microsecond.
///
/// The time is a label for people and for `--since`. It never decides order: that is
/// [`Seq`](crate::Seq).
// Aligned, because frame headers are copied often while reading, and unaligned copies are slow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(align(8))]
pub struct Id([u8; 16]);

/// Version 7 has 48 bits of milliseconds; the 12 bits that follow the version hold the fraction.
const FRACTION_STEPS: u64 = 4096;

impl Id {
    /// Makes an id for `time_us` (microseconds since 1970) from 64 bits of randomness.
    ///
    /// The same time and the same bits give the same id, which makes imports idempotent.
    pub fn new(time_us: u64, random: u64) -> Self {
        let millis = (time_us / 1000) & 0xFFFF_FFFF_FFFF;
        // Rounded up, so that reading it back by division gives the same microsecond.
        let fraction = ((time_us % 1000) * FRACTION_STEPS).div_ceil(1000);
        let high = (millis << 16) | 0x7000 | fraction;
        let low = (random >> 2) | (0b10 << 62);
        let mut bytes = [0; 16];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let half = if index < 8 { high } else { low };
            *byte = (half >> (56 - 8 * (index % 8))) as u8;
        }
        Self(bytes)
    }

    /// Makes an id for `time_us` from the operating system's randomness.
    pub fn random(time_us: u64) -> Self {
        let mut bits = [0; 8];
        if !system::is_filled_at_random(&mut bits) {
            // A hook cannot wait until the kernel has randomness. Address and process id still
            // distinguish two processes, and the time distinguishes two calls.
            let here = std::ptr::from_ref(&bits) as u64;
            bits = (here ^ (u64::from(std::process::id()) << 32) ^ time_us).to_le_bytes();
        }
        Self::new(time_us, u64::from_le_bytes(bits))
    }

    /// The time of the record in microseconds since 1970, by the clock of its machine.
    pub fn time_us(&self) -> u64 {
        let high = self.0[..8].iter().fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
        (high >> 16) * 1000 + (high & 0xFFF) * 1000 / FRACTION_STEPS
    }

    /// The 16 bytes as stored.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Takes 16 stored bytes as they are.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Parses the output of [`Display`](fmt::Display), with or without dashes.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
        if digits.len() != 32 {
            return None;
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let value = |digit: u8| (digit as char).to_digit(16);
            *byte = (value(pair[0])? << 4 | value(pair[1])?) as u8;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                out.write_str("-")?;
            }
            write!(out, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_microsecond_of_a_millisecond_comes_back() {
        for time_us in 1_763_000_000_000_000..1_763_000_000_001_000 {
            assert_eq!(Id::new(time_us, 0).time_us(), time_us);
        }
    }

    #[test]
    fn ids_sort_by_time_and_read_back_as_text() {
        let earlier = Id::new(1_000, u64::MAX);
        let later = Id::new(1_001, 0);
        assert!(earlier < later);
        assert_eq!(Id::parse(&later.to_string()), Some(later));
        assert_eq!(later.to_string(), "00000000-0001-7005-8000-000000000000");
        assert_eq!(Id::parse("nonsense"), None);
    }

    #[test]
    fn it_is_a_version_7_uuid() {
        let id = Id::random(1_763_000_000_000_123).to_string();
        assert_eq!(&id[14..15], "7");
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"));
    }
}
