//! The model file: a header with everything that is not a weight, then vocabulary and weights.
//!
//! ```text
//! header   magic, version, length of header, length of body, BLAKE3 of the body, sizes, special
//!          tokens, weight of words, epsilon, center, name, query prefix; zeros up to a multiple of 64
//! body     vocabulary:  u32 count of pieces that begin a word; per piece u32 start, u32 token; text
//!          words:       4 bits per value, 16 bytes for 32 values of a row; then one bf16 scale per 32
//!          positions:   f32 [tokens_max][hidden], the embedding of the first segment added
//!          norm:        f32 weights, f32 biases
//!          per layer:   linear (query, key, value), linear, norm, linear (up), linear (down), norm
//! linear   f32 scale and f32 bias per output; i8 weights [outputs / 16][inputs][16]
//! ```
//!
//! Numbers are little-endian. Every array starts at a multiple of 64 bytes. Weights are stored in
//! the order in which the kernel reads them, so there is no load step: a mapped or included file is
//! used as it is.

use crate::InvalidModel;

/// Outputs that are computed side by side.
pub const LANES: usize = 16;
/// Values of the word table that share a scale.
pub const GROUP: usize = 32;
/// Inputs of one attention head.
pub const HEAD: usize = 32;
const ALIGNMENT: usize = 64;
const MAGIC: &[u8; 8] = b"CMEMBED\0";
const VERSION: u32 = 1;
/// The vector of a text is the one of its first token.
const POOLING_FIRST_TOKEN: u32 = 0;
/// Far above the sizes of any supported model. Prevents overflow in products of sizes.
const SIZE_MAX: usize = 1 << 20;

/// Everything about a model but its weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Header<'a> {
    pub name: &'a str,
    /// The prefix that the model expects before a query.
    pub query_prefix: &'a str,
    pub hidden: usize,
    pub layers: usize,
    pub feed_forward: usize,
    /// Tokens of the longest text, its first and last included.
    pub tokens_max: usize,
    pub pieces: usize,
    pub unknown_token: u32,
    pub first_token: u32,
    pub last_token: u32,
    pub words_weight: f32,
    /// Added to a variance before its root is taken.
    pub epsilon: f32,
    pub center: Vec<f32>,
}

impl<'a> Header<'a> {
    /// The bytes before `body`.
    pub fn encode(&self, body: &[u8]) -> Vec<u8> {
        let mut fields = Vec::new();
        fields.extend((body.len() as u64).to_le_bytes());
        fields.extend(blake3::hash(body).as_bytes());
        for size in [self.hidden, self.layers, self.feed_forward, self.tokens_max, self.pieces] {
            fields.extend((size as u32).to_le_bytes());
        }
        for token in [self.unknown_token, self.first_token, self.last_token, POOLING_FIRST_TOKEN] {
            fields.extend(token.to_le_bytes());
        }
        for value in [self.words_weight, self.epsilon].iter().chain(&self.center) {
            fields.extend(value.to_le_bytes());
        }
        for text in [self.name, self.query_prefix] {
            fields.extend((text.len() as u32).to_le_bytes());
            fields.extend(text.as_bytes());
        }
        let length = (MAGIC.len() + 8 + fields.len()).next_multiple_of(ALIGNMENT);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((length as u32).to_le_bytes());
        bytes.extend(fields);
        bytes.resize(length, 0);
        bytes
    }

