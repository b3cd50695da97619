//! The stateless providers against a model server, over the real wire protocols.

use std::time::Duration;

use claude_mem_events::FailureClass::{
    self, Auth, Invalid, Quota, RateLimit, Transient, Unreadable,
};
use claude_mem_tools::model::{self, Block, Script, Server, Usage};

use super::{Concern, Limits, PROVIDERS, Provider, Refusal, Request, Response, Setup, Spent};
use claude_mem_core::{environment::Environment, paths::Paths, settings::Settings};

const BOTH: [&str; 2] = ["anthropic", "openai"];

fn open(name: &str, variables: &[(&str, &str)]) -> Result<Box<dyn Provider>, Refusal> {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment::fixed(variables);
    let paths = Paths { home: None, data: home.path().into() };
    let settings = Settings::load(&paths, &environment);
    let setup = Setup { settings: &settings, paths: &paths, environment: &environment };
    let (_, open) = PROVIDERS.iter().find(|(known, _)| known.name() == name).unwrap();
    open(&setup)
}

fn provider(name: &str, server: &Server) -> Box<dyn Provider> {
    let url = server.url();
    let openai_url = format!("{url}/v1/");
    let variables = [
        ("CLAUDE_MEM_ANTHROPIC_BASE_URL", url.as_str()),
        ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-test"),
        ("CLAUDE_MEM_OPENAI_BASE_URL", openai_url.as_str()),
        ("CLAUDE_MEM_OPENAI_API_KEY", "sk-test"),
    ];
    open(name, &variables).unwrap()
}

fn request() -> Request {
    Request {
        content_session: "content-1".into(),
        system: "You observe.".into(),
        digest: "Before: nothing.".into(),
        text: "<tool>ls</tool>".into(),
        closing: "Answer in XML.".into(),
        model: "claude-haiku-4-5".into(),
        limits: Limits { tokens_out_max: 100, time_max: Duration::from_secs(20) },
        ..Request::default()
    }
}

/// Sends one request to a server with one response.
fn send_one(name: &str, response: model::Answer) -> Result<Response, Refusal> {
    let server = Server::start(Script::new().then(response)).unwrap();
    let result = provider(name, &server).send(&request());
    assert_eq!(server.requests().len(), 1, "a provider sends once");
    result
}

#[test]
fn a_response_is_complete_and_has_its_cost() {
    let usage = Usage { input: 1000, output: 200, cache_creation: 400, cache_read: 600 };
    for (name, cost) in [("anthropic", 1000 + 500 + 60 + 1000), ("openai", 1400 + 60 + 1000)] {
        let blocks = [Block::Text("<observation>".into()), Block::Text("</observation>".into())];
        let response = send_one(name, model::Answer::blocks(blocks).usage(usage)).unwrap();
        assert_eq!(response.text, "<observation></observation>");
        assert_eq!((response.model.as_str(), response.is_cut), ("claude-haiku-4-5", false));
        assert_eq!(response.memory_session_id, None);
        let spent =
            Spent { tokens_in: 2000, tokens_cached: 600, tokens_out: 200, cost_micros: Some(cost) };
        assert_eq!(response.spent, spent, "{name}");
    }
}

