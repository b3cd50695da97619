//! The stateless providers against a model server, over the real wire protocols.

use std::time::Duration;

use claude_mem_events::FailureClass::{
    self, Auth, Invalid, Quota, RateLimit, Transient, Unreadable,
};
use claude_mem_tools::model::{self, Block, Script, Server, Usage};

use super::{Answer, Ask, Concern, Limits, PROVIDERS, Provider, Refusal, Setup, Spent};
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

fn question() -> Ask {
    Ask {
        content_session: "content-1".into(),
        system: "You observe.".into(),
        digest: "Before: nothing.".into(),
        text: "<tool>ls</tool>".into(),
        closing: "Answer in XML.".into(),
        model: "claude-haiku-4-5".into(),
        limits: Limits { tokens_out_max: 100, time_max: Duration::from_secs(20) },
        ..Ask::default()
    }
}

/// Asks one question of a server that has one answer.
fn asked(name: &str, answer: model::Answer) -> Result<Answer, Refusal> {
    let server = Server::start(Script::new().then(answer)).unwrap();
    let result = provider(name, &server).ask(&question());
    assert_eq!(server.requests().len(), 1, "a provider asks once");
    result
}

#[test]
fn a_good_answer_comes_whole_with_its_cost() {
    let usage = Usage { input: 1000, output: 200, cache_creation: 400, cache_read: 600 };
    for (name, cost) in [("anthropic", 1000 + 500 + 60 + 1000), ("openai", 1400 + 60 + 1000)] {
        let blocks = [Block::Text("<observation>".into()), Block::Text("</observation>".into())];
        let answer = asked(name, model::Answer::blocks(blocks).usage(usage)).unwrap();
        assert_eq!(answer.text, "<observation></observation>");
        assert_eq!((answer.model.as_str(), answer.is_cut), ("claude-haiku-4-5", false));
        assert_eq!(answer.memory_session_id, None);
        let spent =
            Spent { tokens_in: 2000, tokens_cached: 600, tokens_out: 200, cost_micros: Some(cost) };
        assert_eq!(answer.spent, spent, "{name}");
    }
}

