//! What the errors of stores mean, and what of them is worth saying.

use std::{error::Error, io, iter};

pub(super) fn is_unsupported(error: &object_store::Error) -> bool {
    use object_store::Error as E;
    matches!(error, E::NotImplemented { .. } | E::NotSupported { .. })
        || first_line(error).contains("status code: 501")
}

pub(super) fn is_no_bucket(why: &str) -> bool {
    why.contains("NoSuchBucket")
}

/// What the system said, if it was the system.
pub(super) fn io_kind(error: &object_store::Error) -> Option<io::ErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

/// Errors of stores go on for many lines and name the request at length; what happened is at the end of the first.
/// What it came from is behind that, if there is more to it.
pub(super) fn first_line(error: &object_store::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = match line.rsplit_once(" - ") {
        Some((request, what)) if request.contains("Error performing") => what,
        _ => line,
    };
    let origin = causes(error).last().map(ToString::to_string).unwrap_or_default();
    let line = match origin.lines().next() {
        Some(origin) if !text.contains(origin) => format!("{line}: {origin}"),
        _ => line.to_owned(),
    };
    let mut end = line.len().min(300);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].to_owned()
}

fn causes(error: &object_store::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source())
}