#[test]
fn the_constant_part_is_cached_and_the_data_is_never_last() {
    let server = Server::start(Script::new().otherwise(model::Answer::text("<skip/>"))).unwrap();
    for name in BOTH {
        provider(name, &server).send(&request()).unwrap();
    }
    let [anthropic, openai] = server.requests().try_into().unwrap();
    let fixed = &anthropic.body["system"][0];
    assert_eq!(
        (fixed["text"].as_str(), fixed["cache_control"]["type"].as_str()),
        (Some("You observe."), Some("ephemeral"))
    );
    assert_eq!(anthropic.last_user_text(), "Before: nothing.\n<tool>ls</tool>\nAnswer in XML.");
    assert_eq!(anthropic.body["max_tokens"], 100);
    assert_eq!(anthropic.header("x-api-key"), Some("sk-test"));
    assert_eq!(openai.system_text(), "You observe.");
    assert_eq!(openai.last_user_text(), "Before: nothing.\n\n<tool>ls</tool>\n\nAnswer in XML.");
    assert_eq!(openai.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(openai.path, "/v1/chat/completions");
}

#[test]
fn a_response_cut_off_by_its_limit_is_kept() {
    for name in BOTH {
        let response =
            send_one(name, model::Answer::text("<observation>half").max_tokens()).unwrap();
        assert_eq!((response.text.as_str(), response.is_cut), ("<observation>half", true));
    }
}

#[test]
fn an_empty_response_or_a_refusal_is_unreadable_and_has_a_cost() {
    for name in BOTH {
        let refused = send_one(name, model::Answer::empty()).unwrap_err();
        assert_eq!((refused.class, refused.reply.as_str()), (Unreadable, ""));
        assert!(refused.spent.tokens_in > 0 && refused.spent.cost_micros > Some(0));
        let refused =
            send_one(name, model::Answer::text("I cannot.").stop_reason("refusal")).unwrap_err();
        assert_eq!((refused.class, refused.reply.as_str()), (Unreadable, "I cannot."));
    }
}

#[test]
fn every_status_has_its_class() {
    let cases: [(u16, FailureClass, Concern); 9] = [
        (400, Invalid, Concern::Request),
        (401, Auth, Concern::Provider),
        (402, Quota, Concern::Provider),
        (403, Auth, Concern::Provider),
        (404, Invalid, Concern::Provider),
        (413, Invalid, Concern::Request),
        (429, RateLimit, Concern::Provider),
        (500, Transient, Concern::Provider),
        (529, Transient, Concern::Provider),
    ];
    for name in BOTH {
        for (status, class, concern) in cases {
            let refused = send_one(name, model::Answer::http(status)).unwrap_err();
            assert_eq!((refused.class, refused.concern), (class, concern), "{name} {status}");
            assert_eq!(refused.message, format!("HTTP {status}: scripted {status}"));
            assert_eq!((refused.retry_after, refused.spent), (None, Spent::default()));
        }
    }
}

#[test]
fn retry_after_is_passed_on() {
    for name in BOTH {
        let refused = send_one(name, model::Answer::http(429).retry_after(37)).unwrap_err();
        assert_eq!(refused.retry_after, Some(Duration::from_secs(37)));
    }
}

#[test]
fn a_truncated_or_malformed_response_is_transient() {
    let text = || model::Answer::text("<observation>whole</observation>");
    for name in BOTH {
        let broken = [text().cut(), text().short(), model::Answer::malformed()];
        for response in broken {
            assert_eq!(send_one(name, response).unwrap_err().class, Transient, "{name}");
        }
        let page = model::Answer::raw(200, "text/html", "<html>Please log in</html>");
        let refused = send_one(name, page).unwrap_err();
        assert!(refused.message.contains("is not JSON"), "{}", refused.message);
    }
}

#[test]
fn a_silent_model_is_abandoned_at_the_time_limit() {
    for name in BOTH {
        for response in [model::Answer::hang(), model::Answer::text("half of it").stall()] {
            let server = Server::start(Script::new().then(response)).unwrap();
            let limits = Limits { time_max: Duration::from_millis(300), ..Limits::default() };
            let refused =
                provider(name, &server).send(&Request { limits, ..request() }).unwrap_err();
            assert_eq!((refused.class, refused.concern), (Transient, Concern::Request));
            assert!(
                refused.message.contains("did not respond within 300ms"),
                "{}",
                refused.message
            );
        }
    }
}

#[test]
fn an_oversized_body_is_not_read_to_its_end() {
    let huge = format!("{{\"content\": \"{}\"}}", "x".repeat(9 << 20));
    for name in BOTH {
        let refused =
            send_one(name, model::Answer::raw(200, "application/json", &huge)).unwrap_err();
        assert_eq!(refused.class, Unreadable, "{}", refused.message);
    }
}

#[test]
fn an_unreachable_host_is_transient() {
    for name in BOTH {
        let server = Server::start(Script::new()).unwrap();
        let provider = provider(name, &server);
        drop(server);
        let refused = provider.send(&request()).unwrap_err();
        assert_eq!(refused.class, Transient);
        assert!(refused.message.starts_with("request to "), "{}", refused.message);
    }
}

#[test]
fn a_server_without_tls_gets_no_request_in_clear_text() {
    let server = Server::start(Script::new()).unwrap();
    let url = server.url().replace("http://", "https://");
    let variables = [
        ("CLAUDE_MEM_ANTHROPIC_BASE_URL", url.as_str()),
        ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-test"),
    ];
    // The server waits for a line that a TLS handshake does not contain.
    let limits = Limits { time_max: Duration::from_millis(500), ..Limits::default() };
    let result = open("anthropic", &variables).unwrap().send(&Request { limits, ..request() });
    assert_eq!(result.unwrap_err().class, Transient);
    assert!(server.requests().iter().all(|request| request.header("x-api-key").is_none()));
}

#[test]
fn an_echoed_key_is_redacted() {
    for name in BOTH {
        let echoed = model::Answer::error(401, "authentication_error", "bad key sk-test given");
        assert_eq!(send_one(name, echoed).unwrap_err().message, "HTTP 401: bad key … given");
    }
}

#[test]
fn wrong_settings_give_a_one_line_error() {
    let line = |name, variables: &[_]| open(name, variables).err().unwrap().message;
    assert_eq!(
        line("anthropic", &[]),
        "the anthropic provider has no key: set CLAUDE_MEM_ANTHROPIC_API_KEY"
    );
    assert_eq!(
        line("openai", &[("CLAUDE_MEM_OPENAI_BASE_URL", "localhost:11434")]),
        "CLAUDE_MEM_OPENAI_BASE_URL is not an http(s) address: `localhost:11434`"
    );
    let openai = open("openai", &[]).unwrap();
    let refused = openai.send(&Request { model: String::new(), ..request() }).unwrap_err();
    assert_eq!(refused.message, "no model configured: set CLAUDE_MEM_OPENAI_MODEL");
    assert_eq!(refused.concern, Concern::Provider);
}
