//! Limits for strangers and slow clients: one test for each limit in `.github/SECURITY.md`.

use std::{
    io::{BufReader, Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use serde_json::json;

use super::{Reply, Site};
use crate::serving::until;

/// The maximum size of a body.
const BODY_BYTES_MAX: usize = 8 << 20;
/// The maximum number of connections.
const CONNECTIONS_MAX: usize = 128;

#[test]
fn a_body_is_bounded_in_size() {
    let site = Site::new();
    let (authority, bearer) = (site.authority(), format!("Bearer {}", site.token()));
    let json = ("content-type", "application/json");
    let known = [("host", authority.as_str()), ("authorization", bearer.as_str()), json];
    let text = "x".repeat(9 << 20);
    let reply = site.raw("POST", "/api/memory/save", &known, &text);
    assert_eq!((reply.status, &reply.json()["error"]), (413, &json!("TooLarge")));
    // The same in chunks, without a content length.
    let mut stream = site.connect();
    write!(
        stream,
        "POST /api/memory/save HTTP/1.1\r\nhost: {authority}\r\nauthorization: {bearer}\r\n"
    )
    .unwrap();
    write!(stream, "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    let piece = "x".repeat(1 << 20);
    for _ in 0..9 {
        if write!(stream, "{:x}\r\n{piece}\r\n", piece.len()).is_err() {
            break;
        }
    }
    assert_eq!(Reply::read(&mut BufReader::new(stream)).status, 413);
}

#[test]
fn slow_clients_time_out_and_block_no_others() {
    let site = Site::new();
    let (authority, bearer) = (site.authority(), format!("Bearer {}", site.token()));
    let mut slow: Vec<_> = (0..40).map(|_| site.connect()).collect();
    for (number, stream) in slow.iter_mut().enumerate() {
        write!(stream, "POST /api/memory/save HTTP/1.1\r\nhost: {authority}\r\n").unwrap();
        if number % 2 == 0 {
            write!(stream, "authorization: {bearer}\r\ncontent-length: 2000000\r\n\r\n{{").unwrap();
        }
    }
    site.get("/api/stats");
    let statuses: Vec<u16> = thread::scope(|scope| {
        let reading: Vec<_> = slow
            .into_iter()
            .map(|stream| {
                scope.spawn(move || {
                    let mut text = String::new();
                    // An endless request head gets no response.
                    let _ = BufReader::new(stream).read_to_string(&mut text);
                    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
                })
            })
            .collect();
        reading.into_iter().map(|reading| reading.join().unwrap()).collect()
    });
    for (number, status) in statuses.into_iter().enumerate() {
        assert!(
            if number % 2 == 0 { status == 408 } else { matches!(status, 0 | 408) },
            "{status}"
        );
    }
}

#[test]
fn a_body_of_eight_megabytes_is_accepted_and_one_byte_more_is_rejected() {
    let site = Site::new();
    let body = |length: usize| {
        let empty = json!({"contentSessionId": "s", "cwd": "/work/shop", "tool_name": "Bash",
            "tool_input": {"command": "cat"}, "tool_response": ""});
        let filling = "word ".repeat(length / 5 + 1);
        let length = length - empty.to_string().len();
        let mut full = empty;
        full["tool_response"] = json!(filling[..length]);
        full
    };
    for length in [2_200_000, 5 << 20, BODY_BYTES_MAX] {
        let body = body(length);
        assert_eq!(body.to_string().len(), length);
        let reply = site.ask("POST", "/api/sessions/observations", Some(&body));
        assert_eq!(reply.status, 200, "{length} bytes: {reply:?}");
    }
    let reply = site.ask("POST", "/api/sessions/observations", Some(&body(BODY_BYTES_MAX + 1)));
    assert_eq!((reply.status, &reply.json()["error"]), (413, &json!("TooLarge")));
}

#[test]
fn a_head_of_more_than_32_kilobytes_is_refused() {
    let site = Site::new();
    let authority = site.authority();
    // Everything but the filler, as `raw` sends it.
    let rest = format!(
        "GET /api/version HTTP/1.1\r\nconnection: close\r\nhost: {authority}\r\nx-filling: \r\n\r\n"
    );
    let asked = |length: usize| {
        let filling = "x".repeat(length - rest.len());
        let headers = [("host", authority.as_str()), ("x-filling", filling.as_str())];
        site.raw("GET", "/api/version", &headers, "").status
    };
    assert_eq!(asked(32 << 10), 200);
    assert_eq!(asked((32 << 10) + 1), 431);
    assert_eq!(asked(40 << 10), 431);
}

#[test]
fn no_body_is_read_before_the_token_is_seen() {
    let site = Site::new();
    let authority = site.authority();
    // Enough requests to reserve all memory for bodies; none of them sends its body.
    let mut held: Vec<_> = (0..40).map(|_| site.connect()).collect();
    for stream in &mut held {
        let length = BODY_BYTES_MAX;
        write!(stream, "POST /api/memory/save HTTP/1.1\r\nhost: {authority}\r\n").unwrap();
        write!(stream, "content-type: application/json\r\ncontent-length: {length}\r\n\r\n")
            .unwrap();
    }
    for stream in held {
        assert_eq!(Reply::read(&mut BufReader::new(stream)).status, 401, "at once, unread");
    }
    let save = json!({"text": "written meanwhile", "project": "shop"});
    assert!(site.post("/api/memory/save", &save)["id"].is_string());
}

/// Sends large requests repeatedly, and never reads a response.
fn ask_and_never_read(site: &Site) -> TcpStream {
    let mut stream = site.connect();
    let request = format!("GET /api/openapi.json HTTP/1.1\r\nhost: {}\r\n\r\n", site.authority());
    // Writing blocks when the worker stops reading, because its responses are not read.
    stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    for _ in 0..400 {
        if stream.write_all(request.as_bytes()).is_err() {
            break;
        }
    }
    stream
}

#[test]
fn connections_that_do_not_read_block_no_others() {
    let site = Site::new();
    let mut stuck: Vec<_> = (0..CONNECTIONS_MAX).map(|_| ask_and_never_read(&site)).collect();
    for _ in 0..3 {
        site.get("/api/stats");
        stuck.push(ask_and_never_read(&site));
    }
    // Many idle connections do not block it either, however often they reconnect.
    let _silent: Vec<_> = (0..3 * CONNECTIONS_MAX).map(|_| site.connect()).collect();
    site.get("/api/stats");
    // The oldest connection was closed.
    let mut oldest = stuck.swap_remove(0);
    oldest.set_read_timeout(None).unwrap();
    let mut rest = Vec::new();
    let _ = oldest.read_to_end(&mut rest);
}

#[test]
fn a_connection_with_the_token_is_not_closed_for_strangers() {
    let site = Site::new();
    let (authority, token) = (site.authority(), site.token());
    let mut own = BufReader::new(site.connect());
    let mut ask = move || {
        write!(own.get_mut(), "GET /api/version HTTP/1.1\r\nhost: {authority}\r\n").unwrap();
        write!(own.get_mut(), "authorization: Bearer {token}\r\n\r\n").unwrap();
        Reply::next(&mut own).map(|reply| reply.status)
    };
    assert_eq!(ask(), Some(200));
    let strangers: Vec<_> = (0..2 * CONNECTIONS_MAX).map(|_| site.connect()).collect();
    site.get("/api/stats");
    assert_eq!(ask(), Some(200));
    drop(strangers);
}

#[test]
#[cfg(target_os = "linux")]
fn health_recovers_as_soon_as_there_are_descriptors_again() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

    let site = Site::new();
    let mut stream = BufReader::new(site.connect());
    let mut health = || {
        let (host, token) = (site.authority(), site.token());
        let head = format!("host: {host}\r\nauthorization: Bearer {token}");
        write!(stream.get_mut(), "GET /health HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
        Reply::read(&mut stream).json()["problems"].as_array().unwrap().len()
    };
    assert_eq!(health(), 0);
    let pid = Pid::from_child(&site.serving.child);
    let limit = |current| {
        let limit = Rlimit { current, ..getrlimit(Resource::Nofile) };
        prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    };
    limit(Some(3));
    site.sandbox.run(&["remember", "the walrus is in the cellar"]).ok();
    // Neither the request nor the main loop can read the log.
    until(|| health() == 2);
    limit(getrlimit(Resource::Nofile).current);
    assert_eq!(health(), 0);
}
