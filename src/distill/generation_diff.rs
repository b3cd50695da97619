//! Matches observations between two generations.

use claude_mem_projections::ComparedObservation;

/// From this similarity on, two observations of one prompt are the same.
const SIMILARITY_MIN: f64 = 0.8;

/// Difference between two generations for one observation.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Only in the earlier generation.
    Gone(ComparedObservation),
    /// Only in the later generation.
    New(ComparedObservation),
    /// In both, with different text.
    Reworded(ComparedObservation, ComparedObservation),
    /// In both, with the same text.
    Same(ComparedObservation),
}

impl Change {
    /// The later version, else the earlier one.
    pub fn observation(&self) -> &ComparedObservation {
        match self {
            Self::Gone(one) | Self::New(one) | Self::Same(one) | Self::Reworded(_, one) => one,
        }
    }
}

/// Pairs observations of the same prompt by similarity, highest first.
pub fn changes(before: Vec<ComparedObservation>, after: Vec<ComparedObservation>) -> Vec<Change> {
    let mut candidates: Vec<(f64, usize, usize)> = Vec::new();
    for (left, old) in before.iter().enumerate() {
        for (right, new) in after.iter().enumerate() {
            let similarity = similarity(old, new);
            if similarity >= SIMILARITY_MIN {
                candidates.push((similarity, left, right));
            }
        }
    }
    candidates.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut before: Vec<Option<ComparedObservation>> = before.into_iter().map(Some).collect();
    let mut after: Vec<Option<ComparedObservation>> = after.into_iter().map(Some).collect();
    let mut changes = Vec::new();
    for (_, left, right) in candidates {
        if let (Some(_), Some(_)) = (&before[left], &after[right])
            && let (Some(old), Some(new)) = (before[left].take(), after[right].take())
        {
            let is_same = texts(&old) == texts(&new);
            changes.push(if is_same { Change::Same(new) } else { Change::Reworded(old, new) });
        }
    }
    changes.extend(before.into_iter().flatten().map(Change::Gone));
    changes.extend(after.into_iter().flatten().map(Change::New));
    changes.sort_by_key(|change| change.observation().at_us);
    changes
}

/// 1 for identical text, 0 for different prompts. A shared file counts as much as a more similar
/// title.
fn similarity(old: &ComparedObservation, new: &ComparedObservation) -> f64 {
    if old.session != new.session || old.prompt_number != new.prompt_number {
        return 0.0;
    }
    if texts(old) == texts(new) {
        return 1.0;
    }
    let title = strsim::jaro_winkler(&old.title.to_lowercase(), &new.title.to_lowercase());
    let shares_file = old.files.iter().any(|file| new.files.contains(file));
    let bonus = if shares_file && old.kind == new.kind { 0.15 } else { 0.0 };
    (title + bonus).min(0.99)
}

fn texts(observation: &ComparedObservation) -> (&str, &str, &str, &str, &[String]) {
    let ComparedObservation { kind, title, subtitle, narrative, facts, .. } = observation;
    (kind, title, subtitle, narrative, facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titled(prompt_number: u32, title: &str) -> ComparedObservation {
        let at_us = u64::from(prompt_number);
        let title = title.to_owned();
        ComparedObservation {
            prompt_number: Some(prompt_number),
            at_us,
            title,
            ..ComparedObservation::default()
        }
    }

    fn rendered(before: &[ComparedObservation], after: &[ComparedObservation]) -> Vec<String> {
        let one = |change: &Change| match change {
            Change::Gone(old) => format!("- {}", old.title),
            Change::New(new) => format!("+ {}", new.title),
            Change::Reworded(old, new) => format!("{} > {}", old.title, new.title),
            Change::Same(same) => format!("= {}", same.title),
        };
        changes(before.to_vec(), after.to_vec()).iter().map(one).collect()
    }

    #[test]
    fn observations_are_paired_within_their_prompt_the_most_alike_first() {
        let before = [
            titled(1, "cart totals are multiplied"),
            titled(1, "tests run with cargo test"),
            titled(2, "login uses cookies"),
        ];
        let after = [
            titled(1, "tests run with cargo test"),
            titled(1, "cart totals are multiplied now"),
            titled(1, "prices are in cents"),
            titled(3, "login uses cookies"),
        ];
        assert_eq!(
            rendered(&before, &after),
            [
                "= tests run with cargo test",
                "cart totals are multiplied > cart totals are multiplied now",
                "+ prices are in cents",
                "- login uses cookies",
                "+ login uses cookies",
            ]
        );
    }

    #[test]
    fn a_shared_file_pairs_two_similar_titles() {
        let in_file = |file: &str, title| ComparedObservation {
            files: vec![file.into()],
            ..titled(1, title)
        };
        let new = [in_file("cart.rs", "cart rounding is right now")];
        let old = [in_file("cart.rs", "cart prices round up")];
        assert_eq!(rendered(&old, &new), ["cart prices round up > cart rounding is right now"]);
        let old = [in_file("till.rs", "cart prices round up")];
        assert_eq!(
            rendered(&old, &new),
            ["- cart prices round up", "+ cart rounding is right now"]
        );
    }

    #[test]
    fn empty_generations_have_no_changes() {
        assert_eq!(changes(Vec::new(), Vec::new()), []);
    }
}
