//! Windows 10 and later.

mod local_socket;
mod process_tree;
mod wake_socket;

pub use local_socket::{Listener, Listening, ask};
pub use process_tree::{CHILD_COMMAND, ProcessTree, child_main, launcher, watched};
pub use std::os::windows::io::AsHandle as Source;
pub use wake_socket::{WakeListener, WakeSender, ring};

use std::{
    env,
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _, Stdin, Write as _},
    os::windows::{
        ffi::OsStrExt as _,
        fs::OpenOptionsExt as _,
        io::{AsRawHandle as _, OwnedHandle},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command},
    ptr, thread,
    time::{Duration, Instant},
};

use windows_sys::Win32::{
    Foundation::{CloseHandle, HANDLE_FLAG_INHERIT, SetHandleInformation},
    Storage::FileSystem::{FILE_ADD_FILE, FILE_FLAG_BACKUP_SEMANTICS, GetDiskFreeSpaceExW},
    System::{
        Pipes::PeekNamedPipe,
        Threading::{
            CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS, OpenProcess,
            PROCESS_TERMINATE, TerminateProcess,
        },
    },
};

use crate::environment::Environment;

/// A whole command line has at most 32,767 characters.
pub const ARGUMENT_BYTES_MAX: usize = 28_000;

/// As Claude Code's executable is called. The scripts that some installers make of it take no arguments of
/// several lines.
pub const CLIENT: &str = "claude.exe";

/// Between two looks whether something has come.
const LOOK: Duration = Duration::from_millis(1);

/// Why there is no home directory, if so.
pub const NO_HOME: &str = "neither USERPROFILE nor HOME is set";

/// What this machine is called.
pub fn host_name() -> String {
    env::var("COMPUTERNAME").unwrap_or_else(|_| "windows".into())
}

/// Where Claude Code looks, too.
pub fn home(environment: &Environment) -> Option<PathBuf> {
    environment.get("USERPROFILE").or_else(|| environment.get("HOME")).map(PathBuf::from)
}

/// A program's path as it is written into commands for a shell: whichever that is, it understands slashes.
#[expect(clippy::needless_pass_by_value, reason = "elsewhere it is given back as it is")]
pub fn path_in_commands(path: String) -> String {
    path.replace('\\', "/")
}

/// Whether files can be made in a directory.
pub fn is_writable(dir: &Path) -> bool {
    let mut options = OpenOptions::new();
    options.access_mode(FILE_ADD_FILE).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
    options.open(dir).is_ok()
}

/// The read-only attribute is all that is looked at, and not here.
pub fn may_write(_file: &Path) -> bool {
    true
}

/// Owners are inherited from the folder.
pub fn copy_owner(_from: &Metadata, _to: &File) {}

/// What to do about a directory that cannot be written.
pub fn how_to_own(dir: &Path) -> String {
    format!(
        "give yourself full control of it: `icacls \"{}\" /grant \"%USERNAME%:(OI)(CI)F\"`",
        dir.display()
    )
}

/// What the disk of this directory has left for us.
#[expect(unsafe_code, reason = "the standard library does not tell")]
pub fn free_bytes(dir: &Path) -> Option<u64> {
    let name: Vec<u16> = dir.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: the name ends with a zero, and `free` is written to during the call only.
    let succeeded = unsafe {
        GetDiskFreeSpaceExW(name.as_ptr(), &raw mut free, ptr::null_mut(), ptr::null_mut())
    };
    (succeeded != 0).then_some(free)
}

/// Who may do what is inherited from the user's profile.
pub fn make_files_private() {}

/// Creates a directory, and those above it.
pub fn create_dirs_for_all(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)
}

/// Users have no numbers here.
pub fn user() -> u32 {
    0
}

/// Who may do what is inherited from the user's profile, and not looked into.
pub fn owner_and_openness(dir: &Path) -> io::Result<(u32, bool)> {
    std::fs::metadata(dir).map(|_| (0, false))
}

/// Who may do what is inherited from the user's profile, and not looked into.
pub fn is_open_to_others(_found: &Metadata) -> bool {
    false
}

/// Who may do what is inherited from the user's profile.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub fn close_to_others(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Who may do what is inherited from the user's profile.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub fn give_to_owner(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Who may do what is inherited from the folder, and what may be run is told by its name.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub fn open_to_all(_path: &Path, _is_program: bool) -> io::Result<()> {
    Ok(())
}

/// Whether a file may be run.
pub fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Where stdin comes from.
pub fn stdin() -> Stdin {
    io::stdin()
}

/// Waits until there is something to read, or the end. False if that took too long.
#[expect(
    unsafe_code,
    reason = "pipes cannot be waited for, and the standard library does not look into them"
)]
pub fn is_ready(source: &impl Source, time_max: Duration) -> bool {
    let handle = source.as_handle();
    let begun = Instant::now();
    while begun.elapsed() < time_max {
        let mut count = 0;
        // SAFETY: the handle is open as long as `source` is, no bytes are taken, and `count` is written to during
        // the call only.
        let succeeded = unsafe {
            let handle = handle.as_raw_handle();
            PeekNamedPipe(
                handle,
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                &raw mut count,
                ptr::null_mut(),
            )
        };
        // At its end, or not a pipe: reading will tell.
        if succeeded == 0 || count > 0 {
            return true;
        }
        thread::sleep(LOOK);
    }
    false
}

