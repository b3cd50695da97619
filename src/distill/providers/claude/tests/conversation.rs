//! Which child gets a request, and what is sent to it.

use claude_mem_tools::model::{Block, Usage};

use super::*;

#[test]
fn a_conversation_continues_in_one_child_with_only_our_text() {
    let usage = Usage { input: 100, output: 20, cache_creation: 30, cache_read: 50 };
    let blocks = [Block::Text("<one/>".into()), Block::Text("<two/>".into())];
    let script = Script::new()
        .then(model::Answer::blocks(blocks).usage(usage))
        .then(model::Answer::text("<three/>"));
    let world = Fixture::new(script);
    let claude = world.provider();
    let first = claude.send(&request("s")).unwrap();
    assert_eq!((first.text.as_str(), first.is_cut), ("<one/><two/>", false));
    assert_eq!(first.model, "claude-haiku-4-5");
    assert_eq!(
        (first.spent.tokens_in, first.spent.tokens_cached, first.spent.tokens_out),
        (180, 50, 20)
    );
    let children = world.processes();
    assert_eq!(children.len(), 2, "the watcher and the client");
    let resume = first.memory_session_id.clone();
    let second = claude.send(&Request { resume: resume.clone(), ..request("s") }).unwrap();
    assert_eq!((second.text.as_str(), &second.memory_session_id), ("<three/>", &resume));
    assert!(second.spent.cost_micros > Some(0) && second.duration > Duration::ZERO);
    let [one, two] = world.requests().try_into().unwrap();
    assert_eq!(one.tool_names(), Vec::<&str>::new());
    assert!(one.system_text().ends_with("You observe another session."), "{}", one.system_text());
    let data = "<tool session=\"s\">ls</tool>\nAnswer in XML.";
    assert_eq!(user_text(&one), format!("Before, in s: nothing.\n{data}"));
    assert_eq!(user_text(&two), data, "earlier text is not sent again");
    assert_eq!(two.body["messages"].as_array().unwrap().len(), 3);
    assert_eq!(one.body["max_tokens"], 777);
    assert_ne!(one.body["thinking"]["type"], "enabled", "{}", one.body["thinking"]);
    assert!(one.body.to_string().len() < 4000, "{}", one.body);
    let again = world.processes();
    let pids = |all: &[Process]| all.iter().map(|one| one.pid).collect::<Vec<_>>();
    assert_eq!(pids(&children), pids(&again), "the same child");
}

#[test]
fn sessions_never_share_a_child_and_a_request_without_resume_starts_a_new_one() {
    let world = responding("<skip/>");
    let claude = world.provider();
    let mut memories = Vec::new();
    for session in ["s1", "s2", "s1"] {
        let response = claude.send(&request(session)).unwrap();
        memories.push(response.memory_session_id.unwrap());
    }
    // The id of another session or of an ended one does not join its conversation.
    for resume in memories.clone() {
        let next = Request { resume: Some(resume), ..request("s3") };
        memories.push(claude.send(&next).unwrap().memory_session_id.unwrap());
    }
    for (index, memory) in memories.iter().enumerate() {
        assert!(!memories[..index].contains(memory), "{memories:?}");
    }
    for request in world.requests() {
        let text = request.all_text();
        let sent = ["s1", "s2", "s3"].iter().filter(|one| text.contains(&format!("in {one}:")));
        assert_eq!(sent.count(), 1, "{text}");
        assert_eq!(request.body["messages"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_child_is_replaced_when_its_history_is_long() {
    let world = responding("<skip/>");
    let claude = Claude { turns_max: 2, ..world.provider() };
    let mut resume = None;
    for _ in 0..3 {
        resume = claude.send(&Request { resume, ..request("s") }).unwrap().memory_session_id;
    }
    let messages = |request: &model::Request| request.body["messages"].as_array().unwrap().len();
    let lengths: Vec<usize> = world.requests().iter().map(messages).collect();
    assert_eq!(lengths, [1, 3, 1]);
    let third = world.requests()[2].last_user_text();
    assert!(third.contains("Before, in s"), "the recap is sent again: {third}");
}
