//! Dot products of bytes, with AVX2 where the processor has it.
//!
//! The loop is written once and compiled twice. Sums of integers do not depend on their order, so
//! both give the same numbers. Other processors than x86-64 have their vector instructions in every
//! build.

/// Calls `row(index, product)` for the components of each record.
pub(crate) fn for_each_dot_product<'a>(
    query: &[i8],
    records: impl Iterator<Item = &'a [u8]>,
    row: impl FnMut(usize, i32),
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the processor was asked on the line above")]
        // SAFETY: the processor has AVX2.
        return unsafe { with_avx2(query, records, row) };
    }
    plain(query, records, row);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<'a>(
    query: &[i8],
    records: impl Iterator<Item = &'a [u8]>,
    row: impl FnMut(usize, i32),
) {
    plain(query, records, row);
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it is compiled once with AVX2 and once without")]
fn plain<'a>(
    query: &[i8],
    records: impl Iterator<Item = &'a [u8]>,
    mut row: impl FnMut(usize, i32),
) {
    for (index, components) in records.enumerate() {
        row(index, product(query, components));
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it is compiled once with AVX2 and once without")]
fn product(query: &[i8], components: &[u8]) -> i32 {
    query
        .iter()
        .zip(components)
        .map(|(one, other)| i32::from(*one) * i32::from(other.cast_signed()))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_give_the_same_integers() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        for length in [1, 31, 32, 384, 512] {
            let query: Vec<i8> = (0..length).map(|_| random().cast_signed()).collect();
            let mut records: Vec<Vec<u8>> =
                (0..50).map(|_| (0..length).map(|_| random()).collect()).collect();
            records.push(vec![0x80; length]);
            let slices = || records.iter().map(Vec::as_slice);
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            for_each_dot_product(&query, slices(), |_, product| fast.push(product));
            plain(&query, slices(), |_, product| slow.push(product));
            assert_eq!(fast, slow);
        }
    }
}