/// Reads once.
pub fn read(source: &impl Source, buffer: &mut [u8]) -> io::Result<usize> {
    File::from(owned(source)?).read(buffer)
}

/// Reads once into the room that is left.
pub fn read_behind(source: &impl Source, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let (len, room) = (bytes.len(), bytes.capacity());
    bytes.resize(room, 0);
    let read = read(source, &mut bytes[len..]);
    bytes.truncate(len + *read.as_ref().unwrap_or(&0));
    read
}

fn owned(source: &impl Source) -> io::Result<OwnedHandle> {
    source.as_handle().try_clone_to_owned()
}

/// Pipes are as they are.
pub fn widen(_pipe: &impl Source) {}

/// There are no huge pages to be had.
pub fn advise_huge(_room: &memmap2::MmapMut) {}

/// Threads keep their priority here.
pub fn lower_thread_priority() {}

/// The system does not tell.
pub fn thread_times() -> Option<(Duration, Duration)> {
    None
}

/// One write to stdout.
pub fn write_out(bytes: &[u8]) -> io::Result<usize> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(bytes.len())
}

/// Stdout stays what it is: there are no pagers to give it to.
pub fn redirect_stdout(_to: impl Into<OwnedHandle>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// How many columns the terminal has that stdout is.
pub fn columns() -> Option<usize> {
    columns_of(io::stdout())
}

/// How many rows the terminal has that stdout is.
pub fn rows() -> Option<usize> {
    let (_, height) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(height.0)).filter(|rows| *rows > 0)
}

/// Returns when the terminal on stdin is gone. Windows ends the processes of a closed console itself.
pub fn wait_for_hangup() {
    loop {
        std::thread::park();
    }
}

/// How many columns the terminal has that stderr is.
pub fn stderr_columns() -> Option<usize> {
    columns_of(io::stderr())
}

fn columns_of(terminal: impl Source) -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(terminal)?;
    Some(usize::from(width.0)).filter(|columns| *columns > 0)
}

/// Who started us.
#[derive(Debug)]
pub struct Parent;

impl Parent {
    /// Must be called before anything else.
    pub fn new() -> Self {
        Self
    }

    /// Reading blocks, and ends with the parent: no other process has the other end of the pipe.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "elsewhere it is looked after"
    )]
    pub fn wait(&self, _source: &impl Source, _look: Duration) -> io::Result<bool> {
        Ok(true)
    }
}

/// A process that must survive its parent is started detached; see [`start_detached`].
pub fn detach() {}

/// Starts a program that is to outlive us: without a console, and where that is allowed outside of the job that
/// we are in.
pub fn start_detached(command: &mut Command) -> io::Result<Child> {
    keep_streams();
    let flags = DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP;
    let outside = command.creation_flags(flags | CREATE_BREAKAWAY_FROM_JOB).spawn();
    outside.or_else(|_| command.creation_flags(flags).spawn())
}

/// All inheritable handles are inherited, and a reader of our output would wait for all their
/// holders to end.
#[expect(unsafe_code, reason = "the standard library lets all be inherited")]
fn keep_streams() {
    let streams =
        [io::stdin().as_raw_handle(), io::stdout().as_raw_handle(), io::stderr().as_raw_handle()];
    for stream in streams {
        // SAFETY: a handle that is not there is refused, and nothing is written to.
        let _ = unsafe { SetHandleInformation(stream, HANDLE_FLAG_INHERIT, 0) };
    }
}

/// How urgently a process is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// It may put things in order.
    Asked,
    /// It has no choice.
    Killed,
}

/// Ends a process, which may have ended already. Without a console there is no way to ask it to
/// exit.
#[expect(unsafe_code, reason = "the standard library ends its own children only")]
pub fn terminate(pid: u32, urgency: Urgency) {
    if urgency == Urgency::Asked {
        return;
    }
    // SAFETY: the handle is checked, used here alone, and closed.
    unsafe {
        let process = OpenProcess(PROCESS_TERMINATE, 0, pid);
        if !process.is_null() {
            TerminateProcess(process, 1);
            CloseHandle(process);
        }
    }
}

/// Returns when this process is told to end.
pub fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};
    let (mut c, mut r#break) = (ctrl_c()?, ctrl_break()?);
    let (mut close, mut shutdown) = (ctrl_close()?, ctrl_shutdown()?);
    Ok(async move {
        tokio::select! {
            _ = c.recv() => {}
            _ = r#break.recv() => {}
            _ = close.recv() => {}
            _ = shutdown.recv() => {}
        }
    })
}

/// What opens links here.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there may be no screen")]
pub fn link_opener(_environment: &Environment) -> Option<&'static str> {
    Some("explorer.exe")
}
