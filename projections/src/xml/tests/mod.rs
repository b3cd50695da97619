//! Parses replies as models write them, and damaged ones.

mod cut;
mod hostile;

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

const KINDS: [&str; 4] = ["bugfix", "feature", "change", "security_alert"];

/// A reply with every element, and difficult characters.
const FULL: &str = "\
    Here is what I saw:\n```xml\n<observation>\n  <type>bugfix</type>\n  \
    <title>Parser keeps Vec&lt;String&gt; &amp; friends</title>\n  \
    <subtitle>Größe, naïveté — 日本語</subtitle>\n  <facts>\n    \
    <fact>port is 8080</fact>\n    <fact>a && b < c</fact>\n  </facts>\n  \
    <narrative>First line with Vec<File> in it.\n\
    Second: `<title>` is only mentioned.</narrative>\n  \
    <concepts><concept>gotcha</concept><concept>pattern</concept></concepts>\n  \
    <files_read><file>src/main.rs</file></files_read>\n  \
    <files_modified><file>src/xml.rs</file><file>src/lib.rs</file></files_modified>\n\
    </observation>\n\
    <observation><type>feature</type><title>Second</title><narrative><![CDATA[raw <b> \
    &amp;]]></narrative></observation>\n\
    <summary>\n\
    <request>Fix it</request><investigated>The reader</investigated><learned>Tags &lt;b&gt; \
    lie</learned><completed>All</completed><next_steps>Ship it</next_steps><notes>n. \
    b.</notes><files_read><file>a</file></files_read><files_edited><file>b</file></files_edited>\n\
    </summary>\n```\n";

fn read(text: &str) -> Reply {
    read_reply(text, &KINDS)
}

/// A reply on a few lines, as in the tables below.
fn shown(reply: &Reply) -> String {
    let mut out = format!("{:?}{}", reply.verdict, if reply.cut { ", cut" } else { "" });
    for o in &reply.observations {
        write!(out, "\n{}", o.kind).unwrap();
        let texts = [("title", &o.title), ("subtitle", &o.subtitle), ("narrative", &o.narrative)];
        let lists = [
            ("facts", &o.facts),
            ("concepts", &o.concepts),
            ("read", &o.files_read),
            ("modified", &o.files_modified),
            ("corrects", &o.corrects),
        ];
        show(&mut out, &texts, &lists);
    }
    if let Some(s) = &reply.summary {
        out.push_str("\nsummary");
        let texts = [
            ("request", &s.request),
            ("investigated", &s.investigated),
            ("learned", &s.learned),
            ("completed", &s.completed),
            ("next", &s.next_steps),
            ("notes", &s.notes),
        ];
        show(&mut out, &texts, &[("read", &s.files_read), ("edited", &s.files_edited)]);
    }
    if !reply.corrects.is_empty() {
        write!(out, "\nwithdraws {:?}", reply.corrects).unwrap();
    }
    if let Some(reason) = &reply.summary_skipped {
        write!(out, "\nno summary: {reason}").unwrap();
    }
    out
}

fn show(out: &mut String, texts: &[(&str, &Option<String>)], lists: &[(&str, &Vec<String>)]) {
    for (name, text) in texts {
        if let Some(text) = text {
            write!(out, " {name}={text:?}").unwrap();
        }
    }
    for (name, list) in lists.iter().filter(|list| !list.1.is_empty()) {
        write!(out, " {name}={list:?}").unwrap();
    }
}

