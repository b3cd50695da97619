//! Routes that write: forgetting and undo, notes, settings, reprocessing.

use claude_mem_tools::model::{Answer, Gate, Script, Server};
use serde_json::{Value, json};

use super::Site;
use crate::serving::until;

#[test]
fn forgotten_memories_disappear_at_once_and_return_when_undone() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let before = site.get("/api/feed");
    let forgot = site.ask("DELETE", "/api/observation/1", None).ok();
    assert_eq!((&forgot["success"], &forgot["kind"]), (&json!(true), &json!("observation")));
    assert_eq!(site.ask("DELETE", "/api/observation/1", None).status, 404);
    assert_eq!(site.get("/api/search?query=cart&type=observations")["hits"], json!([]));
    let id = forgot["forgetting"].as_str().unwrap();
    let listed = &site.get("/api/forgettings")["items"][0];
    assert_eq!(
        (&listed["id"], &listed["titles"]),
        (&json!(id), &json!(["Fix the cart (cart.rs)"]))
    );
    // Its address responds that it was forgotten, and by which event.
    let gone = site.ask("GET", "/api/observation/1", None);
    assert_eq!((gone.status, &gone.json()["forgetting"]), (410, &json!(id)));
    assert_eq!(site.ask("GET", "/api/observation/99", None).status, 404);
    let undo = format!("/api/forgettings/{id}/undo");
    assert_eq!(site.ask("POST", &undo, None).ok(), json!({"success": true, "memories": 1}));
    assert_eq!(site.get("/api/feed"), before);
    assert_eq!(site.ask("POST", &undo, None).status, 409, "only once");
    assert_eq!(site.ask("POST", "/api/forgettings/1/undo", None).status, 400);
    for path in ["/api/summary/1", "/api/prompt/1"] {
        assert_eq!(site.ask("DELETE", path, None).ok()["success"], true, "{path}");
    }
    assert_eq!(site.get("/api/feed?kinds=summary,prompt")["items"], json!([]));
}

#[test]
fn revised_observations_are_marked() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let revise = |body: &Value| site.ask("POST", "/api/observation/1/revisions", Some(body));
    let edit = json!({"action": "edit", "title": "The cart is fixed", "text": "It was the sum."});
    assert_eq!(revise(&edit).ok()["success"], true);
    assert_eq!(revise(&edit).status, 400, "nothing changes");
    revise(&json!({"action": "pin"})).ok();
    let memory = site.get("/api/observation/1");
    assert_eq!((&memory["title"], &memory["narrative"]), (&edit["title"], &edit["text"]));
    assert_eq!((&memory["is_pinned"], &memory["is_edited"]), (&json!(true), &json!(true)));
    revise(&json!({"action": "wrong", "because": "it was the tax"})).ok();
    assert_eq!(site.get("/api/observation/1")["wrong"]["because"], "it was the tax");
    let hits = site.get("/api/search?query=sum")["hits"].clone();
    assert_eq!(hits[0]["wrong"]["because"], "it was the tax");
    assert_eq!(site.get("/api/observation/1/provenance")["is_pinned"], true);
    revise(&json!({"action": "restore"})).ok();
    assert_eq!(site.get("/api/observation/1")["wrong"], Value::Null);
    for (body, status) in [
        (json!({"action": "supersede", "by": 1}), 400),
        (json!({"action": "supersede", "by": 99}), 400),
        (json!({"action": "explode"}), 400),
    ] {
        assert_eq!(revise(&body).status, status, "{body}");
    }
    let unknown =
        site.ask("POST", "/api/observation/99/revisions", Some(&json!({"action": "pin"})));
    assert_eq!(unknown.status, 404);
}

#[test]
fn projects_are_renamed_merged_and_split() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    site.post("/api/memory/save", &json!({"text": "the walrus prefers tabs", "project": "zoo"}));
    let names = || site.get("/api/projects")["projects"].clone();
    assert_eq!(names(), json!(["shop", "zoo"]));
    let renamed = site.post("/api/projects/rename", &json!({"project": "shop", "name": "store"}));
    assert_eq!((&renamed["success"], names()), (&json!(true), json!(["store", "zoo"])));
    let merged = site.post("/api/projects/merge", &json!({"from": "zoo", "into": "store"}));
    assert_eq!((&merged["into"], names()), (&renamed["key"], json!(["store"])));
    site.post("/api/projects/split", &json!({"project": "zoo"}));
    assert_eq!(names(), json!(["store", "zoo"]));
    let ask = |path: &str, body: &Value| site.ask("POST", path, Some(body)).status;
    assert_eq!(ask("/api/projects/rename", &json!({"project": "no", "name": "x"})), 404);
    assert_eq!(ask("/api/projects/rename", &json!({"project": "zoo", "name": " "})), 400);
    assert_eq!(ask("/api/projects/merge", &json!({"from": "zoo", "into": "zoo"})), 400);
    assert_eq!(ask("/api/projects/split", &json!({"project": "zoo"})), 400);
}

