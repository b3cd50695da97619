//! The terminal of the live search: raw keys, the alternate screen, and restoring the terminal in
//! any case.

use std::{
    io::{self, Stdout, Write as _},
    panic, process, thread,
};

use claude_mem_core::{os, wrap::cut};
use crossterm::{
    clipboard::CopyToClipboard,
    cursor::{Hide, MoveTo, Show},
    execute, queue,
    style::Print,
    terminal::{
        Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
        enable_raw_mode,
    },
};

use crate::commands::signal::on_signal;

/// The content of the screen.
pub(super) struct Frame {
    pub(super) lines: Vec<String>,
    /// The line at the bottom.
    pub(super) last: String,
    /// The column of the cursor in the first line.
    pub(super) cursor: Option<usize>,
}

/// The terminal while a live search has it. Dropping it restores the terminal.
pub(super) struct Screen {
    out: Stdout,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        on_signal(restore)?;
        // Not every terminal sends a signal when it closes, and crossterm would read from it
        // forever.
        thread::spawn(|| {
            os::wait_for_hangup();
            process::exit(1);
        });
        enable_raw_mode()?;
        let mut screen = Self { out: io::stdout() };
        execute!(screen.out, EnterAlternateScreen)?;
        Ok(screen)
    }

    /// Columns and rows.
    pub(super) fn size() -> (usize, usize) {
        (os::columns().unwrap_or(80), os::rows().unwrap_or(24))
    }

    /// Draws all rows in one write.
    pub(super) fn draw(&mut self, frame: &Frame) -> io::Result<()> {
        let (columns, rows) = Self::size();
        let mut bytes = Vec::new();
        queue!(bytes, Hide)?;
        for row in 0..rows {
            let line = match row + 1 == rows {
                true => frame.last.as_str(),
                false => frame.lines.get(row).map_or("", String::as_str),
            };
            queue!(bytes, MoveTo(0, row as u16), Print(cut(line, columns)), Print("\x1b[0m"))?;
            queue!(bytes, Clear(ClearType::UntilNewLine))?;
        }
        if let Some(column) = frame.cursor {
            queue!(bytes, MoveTo(column as u16, 0), Show)?;
        }
        self.out.write_all(&bytes)?;
        self.out.flush()
    }

    /// Copies to the clipboard of the terminal, also over SSH (OSC 52).
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(self.out, CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Also called twice, and by another thread: the last resort must not fail.
fn restore() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}
