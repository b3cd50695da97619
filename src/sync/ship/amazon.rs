//! Buckets on Amazon S3 or an S3-compatible server.

use std::{fs, path::PathBuf};

use object_store::aws::{AmazonS3, AmazonS3Builder as Builder, AmazonS3ConfigKey as ConfigKey};

use crate::ship::{
    Error,
    credentials::{hardware_value, is_on},
    error_text::error_text,
    remote::{client, retry, variables, without_password},
};
use claude_mem_core::{
    environment::Environment,
    paths::{Paths, expand_tilde},
    settings::{Settings, table},
};

/// Opens a bucket. Sends no request.
pub(super) fn amazon_bucket(
    place: &str,
    paths: &Paths,
    settings: &Settings,
    environment: &Environment,
) -> Result<AmazonS3, Error> {
    let profile = Profile::find(paths, environment);
    let builder = builder(place, &profile, settings, environment);
    let is_let_in = has_credentials(&builder)
        || has_metadata_server(
            &builder,
            environment,
            &hardware_value("sys_vendor"),
            &hardware_value("bios_version"),
        );
    let place = without_password(place);
    let bucket = builder.build().map_err(|error| {
        let (place, why) = (place.clone(), error_text(&error));
        match why.as_str() {
            "Missing AccessKeyId" | "Missing SecretAccessKey" => Error::Credentials {
                place,
                why: "the access key ID and the secret access key must be set together".into(),
            },
            _ => Error::Place { place, why },
        }
    })?;
    match is_let_in {
        true => Ok(bucket),
        false => Err(Error::Credentials { place, why: profile.why_not() }),
    }
}

/// Merges configuration files, environment variables and settings. Later sources win.
fn builder(
    place: &str,
    profile: &Profile,
    settings: &Settings,
    environment: &Environment,
) -> Builder {
    let of_profile = profile.configured.iter().filter_map(|(name, value)| known(name, value));
    let of_variables = variables(environment, &["AWS_"]);
    let of_variables = of_variables.filter_map(|(name, value)| known(&name, &value));
    let of_settings = [
        (ConfigKey::Endpoint, &table::SHIP_ENDPOINT),
        (ConfigKey::Region, &table::SHIP_REGION),
        (ConfigKey::AccessKeyId, &table::SHIP_ACCESS_KEY_ID),
        (ConfigKey::SecretAccessKey, &table::SHIP_SECRET_ACCESS_KEY),
    ];
    let of_settings = of_settings.map(|(key, setting)| (key, settings.get(setting)));
    let of_settings = of_settings.into_iter().filter(|(_, value)| !value.is_empty());
    let configured =
        merge_sources([of_profile.collect(), of_variables.collect(), of_settings.collect()]);
    let builder = Builder::new()
        .with_url(place)
        .with_region("us-east-1")
        .with_client_options(client())
        .with_retry(retry());
    let builder = configured.into_iter().fold(builder, |builder, (key, value)| {
        let value = if key == ConfigKey::MetadataEndpoint {
            value.trim_end_matches('/').into()
        } else {
            value
        };
        builder.with_config(key, value)
    });
    let endpoint = builder.get_config_value(&ConfigKey::S3Endpoint);
    let endpoint = endpoint.or_else(|| builder.get_config_value(&ConfigKey::Endpoint));
    match endpoint {
        Some(endpoint) if endpoint.starts_with("http://") => builder.with_allow_http(true),
        _ => builder,
    }
}

fn known(name: &str, value: &str) -> Option<(ConfigKey, String)> {
    let key = match name {
        // The name that the AWS command line uses.
        "aws_ec2_metadata_service_endpoint" => ConfigKey::MetadataEndpoint,
        _ => name.parse().ok()?,
    };
    let key = if key == ConfigKey::DefaultRegion { ConfigKey::Region } else { key };
    Some((key, value.to_owned()))
}

/// A session token belongs to its key: if a later source replaces the key, the token is dropped.
fn merge_sources(sources: [Vec<(ConfigKey, String)>; 3]) -> Vec<(ConfigKey, String)> {
    let mut all: Vec<(ConfigKey, String)> = Vec::new();
    for source in sources {
        let is_key = |(key, _): &&(ConfigKey, String)| *key == ConfigKey::AccessKeyId;
        let other = source.iter().find(is_key);
        if other.is_some() && all.iter().rfind(is_key) != other {
            all.retain(|(key, _)| *key != ConfigKey::Token);
        }
        all.extend(source);
    }
    all
}

fn has_credentials(builder: &Builder) -> bool {
    let configured = |key: ConfigKey| builder.get_config_value(&key);
    let is_configured = |key: ConfigKey| configured(key).is_some();
    is_configured(ConfigKey::AccessKeyId)
        || is_configured(ConfigKey::SecretAccessKey)
        || is_configured(ConfigKey::WebIdentityTokenFile) && is_configured(ConfigKey::RoleArn)
        || is_configured(ConfigKey::ContainerCredentialsRelativeUri)
        || is_configured(ConfigKey::ContainerCredentialsFullUri)
            && is_configured(ConfigKey::ContainerAuthorizationTokenFile)
        // Public buckets need no credentials.
        || is_on(configured(ConfigKey::SkipSignature).as_deref())
}

