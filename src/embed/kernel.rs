//! The arithmetic: matrix products, norms, softmax and GELU with bit-identical results on every
//! machine.
//!
//! Every sum has a fixed order: products are summed over the inputs in sequence by fused
//! multiply-add, other sums run in `LANES` lanes. Loops over lanes compile to vector instructions
//! of any width, which does not change a bit. No C library function is used, because their results
//! differ between systems (`mul_add` and `sqrt` are exactly defined).
#![expect(clippy::inline_always, reason = "compiled again for the caller's instruction set")]

use crate::format::{Floats, GROUP, LANES};

/// The instruction sets that the compiler can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instructions {
    /// The baseline of this architecture. On x86-64 it has no fused multiply-add: correct, but
    /// slow.
    Baseline,
    /// AVX2 and FMA: all x86-64 processors since about 2013.
    #[cfg(target_arch = "x86_64")]
    Avx2(Supported),
    /// AVX-512: servers and some workstations, with twice the throughput of AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx512(Supported),
}

/// Proof that the processor supports the instructions.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Supported(());

impl Instructions {
    pub(crate) fn fastest() -> Self {
        Self::supported().pop().unwrap_or(Self::Baseline)
    }

    /// The instruction sets of this processor, the slowest first.
    pub(crate) fn supported() -> Vec<Self> {
        let mut supported = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            supported.push(Self::Avx2(Supported(())));
            if is_x86_feature_detected!("avx512f") {
                supported.push(Self::Avx512(Supported(())));
            }
        }
        supported
    }
}

/// One value per lane.
pub(crate) type Lanes = [f32; LANES];

/// `LANES` columns of a matrix: one row per input.
pub(crate) type Panel = [Lanes];

/// Rows whose sums take 12 of AVX2's 16 registers. With 8 or more, the compiler vectorises over
/// rows instead of lanes.
const ROWS: usize = 6;

/// Rows in blocks of `ROWS · GROUPS`, each block input by input, in the order in which [`multiply`]
/// reads them.
pub(crate) type Blocks<const GROUPS: usize> = Vec<[[f32; ROWS]; GROUPS]>;

/// Packs rows into blocks. A row starts every `stride` values; its first `inputs` values are used.
/// The last block is padded with zeros.
#[inline(always)]
pub(crate) fn pack<const GROUPS: usize>(
    rows: &[f32],
    stride: usize,
    inputs: usize,
    blocks: &mut Blocks<GROUPS>,
) {
    let count = rows.len().div_ceil(stride).div_ceil(ROWS * GROUPS);
    blocks.clear();
    blocks.resize(count * inputs, [[0.0; ROWS]; GROUPS]);
    let rows = rows.chunks(ROWS * GROUPS * stride);
    for (rows, block) in rows.zip(blocks.chunks_exact_mut(inputs)) {
        for (number, row) in rows.chunks(stride).enumerate() {
            for (to, value) in block.iter_mut().zip(&row[..inputs]) {
                to.as_flattened_mut()[number] = *value;
            }
        }
    }
}

/// Multiplies rows with a panel, a block at a time by `multiply_block`. The sums of a row go to
/// `out`, every `out_stride` values.
#[inline(always)]
pub(crate) fn multiply<const GROUPS: usize>(
    multiply_block: impl MultiplyBlock<GROUPS>,
    blocks: &Blocks<GROUPS>,
    panel: &Panel,
    out: &mut [f32],
    out_stride: usize,
) {
    let mut sums = [[[0.0; LANES]; ROWS]; GROUPS];
    let blocks = blocks.chunks_exact(panel.len());
    for (block, out) in blocks.zip(out.chunks_mut(ROWS * GROUPS * out_stride)) {
        multiply_block(block, panel, &mut sums);
        for (sums, out) in sums.as_flattened().iter().zip(out.chunks_mut(out_stride)) {
            out[..LANES].copy_from_slice(sums);
        }
    }
}

/// One of the functions below.
pub(crate) trait MultiplyBlock<const GROUPS: usize>:
    Fn(&[[[f32; ROWS]; GROUPS]], &Panel, &mut Sums<GROUPS>) + Copy
{
}

