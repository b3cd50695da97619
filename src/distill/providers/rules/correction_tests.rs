//! Tests of which earlier observations a turn retracts.

use super::*;
use crate::turn_prompt::{RemarkView, ToolView, Turn};
use claude_mem_events::RemarkKind;

fn row<'a>(kind: &'a str, title: &'a str) -> EarlierRow<'a> {
    EarlierRow { kind, title, ..EarlierRow::default() }
}

fn corrected<'t>(prompt: &'t str, answer: &'t str) -> Vec<&'t str> {
    let turn = Turn {
        prompt,
        last_assistant_message: Some(answer),
        earlier: vec![
            EarlierRow {
                narrative: "Nginx answers with the default page of staging.",
                ..row("discovery", "The nginx block for staging is missing")
            },
            row("rule", "Use the nginx block on staging"),
            row("feature", "Added a discount to the cart"),
        ],
        is_over: true,
        ..Turn::default()
    };
    corrected_titles(&ParsedTurn::of(&turn))
}

#[test]
fn a_correction_retracts_the_observation_with_shared_words() {
    let missing = ["The nginx block for staging is missing"];
    assert_eq!(corrected("no, staging has an nginx block", "Let me look."), missing);
    for answer in [
        "You're right, the nginx block on staging exists; the port was wrong.",
        "You're right. The nginx block on staging is not missing.",
        "It wasn't the nginx block on staging - it was the port.",
        "- The real cause is not the nginx block of staging but the port",
    ] {
        assert_eq!(corrected("look again", answer), missing, "{answer}");
    }
}

#[test]
fn without_an_objection_or_shared_words_nothing_is_corrected() {
    assert!(corrected("Deploy nginx to staging", "Deployed.").is_empty());
    assert!(corrected("no, use another colour", "Changed.").is_empty());
    // Completed work stays recorded, even if a statement about it was wrong.
    assert!(corrected("look", "You're right. The discount of the cart was too small.").is_empty());
}

#[test]
fn an_objection_to_a_detail_leaves_the_work() {
    let guide = EarlierRow {
        narrative: "Wrote the guide. Step 1: stop the worker. Step 2: start the migration.",
        ..row("change", "Added GUIDE.md for the update")
    };
    let corrected = |prompt| {
        let turn = Turn { prompt, earlier: vec![guide], is_over: true, ..Turn::default() };
        corrected_titles(&ParsedTurn::of(&turn)).len()
    };
    assert_eq!(corrected("no, that's wrong: the worker runs on during the migration"), 0);
    assert_eq!(corrected("no, that's wrong: the guide is not about the update of the worker"), 1);
}

/// The titles retracted by a turn that edits `cart.rs`, with a remark of the assistant before the
/// edit.
fn corrected_by_work<'t>(
    prompt: &'t str,
    remark: &'t str,
    earlier: Vec<EarlierRow<'t>>,
) -> Vec<&'t str> {
    let edit = r#"{"file_path":"/p/cart.rs","old_string":"a","new_string":"b"}"#;
    let tool = ToolView {
        tool: "Edit",
        tool_use_id: "e",
        input: edit,
        output: "{}",
        ..ToolView::default()
    };
    let turn = Turn {
        prompt,
        cwd: "/p",
        tools: vec![tool],
        remarks: vec![RemarkView { kind: RemarkKind::Narration, tool_use_id: "e", text: remark }],
        last_assistant_message: Some("Fixed the totals of the basket."),
        earlier,
        is_over: true,
        ..Turn::default()
    };
    corrected_titles(&ParsedTurn::of(&turn))
}

