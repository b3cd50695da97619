//! Porter's stemmer, so that words are stemmed as FTS5 does it.
//!
//! The published algorithm (M. F. Porter, 1980), for ASCII words only, like FTS5's.

/// Longer words are not stemmed by FTS5 either.
const WORD_BYTES_MAX: usize = 64;

/// The stem of a lower-case word.
pub(crate) fn stem(word: &mut String) {
    let is_stemmed = word.len() > 2
        && word.len() <= WORD_BYTES_MAX
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if is_stemmed {
        plural(word);
        past(word);
        if word.len() > 1 && word.ends_with('y') && has_vowel(&word.as_bytes()[..word.len() - 1]) {
            cut(word, 1, "i");
        }
        replace_first(word, DOUBLES, 0);
        replace_first(word, ENDINGS, 0);
        residue(word);
        last_letters(word);
    }
}

fn cut(word: &mut String, bytes: usize, ending: &str) {
    word.truncate(word.len() - bytes);
    word.push_str(ending);
}

fn is_vowel(word: &[u8], at: usize) -> bool {
    match word[at] {
        b'a' | b'e' | b'i' | b'o' | b'u' => true,
        b'y' => at > 0 && !is_vowel(word, at - 1),
        _ => false,
    }
}

fn has_vowel(word: &[u8]) -> bool {
    (0..word.len()).any(|at| is_vowel(word, at))
}

/// The number of vowel-consonant sequences: Porter's `m`.
fn measure(word: &[u8]) -> usize {
    (1..word.len()).filter(|&at| is_vowel(word, at - 1) && !is_vowel(word, at)).count()
}

fn ends_in_double(word: &[u8]) -> bool {
    let end = word.len();
    end > 1 && word[end - 1] == word[end - 2] && !is_vowel(word, end - 1)
}

/// Consonant, vowel, consonant, as in `hop`; the last one not `w`, `x` or `y`.
fn ends_in_syllable(word: &[u8]) -> bool {
    let end = word.len();
    end > 2
        && !is_vowel(word, end - 1)
        && is_vowel(word, end - 2)
        && !is_vowel(word, end - 3)
        && !matches!(word[end - 1], b'w' | b'x' | b'y')
}

fn plural(word: &mut String) {
    if word.ends_with("sses") || word.ends_with("ies") {
        cut(word, 2, "");
    } else if word.ends_with('s') && !word.ends_with("ss") {
        cut(word, 1, "");
    }
}

fn past(word: &mut String) {
    if let Some(before) = word.strip_suffix("eed") {
        if measure(before.as_bytes()) > 0 {
            cut(word, 1, "");
        }
        return;
    }
    let Some(ending) = ["ed", "ing"].into_iter().find(|ending| word.ends_with(ending)) else {
        return;
    };
    if !has_vowel(&word.as_bytes()[..word.len() - ending.len()]) {
        return;
    }
    cut(word, ending.len(), "");
    let bytes = word.as_bytes();
    if word.ends_with("at") || word.ends_with("bl") || word.ends_with("iz") {
        word.push('e');
    } else if ends_in_double(bytes) && !matches!(bytes[bytes.len() - 1], b'l' | b's' | b'z') {
        cut(word, 1, "");
    } else if measure(bytes) == 1 && ends_in_syllable(bytes) {
        word.push('e');
    }
}

const DOUBLES: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const ENDINGS: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Replaces the first matching ending, if more than `measure_min` syllables stay before it.
fn replace_first(word: &mut String, endings: &[(&str, &str)], measure_min: usize) {
    if let Some((ending, by)) = endings.iter().find(|(ending, _)| word.ends_with(ending))
        && measure(&word.as_bytes()[..word.len() - ending.len()]) > measure_min
    {
        cut(word, ending.len(), by);
    }
}

const RESIDUES: &[(&str, &str)] = &[
    ("al", ""),
    ("ance", ""),
    ("ence", ""),
    ("er", ""),
    ("ic", ""),
    ("able", ""),
    ("ible", ""),
    ("ant", ""),
    ("ement", ""),
    ("ment", ""),
    ("ent", ""),
    ("sion", "s"),
    ("tion", "t"),
    ("ou", ""),
    ("ism", ""),
    ("ate", ""),
    ("iti", ""),
    ("ous", ""),
    ("ive", ""),
    ("ize", ""),
];

fn residue(word: &mut String) {
    let Some((ending, by)) = RESIDUES.iter().find(|(ending, _)| word.ends_with(ending)) else {
        return;
    };
    let stays = word.len() - ending.len() + by.len();
    if measure(&word.as_bytes()[..stays]) > 1 {
        word.truncate(stays);
    }
}

fn last_letters(word: &mut String) {
    if let Some(before) = word.strip_suffix('e') {
        let before = before.as_bytes();
        if measure(before) > 1 || (measure(before) == 1 && !ends_in_syllable(before)) {
            cut(word, 1, "");
        }
    }
    if word.ends_with("ll") && measure(&word.as_bytes()[..word.len() - 1]) > 1 {
        cut(word, 1, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    /// The stems that FTS5 stores.
    fn indexed(words: &[&str]) -> Vec<String> {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "create virtual table f using fts5 (w,
                 tokenize = 'porter unicode61 remove_diacritics 2');
                 create virtual table v using fts5vocab (f, instance);",
            )
            .unwrap();
        for word in words {
            connection.execute("insert into f values (?1)", [word]).unwrap();
        }
        let mut statement = connection.prepare("select term from v order by doc").unwrap();
        statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn words_are_stemmed_like_in_the_index() {
        let words = [
            "caresses",
            "ponies",
            "ties",
            "caress",
            "cats",
            "feed",
            "agreed",
            "plastered",
            "bled",
            "motoring",
            "sing",
            "conflated",
            "troubled",
            "sized",
            "hopping",
            "tanned",
            "falling",
            "hissing",
            "fizzed",
            "failing",
            "filing",
            "happy",
            "sky",
            "relational",
            "conditional",
            "rational",
            "valenci",
            "hesitanci",
            "digitizer",
            "conformabli",
            "radicalli",
            "differentli",
            "vileli",
            "analogousli",
            "vietnamization",
            "predication",
            "operator",
            "feudalism",
            "decisiveness",
            "hopefulness",
            "callousness",
            "formaliti",
            "sensitiviti",
            "sensibiliti",
            "triplicate",
            "formative",
            "formalize",
            "electriciti",
            "electrical",
            "hopeful",
            "goodness",
            "revival",
            "allowance",
            "inference",
            "airliner",
            "gyroscopic",
            "adjustable",
            "defensible",
            "irritant",
            "replacement",
            "adjustment",
            "dependent",
            "adoption",
            "homologou",
            "communism",
            "activate",
            "angulariti",
            "homologous",
            "effective",
            "bowdlerize",
            "probate",
            "rate",
            "cease",
            "controll",
            "roll",
            "configuration",
            "migrations",
            "queries",
            "indexes",
            "caching",
            "cached",
            "database",
            "session",
            "deletions",
            "utf8",
            "v10",
            "is",
            "yes",
            "sqlite",
            "apology",
            "technology",
        ];
        for (word, expected) in words.iter().zip(indexed(&words)) {
            let mut stemmed = (*word).to_owned();
            stem(&mut stemmed);
            assert_eq!(stemmed, expected, "{word}");
        }
    }
}
