//! Builds the embedding model from the package that contains the original.
//!
//! Every step is checked against a digest, so the result is the same bytes everywhere. The layers
//! keep the 8-bit weights of the original. The word table is reduced from 8 bits to 4.

mod onnx;
mod zip;

use std::{collections::HashMap, error::Error};

use claude_mem_embed::{
    Model, Role,
    format::{GROUP, Header, LANES, align},
};
use sha2::{Digest as _, Sha256};

/// The package `bot-brain` 0.8.0, whose model file is Snowflake's `onnx/model_quantized.onnx`.
const WHEEL: &str = "69e6e3c5371cd20ab32492c3fe436795ec35831057ea34b6e2c3a4bea71da8a8";
const MODEL: (&str, &str) = (
    "project_brain/model/int8/onnx/model.onnx",
    "f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
);
const VOCABULARY: (&str, &str) = (
    "project_brain/model/int8/vocab.txt",
    "b49e80874c5efbc7f4cde245a812673b05ef1360ced56b8bc8c750eaeef3fe0f",
);
const PACKED: &str = "d9d89bd6ac89adc4f8ee01759b616a49f665a395bcd5f1c4d023b9a5aa1ff1a4";

const HIDDEN: usize = 384;
const LAYERS: usize = 12;
const FEED_FORWARD: usize = 1536;
const TOKENS_MAX: usize = 512;
/// The zero point of the tables.
const ZERO_POINT: f32 = 128.0;

/// The packed model.
pub(crate) fn pack(wheel: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    check("the package", wheel, WHEEL)?;
    let read = |(name, digest)| -> Result<Vec<u8>, Box<dyn Error>> {
        let contents = zip::read_zip(wheel, name)?;
        check(name, &contents, digest)?;
        Ok(contents)
    };
    let (model, vocabulary) = (read(MODEL)?, String::from_utf8(read(VOCABULARY)?)?);
    let mut body = Vec::new();
    let pieces: Vec<&str> = vocabulary.lines().collect();
    push_vocabulary(&mut body, &pieces);
    push_weights(&mut body, &Tensors(onnx::tensors(&model)?))?;
    let token = |wanted| pieces.iter().position(|piece| *piece == wanted).map(|at| at as u32);
    let mut header = Header {
        name: "snowflake-arctic-embed-s",
        query_prefix: "Represent this sentence for searching relevant passages: ",
        hidden: HIDDEN,
        layers: LAYERS,
        feed_forward: FEED_FORWARD,
        tokens_max: TOKENS_MAX,
        pieces: pieces.len(),
        unknown_token: token("[UNK]").ok_or("no token for unknown words")?,
        first_token: token("[CLS]").ok_or("no token for the beginning")?,
        last_token: token("[SEP]").ok_or("no token for the end")?,
        words_weight: 0.2,
        epsilon: 1e-12,
        center: vec![0.0; HIDDEN],
    };
    header.center = center(&[header.encode(&body), body.clone()].concat())?;
    let packed = [header.encode(&body), body].concat();
    check("the packed model", &packed, PACKED)?;
    Ok(packed)
}

fn check(what: &str, bytes: &[u8], expected: &str) -> Result<(), String> {
    let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    match digest == expected {
        true => Ok(()),
        false => Err(format!("{what} has the SHA-256 {digest} instead of {expected}")),
    }
}

/// The median of each dimension over ordinary texts.
fn center(model: &[u8]) -> Result<Vec<f32>, Box<dyn Error>> {
    let model = Model::parse(model)?;
    let sentences = include_str!("sentences.txt").lines();
    let vectors: Vec<_> = sentences.map(|text| model.embed(text, Role::Memory)).collect();
    let median = |dimension: usize| {
        let mut values: Vec<f32> = vectors.iter().map(|vector| vector[dimension]).collect();
        values.sort_by(f32::total_cmp);
        values[values.len() / 2]
    };
    Ok((0..model.dimensions()).map(median).collect())
}

/// Pieces that start a word, then those that continue one, each sorted.
fn push_vocabulary(body: &mut Vec<u8>, pieces: &[&str]) {
    let mut sorted: Vec<(bool, &[u8], u32)> = pieces
        .iter()
        .zip(0..)
        .map(|(piece, token)| match piece.strip_prefix("##") {
            // `##` and `#` alone are words.
            Some(rest) if !rest.is_empty() => (true, rest.as_bytes(), token),
            _ => (false, piece.as_bytes(), token),
        })
        .collect();
    sorted.sort_unstable();
    let beginnings = sorted.iter().filter(|(continues, ..)| !continues).count();
    let text: Vec<u8> = sorted.iter().flat_map(|(_, piece, _)| *piece).copied().collect();
    body.extend((beginnings as u32).to_le_bytes());
    body.extend((text.len() as u32).to_le_bytes());
    align(body);
    let mut start = 0;
    for (_, piece, token) in sorted {
        body.extend(u32::to_le_bytes(start));
        body.extend(token.to_le_bytes());
        start += piece.len() as u32;
    }
    align(body);
    body.extend(text);
}

