//! `claude-mem replay` and `claude-mem diff`: rebuilding and distilling again.

use std::{
    fs,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use claude_mem_tools::model::{Answer, Gate, Request, Server};
use serde_json::Value;

use crate::{
    folders::copy_folder,
    model::{Session, answering, dump, provider, reply, run, titles},
    sandbox::Sandbox,
};

/// Two sessions, three turns, answered by a model that responds with `word`.
fn remembered(word: &'static str) -> Sandbox {
    let (sandbox, server) = (Sandbox::new(), answering(word));
    Session::worked(&sandbox, "a", 2);
    Session::worked(&sandbox, "b", 1);
    run(&sandbox, &["distill"], &provider("anthropic", &server)).ok();
    assert_eq!(server.requests().len(), 3);
    sandbox.write("new.txt", "Tell what happened in {{types}} words.");
    sandbox
}

#[test]
fn a_deleted_database_is_rebuilt_byte_for_byte_without_requests() {
    let sandbox = remembered("saw");
    let before = dump(&sandbox.data());
    assert!(before.contains("saw work 2 of a"));
    sandbox.delete_database();
    // The provider is available, but is not called.
    let server = answering("other");
    let variables = provider("anthropic", &server);
    run(&sandbox, &["replay", "--offline"], &variables).ok();
    assert_eq!(dump(&sandbox.data()), before);
    run(&sandbox, &["replay"], &variables).ok();
    assert_eq!(dump(&sandbox.data()), before);
    let elsewhere = Sandbox::new();
    copy_folder(&sandbox.data().join("log"), &elsewhere.data().join("log"));
    run(&elsewhere, &["replay", "--offline"], &variables).ok();
    assert_eq!(dump(&elsewhere.data()), before);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn without_replay_a_deleted_database_is_a_non_event_too() {
    let sandbox = remembered("saw");
    let before = dump(&sandbox.data());
    sandbox.delete_database();
    let server = answering("other");
    run(&sandbox, &["distill"], &provider("anthropic", &server)).ok();
    assert_eq!((dump(&sandbox.data()), server.requests().len()), (before, 0));
}

#[test]
fn a_new_prompt_sends_one_request_per_turn_and_going_back_sends_none() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    let variables = provider("anthropic", &server);
    let arguments = ["replay", "--prompt", "new.txt"];
    run(&sandbox, &arguments, &variables).ok();
    assert_eq!(server.requests().len(), 3);
    assert!(server.requests().iter().all(|r| r.system_text().contains("Tell what happened")));
    assert_eq!(titles(&sandbox), ["new work 1 of a", "new work 1 of b", "new work 2 of a"]);
    let folded = dump(&sandbox.data());
    run(&sandbox, &arguments, &variables).ok();
    assert_eq!(server.requests().len(), 3, "every reply under that prompt is recorded");
    assert_eq!(dump(&sandbox.data()), folded);
    run(&sandbox, &["replay", "--prompt", "default"], &variables).ok();
    assert_eq!(server.requests().len(), 3);
    assert_eq!(titles(&sandbox), ["saw work 1 of a", "saw work 1 of b", "saw work 2 of a"]);
}

#[test]
fn replay_alone_rebuilds_the_current_rows_byte_for_byte_with_any_settings() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    let mut variables = provider("anthropic", &server);
    run(&sandbox, &["replay", "--since", "1d", "--prompt", "new.txt"], &variables).ok();
    assert_eq!(titles(&sandbox), ["new work 1 of a", "new work 1 of b", "new work 2 of a"]);
    let before = dump(&sandbox.data());
    variables.push(("CLAUDE_MEM_VERBOSITY".into(), "verbose".into()));
    variables.push(("CLAUDE_MEM_MODEL".into(), "claude-sonnet-4-5".into()));
    for provider in ["anthropic", "extract"] {
        variables.push(("CLAUDE_MEM_PROVIDER".into(), provider.into()));
        sandbox.delete_database();
        run(&sandbox, &["replay"], &variables).ok();
        assert_eq!(dump(&sandbox.data()), before, "{provider}");
    }
    let output = run(&sandbox, &["replay", "--dry-run", "--json"], &variables).ok();
    let output: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&output["calls"], &output["generation"]), (&0.into(), &Value::Null), "{output}");
    assert_eq!(server.requests().len(), 3, "no request was sent since");
}

