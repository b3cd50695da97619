//! The statements of a memory, and which of them are about a prompt.

use super::{prompt_terms::PromptTerms, text_index};
use crate::{Store, error::Result, store::sql_values::items};
use rusqlite::OptionalExtension;
use std::collections::BTreeSet;

/// A name is more specific than a word.
const NAME: f64 = 2.0;

/// The words of a prompt, for comparing many statements with it.
#[derive(Debug)]
pub struct PromptWords(PromptTerms);

impl PromptWords {
    /// The words of this prompt.
    pub fn of(prompt: &str) -> Self {
        Self(PromptTerms::of(prompt))
    }

    /// The words that each text has in common with the prompt, each once, names twice. Words in
    /// most of the texts count little, because they do not distinguish them.
    pub fn in_common<'t>(&self, texts: impl Iterator<Item = &'t str>) -> Vec<f64> {
        let Self(terms) = self;
        let texts: Vec<&str> = texts.collect();
        // Without the words, all texts are equally good.
        let met = text_index::terms_in(&texts, &terms.query.terms)
            .unwrap_or_else(|_| vec![BTreeSet::new(); texts.len()]);
        let weight = |term: usize| {
            let texts = met.iter().filter(|terms| terms.contains(&term)).count();
            let rarity = (1.0 + met.len() as f64 / texts.max(1) as f64).ln();
            if terms.is_name[term] { NAME * rarity } else { rarity }
        };
        let weights: Vec<f64> = (0..terms.is_name.len()).map(weight).collect();
        met.iter().map(|terms| terms.iter().map(|term| weights[*term]).sum()).collect()
    }
}

/// The sentences of a text, line by line.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut last = ' ';
    let is_end = move |letter: char| {
        let is_end = letter == '。' || letter == ' ' && matches!(last, '.' | '!' | '?');
        last = letter;
        is_end
    };
    let sentences = text.lines().flat_map(move |line| line.split_inclusive(is_end));
    sentences.map(str::trim).filter(|sentence| !sentence.is_empty())
}

impl Store {
    /// The statements of an observation: its title, its facts, each sentence of its text, and its
    /// files.
    pub(super) fn statements_of(&self, observation: i64) -> Result<Vec<String>> {
        let sql = "select title, subtitle, narrative, facts, files_modified, files_read
                   from observations where id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.query_row([observation], |row| {
            (0..6).map(|at| row.get::<_, Option<String>>(at)).collect::<rusqlite::Result<Vec<_>>>()
        });
        let columns = columns.optional()?.unwrap_or_default();
        let [title, subtitle, narrative, facts, modified, read] = &columns[..] else {
            return Ok(Vec::new());
        };
        let files = [items(modified.as_deref()), items(read.as_deref())].concat().join(" ");
        let mut statements: Vec<String> = title.iter().chain(subtitle).cloned().collect();
        statements.extend(items(facts.as_deref()));
        statements.extend(narrative.iter().flat_map(|text| sentences(text)).map(str::to_owned));
        statements.push(files);
        Ok(statements)
    }
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
        let common = PromptWords::of(prompt).in_common(texts.into_iter());
        let mut order = [0, 1, 2, 3, 4];
        order.sort_by(|left, right| common[*right].total_cmp(&common[*left]));
        assert_eq!(order, [4, 0, 3, 1, 2], "{common:?}");
    }

    #[test]
    fn sentences_end_at_a_stop_and_a_space() {
        let text = "It is v1.2. Is it? Yes!\n文件。完";
        assert_eq!(
            sentences(text).collect::<Vec<_>>(),
            ["It is v1.2.", "Is it?", "Yes!", "文件。", "完"]
        );
    }
}
