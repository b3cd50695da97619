//! Containers on Azure Blob Storage.

use object_store::azure::{
    AzureConfigKey as ConfigKey, MicrosoftAzure, MicrosoftAzureBuilder as Builder,
};

use crate::ship::{
    Error,
    credentials::{hardware_value, is_on},
    error_text::{NO_ACCOUNT, error_text},
    remote::{client, retry, variables, without_password},
};
use claude_mem_core::environment::Environment;

/// The chassis asset tag of every Azure virtual machine.
const AZURE_CHASSIS_TAG: &str = "7783-7084-3265-9085-8269-3286-77";
/// Variable names of Azure tools that `object_store` does not know.
const VARIABLE_ALIASES: [(&str, ConfigKey); 3] = [
    ("AZURE_STORAGE_ACCOUNT", ConfigKey::AccountName),
    ("AZURE_STORAGE_KEY", ConfigKey::AccessKey),
    ("IDENTITY_ENDPOINT", ConfigKey::MsiEndpoint),
];

/// Opens a container. Sends no request.
pub(super) fn azure_container(
    place: &str,
    environment: &Environment,
) -> Result<MicrosoftAzure, Error> {
    let builder = builder(place, environment);
    let is_let_in = has_credentials(&builder)
        || has_metadata_server(&builder, &hardware_value("chassis_asset_tag"));
    let shown = without_password(place);
    let missing = |why: &str| Error::Credentials { place: shown.clone(), why: why.into() };
    let container = builder.build().map_err(|error| match error_text(&error) {
        why if why.starts_with(NO_ACCOUNT) => missing("the storage account is not set"),
        why if ["Access Key", "SAS", "redential"].iter().any(|part| why.contains(part)) => {
            missing(&why)
        }
        why => Error::Place { place: shown.clone(), why },
    })?;
    match is_let_in {
        true => Ok(container),
        false => Err(missing("no environment variable has a key, token or login")),
    }
}

fn builder(place: &str, environment: &Environment) -> Builder {
    let mut builder =
        Builder::new().with_url(place).with_client_options(client()).with_retry(retry());
    for (name, key) in VARIABLE_ALIASES {
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
    let configured = |key: ConfigKey| builder.get_config_value(&key);
    let is_configured = |key: ConfigKey| configured(key).is_some();
    let is_on = |key: ConfigKey| is_on(configured(key).as_deref());
    is_configured(ConfigKey::AccessKey)
        || is_configured(ConfigKey::SasKey)
        || is_configured(ConfigKey::Token)
        || is_configured(ConfigKey::ClientId)
            && is_configured(ConfigKey::AuthorityId)
            && (is_configured(ConfigKey::ClientSecret) || is_configured(ConfigKey::FederatedTokenFile))
        || is_configured(ConfigKey::FabricTokenServiceUrl) && is_configured(ConfigKey::FabricSessionToken)
        || is_on(ConfigKey::UseAzureCli)
        || is_on(ConfigKey::UseEmulator)
        // Public containers need no credentials.
        || is_on(ConfigKey::SkipSignature)
}

/// Whether there is an Azure metadata server: on an Azure virtual machine, or if one is configured.
fn has_metadata_server(builder: &Builder, case: &str) -> bool {
    let configured = |key: ConfigKey| builder.get_config_value(&key);
    case.trim() == AZURE_CHASSIS_TAG
        || configured(ConfigKey::MsiEndpoint).is_some()
        || configured(ConfigKey::CredentialType).is_some_and(|kind| kind != "auto")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_server_is_used_only_on_azure_machines() {
        let asks = |variables: &[(&str, &str)], case: &str| {
            has_metadata_server(&builder("az://memory", &Environment::fixed(variables)), case)
        };
        assert!(asks(&[], "7783-7084-3265-9085-8269-3286-77\n"));
        assert!(!asks(&[], "No Asset Tag\n") && !asks(&[], ""));
        assert!(asks(&[("IDENTITY_ENDPOINT", "http://127.0.0.1:1")], ""));
        assert!(asks(&[("AZURE_CREDENTIAL_TYPE", "managed_identity")], ""));
        assert!(!asks(&[("AZURE_CREDENTIAL_TYPE", "auto")], ""));
    }

    #[test]
    fn complete_credentials_of_every_kind_are_found_and_incomplete_ones_are_not() {
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