#[test]
fn a_forgetting_is_recorded_in_the_project_it_affects() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let save = json!({"text": "the walrus prefers tabs", "project": "zoo"});
    site.post("/api/memory/save", &save);
    let id = site.ask("DELETE", "/api/observation/1", None).ok()["forgetting"].clone();
    site.ask("POST", &format!("/api/forgettings/{}/undo", id.as_str().unwrap()), None).ok();
    // A forgetting that affects two projects belongs to none.
    site.sandbox.run(&["forget", "1", "2", "--yes"]).ok();
    let events = site.sandbox.events();
    let of = |kind: &str| -> Vec<&Value> {
        let those = events.iter().filter(|event| event["kind"] == kind);
        those.map(|event| &event["project_key"]).collect()
    };
    let shop = of("PromptSubmitted")[0];
    assert!(shop.as_str().unwrap().ends_with("/shop"), "{shop}");
    assert_eq!(of("Forgotten"), [shop, shop, &json!("")]);
}

#[test]
fn a_memory_is_written_by_hand() {
    let site = Site::new();
    let text = json!({"text": "the walrus prefers tabs"});
    assert_eq!(site.ask("POST", "/api/memory/save", Some(&text)).status, 400, "of no project");
    let save = json!({"text": "the walrus prefers tabs", "title": "tabs", "project": "shop",
        "concepts": ["pattern"], "files": ["cart.rs"]});
    let saved = site.post("/api/memory/save", &save);
    assert_eq!((&saved["id"], &saved["project"]), (&json!("1"), &json!("shop")));
    let row = site.get("/api/observation/1");
    assert_eq!(
        (&row["origin"], &row["title"], &row["files_modified"]),
        (&json!("program"), &json!("tabs"), &json!([]))
    );
    assert_eq!(site.get("/api/search?query=walrus")["hits"][0]["id"], "1");
    for wrong in [json!({"text": "x", "extra": 1}), json!({}), json!({"text": 7}), json!([])] {
        assert_eq!(site.ask("POST", "/api/memory/save", Some(&wrong)).status, 400, "{wrong}");
    }
    let wrong = json!({"text": "x", "project": "shop", "type": "bugfux"});
    let reply = site.ask("POST", "/api/memory/save", Some(&wrong));
    assert!(reply.json()["remedy"].as_str().unwrap().contains("bugfix"), "{reply:?}");
    let private = json!({"text": "<private>x</private>", "project": "shop"});
    assert_eq!(site.ask("POST", "/api/memory/save", Some(&private)).status, 422);
}

#[test]
fn settings_are_shown_changed_and_put_back() {
    let site = Site::new();
    let find = |settings: &Value, name: &str| {
        let settings = settings["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["name"] == name).unwrap().clone()
    };
    let before = find(&site.get("/api/settings"), "CLAUDE_MEM_CONTEXT_OBSERVATIONS");
    assert_eq!((&before["kind"], &before["source"]), (&json!("count"), &json!("default")));
    let changed = site.post("/api/settings", &json!({"CLAUDE_MEM_CONTEXT_OBSERVATIONS": 7}));
    let after = find(&changed, "CLAUDE_MEM_CONTEXT_OBSERVATIONS");
    assert_eq!((&after["value"], &after["source"]), (&json!("7"), &json!("file")));
    let back = site.post("/api/settings", &json!({"CLAUDE_MEM_CONTEXT_OBSERVATIONS": null}));
    assert_eq!(find(&back, "CLAUDE_MEM_CONTEXT_OBSERVATIONS"), before);
    assert_eq!(find(&back, "CLAUDE_MEM_PROVIDER")["source"], "environment");
    let secret = find(&back, "CLAUDE_MEM_SHIP_SECRET_ACCESS_KEY");
    assert_eq!(
        (&secret["group"], &secret["label"], &secret["unit"]),
        (&json!("Backup and sync"), &json!("Secret access key"), &json!(null))
    );
    assert_eq!(find(&back, "CLAUDE_MEM_CONTEXT_TOKENS_MAX")["unit"], "tokens");
}

#[test]
fn a_replay_without_options_rebuilds_without_requests() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let before = site.get("/api/observations")["items"].clone();
    let estimate = site.post("/api/replays", &json!({"dry_run": true}));
    assert_eq!((&estimate["requests"], &estimate["generation"]), (&json!(0), &json!(null)));
    let started = site.ask("POST", "/api/replays", Some(&json!({})));
    assert_eq!(started.status, 202, "{started:?}");
    let id = started.json()["id"].as_str().unwrap().to_owned();
    until(|| site.get(&format!("/api/replays/{id}"))["state"] == "finished");
    assert_eq!(site.get("/api/replays")["items"], json!([]), "no generation was made");
    assert_eq!(site.get("/api/observations")["items"], before);
}

