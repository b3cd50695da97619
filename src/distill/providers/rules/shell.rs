//! Splits a shell command into steps, to find the programs it runs.

use super::text::{is_among, one_line};

/// Longer commands are scripts, and only their start is parsed.
const COMMAND_BYTES_MAX: usize = 16_384;

const STEPS_MAX: usize = 40;

/// The operator between a simple command and the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// `&&`: the next command runs only after success, so the last exit code covers both.
    And,
    /// `||`: the next command hides a failure.
    Or,
    /// `|`: the exit code is that of the last command, unless `pipefail` is set.
    Pipe,
    /// `;`, `&` or a line break: the exit code is that of the next command.
    Then,
    /// No operator: the exit code of the line is that of this command.
    End,
}

/// One simple command of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Without redirections, leading assignments and wrapper programs such as `sudo`.
    pub(super) words: Vec<String>,
    /// As written, on one line.
    pub(super) text: String,
    /// The content of its here-document; empty if it has none.
    pub(super) document: String,
    pub(super) next: Next,
}

/// Splits a command line into simple commands, in order. Here-documents are not parsed as commands.
pub(super) fn steps(command: &str) -> Vec<Step> {
    let mut end = command.len().min(COMMAND_BYTES_MAX);
    while !command.is_char_boundary(end) {
        end -= 1;
    }
    let mut splitter = Splitter::default();
    splitter.run(&command[..end]);
    let mut steps: Vec<Step> = splitter.steps;
    steps.truncate(STEPS_MAX);
    for step in &mut steps {
        let words = without_redirections(std::mem::take(&mut step.words));
        step.words = bare(words);
    }
    steps
}

#[derive(Default)]
struct Splitter {
    steps: Vec<Step>,
    words: Vec<String>,
    word: String,
    is_quoted: bool,
    /// The byte offset where the step starts.
    start: usize,
    /// The end marker of the here-document that starts on the next line.
    delimiter: Option<String>,
}

impl Splitter {
    fn run(&mut self, command: &str) {
        let mut quote = None;
        let mut chars = command.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            #[cfg(test)]
            super::step_count::add(1);
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (Some('\''), c) => self.word.push(c),
                // A message in a here-document may have quotes of its own.
                (Some('"'), '$') if command[at..].starts_with("$(cat <<") => {
                    let end = at + substitution_bytes(&command[at..]);
                    self.word.push_str(&command[at..end]);
                    while chars.next_if(|(next, _)| *next < end).is_some() {}
                }
                // In double quotes a backslash escapes few characters, and none in `D:\shop`.
                (_, '\\') if is_plain_backslash(quote, &self.word, chars.peek()) => {
                    self.word.push(c);
                }
                (_, '\\') => {
                    if let Some((_, next)) = chars.next()
                        && next != '\n'
                    {
                        self.word.push(next);
                    }
                }
                (None, '\'' | '"') => {
                    quote = Some(c);
                    self.is_quoted = true;
                }
                (None, '#') if self.word.is_empty() && !self.is_quoted => {
                    self.end_step(command, at, Next::Then);
                    let mut end = at;
                    while let Some((next, _)) = chars.next_if(|(_, c)| *c != '\n') {
                        end = next;
                    }
                    self.start = (end + 1).min(command.len());
                    while !command.is_char_boundary(self.start) {
                        self.start += 1;
                    }
                }
                (None, '\n') => {
                    self.end_step(command, at, Next::Then);
                    if let Some(delimiter) = self.delimiter.take() {
                        let skipped = document_bytes(&command[at + 1..], &delimiter);
                        if let Some(step) = self.steps.last_mut() {
                            command[at + 1..at + 1 + skipped].clone_into(&mut step.document);
                        }
                        self.start = at + 1 + skipped;
                        while chars.next_if(|(next, _)| *next < at + 1 + skipped).is_some() {}
                    }
                }
                (None, '<')
                    if command[at..].starts_with("<<") && !command[at..].starts_with("<<<") =>
                {
                    self.end_word();
                    self.delimiter = delimiter(&command[at + 2..]);
                    while chars.next_if(|(_, c)| !c.is_whitespace()).is_some() {}
                }
                (None, '&') if self.word.ends_with(['>', '<']) => self.word.push(c),
                (None, '&') if command[at..].starts_with("&>") => self.word.push(c),
                (None, '(') if !self.word.is_empty() => self.word.push(c),
                (None, ';' | '&' | '|' | '(' | ')') => {
                    let (next, bytes) = match &command[at..] {
                        rest if rest.starts_with("&&") => (Next::And, 2),
                        rest if rest.starts_with("||") => (Next::Or, 2),
                        rest if rest.starts_with("|&") => (Next::Pipe, 2),
                        rest if rest.starts_with('|') => (Next::Pipe, 1),
                        _ => (Next::Then, 1),
                    };
                    self.end_step(command, at, next);
                    while chars.next_if(|(second, _)| *second < at + bytes).is_some() {}
                    self.start = at + bytes;
                }
                (None, c) if c.is_whitespace() => self.end_word(),
                (_, c) => self.word.push(c),
            }
        }
        self.end_step(command, command.len(), Next::End);
        if let Some(last) = self.steps.last_mut() {
            last.next = Next::End;
        }
    }

    fn end_word(&mut self) {
        if !self.word.is_empty() || self.is_quoted {
            self.words.push(std::mem::take(&mut self.word));
        }
        self.is_quoted = false;
    }

    fn end_step(&mut self, command: &str, at: usize, next: Next) {
        self.end_word();
        if self.words.is_empty() {
            // `(a) && b`: the operator after a group applies to its last command.
            if let Some(last) = self.steps.last_mut().filter(|_| next != Next::Then) {
                last.next = next;
            }
        } else {
            let text = command.get(self.start..at).unwrap_or_default();
            let text = one_line(&text.replace("\\\n", " "));
            let words = std::mem::take(&mut self.words);
            self.steps.push(Step { words, text, document: String::new(), next });
        }
        self.start = (at + 1).min(command.len());
        while !command.is_char_boundary(self.start) {
            self.start += 1;
        }
    }
}