#[test]
fn an_adopted_prompt_stays_current_until_it_is_withdrawn() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    let variables = provider("anthropic", &server);
    let asks_as_adopted = |name: &str| {
        let before = server.requests().len();
        Session::worked(&sandbox, name, 1);
        run(&sandbox, &["distill"], &variables).ok();
        let asked = server.requests().split_off(before);
        assert_eq!(asked.len(), 1);
        asked[0].system_text().contains("Tell what happened")
    };
    let in_force = || -> String {
        let status = run(&sandbox, &["status", "--json"], &variables).ok();
        serde_json::from_str::<Value>(&status).unwrap()["prompt"].as_str().unwrap().to_owned()
    };
    run(&sandbox, &["replay", "--prompt", "new.txt", "--shadow"], &variables).ok();
    assert!(!asks_as_adopted("c"), "a shadow changes nothing");
    assert_eq!(in_force(), "built-in");
    run(&sandbox, &["replay", "--adopt", "1"], &variables).ok();
    assert!(asks_as_adopted("d"));
    assert_eq!(in_force(), "adopted");
    assert!(run(&sandbox, &["status"], &variables).ok().contains("prompts/adopted.txt"));
    // Requests answered under it are not sent again when everything is reprocessed with it.
    let before = server.requests().len();
    run(&sandbox, &["replay", "--since", "1970-01-01"], &variables).ok();
    assert_eq!(server.requests().len(), before + 1, "only what the shadow did not know of");
    run(&sandbox, &["replay", "--adopt", "0"], &variables).ok();
    assert_eq!(in_force(), "built-in");
    assert!(!asks_as_adopted("e"));
    run(&sandbox, &["replay", "--prompt", "new.txt", "--session", "a"], &variables).ok();
    assert!(asks_as_adopted("f"));
    sandbox.write(".claude-mem/prompts/init.txt", "Mine, and not adopted. {{record}}");
    assert!(asks_as_adopted("g"), "it wins over the user's own file, which is left as it is");
    run(&sandbox, &["replay", "--prompt", "default", "--session", "a"], &variables).ok();
    assert_eq!(in_force(), "own");
    assert!(!asks_as_adopted("h"));
}

#[test]
fn a_new_generation_builds_on_itself_not_on_the_old_one() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    run(&sandbox, &["replay", "--prompt", "new.txt"], &provider("anthropic", &server)).ok();
    let texts: Vec<String> = server.requests().iter().map(Request::last_user_text).collect();
    let second = texts.iter().find(|text| text.contains("work 2 of a")).unwrap();
    assert!(second.contains("new work 1 of a") && !second.contains("saw"), "{second}");
    assert!(texts.iter().all(|text| !text.contains("saw work")));
}

