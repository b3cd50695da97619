//! `claude-mem uninstall`: remove our registration from coding agents.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{
    confirm::confirm,
    install::{Chosen, chosen_client, here, place},
};
use claude_mem_capture::{CLAUDE_CODE, Client, clients::CLIENTS};
use claude_mem_core::{
    NAME,
    app::App,
    failure::Failure,
    format::bytes,
    json_edit::Document,
    paths::{
        data_dir::{OURS, SHARED, UPSTREAM_DATABASE},
        with_tilde,
    },
    user_file,
};
use claude_mem_install::{
    self, Targets,
    manifest::{Edited, Manifest, OwnedFile, TextChange},
    mcp_only::{MCP_ONLY, McpOnly},
};
use claude_mem_server::worker::client;

/// Remove claude-mem from your coding agents
///
/// Removes exactly what `claude-mem install` registered, and stops the worker. Your memories are
/// kept unless you pass `--purge`.
#[derive(Debug, Args)]
pub(crate) struct Uninstall {
    /// Only from this client; the worker keeps running
    #[arg(long, value_name = "NAME", value_parser = chosen_client, conflicts_with = "purge")]
    client: Option<Chosen>,
    /// Also delete all recorded data and settings
    #[arg(long)]
    purge: bool,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
}

impl Uninstall {
    /// Confirms first, so that a refusal changes nothing.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        if self.purge && !self.yes {
            confirm_purge(app)?;
        }
        if let Some(chosen) = self.client {
            return unregister(app, Some(chosen));
        }
        let unregistered = unregister(app, None);
        if client::stop(&app.paths.data)? {
            print_done(app, "stopped the worker")?;
        }
        unregistered?;
        if self.purge {
            purge(app)?;
        } else if app.paths.data.exists() {
            let size = bytes(size(&app.paths.data));
            let data = shown(app, &app.paths.data);
            app.output.line(format_args!(
                "kept {data} ({size}): everything recorded, and the settings\n\
                 delete it with `claude-mem uninstall --purge`"
            ))?;
        }
        Ok(())
    }
}

fn print_done(app: &mut App, what: &str) -> Result<(), Failure> {
    let tick = app.output.paint("32", "✓");
    app.output.line(format_args!("{tick} {what}"))
}

fn shown(app: &App, path: &Path) -> String {
    with_tilde(path, app.paths.home.as_deref())
}

/// Bytes of the files in a directory. Links are not followed.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let size_of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size_of).sum()
}

fn confirm_purge(app: &mut App) -> Result<(), Failure> {
    let data = app.paths.data.display();
    let what = format!("{data} would be deleted");
    let question = format!("Delete all recorded data in {data}? This cannot be undone.");
    confirm(app, &what, &question)
}

/// Undoes everything that was installed, or what was installed for one client.
fn unregister(app: &mut App, only: Option<Chosen>) -> Result<(), Failure> {
    let mut manifest = Manifest::load(&app.paths)?;
    let of_claude_code = claude_code_files(app)?;
    let chosen_files: Option<Vec<PathBuf>> =
        only.map(|client| files_of(app, client, &of_claude_code, &manifest));
    let is_ours = |file: &PathBuf| chosen_files.as_ref().is_none_or(|files| files.contains(file));
    // Before anything is restored: what to remove from one file depends on another.
    let mut removals = removals_of(app, only);
    let (edited, kept): (Vec<Edited>, _) =
        std::mem::take(&mut manifest.edited).into_iter().partition(|edited| is_ours(&edited.file));
    manifest.edited = kept;
    // A file that cannot be changed does not keep our entries in the others.
    let mut failures = Vec::new();
    for edited in edited {
        if let Err(failure) = undo(app, &edited, only, &mut removals) {
            failures.push(failure);
            manifest.edited.push(edited);
        }
    }
    for removal in removals {
        failures.extend(save(app, &removal, false).err());
    }
    // Without a manifest, or if settings were copied, some of our hooks may be left.
    let is_claude_code =
        |only| matches!(only, Chosen::Client(client) if client.name == CLAUDE_CODE.name);
    if only.is_none_or(is_claude_code) {
        for file in of_claude_code.iter().filter(|file| mentions_us(file)) {
            failures.extend(clean(app, file, false).err());
        }
    }
    let (written, kept): (Vec<OwnedFile>, _) =
        std::mem::take(&mut manifest.written).into_iter().partition(|it| is_ours(&it.file));
    manifest.written = kept;
    for written in written {
        let file = shown(app, &written.file);
        match written.remove() {
            Ok(true) => print_done(app, &format!("deleted {file}"))?,
            Ok(false) => app.output.line(format_args!("kept {file}, which you changed"))?,
            Err(error) => {
                failures.push(not_restored(&written.file, &error));
                manifest.written.push(written);
            }
        }
    }
    manifest.remove_folders();
    if only.is_none() {
        // What others put there keeps the folder.
        manifest.folders.clear();
    }
    manifest.save(&app.paths)?;
    let last = failures.pop();
    for failure in failures {
        app.output.say(format_args!("warning: {}", failure.in_one_line()));
    }
    last.map_or(Ok(()), Err)
}

