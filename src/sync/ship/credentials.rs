//! Credentials of buckets: error messages and hints, and detection of metadata servers.
//!
//! Cloud instances provide credentials through a metadata server at a fixed address. Elsewhere
//! nothing listens there, and the time-out is long. So it is used only if there are no other
//! credentials and the hardware identifies itself as such an instance.

use std::{fs, path::Path};

use super::{
    Error,
    error_text::{CLIENT_ERROR, FETCHING_CREDENTIALS, REQUEST, error_text},
};

/// A value of the hardware description (DMI), such as `sys_vendor`; empty if the system has none.
pub(super) fn hardware_value(name: &str) -> String {
    fs::read_to_string(Path::new("/sys/class/dmi/id").join(name)).unwrap_or_default()
}

/// Whether a value means true, as in `object_store`.
pub(super) fn is_on(value: Option<&str>) -> bool {
    let words = ["1", "true", "on", "yes", "y"];
    value.is_some_and(|value| words.iter().any(|word| value.eq_ignore_ascii_case(word)))
}

/// Classifies an error of fetching credentials; `None` for other errors. An unreachable server is
/// transient.
pub(super) fn credentials_error(place: &str, error: &object_store::Error) -> Option<Error> {
    let text = error.to_string();
    let is_fetching = matches!(error, object_store::Error::Generic { .. })
        && FETCHING_CREDENTIALS.iter().any(|part| text.contains(part));
    if !is_fetching {
        return None;
    }
    let is_final = !text.contains(REQUEST) || text.contains(CLIENT_ERROR);
    let (place, why) = (place.to_owned(), error_text(error));
    Some(match is_final {
        true => Error::Credentials { place, why },
        false => Error::Unreachable { place, why: format!("fetching credentials failed: {why}") },
    })
}

pub(super) fn credentials_remedy(place: &str) -> &'static str {
    match scheme(place) {
        "gs" => {
            "set `GOOGLE_APPLICATION_CREDENTIALS` or `claude-mem settings set \
             SHIP_GOOGLE_CREDENTIALS …` to the file of a service account, or run `gcloud auth \
             application-default login`"
        }
        "az" | "azure" => {
            "set `AZURE_STORAGE_ACCOUNT_NAME`, and `AZURE_STORAGE_ACCOUNT_KEY` or \
             `AZURE_STORAGE_SAS_TOKEN`; or run `az login` and set `AZURE_USE_AZURE_CLI=true`"
        }
        _ => {
            "set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or SHIP_ACCESS_KEY_ID and \
             SHIP_SECRET_ACCESS_KEY with `claude-mem settings set`, or run `aws configure`; for a \
             login or a role, run `eval \"$(aws configure export-credentials --format env)\"`"
        }
    }
}

pub(super) fn denied_hint(place: &str) -> &'static str {
    match scheme(place) {
        "s3" | "s3a" => {
            "check the credentials (`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, the settings \
             of these names, or `~/.aws`) and their permissions"
        }
        "gs" => "check the credentials (`GOOGLE_APPLICATION_CREDENTIALS`) and their permissions",
        "az" | "azure" => {
            "check the credentials (`AZURE_STORAGE_ACCOUNT_NAME` and `AZURE_STORAGE_ACCOUNT_KEY`) \
             and their permissions"
        }
        _ => "check the owner and the permissions of the directory",
    }
}

fn scheme(place: &str) -> &str {
    place.split_once("://").map_or("", |(scheme, _)| scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_metadata_server_is_transient_and_a_refusal_is_not() {
        let failed = |text: &str| {
            let error = object_store::Error::Generic { store: "S3", source: text.into() };
            credentials_error("s3://x", &error)
        };
        let request = "Error performing PUT http://169.254.169.254/latest/api/token in 1ms - ";
        let status = "Server returned non-2xx status code: ";
        let refused = failed(&format!("{request}{status}404 Not Found: none"));
        assert!(matches!(refused, Some(Error::Credentials { .. })), "{refused:?}");
        for passing in ["error sending request", "Server returned non-2xx status code: 503"] {
            let passing = failed(&format!("{request}{passing}"));
            assert!(matches!(passing, Some(Error::Unreachable { .. })), "{passing:?}");
        }
        let cli = failed("'az account get-access-token' command failed: Please run 'az login'");
        assert!(matches!(cli, Some(Error::Credentials { .. })), "{cli:?}");
        let bucket = "Error performing GET http://127.0.0.1:1/memories/x in 1ms - ";
        assert!(failed(&format!("{bucket}{status}400 Bad Request")).is_none());
    }

    #[test]
    fn a_switch_is_off_by_default() {
        assert!(is_on(Some("TRUE")) && is_on(Some("1")));
        assert!(
            !is_on(None) && !is_on(Some("false")) && !is_on(Some("0")) && !is_on(Some("maybe"))
        );
    }
}
