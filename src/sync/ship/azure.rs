//! A container of Azure's.

use object_store::azure::{
    AzureConfigKey as ConfigKey, MicrosoftAzure, MicrosoftAzureBuilder as Builder,
};

use crate::ship::{
    Error,
    credentials::{is_on, of_maker},
    error_text::first_line,
    object_store_text::NO_ACCOUNT,
    remote::{client, retry, variables, without_password},
};
use claude_mem_core::environment::Environment;

/// What every virtual machine of Azure's has for the number of its case, and none that runs elsewhere.
const CASE: &str = "7783-7084-3265-9085-8269-3286-77";
/// How variables are called by Azure's own programs and services that our client does not know by that name.
const OTHER_NAMES: [(&str, ConfigKey); 3] = [
    ("AZURE_STORAGE_ACCOUNT", ConfigKey::AccountName),
    ("AZURE_STORAGE_KEY", ConfigKey::AccessKey),
    ("IDENTITY_ENDPOINT", ConfigKey::MsiEndpoint),
];

/// Opens the container of a place. Asks nothing of it yet.
pub(super) fn container(place: &str, environment: &Environment) -> Result<MicrosoftAzure, Error> {
    let builder = builder(place, environment);
    let is_let_in =
        has_credentials(&builder) || has_metadata(&builder, &of_maker("chassis_asset_tag"));
    let shown = without_password(place);
    let missing = |why: &str| Error::Credentials { place: shown.clone(), why: why.into() };
    let container = builder.build().map_err(|error| match first_line(&error) {
        why if why.starts_with(NO_ACCOUNT) => {
            missing("nothing says which account the container is of")
        }
        why if ["Access Key", "SAS", "redential"].iter().any(|part| why.contains(part)) => {
            missing(&why)
        }
        why => Error::Place { place: shown.clone(), why },
    })?;
    match is_let_in {
        true => Ok(container),
        false => Err(missing("no variable has a key, a token or a login")),
    }
}

/// What the usual variables say.
fn builder(place: &str, environment: &Environment) -> Builder {
    let mut builder =
        Builder::new().with_url(place).with_client_options(client()).with_retry(retry());
    for (name, key) in OTHER_NAMES {
        if let Some(value) = environment.text(name) {
            builder = builder.with_config(key, value);
        }
    }
    variables(environment, &["AZURE_"]).fold(builder, |builder, (name, value)| match name.parse() {
        Ok(key) => builder.with_config(key, value),
        Err(_) => builder,
    })
}

fn has_credentials(builder: &Builder) -> bool {
    let said = |key: ConfigKey| builder.get_config_value(&key);
    let is_said = |key: ConfigKey| said(key).is_some();
    let is_on = |key: ConfigKey| is_on(said(key).as_deref());
    is_said(ConfigKey::AccessKey)
        || is_said(ConfigKey::SasKey)
        || is_said(ConfigKey::Token)
        || is_said(ConfigKey::ClientId)
            && is_said(ConfigKey::AuthorityId)
            && (is_said(ConfigKey::ClientSecret) || is_said(ConfigKey::FederatedTokenFile))
        || is_said(ConfigKey::FabricTokenServiceUrl) && is_said(ConfigKey::FabricSessionToken)
        || is_on(ConfigKey::UseAzureCli)
        || is_on(ConfigKey::UseEmulator)
        // Nobody needs any for a container that is open to all.
        || is_on(ConfigKey::SkipSignature)
}

/// Whether this is a machine of Azure's, or somebody says that there is who can be asked.
fn has_metadata(builder: &Builder, case: &str) -> bool {
    let said = |key: ConfigKey| builder.get_config_value(&key);
    case.trim() == CASE
        || said(ConfigKey::MsiEndpoint).is_some()
        || said(ConfigKey::CredentialType).is_some_and(|kind| kind != "auto")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_machine_of_azures_is_asked_for_credentials() {
        let asks = |variables: &[(&str, &str)], case: &str| {
            has_metadata(&builder("az://memory", &Environment::fixed(variables)), case)
        };
        assert!(asks(&[], "7783-7084-3265-9085-8269-3286-77\n"));
        assert!(!asks(&[], "No Asset Tag\n") && !asks(&[], ""));
        assert!(asks(&[("IDENTITY_ENDPOINT", "http://127.0.0.1:1")], ""));
        assert!(asks(&[("AZURE_CREDENTIAL_TYPE", "managed_identity")], ""));
        assert!(!asks(&[("AZURE_CREDENTIAL_TYPE", "auto")], ""));
    }

    #[test]
    fn every_way_to_be_let_in_counts_and_half_of_one_does_not() {
        let has = |variables: &[(&str, &str)]| {
            has_credentials(&builder("az://memory", &Environment::fixed(variables)))
        };
        let (client, tenant) = (("AZURE_CLIENT_ID", "us"), ("AZURE_TENANT_ID", "ours"));
        assert!(
            has(&[("AZURE_STORAGE_ACCOUNT_KEY", "key")]) && has(&[("AZURE_STORAGE_KEY", "key")])
        );
        assert!(has(&[("AZURE_STORAGE_SAS_TOKEN", "sv=1")]));
        assert!(has(&[client, tenant, ("AZURE_CLIENT_SECRET", "secret")]));
        assert!(has(&[client, tenant, ("AZURE_FEDERATED_TOKEN_FILE", "/token")]));
        assert!(!has(&[client, tenant]) && !has(&[("AZURE_STORAGE_ACCOUNT", "ada")]));
        assert!(
            has(&[("AZURE_USE_AZURE_CLI", "true")]) && !has(&[("AZURE_USE_AZURE_CLI", "false")])
        );
        assert!(has(&[("AZURE_SKIP_SIGNATURE", "true")]) && !has(&[]));
    }
}