#[test]
fn a_fix_that_did_not_help_is_replaced_by_the_next_cause() {
    let cause = "The totals are wrong because the basket rounds every price. Let me fix it.";
    let title = "The basket totals were wrong since each price was cached";
    let earlier = || vec![row("bugfix", title)];
    for prompt in [
        "Still the same",
        "Seems not to work?",
        "that didn't help",
        "всё ещё неправильно",
        "hala yanlış",
        "还是不对",
    ] {
        assert_eq!(corrected_by_work(prompt, cause, earlier()), [title], "{prompt}");
    }
    for prompt in [
        "Now show the totals in euro",
        "The discount of the second basket in the list is not working",
    ] {
        assert!(corrected_by_work(prompt, cause, earlier()).is_empty(), "{prompt}");
    }
    assert!(
        corrected_by_work("Still the same", "Let me look.", earlier()).is_empty(),
        "no other cause"
    );
}

#[test]
fn a_fix_that_restates_the_cause_replaces_the_diagnosis() {
    let row = EarlierRow {
        narrative: "The root cause: the proxy of the basket has no route for prices.",
        ..row("discovery", "The proxy of the basket is incomplete")
    };
    let corrected = |prompt, answer| {
        let edit = r#"{"file_path":"/p/cart.rs","old_string":"a","new_string":"b"}"#;
        let tool = ToolView { tool: "Edit", input: edit, output: "{}", ..ToolView::default() };
        let turn = Turn {
            prompt,
            cwd: "/p",
            tools: vec![tool],
            last_assistant_message: Some(answer),
            earlier: vec![row],
            is_over: true,
            ..Turn::default()
        };
        corrected_titles(&ParsedTurn::of(&turn)).len()
    };
    let fix = "The proxy sent prices of the basket on the wrong route instead of the right one.";
    assert_eq!(corrected("Please go ahead", fix), 1);
    assert_eq!(
        corrected("Please go ahead", "Added a button to the page, because it was asked for."),
        0
    );
    assert_eq!(
        corrected("Now add a button to the page, with a text that says what it does", fix),
        0
    );
}

#[test]
fn a_fix_reported_as_ineffective_is_retracted() {
    let title = "The problem was in the prompts of both examples";
    let earlier = || vec![row("bugfix", title)];
    let prompt = "As far as I know the examples are not on the server. Is that correct?";
    let remark = "\
        You're absolutely correct! The examples are **not** deployed. The fixes I just made there \
        **won't affect** the server.";
    assert_eq!(corrected_by_work(prompt, remark, earlier()), [title]);
    let other = "You're absolutely correct! The examples are **not** deployed.";
    assert!(corrected_by_work(prompt, other, earlier()).is_empty());
}

#[test]
fn an_observation_about_missing_code_is_retracted() {
    let facts = ["Searches `cart.label` and `cart.name`".to_owned()];
    let claims = EarlierRow { facts: &facts, ..row("feature", "Carts are found by more fields") };
    let remark = "The `cart.label` column doesn't exist in the database.";
    let earlier = vec![claims, row("discovery", "Carts have a name"), row("change", "Newest")];
    let found = corrected_by_work("Seems not to work?", remark, earlier.clone());
    assert_eq!(found, ["Carts are found by more fields"]);
    assert!(corrected_by_work("Add a label", remark, earlier).is_empty());
}

#[test]
fn reverted_work_is_retracted() {
    let facts = ["Committed “read the cart in bulk”".to_owned()];
    let done = EarlierRow {
        facts: &facts,
        narrative: "Committed as f2c1bde.",
        ..row("refactor", "Read the cart in bulk")
    };
    let revert = |command: &'static str| {
        let input = serde_json::json!({ "command": command }).to_string();
        let tool = ToolView { tool: "Bash", input: &input, output: "{}", ..ToolView::default() };
        let earlier = vec![done, row("change", "Other")];
        let turn = Turn { tools: vec![tool], earlier, is_over: true, ..Turn::default() };
        corrected_titles(&ParsedTurn::of(&turn)).join("|")
    };
    assert_eq!(revert("git revert --no-edit f2c1bde9"), "Read the cart in bulk");
    assert_eq!(revert("git revert HEAD"), "Read the cart in bulk");
    assert_eq!(revert("git revert 1234567"), "");
}
