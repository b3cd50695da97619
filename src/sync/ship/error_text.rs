//! The texts of `object_store` errors: readable for people, and matched where nothing else tells
//! failures apart.
//!
//! The library has one error for most failures, so the difference between a wrong key, a server
//! that is down and a bad setting is only in its text. All matched texts are here, and a test
//! provokes each with the pinned version: an update that changes one fails there.

use std::{error::Error, io, iter};

use serde_json::Value;

/// Every error without a separate variant: `Generic S3 error: …`.
pub(super) const GENERIC: (&str, &str) = ("Generic ", " error: ");
/// A request failed; the reason is after ` - `.
pub(super) const REQUEST: &str = "Error performing";
/// The server answered with an error.
pub(super) const STATUS: &str = "status code: ";
/// The server does not know the request.
pub(super) const NOT_IMPLEMENTED: &str = "status code: 501";
/// The server rejects the request, and will do so again.
pub(super) const CLIENT_ERROR: &str = "status code: 4";
/// The HTTP client cannot be created, for example because of a bad proxy URL.
pub(super) const HTTP_CLIENT: &str = "builder error";
/// Azure: no storage account is configured.
pub(super) const NO_ACCOUNT: &str = "Account must be";
/// The error is from fetching credentials, before the bucket was contacted.
pub(super) const FETCHING_CREDENTIALS: [&str; 7] = [
    "Error performing token request",
    "/latest/api/token",
    "/latest/meta-data/",
    "http://169.254.170.2/",
    "token file",
    "get-access-token",
    "azure cli response",
];

const LEN_MAX: usize = 300;

pub(super) fn is_unsupported(error: &object_store::Error) -> bool {
    use object_store::Error as E;
    matches!(error, E::NotImplemented { .. } | E::NotSupported { .. })
        || error_text(error).contains(NOT_IMPLEMENTED)
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
pub(super) fn error_text(error: &object_store::Error) -> String {
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
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
        time::Duration,
    };

    use object_store::{
        ClientOptions, ObjectStore, ObjectStoreExt as _, RetryConfig,
        aws::{AmazonS3Builder, AmazonS3ConfigKey},
        azure::MicrosoftAzureBuilder,
        path::Path,
    };

    use super::*;
    use crate::ship::{remote::prepare_connections, tests::wait};

    /// A server that answers every request with this status.
    fn server(status: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let _ = stream.read(&mut [0; 4096]);
                let response =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(response.as_bytes());
            }
        });
        url
    }

    fn no_retry() -> RetryConfig {
        RetryConfig {
            max_retries: 0,
            retry_timeout: Duration::from_secs(5),
            ..RetryConfig::default()
        }
    }

    fn error_of(store: &impl ObjectStore) -> String {
        wait(store.get(&Path::from("x"))).unwrap_err().to_string()
    }

    fn amazon() -> AmazonS3Builder {
        prepare_connections();
        AmazonS3Builder::new()
            .with_bucket_name("b")
            .with_region("r")
            .with_allow_http(true)
            .with_retry(no_retry())
    }

    fn azure() -> MicrosoftAzureBuilder {
        prepare_connections();
        MicrosoftAzureBuilder::new()
            .with_container_name("c")
            .with_account("a")
            .with_allow_http(true)
            .with_retry(no_retry())
    }

    #[test]
    fn a_server_that_answers_an_error_is_recognized() {
        let from = |status| {
            let store = amazon().with_endpoint(server(status)).with_access_key_id("k");
            error_of(&store.with_secret_access_key("s").build().unwrap())
        };
        let text = from("501 Not Implemented");
        assert!(text.starts_with(GENERIC.0) && text.contains(GENERIC.1), "{text}");
        assert!(text.contains(REQUEST) && text.contains(NOT_IMPLEMENTED), "{text}");
        let text = from("400 Bad Request");
        assert!(text.contains(STATUS) && text.contains(CLIENT_ERROR), "{text}");
    }

    #[test]
    fn credentials_that_cannot_be_fetched_are_recognized() {
        let down = "400 Bad Request";
        let metadata = amazon().with_metadata_endpoint(server(down)).build().unwrap();
        let file = amazon()
            .with_config(AmazonS3ConfigKey::WebIdentityTokenFile, "/nowhere/token")
            .with_config(AmazonS3ConfigKey::RoleArn, "arn:aws:iam::1:role/r")
            .build()
            .unwrap();
        let login = azure()
            .with_client_secret_authorization("id", "secret", "tenant")
            .with_authority_host(server(down))
            .build()
            .unwrap();
        let texts = [error_of(&metadata), error_of(&file), error_of(&login)];
        let expected = ["/latest/api/token", "token file", "Error performing token request"];
        for (text, part) in texts.iter().zip(expected) {
            assert!(FETCHING_CREDENTIALS.contains(&part) && text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_recognized() {
        prepare_connections();
        let text = MicrosoftAzureBuilder::new().with_container_name("c").build().unwrap_err();
        assert!(text.to_string().contains(NO_ACCOUNT), "{text}");
        let options = ClientOptions::new().with_proxy_url("http://[");
        let store = amazon().with_client_options(options).with_access_key_id("k");
        let text = store.with_secret_access_key("s").build().unwrap_err();
        assert!(text.to_string().contains(HTTP_CLIENT), "{text}");
    }

    fn message(text: &str) -> String {
        error_text(&object_store::Error::Generic { store: "GCS", source: text.into() })
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
