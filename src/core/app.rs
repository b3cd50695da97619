//! What every command gets: settings, paths, clock, output. Nothing else reads the environment.

use std::{
    fmt::Write as _,
    fs,
    io::{self, IsTerminal, Write as _},
};

use claude_mem_events::Id;
use serde::Serialize;

use crate::{
    clock::Clock,
    data_dir,
    environment::Environment,
    failure::Failure,
    os::{self, columns},
    paths::Paths,
    safe_text::{clean, write_json},
    settings::Settings,
};

/// The world as a command sees it.
#[derive(Debug)]
pub struct App {
    /// For the few variables that are no settings of ours.
    pub environment: Environment,
    /// Where things live.
    pub paths: Paths,
    /// What the user chose: environment, then file, then default.
    pub settings: Settings,
    /// What time it is.
    pub clock: Clock,
    /// Where answers go.
    pub output: Output,
}

impl App {
    /// Reads the environment and the settings file. A data directory of another user is refused.
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
        let output = Output { style_mark, columns: columns() };
        let clock = Clock::new(&environment);
        Self { environment, paths, settings, clock, output }
    }
}

/// Around the number of a colour, in texts that are still to be printed.
const STYLE_START: char = '\u{fdd0}';
const STYLE_END: char = '\u{fdd1}';

/// Data on stdout, talk on stderr. Whatever is printed is cleaned of control and invisible characters here; only
/// JSON is escaped instead.
#[derive(Debug)]
pub struct Output {
    /// Stands before the number of each colour until it is printed, so that the escape sequences we mean can be
    /// told from those in recorded text. Random, so that no recorded text can hold it. `None` without colours.
    style_mark: Option<String>,
    /// Found out before a pager takes the terminal's place.
    columns: Option<usize>,
}

impl Output {
    /// One line of data.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        let text = self.printable(&text.to_string());
        finish(writeln!(io::stdout().lock(), "{text}"))
    }

    /// One JSON object on a line of its own.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        finish(write_json(&mut stdout, value).and_then(|()| writeln!(stdout)))
    }

    /// What is happening, for a person who watches. Scripts read stdout and never see it.
    pub fn say(&mut self, text: impl std::fmt::Display) {
        let text = self.printable(&text.to_string());
        // Talk that nobody can hear changes nothing about the work.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// The text as it may reach a terminal: cleaned, but for the colours we put in.
    fn printable(&self, text: &str) -> String {
        let Some(mark) = &self.style_mark else { return clean(text).into_owned() };
        let mut pieces = text.split(mark.as_str());
        let mut printable = clean(pieces.next().unwrap_or_default()).into_owned();
        for piece in pieces {
            let (colour, rest) = piece.split_once(STYLE_END).unwrap_or(("0", piece));
            let _ = write!(printable, "\x1b[{colour}m{}", clean(rest));
        }
        printable
    }

    /// A page with headings, in colours where they are wanted.
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

    /// The text, dimmed where colours are wanted.
    pub fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// The text in this colour, where colours are wanted: the number of an ANSI escape, such as `31`.
    pub fn paint(&self, colour: &str, text: &str) -> String {
        match &self.style_mark {
            Some(mark) => format!("{mark}{colour}{STYLE_END}{text}{mark}0{STYLE_END}"),
            None => text.into(),
        }
    }

    /// The id in front stands out, and what it says stays plain.
    fn with_coloured_id(&self, line: &str) -> String {
        let (bullet, rest) = line.strip_prefix("- ").map_or(("", line), |rest| ("- ", rest));
        match rest.split_once(' ') {
            Some((id, rest)) => format!("{bullet}{} {rest}", self.paint("36", id)),
            None => line.into(),
        }
    }

    /// How many columns there are, if somebody looks at a terminal.
    pub fn columns(&self) -> Option<usize> {
        self.columns
    }
}

/// A reader that has seen enough (`| head`) closes the pipe, which is no failure of ours.
fn finish(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::new(format!("stdout cannot be written: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Colours are for terminals, unless `NO_COLOR` is set to anything.
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
        let coloured = Output { style_mark: Some("\u{fdd0}secret".into()), columns: None };
        let painted = coloured.paint("31", "\x1b[8mhid\u{202e}den");
        assert_eq!(
            coloured.printable(&format!("a\x1b]0;x\x07 {painted} b")),
            "a]0;x \x1b[31m[8mhidden\x1b[0m b"
        );
        let forged = "\u{fdd0}guess31\u{fdd1}red";
        assert_eq!(coloured.printable(forged), "guess31red");
        let plain = Output { style_mark: None, columns: None };
        assert_eq!(plain.printable(&plain.paint("31", "\x1b[8mx")), "[8mx");
    }
}
