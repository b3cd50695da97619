//! The event stream: new events, and those missed since the last connection.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

use super::{Reply, Site};
use crate::{
    sandbox::Sandbox,
    serving::{Serving, until},
};

/// A client of the stream.
struct Listener {
    lines: BufReader<TcpStream>,
    /// The last event id.
    last: Option<String>,
}

impl Listener {
    fn open(site: &Site, last: Option<&str>) -> Self {
        let mut stream = site.connect();
        let (authority, token) = (site.authority(), site.token());
        write!(
            stream,
            "GET /stream HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {token}\r\n"
        )
        .unwrap();
        if let Some(last) = last {
            write!(stream, "last-event-id: {last}\r\n").unwrap();
        }
        write!(stream, "\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let head = Reply::read(&mut lines);
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        Self { lines, last: None }
    }

    /// The next event.
    fn next(&mut self) -> Value {
        let (mut data, mut id) = (None, None);
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(text).unwrap());
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.trim().to_owned());
            } else if line.trim().is_empty()
                && let Some(data) = data.take()
            {
                self.last = id.or(self.last.take());
                return data;
            }
        }
    }

    /// The next event of this type; others before it are skipped.
    fn wait_for(&mut self, type_: &str) -> Value {
        loop {
            let event = self.next();
            if event["type"] == type_ {
                return event;
            }
        }
    }
}

#[test]
fn changes_are_streamed_as_they_happen() {
    let site = Site::new();
    let mut listener = Listener::open(&site, None);
    assert_eq!(listener.next()["type"], "connected");
    assert_eq!(listener.next()["projects"], json!([]));
    assert_eq!(listener.next()["queueDepth"], 0);
    site.remember_turn("s1", "fix the cart", "cart.rs");
    assert_eq!(listener.wait_for("session_started")["session"]["content_session_id"], "s1");
    assert_eq!(listener.wait_for("new_prompt")["prompt"]["prompt_text"], "fix the cart");
    assert_eq!(listener.wait_for("observation_queued")["tool"], "Edit");
    let observation = listener.wait_for("new_observation")["observation"].clone();
    assert_eq!(observation, site.get("/api/observation/1"));
    assert_eq!(listener.wait_for("new_summary")["summary"]["request"], "Fix the cart");
    site.post("/api/sessions/complete", &json!({"contentSessionId": "s1"}));
    assert_eq!(listener.wait_for("session_completed")["session"]["status"], "completed");
    let forgot = site.ask("DELETE", "/api/observation/1", None).ok();
    assert_eq!(listener.wait_for("forgotten")["forgetting"], forgot["forgetting"]);
    site.ask("POST", "/api/replays", Some(&json!({"fresh": true})));
    while listener.wait_for("replay_progress")["replay"]["state"] != "finished" {}
}

#[test]
fn a_disconnected_client_gets_what_it_missed_even_from_the_next_worker() {
    let mut site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let mut listener = Listener::open(&site, None);
    listener.wait_for("initial_load");
    let last = listener.last.clone().unwrap();
    drop(listener);
    site.serving.child.kill().unwrap();
    site.serving.child.wait().unwrap();
    let payload = json!({"session_id": "s2", "cwd": "/work/shop", "prompt": "meanwhile"});
    site.sandbox.hook("new", payload.to_string());
    site.serving = Serving::start(&site.sandbox, &[]);
    let mut listener = Listener::open(&site, Some(&last));
    assert_eq!(listener.wait_for("new_prompt")["prompt"]["prompt_text"], "meanwhile");
    let newer = listener.last.clone().unwrap();
    assert_ne!(newer, last);
    // No event is sent twice to a client that received it.
    let mut listener = Listener::open(&site, Some(&newer));
    site.remember_turn("s2", "and now", "x.rs");
    assert_eq!(listener.wait_for("new_prompt")["prompt"]["prompt_text"], "and now");
}

#[test]
fn events_of_other_machines_are_streamed_when_pulled() {
    let (site, other) = (Site::new(), Sandbox::new());
    let place = other.home().join("remote").display().to_string();
    let say = |text: &str| {
        let payload = json!({"session_id": "elsewhere", "cwd": "/work/shop", "prompt": text});
        other.hook("new", payload.to_string());
        other.run(&["ship", "--to", &place]).ok();
        site.sandbox.run(&["pull", "--from", &place]).ok();
    };
    let mut listener = Listener::open(&site, None);
    listener.wait_for("initial_load");
    say("first");
    assert_eq!(listener.wait_for("new_prompt")["prompt"]["prompt_text"], "first");
    let last = listener.last.clone().unwrap();
    drop(listener);
    // Meanwhile, events are recorded on both machines.
    say("second");
    let here = json!({"session_id": "s1", "cwd": "/work/shop", "prompt": "here"});
    site.sandbox.hook("new", here.to_string());
    until(|| site.get("/api/prompts")["items"].as_array().unwrap().len() == 3);
    let mut listener = Listener::open(&site, Some(&last));
    let mut next = || listener.wait_for("new_prompt")["prompt"]["prompt_text"].clone();
    assert_eq!((next(), next()), (json!("here"), json!("second")));
    assert_eq!(site.ask("GET", "/stream?lastEventId=7,x", None).status, 400);
}

#[test]
fn the_number_of_listeners_is_limited_and_a_closed_one_frees_its_place() {
    let site = Site::new();
    let mut listeners: Vec<Listener> = (0..16).map(|_| Listener::open(&site, None)).collect();
    assert_eq!(site.ask("GET", "/stream", None).status, 429);
    assert_eq!(site.get("/api/stats")["worker"]["sseClients"], 16);
    listeners.pop();
    // A closed connection is noticed at the next event.
    until(|| {
        site.post(
            "/api/sessions/init",
            &json!({"contentSessionId": "s", "project": "shop", "prompt": "x"}),
        );
        site.get("/api/stats")["worker"]["sseClients"] == 15
    });
    Listener::open(&site, None);
}
