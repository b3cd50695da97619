//! Authentication: one test for each line of `.github/SECURITY.md` about requests. Limits are in
//! `limits.rs`.

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use serde_json::json;

use super::Site;
use crate::{
    folders::files_with,
    serving::{Serving, until},
};

/// Routes that need no token. Other paths outside the API are files of the viewer.
const OPEN: [&str; 5] =
    ["/health", "/api/health", "/api/readiness", "/api/version", "/api/viewer/session"];

/// Routes that the description leaves out.
const NUMBERED: [(&str, &str); 3] =
    [("POST", "/sessions/1/init"), ("GET", "/sessions/1/status"), ("DELETE", "/sessions/1")];

/// Every method and path.
fn routes(site: &Site) -> Vec<(String, String)> {
    let described = site.get("/api/openapi.json");
    let mut routes: Vec<_> =
        NUMBERED.iter().map(|(method, path)| ((*method).into(), (*path).into())).collect();
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
fn without_the_token_nothing_private_is_served() {
    let site = Site::new();
    let authority = site.authority();
    let get = |path: &str| site.raw("GET", path, &[("host", &authority)], "");
    let health = get("/health");
    assert_eq!(health.status, 200);
    let mut names: Vec<_> = health.json().as_object().unwrap().keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["status", "timestamp", "version"]);
    for path in ["/health", "/api/version", "/api/readiness", "/api/openapi.json", "/"] {
        let body = get(path).body;
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
        for site_header in ["cross-site", "same-site"] {
            assert_eq!(asked(method, ("sec-fetch-site", site_header)), 403, "{site_header}");
        }
        for site_header in ["same-origin", "none"] {
            assert_eq!(asked(method, ("sec-fetch-site", site_header)), 200, "{site_header}");
        }
    }
}

#[test]
fn no_other_origin_may_read_a_response_and_every_response_has_security_headers() {
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
    assert_eq!(replies[5].status, 405, "preflight requests are rejected");
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
    let refused = site.raw("GET", "/api/stats", &host, "");
    assert_eq!(refused.status, 401);
    let remedy = refused.json()["remedy"].to_string();
    assert!(remedy.contains("Authorization: Bearer") && remedy.contains("docs/api.md"), "{remedy}");
    assert_eq!(site.raw("GET", "/health", &[("host", "evil.example")], "").status, 403);
}

