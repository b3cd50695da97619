//! Generates secrets from templates, so that no file of this repository contains one.

const VENDORS: &str = include_str!("../fixtures/secrets/vendors.txt");
const FORMS: &str = include_str!("../fixtures/secrets/forms.txt");
const PLANTED: &str = include_str!("../fixtures/secrets/planted.txt");
const HARMLESS: &str = include_str!("../fixtures/secrets/harmless.txt");
const REALISTIC: &str = include_str!("../fixtures/secrets/realistic.txt");
const LOOKALIKES: &str = include_str!("../fixtures/secrets/lookalikes.txt");

/// A text, and the secrets in it that must be removed.
pub(crate) struct Example {
    /// The group for the rates.
    pub(crate) group: String,
    pub(crate) text: String,
    pub(crate) secrets: Vec<String>,
}

impl Example {
    fn new(group: &str, template: &str) -> Self {
        let (wide, template) = match template.strip_prefix("utf16:") {
            Some(template) => (true, template),
            None => (false, template),
        };
        let (text, secrets) = expand(template);
        let widen = |text: String| match wide {
            true => text.chars().flat_map(|character| [character, '\0']).collect(),
            false => text,
        };
        Self { group: group.into(), text: widen(text), secrets }
    }

    /// Whether less than half of each secret is left.
    pub(crate) fn is_redacted(&self, cleaned: &str) -> bool {
        let cleaned = cleaned.replace('\0', "");
        let is_left = |secret: &String| {
            let half = if secret.len() < 16 { secret.len() } else { secret.len() / 2 };
            secret
                .as_bytes()
                .windows(half)
                .any(|part| cleaned.as_bytes().windows(half).any(|window| window == part))
        };
        !self.secrets.iter().any(is_left)
    }
}

fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The detection, vendor and token of each line of vendors.txt.
fn vendors() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    lines(VENDORS).map(|line| {
        let mut columns = line.splitn(3, '\t');
        let mut column = || columns.next().expect("three columns");
        (column(), column(), column())
    })
}

/// Every vendor's token, assigned to a name such as `password` in every syntax.
pub(crate) fn assigned() -> Vec<Example> {
    let crossed = vendors().flat_map(|vendor| lines(FORMS).map(move |form| (vendor, form)));
    crossed
        .map(|((_, vendor, token), form)| {
            let form = form.replace("{name}", vendor).replace("{NAME}", &vendor.to_uppercase());
            let template = form.replace("{value}", token);
            Example { group: form_group(&form, vendor), ..Example::new("", &template) }
        })
        .collect()
}

fn form_group(form: &str, vendor: &str) -> String {
    form.replace(vendor, "x").replace(&vendor.to_uppercase(), "X")
}

/// The tokens recognized by their format, in a sentence.
pub(crate) fn in_prose() -> Vec<Example> {
    let known = vendors().filter(|(known, ..)| *known == "prose");
    known
        .map(|(_, vendor, token)| Example::new(vendor, &format!("we use {token} for it")))
        .collect()
}

/// One of each kind and form, by group.
pub(crate) fn planted() -> Vec<Example> {
    grouped(PLANTED)
}

/// Secrets in the contexts in which agents meet them, by group.
pub(crate) fn realistic() -> Vec<Example> {
    grouped(REALISTIC)
}

/// Texts that resemble the realistic secrets.
pub(crate) fn lookalikes() -> Vec<Example> {
    let example =
        |line| Example { group: "lookalikes".into(), text: expand(line).0, secrets: Vec::new() };
    lines(LOOKALIKES).map(example).collect()
}

fn grouped(file: &'static str) -> Vec<Example> {
    lines(file)
        .map(|line| {
            let (group, template) = line.split_once('\t').expect("a group, a tab, a text");
            Example::new(group, template)
        })
        .collect()
}

/// Texts that must not be redacted: placeholders in manuals, tokens that are far too short, and
/// names that only look like one.
pub(crate) fn harmless() -> Vec<Example> {
    let filled =
        vendors().filter(|(known, ..)| *known == "prose").flat_map(|(_, vendor, token)| {
            [Filler::Crosses, Filler::Example, Filler::Sequence, Filler::Short].map(|filler| {
                let text = format!("{vendor} shows {} here", filler.fill(token));
                Example { group: filler.name().into(), text, secrets: Vec::new() }
            })
        });
    let listed = lines(HARMLESS).map(|line| Example {
        group: "listed".into(),
        text: unescape(line),
        secrets: Vec::new(),
    });
    filled.chain(listed).collect()
}

