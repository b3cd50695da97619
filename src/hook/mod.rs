//! The commands that clients run as hooks.
//!
//! The user's session always continues: exit code 0, nothing on stderr, and on stdout one response
//! in the client's format, or nothing. A hook reads stdin, appends at most one event, responds,
//! records the memories it gave, and exits.

mod added;
mod out_of_memory;
mod session_start;

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, IsTerminal},
    panic,
    path::PathBuf,
    process,
    sync::atomic::{AtomicBool, Ordering},
};

use claude_mem_capture::{
    Client, ContextMax, HookCommand, IncomingKind, Occasion, Recorder, Response, SessionBegun,
    clients::{self, HOOK},
    read_input, record_hook,
    registration::is_duplicate_of_installed,
};
use claude_mem_core::{
    diagnostics::{self, Level},
    environment::Environment,
    os,
    paths::Paths,
    settings::table::WORKER_AUTOSTART,
    worker_process,
};
use claude_mem_events::MemoryInjected;

/// The event that names the memories of a response, and the lock to hold until it is recorded.
#[derive(Debug)]
struct Injection {
    event: MemoryInjected,
    lock: Option<File>,
}

/// Whether the response was written. With a second JSON object on stdout, clients treat both as
/// plain text.
static HAS_RESPONDED: AtomicBool = AtomicBool::new(false);

/// A hook in the arguments.
#[derive(Debug)]
pub(crate) enum HookCall {
    Command(HookCommand),
    /// `hook` with invalid arguments. The exit code of a usage error would block the client.
    Unusable(OsString),
}

impl HookCall {
    /// Recognizes a hook without the command-line parser, whose tables alone take longer than a
    /// hook. `None` passes the arguments to the parser: other commands, help, and interactive use.
    pub(crate) fn from_arguments(
        first: Option<&OsStr>,
        rest: impl Iterator<Item = OsString>,
    ) -> Option<Self> {
        let first = first?.to_str()?;
        let rest: Vec<OsString> = rest.collect();
        if first != HOOK {
            let command = HookCommand::alias(first)?;
            return (rest.is_empty() && !is_at_terminal()).then_some(Self::Command(command));
        }
        if is_at_terminal() {
            return None;
        }
        let arguments: Vec<&str> = rest.iter().filter_map(|argument| argument.to_str()).collect();
        let name = match arguments[..] {
            ["--client", name] => Some(name),
            [one] => one.strip_prefix("--client="),
            _ => None,
        };
        if let Some(client) = name.and_then(clients::find) {
            return Some(Self::Command(HookCommand::of(client)));
        }
        let is_help = arguments.iter().any(|argument| matches!(*argument, "--help" | "-h"));
        (!is_help).then(|| Self::Unusable(rest.join(OsStr::new(" "))))
    }

    /// The exit code; `None` passes the arguments to the parser, as in [`run`].
    pub(crate) fn run(self) -> Option<u8> {
        match self {
            Self::Command(command) => run(command),
            Self::Unusable(arguments) => {
                if let Some(recorder) = Recorder::from_process() {
                    let names: Vec<&str> = clients::CLIENTS.iter().map(|it| it.name).collect();
                    let message = format!(
                        "hook: nothing was recorded: the arguments `{}` name no known client; \
                         `--client NAME` takes {}",
                        arguments.display(),
                        names.join(", ")
                    );
                    diagnostics::record(&recorder.paths.data, Level::Error, message);
                }
                Some(0)
            }
        }
    }
}

