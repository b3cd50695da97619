//! `claude-mem verify`.

use std::fs;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    for number in 1..=3 {
        let prompt = json!({"session_id": "s", "hook_event_name": "UserPromptSubmit",
            "cwd": sandbox.home(), "prompt": format!("prompt number {number}")});
        sandbox.hook("new", prompt.to_string());
    }
    sandbox
}

fn verify(sandbox: &Sandbox, code: i32) -> Value {
    let run = sandbox.run(&["verify", "--json"]);
    assert_eq!(run.code, code, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn an_intact_log_and_a_missing_log_have_no_damage() {
    let sandbox = Sandbox::new();
    assert_eq!(verify(&sandbox, 0)["records"], 0);
    let sandbox = recorded();
    let report = verify(&sandbox, 0);
    assert_eq!((&report["records"], &report["is_damaged"]), (&json!(3), &json!(false)));
    let output = sandbox.run(&["verify"]).ok();
    assert!(output.starts_with("3 events in 1 segment,"), "{output}");
}

#[test]
fn damage_is_reported_to_the_byte_and_quarantined() {
    let sandbox = recorded();
    let event = sandbox.events().swap_remove(1);
    let mut segments =
        fs::read_dir(sandbox.data().join("log")).unwrap().map(|file| file.unwrap().path());
    let needle = b"prompt number 2";
    let at = |bytes: &[u8]| bytes.windows(needle.len()).position(|window| window == needle);
    let segment =
        segments.find(|path| path.is_file() && at(&fs::read(path).unwrap()).is_some()).unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let place = at(&bytes).unwrap();
    bytes[place] ^= 1;
    fs::write(&segment, &bytes).unwrap();

    let report = verify(&sandbox, 1);
    assert_eq!((&report["records"], &report["is_damaged"]), (&json!(2), &json!(true)));
    let damage = &report["damage"][0];
    assert_eq!((&damage["id"], &damage["kind"]), (&event["id"], &json!("PromptSubmitted")));
    let (offset, len) = (damage["offset"].as_u64().unwrap(), damage["bytes"].as_u64().unwrap());
    assert!((offset..offset + len).contains(&(place as u64)), "{damage}");
    let aside = fs::read(damage["set_aside"].as_str().unwrap()).unwrap();
    assert_eq!(aside, bytes[offset as usize..(offset + len) as usize]);
    assert_eq!(fs::read(&segment).unwrap(), bytes, "it is not changed where it is");
    let error = sandbox.run(&["verify"]).fails(1);
    assert!(error.contains("the log is damaged in 1 place\n"), "{error}");
}

#[test]
fn a_damaged_database_is_reported_and_can_be_rebuilt() {
    let sandbox = recorded();
    sandbox.run(&["distill"]);
    let path = sandbox.data().join("memory.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xAB);
    fs::write(&path, bytes).unwrap();
    for companion in ["memory.db-wal", "memory.db-shm"] {
        let _ = fs::remove_file(sandbox.data().join(companion));
    }
    let error = sandbox.run(&["verify"]).fails(1);
    assert!(error.contains("claude-mem replay`"), "{error}");
    sandbox.run(&["replay", "--offline"]).ok();
    assert_eq!(verify(&sandbox, 0)["memory"], json!([]));
}
