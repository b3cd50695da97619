//! Reads one file of a zip archive, such as a wheel.

use std::{error::Error, io::Read as _};

use flate2::read::DeflateDecoder;

/// The contents of the file `name`.
pub(crate) fn read_zip(archive: &[u8], name: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let directory_end = find_last(archive, b"PK\x05\x06").ok_or("no zip archive")?;
    let count = number(archive, directory_end + 10, 2)?;
    let mut at = number(archive, directory_end + 16, 4)?;
    for _ in 0..count {
        let lengths = [28, 30, 32].map(|field| number(archive, at + field, 2));
        let [name_length, extra, comment] = lengths;
        let name_length = name_length?;
        if slice(archive, at + 46, name_length)? == name.as_bytes() {
            let method = number(archive, at + 10, 2)?;
            let packed_length = number(archive, at + 20, 4)?;
            let length = number(archive, at + 24, 4)?;
            let local = number(archive, at + 42, 4)?;
            let data =
                local + 30 + number(archive, local + 26, 2)? + number(archive, local + 28, 2)?;
            let packed = slice(archive, data, packed_length)?;
            let mut contents = Vec::with_capacity(length);
            match method {
                0 => contents.extend(packed),
                8 => drop(DeflateDecoder::new(packed).read_to_end(&mut contents)?),
                _ => return Err(format!("{name} is packed by method {method}").into()),
            }
            return Ok(contents);
        }
        at += 46 + name_length + extra? + comment?;
    }
    Err(format!("there is no {name} in the archive").into())
}

fn find_last(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).rposition(|window| window == wanted)
}

fn slice(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], Box<dyn Error>> {
    bytes.get(at..at + length).ok_or_else(|| "the archive is damaged".into())
}

fn number(bytes: &[u8], at: usize, length: usize) -> Result<usize, Box<dyn Error>> {
    Ok(slice(bytes, at, length)?.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}
