//! Long answers, one screen after the other, where somebody sits at a terminal.

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    process::{Child, Command, Stdio},
};

use crate::{environment::Environment, os::redirect_stdout};

/// The program that stdout goes to. When it is dropped, what was printed is complete, and it is waited for.
#[derive(Debug)]
pub struct Pager {
    child: Child,
}

impl Pager {
    /// Starts what `PAGER` names, or `less`, which then ends at once if everything fits on the screen. Nothing, if
    /// nobody looks at a terminal, if `PAGER` is `cat`, or if it cannot be started.
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
            // Ends if one screen is enough, shows colours, leaves the text where it is.
            command.env("LESS", "FRX");
        }
        let mut child = command.spawn().ok()?;
        redirect_stdout(child.stdin.take()?).ok()?;
        Some(Self { child })
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        // It sees the end of the text when nobody holds the pipe any more; whether it liked it is its business.
        let _ = io::stdout().flush();
        if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
            let _ = redirect_stdout(nowhere);
        }
        let _ = self.child.wait();
    }
}
