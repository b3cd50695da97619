//! Concurrent HTTP clients: each acknowledged event is appended exactly once.

use std::{
    collections::HashSet,
    fs,
    io::{BufReader, Write},
    net::TcpStream,
    thread,
};

use serde_json::json;

use super::{Reply, Site};
use crate::serving::until;

/// Number of concurrent clients.
const CLIENTS: usize = 8;

/// A connection for consecutive requests.
struct Program<'a> {
    site: &'a Site,
    number: usize,
    answers: BufReader<TcpStream>,
}

impl<'a> Program<'a> {
    fn new(site: &'a Site, number: usize) -> Self {
        Self { site, number, answers: BufReader::new(site.connect()) }
    }

    /// Sends an observation of 4 KB.
    fn send(&mut self, id: &str) -> std::io::Result<()> {
        let body = json!({"contentSessionId": format!("s{}", self.number), "tool_name": "Bash",
            "tool_use_id": id, "tool_input": {"command": "ls"}, "tool_response": "x".repeat(4096)})
        .to_string();
        let (authority, token) = (self.site.authority(), self.site.token());
        let request = format!(
            "POST /api/sessions/observations HTTP/1.1\r\nhost: {authority}\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.answers.get_mut().write_all(request.as_bytes())
    }

    /// Waits for the next response, which must be a success. Returns whether there was one.
    fn is_acknowledged(&mut self) -> bool {
        let Some(reply) = Reply::next(&mut self.answers) else { return false };
        assert_eq!((reply.status, reply.json()), (200, json!({"status": "queued"})), "{reply:?}");
        true
    }

    /// Sends this many events in a row, until the connection is closed. Returns the acknowledged
    /// ones.
    fn send_all(mut self, count: usize) -> Vec<String> {
        let program = self.number;
        let ids = (0..count).map(|number| format!("t{program}-{number}"));
        ids.take_while(|id| self.send(id).is_ok() && self.is_acknowledged()).collect()
    }
}

/// Sends from all clients at the same time, calls `meanwhile`, and returns all acknowledged events.
fn send_from_all(site: &Site, count: usize, meanwhile: impl FnOnce()) -> Vec<String> {
    thread::scope(|scope| {
        let programs: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(move || Program::new(site, number).send_all(count)))
            .collect();
        meanwhile();
        programs.into_iter().flat_map(|program| program.join().unwrap()).collect()
    })
}

/// The tool uses in the log, each only once.
fn recorded(site: &Site) -> HashSet<String> {
    let events = site.sandbox.events();
    let ids: Vec<_> =
        events.iter().filter_map(|event| event["event"]["tool_use_id"].as_str()).collect();
    let once: HashSet<String> = ids.iter().copied().map(str::to_owned).collect();
    assert_eq!(ids.len(), once.len(), "each is appended once");
    once
}

#[test]
fn a_thousand_posts_of_eight_programs_are_appended_once_each() {
    let site = Site::new();
    let acknowledged = send_from_all(&site, 125, || ());
    assert_eq!(acknowledged.len(), 1000, "none is refused");
    assert_eq!(recorded(&site), acknowledged.into_iter().collect());
}

#[test]
fn every_post_that_was_acknowledged_is_in_the_log_of_a_worker_that_was_killed() {
    let site = Site::new();
    let active = site.sandbox.data().join("log/active.log");
    let pid = site.serving.presence["pid"].as_u64().unwrap().to_string();
    let acknowledged = send_from_all(&site, 10_000, || {
        until(|| fs::metadata(&active).is_ok_and(|log| log.len() > 1 << 20));
        let kill = std::process::Command::new("kill").args(["-KILL", &pid]).status();
        assert!(kill.unwrap().success());
    });
    let recorded = recorded(&site);
    let count = acknowledged.len();
    assert!(count > 100 && count < CLIENTS * 10_000, "it was killed in the middle: {count}");
    let missing: Vec<_> = acknowledged.iter().filter(|id| !recorded.contains(*id)).collect();
    assert!(missing.is_empty(), "{} of {count} are missing: {missing:?}", missing.len());
    // Unacknowledged events may be in the log, too, at most one per client.
    assert!(recorded.len() <= count + CLIENTS, "{} of {count}", recorded.len());
}

#[test]
fn requests_sent_before_the_first_answer_are_answered_in_order() {
    let site = Site::new();
    let mut program = Program::new(&site, 0);
    let ids: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    for id in &ids {
        program.send(id).unwrap();
    }
    assert!(ids.iter().all(|_| program.is_acknowledged()));
    let events = site.sandbox.events();
    let found: Vec<_> =
        events.iter().filter_map(|event| event["event"]["tool_use_id"].as_str()).collect();
    assert_eq!(found, ids);
}
