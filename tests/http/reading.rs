//! Lists, search, timelines, provenance, statistics.

use serde_json::{Value, json};

use super::Site;
use crate::serving::until;

fn names(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn lists_are_paged_by_offset_and_by_place_and_can_be_narrowed_down() {
    let site = Site::new();
    for (prompt, file) in
        [("fix the cart", "cart.rs"), ("add a till", "till.rs"), ("go on", "x.rs")]
    {
        site.remember_turn("s1", prompt, file);
    }
    let all = site.get("/api/feed?limit=100");
    let all = names(&all["items"]);
    assert_eq!((all[0], all[2], all.len()), ("S3", "P3", 9));
    let (mut read, mut before) = (Vec::new(), String::new());
    loop {
        let page = site.get(&format!("/api/feed?limit=2&before={before}"));
        read.extend(names(&page["items"]).into_iter().map(str::to_owned));
        match page["nextBefore"].as_str() {
            Some(next) => before = next.into(),
            None => break,
        }
    }
    assert_eq!(read, all);
    let page = site.get("/api/summaries?limit=1&offset=1");
    assert_eq!((&page["items"][0]["id"], &page["hasMore"]), (&json!("2"), &json!(true)));
    assert_eq!(site.get("/api/prompts?limit=100000")["limit"], 100, "no page is larger");
    let of = |filter: &str| site.get(&format!("/api/observations?{filter}"))["items"].clone();
    assert_eq!(names(&of("files=till.rs")), ["2"]);
    assert_eq!(names(&of("project=unknown")), [""; 0]);
    assert_eq!(names(&of("since=1h&project=shop")), ["3", "2", "1"]);
    assert_eq!(names(&of("until=2020-01-01")), [""; 0]);
    assert_eq!(names(&of("session=s1&type=bugfix")), ["1"]);
    assert_eq!(names(&site.get("/api/feed?kinds=prompt")["items"]), ["P3", "P2", "P1"]);
    for wrong in ["since=never", "limit=x", "before=7", "kinds=thing"] {
        assert_eq!(site.ask("GET", &format!("/api/feed?{wrong}"), None).status, 400, "{wrong}");
    }
    let sessions = site.get("/api/sessions");
    assert_eq!(
        (&sessions["items"][0]["title"], &sessions["hasMore"]),
        (&json!("fix the cart"), &json!(false))
    );
}

#[test]
fn memories_are_found_by_words_files_numbers_and_around_one_another() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    site.remember_turn("s1", "add a till", "till.rs");
    let found = site.get("/api/search?query=till&rows=false");
    assert_eq!(found["hits"][0]["title"], "Add a till (till.rs)");
    assert_eq!(found["observations"], json!([]));
    let found = site.get("/api/search?query=cart&type=observations");
    assert_eq!((&found["observations"][0]["id"], &found["sessions"]), (&json!("1"), &json!([])));
    assert!(site.get("/api/search?query=walrus")["hint"].is_string());
    let table = site.get("/api/search?query=cart&format=text");
    assert!(table["content"][0]["text"].as_str().unwrap().contains("cart.rs**\n1 | "), "{table}");
    let typed = site.get("/api/search?query=til&typing=true");
    assert_eq!(
        (&typed["hits"][0]["title"], &typed["hasMore"]),
        (&json!("Add a till (till.rs)"), &json!(false))
    );
    let begun = site.get("/api/search?query=til");
    assert_eq!(begun["hits"], typed["hits"]);
    assert!(begun["hint"].as_str().unwrap().contains("words that begin with it"), "{begun}");
    assert_eq!(site.get("/api/search?query=tills+crat")["suggestion"], "tills cart");
    let about = site.get("/api/search?filePath=till.rs");
    let is_of_till = |hit: &Value| hit["title"].as_str().unwrap().starts_with("Add a till");
    assert!(about["hits"].as_array().unwrap().iter().all(is_of_till), "{about}");
    assert_eq!(names(&site.get("/api/observations?files=till.rs,cart.rs")["items"]), ["2", "1"]);
    let ids = |body: Value| {
        let found = site.post("/api/observations/batch", &body);
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(json!({"ids": [1, "2", 99]})), ["1", "2"]);
    assert_eq!(ids(json!({"ids": "1,2", "orderBy": "date_desc"})), ["2", "1"]);
    assert_eq!(ids(json!({"ids": [1, 2], "project": "elsewhere"})), [""; 0]);
    let wrong = json!({"ids": ["one"]});
    assert_eq!(site.ask("POST", "/api/observations/batch", Some(&wrong)).status, 400);
    let around = site.get("/api/timeline?anchor=2&depth_before=1&depth_after=1");
    let around: Vec<_> =
        around["moments"].as_array().unwrap().iter().map(|hit| &hit["id"]).collect();
    assert_eq!(around, ["P2", "2", "S2"]);
    let of_type = site.get("/api/timeline?anchor=2&type=prompts,sessions&depth_before=1");
    assert_eq!(of_type["moments"][0]["id"], "P2", "{of_type}");
    assert_eq!(of_type["moments"][2]["id"], "S2", "{of_type}");
    assert_eq!(site.get("/api/timeline?query=cart")["anchor"], "1");
    assert_eq!(site.ask("GET", "/api/timeline?anchor=99", None).status, 404);
    assert_eq!(site.ask("GET", "/api/timeline", None).status, 400);
    assert_eq!(site.get("/api/prompt/2")["prompt_text"], "add a till");
    assert_eq!(site.ask("GET", "/api/summary/99", None).status, 404);
}

