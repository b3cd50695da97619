//! `claude-mem distill`: from recorded events to memories, with models that work and models that
//! fail.

use std::{
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
};

use claude_mem_tools::model::{Answer, Gate, Request, Script, Server, Usage, When};
use serde_json::Value;

use crate::{
    model::{Session, answering, dump, provider, reply, run, titles},
    sandbox::Sandbox,
    serving::{Serving, until},
};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn one_call_for_each_turn_brings_observations_and_summaries() {
    for name in ["anthropic", "openai"] {
        let (sandbox, server) = (Sandbox::new(), answering("saw"));
        Session::worked(&sandbox, "a", 2);
        Session::worked(&sandbox, "b", 1);
        let variables = provider(name, &server);
        let printed = json(&run(&sandbox, &["distill", "--json"], &variables).ok());
        assert_eq!(printed["answered"], 3, "{printed}");
        assert_eq!((&printed["observations"], &printed["summaries"]), (&3.into(), &3.into()));
        assert!(printed["tokens_in"].as_u64().unwrap() > 0);
        assert_eq!(titles(&sandbox), ["saw work 1 of a", "saw work 1 of b", "saw work 2 of a"]);
        assert_eq!(server.requests().len(), 3);
        let again = json(&run(&sandbox, &["distill", "--json"], &variables).ok());
        assert_eq!((&again["answered"], server.requests().len()), (&0.into(), 3), "{name}");
    }
}

#[test]
fn a_machine_without_any_model_remembers_too() {
    for variables in [
        vec![("CLAUDE_MEM_PROVIDER".to_owned(), "extract".to_owned())],
        vec![("PATH".to_owned(), "/nowhere".to_owned())],
    ] {
        let sandbox = Sandbox::new();
        Session::worked(&sandbox, "a", 1);
        let printed = json(&run(&sandbox, &["distill", "--json"], &variables).ok());
        assert_eq!((&printed["provider"], &printed["summaries"]), (&"extract".into(), &1.into()));
        assert!(printed["observations"].as_u64().unwrap() > 0, "{printed}");
    }
}

#[test]
fn a_prompt_that_reads_as_no_text_is_not_parked_by_the_built_in_rules() {
    let sandbox = Sandbox::new();
    for (session, prompt) in ["none", "null", "n/a", "nil", "-"].iter().enumerate() {
        let send = |hook: &str, event: &str| {
            let payload = serde_json::json!({"session_id": session.to_string(), "prompt": prompt,
                "tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "ls"},
                "tool_response": "", "hook_event_name": event, "cwd": sandbox.home()});
            sandbox.hook(hook, payload.to_string());
        };
        send("new", "UserPromptSubmit");
        send("save", "PostToolUse");
        send("summary", "Stop");
    }
    let rules = [("CLAUDE_MEM_PROVIDER", "extract")];
    let printed = json(&sandbox.run_with(&["distill", "--json"], &rules, "").ok());
    assert_eq!((&printed["answered"], &printed["parked"]), (&5.into(), &0.into()), "{printed}");
}

#[test]
fn a_request_is_about_one_session_and_includes_a_recap() {
    let (sandbox, server) = (Sandbox::new(), answering("saw"));
    Session::worked(&sandbox, "alpha", 2);
    Session::worked(&sandbox, "beta", 2);
    run(&sandbox, &["distill"], &provider("anthropic", &server)).ok();
    let texts: Vec<String> = server.requests().iter().map(Request::last_user_text).collect();
    for text in &texts {
        assert_ne!(text.contains("alpha"), text.contains("beta"), "{text}");
    }
    let second = texts.iter().find(|text| text.contains("work 2 of alpha")).unwrap();
    assert!(second.contains("saw work 1 of alpha"), "{second}");
    assert!(second.trim_end().ends_with("in its place."), "recorded text is never last");
}

