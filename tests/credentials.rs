//! Credentials for buckets on AWS and containers on Azure, and the errors if they are missing.

use std::{collections::BTreeMap, fs};

use claude_mem_tools::{
    bucket::{Bucket, Faults},
    s3::S3Server,
};
use serde_json::json;

use crate::{sandbox::Sandbox, ship::work};

const ROLES: &str = "latest/meta-data/iam/security-credentials/";

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    work(&sandbox, "first", 1);
    sandbox
}

/// A value of the DMI table.
fn dmi_value(name: &str) -> String {
    fs::read_to_string(format!("/sys/class/dmi/id/{name}")).unwrap_or_default()
}

fn fails(sandbox: &Sandbox, place: &str, variables: &[(&str, &str)], expected: &[&str]) {
    let error = sandbox.run_with(&["ship", "--to", place], variables, "").fails(1);
    let start = format!("no usable credentials for {place}: ");
    for expected in expected.iter().chain(&[start.as_str(), "note: ", "hint: "]) {
        assert!(error.contains(expected), "{expected} in {error}");
    }
}

#[test]
fn missing_aws_credentials_are_reported_without_a_request() {
    let sandbox = recorded();
    // As the HTTP proxy, it receives every plain HTTP request.
    let anybody = Bucket::start().unwrap();
    let proxy = anybody.endpoint();
    let proxy = ("HTTP_PROXY", proxy.as_str());
    let disabled = ("AWS_EC2_METADATA_DISABLED", "true");
    // An AWS instance would use its metadata server.
    let is_amazons = dmi_value("sys_vendor").starts_with("Amazon")
        || dmi_value("bios_version").to_ascii_lowercase().contains("amazon");
    let here = if is_amazons { vec![proxy, disabled] } else { vec![proxy] };
    let place = "s3://memories/of/ada";
    let fails = |more: &[(&str, &str)], expected: &str| {
        let variables = [&here, more].concat();
        let remedies = ["AWS_ACCESS_KEY_ID", "SHIP_SECRET_ACCESS_KEY", "aws configure"];
        fails(&sandbox, place, &variables, &[&[expected], &remedies[..]].concat());
    };
    fails(&[], "there are none in settings, environment variables or files");
    fails(&[("AWS_REGION", "eu-central-1")], "there are none in settings");
    let metadata = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254/");
    fails(&[metadata, disabled], "there are none in settings");
    fails(&[("AWS_SKIP_SIGNATURE", "false")], "there are none in settings");
    fails(&[("AWS_PROFILE", "work")], "`AWS_PROFILE` is `work`, and no file has that profile");
    fails(&[("AWS_ACCESS_KEY_ID", "ada")], "must be set together");
    sandbox.write(".aws/config", "[default]\nsso_session = us\n[profile work]\nrole_arn = arn\n");
    fails(&[], "the profile `default` has no key");
    fails(&[("AWS_PROFILE", "work")], "the profile `work` has no key");
    assert_eq!(anybody.requests(), 0);
    // A configured metadata server is used; this one has no role.
    let error = sandbox.run_with(&["ship", "--to", place], &[proxy, metadata], "").fails(1);
    assert!(error.contains(&format!("no usable credentials for {place}: ")), "{error}");
    assert!(error.contains("404") && error.contains("AWS_ACCESS_KEY_ID"), "{error}");
    assert_ne!(anybody.requests(), 0);
    // A temporary failure of the metadata server is reported as such.
    anybody.inject(Faults { status: Some(503), ..Faults::default() });
    let error = sandbox.run_with(&["ship", "--to", place], &[proxy, metadata], "").fails(1);
    assert!(error.contains("cannot be reached: fetching credentials failed: "), "{error}");
    assert!(error.contains("try again"), "{error}");
}