#[test]
fn a_memory_has_its_sources() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let provenance = site.get("/api/observation/1/provenance");
    let kinds: Vec<_> =
        provenance["sources"].as_array().unwrap().iter().map(|source| &source["kind"]).collect();
    assert_eq!(kinds, ["ToolUsed", "SummaryRequested"]);
    assert!(provenance["sources"][0]["input"].as_str().unwrap().contains("cart.rs"));
    assert!(
        provenance["sources"][0]["subject"].as_str().unwrap().ends_with("shop/cart.rs"),
        "{provenance}"
    );
    assert_eq!(provenance["reply"]["provider"], "extract");
    assert_eq!(provenance["usage"], json!({"sessions": 0, "fetches": 0}));
    assert!(
        provenance["reply"]["text"]
            .as_str()
            .unwrap()
            .contains("<title>Fix the cart (cart.rs)</title>")
    );
    let generation = &provenance["generations"][0];
    assert_eq!(
        (&generation["is_current"], &generation["memories"][0]["name"]),
        (&json!(true), &json!("1"))
    );
    assert_eq!(site.get("/api/prompt/1/provenance")["sources"][0]["input"], "fix the cart");
    assert_eq!(site.get("/api/summary/1/provenance")["sources"], provenance["sources"]);
    assert_eq!(site.ask("GET", "/api/observation/9/provenance", None).status, 404);
}

