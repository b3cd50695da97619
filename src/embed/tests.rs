//! Tokens and vectors of the built-in model, compared with those of reference programs.
//!
//! `tools/model/reference.py` writes the files in `reference/`.

use crate::{Model, Role, kernel::Instructions, windows};

/// The texts in `reference/tokens.tsv` that have a vector in `reference/vectors.f32`.
const WITH_VECTORS: [usize; 8] = [0, 1, 2, 4, 5, 8, 14, 15];

/// BLAKE3 over the bits of the vectors of all reference texts.
const VECTORS_DIGEST: &str = "ab8b26f105fa019721692c997febf3d1c58a9b6075fb5b3d24a5931726fcae1b";

fn model() -> Model<'static> {
    Model::parse(claude_mem_model::bytes()).unwrap()
}

/// Texts and their tokens. Queries have their prefix already.
fn reference() -> Vec<(String, Vec<u32>)> {
    let unescape = |text: &str| {
        let mut parts = text.split("\\u{");
        let mut plain = parts.next().unwrap().to_string();
        for part in parts {
            let (code, rest) = part.split_once('}').unwrap();
            plain.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            plain.push_str(rest);
        }
        plain
    };
    let parse = |line: &str| {
        let (text, tokens) = line.split_once('\t').unwrap();
        (unescape(text), tokens.split(' ').map(|token| token.parse().unwrap()).collect())
    };
    include_str!("reference/tokens.tsv").lines().map(parse).collect()
}

#[test]
fn tokens_are_those_of_the_reference_tokenizer() {
    let model = model();
    for (text, tokens) in reference() {
        assert_eq!(model.tokens(&text, Role::Memory), tokens, "{text:?}");
    }
}

#[test]
fn vectors_are_those_of_the_reference_runtime() {
    let model = model();
    let vectors = include_bytes!("reference/vectors.f32").as_chunks::<4>().0;
    let texts = reference();
    let expected = vectors.chunks(model.dimensions());
    assert_eq!(expected.len(), WITH_VECTORS.len());
    for (expected, text) in expected.zip(WITH_VECTORS) {
        let vector = model.embed(&texts[text].0, Role::Memory);
        for (value, expected) in vector.iter().zip(expected) {
            let expected = f32::from_le_bytes(*expected);
            assert!((value - expected).abs() < 1e-6, "text {text}: {value} is not {expected}");
        }
    }
}

/// The beginnings of the reference texts.
fn beginnings(chars: usize) -> Vec<String> {
    reference().iter().map(|(text, _)| text.chars().take(chars).collect()).collect()
}

#[test]
fn vector_instructions_change_no_bit() {
    let model = model();
    // Baseline code takes seconds for one long text.
    let mut texts = beginnings(8);
    texts[0] = reference().swap_remove(0).0;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embed = |instructions| {
        let vectors = model.embed_by(&texts, Role::Memory, instructions);
        vectors.iter().map(|vector| bits(vector)).collect::<Vec<_>>()
    };
    let baseline = embed(Instructions::Baseline);
    for instructions in Instructions::supported().into_iter().skip(1) {
        assert_eq!(embed(instructions), baseline, "{instructions:?}");
    }
}

#[test]
fn other_texts_in_a_batch_change_no_bit() {
    let model = model();
    // Together, more tokens than the model takes at once.
    let texts = [beginnings(60), beginnings(61), beginnings(62)].concat();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = model.embed_all(&texts, Role::Memory);
    assert_eq!(vectors.len(), texts.len());
    for (text, vector) in texts.iter().zip(vectors) {
        assert_eq!(bits(&model.embed(text, Role::Memory)), bits(&vector), "{text:?}");
    }
    assert_eq!(model.embed_all(&[], Role::Memory), Vec::<Vec<f32>>::new());
}

#[test]
fn every_machine_gives_the_same_bits() {
    let model = model();
    let texts = reference().into_iter().map(|(text, _)| text);
    let vectors: Vec<u8> = texts
        .flat_map(|text| bits(&model.embed(&text, Role::Memory)))
        .flat_map(u32::to_le_bytes)
        .collect();
    assert_eq!(blake3::hash(&vectors).to_hex().as_str(), VECTORS_DIGEST);
}

