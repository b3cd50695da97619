//! Rates which statements of a memory are about a prompt.

use super::{prompt_terms::PromptTerms, score::Matcher};
use std::collections::HashSet;

/// A name is more specific than a word.
const NAME: f64 = 2.0;

/// The words that each text has in common with a prompt, each once, names twice. Words in most of the texts count
/// little, because they do not distinguish them.
pub fn words_in_common<'t>(prompt: &str, texts: impl Iterator<Item = &'t str>) -> Vec<f64> {
    let terms = PromptTerms::of(prompt);
    let matcher = Matcher::new(&terms.query);
    let met: Vec<HashSet<usize>> = texts.map(|text| matcher.terms_in(text).collect()).collect();
    let weight = |term: usize| {
        let texts = met.iter().filter(|terms| terms.contains(&term)).count();
        let rarity = (1.0 + met.len() as f64 / texts.max(1) as f64).ln();
        if terms.is_name[term] { NAME * rarity } else { rarity }
    };
    let weights: Vec<f64> = (0..terms.is_name.len()).map(weight).collect();
    met.iter().map(|terms| terms.iter().map(|term| weights[*term]).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words_that_few_texts_contain_count_most() {
        let texts = [
            "The parser reads a token.",
            "Tokens of the parser, tokens of the parser.",
            "Nothing of it.",
            "The parser is slow.",
            "read_token is slow",
        ];
        let prompt = "why is read_token of the parser slow?";
        let common = words_in_common(prompt, texts.into_iter());
        let mut order = [0, 1, 2, 3, 4];
        order.sort_by(|left, right| common[*right].total_cmp(&common[*left]));
        assert_eq!(order, [4, 0, 3, 1, 2], "{common:?}");
    }
}
