//! Classifies strings by their characters: random, words, or a sample.

/// How much of a token is classified. Its start suffices, and this limits the cost for untrusted
/// text.
pub(super) const JUDGED_BYTES_MAX: usize = 64;

/// Whether a token was generated: neither filler, nor a sample, nor words.
pub(super) fn is_generated(body: &[u8]) -> bool {
    let body = &body[..body.len().min(JUDGED_BYTES_MAX)];
    looks_random(body) && is_varied(body)
}

/// Whether it is neither filler nor a sample.
pub(super) fn is_varied(body: &[u8]) -> bool {
    const DISTINCT_MIN: u32 = 5;
    distinct(body) >= DISTINCT_MIN && !is_sample(body) && !is_sequence(body)
}

/// Whether the characters are unlike words: digits between letters, capitals within words, or many
/// consonants in a row.
pub(super) fn looks_random(bytes: &[u8]) -> bool {
    const CONSONANTS_MIN: u32 = 6;
    let (mut digit_groups, mut capitals, mut consonants, mut consonants_max) = (0, 0, 0, 0);
    let mut before = b' ';
    for (at, &byte) in bytes.iter().enumerate() {
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        let starts_digits = byte.is_ascii_digit() && before.is_ascii_alphabetic();
        let ends_digits = byte.is_ascii_alphabetic() && before.is_ascii_digit();
        digit_groups += u32::from(starts_digits) + u32::from(ends_digits);
        // A word within a name starts with a capital, followed by at least two lower-case letters.
        let is_capital = byte.is_ascii_uppercase() && before.is_ascii_lowercase();
        let starts_word = is_capital && starts_word(byte, after, bytes.get(at + 2).copied());
        capitals += u32::from(is_capital && !starts_word);
        if starts_word {
            consonants = 0;
        }
        consonants = if is_consonant(byte) { consonants + 1 } else { 0 };
        consonants_max = consonants_max.max(consonants);
        before = byte;
    }
    let few = (bytes.len() as u32 / 10).max(2);
    digit_groups > 2 || capitals >= few || consonants_max >= CONSONANTS_MIN
}

/// Whether a word may start like this: two lower-case letters follow, with a vowel or a pair such
/// as `St`.
fn starts_word(capital: u8, second: u8, third: Option<u8>) -> bool {
    let pair =
        matches!(capital, b'S' | b'T' | b'C' | b'P') && matches!(second, b't' | b'h' | b'c' | b'p');
    let third = third.unwrap_or(b' ');
    second.is_ascii_lowercase()
        && third.is_ascii_lowercase()
        && (pair || !is_consonant(second) || !is_consonant(third))
}

fn is_consonant(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
        && !matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Whether it is an obvious sample: `AKIAIOSFODNN7EXAMPLE`, `ghp_xxxxxxxx`.
pub(super) fn is_sample(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] = [
        b"example",
        b"xxxx",
        b"placeholder",
        b"redacted",
        b"changeme",
        b"dummy",
        b"your_",
        b"your-",
        b"insert",
    ];
    let value = &value[..value.len().min(JUDGED_BYTES_MAX)];
    let is_at = |at: usize, word: &[u8]| {
        value[at..].get(..word.len()).is_some_and(|given| given.eq_ignore_ascii_case(word))
    };
    let starts = |at: usize, word: &[u8]| value[at].eq_ignore_ascii_case(&word[0]);
    (0..value.len()).any(|at| WORDS.iter().any(|word| starts(at, word) && is_at(at, word)))
}

/// Whether at least half of it is a sequence: `abcdefgh`, `0123456789`, `a1b2c3d4`.
pub(super) fn is_sequence(body: &[u8]) -> bool {
    const RUN_MIN: usize = 5;
    let follows = |one: u8, next: u8| next == one.wrapping_add(1) || (one, next) == (b'9', b'0');
    let counted = |step: usize| {
        let (mut run, mut counted) = (0, 0);
        for pair in body.windows(step + 1) {
            run = if follows(pair[0], pair[step]) { run + 1 } else { 0 };
            counted += match run {
                0..RUN_MIN => 0,
                RUN_MIN => RUN_MIN,
                _ => 1,
            };
        }
        counted
    };
    counted(1).max(counted(2)) * 2 >= body.len().max(1)
}

fn distinct(body: &[u8]) -> u32 {
    let mut seen = [0_u64; 4];
    for &byte in body {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|part| part.count_ones()).sum()
}

/// Decodes base64, up to the first invalid byte and the size of the buffer.
pub(super) fn decoded<'a>(text: &[u8], room: &'a mut [u8]) -> &'a [u8] {
    let (mut bits, mut count, mut length) = (0_u32, 0, 0);
    for &byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 && length < room.len() {
            count -= 8;
            room[length] = (bits >> count) as u8;
            length += 1;
        } else if length == room.len() {
            break;
        }
    }
    &room[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_characters_are_distinguished_from_words() {
        for random in [
            "QacgQrLtfonQtOCqmoiuOaYl",
            "uvp91w6fms53olavlgq139fd",
            "dfd06ee33720dd2068ba67138ae26a17",
            "GfXyqWncCWN8PlXGASCW1fkh62MTDy",
            "Q7ZP3M5R8T2V6W4X",
            "wqkzmtrplxvbnhgsdqwe",
            "hTaspLufxPfkbWcralKIeUkMhcjjIpgAam",
        ] {
            assert!(looks_random(random.as_bytes()), "{random}");
        }
        for words in [
            "requiredCharacteristicTypes",
            "testECDSAP256Key",
            "correct-horse-battery-staple",
            "serving_cell_information_2",
            "nyc/meetup-2024",
            "1.0.0-beta.1",
            "DOT11_DIALOG_TOKEN",
            "ReadUint16LengthPrefixed",
        ] {
            assert!(!looks_random(words.as_bytes()), "{words}");
        }
    }

    #[test]
    fn samples_are_distinguished_from_tokens() {
        for sample in
            ["0123456789abcdef0123", "a1b2c3d4e5f6a7b8", "IOSFODNN7EXAMPLE", "aaaaaaaaaaaaaaaaaa"]
        {
            assert!(!is_generated(sample.as_bytes()), "{sample}");
        }
        assert!(is_generated(b"16C7e42F292c6912E7710c838347Ae178B4a"));
    }

    #[test]
    fn base64_is_read() {
        let mut room = [0; 16];
        assert_eq!(decoded(b"YWRtaW46aHVudGVyMg==", &mut room), b"admin:hunter2");
        assert_eq!(decoded(&b"YWRtaW46".repeat(9), &mut room).len(), 16);
    }
}