impl<const GROUPS: usize, F> MultiplyBlock<GROUPS> for F where
    F: Fn(&[[[f32; ROWS]; GROUPS]], &Panel, &mut Sums<GROUPS>) + Copy
{
}

pub(crate) type Sums<const GROUPS: usize> = [[Lanes; ROWS]; GROUPS];

/// The product of a block and a panel: nearly all the time of embedding.
///
/// Plain loops over indexes, compiled into the functions below: inside of a larger function, the
/// compiler would not keep the sums in registers.
#[inline(always)]
fn multiply_block<const GROUPS: usize>(
    block: &[[[f32; ROWS]; GROUPS]],
    panel: &Panel,
    out: &mut Sums<GROUPS>,
) {
    let mut sums = [[[0.0; LANES]; ROWS]; GROUPS];
    for (values, weights) in block.iter().zip(panel) {
        for group in 0..GROUPS {
            for row in 0..ROWS {
                let value = values[group][row];
                for lane in 0..LANES {
                    let sum = &mut sums[group][row][lane];
                    *sum = value.mul_add(weights[lane], *sum);
                }
            }
        }
    }
    *out = sums;
}

#[inline(never)]
pub(crate) fn multiply_block_baseline(
    block: &[[[f32; ROWS]; 1]],
    panel: &Panel,
    out: &mut Sums<1>,
) {
    multiply_block(block, panel, out);
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn multiply_block_avx2(block: &[[[f32; ROWS]; 1]], panel: &Panel, out: &mut Sums<1>) {
    multiply_block(block, panel, out);
}

/// A register contains all lanes of a row. Two groups of rows hide the latency of the additions.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx512f,avx2,fma")]
pub(crate) fn multiply_block_avx512(block: &[[[f32; ROWS]; 2]], panel: &Panel, out: &mut Sums<2>) {
    multiply_block(block, panel, out);
}

/// A matrix of 8-bit weights with one scale and one bias per output.
#[derive(Debug)]
pub(crate) struct Linear<'a> {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) scales: Floats<'a>,
    pub(crate) biases: Floats<'a>,
    /// `[outputs / LANES][inputs][LANES]`, signed
    pub(crate) weights: &'a [u8],
}

impl Linear<'_> {
    /// `out` gets one row of outputs per row of inputs.
    #[inline(always)]
    pub(crate) fn apply<const GROUPS: usize>(
        &self,
        multiply_block: impl MultiplyBlock<GROUPS>,
        rows: &[f32],
        out: &mut Vec<f32>,
    ) {
        out.clear();
        out.resize(rows.len() / self.inputs * self.outputs, 0.0);
        let mut blocks = Blocks::<GROUPS>::new();
        pack(rows, self.inputs, self.inputs, &mut blocks);
        let mut panel = vec![[0.0; LANES]; self.inputs];
        for (number, weights) in self.weights.chunks_exact(self.inputs * LANES).enumerate() {
            for (to, from) in panel.as_flattened_mut().iter_mut().zip(weights) {
                *to = f32::from(from.cast_signed());
            }
            let out = &mut out[number * LANES..];
            multiply(multiply_block, &blocks, &panel, out, self.outputs);
            let (scales, biases) = (self.scales.lanes(number), self.biases.lanes(number));
            for row in out.chunks_mut(self.outputs) {
                for lane in 0..LANES {
                    row[lane] = row[lane].mul_add(scales[lane], biases[lane]);
                }
            }
        }
    }
}

/// Layer normalisation.
#[derive(Debug)]
pub(crate) struct Norm<'a> {
    pub(crate) weights: Floats<'a>,
    pub(crate) biases: Floats<'a>,
    pub(crate) epsilon: f32,
}

impl Norm<'_> {
    #[inline(always)]
    pub(crate) fn apply(&self, rows: &mut [f32], length: usize) {
        for row in rows.chunks_exact_mut(length) {
            let mean = sum(row, |value| value) / length as f32;
            let variance = sum(row, |value| (value - mean) * (value - mean)) / length as f32;
            let factor = 1.0 / (variance + self.epsilon).sqrt();
            let parameters = self.weights.iter().zip(self.biases.iter());
            for (value, (weight, bias)) in row.iter_mut().zip(parameters) {
                *value = ((*value - mean) * factor).mul_add(weight, bias);
            }
        }
    }
}

