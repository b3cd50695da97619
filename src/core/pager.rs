//! Pages long output on a terminal.

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    process::{Child, Command, Stdio},
};

use crate::{environment::Environment, os::redirect_stdout};

/// The pager that stdout goes to. Dropping it ends the output and waits for the pager.
#[derive(Debug)]
pub struct Pager {
    child: Child,
}

impl Pager {
    /// Starts `PAGER`, or `less`, which exits at once if everything fits on the screen. `None`
    /// without a terminal, if `PAGER` is `cat`, or if it cannot be started.
    pub fn start(environment: &Environment) -> Option<Self> {
        let is_dumb = environment.get("TERM").is_none_or(|terminal| terminal == "dumb");
        if is_dumb || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return None;
        }
        let wanted = environment.text("PAGER").unwrap_or_else(|| "less".into());
        if wanted.trim() == "cat" {
            return None;
        }
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&wanted).stdin(Stdio::piped());
        if environment.get("LESS").is_none() {
            // Exit if one screen is enough, show colours, do not clear the screen.
            command.env("LESS", "FRX");
        }
        let mut child = command.spawn().ok()?;
        redirect_stdout(child.stdin.take()?).ok()?;
        Some(Self { child })
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        // The pager sees the end of the text when the last writer closes the pipe. Its exit code
        // does not matter.
        let _ = io::stdout().flush();
        if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
            let _ = redirect_stdout(nowhere);
        }
        let _ = self.child.wait();
    }
}
