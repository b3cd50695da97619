//! What the child makes of a service that fails, and we of a child that does.

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
        let world = World::new(Script::new().otherwise(model::Answer::http(status)));
        let claude = world.provider();
        let refusal = claude.ask(&question("s")).unwrap_err();
        assert_eq!(refusal.class, class, "{status}: {}", refusal.message);
        assert!(!refusal.message.is_empty() && refusal.reply.is_empty());
        world.assert_nobody_is_left();
        assert!(world.questions().len() <= 4, "{status}");
    }
}

#[test]
fn a_time_to_wait_ends_the_turn_instead_of_being_sat_out() {
    let refusal = refused(Script::new().otherwise(model::Answer::http(429).retry_after(37)));
    assert_eq!(refusal.class, RateLimit);
    let wait = refusal.retry_after.unwrap().as_secs();
    assert!((30..=45).contains(&wait), "{wait}");
}

#[test]
fn a_short_interruption_is_mended_by_the_client() {
    let whole = "<observation><title>whole</title></observation>";
    let text = || model::Answer::text(whole);
    let breaks = [text().cut(), text().short(), model::Answer::http(529)];
    for broken in breaks {
        let world = World::new(Script::new().then(broken.clone()).otherwise(text()));
        let answer = world.provider().ask(&question("s")).unwrap();
        assert_eq!(answer.text, whole, "{broken:?}");
    }
}

#[test]
fn a_stream_that_always_breaks_or_makes_no_sense_is_no_answer() {
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
fn a_model_that_never_answers_is_given_up_at_the_limit_with_its_child() {
    for silent in [model::Answer::hang(), model::Answer::text("half of it").stall()] {
        let world = World::new(Script::new().otherwise(silent));
        let claude = world.provider();
        let limits = Limits { time_max: Duration::from_secs(3), ..question("s").limits };
        let refusal = claude.ask(&Ask { limits, ..question("s") }).unwrap_err();
        assert_eq!((refusal.class, refusal.concern), (Transient, Concern::Question));
        assert!(refusal.message.contains("did not answer within 3"), "{}", refusal.message);
        world.assert_nobody_is_left();
    }
}

#[test]
fn an_empty_answer_is_unreadable_and_a_cut_one_is_an_answer() {
    let refusal = refused(Script::new().otherwise(model::Answer::empty()));
    assert_eq!(refusal.class, Unreadable);
    assert!(refusal.spent.tokens_in > 0);
    let cut = model::Answer::text("<observation>half").max_tokens();
    let world = World::new(Script::new().otherwise(cut));
    let answer = world.provider().ask(&question("s")).unwrap();
    assert_eq!((answer.text.as_str(), answer.is_cut), ("<observation>half", true));
    assert!(world.questions().len() <= 2, "it is not told to go on and on");
}

#[test]
fn a_program_that_is_not_the_client_is_one_clear_line() {
    let world = answering("");
    let line = |path: &str| {
        let world = answering("").with("CLAUDE_CODE_PATH", path);
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
    let nobody = world.with("PATH", "/nowhere").setup(|setup| find::executable(setup).map(drop));
    if let Err(refusal) = nobody {
        assert!(refusal.message.starts_with("no `claude` on the PATH"), "{}", refusal.message);
    }
}

#[test]
fn the_client_is_found_on_the_path_and_in_the_home_directory() {
    let world = answering("");
    let found = |world: &World| world.setup(|setup| find::executable(setup).unwrap());
    let bin = installed().parent().unwrap().to_owned();
    let node = env::split_paths(&env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let path = env::join_paths([bin.clone()].into_iter().chain(node)).unwrap();
    let world = world.with("PATH", path.to_str().unwrap());
    assert_eq!(found(&world), bin.join("claude"));
    let world = answering("");
    let local = world.client.home().join(".claude/local");
    fs::create_dir_all(&local).unwrap();
    std::os::unix::fs::symlink(installed(), local.join("claude")).unwrap();
    let world = world.with("PATH", "/nowhere");
    assert_eq!(found(&world), local.join("claude"));
}
