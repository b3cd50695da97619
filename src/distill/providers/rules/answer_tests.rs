//! Tests of parsing the last message of a turn.

use super::*;

#[test]
fn a_step_does_not_repeat_the_label_before_it() {
    for (step, kept) in [
        ("Next: write the migration.", "Write the migration."),
        ("TODO: rename the table.", "Rename the table."),
        ("Next I would add tests.", "Next I would add tests."),
    ] {
        let answer = Answer::of(&format!("I fixed the login redirect. {step}"));
        assert_eq!(answer.next, [kept], "{step}");
    }
    assert!(Answer::of("Next.js renders the page on the server now.").next.is_empty());
}

#[test]
fn sentences_are_grouped_by_subject() {
    let answer = Answer::of(
        "Done! I've fixed the login redirect. The root cause was a cookie marked `Secure` on \
         http.\n\n\
         ### Changes\n- `auth.ts`: sets the flag only on https\n- Tests for both\n\n\
         I chose a per-request flag over a setting, because proxies differ. Note that Safari \
         caches it.\n\n\
         **Next steps:**\n- Deploy to staging\n- [x] Done already\n\n\
         Would you like me to deploy it now?\nIs there anything else?",
    );
    assert_eq!(answer.headline.as_deref(), Some("Fixed the login redirect."));
    assert_eq!(
        answer.points,
        ["`auth.ts`: sets the flag only on https", "Tests for both", "Done already"]
    );
    assert_eq!(
        answer.decisions,
        ["Chose a per-request flag over a setting, because proxies differ."]
    );
    assert_eq!(
        answer.learned,
        ["The root cause was a cookie marked `Secure` on http.", "Note that Safari caches it."]
    );
    assert_eq!(answer.next, ["Deploy to staging"]);
    assert_eq!(answer.questions, ["Would you like me to deploy it now?"]);
}

#[test]
fn a_recommendation_is_a_next_step_not_a_decision() {
    let answer = Answer::of("I recommend option A instead of B, because it is simpler.");
    assert!(answer.decisions.is_empty());
    assert_eq!(answer.next, ["I recommend option A instead of B, because it is simpler."]);
    for heading in ["Decisions needed", "Proposed decisions", "Open decisions", "Which decisions?"]
    {
        let answer = Answer::of(&format!("## {heading}\n- Keep the cart in memory\n"));
        assert!(answer.decisions.is_empty(), "{heading}");
    }
    let answer = Answer::of("## Decisions\n- Carts live in memory. They are small.\n");
    assert_eq!(answer.decisions, ["Carts live in memory."]);
    let answer =
        Answer::of("## Why this works\nThe cache uses LRU instead of FIFO because reads repeat.");
    assert!(answer.decisions.is_empty());
}

#[test]
fn tables_code_and_bold_lines_are_kept() {
    let answer = Answer::of(
        "Two findings:\n\n| Finding | Fix |\n|---|---|\n| Cart rounds twice | Round once |\n\n\
         Start it with the following command in the folder `deploy`:\n```\nmake up\n```\n\n\
         **Allow a second cart while the first one is being paid**",
    );
    assert_eq!(answer.points, ["Finding: Cart rounds twice; Fix: Round once"]);
    assert!(answer.narrative.contains("in the folder `deploy`: `make up`"), "{answer:?}");
    assert!(answer.narrative.contains("Allow a second cart"), "{answer:?}");
}

#[test]
fn paragraphs_with_a_bold_label_are_findings() {
    let detail = "It stays on the page until the pointer leaves it. ".repeat(4);
    let answer = Answer::of(&format!(
        "Three findings.\n\n**1. Tooltip**: {detail}\n\n\
         **2. Cart** rounds twice. {detail}\n\n**Done.** It is short.\n\n\
         **Next steps**: {detail}"
    ));
    let labels: Vec<&str> = answer.points.iter().filter_map(|point| point.get(..9)).collect();
    assert_eq!(labels, ["1. Toolti", "2. Cart r"]);
    assert_eq!(answer.narrative, "Three findings. It is short.");
    let answer = Answer::of("- I'd said carts are cached. They are read each time.");
    assert_eq!(answer.points, ["They are read each time."]);
}

#[test]
fn a_long_message_keeps_its_start_and_end() {
    let middle = "The middle has nothing to say about it at all. ".repeat(60);
    let answer = Answer::of(&format!("The first part is kept. {middle} The last part is kept."));
    assert!(answer.narrative.starts_with("The first part is kept."));
    assert!(answer.narrative.ends_with("The last part is kept."));
    assert!(answer.narrative.chars().count() <= NARRATIVE_CHARS_MAX);
}

#[test]
fn courtesies_are_not_statements() {
    for message in
        ["Done.", "All done, everything works.", "Sure! Let me look at that for you.", "ok", ""]
    {
        assert_eq!(Answer::of(message).headline, None, "{message}");
    }
}

#[test]
fn other_languages_are_understood() {
    let answer = Answer::of(
        "Der Warenkorb rechnet jetzt mit Rabatten. Ursache war ein Rundungsfehler.\n\n\
         ## Nächste Schritte\n- Tests ergänzen",
    );
    assert_eq!(answer.headline.as_deref(), Some("Der Warenkorb rechnet jetzt mit Rabatten."));
    assert_eq!(answer.learned, ["Ursache war ein Rundungsfehler."]);
    assert_eq!(answer.next, ["Tests ergänzen"]);
    let answer = Answer::of(
        "ログイン処理のバグを修正しました。原因はトークンの期限切れです。\n\n\
         次のステップ：\n- テストを追加",
    );
    assert_eq!(answer.headline.as_deref(), Some("ログイン処理のバグを修正しました。"));
    assert_eq!(answer.next, ["テストを追加"]);
}