/// Restores a file that we edited, or removes our entries if others changed it, too.
fn undo(
    app: &mut App,
    edited: &Edited,
    only: Option<Chosen>,
    removals: &mut Vec<TextChange>,
) -> Result<(), Failure> {
    // Several clients may share a file, and then each has planned a removal.
    let mut removal = removals.extract_if(.., |removal| removal.file == edited.file).last();
    if edited.restore().map_err(|error| not_restored(&edited.file, &error))? {
        let verb = if edited.backup.is_some() { "restored" } else { "deleted" };
        print_done(app, &format!("{verb} {}", shown(app, &edited.file)))?;
        // A backup file from between two installations contains what the first one wrote.
        removal = removals_of(app, only).into_iter().find(|removal| removal.file == edited.file);
    }
    let is_our_file = edited.backup.is_none();
    if edited.file.extension().is_some_and(|extension| extension == "json") {
        return clean(app, &edited.file, is_our_file);
    }
    let Some(mut removal) = removal else {
        // Installed by an earlier version, which edited YAML, and changed by others since.
        if mentions_us(&edited.file) {
            let file = shown(app, &edited.file);
            app.output.line(format_args!("remove the entry `{NAME}` from {file} by hand"))?;
        }
        return Ok(());
    };
    Failure::retried(|| {
        let saved = save(app, &removal, is_our_file);
        // Read again for the next attempt.
        let again = removals_of(app, only).into_iter().find(|it| it.file == edited.file);
        removal = again.unwrap_or_else(|| removal.clone());
        saved
    })
}

/// Whether a file can have entries of ours. If not, it does not matter whether it can be read as
/// JSON.
fn mentions_us(file: &Path) -> bool {
    user_file::read(file)
        .is_ok_and(|bytes| bytes.windows(NAME.len()).any(|part| part == NAME.as_bytes()))
}

/// The files of the chosen clients without our entries, as far as they have any.
fn removals_of(app: &App, only: Option<Chosen>) -> Vec<TextChange> {
    let (clients, mcp_only): (Vec<&Client>, Vec<&McpOnly>) = match only {
        None => (CLIENTS.to_vec(), MCP_ONLY.iter().collect()),
        Some(Chosen::Client(client)) => (vec![client], Vec::new()),
        Some(Chosen::McpOnly(client)) => (Vec::new(), vec![client]),
    };
    let home = app.paths.home.as_deref();
    let of_server = |client: &McpOnly| client.removal(&client.file(&app.environment, home)?);
    let removals = clients.into_iter().flat_map(|client| place(app, client).removal());
    removals.chain(mcp_only.into_iter().filter_map(of_server)).collect()
}

/// The files of Claude Code that may have entries of ours.
fn claude_code_files(app: &App) -> Result<Vec<PathBuf>, Failure> {
    let user = Targets::of_user(app)?;
    let project = Targets::of_project(&here()?);
    Ok(vec![user.settings(), user.servers, project.settings(), project.servers])
}