#[test]
fn the_fixed_part_is_cached_and_the_data_is_never_last() {
    let server = Server::start(Script::new().otherwise(model::Answer::text("<skip/>"))).unwrap();
    for name in BOTH {
        provider(name, &server).ask(&question()).unwrap();
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
fn an_answer_cut_off_by_its_limit_is_still_an_answer() {
    for name in BOTH {
        let answer = asked(name, model::Answer::text("<observation>half").max_tokens()).unwrap();
        assert_eq!((answer.text.as_str(), answer.is_cut), ("<observation>half", true));
    }
}

#[test]
fn an_empty_answer_or_a_refusal_is_unreadable_and_was_paid_for() {
    for name in BOTH {
        let refused = asked(name, model::Answer::empty()).unwrap_err();
        assert_eq!((refused.class, refused.reply.as_str()), (Unreadable, ""));
        assert!(refused.spent.tokens_in > 0 && refused.spent.cost_micros > Some(0));
        let refused =
            asked(name, model::Answer::text("I cannot.").stop_reason("refusal")).unwrap_err();
        assert_eq!((refused.class, refused.reply.as_str()), (Unreadable, "I cannot."));
    }
}

#[test]
fn every_status_has_its_class() {
    let cases: [(u16, FailureClass, Concern); 9] = [
        (400, Invalid, Concern::Question),
        (401, Auth, Concern::Provider),
        (402, Quota, Concern::Provider),
        (403, Auth, Concern::Provider),
        (404, Invalid, Concern::Provider),
        (413, Invalid, Concern::Question),
        (429, RateLimit, Concern::Provider),
        (500, Transient, Concern::Provider),
        (529, Transient, Concern::Provider),
    ];
    for name in BOTH {
        for (status, class, concern) in cases {
            let refused = asked(name, model::Answer::http(status)).unwrap_err();
            assert_eq!((refused.class, refused.concern), (class, concern), "{name} {status}");
            assert_eq!(refused.message, format!("HTTP {status}: scripted {status}"));
            assert_eq!((refused.retry_after, refused.spent), (None, Spent::default()));
        }
    }
}

#[test]
fn a_time_to_wait_is_passed_on() {
    for name in BOTH {
        let refused = asked(name, model::Answer::http(429).retry_after(37)).unwrap_err();
        assert_eq!(refused.retry_after, Some(Duration::from_secs(37)));
    }
}

#[test]
fn an_answer_that_breaks_off_or_is_no_json_may_do_better_next_time() {
    let text = || model::Answer::text("<observation>whole</observation>");
    for name in BOTH {
        let broken = [text().cut(), text().short(), model::Answer::malformed()];
        for answer in broken {
            assert_eq!(asked(name, answer).unwrap_err().class, Transient, "{name}");
        }
        let page = model::Answer::raw(200, "text/html", "<html>Please log in</html>");
        let refused = asked(name, page).unwrap_err();
        assert!(refused.message.contains("is not JSON"), "{}", refused.message);
    }
}

#[test]
fn a_model_that_never_answers_is_given_up_at_the_limit() {
    for name in BOTH {
        for answer in [model::Answer::hang(), model::Answer::text("half of it").stall()] {
            let server = Server::start(Script::new().then(answer)).unwrap();
            let limits = Limits { time_max: Duration::from_millis(300), ..Limits::default() };
            let refused = provider(name, &server).ask(&Ask { limits, ..question() }).unwrap_err();
            assert_eq!((refused.class, refused.concern), (Transient, Concern::Question));
            assert!(refused.message.contains("did not answer within 300ms"), "{}", refused.message);
        }
    }
}

#[test]
fn a_body_without_end_is_not_read_to_its_end() {
    let huge = format!("{{\"content\": \"{}\"}}", "x".repeat(9 << 20));
    for name in BOTH {
        let refused = asked(name, model::Answer::raw(200, "application/json", &huge)).unwrap_err();
        assert_eq!(refused.class, Unreadable, "{}", refused.message);
    }
}

#[test]
fn a_machine_that_is_not_there_is_a_passing_failure() {
    for name in BOTH {
        let server = Server::start(Script::new()).unwrap();
        let provider = provider(name, &server);
        drop(server);
        let refused = provider.ask(&question()).unwrap_err();
        assert_eq!(refused.class, Transient);
        assert!(refused.message.contains("cannot be asked"), "{}", refused.message);
    }
}

#[test]
fn a_server_that_does_not_speak_tls_is_not_asked_in_the_clear() {
    let server = Server::start(Script::new()).unwrap();
    let url = server.url().replace("http://", "https://");
    let variables = [
        ("CLAUDE_MEM_ANTHROPIC_BASE_URL", url.as_str()),
        ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-test"),
    ];
    // The server waits for a line that a handshake does not have.
    let limits = Limits { time_max: Duration::from_millis(500), ..Limits::default() };
    let asked = open("anthropic", &variables).unwrap().ask(&Ask { limits, ..question() });
    assert_eq!(asked.unwrap_err().class, Transient);
    assert!(server.requests().iter().all(|request| request.header("x-api-key").is_none()));
}

#[test]
fn a_key_that_is_said_back_is_not_shown() {
    for name in BOTH {
        let told = model::Answer::error(401, "authentication_error", "bad key sk-test given");
        assert_eq!(asked(name, told).unwrap_err().message, "HTTP 401: bad key … given");
    }
}

#[test]
fn wrong_settings_are_one_clear_line() {
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
    let refused = openai.ask(&Ask { model: String::new(), ..question() }).unwrap_err();
    assert_eq!(refused.message, "no model to ask: set CLAUDE_MEM_OPENAI_MODEL");
    assert_eq!(refused.concern, Concern::Provider);
}
