//! What lets us into buckets: whether there is anything, and what to do if not.
//!
//! Machines that are rented have credentials to give, at an address that nobody answers at elsewhere, which takes long to
//! be sure of. So it is asked only where there is nothing else and something says that we are on such a machine.

use std::{fs, path::Path};

use super::{
    Error,
    error_text::first_line,
    object_store_text::{CLIENT_ERROR, FETCHING_CREDENTIALS, REQUEST},
};

/// What the machine's maker wrote into it under this name, where the system tells.
pub(super) fn of_maker(name: &str) -> String {
    fs::read_to_string(Path::new("/sys/class/dmi/id").join(name)).unwrap_or_default()
}

/// Whether a switch is on, in the words that the builders of stores take.
pub(super) fn is_on(value: Option<&str>) -> bool {
    let words = ["1", "true", "on", "yes", "y"];
    value.is_some_and(|value| words.iter().any(|word| value.eq_ignore_ascii_case(word)))
}

/// What an error means that came of fetching what lets us in, if it did. Who does not answer may do so later.
pub(super) fn failed(place: &str, error: &object_store::Error) -> Option<Error> {
    let text = error.to_string();
    let is_fetching = matches!(error, object_store::Error::Generic { .. })
        && FETCHING_CREDENTIALS.iter().any(|part| text.contains(part));
    if !is_fetching {
        return None;
    }
    let is_final = !text.contains(REQUEST) || text.contains(CLIENT_ERROR);
    let (place, why) = (place.to_owned(), first_line(error));
    Some(match is_final {
        true => Error::Credentials { place, why },
        false => Error::Unreachable { place, why: format!("what lets us in was asked for: {why}") },
    })
}

/// What to do where there is nothing to be let in with.
pub(super) fn remedy(place: &str) -> &'static str {
    match scheme(place) {
        "gs" => {
            "let `GOOGLE_APPLICATION_CREDENTIALS` or `claude-mem settings set SHIP_GOOGLE_CREDENTIALS …` name the file of a service account, or run `gcloud auth application-default login`"
        }
        "az" | "azure" => {
            "set `AZURE_STORAGE_ACCOUNT_NAME`, and `AZURE_STORAGE_ACCOUNT_KEY` or `AZURE_STORAGE_SAS_TOKEN`; or run `az login` and set `AZURE_USE_AZURE_CLI=true`"
        }
        _ => {
            "set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or SHIP_ACCESS_KEY_ID and SHIP_SECRET_ACCESS_KEY with `claude-mem settings set`, or run `aws configure`; for a login or a role, run `eval \"$(aws configure export-credentials --format env)\"`"
        }
    }
}

/// What to look at where we were not let in.
pub(super) fn remedy_of_denied(place: &str) -> &'static str {
    match scheme(place) {
        "s3" | "s3a" => {
            "check the credentials (`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, the settings of these names, or `~/.aws`) and what they may do"
        }
        "gs" => "check the credentials (`GOOGLE_APPLICATION_CREDENTIALS`) and what they may do",
        "az" | "azure" => {
            "check the credentials (`AZURE_STORAGE_ACCOUNT_NAME` and `AZURE_STORAGE_ACCOUNT_KEY`) and what they may do"
        }
        _ => "check whose directory it is, and who may read and write there",
    }
}

fn scheme(place: &str) -> &str {
    place.split_once("://").map_or("", |(scheme, _)| scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_may_do_so_later_and_who_refuses_will_not() {
        let failed = |text: &str| {
            let error = object_store::Error::Generic { store: "S3", source: text.into() };
            super::failed("s3://x", &error)
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
    fn a_switch_is_on_only_if_somebody_says_so() {
        assert!(is_on(Some("TRUE")) && is_on(Some("1")));
        assert!(
            !is_on(None) && !is_on(Some("false")) && !is_on(Some("0")) && !is_on(Some("maybe"))
        );
    }
}
