//! Compares versions.

/// Whether the first version is higher. Suffixes such as `-rc.1` are ignored.
pub(super) fn is_newer(one: &str, other: &str) -> bool {
    numbers(one) > numbers(other)
}

fn numbers(version: &str) -> [u64; 3] {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let mut parts = core.split('.').map(|part| part.trim().parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_decide_and_invalid_versions_are_never_newer() {
        for (newer, older) in [("0.2.0", "0.1.9"), ("1.0.0", "0.99.99"), ("0.1.10", "0.1.9")] {
            assert!(is_newer(newer, older) && !is_newer(older, newer), "{newer} {older}");
        }
        for (one, other) in
            [("0.1.0", "0.1.0"), ("0.1.0-rc.1", "0.1.0"), ("", "0.1.0"), ("x", "0.0.1")]
        {
            assert!(!is_newer(one, other), "{one} {other}");
        }
    }
}
