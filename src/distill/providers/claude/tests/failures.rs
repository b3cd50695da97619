//! Failures of the service that the child calls, and of the child itself.

use claude_mem_events::FailureClass::{Auth, Invalid, RateLimit, Transient, Unreadable};

use super::*;

#[test]
fn every_failure_of_the_service_has_its_class_and_ends_the_child() {
    let cases: [(u16, FailureClass); 7] = [
        (400, Invalid),
        (401, Auth),
        (403, Auth),
        (404, Invalid),
        (429, RateLimit),
        (500, Transient),
        (529, Transient),
    ];
    for (status, class) in cases {
        let world = Fixture::new(Script::new().otherwise(model::Answer::http(status)));
        let claude = world.provider();
        let refusal = claude.send(&request("s")).unwrap_err();
        assert_eq!(refusal.class, class, "{status}: {}", refusal.message);
        assert!(!refusal.message.is_empty() && refusal.reply.is_empty());
        world.assert_no_process_is_left();
        assert!(world.requests().len() <= 4, "{status}");
    }
}

#[test]
fn a_retry_after_ends_the_turn_at_once() {
    let refusal = refused(Script::new().otherwise(model::Answer::http(429).retry_after(37)));
    assert_eq!(refusal.class, RateLimit);
    let wait = refusal.retry_after.unwrap().as_secs();
    assert!((30..=45).contains(&wait), "{wait}");
}

#[test]
fn the_client_retries_after_a_short_interruption() {
    let whole = "<observation><title>whole</title></observation>";
    let text = || model::Answer::text(whole);
    let breaks = [text().cut(), text().short(), model::Answer::http(529)];
    for broken in breaks {
        let world = Fixture::new(Script::new().then(broken.clone()).otherwise(text()));
        let response = world.provider().send(&request("s")).unwrap();
        assert_eq!(response.text, whole, "{broken:?}");
    }
}

#[test]
fn a_broken_or_malformed_stream_is_not_a_response() {
    let text = || model::Answer::text("<observation>some</observation>");
    for broken in [text().cut(), model::Answer::malformed()] {
        let refusal = refused(Script::new().otherwise(broken.clone()));
        assert!(
            matches!(refusal.class, Transient | Unreadable),
            "{broken:?}: {:?} {}",
            refusal.class,
            refusal.message
        );
    }
}

#[test]
fn a_silent_model_and_its_child_are_ended_at_the_time_limit() {
    for silent in [model::Answer::hang(), model::Answer::text("half of it").stall()] {
        let world = Fixture::new(Script::new().otherwise(silent));
        let claude = world.provider();
        let limits = Limits { time_max: Duration::from_secs(3), ..request("s").limits };
        let refusal = claude.send(&Request { limits, ..request("s") }).unwrap_err();
        assert_eq!((refusal.class, refusal.concern), (Transient, Concern::Request));
        assert!(refusal.message.contains("did not respond within 3"), "{}", refusal.message);
        world.assert_no_process_is_left();
    }
}

#[test]
fn an_empty_response_is_unreadable_and_a_truncated_one_is_kept() {
    let refusal = refused(Script::new().otherwise(model::Answer::empty()));
    assert_eq!(refusal.class, Unreadable);
    assert!(refusal.spent.tokens_in > 0);
    let cut = model::Answer::text("<observation>half").max_tokens();
    let world = Fixture::new(Script::new().otherwise(cut));
    let response = world.provider().send(&request("s")).unwrap();
    assert_eq!((response.text.as_str(), response.is_cut), ("<observation>half", true));
    assert!(world.requests().len() <= 2, "it is not asked to continue");
}

#[test]
fn a_program_that_is_not_the_client_gives_a_one_line_error() {
    let world = responding("");
    let line = |path: &str| {
        let world = responding("").with("CLAUDE_CODE_PATH", path);
        world.setup(|setup| open(setup).err().unwrap())
    };
    let missing = line("/nowhere/claude");
    assert_eq!(
        missing.message,
        "CLAUDE_CODE_PATH=/nowhere/claude: No such file or directory (os error 2)"
    );
    assert_eq!(missing.concern, Concern::Provider);
    assert!(line("/bin/true").message.contains("/bin/true: is not Claude Code"));
    assert!(line("/etc/passwd").message.contains("cannot be run: Permission denied"));
    let found = world.with("PATH", "/nowhere").setup(|setup| find::executable(setup).map(drop));
    if let Err(refusal) = found {
        assert!(refusal.message.starts_with("no `claude` on the PATH"), "{}", refusal.message);
    }
}

#[test]
fn the_client_is_found_on_the_path_and_in_the_home_directory() {
    let world = responding("");
    let found = |world: &Fixture| world.setup(|setup| find::executable(setup).unwrap());
    let bin = installed().parent().unwrap().to_owned();
    let node = env::split_paths(&env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let path = env::join_paths([bin.clone()].into_iter().chain(node)).unwrap();
    let world = world.with("PATH", path.to_str().unwrap());
    assert_eq!(found(&world), bin.join("claude"));
    let world = responding("");
    let local = world.client.home().join(".claude/local");
    fs::create_dir_all(&local).unwrap();
    std::os::unix::fs::symlink(installed(), local.join("claude")).unwrap();
    let world = world.with("PATH", "/nowhere");
    assert_eq!(found(&world), local.join("claude"));
}
