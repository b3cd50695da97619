//! What every command gets: settings, paths, clock, output. Nothing else reads the environment.

use std::{
    fs,
    io::{self, IsTerminal, Write},
};

use serde::Serialize;

use crate::{
    clock::Clock,
    data_dir,
    environment::Environment,
    failure::Failure,
    paths::Paths,
    settings::Settings,
    system::{self, columns},
};

/// The world as a command sees it.
#[derive(Debug)]
pub(crate) struct App {
    /// For the few variables that are no settings of ours.
    pub(crate) environment: Environment,
    /// Where things live.
    pub(crate) paths: Paths,
    /// What the user chose: environment, then file, then default.
    pub(crate) settings: Settings,
    /// What time it is.
    pub(crate) clock: Clock,
    /// Where answers go.
    pub(crate) output: Output,
}

impl App {
    /// Reads the environment and the settings file. A data directory of another user is refused.
    pub(crate) fn from_process(uses_data: bool) -> Result<Self, Failure> {
        let environment = Environment::of_process();
        let paths = Paths::find(&environment)?;
        if uses_data {
            data_dir::check(&paths)?;
            // Older versions created it with the user's umask.
            if fs::metadata(paths.memory()).is_ok_and(|found| system::is_open_to_others(&found)) {
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
    pub(crate) fn new(environment: Environment, paths: Paths) -> Self {
        let settings = Settings::load(&paths, &environment);
        let output =
            Output { is_coloured: is_coloured(&environment, &io::stdout()), columns: columns() };
        let clock = Clock::new(&environment);
        Self { environment, paths, settings, clock, output }
    }
}

/// Data on stdout, talk on stderr.
#[derive(Debug)]
pub(crate) struct Output {
    is_coloured: bool,
    /// Found out before a pager takes the terminal's place.
    columns: Option<usize>,
}

impl Output {
    /// One line of data.
    #[expect(
        clippy::unused_self,
        reason = "a caller that may print is one that was given the output"
    )]
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        finish(writeln!(io::stdout().lock(), "{text}"))
    }

    /// One JSON object on a line of its own.
    #[expect(
        clippy::unused_self,
        reason = "a caller that may print is one that was given the output"
    )]
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let written = serde_json::to_writer(&mut stdout, value).map_err(io::Error::from);
        finish(written.and_then(|()| writeln!(stdout)))
    }

    /// What is happening, for a person who watches. Scripts read stdout and never see it.
    #[expect(
        clippy::unused_self,
        reason = "a caller that may talk is one that was given the output"
    )]
    pub(crate) fn say(&mut self, text: impl std::fmt::Display) {
        // Talk that nobody can hear changes nothing about the work.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// A page with headings, in colours where they are wanted.
    pub(crate) fn page(&self, text: &str) -> String {
        if !self.is_coloured {
            return text.into();
        }
        let line = |line: &str| match line.as_bytes().first() {
            Some(b'#') if line.starts_with("# ") || line.starts_with("## ") => {
                format!("\x1b[1m{line}\x1b[0m")
            }
            Some(b'<') => format!("\x1b[2m{line}\x1b[0m"),
            Some(b'#' | b'S' | b'-') => coloured_id(line),
            _ => line.into(),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The text, dimmed where colours are wanted.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// The text in this colour, where colours are wanted: the number of an ANSI escape, such as `31`.
    pub(crate) fn paint(&self, colour: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.into() }
    }

    /// How many columns there are, if somebody looks at a terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
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
pub(crate) fn is_coloured(environment: &Environment, stream: &impl IsTerminal) -> bool {
    stream.is_terminal()
        && environment.get("NO_COLOR").is_none()
        && environment.get("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// The id in front stands out, and what it says stays plain.
fn coloured_id(line: &str) -> String {
    let (bullet, rest) = line.strip_prefix("- ").map_or(("", line), |rest| ("- ", rest));
    match rest.split_once(' ') {
        Some((id, rest)) => format!("{bullet}\x1b[36m{id}\x1b[0m {rest}"),
        None => line.into(),
    }
}