    /// The header and the body of a file.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), InvalidModel> {
        let mut fields = Reader::new(bytes);
        if fields.bytes(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(invalid("it does not start with the magic bytes of a model"));
        }
        match fields.number()? {
            VERSION => {}
            version => return Err(invalid(format!("unknown version {version} of the format"))),
        }
        let length = fields.number()? as usize;
        let (head, body) = bytes.split_at_checked(length).ok_or_else(truncated)?;
        let mut fields = Reader::new(head.get(fields.at..).ok_or_else(truncated)?);
        let body_length = u64::from_le_bytes(fields.array()?);
        if body_length != body.len() as u64 {
            return Err(invalid(format!(
                "{} bytes of weights instead of {body_length}",
                body.len()
            )));
        }
        fields.bytes(blake3::OUT_LEN)?;
        let hidden = fields.size(LANES)?;
        let header = Self {
            hidden,
            layers: fields.size(1)?,
            feed_forward: fields.size(LANES)?,
            tokens_max: fields.size(1)?,
            pieces: fields.size(1)?,
            unknown_token: fields.number()?,
            first_token: fields.number()?,
            last_token: fields.number()?,
            words_weight: match fields.number()? {
                POOLING_FIRST_TOKEN => fields.float()?,
                pooling => return Err(invalid(format!("pooling {pooling}"))),
            },
            epsilon: fields.float()?,
            center: (0..hidden).map(|_| fields.float()).collect::<Result<_, _>>()?,
            name: fields.text()?,
            query_prefix: fields.text()?,
        };
        header.check()?;
        Ok((header, body))
    }

    fn check(&self) -> Result<(), InvalidModel> {
        if !self.hidden.is_multiple_of(GROUP) {
            return Err(invalid(format!("{} dimensions", self.hidden)));
        }
        if self.tokens_max < 3 {
            return Err(invalid(format!("at most {} tokens", self.tokens_max)));
        }
        for token in [self.unknown_token, self.first_token, self.last_token] {
            if token as usize >= self.pieces {
                return Err(invalid(format!("token {token} of {}", self.pieces)));
            }
        }
        let numbers = [self.words_weight, self.epsilon];
        if self.epsilon < 0.0 || numbers.iter().chain(&self.center).any(|value| !value.is_finite())
        {
            return Err(invalid("a number in the header is out of range"));
        }
        Ok(())
    }
}

/// Appends zeros up to the start of the next array.
pub fn align(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
}

/// Reads arrays in sequence.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Skips to the next multiple of the alignment and takes `length` bytes.
    pub(crate) fn aligned(&mut self, length: usize) -> Result<&'a [u8], InvalidModel> {
        self.at = self.at.next_multiple_of(ALIGNMENT);
        self.bytes(length)
    }

    /// `length` numbers, decoded when they are used.
    pub(crate) fn floats(&mut self, length: usize) -> Result<Floats<'a>, InvalidModel> {
        self.aligned(length * 4).map(|bytes| Floats(bytes.as_chunks().0))
    }

    pub(crate) fn number(&mut self) -> Result<u32, InvalidModel> {
        self.array().map(u32::from_le_bytes)
    }

    /// Checks that only padding is left.
    pub(crate) fn finish(self) -> Result<(), InvalidModel> {
        match self.bytes.len().checked_sub(self.at) {
            Some(0..ALIGNMENT) => Ok(()),
            Some(left) => Err(invalid(format!("{left} bytes too many"))),
            None => Err(truncated()),
        }
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], InvalidModel> {
        let end = self.at.checked_add(length).ok_or_else(truncated)?;
        let bytes = self.bytes.get(self.at..end).ok_or_else(truncated)?;
        self.at = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidModel> {
        self.bytes(N)?.try_into().map_err(|_| truncated())
    }

    fn float(&mut self) -> Result<f32, InvalidModel> {
        self.array().map(f32::from_le_bytes)
    }

    fn size(&mut self, multiple_of: usize) -> Result<usize, InvalidModel> {
        match self.number()? as usize {
            size @ 1..=SIZE_MAX if size.is_multiple_of(multiple_of) => Ok(size),
            size => Err(invalid(format!("invalid size {size}"))),
        }
    }

    fn text(&mut self) -> Result<&'a str, InvalidModel> {
        let length = self.number()? as usize;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| invalid("a name is not UTF-8"))
    }
}

/// Numbers in the file, independent of the byte order and alignment of this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floats<'a>(&'a [[u8; 4]]);

impl Floats<'_> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = f32> {
        self.0.iter().map(|bytes| f32::from_le_bytes(*bytes))
    }

    /// `LANES` numbers from the panel `panel`.
    pub(crate) fn lanes(&self, panel: usize) -> [f32; LANES] {
        let numbers = &self.0[panel * LANES..][..LANES];
        std::array::from_fn(|lane| f32::from_le_bytes(numbers[lane]))
    }
}

pub(crate) fn invalid(reason: impl Into<String>) -> InvalidModel {
    InvalidModel(reason.into())
}

fn truncated() -> InvalidModel {
    invalid("it ends too early")
}
