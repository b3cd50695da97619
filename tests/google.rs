//! Shipping to Google Cloud Storage, with every kind of credentials.

use std::{collections::BTreeMap, slice};

use claude_mem_tools::bucket::{Bucket, Faults};
use serde_json::{Value, json};

use crate::{
    model::dump,
    sandbox::{Run, Sandbox},
    ship::{EXTRACT, remembered, work},
};

fn run(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, String)]) -> Run {
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    sandbox.run_with(arguments, &variables, "")
}

#[test]
fn a_log_is_shipped_to_google_cloud_storage() {
    let bucket = Bucket::start_google().unwrap();
    let mut variables = bucket.variables();
    variables.push(("CLAUDE_MEM_SHIP_TO", bucket.place("of/ada")));
    // Without compression, a text can be searched for in the objects.
    variables.push(("CLAUDE_MEM_SHIP_COMPRESS", "false".into()));
    let sandbox = remembered();
    let at_desk = |arguments: &[&str]| run(&sandbox, arguments, &variables).ok();
    at_desk(&["ship"]);
    work(&sandbox, "second", 2);
    sandbox.run_with(&["distill"], &EXTRACT, "").ok();
    at_desk(&["ship"]);
    let again: Value = serde_json::from_str(&at_desk(&["ship", "--json"])).unwrap();
    assert_eq!((&again["objects"], &again["put_bytes"]), (&json!(0), &json!(0)));
    // Forgotten events are deleted there, too.
    let objects_with_the_turn = || -> Vec<String> {
        let has_the_turn = |object: &[u8]| object.windows(6).any(|bytes| bytes == b"turn 3");
        let objects = bucket.objects().into_iter();
        objects.filter(|(_, object)| has_the_turn(object)).map(|(name, _)| name).collect()
    };
    assert_ne!(objects_with_the_turn(), Vec::<String>::new());
    at_desk(&["forget", "--session", "first", "--now", "--yes"]);
    let output: Value = serde_json::from_str(&at_desk(&["ship", "--json"])).unwrap();
    assert!(output["deleted"].as_u64() > Some(0), "{output}");
    assert_eq!(objects_with_the_turn(), Vec::<String>::new());
    at_desk(&["verify", "--remote"]);
    let machine = Sandbox::new();
    run(&machine, &["restore"], &variables).ok();
    assert_eq!(dump(&machine.data()), dump(&sandbox.data()));
    let events = machine.events();
    assert!(events.iter().any(|event| event.to_string().contains("turn 2")));
    assert!(!events.iter().any(|event| event.to_string().contains("turn 3")));
    // Another machine has its own log there, and pulls ours.
    let other = Sandbox::new();
    work(&other, "other", 1);
    run(&other, &["ship"], &variables).ok();
    let search = || run(&other, &["search", "a.rs", "--all-projects", "--json"], &variables).stdout;
    assert!(!search().contains("second"), "{}", search());
    run(&other, &["pull", "--trust"], &variables).ok();
    assert!(search().contains("second"), "{}", search());
}

#[test]
fn google_credentials_come_from_variables_settings_files_or_the_metadata_server() {
    let bucket = Bucket::start_google().unwrap();
    let sandbox = Sandbox::new();
    work(&sandbox, "first", 1);
    let account = bucket.account().unwrap().to_string();
    let place = bucket.place("of/ada");
    let base = ("GOOGLE_BASE_URL", bucket.endpoint());
    let missing = ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json".to_owned());
    sandbox.write("account.json", &account);
    let ship = |more: &[(&'static str, String)]| {
        bucket.set(BTreeMap::new());
        let variables = [slice::from_ref(&base), more].concat();
        run(&sandbox, &["ship", "--to", &place], &variables).ok();
        assert_ne!(bucket.names(), Vec::<String>::new(), "{more:?}");
    };
    ship(&[("GOOGLE_APPLICATION_CREDENTIALS", "~/account.json".into())]);
    ship(&[("GOOGLE_SERVICE_ACCOUNT", "~/account.json".into())]);
    ship(&[("GOOGLE_SERVICE_ACCOUNT_KEY", account.clone())]);
    ship(&[("CLAUDE_MEM_SHIP_GOOGLE_CREDENTIALS", "~/account.json".into()), missing]);
    // A token of the metadata server, used for later requests.
    ship(&[("GCE_METADATA_HOST", host(&bucket))]);
    let gcloud = ".config/gcloud/application_default_credentials.json";
    sandbox.write(gcloud, &account);
    ship(&[]);
    // The file configures an emulator without authentication.
    bucket.inject(Faults { is_open: true, ..Faults::default() });
    let mut open = json!({"gcs_base_url": bucket.endpoint(), "disable_oauth": true});
    for key in ["client_email", "private_key", "private_key_id"] {
        open[key] = "".into();
    }
    sandbox.write("open.json", &open.to_string());
    ship(&[("GOOGLE_SERVICE_ACCOUNT", "~/open.json".into()), ("GOOGLE_BASE_URL", String::new())]);
}

#[test]
fn rejected_google_credentials_are_reported_with_a_remedy() {
    let bucket = Bucket::start_google().unwrap();
    let (ours, others) = (bucket.variables(), Bucket::start_google().unwrap().variables());
    let sandbox = Sandbox::new();
    work(&sandbox, "first", 1);
    let fails = |place: &str, variables: &[(&'static str, String)], expected: &[&str]| {
        let error = run(&sandbox, &["ship", "--to", place], variables).fails(1);
        for expected in expected.iter().chain(&["note: ", "hint: "]) {
            assert!(error.contains(expected), "{expected} in {error}");
        }
    };
    let place = bucket.place("of/ada");
    let remedy = "GOOGLE_APPLICATION_CREDENTIALS";
    // On a Google machine the bucket rejects this later.
    fails(&place, &[ours[0].clone()], &[remedy]);
    let missing = [ours[0].clone(), (remedy, "/nowhere.json".into())];
    fails(
        &place,
        &missing,
        &["no usable credentials for gs://memories", "/nowhere.json", "No such file"],
    );
    let unreadable = [ours[0].clone(), (remedy, "/dev/null".into())];
    fails(
        &place,
        &unreadable,
        &["no usable credentials for gs://memories", "/dev/null: Unable to decode", remedy],
    );
    // An account of the same name, with another key.
    let wrong = [ours[0].clone(), others[1].clone()];
    fails(&place, &wrong, &["denied access", "401", "Authentication required.", remedy]);
    fails("gs://others/x", &ours, &["denied access", "403", "AccessDenied", "ada@", remedy]);
    fails("gs://elsewhere/x", &ours, &["the bucket in gs://elsewhere", "create the bucket"]);
    // Errors other than missing credentials do not mention them.
    let empty = |name| (name, "/dev/null".to_owned());
    let untrusting = [&ours[..], &[empty("SSL_CERT_FILE"), empty("SSL_CERT_DIR")]].concat();
    let error = run(&sandbox, &["ship", "--to", &place], &untrusting).fails(2);
    assert!(error.contains("certificates") && !error.contains(remedy), "{error}");
    // A metadata server without an account.
    let without = Bucket::start().unwrap();
    let host = host(&without);
    let machine = [("GCE_METADATA_HOST", host.clone()), ("GCE_METADATA_IP", host), ours[0].clone()];
    fails(&place, &machine, &["no usable credentials for gs://memories", "404", remedy]);
    assert_eq!((without.requests(), bucket.names()), (2, Vec::new()));
}

fn host(bucket: &Bucket) -> String {
    bucket.endpoint().replace("http://", "")
}
