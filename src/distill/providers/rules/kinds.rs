//! Determines the type of an observation by scoring the evidence.

use super::files::Class;
use super::parsed_turn::ParsedTurn;
use super::text::{contains_any, is_among, padded};
use claude_mem_memory::modes::Mode;

/// The observation types of the mode `code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something broken works now.
    Bugfix,
    /// A new capability.
    Feature,
    /// Same behaviour, different structure.
    Refactor,
    /// Any other change.
    Change,
    /// A fact about the code or its environment.
    Discovery,
    Decision,
    /// A security weakness.
    SecurityAlert,
    /// A lasting instruction from the user.
    Rule,
}

impl Kind {
    const fn id(self) -> &'static str {
        match self {
            Self::Bugfix => "bugfix",
            Self::Feature => "feature",
            Self::Refactor => "refactor",
            Self::Change => "change",
            Self::Discovery => "discovery",
            Self::Decision => "decision",
            Self::SecurityAlert => "security_alert",
            Self::Rule => "rule",
        }
    }

    /// The closest type that the mode defines.
    pub(super) fn within(self, mode: &Mode) -> &str {
        let known = |id: &str| mode.types.iter().find(|word| word.id == id);
        let other = if self == Self::Rule { "decision" } else { "change" };
        let nearest = known(self.id()).or_else(|| known(other)).or(mode.types.first());
        nearest.map_or(self.id(), |word| word.id.as_str())
    }
}

/// Verbs in the forms that start requests and results.
const VERBS: &[(Kind, &str)] = &[
    (
        Kind::Bugfix,
        "fix|fixed|fixes|debug|repair|repaired|resolve|resolved|solve|solved|correct|\
         corrected|behebe|behoben|repariere|corrige|corrigé|arregla|arreglado|исправь|\
         исправлен",
    ),
    (
        Kind::Feature,
        "add|added|adds|implement|implemented|create|created|build|built|support|introduce|\
         introduced|allow|enable|enabled|extend|extended|füge|ergänze|ajoute|ajouté|añade|\
         agrega|crea|добавь",
    ),
    (
        Kind::Refactor,
        "refactor|refactored|rename|renamed|extract|extracted|simplify|simplified|move|\
         moved|split|restructure|restructured|inline|inlined|deduplicate|clean|cleaned|\
         reorganize|reorganized|umbenennen",
    ),
    (
        Kind::Change,
        "update|updated|bump|bumped|upgrade|upgraded|configure|configured|document|\
         documented|remove|removed|delete|deleted|install|installed|deploy|deployed|pin|\
         pinned|set|switch|switched|migrate|migrated",
    ),
];

/// Words that report a fault, anywhere in a text.
const FAULTS: &str = "\
    bug|broken|crash|fails|failing|doesn't work|not working|regression|wrong|\
    fehler|kaputt|\
    erreur|バグ|修正|修复|错误|버그";

/// Words for a fix in languages where the verb comes last.
const FIXED: &str = "修正|修复|直し|수정";

