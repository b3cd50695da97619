//! CRC-32 without CPU feature detection for small inputs.
//!
//! `crc32fast` is an order of magnitude faster with instructions that not every CPU has, and
//! detects them once with `cpuid`. Under a hypervisor that takes longer than computing all
//! checksums of a hook here.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// About as many bytes as can be computed here in the time of the detection.
const FEW_BYTES: usize = 32 << 10;
/// Bytes written by this process, up to the limit.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// The checksum of `parts`, concatenated, continuing from `initial`.
pub(super) fn of_parts(initial: u32, parts: &[&[u8]]) -> u32 {
    if are_few(parts.iter().map(|part| part.len()).sum()) {
        return parts.iter().fold(initial, |crc, part| of_few(crc, part));
    }
    let mut hasher = crc32fast::Hasher::new_with_initial(initial);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Whether this many more bytes stay below the limit. Concurrent threads may miss some, which does
/// not matter.
fn are_few(bytes: usize) -> bool {
    let written = WRITTEN.load(Relaxed);
    let is_few = written.saturating_add(bytes) <= FEW_BYTES;
    // Above the limit nothing is stored any more, to avoid contention on the cache line.
    if written <= FEW_BYTES {
        WRITTEN.store(written.saturating_add(bytes), Relaxed);
    }
    is_few
}

/// The checksum of a few dozen bytes.
pub(super) fn of_few(initial: u32, bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<8>();
    let crc = steps.iter().fold(!initial, |crc, step| {
        let step = u64::from_le_bytes(*step) ^ u64::from(crc);
        let byte = |place: usize| (step >> (8 * place)) as usize & 0xff;
        (0..8).fold(0, |crc, place| crc ^ TABLES[7 - place][byte(place)])
    });
    !rest
        .iter()
        .fold(crc, |crc, byte| TABLES[0][((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8))
}

/// The checksum of a byte followed by this many zero bytes.
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut place = 1;
    while place < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[place - 1][byte];
            tables[place][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        place += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn the_same_comes_out_as_of_crc32fast(
            initial in any::<u32>(),
            bytes in vec(any::<u8>(), 0..300),
            split in 0..300_usize,
        ) {
            let mut hasher = crc32fast::Hasher::new_with_initial(initial);
            hasher.update(&bytes);
            let (one, other) = bytes.split_at(split.min(bytes.len()));
            let expected = hasher.finalize();
            prop_assert_eq!(of_few(initial, &bytes), expected);
            prop_assert_eq!(of_parts(initial, &[one, other]), expected);
        }
    }

    #[test]
    fn few_and_many_bytes_come_to_the_same() {
        let bytes: Vec<u8> = (0..1000).map(|place| (place * 31 % 251) as u8).collect();
        let expected = of_few(7, &bytes);
        for written in (0..=FEW_BYTES + bytes.len()).step_by(bytes.len()) {
            assert_eq!(of_parts(7, &[&bytes]), expected, "after {written}");
        }
        assert!(!are_few(1));
    }
}
