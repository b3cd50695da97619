//! The commands Claude Code runs by itself.
//!
//! Whatever happens in here, the user's session goes on: exit code 0, nothing on stderr, one JSON object
//! on stdout. A hook reads its stdin, appends at most one event, answers, and is gone.

mod session_start;

use std::{
    env,
    ffi::OsStr,
    io, panic,
    path::PathBuf,
    process,
    sync::atomic::{AtomicBool, Ordering},
};

use claude_mem_capture::{NAMES, World, read_input};
use claude_mem_core::{
    diagnostics::{self, Level},
    environment::Environment,
    os,
    paths::Paths,
    settings::table::WORKER_AUTOSTART,
    worker_process,
};
use claude_mem_install::registered::is_duplicate_of_installed;

/// What a hook says when it has nothing to add to the session.
const CARRY_ON: &str = "{\"continue\": true, \"suppressOutput\": true}\n";

/// Whether the answer is out. A second object on stdout would turn both into plain text.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// The hook that goes by this name, if any does.
pub(crate) fn named(argument: &OsStr) -> Option<&'static str> {
    NAMES.into_iter().find(|name| argument == *name)
}

/// Runs one hook.
pub(crate) fn run(name: &'static str) -> u8 {
    answer_even_in_panic(name);
    let Some(world) = World::found().filter(|world| !is_duplicate(world, name)) else {
        answer(CARRY_ON);
        return 0;
    };
    let text = capture(&world, name);
    answer(text.as_deref().unwrap_or(CARRY_ON));
    // Tool uses are many and wait for the end of their turn anyway: they pay for no start.
    if name != "save" && world.is_alone() && world.settings.get(&WORKER_AUTOSTART) {
        worker_process::start_if_due(&world.paths.data);
    }
    0
}

/// Whether this hook is the plugin's, and the same one is registered by `claude-mem install`.
fn is_duplicate(world: &World, name: &str) -> bool {
    let program = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let home = world.paths.home.as_deref();
    is_duplicate_of_installed(&world.environment, home, &program, name)
}

/// Does the work; gives the answer if it is other than the usual one.
fn capture(world: &World, name: &'static str) -> Option<String> {
    let input = read_input();
    let begun = world.take(name, &input).unwrap_or_else(|problem| {
        world.report(name, &problem);
        None
    });
    (name == "context").then(|| session_start::answer(world, begun.as_ref()))
}

fn answer(text: &str) {
    if !IS_ANSWERED.swap(true, Ordering::SeqCst) {
        write_all(text.as_bytes());
    }
}

/// Writes to stdout without the buffer that belongs to it. A closed stdout is the client's business; there
/// is nobody left to tell.
fn write_all(mut rest: &[u8]) {
    while !rest.is_empty() {
        match os::write_out(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// A panic would end the process with a signal and a message on stderr. Its hook runs before either, so it
/// answers and leaves. Of the message only the place is kept: the rest may quote what is private.
fn answer_even_in_panic(name: &'static str) {
    panic::set_hook(Box::new(move |panicked| {
        answer(CARRY_ON);
        if let (Ok(paths), Some(place)) =
            (Paths::find(&Environment::of_process()), panicked.location())
        {
            let message = format!("{name}: gave up at {}:{}", place.file(), place.line());
            diagnostics::record(&paths.data, Level::Error, message);
        }
        process::exit(0);
    }));
}