/// Whether the command was typed in a terminal. Clients send the payload through a pipe.
fn is_at_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Runs one hook, and returns its exit code. `None` if it is not a hook: a script or an editor ran
/// `claude-mem context` without a payload, to see the context of a session.
fn run(hook: HookCommand) -> Option<u8> {
    respond_even_in_panic(hook);
    let Some(recorder) = Recorder::from_process().filter(|it| !is_duplicate(it, hook)) else {
        respond(hook.client, &Response::default());
        return Some(0);
    };
    out_of_memory::end_when_out_of_memory(hook.client, &recorder.paths.data);
    let input = read_input();
    let is_context = hook.expected == Some(IncomingKind::SessionStart);
    if is_context && input.bytes().trim_ascii().is_empty() {
        return None;
    }
    let outcome = record_hook(&recorder, hook, &input);
    let client = outcome.client.unwrap_or(hook.client);
    let begun = outcome.begun.as_ref();
    let size_max = outcome.kind.and_then(|kind| client.context_max(kind));
    let (response, injected) = match (outcome.kind, &outcome.occasion, size_max) {
        (Some(IncomingKind::SessionStart), _, Some(size_max)) => {
            let (response, event) = session_start::response(&recorder, client, begun, size_max);
            (response, event.map(|event| Injection { event, lock: None }))
        }
        (Some(IncomingKind::Prompt), Some(occasion), Some(size_max)) if begun.is_some() => {
            first_prompt(&recorder, client, begun, occasion, size_max)
        }
        (_, Some(occasion), Some(size_max)) => added::response(&recorder, occasion, size_max),
        _ => (Response::default(), None),
    };
    respond(client, &response);
    let begun = begun.map(|begun| &begun.envelope);
    let envelope = begun.or(outcome.occasion.as_ref().map(|occasion| &occasion.envelope));
    if let (Some(Injection { event, lock }), Some(envelope)) = (injected, envelope) {
        recorder.record_injection(envelope, event);
        drop(lock);
    }
    // Tool uses are frequent, and are distilled at the end of their turn: they do not start a
    // worker.
    if outcome.kind != Some(IncomingKind::ToolUse)
        && outcome.needs_worker
        && recorder.settings.get(&WORKER_AUTOSTART)
    {
        worker_process::start_if_due(&recorder.paths.data);
    }
    Some(0)
}

/// The response to the first prompt, for a client that accepts no memory at the start of a session:
/// the memory of the start, then the memories relevant to the prompt. The former is recorded first,
/// so that no memory is given twice.
fn first_prompt(
    recorder: &Recorder,
    client: &Client,
    begun: Option<&SessionBegun>,
    occasion: &Occasion,
    size_max: ContextMax,
) -> (Response, Option<Injection>) {
    let (start, injected) = session_start::response(recorder, client, begun, size_max);
    if let (Some(injected), Some(begun)) = (injected, begun) {
        recorder.record_injection(&begun.envelope, injected);
    }
    let start = start.context.filter(|text| !text.is_empty()).map(|text| format!("{text}\n\n"));
    let start = start.unwrap_or_default();
    let (added, injected) = added::response(recorder, occasion, size_max.after(&start));
    let text = start + &added.context.unwrap_or_default();
    let context = Some(text.trim_end().to_owned()).filter(|text| !text.is_empty());
    (Response { context, notice: None, event: Some(IncomingKind::Prompt) }, injected)
}

/// Whether this hook is the plugin's, and the same one is registered by `claude-mem install`.
fn is_duplicate(recorder: &Recorder, hook: HookCommand) -> bool {
    let program = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let home = recorder.paths.home.as_deref();
    is_duplicate_of_installed(&recorder.environment, home, &program, hook.name)
}

fn respond(client: &Client, response: &Response) {
    if !HAS_RESPONDED.swap(true, Ordering::SeqCst) {
        write_all((client.respond)(response).as_bytes());
    }
}

/// Writes to stdout without buffering. If stdout is closed, the error cannot be reported.
fn write_all(mut rest: &[u8]) {
    while !rest.is_empty() {
        match os::write_out(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// A panic would end the process with a signal and a message on stderr. The panic hook runs first,
/// so it responds and exits. Only the location is logged: the message may quote private text.
fn respond_even_in_panic(hook: HookCommand) {
    panic::set_hook(Box::new(move |panicked| {
        respond(hook.client, &Response::default());
        if let (Ok(paths), Some(place)) =
            (Paths::find(&Environment::of_process()), panicked.location())
        {
            let message = format!("{}: panicked at {}:{}", hook.name, place.file(), place.line());
            diagnostics::record(&paths.data, Level::Error, message);
        }
        process::exit(0);
    }));
}
