//! A bucket of Google's: who we are to it is said in more ways than one.

use std::path::{Path, PathBuf};

use object_store::gcp::{
    GoogleCloudStorage, GoogleCloudStorageBuilder as Builder, GoogleConfigKey as ConfigKey,
};

use crate::ship::{
    Error,
    credentials::{is_on, of_maker},
    error_text::first_line,
    object_store_text::HTTP_CLIENT,
    remote::{client, retry, variables, without_password},
};
use claude_mem_core::{
    environment::Environment,
    paths::{Paths, expand_tilde},
    settings::{Settings, table},
};

/// Where `gcloud auth application-default login` puts what it was given.
const OF_GCLOUD: &str = "gcloud/application_default_credentials.json";
/// Who says of himself that he runs on a machine of Google's, which has credentials to give.
const OF_MACHINE: [&str; 3] = ["GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"];

/// Opens the bucket of a place. Asks nothing of it yet.
pub(super) fn bucket(
    place: &str,
    paths: &Paths,
    settings: &Settings,
    environment: &Environment,
) -> Result<GoogleCloudStorage, Error> {
    // As Google's own programs ask before they look for its credentials.
    let maker = of_maker("product_name");
    let place = &without_password(place);
    check_name(place)?;
    let builder = builder(place, paths, settings, environment);
    if !has_credentials(&builder) && !is_at_google(environment, &maker) {
        let why = "neither a variable nor a file has credentials".into();
        return Err(Error::Credentials { place: place.clone(), why });
    }
    let file = [ConfigKey::ServiceAccount, ConfigKey::ApplicationCredentials];
    let file = file.iter().find_map(|key| builder.get_config_value(key)).unwrap_or_default();
    builder.build().map_err(|error| {
        let (place, why) = (place.clone(), first_line(&error));
        // Certificates of those to be asked, say, which have nothing to do with who we are.
        if why.contains(HTTP_CLIENT) {
            return Error::Place { place, why };
        }
        let why = if why.contains(&file) { why } else { format!("{file}: {why}") };
        Error::Credentials { place, why }
    })
}

/// What the usual variables, our setting and the usual file say, of which the setting wins and the file loses.
fn builder(place: &str, paths: &Paths, settings: &Settings, environment: &Environment) -> Builder {
    let home = paths.home.as_deref();
    let expanded = |path: &Path| expand_tilde(path, home).to_string_lossy().into_owned();
    // Whoever wants HTTP says so where he says where to ask; otherwise it is Google, by HTTPS.
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
    match of_gcloud(paths, environment).filter(|path| path.exists()) {
        Some(path) if !has_credentials(&builder) => {
            builder.with_application_credentials(path.to_string_lossy())
        }
        _ => builder,
    }
}

fn of_gcloud(paths: &Paths, environment: &Environment) -> Option<PathBuf> {
    let configuration = match cfg!(windows) {
        true => PathBuf::from(environment.get("APPDATA")?),
        false => paths.home.as_ref()?.join(".config"),
    };
    Some(configuration.join(OF_GCLOUD))
}

fn has_credentials(builder: &Builder) -> bool {
    let is_said = |key: ConfigKey| builder.get_config_value(&key).is_some();
    is_said(ConfigKey::ServiceAccount)
        || is_said(ConfigKey::ServiceAccountKey)
        || is_said(ConfigKey::ApplicationCredentials)
        || is_said(ConfigKey::BearerToken)
        // Nobody needs any for a bucket that is open to all.
        || is_on(builder.get_config_value(&ConfigKey::SkipSignature).as_deref())
}

/// Elsewhere nobody answers, and that takes long to be sure of.
fn is_at_google(environment: &Environment, maker: &str) -> bool {
    maker.starts_with("Google") || OF_MACHINE.iter().any(|name| environment.get(name).is_some())
}

fn check_name(place: &str) -> Result<(), Error> {
    let name = place.trim_start_matches("gs://").split('/').next().unwrap_or_default();
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_right = name.starts_with(is_letter)
        && name.chars().all(|letter| is_letter(letter) || "-_.".contains(letter));
    if is_right {
        return Ok(());
    }
    let why = "the name of a bucket is made of lower-case letters, digits, `-`, `_` and `.`";
    Err(Error::Place { place: place.into(), why: why.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_machine_of_googles_is_asked_for_credentials() {
        let nothing = Environment::fixed(&[]);
        assert!(is_at_google(&nothing, "Google Compute Engine\n"));
        assert!(!is_at_google(&nothing, "ThinkPad\n"));
        assert!(!is_at_google(&nothing, ""));
        let said = Environment::fixed(&[("GCE_METADATA_HOST", "127.0.0.1:1")]);
        assert!(is_at_google(&said, "ThinkPad\n"));
    }
}
