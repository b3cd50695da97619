//! The built-in embedding model. `README.md` says where it comes from and how it is made.

/// Begins at a multiple of a cache line.
#[repr(C, align(64))]
struct Aligned<Bytes: ?Sized>(Bytes);

static MODEL: &Aligned<[u8]> = &Aligned(*include_bytes!("arctic-embed-s.bin"));

/// The model file. The system reads its pages when they are first used.
pub fn bytes() -> &'static [u8] {
    &MODEL.0
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    #[test]
    fn notice_names_the_digest_of_the_model() {
        let digest: String =
            Sha256::digest(super::bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(include_str!("NOTICE").contains(&digest), "NOTICE lacks {digest}");
    }

    #[test]
    fn the_model_is_aligned() {
        assert!(super::bytes().as_ptr().addr().is_multiple_of(64));
    }
}