#[test]
fn the_listen_address_cannot_be_changed_over_http() {
    let site = Site::new();
    let listed = site.get("/api/settings");
    for (name, value) in
        [("CLAUDE_MEM_WORKER_HOST", "0.0.0.0"), ("CLAUDE_MEM_WORKER_REMOTE", "true")]
    {
        // Also refused with other settings, and when resetting to the default.
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
        assert_eq!(shown["is_read_only"], true, "the page shows it as read-only");
    }
    assert_eq!(site.get("/api/settings"), listed, "nothing was changed");
    assert!(!site.sandbox.data().join("settings.json").exists());
    // It can be changed on the command line, and needs two settings.
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
fn a_link_gives_one_browser_a_key_and_neither_is_the_token() {
    let site = Site::new();
    let authority = site.authority();
    let made = site.ask("POST", "/api/viewer/link", None).ok();
    let link = made["url"].as_str().unwrap().strip_prefix(&format!("http://{authority}/open#"));
    let link = link.unwrap();
    // A link preview that opens the page learns and changes nothing.
    for method in ["HEAD", "GET"] {
        let (mut stream, mut page) = (site.connect(), String::new());
        write!(stream, "{method} /open HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n")
            .unwrap();
        stream.read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200 ") && !page.contains("set-cookie"), "{page}");
    }
    let redeem = |host: &str, link: &str| {
        let headers = [("host", host), ("x-claude-mem-link", link)];
        site.raw("POST", "/api/viewer/session", &headers, "")
    };
    assert_eq!(redeem(&authority.replace("127.0.0.1", "localhost"), link).status, 403);
    assert_eq!(redeem(&authority, &link[1..]).status, 403);
    let opened = redeem(&authority, link);
    assert_eq!(opened.header("set-cookie"), None, "cookies go to every port");
    let key = opened.ok()["key"].as_str().unwrap().to_owned();
    assert!(key != site.token() && key != link);
    assert_eq!(redeem(&authority, link).status, 403, "only once");
    let bearer = format!("Bearer {key}");
    let page = [("host", authority.as_str()), ("authorization", bearer.as_str())];
    assert_eq!(site.raw("GET", "/api/stats", &page, "").status, 200);
    let cookie = format!("claude_mem_{}={key}", site.port());
    let page = [("host", authority.as_str()), ("cookie", cookie.as_str())];
    assert_eq!(site.raw("GET", "/api/stats", &page, "").status, 401, "a cookie opens nothing");
    for secret in [site.token(), link, &key] {
        let found = files_with(&site.sandbox.data(), secret);
        let token_file = site.sandbox.data().join("worker.json");
        let expected = if secret == site.token() { vec![token_file] } else { Vec::new() };
        assert_eq!(found, expected, "diagnostics and all else are free of it");
    }
}

#[test]
fn a_link_from_another_site_opens_the_page_but_not_the_api() {
    let site = Site::new();
    let (authority, bearer) = (site.authority(), format!("Bearer {}", site.token()));
    let asked = |method: &str, path: &str, mode: &str, dest: &str| {
        let headers = [
            ("host", authority.as_str()),
            ("authorization", bearer.as_str()),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", mode),
            ("sec-fetch-dest", dest),
        ];
        site.raw(method, path, &headers, "").status
    };
    assert_eq!(asked("GET", "/open", "navigate", "document"), 200);
    assert_eq!(asked("GET", "/api/stats", "navigate", "document"), 401);
    assert_eq!(asked("GET", "/open", "navigate", "iframe"), 403);
    assert_eq!(asked("GET", "/open", "no-cors", "script"), 403);
    assert_eq!(asked("POST", "/api/processing", "navigate", "document"), 403);
}

#[test]
fn no_program_gets_a_link_on_its_command_line() {
    let site = Site::new();
    let (page, note) = (site.sandbox.data().join("viewer.html"), site.sandbox.home().join("argv"));
    // A browser that records its own command line, which other users can read.
    let script = format!(
        "#!/bin/sh\ntr '\\0' '\\n' < /proc/$$/cmdline > {0}.draft\nmv {0}.draft {0}\n",
        note.display()
    );
    let browser = site.sandbox.write("browser.sh", &script);
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    // The link must not be written to an existing file that others can read.
    fs::write(&page, "old").unwrap();
    fs::set_permissions(&page, fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = site.sandbox.command(&["viewer"]);
    let opened = command.env("BROWSER", &browser).output().unwrap();
    assert!(opened.status.success(), "{opened:?}");
    until(|| note.exists());
    let arguments = fs::read_to_string(&note).unwrap();
    assert!(arguments.contains("viewer.html") && !arguments.contains("http"), "{arguments}");
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&page).unwrap();
    let link = &text.split("/open#").nth(1).unwrap()[..64];
    let printed =
        String::from_utf8(opened.stdout).unwrap() + &String::from_utf8_lossy(&opened.stderr);
    assert!(!arguments.contains(link) && !printed.contains(link), "{printed}");
    let authority = site.authority();
    let headers = [("host", authority.as_str()), ("x-claude-mem-link", link)];
    assert_eq!(site.raw("POST", "/api/viewer/session", &headers, "").status, 200);
    assert!(!page.exists(), "a link that was used is not kept");
}

#[test]
fn private_text_and_secrets_are_redacted_from_every_program() {
    let site = Site::new();
    let key = format!("sk-ant-api03-{}", "aB3xZ9".repeat(12));
    let used = json!({"contentSessionId": "s", "tool_name": "Bash", "cwd": "/work/shop",
        "tool_input": {"command": "echo <private>hush-hush</private>"}, "tool_response": key});
    site.post("/api/sessions/observations", &used);
    let save = json!({"text": format!("the key is {key}"), "project": "shop"});
    assert_eq!(site.post("/api/memory/save", &save)["is_redacted"], true);
    for secret in ["hush-hush", &key[..40]] {
        assert_eq!(files_with(&site.sandbox.data(), secret), [] as [PathBuf; 0]);
    }
}

#[test]
fn wrong_settings_change_nothing() {
    let site = Site::new();
    let set = json!({"CLAUDE_MEM_MODEL": "some-model", "CLAUDE_MEM_CONTEXT_TOKENS_MAX": 900});
    assert_eq!(site.post("/api/settings", &set)["success"], true);
    let before = site.sandbox.read(".claude-mem/settings.json");
    assert!(before.contains("some-model") && before.contains("900"));
    for (name, value, problem) in [
        ("CLAUDE_MEM_SYNC", "sometimes", "CLAUDE_MEM_SYNC"),
        ("CLAUDE_MEM_MODE", "nothing", "there is no mode `nothing`"),
        ("CLAUDE_MEM_MODE", "../settings", "cannot be the name of a mode"),
    ] {
        let wrong = json!({"CLAUDE_MEM_LANGUAGE": "other", name: value});
        let reply = site.ask("POST", "/api/settings", Some(&wrong));
        assert_eq!(reply.status, 400);
        assert!(reply.body.contains(problem), "{reply:?}");
        assert_eq!(site.sandbox.read(".claude-mem/settings.json"), before, "all of them, or none");
    }
}

#[test]
fn destinations_secrets_and_limits_cannot_be_changed_over_http() {
    let site = Site::new();
    let taken = [
        ("CLAUDE_MEM_ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
        ("CLAUDE_MEM_OPENAI_BASE_URL", "http://127.0.0.1:1"),
        ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-0123456789abcdef0123456789"),
        ("CLAUDE_MEM_OPENAI_API_KEY", "sk-0123456789abcdef0123456789"),
        ("CLAUDE_MEM_EMBEDDING_BASE_URL", "http://127.0.0.1:1"),
        ("CLAUDE_MEM_EMBEDDING_MODEL", "/etc/passwd"),
        ("CLAUDE_MEM_EMBEDDING_API_KEY", "sk-0123456789abcdef0123456789"),
        ("CLAUDE_MEM_PROVIDER", "openai"),
        ("CLAUDE_CODE_PATH", "/tmp/x"),
        ("CLAUDE_MEM_SHIP_TO", "/tmp/stolen"),
        ("CLAUDE_MEM_SHIP_ENDPOINT", "http://127.0.0.1:1"),
        ("CLAUDE_MEM_SHIP_GOOGLE_CREDENTIALS", "/etc/passwd"),
        ("CLAUDE_MEM_SHIP_ACCESS_KEY_ID", "AKIA0123456789ABCDEF"),
        ("CLAUDE_MEM_REDACT_SECRETS", "false"),
        ("CLAUDE_MEM_EXCLUDED_PROJECTS", ""),
        ("CLAUDE_MEM_DISABLED_PROJECTS", ""),
        ("CLAUDE_MEM_ENABLED", "true"),
        ("CLAUDE_MEM_DAILY_COST_MAX", "0"),
        ("CLAUDE_MEM_DAILY_TOKENS_MAX", "0"),
        ("CLAUDE_MEM_RETENTION_DAYS", "1"),
    ];
    for (name, value) in taken {
        for wish in [json!({name: value}), json!({name: null})] {
            let reply = site.ask("POST", "/api/settings", Some(&wish));
            assert_eq!(reply.status, 403, "{wish}");
            let command = format!("claude-mem settings set {name} VALUE");
            assert!(reply.json()["remedy"].as_str().unwrap().contains(&command), "{reply:?}");
        }
    }
    assert!(!site.sandbox.data().join("settings.json").exists());
    assert!(!site.sandbox.data().join(".env").exists());
    // Settings are read-only except for this list: a new setting is safe until someone decides
    // otherwise.
    let all = site.get("/api/settings");
    let editable: Vec<_> = all["settings"].as_array().unwrap().iter().collect();
    let editable = editable.iter().filter(|setting| setting["is_read_only"] == false);
    let editable: Vec<_> = editable.map(|setting| setting["name"].as_str().unwrap()).collect();
    let context = |name: &&str| !name.starts_with("CLAUDE_MEM_CONTEXT_");
    assert_eq!(
        editable.into_iter().filter(context).collect::<Vec<_>>(),
        ["SYNC", "MODEL", "VERBOSITY", "MODE", "LANGUAGE", "COMPACT_MB", "WORKER_IDLE"]
            .map(|name| format!("CLAUDE_MEM_{name}"))
    );
}

#[test]
fn secrets_and_destinations_are_never_shown() {
    let site = Site::new();
    let chosen = [
        ("CLAUDE_MEM_OPENAI_API_KEY", "sk-0123456789abcdef0123456789"),
        ("CLAUDE_MEM_SHIP_SECRET_ACCESS_KEY", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"),
        ("CLAUDE_MEM_OPENAI_BASE_URL", "http://ada:hunter22@127.0.0.1:9/v1"),
        ("CLAUDE_MEM_EMBEDDING_API_KEY", "sk-abcdef0123456789abcdef0123"),
        ("CLAUDE_MEM_EMBEDDING_BASE_URL", "http://ada:hunter33@127.0.0.1:9/z9x7"),
        ("CLAUDE_MEM_SHIP_TO", "s3://my-secret-bucket/prefix"),
        ("CLAUDE_MEM_SHIP_GOOGLE_CREDENTIALS", "/home/ada/account.json"),
    ];
    for (name, value) in chosen {
        site.sandbox.run(&["settings", "set", name, value]).ok();
    }
    let shown = site.ask("GET", "/api/settings", None).body;
    for (name, value) in chosen {
        for part in [value, &value[value.len() - 4..]] {
            assert!(!shown.contains(part), "{name}: {part}");
        }
    }
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    for setting in shown["settings"].as_array().unwrap() {
        let is_chosen = chosen.iter().any(|(name, _)| setting["name"] == *name);
        if is_chosen {
            assert_eq!((&setting["is_set"], &setting["value"]), (&json!(true), &json!("")));
        }
        assert!(is_chosen || setting["is_set"] == false || setting["source"] == "environment");
    }
}
