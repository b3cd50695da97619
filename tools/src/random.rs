//! Random numbers with a fixed seed (xorshift64*).

/// A generator. Equal seeds give equal numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts from this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.bits() >> 11) % bound
    }
}