/// What a manual writes instead of random characters.
#[derive(Clone, Copy)]
enum Filler {
    Crosses,
    Example,
    Sequence,
    /// A token of a quarter of the length.
    Short,
}

impl Filler {
    fn name(self) -> &'static str {
        match self {
            Self::Crosses => "xxxx",
            Self::Example => "EXAMPLE",
            Self::Sequence => "0123456789",
            Self::Short => "too short",
        }
    }

    fn fill(self, template: &str) -> String {
        let made = pieces(template).map(|piece| match piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Hole(hole) => {
                let length =
                    hole.split_once(':').map_or(0, |(_, length)| length.parse().expect("a length"));
                let from = |unit: &str| unit.chars().cycle().take(length).collect();
                match self {
                    Self::Crosses => from("x"),
                    Self::Example => from("EXAMPLE"),
                    Self::Sequence => from("0123456789abcdefghijklmnopqrstuvwxyz"),
                    Self::Short => made_up(hole, 1)[..length / 4].to_owned(),
                }
            }
        });
        made.collect()
    }
}

/// The text of a template, with its secrets.
pub(crate) fn expand(template: &str) -> (String, Vec<String>) {
    // Seeded by the template, so that another line does not change this one.
    let seed = template
        .bytes()
        .fold(1_u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let template = unescape(template);
    let (mut text, mut secrets) = (String::new(), Vec::new());
    for piece in pieces(&template) {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Hole(hole) => {
                let secret = made_up(hole, seed.wrapping_add(secrets.len() as u32));
                text.push_str(&secret);
                secrets.push(secret);
            }
        }
    }
    (text, secrets)
}

fn unescape(template: &str) -> String {
    template
        .replace("\\\\", "\u{1}")
        .replace("\\n", "\n")
        .replace("\\t", "\t")
        .replace("\\e", "\u{1b}")
        .replace('\u{1}', "\\")
}

enum Piece<'a> {
    Text(&'a str),
    Hole(&'a str),
}

fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        match hole(rest) {
            Some(0) => {
                let close = rest.find('}').expect("a closing brace");
                let hole = &rest[1..close];
                rest = &rest[close + 1..];
                Some(Piece::Hole(hole))
            }
            next => {
                let (text, behind) = rest.split_at(next.unwrap_or(rest.len()));
                rest = behind;
                Some(Piece::Text(text))
            }
        }
    })
}

fn hole(text: &str) -> Option<usize> {
    let classes =
        ["alnum", "hex", "upper", "lower", "letters", "base64", "word", "digits", "coded"];
    let holes = classes.iter().filter_map(|class| text.find(&format!("{{{class}:")));
    holes.chain(text.find("{=")).min()
}

/// Reproducible random characters.
pub(crate) fn made_up(hole: &str, seed: u32) -> String {
    if let Some(literal) = hole.strip_prefix('=') {
        return literal.to_owned();
    }
    if let Some(coded) = hole.strip_prefix("coded:") {
        let (prefix, length) = coded.rsplit_once(':').expect("a prefix and a length");
        return base64(&format!("{prefix}{}", made_up(&format!("alnum:{length}"), seed)));
    }
    let (class, length) = hole.split_once(':').expect("a class and a length");
    let alphabet: &[u8] = match class {
        "hex" => b"0123456789abcdef",
        "upper" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "lower" => b"abcdefghijklmnopqrstuvwxyz0123456789",
        "letters" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "digits" => b"123456789",
        "base64" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        _ => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    };
    let mut state = seed.wrapping_add(0x7f4a_7c15).wrapping_mul(0x9e37_79b9) | 1;
    let characters = (0..length.parse().expect("a length")).map(|_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        char::from(alphabet[state as usize % alphabet.len()])
    });
    characters.collect()
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = text.as_bytes().chunks(3).map(|group| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        let digit = |at: usize| match at <= group.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]),
            false => '=',
        };
        (0..4).map(digit).collect::<String>()
    });
    groups.collect()
}
