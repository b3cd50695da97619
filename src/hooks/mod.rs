//! The commands Claude Code runs by itself.
//!
//! Whatever happens in here, the user's session goes on: exit code 0, nothing on stderr, one JSON object
//! on stdout. A hook reads its stdin, appends at most one event, answers, and is gone.

mod capture;
mod cleanup;
mod context;
mod dropped;
mod input;
mod new;
pub(crate) mod outside;
mod private_turn;
mod save;
mod split;
mod summary;
mod transcript;
mod wire;

use std::{
    ffi::OsStr,
    io, panic,
    path::Path,
    process,
    sync::atomic::{AtomicBool, Ordering},
};

use capture::World;
pub(crate) use capture::{PLATFORM, is_internal, is_worker_running};
pub(crate) use dropped::Dropped;
pub(crate) use new::MEDIA;
use private_turn::PrivateTurn;
pub(crate) use private_turn::sweep as sweep_private_turns;
pub(crate) use wire::text as json_text;

use crate::{
    diagnostics::{self, Level},
    environment::Environment,
    paths::Paths,
    settings::table::WORKER_AUTOSTART,
    system, worker,
};

/// As hooks are named on the command line.
pub(crate) const NAMES: [&str; 5] = ["context", "new", "save", "summary", "cleanup"];

/// What a hook says when it has nothing to add to the session.
const CARRY_ON: &str = "{\"continue\": true, \"suppressOutput\": true}\n";

/// Whether the answer is out. A second object on stdout would turn both into plain text.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// The hook that goes by this name, if any does.
pub(crate) fn named(argument: &OsStr) -> Option<&'static str> {
    NAMES.into_iter().find(|name| argument == *name)
}

/// Whether the session is in a turn of which nothing may be stored.
pub(crate) fn is_turn_private(data: &Path, session: &str) -> bool {
    PrivateTurn::of(data, session).is_on()
}

/// Runs one hook.
pub(crate) fn run(name: &'static str) -> u8 {
    answer_even_in_panic(name);
    let Some(world) = World::found().filter(|world| !world.is_duplicate(name)) else {
        answer(CARRY_ON);
        return 0;
    };
    let text = capture(&world, name);
    answer(text.as_deref().unwrap_or(CARRY_ON));
    // Tool uses are many and wait for the end of their turn anyway: they pay for no start.
    if name != "save" && world.is_alone() && world.settings.flag(&WORKER_AUTOSTART) {
        worker::start_if_due(&world.paths.data);
    }
    0
}

/// Does the work; gives the answer if it is other than the usual one.
fn capture(world: &World, name: &'static str) -> Option<String> {
    let input = input::read();
    let begun = world.take(name, &input).unwrap_or_else(|problem| {
        world.report(name, &problem);
        None
    });
    (name == "context").then(|| context::answer(world, begun.as_ref()))
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
        match system::write_out(rest) {
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