#[test]
fn the_past_is_distilled_again_and_the_difference_is_shown() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let estimate = site.post("/api/replays", &json!({"dry_run": true, "fresh": true}));
    assert_eq!((&estimate["requests"], &estimate["generation"]), (&json!(1), &json!(1)));
    assert_eq!(site.get("/api/replays")["items"], json!([]), "nothing was done");
    let started = site.ask("POST", "/api/replays", Some(&json!({"fresh": true})));
    assert_eq!(started.status, 202, "{started:?}");
    let id = started.json()["id"].as_str().unwrap().to_owned();
    let look = || site.get(&format!("/api/replays/{id}"));
    until(|| !["distilling", "folding"].contains(&look()["state"].as_str().unwrap()));
    assert_eq!(
        (&look()["state"], &look()["answered"]),
        (&json!("finished"), &json!(1)),
        "{}",
        look()
    );
    let made = site.get("/api/replays");
    assert_eq!(
        (&made["items"][0]["is_current"], &made["running"]["id"]),
        (&json!(true), &json!(id))
    );
    let diff = site.get("/api/replays/1/diff");
    assert_eq!((&diff["same"], &diff["added"]), (&json!(1), &json!([])), "{diff}");
    assert_eq!(
        site.get("/api/observation/2/provenance")["generations"].as_array().unwrap().len(),
        2
    );
    assert_eq!(site.post("/api/replays/0/adopt", &json!({}))["success"], true);
    assert_eq!(site.get("/api/observations")["items"][0]["id"], "1");
    assert_eq!(site.ask("GET", "/api/replays/9/diff", None).status, 404);
    assert_eq!(site.ask("GET", "/api/replays/9", None).status, 404);
    let wrong = json!({"project": "nowhere"});
    assert_eq!(site.ask("POST", "/api/replays", Some(&wrong)).status, 400);
}

#[test]
fn a_reprocessing_ends_when_it_is_not_wanted_any_more() {
    let (first, second) = (Gate::new(), Gate::new());
    let reply = "<observation><type>change</type><title>again</title></observation>";
    let script = Script::new()
        .then(Answer::text(reply).held_by(&first))
        .then(Answer::text(reply).held_by(&second))
        .otherwise(Answer::text(reply));
    let server = Server::start(script).unwrap();
    let site = Site::with(&[
        ("CLAUDE_MEM_ANTHROPIC_BASE_URL", &server.url()),
        ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-ant-test"),
    ]);
    site.remember_turn("s1", "fix the cart", "cart.rs");
    site.remember_turn("s1", "add a till", "till.rs");
    let start =
        json!({"fresh": true, "provider": "anthropic", "model": "claude-haiku-4-5", "yes": true});
    let started = site.ask("POST", "/api/replays", Some(&start));
    assert_eq!((started.status, &started.json()["total"]), (202, &json!(2)), "{started:?}");
    assert_eq!(site.ask("POST", "/api/replays", Some(&start)).status, 409, "one at a time");
    until(|| !server.requests().is_empty());
    assert_eq!(site.ask("DELETE", "/api/replays/1", None).ok()["state"], "distilling");
    first.open();
    until(|| site.get("/api/replays/1")["state"] != "distilling");
    let ended = site.get("/api/replays/1");
    assert_eq!((&ended["state"], &ended["answered"]), (&json!("cancelled"), &json!(1)), "{ended}");
    assert_eq!(site.get("/api/replays")["items"][0]["is_finished"], false);
    assert_eq!(site.get("/api/observations")["items"][0]["generation"], 0, "memory is unchanged");
    second.open();
}
