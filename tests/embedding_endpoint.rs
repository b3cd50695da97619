//! An embedding endpoint that the user configured, played by a server over the real protocol.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use claude_mem_embed::{Model, Role};
use claude_mem_tools::model::{Answer, Request, Server};
use serde_json::{Value, json};

use crate::{
    model::Session,
    sandbox::{Run, Sandbox},
    vectors::SEMANTIC,
};

const KEY: &str = "key-of-the-embedding-server";
const LIMITER: &str = "Each address may try five passwords a minute; then it gets status 429.";
const QUESTION: &str = "how often may one address log in";

type Reply = fn(&Request) -> Answer;

/// The built-in model, served over the protocol in 512 dimensions, or a failure.
fn vectors_of(request: &Request, dimensions: usize) -> Answer {
    let model = Model::parse(claude_mem_model::bytes()).unwrap();
    let texts = request.body["input"].as_array().unwrap();
    let vector = |text: &Value| {
        let mut vector = model.embed(text.as_str().unwrap(), Role::Memory);
        vector.resize(dimensions, 0.0);
        vector
    };
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}))
        .collect();
    let body = json!({"object": "list", "data": data, "model": request.model()});
    Answer::raw(200, "application/json", &body.to_string())
}

fn texts(request: &Request) -> Vec<&str> {
    let texts = request.body["input"].as_array().unwrap();
    texts.iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn an_endpoint_replaces_the_model_and_where_it_fails_words_are_left() {
    let right: Reply = |request| vectors_of(request, 512);
    let answer = Arc::new(Mutex::new(right));
    let chosen = Arc::clone(&answer);
    let server = Server::answering(move |request| {
        let answer = *chosen.lock().unwrap();
        answer(request)
    })
    .unwrap();
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| -> Run { sandbox.run_with(arguments, &[SEMANTIC], "") };
    for (name, value) in [
        ("EMBEDDING_BASE_URL", format!("{}/v1/", server.url()).as_str()),
        ("EMBEDDING_API_KEY", KEY),
    ] {
        run(&["settings", "set", name, value]).ok();
    }
    for note in [LIMITER, "The headline of the invoice is printed in dark green."] {
        run(&["remember", note]).ok();
    }
    let failed = run(&["index"]).fails(1);
    assert!(failed.contains("set CLAUDE_MEM_EMBEDDING_MODEL"), "{failed}");
    run(&["settings", "set", "EMBEDDING_MODEL", "bge-m3"]).ok();

    // Hooks, `status` and `doctor` send no request.
    let mut session = Session::start(&sandbox, "s1");
    session.prompt("sort the imports of the report");
    session.tool();
    run(&["status"]).ok();
    run(&["doctor"]);
    assert!(server.requests().is_empty());

    // One request determines the dimensions, a second one has all texts.
    let printed = run(&["index"]).ok();
    assert!(printed.contains("3 embedded; 0 of 3 vectors missing"), "{printed}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!((request.path.as_str(), request.model()), ("/v1/embeddings", "bge-m3"));
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    }
    let sent: HashSet<&str> = texts(&requests[1]).into_iter().collect();
    assert!(sent.len() == 3 && sent.contains(LIMITER), "{sent:?}");

    let found = run(&["search", QUESTION, "--explain"]);
    let first = found.stdout.lines().find(|line| line.contains("note")).unwrap_or_default();
    assert!(first.contains("five passwords"), "{found:?}");
    assert!(found.stdout.contains("cosine 0.") && found.stderr.is_empty(), "{found:?}");
    let secret = format!("AKIA{}", "Q7ZP3M5R8T2V6W4X");
    run(&["search", &format!("who uploads with {secret} at night")]).ok();
    let requests = server.requests();
    assert_eq!((requests.len(), texts(&requests[2])), (4, vec![QUESTION]));
    assert!(!texts(&requests[3])[0].contains(&secret), "{:?}", requests[3]);
    // An endpoint may return slightly different vectors each time, so they are not compared.
    run(&["verify"]).ok();
    assert_eq!(server.requests().len(), 4);

    *answer.lock().unwrap() = |_| Answer::error(404, "not_found", &format!("no model for {KEY}"));
    let found = run(&["search", "which headline is green"]);
    assert!(found.stdout.contains("dark green"), "{found:?}");
    assert!(found.stderr.contains("because the embedding endpoint failed"), "{found:?}");
    for command in ["status", "doctor"] {
        let shown = run(&[command]).stdout;
        assert!(shown.contains("answered HTTP 404: no model for …"), "{command}: {shown}");
        assert!(!shown.contains(KEY), "{command}: {shown}");
    }
    // A server that rejects a text may quote it, and the error is kept in a file.
    *answer.lock().unwrap() = |_| Answer::error(400, "too_long", "the text `five passwords`");
    run(&["remember", "Prices are stored in cents."]).ok();
    let failed = run(&["index"]).fails(1);
    assert!(failed.contains("HTTP 400: too_long") && !failed.contains("passwords"), "{failed}");
    // Another model under the same name.
    *answer.lock().unwrap() = |request| vectors_of(request, 400);
    let failed = run(&["index"]).fails(1);
    assert!(failed.contains("gave 400 dimensions instead of 512"), "{failed}");

    *answer.lock().unwrap() = right;
    assert!(run(&["index"]).ok().contains("0 of 4 vectors missing"));
    let shown = run(&["doctor"]).stdout;
    assert!(shown.contains("all 4") && !shown.contains("HTTP 4"), "{shown}");

    // Back to the built-in model, which has its own vectors.
    for name in ["EMBEDDING_BASE_URL", "EMBEDDING_MODEL"] {
        run(&["settings", "unset", name]).ok();
    }
    let asked = server.requests().len();
    let shown = run(&["status"]).ok();
    assert!(shown.contains("4 of 4 missing"), "{shown}");
    assert_eq!(server.requests().len(), asked);
}
