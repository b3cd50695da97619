//! Hostile and damaged replies: linear time, bounded memory, no panic.

use super::{Verdict, read};
use crate::scan_counter;

/// Counts tag lookups, which could grow faster than the text.
#[test]
fn hostile_replies_take_linear_time() {
    let hostile = [
        "<",
        "<observation>",
        "<observation><title>",
        "<title>a </subtitle>b ",
        "<facts><fact>",
        "</fact>",
        "<observation><facts>",
        "<title \"",
        "<title \"'\"",
        "<title a='",
        "</title ",
        "&",
        "&#x",
        "&amp;",
        "<observation><narrative><![CDATA[",
        "<![CDATA[",
        "<summary>\n<summary>",
        "\n<title>x</title",
        "<observation>x <title>y ",
        "<concepts>a,b,",
        "<skip_summary>",
    ];
    for pattern in hostile {
        for prefix in ["", "<observation>", "<observation>\n<facts>", "<observation><narrative>"] {
            let work = |times: usize| {
                let text =
                    format!("{prefix}{}\n<observation></title></fact>", pattern.repeat(times));
                scan_counter::count(|| {
                    let _ = read(&text);
                })
            };
            let (some, many) = (work(500), work(4000));
            assert!(many <= some * 9 + 100, "{prefix}{pattern}: {some} looks became {many}");
        }
    }
}

/// Reads each of the hostile fragments after a prefix, at growing sizes.
fn read_fragments(prefix: &str) {
    scan_counter::assert_linear(|fragment, size| {
        let text = format!("{prefix}{}", fragment.repeat(size / fragment.len()));
        let _ = read(&text);
    });
}

#[test]
fn fragments_are_read_in_linear_time() {
    read_fragments("<title>");
}

#[test]
fn fragments_in_a_list_are_read_in_linear_time() {
    read_fragments("<observation>\n<facts>");
}

#[test]
fn fragments_in_a_narrative_are_read_in_linear_time() {
    read_fragments("<observation><title>t</title><narrative>");
}

#[test]
fn ten_megabytes_of_anything_are_read() {
    for pattern in ["<", "<observation><title>", "x", "&", "<fact>a</fact>"] {
        let text =
            format!("<observation><title>t</title>{}", pattern.repeat(10_000_000 / pattern.len()));
        assert_eq!(read(&text).verdict, Verdict::Answer);
    }
}

/// The corpus of the fuzz target, parsed on every run as well: whole and cut at each byte.
#[test]
fn the_fuzz_corpus_is_read() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/reply");
    let files: Vec<_> =
        std::fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 10, "the corpus is missing");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        for cut in 0..=bytes.len() {
            let reply = read(&String::from_utf8_lossy(&bytes[..cut]));
            let kept = reply.observations.len() + usize::from(reply.summary.is_some());
            assert_eq!(reply.verdict == Verdict::Answer, kept > 0, "{} at {cut}", file.display());
        }
    }
}
