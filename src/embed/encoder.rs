//! The encoder of BERT: a vector per token, layer by layer; the first token's is the text's.
#![expect(clippy::inline_always, reason = "compiled again for the caller's instruction set")]

use crate::{
    InvalidModel,
    format::{Floats, GROUP, HEAD, Header, LANES, Reader},
    kernel::{self, Instructions, Linear, Norm, Table},
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

    /// The vector of a text. There are no more tokens than positions.
    pub(crate) fn encode(&self, tokens: &[u32], instructions: Instructions) -> Vec<f32> {
        match instructions {
            Instructions::Baseline => self.forward(tokens),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2(_) => {
                #[expect(unsafe_code, reason = "vector instructions make it 70 times as fast")]
                // SAFETY: the value `Avx2` exists only where the processor has AVX2 and FMA.
                unsafe {
                    self.forward_avx2(tokens)
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn forward_avx2(&self, tokens: &[u32]) -> Vec<f32> {
        self.forward(tokens)
    }

    #[inline(always)]
    fn forward(&self, tokens: &[u32]) -> Vec<f32> {
        let mut rows: Vec<f32> = self.positions.iter().take(tokens.len() * self.hidden).collect();
        for (row, token) in rows.chunks_exact_mut(self.hidden).zip(tokens) {
            self.words.add_row(*token as usize, row);
        }
        self.norm.apply(&mut rows, self.hidden);
        let (mut wide, mut narrow) = (Vec::new(), Vec::new());
        for (number, layer) in self.layers.iter().enumerate() {
            layer.attention_in.apply(&rows, &mut wide);
            attention(&wide, self.hidden, &mut narrow);
            if number + 1 == self.layers.len() {
                // Only the first token is still of interest.
                rows.truncate(self.hidden);
                narrow.truncate(self.hidden);
            }
            layer.attention_out.apply(&narrow, &mut wide);
            kernel::add(&mut rows, &wide);
            layer.attention_norm.apply(&mut rows, self.hidden);
            layer.up.apply(&rows, &mut wide);
            kernel::gelu(&mut wide);
            layer.down.apply(&wide, &mut narrow);
            kernel::add(&mut rows, &narrow);
            layer.norm.apply(&mut rows, self.hidden);
        }
        rows.truncate(self.hidden);
        rows
    }
}

/// Every token looks at all others, once per head. `rows` holds queries, keys and values of each token.
#[inline(always)]
fn attention(rows: &[f32], hidden: usize, out: &mut Vec<f32>) {
    let stride = 3 * hidden;
    let tokens = rows.len() / stride;
    let padded = tokens.next_multiple_of(LANES);
    // 1 / √HEAD, for heads of 32 inputs.
    let scale = 0.176_776_7;
    out.clear();
    out.resize(tokens * hidden, 0.0);
    let mut scores = vec![0.0; tokens * padded];
    let mut values = vec![[0.0; LANES]; tokens];
    for head in (0..hidden).step_by(HEAD) {
        for first in (0..tokens).step_by(LANES) {
            let mut keys = [[0.0; LANES]; HEAD];
            for (lane, row) in rows.chunks_exact(stride).skip(first).take(LANES).enumerate() {
                for (keys, key) in keys.iter_mut().zip(&row[hidden + head..]) {
                    keys[lane] = *key;
                }
            }
            kernel::multiply(&rows[head..], stride, &keys, &mut scores[first..], padded);
        }
        for row in scores.chunks_exact_mut(padded) {
            kernel::softmax(row, tokens, scale);
        }
        for part in (head..head + HEAD).step_by(LANES) {
            for (values, row) in values.iter_mut().zip(rows.chunks_exact(stride)) {
                values.copy_from_slice(&row[2 * hidden + part..][..LANES]);
            }
            kernel::multiply(&scores, padded, &values, &mut out[part..], hidden);
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
