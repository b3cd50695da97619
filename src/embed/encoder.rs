//! The BERT encoder: computes a vector per token, layer by layer. The vector of the first token
//! represents the text.
#![expect(clippy::inline_always, reason = "compiled again for the caller's instruction set")]

use crate::{
    InvalidModel,
    format::{Floats, GROUP, HEAD, Header, LANES, Reader},
    kernel::{self, Blocks, Instructions, Linear, MultiplyBlock, Norm, Table},
};

#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    hidden: usize,
    words: Table<'a>,
    positions: Floats<'a>,
    norm: Norm<'a>,
    layers: Vec<Layer<'a>>,
}

#[derive(Debug)]
struct Layer<'a> {
    /// Queries, keys and values, side by side.
    attention_in: Linear<'a>,
    attention_out: Linear<'a>,
    attention_norm: Norm<'a>,
    up: Linear<'a>,
    down: Linear<'a>,
    norm: Norm<'a>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>, header: &Header<'_>) -> Result<Self, InvalidModel> {
        let hidden = header.hidden;
        let table = header.pieces * hidden;
        Ok(Self {
            hidden,
            words: Table {
                values: reader.aligned(table / 2)?,
                scales: reader.aligned(table / GROUP * 2)?,
            },
            positions: reader.floats(header.tokens_max * hidden)?,
            norm: read_norm(reader, header)?,
            layers: (0..header.layers)
                .map(|_| {
                    Ok(Layer {
                        attention_in: read_linear(reader, hidden, 3 * hidden)?,
                        attention_out: read_linear(reader, hidden, hidden)?,
                        attention_norm: read_norm(reader, header)?,
                        up: read_linear(reader, hidden, header.feed_forward)?,
                        down: read_linear(reader, header.feed_forward, hidden)?,
                        norm: read_norm(reader, header)?,
                    })
                })
                .collect::<Result<_, _>>()?,
        })
    }

    /// The vectors of texts. No text has more tokens than there are positions.
    pub(crate) fn encode(&self, texts: &[Vec<u32>], instructions: Instructions) -> Vec<Vec<f32>> {
        match instructions {
            Instructions::Baseline => self.forward(texts, kernel::multiply_block_baseline),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2(_) => {
                #[expect(unsafe_code, reason = "vector instructions make it 70 times as fast")]
                // SAFETY: the value exists only where the processor has AVX2 and FMA.
                unsafe {
                    self.forward_avx2(texts)
                }
            }
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512(_) => {
                #[expect(unsafe_code, reason = "twice as fast as with AVX2")]
                // SAFETY: the value exists only where the processor has AVX-512, AVX2 and FMA.
                unsafe {
                    self.forward_avx512(texts)
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn forward_avx2(&self, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
        self.forward(texts, |block: &_, panel: &_, out: &mut _| {
            kernel::multiply_block_avx2(block, panel, out);
        })
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx2,fma")]
    fn forward_avx512(&self, texts: &[Vec<u32>]) -> Vec<Vec<f32>> {
        self.forward(texts, |block: &_, panel: &_, out: &mut _| {
            kernel::multiply_block_avx512(block, panel, out);
        })
    }

    /// Reads each weight once for all texts. A text does not influence the vectors of others.
    #[inline(always)]
    fn forward<const GROUPS: usize>(
        &self,
        texts: &[Vec<u32>],
        multiply_block: impl MultiplyBlock<GROUPS>,
    ) -> Vec<Vec<f32>> {
        let hidden = self.hidden;
        let mut rows = Vec::new();
        for tokens in texts {
            let start = rows.len();
            rows.extend(self.positions.iter().take(tokens.len() * hidden));
            for (row, token) in rows[start..].chunks_exact_mut(hidden).zip(tokens) {
                self.words.add_row(*token as usize, row);
            }
        }
        self.norm.apply(&mut rows, hidden);
        let (mut wide, mut narrow) = (Vec::new(), Vec::new());
        for (number, layer) in self.layers.iter().enumerate() {
            layer.attention_in.apply(multiply_block, &rows, &mut wide);
            narrow.clear();
            narrow.resize(rows.len(), 0.0);
            let (mut inputs, mut outputs) = (&wide[..], &mut narrow[..]);
            for tokens in texts {
                let (input, output);
                (input, inputs) = inputs.split_at(tokens.len() * 3 * hidden);
                (output, outputs) = outputs.split_at_mut(tokens.len() * hidden);
                attention(multiply_block, input, hidden, output);
            }
            if number + 1 == self.layers.len() {
                // Only the first token of each text is needed from here on.
                keep_first_rows(&mut rows, texts, hidden);
                keep_first_rows(&mut narrow, texts, hidden);
            }
            layer.attention_out.apply(multiply_block, &narrow, &mut wide);
            kernel::add(&mut rows, &wide);
            layer.attention_norm.apply(&mut rows, hidden);
            layer.up.apply(multiply_block, &rows, &mut wide);
            kernel::gelu(&mut wide);
            layer.down.apply(multiply_block, &wide, &mut narrow);
            kernel::add(&mut rows, &narrow);
            layer.norm.apply(&mut rows, hidden);
        }
        rows.chunks_exact(hidden).map(<[f32]>::to_vec).collect()
    }
}

fn keep_first_rows(rows: &mut Vec<f32>, texts: &[Vec<u32>], hidden: usize) {
    let mut start = 0;
    for (number, tokens) in texts.iter().enumerate() {
        rows.copy_within(start..start + hidden, number * hidden);
        start += tokens.len() * hidden;
    }
    rows.truncate(texts.len() * hidden);
}

/// Attention between all tokens of a text, once per head. `rows` contains the queries, keys and
/// values of each token.
#[inline(always)]
fn attention<const GROUPS: usize>(
    multiply_block: impl MultiplyBlock<GROUPS>,
    rows: &[f32],
    hidden: usize,
    out: &mut [f32],
) {
    let stride = 3 * hidden;
    let tokens = rows.len() / stride;
    let padded = tokens.next_multiple_of(LANES);
    // 1 / √HEAD, for heads of 32 inputs.
    let scale = 0.176_776_7;
    let mut blocks = Blocks::<GROUPS>::new();
    let mut scores = vec![0.0; tokens * padded];
    let mut values = vec![[0.0; LANES]; tokens];
    for head in (0..hidden).step_by(HEAD) {
        kernel::pack(&rows[head..], stride, HEAD, &mut blocks);
        for first in (0..tokens).step_by(LANES) {
            let mut keys = [[0.0; LANES]; HEAD];
            for (lane, row) in rows.chunks_exact(stride).skip(first).take(LANES).enumerate() {
                for (keys, key) in keys.iter_mut().zip(&row[hidden + head..]) {
                    keys[lane] = *key;
                }
            }
            kernel::multiply(multiply_block, &blocks, &keys, &mut scores[first..], padded);
        }
        for row in scores.chunks_exact_mut(padded) {
            kernel::softmax(row, tokens, scale);
        }
        kernel::pack(&scores, padded, tokens, &mut blocks);
        for part in (head..head + HEAD).step_by(LANES) {
            for (values, row) in values.iter_mut().zip(rows.chunks_exact(stride)) {
                values.copy_from_slice(&row[2 * hidden + part..][..LANES]);
            }
            kernel::multiply(multiply_block, &blocks, &values, &mut out[part..], hidden);
        }
    }
}

fn read_linear<'a>(
    reader: &mut Reader<'a>,
    inputs: usize,
    outputs: usize,
) -> Result<Linear<'a>, InvalidModel> {
    Ok(Linear {
        inputs,
        outputs,
        scales: reader.floats(outputs)?,
        biases: reader.floats(outputs)?,
        weights: reader.aligned(inputs * outputs)?,
    })
}

fn read_norm<'a>(reader: &mut Reader<'a>, header: &Header<'_>) -> Result<Norm<'a>, InvalidModel> {
    Ok(Norm {
        weights: reader.floats(header.hidden)?,
        biases: reader.floats(header.hidden)?,
        epsilon: header.epsilon,
    })
}
