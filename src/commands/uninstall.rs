//! `claude-mem uninstall`: take out of Claude Code what was put in.

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

/// Take this memory out of Claude Code
///
/// Removes what `claude-mem install` registered, in every place where it did, and nothing else, and stops the
/// worker. What was remembered is kept, unless you ask for it to be deleted.
#[derive(Debug, Args)]
pub(crate) struct Uninstall {
    /// Also delete everything that was remembered
    #[arg(long)]
    purge: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Uninstall {
    /// Asks first, so that a refusal changes nothing.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        if self.purge && !self.yes {
            ask(app)?;
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
        tell_of_service(app);
        Ok(())
    }
}

/// A service would start the worker again at the next login.
fn tell_of_service(app: &mut App) {
    let service = Manager::here().and_then(|manager| Service::new(app, manager));
    if let Some(service) = service.ok().filter(|service| service.file.exists()) {
        app.output.say(format_args!(
            "kept {}: remove it with `claude-mem worker uninstall-service`",
            service.file.display()
        ));
    }
}

fn ask(app: &mut App) -> Result<(), Failure> {
    let data = app.paths.data.display();
    let what = format!("{data} would be deleted");
    let question = format!("Delete everything remembered in {data}? There is no way back.");
    confirm(app, &what, &question)
}

fn unregister(app: &mut App) -> Result<(), Failure> {
    let mut manifest = Manifest::load(&app.paths)?;
    for edited in std::mem::take(&mut manifest.edited) {
        if edited.restore().map_err(|error| not_restored(&edited.file, &error))? {
            app.output.say(format_args!("restored {}", edited.file.display()));
        }
        // A backup made between two installations holds what the first one wrote.
        clean(app, &edited.file, edited.backup.is_none())?;
    }
    // Without a manifest, or after somebody copied settings over, hooks of ours may be left.
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

/// Takes our parts out of a file that others changed, too.
fn clean(app: &mut App, file: &Path, is_our_file: bool) -> Result<(), Failure> {
    let mut document = Document::open(file)?;
    claude_mem_install::remove_hooks(&mut document);
    claude_mem_install::remove_server(&mut document);
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
        .meaning("some of what was installed is still there")
        .remedy("mend that and run `claude-mem uninstall` again")
}

/// A user may have pointed the data directory at a folder with other things in it, and the TypeScript claude-mem
/// keeps its own in the same place: nothing else is ever deleted.
fn purge(app: &mut App) -> Result<(), Failure> {
    let data = app.paths.data.clone();
    let is_shared = data.join(UPSTREAM_DATABASE).exists();
    let shared = if is_shared { &[][..] } else { SHARED };
    for name in OURS.iter().chain(shared) {
        let path = data.join(name);
        delete(&path).map_err(|error| {
            Failure::new(format!("{} cannot be deleted: {error}", path.display()))
                .meaning("some of what was remembered is still there")
                .remedy("mend that and run `claude-mem uninstall --purge` again")
        })?;
    }
    let left: Vec<PathBuf> =
        fs::read_dir(&data).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    if left.is_empty() {
        let _ = fs::remove_dir(&data);
        app.output.say(format_args!("deleted {}", data.display()));
    } else {
        app.output.say(format_args!("deleted what is ours in {}; left:", data.display()));
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
