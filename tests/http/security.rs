//! One test for each line of `.github/SECURITY.md` that speaks of requests.

use std::{
    fs,
    io::{BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    thread,
};

use serde_json::json;

use super::{Reply, Site};
use crate::serving::Serving;

/// What is answered without the token. The rest of what is not the API are the viewer's files.
const OPEN: [&str; 5] = ["/health", "/api/health", "/api/readiness", "/api/version", "/open"];

/// Every method and path that there is.
fn routes(site: &Site) -> Vec<(String, String)> {
    let described = site.get("/api/openapi.json");
    let mut routes = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let path = path.replace("{id}", "1").replace("{generation}", "1");
            routes.push((method.to_uppercase(), path));
        }
    }
    assert!(routes.len() > 50, "{routes:?}");
    routes
}

#[test]
fn everything_that_reads_memory_or_writes_needs_the_token() {
    let site = Site::new();
    let authority = site.authority();
    let wrong = format!("Bearer {}", "0".repeat(64));
    let cut = format!("Bearer {}", &site.token()[..63]);
    let key = format!("/api/stats?token={}", site.token());
    for (method, path) in routes(&site) {
        if OPEN.contains(&path.as_str()) {
            continue;
        }
        for shown in
            [&[][..], &[("authorization", wrong.as_str())], &[("authorization", cut.as_str())]]
        {
            let mut headers =
                vec![("host", authority.as_str()), ("content-type", "application/json")];
            headers.extend(shown);
            let reply = site.raw(&method, &path, &headers, "{}");
            assert_eq!(reply.status, 401, "{method} {path} {reply:?}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
    }
    assert_eq!(site.raw("GET", &key, &[("host", &authority)], "").status, 401, "not in a URL");
    let plain = [("host", authority.as_str()), ("x-claude-mem-token", site.token())];
    assert_eq!(site.raw("GET", "/api/stats", &plain, "").status, 200);
}

#[test]
fn without_the_token_nothing_private_is_told() {
    let site = Site::new();
    let authority = site.authority();
    let said = |path: &str| site.raw("GET", path, &[("host", &authority)], "");
    let health = said("/health");
    assert_eq!(health.status, 200);
    let mut names: Vec<_> = health.json().as_object().unwrap().keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["status", "timestamp", "version"]);
    for path in ["/health", "/api/version", "/api/readiness", "/api/openapi.json", "/"] {
        let body = said(path).body;
        assert!(!body.contains(&*site.sandbox.home().to_string_lossy()), "{path}");
        assert!(!body.contains(site.token()), "{path}");
    }
    assert_eq!(site.get("/health")["data_dir"], site.sandbox.data().to_str().unwrap());
    let mode = fs::metadata(site.sandbox.data().join("worker.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_name_that_others_can_make_point_here_is_refused() {
    let site = Site::new();
    let bearer = format!("Bearer {}", site.token());
    let asked = |hosts: &[&str]| {
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(hosts.iter().map(|host| ("host", *host)));
        site.raw("GET", "/api/stats", &headers, "").status
    };
    let (port, other) = (site.port(), "10.0.0.7");
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        assert_eq!(asked(&[&format!("{host}:{port}")]), 200, "{host}");
    }
    for host in
        ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", other, "x@localhost"]
    {
        let status = asked(&[&format!("{host}:{port}")]);
        assert!(matches!(status, 400 | 403), "{host}: {status}");
    }
    assert_eq!(asked(&[]), 400);
    assert_eq!(asked(&["localhost", "localhost"]), 400);
}

#[test]
fn pages_of_others_are_refused_even_with_the_token() {
    let site = Site::new();
    let (authority, bearer) = (site.authority(), format!("Bearer {}", site.token()));
    let asked = |method: &str, header: (&str, &str)| {
        let headers = [("host", authority.as_str()), ("authorization", bearer.as_str()), header];
        site.raw(method, "/api/processing", &headers, "").status
    };
    let (own, elsewhere) = (format!("http://{authority}"), format!("http://127.0.0.1:{}", 1));
    for method in ["GET", "POST"] {
        assert_eq!(asked(method, ("origin", &own)), 200);
        let foreign = ["https://evil.example", "null", "http://localhost", &elsewhere, "file://"];
        for origin in foreign {
            assert_eq!(asked(method, ("origin", origin)), 403, "{origin}");
        }
        for told in ["cross-site", "same-site"] {
            assert_eq!(asked(method, ("sec-fetch-site", told)), 403, "{told}");
        }
        for told in ["same-origin", "none"] {
            assert_eq!(asked(method, ("sec-fetch-site", told)), 200, "{told}");
        }
    }
}

#[test]
fn no_other_page_may_read_an_answer_and_every_answer_is_sealed() {
    let site = Site::new();
    let authority = site.authority();
    let bearer = format!("Bearer {}", site.token());
    let known = [("host", authority.as_str()), ("authorization", bearer.as_str())];
    let mut replies = vec![
        site.raw("GET", "/api/stats", &[("host", "evil.example")], ""),
        site.raw("GET", "/api/stats", &[("host", &authority)], ""),
        site.raw("GET", "/nowhere", &known, ""),
        site.raw("PUT", "/api/stats", &known, ""),
        site.raw("POST", "/api/memory/save", &known, "{"),
        site.raw("OPTIONS", "/api/stats", &known, ""),
        site.raw("GET", "/", &known, ""),
    ];
    for (method, path) in routes(&site) {
        if method == "GET" && path != "/stream" {
            replies.push(site.raw("GET", &path, &known, ""));
        }
    }
    for reply in &replies {
        let has =
            |name: &str, part: &str| reply.header(name).is_some_and(|value| value.contains(part));
        assert!(has("content-security-policy", "default-src 'none'"), "{reply:?}");
        assert!(!has("content-security-policy", "unsafe"), "{reply:?}");
        assert!(has("x-content-type-options", "nosniff") && has("referrer-policy", "no-referrer"));
        assert!(has("cross-origin-resource-policy", "same-origin"), "{reply:?}");
        assert!(!reply.headers.iter().any(|(name, _)| name.starts_with("access-control")));
    }
    assert_eq!(replies[5].status, 405, "nobody is invited to ask whether it may");
}

#[test]
fn a_body_is_bounded_in_size() {
    let site = Site::new();
    let (authority, bearer) = (site.authority(), format!("Bearer {}", site.token()));
    let json = ("content-type", "application/json");
    let known = [("host", authority.as_str()), ("authorization", bearer.as_str()), json];
    let text = "x".repeat(9 << 20);
    let reply = site.raw("POST", "/api/memory/save", &known, &text);
    assert_eq!((reply.status, &reply.json()["error"]), (413, &json!("TooLarge")));
    // The same in pieces, without saying how long it will be.
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
fn whoever_dribbles_is_not_waited_for_and_keeps_nobody_out() {
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
                    // The head of a request that does not end is not worth an answer.
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
fn no_path_from_a_request_opens_a_file() {
    let site = Site::new();
    site.sandbox.write("repo/.git/config", "[remote \"origin\"]\nurl = https://git.example/seen\n");
    site.sandbox.write("repo/.git/HEAD", "ref: refs/heads/main\n");
    site.sandbox.write("repo/.git/objects/x", "");
    let transcript = site.sandbox.write(
        "repo/transcript.jsonl",
        r#"{"type":"assistant","message":{"role":"assistant","content":"SEEN"}}"#,
    );
    let cwd = site.sandbox.home().join("repo");
    let used = json!({"contentSessionId": "s", "cwd": cwd, "tool_name": "Bash", "tool_input": {}});
    site.post("/api/sessions/observations", &used);
    let stopped = json!({"contentSessionId": "s", "cwd": cwd, "transcript_path": transcript});
    site.post("/api/sessions/summarize", &stopped);
    let events = site.sandbox.events();
    assert_eq!(events[0]["project_key"], cwd.to_str().unwrap(), "the repository was not looked at");
    assert!(!format!("{events:?}").contains("SEEN"));
    for path in
        ["/assets/..%2f..%2f..%2fetc%2fpasswd", "/assets/../../etc/passwd", "/%2e%2e/etc/passwd"]
    {
        assert_eq!(site.ask("GET", path, None).status, 404, "{path}");
    }
    let prompt = json!({"dry_run": true, "prompt": "/etc/passwd"});
    assert_eq!(site.ask("POST", "/api/replays", Some(&prompt)).status, 400);
    let project = format!("/api/context/inject?project={}", cwd.display());
    assert!(!site.ask("GET", &project, None).body.contains("seen"));
    let path = json!({"CLAUDE_CODE_PATH": "/tmp/x"});
    assert_eq!(site.ask("POST", "/api/settings", Some(&path)).status, 403, "nor is one run");
}

#[test]
fn others_reach_it_only_if_that_is_wanted_twice_and_then_with_the_token() {
    let site = Site::with(&[("CLAUDE_MEM_WORKER_HOST", "0.0.0.0")]);
    assert_eq!(site.serving.presence["host"], "127.0.0.1");
    drop(site);
    let remote = [("CLAUDE_MEM_WORKER_HOST", "0.0.0.0"), ("CLAUDE_MEM_WORKER_REMOTE", "true")];
    let site = Site::with(&remote);
    assert_eq!(site.serving.presence["host"], "0.0.0.0");
    let host = [("host", "10.0.0.7:37777")];
    assert_eq!(site.raw("GET", "/health", &host, "").status, 200);
    assert_eq!(site.raw("GET", "/api/stats", &host, "").status, 401);
    assert_eq!(site.raw("GET", "/health", &[("host", "evil.example")], "").status, 403);
}

#[test]
fn no_page_changes_whom_the_worker_listens_to() {
    let site = Site::new();
    let listed = site.get("/api/settings");
    for (name, value) in
        [("CLAUDE_MEM_WORKER_HOST", "0.0.0.0"), ("CLAUDE_MEM_WORKER_REMOTE", "true")]
    {
        // Not with others either, nor by going back to what is the default.
        for wish in [
            json!({name: value}),
            json!({name: value, "CLAUDE_MEM_MODEL": "m"}),
            json!({name: null}),
        ] {
            let reply = site.ask("POST", "/api/settings", Some(&wish));
            assert_eq!(reply.status, 403, "{wish}");
            let remedy = reply.json()["remedy"].as_str().unwrap().to_owned();
            assert!(remedy.contains(&format!("claude-mem settings set {name}")), "{remedy}");
        }
        let settings = listed["settings"].as_array().unwrap();
        let shown = settings.iter().find(|setting| setting["name"] == name).unwrap();
        assert_eq!(shown["is_read_only"], true, "the page says so beforehand");
    }
    assert_eq!(site.get("/api/settings"), listed, "nothing was changed");
    assert!(!site.sandbox.data().join("settings.json").exists());
    // Whoever wants it says so in a terminal, and says it twice.
    let set = |name: &str, value: &str| site.sandbox.run(&["settings", "set", name, value]).ok();
    set("CLAUDE_MEM_WORKER_HOST", "0.0.0.0");
    let host = |serving: &Serving| serving.presence["host"].clone();
    let Site { sandbox, serving } = &site;
    let pid = serving.presence["pid"].clone();
    sandbox.run(&["worker", "stop"]).ok();
    let second = Serving::start(sandbox, &[]);
    assert_ne!(second.presence["pid"], pid);
    assert_eq!(host(&second), "127.0.0.1");
    second.kill();
    set("CLAUDE_MEM_WORKER_REMOTE", "true");
    assert_eq!(host(&Serving::start(sandbox, &[])), "0.0.0.0");
}

#[test]
fn a_link_lets_one_browser_in_once_and_the_token_stays_out_of_it() {
    let site = Site::new();
    let authority = site.authority();
    let link = site.ask("POST", "/api/viewer/link", None).ok();
    let path = link["url"].as_str().unwrap().strip_prefix(&format!("http://{authority}")).unwrap();
    let opened = site.raw("GET", path, &[("host", &authority)], "");
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
    let cookie = opened.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(site.token()));
    assert_eq!(site.raw("GET", path, &[("host", &authority)], "").status, 403, "only once");
    let cookie = format!("theme=dark; {}", cookie.split(';').next().unwrap());
    let page = [("host", authority.as_str()), ("cookie", cookie.as_str())];
    assert_eq!(site.raw("GET", "/api/stats", &page, "").status, 200);
    assert_eq!(
        site.raw("POST", "/api/processing", &page, "").status,
        401,
        "no page says it sent it"
    );
    let origin = format!("http://{authority}");
    let page = [page[0], page[1], ("origin", origin.as_str())];
    assert_eq!(site.raw("POST", "/api/processing", &page, "").status, 200);
    let key = path.rsplit('=').next().unwrap();
    let secret = cookie.rsplit('=').next().unwrap();
    for secret in [site.token(), key, secret] {
        let found = files_with(&site.sandbox.data(), secret);
        let expected: &[&str] = if secret == site.token() { &["worker.json"] } else { &[] };
        assert_eq!(found, expected, "diagnostics and all else are free of it");
    }
}

#[test]
fn what_is_private_or_secret_is_not_stored_whoever_tells_it() {
    let site = Site::new();
    let key = format!("sk-ant-api03-{}", "aB3xZ9".repeat(12));
    let used = json!({"contentSessionId": "s", "tool_name": "Bash", "cwd": "/work/shop",
        "tool_input": {"command": "echo <private>hush-hush</private>"}, "tool_response": key});
    site.post("/api/sessions/observations", &used);
    let save = json!({"text": format!("the key is {key}"), "project": "shop"});
    assert_eq!(site.post("/api/memory/save", &save)["is_redacted"], true);
    for secret in ["hush-hush", &key[..40]] {
        assert_eq!(files_with(&site.sandbox.data(), secret), [""; 0]);
    }
}

#[test]
fn keys_are_masked_and_wrong_settings_change_nothing() {
    let site = Site::new();
    let set = json!({"CLAUDE_MEM_OPENAI_API_KEY": "sk-0123456789abcdef0123456789",
        "CLAUDE_MEM_MODEL": "some-model"});
    assert_eq!(site.post("/api/settings", &set)["success"], true);
    let shown = site.ask("GET", "/api/settings", None).body;
    assert!(shown.contains("…6789") && !shown.contains("0123456789abcdef"), "{shown}");
    let before = site.sandbox.read(".claude-mem/settings.json");
    let wrong = json!({"CLAUDE_MEM_MODEL": "other", "CLAUDE_MEM_SYNC": "sometimes"});
    let reply = site.ask("POST", "/api/settings", Some(&wrong));
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("CLAUDE_MEM_SYNC"), "{reply:?}");
    assert_eq!(site.sandbox.read(".claude-mem/settings.json"), before, "all of them, or none");
}

/// The names of files below `dir` that hold this text.
fn files_with(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = fs::read(&path)
            && String::from_utf8_lossy(&bytes).contains(text)
        {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}