#[test]
fn an_interrupted_replay_continues_and_repeats_no_request() {
    let gate = Gate::new();
    let (held, answered) = (gate.clone(), Arc::new(AtomicUsize::new(0)));
    let (counted, was_held) = (Arc::clone(&answered), AtomicBool::new(false));
    let server = Server::answering(move |request| {
        let answer = Answer::text(reply("new", request));
        // The first request about that turn gets no response: its sender is killed before.
        if request.last_user_text().contains("work 2") && !was_held.swap(true, Ordering::SeqCst) {
            return answer.held_by(&held);
        }
        counted.fetch_add(1, Ordering::SeqCst);
        answer
    });
    let (sandbox, server) = (remembered("saw"), server.unwrap());
    let variables = provider("anthropic", &server);
    let arguments = ["replay", "--prompt", "new.txt", "--concurrency", "1", "--fresh"];
    let mut command = sandbox.command(&arguments);
    command.envs(variables.clone()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    server.wait_for_requests(2);
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(titles(&sandbox).iter().all(|title| title.starts_with("saw")), "nothing half shown");
    gate.open();
    let output = run(&sandbox, &arguments, &variables);
    assert!(output.stderr.contains("continuing generation 1"), "{output:?}");
    output.ok();
    assert_eq!(answered.load(Ordering::SeqCst), 3, "each turn was answered once");
    assert_eq!(server.requests().len(), 4, "only the one under way was asked again");
    assert_eq!(titles(&sandbox), ["new work 1 of a", "new work 1 of b", "new work 2 of a"]);
    run(&sandbox, &arguments, &variables).ok();
    assert_eq!(server.requests().len(), 7, "another fresh one asks everything anew");
}

#[test]
fn a_dry_run_shows_an_estimate_and_sends_no_request() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    let variables = provider("anthropic", &server);
    let arguments = ["replay", "--prompt", "new.txt", "--dry-run", "--json"];
    let output: Value = serde_json::from_str(&run(&sandbox, &arguments, &variables).ok()).unwrap();
    assert_eq!((&output["events"], &output["calls"]), (&12.into(), &3.into()), "{output}");
    assert!(
        output["tokens_in"].as_u64().unwrap() > 300 && output["cost_usd"].as_f64().unwrap() > 0.0
    );
    let printed = run(&sandbox, &["replay", "--prompt", "new.txt", "--dry-run"], &variables).ok();
    assert!(printed.contains("12 events") && printed.contains("3 calls"), "{printed}");
    let session = ["replay", "--prompt", "new.txt", "--dry-run", "--json", "--session", "b"];
    let output: Value = serde_json::from_str(&run(&sandbox, &session, &variables).ok()).unwrap();
    assert_eq!((&output["events"], &output["calls"]), (&4.into(), &1.into()), "{output}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn only_the_chosen_session_project_and_time_are_reprocessed() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    let variables = provider("anthropic", &server);
    run(&sandbox, &["replay", "--prompt", "new.txt", "--session", "b"], &variables).ok();
    assert_eq!(titles(&sandbox), ["new work 1 of b", "saw work 1 of a", "saw work 2 of a"]);
    run(&sandbox, &["replay", "--prompt", "new.txt", "--until", "1d"], &variables).ok();
    assert_eq!(server.requests().len(), 1, "nothing is that old");
    run(&sandbox, &["replay", "--prompt", "new.txt", "--project", "."], &variables).ok();
    assert_eq!(server.requests().len(), 3, "the earlier session is not distilled again");
    for (flag, value) in [("--session", "zzz"), ("--project", "zzz")] {
        let error = run(&sandbox, &["replay", flag, value], &variables).fails(2);
        assert!(error.contains("there is no recorded"), "{error}");
    }
}

#[test]
fn a_named_model_is_used() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    let variables = provider("anthropic", &server);
    run(&sandbox, &["replay", "--model", "claude-haiku-4-5"], &variables).ok();
    assert_eq!(server.requests().len(), 0);
    run(&sandbox, &["replay", "--model", "claude-sonnet-4-5"], &variables).ok();
    assert!(server.requests().iter().all(|request| request.model() == "claude-sonnet-4-5"));
    assert_eq!((server.requests().len(), titles(&sandbox)[0].as_str()), (3, "new work 1 of a"));
}

