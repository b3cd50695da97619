//! `claude-mem remote key`: the encryption key of backups.

use std::{
    fs,
    io::{self, IsTerminal as _, Read as _},
};

use clap::{Args, Subcommand};

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_sync::ship::key::{self, Key};

/// Manage the backup encryption key
///
/// With a key, `ship` encrypts everything before upload. Without the key a backup cannot be read,
/// not even by you: write it down, or keep it in a password manager.
#[derive(Debug, Args)]
pub(crate) struct KeyCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a key; later uploads are encrypted
    New,
    /// Print the key, to write it down or use it on another machine
    Show,
    /// Import a key from standard input or a file
    Import {
        /// File that contains the key [default: standard input]
        #[arg(value_name = "FILE")]
        file: Option<std::path::PathBuf>,
    },
    /// Print the path of the key file
    Path,
    /// Print the key's fingerprint, which error messages name
    Fingerprint,
}

impl KeyCommand {
    /// No action replaces an existing key.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let path = app.paths.ship_key();
        match self.action {
            Action::New => {
                let key = Key::generate().map_err(|error| {
                    Failure::new(format!("the system provides no random bytes: {error}"))
                })?;
                save(app, &key)?;
                app.output.line(key.to_text())?;
                app.output.say("write it down: without it the backup cannot be read");
                Ok(())
            }
            Action::Show => {
                let key = existing(app)?;
                app.output.line(key.to_text())
            }
            Action::Import { file } => {
                let text = match file {
                    Some(file) => fs::read_to_string(&file).map_err(|error| {
                        Failure::new(format!("{} cannot be read: {error}", file.display()))
                    })?,
                    None => typed(app)?,
                };
                let key = Key::from_text(&text).map_err(|why| {
                    Failure::usage(format!("that is not a key: {why}"))
                        .remedy("print it on the other machine with `claude-mem remote key show`")
                })?;
                if Key::load(&path)?.as_ref() != Some(&key) {
                    save(app, &key)?;
                }
                app.output.line(format_args!("key {} is in use", key::show(key.fingerprint())))
            }
            Action::Path => app.output.line(path.display()),
            Action::Fingerprint => {
                let key = existing(app)?;
                app.output.line(key::show(key.fingerprint()))
            }
        }
    }
}

fn existing(app: &App) -> Result<Key, Failure> {
    Key::load(&app.paths.ship_key())?.ok_or_else(|| {
        Failure::new("there is no key").remedy(
            "create one with `claude-mem remote key new`, or import one with `claude-mem remote key import`",
        )
    })
}

fn save(app: &App, key: &Key) -> Result<(), Failure> {
    let path = app.paths.ship_key();
    if let Some(there) = Key::load(&path)? {
        let there = key::show(there.fingerprint());
        return Err(Failure::new(format!("a key exists already, {there}"))
            .meaning("backups made with it can only be read with it")
            .remedy(format!(
                "to use another key, move {} away and ship to an empty place",
                path.display()
            )));
    }
    let dir = &app.paths.data;
    app.paths.create_data().map_err(|error| Failure::no_directory(dir, &error))?;
    Ok(key.save(&path)?)
}

fn typed(app: &mut App) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        app.output.say("paste the key, then press Enter and Ctrl-D");
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("stdin cannot be read: {error}")))?;
    Ok(text)
}