/// The sum over values whose number is a multiple of `LANES`.
#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    for values in values.as_chunks::<LANES>().0 {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += of(*value);
        }
    }
    sums.iter().sum()
}

/// Dot product of vectors of the same length.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| a.mul_add(*b, sum))
}

/// Adds `other` to `rows`.
#[inline(always)]
pub(crate) fn add(rows: &mut [f32], other: &[f32]) {
    rows.iter_mut().zip(other).for_each(|(value, other)| *value += other);
}

/// Turns the first `count` scores of a row into weights that sum up to one; the others into zeros.
/// A row is as long as a multiple of `LANES`.
#[inline(always)]
pub(crate) fn softmax(row: &mut [f32], count: usize, scale: f32) {
    let mut highest = [f32::MIN; LANES];
    row[count..].fill(f32::MIN);
    for scores in row.as_chunks::<LANES>().0 {
        for (highest, score) in highest.iter_mut().zip(scores) {
            *highest = highest.max(*score);
        }
    }
    let highest = highest.iter().copied().fold(f32::MIN, f32::max);
    for score in row.iter_mut() {
        *score = exp((*score - highest) * scale);
    }
    row[count..].fill(0.0);
    let factor = 1.0 / sum(row, |value| value);
    for value in row {
        *value *= factor;
    }
}

/// `x · Φ(x)` with the normal distribution's Φ.
#[inline(always)]
pub(crate) fn gelu(values: &mut [f32]) {
    for value in values {
        *value = 0.5 * *value * (1.0 + erf(*value * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// Abramowitz and Stegun, 7.1.26: off by 1.5e-7 at most.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let t = 1.0 / x.abs().mul_add(0.327_591_1, 1.0);
    let polynomial = t
        .mul_add(1.061_405_4, -1.453_152_1)
        .mul_add(t, 1.421_413_8)
        .mul_add(t, -0.284_496_72)
        .mul_add(t, 0.254_829_6);
    (1.0 - polynomial * t * exp(-x * x)).copysign(x)
}

/// The exponential, by powers of two and a Taylor polynomial; no more than a few units off in the
/// last place.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Added to a small number, leaves its nearest integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts; multiples of the first are exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let rounded = x.clamp(-87.0, 88.0).mul_add(std::f32::consts::LOG2_E, ROUND);
    let twos = rounded - ROUND;
    let rest = twos.mul_add(-LN_2[1], twos.mul_add(-LN_2[0], x.clamp(-87.0, 88.0)));
    let series = rest
        .mul_add(1.0 / 5040.0, 1.0 / 720.0)
        .mul_add(rest, 1.0 / 120.0)
        .mul_add(rest, 1.0 / 24.0)
        .mul_add(rest, 1.0 / 6.0)
        .mul_add(rest, 0.5)
        .mul_add(rest, 1.0)
        .mul_add(rest, 1.0);
    series * f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0_f32.to_bits()))
}

/// One row of a table of 4-bit values with a scale for each group.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    /// Values from -8 to 7, plus 8. Byte `i` of a group contains value `i` and, in its upper half,
    /// `i + 16`.
    pub(crate) values: &'a [u8],
    /// The upper halves of f32 numbers.
    pub(crate) scales: &'a [u8],
}

impl Table<'_> {
    /// Adds a row to `to`.
    pub(crate) fn add_row(&self, row: usize, to: &mut [f32]) {
        let length = to.len();
        let values = self.values[row * length / 2..][..length / 2].as_chunks::<{ GROUP / 2 }>().0;
        let scales = self.scales[row * length / GROUP * 2..].as_chunks::<2>().0;
        for ((to, values), scale) in to.chunks_exact_mut(GROUP).zip(values).zip(scales) {
            let scale = f32::from_bits(u32::from(u16::from_le_bytes(*scale)) << 16);
            let (low, high) = to.split_at_mut(GROUP / 2);
            for ((low, high), pair) in low.iter_mut().zip(high).zip(values) {
                *low += (f32::from(pair & 15) - 8.0) * scale;
                *high += (f32::from(pair >> 4) - 8.0) * scale;
            }
        }
    }
}