/// Compares every reply of a table with its parsed form, and shows all differences.
fn check(table: &[(&str, &str)]) {
    let wrong: Vec<_> = table
        .iter()
        .filter(|(text, expected)| shown(&read(text)) != *expected)
        .map(|(text, expected)| {
            format!("{text}\n  gives    {}\n  expected {expected}", shown(&read(text)))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_full_reply_is_read_in_full() {
    let expected = r#"Answer
bugfix title="Parser keeps Vec<String> & friends" subtitle="Größe, naïveté — 日本語" narrative="First line with Vec<File> in it.\nSecond: `<title>` is only mentioned." facts=["port is 8080", "a && b < c"] concepts=["gotcha", "pattern"] read=["src/main.rs"] modified=["src/xml.rs", "src/lib.rs"]
feature title="Second" narrative="raw <b> &amp;"
summary request="Fix it" investigated="The reader" learned="Tags <b> lie" completed="All" next="Ship it" notes="n. b." read=["a"] edited=["b"]"#;
    assert_eq!(shown(&read(FULL)), expected);
}

#[test]
fn whether_there_is_anything_to_keep() {
    check(&[
        ("", "Unreadable"),
        (" \n ", "Unreadable"),
        ("Nothing of note happened here.", "Unreadable"),
        ("I'm sorry, <b>no</b> & <title>page</title>", "Unreadable"),
        ("<skip/>", "Nothing"),
        ("```\n<SKIP />\n```", "Nothing"),
        ("`<skip/>`", "Nothing"),
        ("<skip></skip>", "Nothing"),
        ("skip", "Nothing"),
        ("Nothing new here. <skip reason=\"routine\"/>", "Nothing"),
        ("<skip_summary reason=\"too &lt;short&gt;\"/>", "Nothing\nno summary: too <short>"),
        ("<skip_summary>no work</skip_summary>", "Nothing\nno summary: no work"),
        ("<skip_summary/>", "Nothing\nno summary: "),
        (
            "<skip_summary reason='x'/><observation><title>t</title></observation>",
            "Answer\nchange title=\"t\"\nno summary: x",
        ),
        ("<skip/><observation><title>t</title></observation>", "Answer\nchange title=\"t\""),
        ("<observation></observation>", "Unreadable"),
        ("<observation/>", "Unreadable"),
        ("<observation><type>bugfix</type><subtitle>s</subtitle></observation>", "Unreadable"),
        ("<observation><concepts><concept>c</concept></concepts></observation>", "Unreadable"),
        (
            "<observation><facts><fact>f</fact></facts></observation>",
            "Answer\nchange facts=[\"f\"]",
        ),
        ("<summary></summary>", "Unreadable"),
        ("<summary><notes>only</notes></summary>", "Answer\nsummary notes=\"only\""),
        ("<summary>All went &amp; well.</summary>", "Answer\nsummary notes=\"All went & well.\""),
        (
            "<summary><request>r</request></summary><summary><request>q</request>\
             <learned>l</learned></summary>",
            "Answer\nsummary request=\"r\" learned=\"l\"",
        ),
    ]);
}

#[test]
fn an_observation_in_other_words_is_kept() {
    check(&[
        (
            "<observation>The port is 8080. It was 80 before.</observation>",
            "Answer\n\
             change title=\"The port is 8080.\" narrative=\"The port is 8080. It was 80 before.\"",
        ),
        (
            "<observation>Port 8080 &amp; no other</observation>",
            "Answer\nchange title=\"Port 8080 & no other\"",
        ),
        (
            "<observation><type>bugfix</type><text>Vec<String> leaks.\n\
             Fixed in a.rs</text></observation>",
            "Answer\n\
             bugfix title=\"Vec<String> leaks.\" narrative=\"Vec<String> leaks.\\n\
             Fixed in a.rs\"",
        ),
        (
            "<observation><kind>bug</kind><headline>The cart rounds twice</headline></observation>",
            "Answer\nchange title=\"The cart rounds twice\" narrative=\"bug\\n\\n\
             The cart rounds twice\"",
        ),
        (
            "<observation><title>t</title><details>d</details><why>w</why></observation>",
            "Answer\nchange title=\"t\" narrative=\"d\\n\\nw\"",
        ),
        // Next to a narrative it is another paragraph, unless it is only decoration.
        (
            "<observation><title>t</title><narrative>n</narrative>It also runs on \
             8081.</observation>",
            "Answer\nchange title=\"t\" narrative=\"n\\n\\nIt also runs on 8081.\"",
        ),
        (
            "<observation><title>t</title><narrative>n</narrative>端口也是8081</observation>",
            "Answer\nchange title=\"t\" narrative=\"n\\n\\n端口也是8081\"",
        ),
        (
            "<observation>1. \
             <title>t</title><narrative>n</narrative><confidence>0.9</confidence></observation>",
            "Answer\nchange title=\"t\" narrative=\"n\"",
        ),
        (
            "<summary><request>r</request>The port is 8080 now.</summary>",
            "Answer\nsummary request=\"r\" notes=\"The port is 8080 now.\"",
        ),
        // A truncated reply, and one without closing tags.
        ("<observation>\nOne two three", "Answer, cut\nchange title=\"One two three\""),
        (
            "<observation>One\n<observation>two</observation>",
            "Answer\nchange title=\"One\"\nchange title=\"two\"",
        ),
        // Only mentioned.
        ("I would write an <observation> here.", "Unreadable, cut"),
        (
            "<observation>记住端口。它是8080。</observation>",
            "Answer\nchange title=\"记住端口。\" narrative=\"记住端口。它是8080。\"",
        ),
    ]);
    let long = format!("<observation>{}</observation>", "word ".repeat(60));
    let title = read(&long).observations[0].title.clone().unwrap();
    assert!(title.ends_with("word…") && title.chars().count() <= 121, "{title}");
}

#[test]
fn a_correction_belongs_to_its_observation_or_withdraws() {
    check(&[
        (
            "<observation><title>t</title><corrects>an\n \
             &lt;old> one</corrects><corrects>two</corrects></observation>",
            "Answer\nchange title=\"t\" corrects=[\"an <old> one\", \"two\"]",
        ),
        ("<corrects>a</corrects>\n<corrects>a</corrects>", "Answer\nwithdraws [\"a\"]"),
        ("<skip/><corrects>a</corrects>", "Answer\nwithdraws [\"a\"]"),
        (
            "<summary><completed>c</completed><corrects>a</corrects></summary>",
            "Answer\nsummary completed=\"c\"\nwithdraws [\"a\"]",
        ),
        // It has no content of its own.
        ("<observation><corrects>a</corrects></observation>", "Answer\nwithdraws [\"a\"]"),
        // Half a title is another title.
        ("<observation><title>t</title><corrects>a", "Answer, cut\nchange title=\"t\""),
        ("<corrects></corrects>", "Unreadable"),
        ("The tag `<corrects>` exists.", "Unreadable"),
    ]);
}

#[test]
fn types_are_those_of_the_mode() {
    let concept = "\
        <title>t</title><concepts><concept>bugfix</concept><concept>Gotcha: \
        x</concept></concepts>";
    let typed = |kind: &str| format!("<observation>{kind}{concept}</observation>");
    let table = [
        ("<type>bugfix</type>", "bugfix", r#"["Gotcha"]"#),
        ("<type> BugFix\n</type>", "bugfix", r#"["Gotcha"]"#),
        ("<type>Security Alert</type>", "security_alert", r#"["bugfix", "Gotcha"]"#),
        ("<type>feature | bugfix</type>", "feature", r#"["bugfix", "Gotcha"]"#),
        ("<type>incident</type>", "change", r#"["bugfix", "Gotcha", "incident"]"#),
        ("<type></type>", "change", r#"["bugfix", "Gotcha"]"#),
        ("", "change", r#"["bugfix", "Gotcha"]"#),
    ];
    for (kind, expected, concepts) in table {
        let found = shown(&read(&typed(kind)));
        assert_eq!(found, format!("Answer\n{expected} title=\"t\" concepts={concepts}"), "{kind}");
    }
    let other = read_reply(&typed("<type>odd</type>"), &["entity", "evidence"]);
    assert_eq!(other.observations[0].kind, "entity", "a mode without `change` has its first type");
}

#[test]
fn tags_may_be_written_carelessly() {
    let good = "Answer\nbugfix title=\"a b\" narrative=\"n\"";
    check(&[
        (
            "<OBSERVATION><Type>bugfix</TYPE><TITLE>a \
             b</title><Narrative>n</narrative></Observation>",
            good,
        ),
        (
            "<observation id='1'><type x=1>bugfix</type><title lang=\"en\">a\n \
             b</title ><narrative >n</narrative></observation>",
            good,
        ),
        (
            "<observation type=\"bugfix\"><title>a b</title><narrative>n</narrative></observation>",
            good,
        ),
        ("<observation type=bugfix title='a b'><narrative>n</narrative></observation>", good),
        ("<observation><type>bugfix<title>a b<narrative>n</observation>", good),
        ("<observation>\n<type>bugfix\n<title>a b\n<narrative>n\n</observation>", good),
        (
            "<observation><type>bugfix</title><title>a \
             b</narrative><narrative>n</type></observation>",
            good,
        ),
        (
            "<observation><type>bugfix</type><title>a b</title><narrative>n</narrative></summary>",
            good,
        ),
        (
            "<observation><type>bugfix</type\n\
             <title>a b</title <narrative>n</narrative</observation",
            good,
        ),
        (
            "<observations><observation><type>bugfix</type><title>a \
             b</title><narrative>n</narrative></observation></observations>",
            good,
        ),
        (
            "<observation><type>bugfix</type><title>a \
             b</title><title>c</title><narrative>n</narrative></observation>",
            good,
        ),
        (
            "<observation><type>bugfix</type><title>a \
             b</title><narrative>n</narrative><files-read>none</files-read></observation>",
            good,
        ),
        (
            "<observation><title>one\n<observation><title>two</title>\n\
             <summary><request>r\n<learned>l</learned></summary>",
            "Answer\nchange title=\"one\"\nchange title=\"two\"\n\
             summary request=\"r\" learned=\"l\"",
        ),
        (
            "<observation><narrative>one</observation>\n\
             <observation><narrative>two</narrative></observation>",
            "Answer\nchange narrative=\"one\"\nchange narrative=\"two\"",
        ),
        ("<observation><title>t", "Answer, cut\nchange title=\"t\""),
        ("<observation><title>t</title>", "Answer, cut\nchange title=\"t\""),
        (
            "<summary><request>r</request><nextSteps>n</nextSteps><completed/></summary>",
            "Answer\nsummary request=\"r\" next=\"n\"",
        ),
    ]);
}

#[test]
fn text_may_contain_text_similar_to_tags() {
    let table = [
        ("Vec<String> and HashMap<K, V>", "Vec<String> and HashMap<K, V>"),
        ("Arc<Summary>, Option<File>, Box<Type>", "Arc<Summary>, Option<File>, Box<Type>"),
        ("a && b || c < d > e", "a && b || c < d > e"),
        ("the <title> tag is <b>bold</b>", "the <title> tag is <b>bold</b>"),
        (
            "`</narrative>` was missing, so was \"<observation>\"",
            "`</narrative>` was missing, so was \"<observation>\"",
        ),
        ("an </observation> in the middle", "an </observation> in the middle"),
        ("&lt;title&gt; &amp;amp; &amp;lt; &#65;&#x42; &apos;", "<title> &amp; &lt; AB '"),
        ("&nope; &; & &#0; &#xD800; R&D", "&nope; &; & &#0; &#xD800; R&D"),
        ("if x <title and y> z", "if x <title and y> z"),
        ("<![CDATA[</narrative><title>&amp;]]>", "</narrative><title>&amp;"),
        ("nul \0 bell \u{7} tab \t", "nul  bell  tab"),
        ("```rust\nfn f() -> Result<()> {}\n```", "```rust\nfn f() -> Result<()> {}\n```"),
        ("<skip/> is the token", "<skip/> is the token"),
        ("<p class=\"x\">html</p>", "<p class=\"x\">html</p>"),
    ];
    for (inside, expected) in table {
        let text =
            format!("<observation><narrative>{inside}</narrative><title>t</title></observation>");
        let reply = read(&text);
        assert_eq!(reply.observations.len(), 1, "{inside}");
        assert_eq!(reply.observations[0].narrative.as_deref(), Some(expected), "{inside}");
        assert_eq!(reply.observations[0].title.as_deref(), Some("t"), "{inside}");
        assert_eq!(reply.verdict, Verdict::Answer);
    }
}

#[test]
fn lists_may_be_written_in_any_way() {
    let table = [
        ("<facts><fact>a</fact><fact>b, c</fact></facts>", r#"facts=["a", "b, c"]"#),
        ("<facts>\n- a\n* b, c\n3. d\n</facts>", r#"facts=["a", "b, c", "d"]"#),
        ("<facts><fact>a\n<fact>b</facts>", r#"facts=["a", "b"]"#),
        ("<facts><fact>a<fact>b</fact></facts>", r#"facts=["a", "b"]"#),
        ("<facts><fact>a</fact>\n<narrative>n</narrative>", r#"narrative="n" facts=["a"]"#),
        (
            "<fact>a</fact><concept>k</concept><file>f</file>",
            r#"facts=["a"] concepts=["k"] read=["f"]"#,
        ),
        ("<facts><fact>a</fact><fact> </fact><fact>a</fact><fact/></facts>", r#"facts=["a"]"#),
        ("<facts>[\"a\", \"b &amp; c\"]</facts>", r#"facts=["a", "b & c"]"#),
        (
            "<facts>uses Vec<Type> and\nOption<File></facts>",
            r#"facts=["uses Vec<Type> and", "Option<File>"]"#,
        ),
        ("<facts><item>a</item><li>b</li></facts>", r#"facts=["a", "b"]"#),
        ("<facts><!-- none --></facts>", ""),
        (
            "<concepts>gotcha, trade-off: why, Pattern:</concepts>",
            r#"concepts=["gotcha", "trade-off", "Pattern"]"#,
        ),
        ("<files_read>`src/a.rs`, src/b.rs</files_read>", r#"read=["src/a.rs", "src/b.rs"]"#),
        (
            "<files_modified><file>a b.rs</file>\nc.rs</files_modified>",
            r#"modified=["a b.rs", "c.rs"]"#,
        ),
        ("<files_edited>None</files_edited><files_read>N/A</files_read>", ""),
        ("<concepts><concept>std::fmt</concept></concepts>", r#"concepts=["std::fmt"]"#),
    ];
    for (list, expected) in table {
        let found = shown(&read(&format!("<observation><title>t</title>{list}</observation>")));
        let expected = format!("Answer\nchange title=\"t\" {expected}");
        assert_eq!(found, expected.trim_end(), "{list}");
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let tag = prop::sample::select(vec![
        "<observation>",
        "</observation>",
        "<summary>",
        "</summary>",
        "<title>",
        "</title>",
        "<type>",
        "</type>",
        "<facts>",
        "</facts>",
        "<fact>",
        "</fact>",
        "<narrative>",
        "</narrative>",
        "<files_read>",
        "<file>",
        "<FILE>",
        "<concepts>",
        "<concept>",
        "</concept>",
        "<![CDATA[",
        "]]>",
        "<skip/>",
        "<skip_summary reason=\"",
        "&amp;",
        "&",
        "<",
        ">",
        "`",
        "\"",
        "\n",
        " ",
        "bugfix",
        "ä",
        "日",
        "\u{0}",
        "[\"a\"]",
        "- ",
        ",",
    ]);
    prop::collection::vec(
        prop_oneof![4 => tag.prop_map(str::to_owned), 1 => any::<String>()],
        0..40,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(text in pieces()) {
        let reply = read(&text);
        let kept = reply.observations.len() + usize::from(reply.summary.is_some());
        prop_assert_eq!(reply.verdict == Verdict::Answer, kept > 0);
        prop_assert_eq!(reply, read(&text));
    }

    #[test]
    fn an_escaped_observation_reads_as_it_was_written(title in "[^\\p{Cc}\\s]{5,40}", narrative in "x[^\\p{Cc}]{0,80}y") {
        let escape = quick_xml::escape::escape::<'_>;
        let text = format!(
            "<observation><title>{}</title><narrative>{}</narrative></observation>",
            escape(title.as_str()), escape(narrative.as_str())
        );
        let reply = read(&text);
        prop_assert_eq!(reply.observations[0].title.as_deref(), Some(title.as_str()));
        prop_assert_eq!(reply.observations[0].narrative.as_deref(), Some(narrative.as_str()));
    }
}