#[test]
fn a_turn_that_did_something_is_summed_up_although_the_model_forgot() {
    for text in ["<observation>Plain words. And more.</observation>", "<skip/>"] {
        let sandbox = Sandbox::new();
        let server = Server::answering(move |_| Answer::text(text)).unwrap();
        Session::worked(&sandbox, "a", 1);
        let printed = run(&sandbox, &["distill", "--json"], &provider("anthropic", &server)).ok();
        assert_eq!(json(&printed)["summaries"], 1, "{printed}");
        let shown = sandbox.run(&["show", "S1"]).ok();
        assert!(shown.contains("Work 1 of a") && shown.contains("a-1.rs"), "{shown}");
        let is_kept = text.contains("Plain");
        assert_eq!(titles(&sandbox) == ["Plain words."], is_kept);
    }
    // Declined with a reason: the model decided so.
    let sandbox = Sandbox::new();
    let server = Server::answering(|_| Answer::text("<skip_summary reason=\"x\"/>")).unwrap();
    Session::worked(&sandbox, "a", 1);
    let printed = run(&sandbox, &["distill", "--json"], &provider("anthropic", &server)).ok();
    assert_eq!(json(&printed)["summaries"], 0, "{printed}");
}

#[test]
fn a_correction_replaces_what_the_session_had_remembered() {
    let sandbox = Sandbox::new();
    let server = Server::answering(|request| {
        let text = request.last_user_text();
        let result = reply("saw", request);
        Answer::text(match () {
            // Distilled in another run than the first two.
            () if text.contains("\nwork 3 of") => {
                assert!(text.contains("feature: saw work 2 of a"), "{text}");
                assert!(!text.contains("feature: saw work 1 of a"), "{text}");
                result + "<corrects>saw work 2 of a</corrects>"
            }
            () if text.contains("\nwork 2 of") => {
                result.replace("</title>", "</title><corrects>Feature: saw work 1 of…</corrects>")
            }
            () => result,
        })
    })
    .unwrap();
    let variables = provider("anthropic", &server);
    let mut session = Session::worked(&sandbox, "a", 2);
    run(&sandbox, &["distill"], &variables).ok();
    assert_eq!(titles(&sandbox), ["saw work 2 of a"]);
    let shown = sandbox.run(&["show", "1"]).ok();
    assert!(shown.contains("(superseded by 2: saw work 2 of a)"), "{shown}");
    session.prompt("work 3 of a");
    session.tool();
    session.stop("done");
    run(&sandbox, &["distill"], &variables).ok();
    assert_eq!(titles(&sandbox), ["saw work 3 of a"]);
    let shown = json(&sandbox.run(&["show", "2", "--json"]).ok());
    assert_eq!(shown["is_superseded"], true);
    assert!(shown["correction"]["created_at"].is_string(), "{shown}");
    assert_eq!(shown["correction"]["id"], Value::Null, "only withdrawn");
    // A search names the correction, a list leaves out the corrected memory; a rebuild gives the
    // same rows.
    let listed = sandbox.run(&["search", "", "--type", "feature"]).ok();
    assert!(listed.contains("saw work 3") && !listed.contains("saw work 2"), "{listed}");
    let found = sandbox.run(&["search", "work", "--type", "feature"]).ok();
    assert!(found.contains("[superseded by #2] saw work 1"), "{found}");
    assert!(found.contains("[withdrawn] saw work 2") && found.contains("saw work 3"), "{found}");
    let before = dump(&sandbox.data());
    run(&sandbox, &["replay"], &variables).ok();
    assert_eq!(dump(&sandbox.data()), before);
}

