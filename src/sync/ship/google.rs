//! Buckets on Google Cloud Storage.

use std::path::{Path, PathBuf};

use object_store::gcp::{
    GoogleCloudStorage, GoogleCloudStorageBuilder as Builder, GoogleConfigKey as ConfigKey,
};

use crate::ship::{
    Error,
    credentials::{hardware_value, is_on},
    error_text::{HTTP_CLIENT, error_text},
    remote::{client, retry, variables, without_password},
};
use claude_mem_core::{
    environment::Environment,
    paths::{Paths, expand_tilde},
    settings::{Settings, table},
};

/// The credentials file of `gcloud auth application-default login`.
const GCLOUD_CREDENTIALS_FILE: &str = "gcloud/application_default_credentials.json";
/// Variables that name a metadata server.
const METADATA_VARIABLES: [&str; 3] = ["GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"];

/// Opens a bucket. Sends no request.
pub(super) fn google_bucket(
    place: &str,
    paths: &Paths,
    settings: &Settings,
    environment: &Environment,
) -> Result<GoogleCloudStorage, Error> {
    // Google's libraries make the same check before they contact the metadata server.
    let maker = hardware_value("product_name");
    let place = &without_password(place);
    check_name(place)?;
    let builder = builder(place, paths, settings, environment);
    if !has_credentials(&builder) && !has_metadata_server(environment, &maker) {
        let why = "there are none in environment variables or files".into();
        return Err(Error::Credentials { place: place.clone(), why });
    }
    let file = [ConfigKey::ServiceAccount, ConfigKey::ApplicationCredentials];
    let file = file.iter().find_map(|key| builder.get_config_value(key)).unwrap_or_default();
    builder.build().map_err(|error| {
        let (place, why) = (place.clone(), error_text(&error));
        // The error may concern something else than credentials, such as certificates.
        if why.contains(HTTP_CLIENT) {
            return Error::Place { place, why };
        }
        let why = if why.contains(&file) { why } else { format!("{file}: {why}") };
        Error::Credentials { place, why }
    })
}

/// Merges environment variables, our setting and the credentials file of gcloud. The setting wins;
/// the file is last.
fn builder(place: &str, paths: &Paths, settings: &Settings, environment: &Environment) -> Builder {
    let home = paths.home.as_deref();
    let expanded = |path: &Path| expand_tilde(path, home).to_string_lossy().into_owned();
    // HTTP is used only if the configured endpoint has that scheme.
    let mut builder = Builder::new()
        .with_url(place)
        .with_client_options(client().with_allow_http(true))
        .with_retry(retry());
    let ours = settings.get(&table::SHIP_GOOGLE_CREDENTIALS);
    for (name, value) in variables(environment, &["GOOGLE_"]) {
        let Ok(key) = name.parse::<ConfigKey>() else { continue };
        let (is_path, is_other) = match key {
            ConfigKey::ServiceAccount | ConfigKey::ApplicationCredentials => (true, false),
            ConfigKey::ServiceAccountKey | ConfigKey::BearerToken => (false, true),
            _ => (false, false),
        };
        if ours.is_none() || !(is_path || is_other) {
            let value = if is_path { expanded(value.as_ref()) } else { value };
            builder = builder.with_config(key, value);
        }
    }
    if let Some(ours) = ours {
        return builder.with_application_credentials(expanded(&ours));
    }
    match gcloud_credentials_file(paths, environment).filter(|path| path.exists()) {
        Some(path) if !has_credentials(&builder) => {
            builder.with_application_credentials(path.to_string_lossy())
        }
        _ => builder,
    }
}

fn gcloud_credentials_file(paths: &Paths, environment: &Environment) -> Option<PathBuf> {
    let configuration = match cfg!(windows) {
        true => PathBuf::from(environment.get("APPDATA")?),
        false => paths.home.as_ref()?.join(".config"),
    };
    Some(configuration.join(GCLOUD_CREDENTIALS_FILE))
}

fn has_credentials(builder: &Builder) -> bool {
    let is_configured = |key: ConfigKey| builder.get_config_value(&key).is_some();
    is_configured(ConfigKey::ServiceAccount)
        || is_configured(ConfigKey::ServiceAccountKey)
        || is_configured(ConfigKey::ApplicationCredentials)
        || is_configured(ConfigKey::BearerToken)
        // Public buckets need no credentials.
        || is_on(builder.get_config_value(&ConfigKey::SkipSignature).as_deref())
}

/// Whether this machine has a Google metadata server. Elsewhere the time-out is long.
fn has_metadata_server(environment: &Environment, maker: &str) -> bool {
    maker.starts_with("Google")
        || METADATA_VARIABLES.iter().any(|name| environment.get(name).is_some())
}

fn check_name(place: &str) -> Result<(), Error> {
    let name = place.trim_start_matches("gs://").split('/').next().unwrap_or_default();
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_right = name.starts_with(is_letter)
        && name.chars().all(|letter| is_letter(letter) || "-_.".contains(letter));
    if is_right {
        return Ok(());
    }
    let why = "bucket names consist of lower-case letters, digits, `-`, `_` and `.`";
    Err(Error::Place { place: place.into(), why: why.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_server_is_used_only_on_google_machines() {
        let nothing = Environment::fixed(&[]);
        assert!(has_metadata_server(&nothing, "Google Compute Engine\n"));
        assert!(!has_metadata_server(&nothing, "ThinkPad\n"));
        assert!(!has_metadata_server(&nothing, ""));
        let environment = Environment::fixed(&[("GCE_METADATA_HOST", "127.0.0.1:1")]);
        assert!(has_metadata_server(&environment, "ThinkPad\n"));
    }
}