/// Determines the type of the work from the request, the last message and the changes.
pub(super) fn of_work(parsed: &ParsedTurn<'_>) -> Kind {
    let (evidence, request) = (&parsed.evidence, parsed.prompt.request.as_str());
    let headline = parsed.answer.headline.as_deref().unwrap_or_default();
    let mut votes = [(Kind::Bugfix, 0), (Kind::Feature, 0), (Kind::Refactor, 0), (Kind::Change, 0)];
    let mut vote = |kind: Option<Kind>, weight: u32| {
        if let Some(entry) = votes.iter_mut().find(|(k, _)| Some(*k) == kind) {
            entry.1 += weight;
        }
    };
    for subject in evidence.commits() {
        vote(of_prefix(subject).or_else(|| of_verb(subject)), 4);
    }
    vote(of_verb(&parsed.answer.opening).or_else(|| of_verb(headline)), 3);
    vote(of_verb(request), 3);
    let lower = format!("{request} ").to_lowercase();
    let is_fault = contains_any(&lower, FAULTS) || contains_any(headline, FIXED);
    vote(is_fault.then_some(Kind::Bugfix), 2);
    let names_cause = parsed.answer.statements.iter().any(|statement| {
        let lower = statement.text.to_lowercase();
        contains_any(&lower, "root cause|the bug was|the problem was|the issue was")
            || lower.starts_with("problem:")
            || lower.starts_with("fix:")
    });
    vote(names_cause.then_some(Kind::Bugfix), 3);
    let has_fixed_tests =
        evidence.fixes().iter().any(|fix| !fix.before.fault.as_ref().is_some_and(|f| f.is_compile));
    vote((has_fixed_tests && is_fault).then_some(Kind::Bugfix), 2);
    vote(has_fixed_tests.then_some(Kind::Bugfix), 1);
    let is_source = |class| class == Class::Source;
    let has_new_source = evidence.files.iter().any(|file| file.is_new && is_source(file.class()));
    vote(has_new_source.then_some(Kind::Feature), 2);
    let gained =
        evidence.files.iter().any(|file| is_source(file.class()) && !file.gained.is_empty());
    vote(gained.then_some(Kind::Feature), 1);
    let has_renamed = evidence.files.iter().any(|file| !file.renamed.is_empty());
    vote(has_renamed.then_some(Kind::Refactor), 1);
    let only_other = evidence.files.iter().all(|file| file.class() == Class::Other);
    vote(only_other.then_some(Kind::Change), 2);
    vote(Some(Kind::Change), 1);
    let mut best = votes[3];
    for candidate in votes.into_iter().rev() {
        if candidate.1 > best.1 {
            best = candidate;
        }
    }
    best.0
}

/// The type named by the first words of a text.
pub(super) fn of_verb(text: &str) -> Option<Kind> {
    let lower = text.to_lowercase();
    let mut words =
        lower.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).take(3);
    words.find_map(|word| {
        VERBS.iter().find(|(_, verbs)| is_among(word, verbs)).map(|(kind, _)| *kind)
    })
}

/// The type named by a prefix such as `fix(cart): …`.
pub(super) fn of_prefix(subject: &str) -> Option<Kind> {
    let (prefix, _) = subject.split_once(": ")?;
    let word = prefix.split(['(', '!']).next()?;
    match word {
        "fix" | "bugfix" | "hotfix" => Some(Kind::Bugfix),
        "feat" | "feature" => Some(Kind::Feature),
        "refactor" | "perf" => Some(Kind::Refactor),
        "docs" | "chore" | "build" | "ci" | "test" | "tests" | "style" => Some(Kind::Change),
        _ => None,
    }
}

/// A finding is a security alert or a discovery.
pub(super) fn of_finding(text: &str) -> Kind {
    let lower = text.to_lowercase();
    let marks = "vulnerab|cve-|sql injection|xss|csrf|path traversal|remote code execution";
    // A review without findings still names the weaknesses it searched for.
    let is_denied = contains_any(
        &padded(&lower),
        " no vulnerabilities | no vulnerability | no new vulnerabilities | \
         no new vulnerability | no concrete | no security | no exploitable | no findings | \
         nothing to flag | not vulnerable | does not introduce | doesn't introduce ",
    );
    if contains_any(&lower, marks) && !is_denied { Kind::SecurityAlert } else { Kind::Discovery }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_without_findings_is_not_an_alert() {
        assert_eq!(of_finding("The cart allows SQL injection."), Kind::SecurityAlert);
        assert_eq!(of_finding("Read the cart. No new vulnerabilities."), Kind::Discovery);
        assert_eq!(of_finding("The change does not introduce an XSS."), Kind::Discovery);
    }

    #[test]
    fn the_first_words_name_the_kind() {
        for (text, kind) in [
            ("Corrected the total", Some(Kind::Bugfix)),
            ("I introduced carts", Some(Kind::Feature)),
            ("Moved the cart", Some(Kind::Refactor)),
            ("Documented the cart", Some(Kind::Change)),
            ("The cart is red", None),
        ] {
            assert_eq!(of_verb(text), kind, "{text}");
        }
    }
}