fn is_plain_backslash(quote: Option<char>, word: &str, next: Option<&(usize, char)>) -> bool {
    let is_special = next.is_none_or(|(_, c)| "$`\"\\\n".contains(*c));
    let is_on_a_drive = word.as_bytes().get(1) == Some(&b':');
    !is_special && (quote == Some('"') || is_on_a_drive)
}

fn delimiter(after: &str) -> Option<String> {
    let rest = after.trim_start_matches('-').trim_start();
    let word = rest.split_whitespace().next()?;
    #[cfg(test)]
    super::step_count::add(after.len() - rest.len() + word.len());
    Some(word.trim_matches(['\'', '"', '\\']).to_owned())
}

/// The length of `$(cat <<'EOF'` with its here-document; one if it has none.
fn substitution_bytes(text: &str) -> usize {
    let Some(line_end) = text.find('\n') else { return 1 };
    let delimiter = delimiter(&text["$(cat <<".len().min(line_end)..line_end]);
    delimiter
        .map_or(1, |delimiter| line_end + 1 + document_bytes(&text[line_end + 1..], &delimiter))
}

/// The length of the here-document at the start of `text`, including its end marker.
fn document_bytes(text: &str, delimiter: &str) -> usize {
    let mut bytes = 0;
    for line in text.split_inclusive('\n') {
        bytes += line.len();
        #[cfg(test)]
        super::step_count::add(line.len());
        if line.trim() == delimiter {
            break;
        }
    }
    bytes
}

fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mark = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        match mark {
            ">" | ">>" | "<" => drop(words.next()),
            _ if mark.starts_with(['>', '<']) => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// Wrapper programs: the actual command is in their arguments.
const RUNNERS: &str =
    "sudo|time|env|nohup|npx|bunx|exec|command|then|do|else|if|!|while|xargs|nice|rtk";

fn bare(mut words: Vec<String>) -> Vec<String> {
    // Moved once, at the end: a command that consists of assignments can have thousands of words.
    let mut from = 0;
    loop {
        #[cfg(test)]
        super::step_count::add(1);
        let Some(first) = words.get(from) else { return Vec::new() };
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        let skip = match first.as_str() {
            _ if is_assignment => 1,
            "timeout" => 2,
            // `rtk test bun test` shortens the output of its command.
            "rtk" if words.get(from + 1).is_some_and(|word| word == "test" || word == "err") => 2,
            word if is_among(word, RUNNERS) => {
                let flags = words[from + 1..].iter().take_while(|word| word.starts_with('-'));
                let flags: Vec<&String> = flags.collect();
                let has_value = flags.last().is_some_and(|flag| *flag == "-u" || *flag == "-g");
                1 + flags.len() + usize::from(word == "sudo" && has_value)
            }
            _ => return words.split_off(from),
        };
        #[cfg(test)]
        super::step_count::add(skip);
        from += skip;
    }
}

#[cfg(test)]
mod tests {
    use super::{super::step_count, *};

    fn shown(command: &str) -> String {
        let words = |step: &Step| step.words.join(" ");
        steps(command).iter().map(words).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn the_programs_of_a_command_are_found() {
        let cases = [
            (
                "cd /p && RUST_LOG=debug cargo test -p a 2>&1 | tail -5",
                "cd /p | cargo test -p a | tail -5",
            ),
            ("git add -A; git commit -m 'a; b' >/dev/null", "git add -A | git commit -m a; b"),
            ("sudo -E timeout 60 npx --yes vitest run &> out.txt", "vitest run"),
            ("cat <<'EOF' > x.py\nimport a; b && c\nEOF\npython x.py", "cat | python x.py"),
            ("# note\nmake \\\n  all # rest", "make all"),
            ("echo \"unclosed", "echo unclosed"),
            ("", ""),
            (";;&&||()", ""),
            ("wc -l < in.txt", "wc -l"),
            ("sudo -u postgres psql shop", "psql shop"),
            ("rtk git add a && rtk git commit -m x", "git add a | git commit -m x"),
            ("rtk test bun run test", "bun run test"),
            (r#"cd "D:\shop\src" && go test \$x"#, r"cd D:\shop\src | go test $x"),
            (r"cd D:\shop\src; ls a\ b", r"cd D:\shop\src | ls a b"),
        ];
        for (command, expected) in cases {
            assert_eq!(shown(command), expected, "{command}");
        }
    }

    #[test]
    fn commands_of_hostile_fragments_are_read_in_linear_time() {
        step_count::assert_linear(COMMAND_BYTES_MAX, |command| drop(steps(command)));
    }

    #[test]
    fn a_message_given_by_a_here_document_stays_one_word() {
        let command =
            "git commit -m \"$(cat <<'EOF'\nfix: the cart\n\nBody; more\nEOF\n)\" && git push";
        let steps = steps(command);
        assert_eq!(steps.len(), 2, "{steps:?}");
        assert!(steps[0].words[3].contains("fix: the cart"), "{steps:?}");
        assert_eq!(steps[1].words, ["git", "push"]);
        let quoted = "git commit -m \"$(cat <<'EOF'\nShow \"carts\" && more\nEOF\n)\"; ls";
        let steps = super::steps(quoted);
        assert!(steps[0].words[3].contains("Show \"carts\" && more"), "{steps:?}");
        assert_eq!((steps.len(), steps[1].words.join(" ")), (2, "ls".to_owned()));
    }

    #[test]
    fn the_operator_after_a_command_is_parsed() {
        let next = |command: &str| -> Vec<Next> { steps(command).iter().map(|s| s.next).collect() };
        assert_eq!(next("a && b"), [Next::And, Next::End]);
        assert_eq!(next("(a; b) || true"), [Next::Then, Next::Or, Next::End]);
        assert_eq!(next("a 2>&1 | tail -3; echo x\n"), [Next::Pipe, Next::Then, Next::End]);
        assert_eq!(next("a |& tee log & b"), [Next::Pipe, Next::Then, Next::End]);
        assert_eq!(next("a &> out"), [Next::End]);
    }

    #[test]
    fn a_command_is_kept_as_it_was_written() {
        let command = "cd p && PATH=/x:$PATH  go 'a b' # note\nssh h <<'E'\nls ü\nE\nmake";
        let texts: Vec<String> = steps(command).into_iter().map(|step| step.text).collect();
        assert_eq!(texts, ["cd p", "PATH=/x:$PATH go 'a b'", "ssh h <<'E'", "make"]);
        assert_eq!(steps(command)[2].document, "ls ü\nE\n");
    }
}