fn bits(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_query_is_read_after_the_prefix_of_the_model() {
    let model = model();
    let (text, tokens) = &reference()[1];
    let query = text.strip_prefix(model.header.query_prefix).unwrap();
    assert_eq!(model.tokens(query, Role::Query), *tokens);
    let found = |text: &str| {
        let (query, memory) = (model.embed(query, Role::Query), model.embed(text, Role::Memory));
        query.iter().zip(memory).map(|(a, b)| a * b).sum::<f32>()
    };
    let limiter = "Failed sign-ins are throttled to five per minute and address";
    assert!(found(limiter) > found("The invoice number sequence must have no gaps") + 0.1);
}

#[test]
fn a_damaged_or_foreign_file_is_an_error_and_never_a_panic() {
    let bytes = claude_mem_model::bytes();
    let error = |bytes: &[u8]| Model::parse(bytes).unwrap_err().to_string();
    assert_eq!(
        error(b"GGUF, or anything"),
        "not a usable embedding model: it does not start with the magic bytes of a model"
    );
    let header =
        crate::format::Header::decode(bytes).map(|(_, body)| bytes.len() - body.len()).unwrap();
    for length in (0..header + 100).chain([bytes.len() / 2, bytes.len() - 1]) {
        assert!(Model::parse(&bytes[..length]).is_err(), "{length} bytes");
    }
    // The vocabulary and numbers in the header are validated; any weights give some vector.
    let mut damaged = bytes.to_vec();
    for at in (0..header).chain((header..header + 600_000).step_by(997)) {
        for value in [0x00, 0x7f, 0xff] {
            damaged[at] = value;
            if let Ok(model) = Model::parse(&damaged) {
                model.tokens("antidisestablishmentarianism, naturally", Role::Query);
            }
        }
        damaged[at] = bytes[at];
    }
    let weights = damaged.len() / 2;
    damaged[weights..].fill(0xff);
    let vector = Model::parse(&damaged).unwrap().embed("x", Role::Memory);
    assert!(vector.iter().all(|value| value.is_finite()));
}

#[test]
fn hostile_text_is_read_in_linear_time() {
    let model = model();
    let unknown = model.header.unknown_token;
    let tokens = |text: &str| model.tokens(text, Role::Memory);
    assert_eq!(tokens(&"a".repeat(10_000_000))[1..2], [unknown]);
    assert_eq!(tokens(&"\u{301}".repeat(10_000_000)).len(), 2);
    assert_eq!(tokens(&"[CLS]".repeat(1_000_000)).len(), model.header.tokens_max);
    assert_eq!(windows(&"a".repeat(10_000_000)).len(), 1);
}

#[test]
fn the_model_reads_english_and_code_but_no_other_script() {
    let model = model();
    for text in [
        "how do we keep people from logging in too often",
        "Wie begrenzen wir die Anmeldungen? Größe",
        "src/main.rs:42 `x_y` == 0xff",
        "the café in 東京 has 4 seats",
    ] {
        assert!(model.can_read(text), "{text}");
    }
    for text in [
        "",
        " \u{200b} ",
        "数据库迁移失败了",
        "データベースの移行に失敗した",
        "데이터베이스 마이그레이션",
        "Сервер базы данных упал",
        "الخادم توقف عن العمل",
        "เซิร์ฟเวอร์ล่ม",
        "🚀 ✅ deploy 🔥",
    ] {
        assert!(!model.can_read(text), "{text}");
    }
}

#[test]
fn words_have_a_meaning_and_random_letters_have_none() {
    let model = model();
    for text in ["ci", "git rebase", "Anmeldungen", "deduplicate", "zzzxqv login"] {
        assert!(model.knows_a_word(text), "{text}");
    }
    for text in ["zzzxqv", "asdfgh", "qwertyuiop xyzzy", "", "…"] {
        assert!(!model.knows_a_word(text), "{text}");
    }
}

#[test]
fn windows_overlap_and_are_few() {
    let text = |words: usize| (0..words).map(|word| format!(" w{word}\n")).collect::<String>();
    let bounds = |words| {
        let text = text(words);
        let bounds = windows(&text).into_iter().map(|window| {
            let words: Vec<_> = window.split_whitespace().collect();
            assert_eq!(window, window.trim());
            format!("{}-{}", words[0], words[words.len() - 1])
        });
        bounds.collect::<Vec<_>>()
    };
    assert_eq!(bounds(0), [""; 0]);
    assert_eq!(bounds(1), ["w0-w0"]);
    assert_eq!(bounds(160), ["w0-w159"]);
    assert_eq!(bounds(161), ["w0-w159", "w120-w160"]);
    assert_eq!(bounds(1000), ["w0-w159", "w120-w279", "w240-w399"]);
}

#[test]
fn the_header_determines_the_properties_of_the_model() {
    let model = model();
    assert_eq!(model.name(), "snowflake-arctic-embed-s");
    assert_eq!((model.dimensions(), model.center().len()), (384, 384));
    assert!((model.words_weight() - 0.2).abs() < 1e-6);
    assert_eq!(model.id().to_string(), "3125bca72aca2b8eac32f304d60745d3");
}