#[test]
fn aws_credentials_come_from_files_variables_settings_or_the_metadata_server() {
    let server = S3Server::start().unwrap_or_else(|error| panic!("{error}"));
    let of_server: BTreeMap<String, String> = server.variables().into_iter().collect();
    let variable = |name: &str| of_server[&format!("CLAUDE_MEM_SHIP_{name}")].as_str();
    let (id, secret) = (variable("ACCESS_KEY_ID"), variable("SECRET_ACCESS_KEY"));
    let (endpoint, region) = (variable("ENDPOINT"), variable("REGION"));
    let place = server.place("of/ada");
    let sandbox = recorded();
    let ship = |more: &[(&str, &str)]| {
        let variables = [&[("AWS_ENDPOINT_URL", endpoint)], more].concat();
        sandbox.run_with(&["ship", "--to", &place], &variables, "")
    };
    let here = ("AWS_REGION", region);
    ship(&[here, ("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", secret)]).ok();
    let keys = format!("aws_access_key_id = {id}\naws_secret_access_key={secret}\n");
    let wrong = keys.replace(secret, "wrong");
    // A metadata server, played by a bucket: it returns its objects.
    let machine = Bucket::start().unwrap();
    let role = json!({"AccessKeyId": id, "SecretAccessKey": secret, "Token": "of-ada",
        "Expiration": "2999-01-01T00:00:00Z"});
    machine.set(BTreeMap::from([
        (ROLES.into(), b"ada".to_vec()),
        (format!("{ROLES}ada"), role.to_string().into_bytes()),
    ]));
    ship(&[here, ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &machine.endpoint())]).ok();
    assert_ne!(machine.requests(), 0);
    machine.inject(Faults::default());
    // Files, with the region next to the keys or in another file.
    sandbox.write(".aws/credentials", &format!("[default]\n{keys}[work]\n{wrong}"));
    sandbox.write(".aws/config", &format!("[default]\nregion = {region}\n"));
    ship(&[]).ok();
    let error = ship(&[here, ("AWS_PROFILE", "work")]).fails(1);
    assert!(error.contains("denied access") && error.contains("~/.aws"), "{error}");
    sandbox.write("elsewhere", &format!("[work]\n{keys}region = {region}\n"));
    let elsewhere = ("AWS_SHARED_CREDENTIALS_FILE", "~/elsewhere");
    ship(&[("AWS_PROFILE", "work"), elsewhere]).ok();
    // The settings of claude-mem take precedence, and a session token from elsewhere is not mixed
    // with them.
    let theirs = [("AWS_ACCESS_KEY_ID", "theirs"), ("AWS_SECRET_ACCESS_KEY", "theirs")];
    let theirs = [theirs[0], theirs[1], ("AWS_SESSION_TOKEN", "theirs")];
    let ours =
        [("CLAUDE_MEM_SHIP_ACCESS_KEY_ID", id), ("CLAUDE_MEM_SHIP_SECRET_ACCESS_KEY", secret)];
    ship(&[&theirs[..], &ours].concat()).ok();
    assert_eq!(machine.requests(), 0);
    // A public bucket receives no credentials.
    let open = Bucket::start().unwrap();
    let all = [("AWS_ENDPOINT_URL", open.endpoint()), ("AWS_SKIP_SIGNATURE", "true".into())];
    let all = all.each_ref().map(|(name, value)| (*name, value.as_str()));
    recorded().run_with(&["ship", "--to", "s3://memories"], &all, "").ok();
    assert_ne!(open.names(), Vec::<String>::new());
}

#[test]
fn missing_azure_credentials_are_reported_without_a_request() {
    let sandbox = recorded();
    let anybody = Bucket::start().unwrap();
    let address = anybody.endpoint();
    let proxy = ("HTTP_PROXY", address.as_str());
    let place = "az://memory/of/ada";
    let fails = |more: &[(&str, &str)], expected: &str| {
        let variables = [&[proxy], more].concat();
        let remedies = ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_SAS_TOKEN", "az login"];
        fails(&sandbox, place, &variables, &[&[expected], &remedies[..]].concat());
    };
    let account = ("AZURE_STORAGE_ACCOUNT_NAME", "ada");
    fails(&[], "the storage account is not set");
    fails(&[("AZURE_STORAGE_ACCOUNT_KEY", "AAAA")], "the storage account is not set");
    fails(&[account, ("AZURE_STORAGE_ACCOUNT_KEY", "?")], "Invalid Access Key");
    fails(&[account, ("AZURE_STORAGE_SAS_TOKEN", "nonsense")], "SAS");
    fails(&[account, ("AZURE_CREDENTIAL_TYPE", "client_secret")], "client_secret");
    fails(&[account, ("AZURE_USE_AZURE_CLI", "true")], "get-access-token");
    // An Azure machine uses its metadata server.
    let is_azures = dmi_value("chassis_asset_tag").trim() == "7783-7084-3265-9085-8269-3286-77";
    let why = if is_azures { "404" } else { "no environment variable has a key, token or login" };
    fails(&[account], why);
    fails(&[("AZURE_STORAGE_ACCOUNT", "ada")], why);
    fails(&[account, ("AZURE_CLIENT_ID", "us"), ("AZURE_TENANT_ID", "ours")], why);
    assert_eq!(anybody.requests(), if is_azures { 3 } else { 0 });
    // A configured endpoint is asked for a token; this one has none.
    let asked = anybody.requests();
    fails(&[account, ("AZURE_CREDENTIAL_TYPE", "managed_identity")], "404");
    fails(&[account, ("IDENTITY_ENDPOINT", &format!("{address}/msi/token"))], "404");
    assert_eq!(anybody.requests(), asked + 2);
}