#[test]
fn files_of_memories_are_marked_as_changed_or_unchanged() {
    let site = Site::new();
    let cwd = site.sandbox.home().join("shop");
    site.sandbox.write("shop/cart.rs", "b");
    let (here, file) = (cwd.display(), cwd.join("cart.rs"));
    let body = format!(r#"{{"session_id":"h","cwd":"{here}","prompt":"fix the cart"}}"#);
    site.sandbox.hook("new", body);
    let used = json!({"session_id": "h", "cwd": cwd, "tool_name": "Edit", "tool_use_id": "t",
        "tool_input": {"file_path": file, "old_string": "a", "new_string": "b"}, "tool_response": {}});
    site.sandbox.hook("save", used.to_string());
    site.sandbox.hook(
        "summary",
        format!(r#"{{"session_id":"h","cwd":"{here}","last_assistant_message":"Ok."}}"#),
    );
    until(|| site.ask("GET", "/api/observation/1", None).status == 200);
    let freshness = || site.get("/api/observation/1/provenance")["freshness"].clone();
    assert_eq!(freshness(), json!([{"file": "cart.rs", "state": "same"}]));
    std::fs::remove_file(file).unwrap();
    assert_eq!(freshness(), json!([{"file": "cart.rs", "state": "gone"}]));
    // Events sent over HTTP for a folder that hooks know belong to the same project.
    site.remember_turn("s1", "add a till", "till.rs");
    assert_eq!(site.get("/api/projects")["projects"], json!(["shop"]));
}

#[test]
fn statistics_match_the_events() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let stats = site.get("/api/stats");
    assert_eq!(stats["database"]["observations"], 1);
    assert_eq!(stats["log"]["events"], 5);
    let day = &site.get("/api/stats/daily?days=2")["days"][0];
    let counts =
        ["events", "prompts", "tool_uses", "observations", "summaries"].map(|name| &day[name]);
    assert_eq!(counts, [5, 1, 1, 1, 1].map(|count| json!(count)).each_ref());
    assert_eq!(site.get("/api/stats/daily?project=elsewhere")["days"], json!([]));
    let session = &site.get("/api/sessions")["items"][0];
    assert!(session["outcome"].is_string(), "{session}");
    let file = &site.get("/api/files?project=shop")["items"][0];
    assert!(file["file"].as_str().unwrap().ends_with("cart.rs") && file["changes"] == 1, "{file}");
    events_can_be_read(&site);
    let projects = site.get("/api/projects");
    assert_eq!(projects["projectsBySource"], json!({"claude-code": ["shop"]}));
    assert_eq!(projects["details"][0]["observations"], 1);
    let costs = site.get("/api/costs");
    assert_eq!(
        (&costs["total"]["calls"], &costs["days"][0]["model"]),
        (&json!(1), &json!("extract-7"))
    );
    let none = site.get("/api/costs?limit=0");
    assert_eq!(
        (&none["days"], &none["has_more"], &none["total"]),
        (&json!([]), &json!(true), &costs["total"])
    );
    let log = site.get("/api/health/log");
    assert_eq!((&log["events"], &log["gaps"], &log["parked"]), (&json!(5), &json!([]), &json!(0)));
    assert_eq!(site.get("/api/processing")["queueDepth"], 0);
    assert!(
        site.get("/api/types")["types"]
            .as_array()
            .unwrap()
            .iter()
            .any(|type_| type_["id"] == "bugfix")
    );
    assert!(site.get("/api/logs?lines=10")["path"].as_str().unwrap().ends_with("claude-mem.log"));
    let preview = site.get("/api/context/preview?project=shop");
    let text = site.ask("GET", "/api/context/inject?project=shop", None);
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(preview["text"], text.body);
    assert!(
        text.body.contains("Fix the cart")
            && preview["tokens"].as_u64() <= preview["tokens_max"].as_u64()
    );
    assert_eq!(site.ask("GET", "/api/context/preview?project=nowhere", None).status, 404);
    assert_eq!(site.get("/health")["status"], "ok");
}

/// The log, newest first, by kind, by position, and one event in full.
fn events_can_be_read(site: &Site) {
    let list = |filter: &str| site.get(&format!("/api/events?{filter}"))["items"].clone();
    let all = list("");
    let kinds: Vec<_> = all.as_array().unwrap().iter().map(|event| &event["kind"]).collect();
    let expected =
        ["AgentReplied", "SummaryRequested", "ToolUsed", "PromptSubmitted", "SessionStarted"];
    assert_eq!(kinds, expected);
    let used = &list("kind=ToolUsed&session=s1&project=shop")[0];
    assert_eq!((&used["tool"], &used["seq"]), (&json!("Edit"), &all[2]["seq"]));
    let place = used["seq"].as_str().unwrap();
    assert_eq!(list(&format!("before={place}&limit=1"))[0]["kind"], "PromptSubmitted");
    assert_eq!(list(&format!("after={place}")).as_array().unwrap().len(), 2);
    let text = site.get(&format!("/api/events/{place}"));
    assert!(text["input"].as_str().unwrap().contains("old_string"), "{text}");
    for wrong in ["?kind=Thing", "?before=7", "/9:9"] {
        let status = site.ask("GET", &format!("/api/events{wrong}"), None).status;
        assert!(status == 400 || status == 404, "{wrong}: {status}");
    }
}

#[test]
fn a_parameter_that_a_route_does_not_know_is_refused_by_name() {
    let site = Site::new();
    let asked = |path: &str| {
        let reply = site.ask("GET", path, None);
        let problem = reply.json();
        (reply.status, format!("{} {}", problem["message"], problem["remedy"]))
    };
    for (path, message, remedy) in [
        ("/api/search?query=x&projct=shop", "`projct`", "did you mean `project`?"),
        ("/api/search?query=x&date_strt=2026-01-01", "`date_strt`", "did you mean `dateStart`?"),
        ("/api/timeline?anchor=1&kind=decision", "`kind`", "the parameters are `"),
        ("/api/search?query=x&format=banana", "`banana`, expected `json` or `text`", ""),
        ("/api/stats?projects=shop", "`projects`", "this route has no parameters"),
        ("/sessions/1/status?verbose=1", "`verbose`", "this route has no parameters"),
    ] {
        let (status, body) = asked(path);
        assert_eq!(status, 400, "{path}");
        assert!(body.contains(message) && body.contains(remedy), "{path}: {body}");
    }
    let posted = site.ask("POST", "/api/processing?force=1", None);
    assert_eq!(posted.status, 400, "{posted:?}");
    // Parameters of older versions, and the addresses of the viewer, still work.
    for path in ["/api/search?query=x&date_start=2026-01-01&date_to=2026-02-01", "/?q=x&tag=y"] {
        assert_eq!(site.ask("GET", path, None).status, 200, "{path}");
    }
}

#[test]
fn health_tells_memory_active_sessions_and_the_queue_over_time() {
    let site = Site::new();
    let health = site.get("/health");
    assert!(health["rss_bytes"].as_u64().unwrap() > 1 << 20, "{health}");
    assert_eq!(health["active_sessions"], 0);
    let used = json!({"contentSessionId": "s1", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "ls"}, "tool_response": "ok", "cwd": "/work/shop"});
    site.post("/api/sessions/observations", &used);
    until(|| site.get("/health")["active_sessions"] == 1);
    let history = site.get("/api/processing-status")["history"].clone();
    assert_eq!(history, site.get("/health")["queue_history"]);
    let sample = &history[0];
    assert!(sample["timestamp"].as_u64().unwrap() > 0 && sample["events"] == 0, "{history}");
    let status = site.sandbox.run(&["worker", "status"]).ok();
    for line in ["memory  ", "sessions  1 active", "queue  0 events"] {
        assert!(status.contains(line), "{status}");
    }
}