#[test]
fn pending_events_wait_for_the_end_of_the_turn() {
    let (sandbox, server) = (Sandbox::new(), answering("saw"));
    let variables = provider("anthropic", &server);
    let mut session = Session::start(&sandbox, "a");
    session.prompt("work");
    session.tool();
    run(&sandbox, &["distill", "--due"], &variables).ok();
    assert_eq!(server.requests().len(), 0);
    session.tool();
    session.stop("done");
    run(&sandbox, &["distill", "--due"], &variables).ok();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_session_without_an_end_is_distilled_after_a_while() {
    let (sandbox, server) = (Sandbox::new(), answering("saw"));
    let mut session = Session::start(&sandbox, "a");
    session.prompt("work");
    session.tool();
    let mut variables = provider("anthropic", &server);
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(16);
    variables.push(("CLAUDE_MEM_NOW".into(), later.to_string()));
    run(&sandbox, &["distill", "--due"], &variables).ok();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn two_processes_at_once_ask_each_question_once() {
    let gate = Gate::new();
    let held = gate.clone();
    let server =
        Server::answering(move |request| Answer::text(reply("saw", request)).held_by(&held));
    let (sandbox, server) = (Sandbox::new(), server.unwrap());
    for id in ["a", "b", "c"] {
        Session::worked(&sandbox, id, 1);
    }
    let start = || {
        let mut command = sandbox.command(&["distill"]);
        command.envs(provider("anthropic", &server)).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let first = start();
    server.wait_for_requests(1);
    let second = start();
    gate.open();
    for process in [first, second] {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(server.requests().len(), 3);
    assert_eq!(titles(&sandbox).len(), 3);
}

#[test]
fn killed_while_asking_it_repeats_only_the_questions_under_way() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::answering(move |request| {
        let answer = Answer::text(reply("saw", request));
        if request.last_user_text().contains("work 2") { answer.held_by(&held) } else { answer }
    });
    let (sandbox, server) = (Sandbox::new(), server.unwrap());
    Session::worked(&sandbox, "a", 3);
    let variables = provider("anthropic", &server);
    let mut command = sandbox.command(&["distill"]);
    command.envs(variables.clone()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    server.wait_for_requests(2);
    process.kill().unwrap();
    process.wait().unwrap();
    gate.open();
    run(&sandbox, &["distill"], &variables).ok();
    let asked: Vec<String> = server.requests().iter().map(|r| reply("", r)).collect();
    let times = |turn: &str| asked.iter().filter(|text| text.contains(turn)).count();
    assert_eq!((times("work 1"), times("work 2"), times("work 3")), (1, 2, 1));
    assert_eq!(titles(&sandbox).len(), 3);
}

#[test]
fn a_provider_that_fails_for_a_while_is_retried() {
    let good = "<observation><title>x</title></observation>";
    for (name, bad) in [
        ("429", Answer::http(429).retry_after(1)),
        ("500", Answer::http(500)),
        ("529", Answer::http(529)),
        ("cut", Answer::text(good).cut()),
        ("malformed", Answer::malformed()),
    ] {
        let server = Server::start(Script::new().then(bad).then(Answer::text(good))).unwrap();
        let sandbox = Sandbox::new();
        Session::worked(&sandbox, "a", 1);
        let variables = provider("anthropic", &server);
        let error = run(&sandbox, &["distill", "--wait", "0"], &variables).fails(1);
        assert!(error.contains("anthropic is unavailable"), "{name}: {error}");
        assert_eq!(server.requests().len(), 1, "{name}");
        run(&sandbox, &["distill"], &variables).ok();
        assert_eq!(titles(&sandbox), ["x"], "{name}");
    }
}

#[test]
fn a_wrong_key_an_empty_account_and_a_wrong_model_stop_asking_and_lose_nothing() {
    for (status, kind, word) in [
        (401, "authentication_error", "authentication failed"),
        (402, "billing_error", "quota exhausted"),
        (404, "not_found_error", "HTTP 404"),
    ] {
        let bad = Answer::error(status, kind, "model: nope");
        let server = Server::start(Script::new().otherwise(bad)).unwrap();
        let sandbox = Sandbox::new();
        for id in ["a", "b", "c", "d"] {
            Session::worked(&sandbox, id, 1);
        }
        for _ in 0..4 {
            let variables = provider("anthropic", &server);
            let error = run(&sandbox, &["distill"], &variables).fails(1);
            assert!(error.contains(word), "{status}: {error}");
        }
        assert!(server.requests().len() <= 8, "two sessions side by side, four times");
        let (repaired, before) = (answering("saw"), server.requests().len());
        run(&sandbox, &["distill"], &provider("anthropic", &repaired)).ok();
        assert_eq!(
            (repaired.requests().len(), titles(&sandbox).len()),
            (4, 4),
            "{status} {before}"
        );
    }
}

#[test]
fn a_missing_key_is_reported_in_one_line() {
    let sandbox = Sandbox::new();
    Session::worked(&sandbox, "a", 1);
    let variables = [("CLAUDE_MEM_PROVIDER".to_owned(), "anthropic".to_owned())];
    let error = run(&sandbox, &["distill"], &variables).fails(1);
    let expected = "error: anthropic is unavailable: authentication failed: the anthropic \
        provider has no key: set CLAUDE_MEM_ANTHROPIC_API_KEY\n";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn an_unreadable_response_is_parked_after_three_attempts_until_retry() {
    let prose = Answer::text("I am sorry, I can only chat.");
    let script = Script::new()
        .when(When::new().text("work 2"), Answer::text("<skip/>"))
        .then(prose.clone())
        .then(prose.clone())
        .then(prose)
        .then(Answer::text("<observation><title>at last</title></observation>"));
    let (sandbox, server) = (Sandbox::new(), Server::start(script).unwrap());
    Session::worked(&sandbox, "a", 2);
    let variables = provider("openai", &server);
    let error = run(&sandbox, &["distill"], &variables).fails(1);
    assert!(error.contains("1 request failed repeatedly: cannot parse"), "{error}");
    assert_eq!(server.requests().len(), 4, "the next turn was distilled nevertheless");
    run(&sandbox, &["distill"], &variables).ok();
    assert_eq!(server.requests().len(), 4);
    let listed = run(&sandbox, &["retry", "--list"], &variables).ok();
    assert_eq!(listed, "a prompt 1: 4 events, sent 3 times\n");
    run(&sandbox, &["retry", "other"], &variables).ok();
    assert_eq!(server.requests().len(), 4);
    run(&sandbox, &["retry"], &variables).ok();
    assert_eq!(titles(&sandbox), ["at last"]);
    assert_eq!(run(&sandbox, &["retry", "--list"], &variables).ok(), "");
}

#[test]
fn a_response_without_elements_can_say_that_there_is_nothing_and_an_empty_form_is_repeated_once() {
    let blank = "<observation><type></type><title></title></observation>";
    let cases = [("Nothing to record here.", 1), (blank, 2)];
    for (text, requests) in cases {
        let script = Script::new().then(Answer::text(text)).then(Answer::text(text));
        let (sandbox, server) = (Sandbox::new(), Server::start(script).unwrap());
        Session::worked(&sandbox, "a", 1);
        let variables = provider("openai", &server);
        let printed = json(&run(&sandbox, &["distill", "--json"], &variables).ok());
        assert_eq!((&printed["answered"], &printed["parked"]), (&1.into(), &0.into()), "{text}");
        assert_eq!(server.requests().len(), requests, "{text}");
        assert_eq!(titles(&sandbox), [""; 0]);
    }
}

#[test]
fn a_request_that_always_times_out_is_parked_until_it_is_retried() {
    let mut script = Script::new();
    for _ in 0..5 {
        script = script.then(Answer::hang());
    }
    let script = script.then(Answer::text("<observation><title>at last</title></observation>"));
    let (sandbox, server) = (Sandbox::new(), Server::start(script).unwrap());
    Session::worked(&sandbox, "a", 1);
    let mut variables = provider("openai", &server);
    variables.push(("CLAUDE_MEM_REQUEST_TIMEOUT".to_owned(), "1".to_owned()));
    for attempt in 1..5 {
        let error = run(&sandbox, &["distill", "--wait", "0"], &variables).fails(1);
        assert!(error.contains("did not respond within 1s"), "{error}");
        assert_eq!(server.requests().len(), attempt);
        assert_eq!(run(&sandbox, &["retry", "--list"], &variables).ok(), "");
    }
    let error = run(&sandbox, &["distill", "--wait", "0"], &variables).fails(1);
    assert!(error.contains("1 request failed repeatedly: "), "{error}");
    run(&sandbox, &["distill"], &variables).ok();
    assert_eq!(server.requests().len(), 5, "parked events are not sent");
    let listed = run(&sandbox, &["retry", "--list"], &variables).ok();
    assert_eq!(listed, "a prompt 1: 4 events, sent 5 times\n");
    run(&sandbox, &["retry"], &variables).ok();
    assert_eq!(titles(&sandbox), ["at last"]);
    assert_eq!(run(&sandbox, &["retry", "--list"], &variables).ok(), "");
}

#[test]
fn above_the_days_cap_everything_waits_for_the_next_day() {
    let usage = Usage { input: 9000, output: 1000, ..Usage::default() };
    let server = Server::answering(move |request| Answer::text(reply("saw", request)).usage(usage));
    let (sandbox, server) = (Sandbox::new(), server.unwrap());
    Session::worked(&sandbox, "a", 5);
    // A request takes 10 000 tokens, which cost 1.4 cents, and may take 4.4 cents.
    for (name, value) in [("TOKENS", "25000"), ("COST", "0.065")] {
        let before = server.requests().len();
        let mut variables = provider("anthropic", &server);
        let tomorrow = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(48);
        let moment = if name == "COST" { tomorrow } else { jiff::Timestamp::now() };
        variables.push((format!("CLAUDE_MEM_DAILY_{name}_MAX"), value.into()));
        variables.push(("CLAUDE_MEM_NOW".into(), moment.to_string()));
        let printed = run(&sandbox, &["distill"], &variables);
        assert_eq!(printed.code, 0, "{printed:?}");
        assert!(printed.stderr.contains("a day are spent; a request may take"), "{printed:?}");
        assert!(printed.stderr.contains("; the rest stays pending until tomorrow"), "{printed:?}");
        assert_eq!(server.requests().len() - before, 2, "{name}: a third has no room");
        run(&sandbox, &["distill"], &variables).ok();
        assert_eq!(server.requests().len() - before, 2, "{name}: still the same day");
    }
}

#[test]
fn the_daily_cap_is_respected_with_concurrent_agents() {
    // The list price of these tokens is 40 cents.
    let usage = Usage { input: 400_000, output: 0, ..Usage::default() };
    let server = Server::answering(move |request| Answer::text(reply("saw", request)).usage(usage));
    let (sandbox, server) = (Sandbox::new(), server.unwrap());
    for id in ["a", "b", "c", "d", "e", "f"] {
        Session::worked(&sandbox, id, 1);
    }
    let spent = || {
        let printed = sandbox.run(&["costs", "--json"]).ok();
        json(printed.lines().last().unwrap())["cost_usd"].as_f64().unwrap()
    };
    let mut variables = provider("anthropic", &server);
    variables.push(("CLAUDE_MEM_DAILY_TOKENS_MAX".into(), "0".into()));
    variables.push(("CLAUDE_MEM_MAX_CONCURRENT_AGENTS".into(), "4".into()));
    for (cap, requests) in [("1.00", 2), ("1.50", 3)] {
        let mut variables = variables.clone();
        variables.push(("CLAUDE_MEM_DAILY_COST_MAX".into(), cap.into()));
        let printed = run(&sandbox, &["distill"], &variables);
        assert!(
            printed.stderr.contains("a day are spent; a request may take $0.40"),
            "{printed:?}"
        );
        assert_eq!(server.requests().len(), requests, "{cap}");
        assert!(spent() <= cap.parse().unwrap(), "{} of {cap}", spent());
    }
    variables.push(("CLAUDE_MEM_DAILY_COST_MAX".into(), "2.10".into()));
    let borrowed: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let _serving = Serving::start(&sandbox, &borrowed);
    until(|| {
        let printed = sandbox.run(&["status"]).ok();
        printed.contains("$2.00 of $2.10 a day are spent; a request may take $0.40")
    });
    assert_eq!(server.requests().len(), 5, "{}", spent());
}

#[test]
fn the_daily_cap_is_respected_when_responses_grow() {
    // 600 tokens at first, then as many as the request allows: 4 cents each.
    let answered = AtomicU64::new(0);
    let server = Server::answering(move |request| {
        let is_first = answered.fetch_add(1, Ordering::Relaxed) < 2;
        let output = if is_first { 600 } else { 8192 };
        Answer::text(reply("saw", request)).usage(Usage { input: 2000, output, ..Usage::default() })
    });
    let (sandbox, server) = (Sandbox::new(), server.unwrap());
    for id in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        Session::worked(&sandbox, id, 1);
    }
    let mut variables = provider("anthropic", &server);
    variables.push(("CLAUDE_MEM_MAX_CONCURRENT_AGENTS".into(), "8".into()));
    variables.push(("CLAUDE_MEM_DAILY_COST_MAX".into(), "0.15".into()));
    let printed = run(&sandbox, &["distill"], &variables);
    assert!(printed.stderr.contains("a day are spent; a request may take $0.0"), "{printed:?}");
    let requests = server.requests().len();
    assert!((3..=5).contains(&requests), "{requests} requests");
    let printed = sandbox.run(&["costs", "--json"]).ok();
    let spent = json(printed.lines().last().unwrap())["cost_usd"].as_f64().unwrap();
    assert!(spent <= 0.15, "{spent}");
}

#[test]
fn costs_are_shown_by_day_project_and_model() {
    let usage = Usage { input: 1_000_000, output: 0, ..Usage::default() };
    let server = Server::answering(move |request| Answer::text(reply("saw", request)).usage(usage));
    let (sandbox, server) = (Sandbox::new(), server.unwrap());
    assert_eq!(sandbox.run(&["costs"]).ok(), "no requests yet\n");
    Session::worked(&sandbox, "a", 1);
    run(&sandbox, &["distill"], &provider("anthropic", &server)).ok();
    for by in ["day", "project", "model"] {
        let printed = sandbox.run(&["costs", "--by", by, "--json"]).ok();
        let lines: Vec<Value> = printed.lines().map(json).collect();
        assert_eq!(lines.len(), 2, "{printed}");
        assert_eq!(lines[0]["cost_usd"], 1.0, "{printed}");
        assert_eq!(lines[0]["cost_usd_per_observation"], 1.0);
        assert_eq!((&lines[0]["tokens_in"], &lines[1][by]), (&1_000_000.into(), &"total".into()));
    }
    let shown = sandbox.run(&["costs"]).ok();
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = shown.lines().map(columns).collect();
    assert_eq!(lines[0][..3], ["cost", "tokens", "responses"], "{shown}");
    assert_eq!(lines[1][1..4], ["$1.00", "1.0M", "1"], "{shown}");
}

#[test]
fn the_status_shows_pending_events_and_blockers() {
    let (sandbox, server) = (Sandbox::new(), Server::answering(|_| Answer::http(401)).unwrap());
    sandbox.run(&["search", "anything"]).ok();
    Session::worked(&sandbox, "a", 1);
    let shown = sandbox.run(&["status"]).ok();
    assert!(shown.contains("0 observations, 0 summaries; 6 events not indexed yet"), "{shown}");
    run(&sandbox, &["distill"], &provider("anthropic", &server)).fails(1);
    let printed = json(&sandbox.run(&["status", "--json"]).ok())["memory"].take();
    assert_eq!(
        (&printed["outstanding"], &printed["trouble"]["class"]),
        (&4.into(), &"auth".into())
    );
    let shown = sandbox.run(&["status"]).ok();
    let line = "provider  anthropic fails: HTTP 401: scripted 401, next attempt ";
    assert!(shown.contains(line), "{shown}");
    assert!(shown.contains("0 observations, 0 summaries; 4 events pending"), "{shown}");
    run(&sandbox, &["distill"], &provider("anthropic", &answering("saw"))).ok();
    let shown = sandbox.run(&["status"]).ok();
    assert!(
        shown.contains("1 observation, 1 summary\n") && !shown.contains("provider "),
        "{shown}"
    );
}
