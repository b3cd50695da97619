//! Projects and sessions as people name them on the command line.

use std::path::Path;

use claude_mem_projections::Store;

use claude_mem_capture::project;
use claude_mem_core::{app::App, failure::Failure};

/// The key of the project that is meant: by its key, its name, or a folder in it.
pub(crate) fn project(app: &App, store: &Store, name: &str) -> Result<String, Failure> {
    let called = store.project_keys_named(name)?;
    match &called[..] {
        [key] => return Ok(key.clone()),
        [] => {}
        several => {
            return Err(Failure::usage(format!("`{name}` is the name of several projects"))
                .remedy(format!("name one of them by its key: {}", several.join(", "))));
        }
    }
    let folder = Path::new(name);
    if folder.is_dir()
        && let Ok(folder) = std::path::absolute(folder)
    {
        let key = project::identify(&folder.to_string_lossy(), &app.environment).key;
        if !store.project_keys_named(&key)?.is_empty() {
            return Ok(key);
        }
    }
    Err(Failure::usage(format!("nothing is recorded of a project `{name}`")))
}

/// The session that is meant: by its id, or the beginning of it.
pub(crate) fn session(store: &Store, name: &str) -> Result<String, Failure> {
    let called = store.session_ids_starting(name)?;
    match &called[..] {
        [only] => Ok(only.clone()),
        [exact, ..] if exact == name => Ok(exact.clone()),
        [] => Err(Failure::usage(format!("nothing is recorded of a session `{name}`"))),
        several => Err(Failure::usage(format!("`{name}` is the beginning of several sessions"))
            .remedy(format!("name one of them: {}", several.join(", ")))),
    }
}
