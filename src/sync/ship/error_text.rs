//! Readable texts for errors of `object_store`.

use std::{error::Error, io, iter};

use serde_json::Value;

use super::object_store_text::{GENERIC, NOT_IMPLEMENTED, REQUEST, STATUS};

const LEN_MAX: usize = 300;

pub(super) fn is_unsupported(error: &object_store::Error) -> bool {
    use object_store::Error as E;
    matches!(error, E::NotImplemented { .. } | E::NotSupported { .. })
        || first_line(error).contains(NOT_IMPLEMENTED)
}

pub(super) fn is_no_bucket(why: &str) -> bool {
    ["NoSuchBucket", "ContainerNotFound"].iter().any(|code| why.contains(code))
}

/// The kind of the underlying I/O error, if there is one.
pub(super) fn io_kind(error: &object_store::Error) -> Option<io::ErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

/// The useful part of an error. Its text has many lines and contains the request. The reason is at
/// the end of the first line or in the response body; the root cause is appended if it differs.
pub(super) fn first_line(error: &object_store::Error) -> String {
    let text = error.to_string();
    let message = match text.split_once(GENERIC.1) {
        Some((generic, message)) if generic.starts_with(GENERIC.0) => message,
        _ => &text,
    };
    let message = match message.split_once(" - ") {
        Some((request, what)) if request.contains(REQUEST) => what,
        _ => message,
    };
    let mut line = message.lines().next().unwrap_or_default().to_owned();
    // The response body follows the status.
    let status = line.find(STATUS).unwrap_or(line.len());
    if let Some(at) = line[status..].find(['<', '{']).map(|at| status + at)
        && let Some(words) = in_body(&message[at..])
    {
        line.truncate(at);
        line += &words;
    }
    let origin = causes(error).last().map(ToString::to_string).unwrap_or_default();
    if let Some(origin) = origin.lines().next().filter(|origin| !text.contains(origin)) {
        line = format!("{line}: {origin}");
    }
    let end = (0..=line.len().min(LEN_MAX)).rev().find(|at| line.is_char_boundary(*at));
    line.truncate(end.unwrap_or_default());
    line
}

/// The code and message of an XML or JSON body.
fn in_body(body: &str) -> Option<String> {
    let element = |name: &str| {
        let (_, behind) = body.split_once(&format!("<{name}>"))?;
        behind.split_once(&format!("</{name}>")).map(|(text, _)| text.trim().to_owned())
    };
    let parts: Vec<String> = if body.starts_with('<') {
        ["Code", "Message", "Details"].iter().filter_map(|name| element(name)).collect()
    } else {
        let body: Value = serde_json::Deserializer::from_str(body).into_iter().next()?.ok()?;
        let texts = [&body["error"], &body["error_description"]];
        texts.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    Some(parts.join(": ")).filter(|words| !words.is_empty())
}

fn causes(error: &object_store::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        first_line(&object_store::Error::Generic { store: "GCS", source: text.into() })
    }

    #[test]
    fn error_texts_omit_the_request_and_the_markup() {
        let request = "Error performing list request: Error performing GET http://x?y in 1ms - ";
        let status = "Server returned non-2xx status code: ";
        let xml = "\
            403 Forbidden: <?xml version='1.0'?>\n<Error><Code>AccessDenied</Code>\n\
            <Message>No.</Message><Details>ada may not list.</Details></Error>";
        let shown = message(&format!("{request}{status}{xml}"));
        assert_eq!(shown, format!("{status}403 Forbidden: AccessDenied: No.: ada may not list."));
        let json = "\
            400 Bad Request: {\n  \"error\": \"invalid_grant\",\n  \
            \"error_description\": \"Expired.\"\n}";
        let shown = message(&format!("{request}{status}{json}\n\nDebug source: …"));
        assert_eq!(shown, format!("{status}400 Bad Request: invalid_grant: Expired."));
        assert_eq!(
            message(&format!("{request}{status}502: <html>oops")),
            format!("{status}502: <html>oops")
        );
        assert_eq!(message(&"ä".repeat(400)).len(), LEN_MAX);
        assert_eq!(message("no route\nto host"), "no route");
    }
}