fn push_weights(body: &mut Vec<u8>, tensors: &Tensors<'_>) -> Result<(), Box<dyn Error>> {
    let words = tensors.table("embeddings.word_embeddings.weight")?;
    let groups: Vec<_> = words.chunks_exact(GROUP).map(quantize).collect();
    align(body);
    body.extend(groups.iter().flat_map(|(values, _)| values));
    align(body);
    body.extend(groups.iter().flat_map(|(_, scale)| scale.to_le_bytes()));
    let segment = tensors.table("embeddings.token_type_embeddings.weight")?;
    let positions = tensors.table("embeddings.position_embeddings.weight")?;
    let positions = positions.iter().zip(segment[..HIDDEN].iter().cycle());
    push_floats(body, positions.map(|(position, segment)| position + segment));
    tensors.push_norm(body, "embeddings")?;
    // The matrices have no names, only numbers in the order of use.
    let mut matrices = tensors.matrices().into_iter();
    let mut next = || matrices.next().ok_or("too few matrices");
    for layer in (0..LAYERS).map(|layer| format!("encoder.layer.{layer}")) {
        let own = format!("{layer}.attention.self");
        let attention = ["query", "key", "value"].map(|part| format!("{own}.{part}"));
        tensors.push_linear(body, &[next()?, next()?, next()?], &attention, HIDDEN)?;
        let out = format!("{layer}.attention.output");
        tensors.push_linear(body, &[next()?], &[format!("{out}.dense")], HIDDEN)?;
        tensors.push_norm(body, &out)?;
        let up = format!("{layer}.intermediate.dense");
        tensors.push_linear(body, &[next()?], &[up], HIDDEN)?;
        let out = format!("{layer}.output");
        tensors.push_linear(body, &[next()?], &[format!("{out}.dense")], FEED_FORWARD)?;
        tensors.push_norm(body, &out)?;
    }
    Ok(())
}

/// The tensors of the original.
struct Tensors<'a>(HashMap<String, &'a [u8]>);

impl<'a> Tensors<'a> {
    fn bytes(&self, name: &str) -> Result<&'a [u8], String> {
        self.0.get(name).copied().ok_or_else(|| format!("there is no tensor {name}"))
    }

    fn floats(&self, name: &str) -> Result<Vec<f32>, String> {
        let (numbers, _) = self.bytes(name)?.as_chunks();
        Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
    }

    /// A table of 8-bit values with one scale.
    fn table(&self, name: &str) -> Result<Vec<f32>, String> {
        let scale = self.floats(&format!("{name}_scale"))?[0];
        let values = self.bytes(&format!("{name}_quantized"))?;
        Ok(values.iter().map(|value| (f32::from(*value) - ZERO_POINT) * scale).collect())
    }

    fn matrices(&self) -> Vec<String> {
        let names = self.0.keys().filter_map(|name| name.strip_suffix("_quantized"));
        let mut names: Vec<_> = names.filter(|name| name.starts_with("onnx::MatMul_")).collect();
        names.sort_unstable();
        names.into_iter().map(String::from).collect()
    }

    /// Matrices of `inputs` rows, side by side, with the biases of `layers`.
    fn push_linear(
        &self,
        body: &mut Vec<u8>,
        matrices: &[String],
        layers: &[String],
        inputs: usize,
    ) -> Result<(), String> {
        let joined = |names: &[String], suffix: &str| -> Result<Vec<f32>, String> {
            let parts = names.iter().map(|name| self.floats(&format!("{name}{suffix}")));
            Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
        };
        push_floats(body, joined(matrices, "_scale")?.into_iter());
        push_floats(body, joined(layers, ".bias")?.into_iter());
        align(body);
        for matrix in matrices {
            let weights = self.bytes(&format!("{matrix}_quantized"))?;
            let outputs = weights.len() / inputs;
            for panel in (0..outputs).step_by(LANES) {
                for row in weights.chunks_exact(outputs) {
                    body.extend(&row[panel..panel + LANES]);
                }
            }
        }
        Ok(())
    }

    fn push_norm(&self, body: &mut Vec<u8>, name: &str) -> Result<(), String> {
        push_floats(body, self.floats(&format!("{name}.LayerNorm.weight"))?.into_iter());
        push_floats(body, self.floats(&format!("{name}.LayerNorm.bias"))?.into_iter());
        Ok(())
    }
}

fn push_floats(body: &mut Vec<u8>, values: impl Iterator<Item = f32>) {
    align(body);
    body.extend(values.flat_map(f32::to_le_bytes));
}

/// A group of values in 4 bits each, with their scale as the upper half of an f32.
///
/// Of the scales that put the largest value near the end of the range, the one with the least
/// squared error.
fn quantize(group: &[f32]) -> ([u8; GROUP / 2], u16) {
    let largest = group.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
    let candidates = (0_u16..=16).map(|step| {
        let scale = (largest / (f32::from(step) / 8.0 - 8.0)).to_bits();
        let scale = (scale + 0x8000) >> 16;
        let value = f32::from_bits(scale << 16);
        let nearest =
            |x: f32| if value == 0.0 { 0.0 } else { (x / value).round().clamp(-8.0, 7.0) };
        let values: Vec<f32> = group.iter().map(|x| nearest(*x)).collect();
        let error: f32 = group.iter().zip(&values).map(|(x, q)| (x - q * value).powi(2)).sum();
        (error, values, scale as u16)
    });
    let best = candidates.min_by(|a, b| a.0.total_cmp(&b.0));
    let (_, values, scale) = best.unwrap_or((0.0, vec![0.0; GROUP], 0));
    let bits = |at: usize| (values[at] + 8.0) as u8;
    (std::array::from_fn(|at| bits(at) | bits(at + GROUP / 2) << 4), scale)
}
