//! The texts of `object_store` errors that this crate matches.
//!
//! The library has one error for most failures, so the difference between a wrong key, a server
//! that is down and a bad setting is only in its text. All matched texts are here, and a test
//! provokes each with the pinned version: an update that changes one fails there.

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
}
