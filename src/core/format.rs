//! Numbers as people read them.

/// `1 event`, `1,234 events`, `2 summaries`; `2 events of a newer version`.
pub fn count(count: impl TryInto<u64>, what: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let (noun, rest) = match what.split_once(" of ").or_else(|| what.split_once(", ")) {
        Some((noun, _)) => what.split_at(noun.len()),
        None => (what, ""),
    };
    let number = number(count);
    match noun.strip_suffix('y') {
        _ if count == 1 => format!("{number} {what}"),
        Some(stem) => format!("{number} {stem}ies{rest}"),
        None if noun.ends_with("ch") => format!("{number} {noun}es{rest}"),
        None => format!("{number} {noun}s{rest}"),
    }
}

/// `1,234`.
pub fn number(count: impl TryInto<u64>) -> String {
    let digits = count.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `999 B`, `1.5 KB`, `33.6 MB`.
pub fn bytes(count: u64) -> String {
    let (mut size, mut unit) = (count as f64, "B");
    for larger in ["KB", "MB", "GB", "TB"] {
        if size < 1000.0 {
            break;
        }
        size /= 1000.0;
        unit = larger;
    }
    if unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_u64, "event"), "1 event");
        assert_eq!(
            count(1_234_567_u64, "event of a newer version"),
            "1,234,567 events of a newer version"
        );
        assert_eq!(count(2_usize, "unreadable input, kept"), "2 unreadable inputs, kept");
        assert_eq!(count(0_u64, "summary"), "0 summaries");
        assert_eq!(count(2_u64, "match"), "2 matches");
        assert_eq!(
            (bytes(999), bytes(1_500), bytes(32 << 20)),
            ("999 B".into(), "1.5 KB".into(), "33.6 MB".into())
        );
    }
}
