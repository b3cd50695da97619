//! The system's randomness, for tokens and keys.

use std::{fs::File, io, io::Read};

/// Fills `bytes` with what nobody can guess, or fails: a guessable key is worse than none.
///
/// Read from the device, which every system that this runs on has; nothing that asks for it is in a hurry.
pub(crate) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(bytes)
}