/// The files that an installation for this client changes or writes.
fn files_of(
    app: &App,
    client: Chosen,
    of_claude_code: &[PathBuf],
    manifest: &Manifest,
) -> Vec<PathBuf> {
    let client = match client {
        Chosen::Client(client) => client,
        Chosen::McpOnly(client) => {
            let file = client.file(&app.environment, app.paths.home.as_deref());
            return file.into_iter().collect();
        }
    };
    let place = place(app, client);
    let written = manifest.written.iter().map(|written| written.file.clone());
    if client.name == CLAUDE_CODE.name {
        let dir = of_claude_code[0].parent().map(Path::to_owned).unwrap_or_default();
        let written = written.filter(|file| file.starts_with(&dir));
        return of_claude_code.iter().cloned().chain(written).collect();
    }
    let hooks = place.hooks_file();
    let is_own = |file: &PathBuf| hooks.as_ref().is_some_and(|hooks| file.starts_with(hooks));
    let written: Vec<PathBuf> = written.filter(is_own).collect();
    hooks.iter().cloned().chain(place.server_file()).chain(written).collect()
}

/// Writes a file without our entries; deletes it if it was ours alone.
fn save(app: &mut App, removal: &TextChange, is_our_file: bool) -> Result<(), Failure> {
    let is_deleted = removal.text.trim().is_empty() && is_our_file;
    if is_deleted {
        user_file::remove(&removal.file).map_err(|error| not_restored(&removal.file, &error))?;
    } else {
        removal.save()?;
    }
    print_removal(app, &removal.file, is_deleted)
}

/// Removes our entries from a file that others changed, too.
fn clean(app: &mut App, file: &Path, is_our_file: bool) -> Result<(), Failure> {
    Failure::retried(|| clean_once(app, file, is_our_file))
}

fn clean_once(app: &mut App, file: &Path, is_our_file: bool) -> Result<(), Failure> {
    let mut document = Document::open(file)?;
    claude_mem_install::remove_hooks(&mut document);
    claude_mem_install::remove_server(&mut document);
    claude_mem_install::remove_status_line(&mut document);
    if !document.is_changed() {
        return Ok(());
    }
    let is_empty = document.is_empty() || document.members() == ["version"];
    let is_deleted = is_empty && is_our_file;
    if is_deleted {
        user_file::remove(file).map_err(|error| not_restored(file, &error))?;
    } else {
        document.save()?;
    }
    print_removal(app, file, is_deleted)
}

fn print_removal(app: &mut App, file: &Path, is_deleted: bool) -> Result<(), Failure> {
    let verb = if is_deleted { "deleted" } else { "removed our entries from" };
    print_done(app, &format!("{verb} {}", shown(app, file)))
}

fn not_restored(file: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{} cannot be changed: {error}", file.display()))
        .meaning("some registrations remain")
        .remedy("fix that and run `claude-mem uninstall` again")
}

/// Deletes only our own files. The data directory may contain others: the user's, or those of the
/// TypeScript claude-mem, which uses the same folder.
fn purge(app: &mut App) -> Result<(), Failure> {
    let data = app.paths.data.clone();
    let is_shared = data.join(UPSTREAM_DATABASE).exists();
    let shared = if is_shared { &[][..] } else { SHARED };
    for name in OURS.iter().chain(shared) {
        let path = data.join(name);
        delete(&path).map_err(|error| {
            Failure::new(format!("{} cannot be deleted: {error}", path.display()))
                .meaning("some of the data remains")
                .remedy("fix that and run `claude-mem uninstall --purge` again")
        })?;
    }
    let left: Vec<PathBuf> =
        fs::read_dir(&data).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let folder = shown(app, &data);
    if left.is_empty() {
        let _ = fs::remove_dir(&data);
        return print_done(app, &format!("deleted {folder}"));
    }
    print_done(app, &format!("deleted the files of claude-mem in {folder}"))?;
    for path in left {
        app.output.line(format_args!("kept {}", shown(app, &path)))?;
    }
    Ok(())
}

/// A link is deleted, never what it points to.
fn delete(path: &Path) -> io::Result<()> {
    let deleted = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match deleted {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