#[test]
fn a_shadow_is_compared_before_it_is_shown() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    let variables = provider("anthropic", &server);
    run(&sandbox, &["replay", "--prompt", "new.txt", "--shadow"], &variables).ok();
    assert!(titles(&sandbox).iter().all(|title| title.starts_with("saw")));
    let before = sandbox.run(&["diff"]).ok();
    let head =
        "generation 1 against the previous memories: 0 gone, 0 new, 3 reworded, 0 the same\n";
    assert!(before.starts_with(head), "{before}");
    let pair = "~  feature  saw work 1 of a\n   feature  new work 1 of a\n";
    assert!(before.contains(pair), "{before}");
    sandbox.run(&["replay", "--adopt", "1"]).ok();
    assert!(titles(&sandbox).iter().all(|title| title.starts_with("new")));
    assert_eq!(sandbox.run(&["diff", "1"]).ok(), before, "the same before and after");
    let output = sandbox.run(&["diff", "0", "1", "--json"]).ok();
    let changes: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(changes.len(), 3);
    assert_eq!(changes[0]["before"]["title"], "saw work 1 of a");
    sandbox.run(&["replay", "--adopt", "0"]).ok();
    assert!(titles(&sandbox).iter().all(|title| title.starts_with("saw")));
    sandbox.run(&["replay", "--adopt", "7"]).fails(2);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn exceeding_the_daily_cap_needs_confirmation() {
    let (sandbox, server) = (remembered("saw"), answering("new"));
    let mut variables = provider("anthropic", &server);
    variables.push(("CLAUDE_MEM_DAILY_TOKENS_MAX".into(), "100".into()));
    let error = run(&sandbox, &["replay", "--prompt", "new.txt"], &variables).fails(1);
    assert!(error.contains("exceed the daily cap"), "{error}");
    assert_eq!(server.requests().len(), 0);
    run(&sandbox, &["replay", "--prompt", "new.txt", "--yes"], &variables).ok();
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_failing_provider_changes_nothing_and_shows_how_to_continue() {
    let sandbox = remembered("saw");
    let server = Server::answering(|_| Answer::http(401)).unwrap();
    let error =
        run(&sandbox, &["replay", "--prompt", "new.txt"], &provider("anthropic", &server)).fails(1);
    assert!(error.contains("3 requests of 3 are pending"), "{error}");
    assert!(
        error.contains("generation 1 is incomplete; the current memories are unchanged"),
        "{error}"
    );
    assert!(titles(&sandbox).iter().all(|title| title.starts_with("saw")));
    let repaired = answering("new");
    run(&sandbox, &["replay", "--prompt", "new.txt"], &provider("anthropic", &repaired)).ok();
    assert!(titles(&sandbox).iter().all(|title| title.starts_with("new")));
}

#[test]
fn damage_sets_the_exit_code_unless_it_is_accepted() {
    let sandbox = remembered("saw");
    let file = sandbox.data().join("log/active.log");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&file, bytes).unwrap();
    let error = sandbox.run(&["replay", "--offline"]).fails(1);
    assert!(error.contains("damaged in 1 place\n"), "{error}");
    sandbox.run(&["replay", "--offline", "--allow-gaps"]).ok();
    assert!(!titles(&sandbox).is_empty(), "everything else is there");
}

#[test]
fn a_failing_replay_names_the_reason_and_its_diff_says_that_it_is_incomplete() {
    let sandbox = remembered("saw");
    let server = Server::answering(|_| Answer::text("As you wish.")).unwrap();
    let variables = provider("openai", &server);
    let error = run(&sandbox, &["replay", "--fresh", "--shadow"], &variables).fails(1);
    assert!(error.contains("3 requests of 3 failed: cannot parse the response of"), "{error}");
    let diff = run(&sandbox, &["diff"], &variables);
    assert!(diff.stderr.contains("generation 1 is incomplete"), "{diff:?}");
}

#[test]
fn the_built_in_rules_have_no_prompt_to_replay_with() {
    let sandbox = remembered("saw");
    let rules = [("CLAUDE_MEM_PROVIDER".to_owned(), "extract".to_owned())];
    let replay = ["replay", "--since", "1d", "--prompt", "new.txt"];
    let error = run(&sandbox, &replay, &rules).fails(2);
    assert!(error.contains("the built-in rules have no prompt"), "{error}");
    run(&sandbox, &["replay", "--since", "1d"], &rules).ok();
    let again = run(&sandbox, &["replay", "--since", "1d", "--dry-run"], &rules).ok();
    assert!(again.contains("nothing to reprocess, all are distilled by this version"), "{again}");
}