#[test]
fn an_unknown_address_is_a_page_for_a_browser_and_json_for_a_program() {
    let site = Site::new();
    let authority = site.authority();
    let ask = |method: &str, path: &str, accept: &str| {
        let headers = [("host", authority.as_str()), ("accept", accept)];
        let reply = site.raw(method, path, &headers, "");
        (reply.status, reply.header("content-type").unwrap_or_default().to_owned())
    };
    let page = "text/html; charset=utf-8";
    for path in ["/nowhere", "/m", "/sessions/of/nobody"] {
        assert_eq!(ask("GET", path, "text/html,*/*;q=0.8"), (404, page.to_owned()), "{path}");
        assert_eq!(ask("GET", path, "*/*"), (404, "application/json".to_owned()), "{path}");
    }
    assert_eq!(ask("POST", "/nowhere", "text/html").1, "application/json");
}

#[test]
fn projects_of_one_name_are_never_taken_for_one_another() {
    let site = Site::new();
    let folders = ["a/api", "b/api"].map(|name| site.sandbox.home().join(name));
    for folder in &folders {
        let init = json!({"contentSessionId": folder, "cwd": folder, "prompt": "Add a login"});
        site.post("/api/sessions/init", &init);
        // What an editor reports, in its own words.
        let saved = json!({"contentSessionId": folder, "cwd": folder, "tool_name": "FileSave",
            "tool_input": {"path": folder.join("src/login.ts")}, "tool_response": "saved"});
        site.post("/api/sessions/observations", &saved);
        let stop = json!({"contentSessionId": folder, "last_assistant_message": "Login added."});
        site.post("/api/sessions/summarize", &stop);
    }
    let context = |project: &str| {
        let path = format!("/api/context/inject?project={project}");
        site.ask("GET", &path, None)
    };
    let keys = folders.each_ref().map(|folder| folder.display().to_string());
    for key in &keys {
        until(|| context(key).body.contains("login.ts"));
    }
    let known = site.get("/api/observations")["items"].clone();
    for (observation, key) in known.as_array().unwrap().iter().zip(keys.iter().rev()) {
        assert_eq!(observation["files_modified"], json!([format!("{key}/src/login.ts")]));
    }
    let ambiguous = context("api");
    assert_eq!(ambiguous.status, 409);
    let expected = format!("name one of them: {}", keys.join(", "));
    assert_eq!(ambiguous.json()["remedy"], expected);
    let refused = site.sandbox.run(&["context", "--project", "api"]).fails(2);
    assert!(refused.contains(&expected), "{refused}");
}