/// Whether this machine has an AWS metadata server. Old instance types show it only in the BIOS
/// version.
fn has_metadata_server(
    builder: &Builder,
    environment: &Environment,
    maker: &str,
    version: &str,
) -> bool {
    !is_on(environment.text("AWS_EC2_METADATA_DISABLED").as_deref())
        && (builder.get_config_value(&ConfigKey::MetadataEndpoint).is_some()
            || maker.starts_with("Amazon")
            || version.to_ascii_lowercase().contains("amazon"))
}

/// The active profile in the AWS configuration files.
#[derive(Debug, Default)]
struct Profile {
    name: Option<String>,
    exists: bool,
    configured: Vec<(String, String)>,
}

impl Profile {
    fn find(paths: &Paths, environment: &Environment) -> Self {
        let name = environment.text("AWS_PROFILE");
        let mut found = Self { name, ..Self::default() };
        for (variable, usual) in [
            ("AWS_CONFIG_FILE", "~/.aws/config"),
            ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
        ] {
            let file = environment.get(variable).map_or_else(|| usual.into(), PathBuf::from);
            let file = expand_tilde(&file, paths.home.as_deref());
            found.read(&fs::read_to_string(file).unwrap_or_default());
        }
        found
    }

    fn read(&mut self, text: &str) {
        let wanted = self.name.clone().unwrap_or_else(|| "default".into());
        let mut is_wanted = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                is_wanted = section.trim().trim_start_matches("profile ").trim() == wanted;
                self.exists |= is_wanted;
            } else if let Some((name, value)) = line.split_once('=').filter(|_| is_wanted) {
                let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
                self.configured.extend(Some((name, value)).filter(|(_, value)| !value.is_empty()));
            }
        }
    }

    fn why_not(&self) -> String {
        match &self.name {
            Some(name) if !self.exists => {
                format!("`AWS_PROFILE` is `{name}`, and no file has that profile")
            }
            name if self.exists => {
                let name = name.as_deref().unwrap_or("default");
                format!(
                    "the profile `{name}` has no key; logins, roles and credential processes are \
                     not supported"
                )
            }
            _ => "there are none in settings, environment variables or files".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder_of(variables: &[(&str, &str)], profile: &str) -> Builder {
        let environment = Environment::fixed(variables);
        let home = tempfile::tempdir().unwrap();
        let all = [&[("HOME", home.path().to_str().unwrap())], variables].concat();
        let paths = Paths::find(&Environment::fixed(&all)).unwrap();
        let settings = Settings::load(&paths, &environment);
        let mut found = Profile::default();
        found.read(profile);
        builder("s3://memories", &found, &settings, &environment)
    }

    #[test]
    fn the_metadata_server_is_used_only_on_aws_instances() {
        let asks = |variables: &[(&str, &str)], maker: &str, version: &str| {
            let environment = Environment::fixed(variables);
            has_metadata_server(&builder_of(variables, ""), &environment, maker, version)
        };
        assert!(asks(&[], "Amazon EC2\n", "1.0\n"));
        assert!(asks(&[], "Xen\n", "4.11.amazon\n"));
        assert!(!asks(&[], "LENOVO\n", "N2IET98W\n"));
        assert!(!asks(&[], "", ""));
        assert!(asks(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1/")], "", ""));
        assert!(asks(&[("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")], "", ""));
        assert!(!asks(&[("AWS_EC2_METADATA_DISABLED", "true")], "Amazon EC2\n", ""));
    }

    #[test]
    fn complete_credentials_of_every_kind_are_found_and_incomplete_ones_are_not() {
        let has = |variables: &[(&str, &str)]| has_credentials(&builder_of(variables, ""));
        let (role, token) = (("AWS_ROLE_ARN", "arn"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"));
        let uri = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials");
        let file = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/token");
        assert!(has(&[("AWS_ACCESS_KEY_ID", "id")]));
        assert!(has(&[("CLAUDE_MEM_SHIP_ACCESS_KEY_ID", "id")]));
        assert!(has(&[role, token]) && !has(&[role]) && !has(&[token]));
        assert!(has(&[uri, file]) && !has(&[uri]) && !has(&[file]));
        assert!(has(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials")]));
        assert!(has(&[("AWS_SKIP_SIGNATURE", "true")]) && !has(&[("AWS_SKIP_SIGNATURE", "false")]));
        assert!(!has(&[("AWS_REGION", "eu-central-1")]));
    }

    #[test]
    fn a_session_token_is_used_only_with_its_own_key() {
        let profile = "[default]\naws_access_key_id = of-file\naws_secret_access_key = x\n\
                       aws_session_token = of-file\nregion =\n";
        let configured = |variables: &[(&str, &str)]| {
            let builder = builder_of(variables, profile);
            [ConfigKey::AccessKeyId, ConfigKey::Token, ConfigKey::Region]
                .map(|key| builder.get_config_value(&key).unwrap_or_default())
        };
        assert_eq!(configured(&[]), ["of-file", "of-file", "us-east-1"]);
        assert_eq!(configured(&[("AWS_ACCESS_KEY_ID", "other")]), ["other", "", "us-east-1"]);
        let login = [("AWS_ACCESS_KEY_ID", "other"), ("AWS_SESSION_TOKEN", "of-other")];
        assert_eq!(configured(&login), ["other", "of-other", "us-east-1"]);
        let ours = [&login[..], &[("CLAUDE_MEM_SHIP_ACCESS_KEY_ID", "ours")]].concat();
        assert_eq!(configured(&ours), ["ours", "", "us-east-1"]);
    }
}
