//! The context of a command: settings, paths, clock and output.

use std::{
    fmt::Write as _,
    fs,
    io::{self, IsTerminal, Write as _},
};

use claude_mem_events::Id;
use serde::Serialize;

use crate::{
    clock::Clock,
    environment::Environment,
    failure::Failure,
    os::{self, columns, stderr_columns},
    paths::{Paths, data_dir},
    progress,
    safe_text::{clean, write_json},
    settings::Settings,
    wrap,
};

/// The context of a command.
#[derive(Debug)]
pub struct App {
    /// For variables that are not settings.
    pub environment: Environment,
    pub paths: Paths,
    pub settings: Settings,
    pub clock: Clock,
    pub output: Output,
}

impl App {
    /// Reads the environment and the settings file. Rejects a data directory of another user.
    pub fn from_process(uses_data: bool) -> Result<Self, Failure> {
        let environment = Environment::of_process();
        let paths = Paths::find(&environment)?;
        if uses_data {
            data_dir::check(&paths)?;
            // Older versions created it with the user's umask.
            if fs::metadata(paths.memory()).is_ok_and(|found| os::is_open_to_others(&found)) {
                let _ = data_dir::tighten(&paths);
            }
        }
        let mut app = Self::new(environment, paths);
        for problem in app.settings.problems() {
            app.output.say(format_args!("warning: {problem}"));
        }
        Ok(app)
    }

    /// Reads the settings file of this data directory.
    pub fn new(environment: Environment, paths: Paths) -> Self {
        let settings = Settings::load(&paths, &environment);
        let style_mark = is_coloured(&environment, &io::stdout())
            .then(|| format!("{STYLE_START}{}", Id::random(0)));
        let output = Output { style_mark, columns: columns(), stderr_columns: stderr_columns() };
        let clock = Clock::new(&environment);
        Self { environment, paths, settings, clock, output }
    }
}

/// Delimiters of a colour number in text that is not printed yet.
const STYLE_START: char = '\u{fdd0}';
const STYLE_END: char = '\u{fdd1}';

/// Data goes to stdout, messages to stderr. Control and invisible characters are removed here; JSON
/// escapes them. Lines are wrapped to the terminal's width; without a terminal they stay unchanged.
#[derive(Debug)]
pub struct Output {
    /// Marks our own colours until they are printed, to distinguish them from escape sequences in
    /// recorded text. Random, so that recorded text cannot contain it. `None` without colours.
    style_mark: Option<String>,
    /// Read before a pager replaces stdout.
    columns: Option<usize>,
    stderr_columns: Option<usize>,
}

impl Output {
    /// Prints one line of data.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        let text = wrapped(self.printable(&text.to_string()), self.columns);
        progress::make_room();
        finish(writeln!(io::stdout().lock(), "{text}"))
    }

    /// Prints one JSON object on a line.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        progress::make_room();
        let mut stdout = io::stdout().lock();
        finish(write_json(&mut stdout, value).and_then(|()| writeln!(stdout)))
    }

    /// Prints a message for people to stderr.
    pub fn say(&mut self, text: impl std::fmt::Display) {
        let text = wrapped(self.printable(&text.to_string()), self.stderr_columns);
        progress::make_room();
        // A closed stderr must not stop the work.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// The text without our colours.
    pub fn unpainted(&self, text: &str) -> String {
        let Some(mark) = &self.style_mark else { return text.into() };
        let mut pieces = text.split(mark.as_str());
        let first = pieces.next().unwrap_or_default();
        let rest = pieces.map(|piece| piece.split_once(STYLE_END).map_or(piece, |(_, rest)| rest));
        [first].into_iter().chain(rest).collect()
    }

    /// Removes unsafe characters and inserts our colours.
    pub fn printable(&self, text: &str) -> String {
        let Some(mark) = &self.style_mark else { return clean(text).into_owned() };
        let mut pieces = text.split(mark.as_str());
        let mut printable = clean(pieces.next().unwrap_or_default()).into_owned();
        for piece in pieces {
            let (colour, rest) = piece.split_once(STYLE_END).unwrap_or(("0", piece));
            let _ = write!(printable, "\x1b[{colour}m{}", clean(rest));
        }
        printable
    }

    /// Colours the headings of a page.
    pub fn page(&self, text: &str) -> String {
        if self.style_mark.is_none() {
            return text.into();
        }
        let line = |line: &str| match line.as_bytes().first() {
            Some(b'#') if line.starts_with("# ") || line.starts_with("## ") => {
                self.paint("1", line)
            }
            Some(b'<') => self.dim(line),
            Some(b'#' | b'S' | b'-') => self.with_coloured_id(line),
            _ => line.into(),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Dims a text if colours are on.
    pub fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Colours a text if colours are on. `colour` is the number of an ANSI escape, such as `31`.
    pub fn paint(&self, colour: &str, text: &str) -> String {
        match &self.style_mark {
            Some(mark) => format!("{mark}{colour}{STYLE_END}{text}{mark}0{STYLE_END}"),
            None => text.into(),
        }
    }

    /// Highlights the id at the start of a line.
    fn with_coloured_id(&self, line: &str) -> String {
        let (bullet, rest) = line.strip_prefix("- ").map_or(("", line), |rest| ("- ", rest));
        match rest.split_once(' ') {
            Some((id, rest)) => format!("{bullet}{} {rest}", self.paint("36", id)),
            None => line.into(),
        }
    }

    /// The terminal's width, if stdout is a terminal.
    pub fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// The terminal's width, if stderr is a terminal.
    pub fn stderr_columns(&self) -> Option<usize> {
        self.stderr_columns
    }

    /// Wraps a text for stdout such that all but its first line is indented.
    pub fn hanging(&self, indent: usize, text: &str) -> String {
        match self.columns {
            Some(columns) => wrap::wrap_hanging(text, columns, indent),
            None => text.into(),
        }
    }
}

fn wrapped(text: String, columns: Option<usize>) -> String {
    match columns {
        Some(columns) => wrap::wrap(&text, columns),
        None => text,
    }
}

/// A reader such as `| head` may close the pipe early. That is not an error.
fn finish(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::new(format!("stdout cannot be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Colours are on for a terminal, unless `NO_COLOR` is set.
pub fn is_coloured(environment: &Environment, stream: &impl IsTerminal) -> bool {
    stream.is_terminal()
        && environment.get("NO_COLOR").is_none()
        && environment.get("TERM").is_none_or(|terminal| terminal != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_colours_are_printed_and_those_of_others_are_not() {
        let output = |style_mark| Output { style_mark, columns: None, stderr_columns: None };
        let coloured = output(Some("\u{fdd0}secret".into()));
        let painted = coloured.paint("31", "\x1b[8mhid\u{202e}den");
        assert_eq!(
            coloured.printable(&format!("a\x1b]0;x\x07 {painted} b")),
            "a]0;x \x1b[31m[8mhidden\x1b[0m b"
        );
        assert_eq!(coloured.unpainted(&painted), "\x1b[8mhid\u{202e}den");
        let forged = "\u{fdd0}guess31\u{fdd1}red";
        assert_eq!(coloured.printable(forged), "guess31red");
        let plain = output(None);
        assert_eq!(plain.printable(&plain.paint("31", "\x1b[8mx")), "[8mx");
    }
}
