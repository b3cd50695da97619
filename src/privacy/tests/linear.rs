//! Proves that redaction takes linear time on any text, by counting bytes read for untrusted
//! fragments of growing sizes.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use claude_mem_privacy::{Policy, redact_json, redact_text, work::Scope};

/// Starts of rules, tags and brackets, and texts that could make them read far: each is repeated
/// many times.
const FRAGMENTS: &str = include_str!("../../../tests/fixtures/fragments.json");
const FRAGMENTS_MIN: usize = 118;
/// A text that is kept whole, and one that is longer than the longest field.
const SIZES: [usize; 2] = [128 << 10, 512 << 10];
/// Far more than any text needs.
const READ_PER_BYTE_MAX: u64 = 400;

/// Fails if a text four times as long costs more than eight times as many reads. In a long text
/// each byte may be read one more time than in a short one; quadratic time would be sixteen times
/// as many.
fn check(read: impl Fn(&str, usize) -> u64) {
    let fragments: Vec<String> = serde_json::from_str(FRAGMENTS).unwrap();
    assert!(fragments.len() >= FRAGMENTS_MIN);
    check_some(fragments, read);
}

fn check_some(fragments: impl IntoIterator<Item = String>, read: impl Fn(&str, usize) -> u64) {
    let mut wrong = Vec::new();
    for fragment in fragments {
        // The next size would take minutes for a fragment with superlinear time.
        let mut counts: Vec<u64> = Vec::new();
        for size in SIZES {
            let count = read(&fragment, size);
            let grows = counts.last().is_some_and(|before| count > 8 * before + (64 << 10));
            counts.push(count);
            if grows || count > READ_PER_BYTE_MAX * size as u64 || count == 0 {
                wrong.push(format!("{fragment:?}: {counts:?}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn repeated(fragment: &str, size: usize) -> String {
    fragment.repeat(size / fragment.len())
}

#[test]
fn text_is_read_in_linear_time() {
    check(|fragment, size| bytes_read_of_text(&repeated(fragment, size)));
}

#[test]
fn a_string_is_read_in_linear_time() {
    check(|fragment, size| {
        bytes_read_of_json(&serde_json::to_string(&repeated(fragment, size)).unwrap())
    });
}

#[test]
fn joined_strings_of_an_array_are_read_in_linear_time() {
    check(|fragment, size| {
        let string = serde_json::to_string(fragment).unwrap();
        bytes_read_of_json(&format!("[{}]", vec![&*string; size / string.len()].join(",")))
    });
}

#[test]
fn nested_arrays_and_objects_are_read_in_linear_time() {
    let fragments = ["password=", "<private>", "-----BEGIN PRIVATE KEY-----", "a", "\"", "-u "];
    check_some(fragments.map(String::from), |fragment, size| {
        let string = serde_json::to_string(fragment).unwrap();
        let open = format!("[{string},{{{string}:");
        let depth = size / (open.len() + 2);
        bytes_read_of_json(&format!("{}{string}{}", open.repeat(depth), "}]".repeat(depth)))
    });
}

#[test]
fn invalid_json_is_read_in_linear_time() {
    check(|fragment, size| bytes_read_of_json(&repeated(&format!("[{{\"a\":{fragment}"), size)));
}

#[test]
fn personal_data_is_searched_in_linear_time() {
    let fragments = [
        "a@", "@a.", "a.", "a@a.", "1", "4111 ", "+1 ", "+1(", "219-09-", "DE89 ", "DE89", "\\u",
        "\"",
    ];
    let policy = Policy { redact_personal: true, ..Policy::default() };
    for read in [redact_json, |text: &str, policy| redact_text(text, policy).text] {
        check_some(fragments.map(String::from), |fragment, size| {
            let scope = Scope::new(u64::MAX);
            read(&repeated(fragment, size), policy);
            scope.bytes_read()
        });
    }
}

/// Bytes read to redact a text, counting repeated reads.
fn bytes_read_of_text(text: &str) -> u64 {
    let scope = Scope::new(u64::MAX);
    redact_text(text, Policy::default());
    scope.bytes_read()
}

/// Bytes read to redact JSON, counting repeated reads.
fn bytes_read_of_json(json: &str) -> u64 {
    let scope = Scope::new(u64::MAX);
    redact_json(json, Policy::default());
    scope.bytes_read()
}
