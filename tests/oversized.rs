//! Responses and imports that are far too large: each costs one failed request or one refused
//! event, and nothing else.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::{
    model::{Session, provider_at, run},
    sandbox::{Sandbox, binary},
    serving::{Serving, until},
};

/// A model whose every response is valid, this many megabytes long, and compressed to a few
/// kilobytes.
struct HugeResponses {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl HugeResponses {
    fn start(megabytes: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (counted, body) = (Arc::clone(&requests), packed(megabytes));
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                // The client closes the connection at its limit.
                let _ = answer(stream.unwrap(), &body);
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// A response in the format of OpenAI. Parts that were compressed separately decompress to their
/// concatenation.
fn packed(megabytes: usize) -> Vec<u8> {
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let text = r#"{"model":"m","choices":[{"message":{"content":"<observation><title>"#;
    let end = r#""},"finish_reason":"stop"}],"usage":{}}"#;
    let middle = gzip(&vec![b'x'; 1 << 20]).repeat(megabytes);
    [gzip(text.as_bytes()), middle, gzip(end.as_bytes())].concat()
}

fn answer(stream: TcpStream, body: &[u8]) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}

/// The recorded failures.
fn failures(sandbox: &Sandbox) -> Vec<Value> {
    let events = sandbox.events().into_iter();
    events
        .filter(|event| event["kind"] == "AgentFailed")
        .map(|event| event["event"].clone())
        .collect()
}

#[test]
fn a_response_that_unpacks_to_hundreds_of_megabytes_is_a_failed_request_in_bounded_memory() {
    for megabytes in [20, 400] {
        let (sandbox, bomb) = (Sandbox::new(), HugeResponses::start(megabytes));
        Session::worked(&sandbox, "a", 1);
        let variables = provider_at("openai", bomb.url.clone());
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -v 524288; exec \"$0\" project"]).arg(binary());
        command.env_clear().env("HOME", sandbox.home()).envs(variables.clone());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("1 request failed repeatedly"), "{megabytes}: {error}");
        assert_eq!(bomb.requests(), 3, "it is asked three times, and then parked");
        for failed in failures(&sandbox) {
            assert_eq!(failed["class"], "Unreadable", "{failed}");
            let message = failed["message"].as_str().unwrap();
            assert!(message.ends_with("sent a response of more than 2 MB"), "{message}");
            assert!(failed["tokens_in"].as_u64() > Some(0), "it was paid for: {failed}");
        }
        run(&sandbox, &["distill"], &variables).ok();
        assert_eq!(bomb.requests(), 3, "it is not asked again");
    }
}

#[test]
fn the_worker_survives_such_a_response_and_parks_the_question() {
    let (sandbox, bomb) = (Sandbox::new(), HugeResponses::start(20));
    Session::worked(&sandbox, "a", 1);
    let variables = provider_at("openai", bomb.url.clone());
    let variables: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let mut serving = Serving::start(&sandbox, &variables);
    until(|| {
        assert!(serving.child.try_wait().unwrap().is_none(), "the worker ended");
        let printed = sandbox.run(&["worker", "status", "--json"]).ok();
        let printed: Value = serde_json::from_str(&printed).unwrap();
        printed["parked"] == 4 && printed["status"] == "ok"
    });
    serving.kill();
    let again = Serving::start(&sandbox, &variables);
    until(|| sandbox.run(&["worker", "status"]).code == 0);
    drop(again);
    assert_eq!(bomb.requests(), 3, "the next worker does not pay again");
}

#[test]
fn a_client_that_prints_without_end_is_a_failed_request() {
    let huge = r#"{"type":"assistant","session_id":"s","message":{"id":"m","model":"m","content":[{"type":"text","text":""#;
    for flood in [
        format!("printf '%s' '{huge}'; head -c 20000000 /dev/zero | tr '\\0' x; echo '\"}}]}}}}'"),
        format!("while printf '%s%s\\n' '{huge}' '{}\"}}]}}}}'; do :; done", "x".repeat(9000)),
    ] {
        let sandbox = Sandbox::new();
        Session::worked(&sandbox, "a", 1);
        let script =
            format!("#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 2.1.0; exit; }}\n{flood}\n");
        let client = sandbox.write("bin/claude", &script);
        fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
        let client = client.to_str().unwrap();
        let variables = [("CLAUDE_MEM_PROVIDER", "claude"), ("CLAUDE_CODE_PATH", client)];
        let printed = sandbox.run_with(&["distill"], &variables, "");
        assert_eq!(printed.code, 1, "{printed:?}");
        let failures = failures(&sandbox);
        assert_eq!(failures.len(), 3, "{failures:?}");
        for failed in failures {
            assert_eq!(failed["class"], "Unreadable", "{failed}");
        }
    }
}

#[test]
fn an_event_that_no_record_can_hold_is_refused_and_counted_and_all_others_are_imported() {
    let (from, to) = (Sandbox::new(), Sandbox::new());
    Session::worked(&from, "a", 1);
    let all = from.home().join("all.jsonl");
    from.run(&["export", "-o", all.to_str().unwrap()]).ok();
    let exported = fs::read_to_string(&all).unwrap();
    let lines: Vec<&str> = exported.lines().collect();
    let is_tool = |line: &&&str| line.contains("\"kind\":\"ToolUsed\"");
    let mut huge: Value = serde_json::from_str(lines.iter().find(is_tool).unwrap()).unwrap();
    huge["id"] = json!("0197c1aa-0000-7000-8000-000000000001");
    huge["event"]["output"] = json!("x".repeat(17 << 20));
    let (before, after) = lines.split_at(lines.len() / 2);
    let text = [before.join("\n"), huge.to_string(), after.join("\n")].join("\n");
    let file = to.write("huge.jsonl", &text);
    let printed = to.run(&["import", file.to_str().unwrap(), "--json"]);
    assert_eq!(printed.code, 1, "{printed:?}");
    assert!(printed.stderr.contains("000000000001 is larger than 16 MB"), "{}", printed.stderr);
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    let refused = "events larger than a record can be (16 MB)";
    assert_eq!(printed["refused"][refused], 1, "{printed}");
    let ids = |sandbox: &Sandbox| -> Vec<Value> {
        sandbox.events().iter().map(|event| event["id"].clone()).collect()
    };
    assert_eq!(ids(&to), ids(&from));
}
