//! Reads the tensors of an ONNX file, with the necessary part of protobuf.

use std::{collections::HashMap, error::Error};

/// The tensors by name: little-endian numbers, row-major.
pub(crate) fn tensors(model: &[u8]) -> Result<HashMap<String, &[u8]>, Box<dyn Error>> {
    let mut tensors = HashMap::new();
    for (_, graph) in fields(model)?.into_iter().filter(|(field, _)| *field == 7) {
        for (_, tensor) in fields(graph)?.into_iter().filter(|(field, _)| *field == 5) {
            let (mut name, mut values) = (String::new(), None);
            for (field, contents) in fields(tensor)? {
                match field {
                    8 => name = String::from_utf8(contents.to_vec())?,
                    // Packed floats and raw bytes have the same form.
                    4 | 9 => values = Some(contents),
                    _ => {}
                }
            }
            // Zero points are stored as integers, and are all the same.
            if let Some(values) = values {
                tensors.insert(name, values);
            }
        }
    }
    Ok(tensors)
}

/// The number and contents of a field.
type OnnxField<'a> = (u64, &'a [u8]);

/// The length-delimited fields of a message. Others are skipped.
fn fields(message: &[u8]) -> Result<Vec<OnnxField<'_>>, Box<dyn Error>> {
    let mut fields = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let length = match key & 7 {
            0 => {
                varint(&mut rest)?;
                continue;
            }
            1 => 8,
            2 => varint(&mut rest)? as usize,
            5 => 4,
            kind => return Err(format!("a field of kind {kind}").into()),
        };
        let (contents, after) = rest.split_at_checked(length).ok_or("the model is damaged")?;
        rest = after;
        if key & 7 == 2 {
            fields.push((key >> 3, contents));
        }
    }
    Ok(fields)
}

fn varint(rest: &mut &[u8]) -> Result<u64, Box<dyn Error>> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or("the model is damaged")?;
        *rest = after;
        value |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Ok(value);
        }
    }
    Err("the model is damaged".into())
}
