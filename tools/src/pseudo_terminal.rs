//! A pseudo-terminal, for programs that behave differently at a terminal.

use std::{
    fs::{File, OpenOptions},
    io,
    process::{Child, Command},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// The controlling end of a terminal, and the path of the other end.
pub fn open_terminal() -> io::Result<(File, String)> {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&screen)?;
    unlockpt(&screen)?;
    let name = ptsname(&screen, Vec::new())?;
    Ok((screen.into(), name.to_string_lossy().into_owned()))
}

/// Sets the size of a terminal. The program in it gets a signal.
pub fn resize(screen: &File, columns: u16, rows: u16) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(screen, size)?)
}

/// Starts a command with all standard streams connected to a terminal of this size.
pub fn spawn(mut command: Command, columns: u16, rows: u16) -> io::Result<(Child, File)> {
    let (screen, name) = open_terminal()?;
    resize(&screen, columns, rows)?;
    let end = || OpenOptions::new().read(true).write(true).open(&name);
    command.env("TERM", "xterm-256color").env("PAGER", "cat");
    let child = command.stdin(end()?).stdout(end()?).stderr(end()?).spawn()?;
    Ok((child, screen))
}
