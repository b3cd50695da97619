//! `claude-mem uninstall`: remove our registration from Claude Code.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{confirm::confirm, install::here};
use claude_mem_core::{
    app::App,
    failure::Failure,
    json_edit::Document,
    paths::data_dir::{OURS, SHARED, UPSTREAM_DATABASE},
    user_file,
};
use claude_mem_install::{self, Targets, manifest::Manifest};
use claude_mem_server::worker::{
    client,
    service::{Manager, Service},
};

/// Remove claude-mem from Claude Code
///
/// Removes exactly what `claude-mem install` registered, and stops the worker. Your memories are kept unless you
/// pass `--purge`.
#[derive(Debug, Args)]
pub(crate) struct Uninstall {
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
        unregister(app)?;
        if client::stop(&app.paths.data)? {
            app.output.say("stopped the worker");
        }
        if self.purge {
            purge(app)?;
        } else if app.paths.data.exists() {
            app.output.say(format_args!(
                "kept {}: everything recorded, and the settings; delete it with \
                 `claude-mem uninstall --purge`",
                app.paths.data.display()
            ));
        }
        mention_service(app);
        Ok(())
    }
}

/// A service would start the worker again at the next login.
fn mention_service(app: &mut App) {
    let service = Manager::here().and_then(|manager| Service::new(app, manager));
    if let Some(service) = service.ok().filter(|service| service.file.exists()) {
        app.output.say(format_args!(
            "kept {}: remove it with `claude-mem worker uninstall-service`",
            service.file.display()
        ));
    }
}

fn confirm_purge(app: &mut App) -> Result<(), Failure> {
    let data = app.paths.data.display();
    let what = format!("{data} would be deleted");
    let question = format!("Delete all recorded data in {data}? This cannot be undone.");
    confirm(app, &what, &question)
}

fn unregister(app: &mut App) -> Result<(), Failure> {
    let mut manifest = Manifest::load(&app.paths)?;
    for edited in std::mem::take(&mut manifest.edited) {
        if edited.restore().map_err(|error| not_restored(&edited.file, &error))? {
            app.output.say(format_args!("restored {}", edited.file.display()));
        }
        // A backup file from between two installations contains what the first one wrote.
        clean(app, &edited.file, edited.backup.is_none())?;
    }
    // Without a manifest, or if settings were copied, some of our hooks may be left.
    let user = Targets::of_user(app)?;
    let project = Targets::of_project(&here()?);
    for file in [user.settings(), user.servers, project.settings(), project.servers] {
        clean(app, &file, false)?;
    }
    for written in std::mem::take(&mut manifest.written) {
        if !written.remove().map_err(|error| not_restored(&written.file, &error))? {
            app.output
                .say(format_args!("note: {} was changed and is kept", written.file.display()));
        }
    }
    manifest.remove_folders();
    Ok(manifest.save(&app.paths)?)
}

/// Removes our entries from a file that others changed, too.
fn clean(app: &mut App, file: &Path, is_our_file: bool) -> Result<(), Failure> {
    let mut document = Document::open(file)?;
    claude_mem_install::remove_hooks(&mut document);
    claude_mem_install::remove_server(&mut document);
    claude_mem_install::remove_status_line(&mut document);
    if !document.is_changed() {
        return Ok(());
    }
    if document.is_empty() && is_our_file {
        user_file::remove(file).map_err(|error| not_restored(file, &error))?;
    } else {
        document.save()?;
    }
    app.output.say(format_args!("removed from {}", file.display()));
    Ok(())
}

fn not_restored(file: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{} cannot be changed: {error}", file.display()))
        .meaning("some registrations are left")
        .remedy("fix that and run `claude-mem uninstall` again")
}

/// Deletes only our own files. The data directory may contain others: the user's, or those of the TypeScript
/// claude-mem, which uses the same folder.
fn purge(app: &mut App) -> Result<(), Failure> {
    let data = app.paths.data.clone();
    let is_shared = data.join(UPSTREAM_DATABASE).exists();
    let shared = if is_shared { &[][..] } else { SHARED };
    for name in OURS.iter().chain(shared) {
        let path = data.join(name);
        delete(&path).map_err(|error| {
            Failure::new(format!("{} cannot be deleted: {error}", path.display()))
                .meaning("some of the data is left")
                .remedy("fix that and run `claude-mem uninstall --purge` again")
        })?;
    }
    let left: Vec<PathBuf> =
        fs::read_dir(&data).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    if left.is_empty() {
        let _ = fs::remove_dir(&data);
        app.output.say(format_args!("deleted {}", data.display()));
    } else {
        app.output
            .say(format_args!("deleted the files of claude-mem in {}; left:", data.display()));
        for path in left {
            app.output.say(format_args!("  {}", path.display()));
        }
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
