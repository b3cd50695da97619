//! Windows 10 and later.

mod local_socket;
mod process_tree;
mod wake_socket;

pub use local_socket::{Listener, Listening, ask};
pub use process_tree::{CHILD_COMMAND, ProcessTree, child_main, launcher, watched};
pub use std::os::windows::io::AsHandle as Source;
pub use wake_socket::{WakeListener, WakeSender, send_wakeup};

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

/// The name of Claude Code's executable. The scripts that some installers create for it take no
/// multi-line arguments.
pub const CLIENT: &str = "claude.exe";

/// Time between two checks for input.
const LOOK: Duration = Duration::from_millis(1);

/// Why there is no home directory, if so.
pub const NO_HOME: &str = "neither USERPROFILE nor HOME is set";

/// Folders have one path here, after links are followed.
pub fn file_id(_path: &Path) -> Option<(u64, u64)> {
    None
}

/// The name of this machine.
pub fn host_name() -> String {
    env::var("COMPUTERNAME").unwrap_or_else(|_| "windows".into())
}

/// The home directory, as Claude Code finds it.
pub fn home(environment: &Environment) -> Option<PathBuf> {
    environment.get("USERPROFILE").or_else(|| environment.get("HOME")).map(PathBuf::from)
}

/// A program's path for use in shell commands: every shell understands slashes.
#[expect(clippy::needless_pass_by_value, reason = "elsewhere it is given back as it is")]
pub fn path_in_commands(path: String) -> String {
    path.replace('\\', "/")
}

/// Whether files can be created in a directory.
pub fn is_writable(dir: &Path) -> bool {
    let mut options = OpenOptions::new();
    options.access_mode(FILE_ADD_FILE).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
    options.open(dir).is_ok()
}

/// Windows checks only the read-only attribute, which is not relevant here.
pub fn may_write(_file: &Path) -> bool {
    true
}

/// The owner is inherited from the folder.
pub fn copy_owner(_from: &Metadata, _to: &File) {}

/// What to do about a directory that cannot be written.
pub fn how_to_own(dir: &Path) -> String {
    format!(
        "give yourself full control of it: `icacls \"{}\" /grant \"%USERNAME%:(OI)(CI)F\"`",
        dir.display()
    )
}

/// Free bytes for this user on the disk of this directory.
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

/// Permissions are inherited from the user profile.
pub fn make_files_private() {}

/// Creates a directory, and those above it.
pub fn create_dirs_for_all(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)
}

/// Windows has no numeric user ids.
pub fn user() -> u32 {
    0
}

/// Permissions are inherited from the user profile and not checked.
pub fn owner_and_openness(dir: &Path) -> io::Result<(u32, bool)> {
    std::fs::metadata(dir).map(|_| (0, false))
}

/// Permissions are inherited from the user profile and not checked.
pub fn is_open_to_others(_found: &Metadata) -> bool {
    false
}

/// Access lists are not read, so a directory that exists may be shared.
pub fn is_writable_by_others(dir: &Path) -> bool {
    dir.exists()
}

/// Permissions are inherited from the user profile.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub fn close_to_others(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Permissions are inherited from the user profile.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub fn give_to_owner(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Permissions are inherited from the folder, and the extension decides what is executable.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
pub fn open_to_all(_path: &Path, _is_program: bool) -> io::Result<()> {
    Ok(())
}

/// Whether a file is executable.
pub fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// The kind of stdin.
pub fn stdin() -> Stdin {
    io::stdin()
}

/// Waits until there is input or its end. False after the time limit.
#[expect(
    unsafe_code,
    reason = "pipes cannot be waited for, and the standard library does not look into them"
)]
pub fn is_ready(source: &impl Source, time_max: Duration) -> bool {
    let handle = source.as_handle();
    let begun = Instant::now();
    while begun.elapsed() < time_max {
        let mut count = 0;
        // SAFETY: the handle is open as long as `source` is, no bytes are taken, and `count` is
        // written to during the call only.
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
        // At its end, or not a pipe: the next read decides.
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

/// Reads once into the remaining space.
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

/// Pipes keep their size.
pub fn widen(_pipe: &impl Source) {}

/// Threads keep their priority.
pub fn lower_thread_priority() {}

/// Windows does not report this.
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

/// Stdout is unchanged: there is no pager.
pub fn redirect_stdout(_to: impl Into<OwnedHandle>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The columns of the terminal on stdout.
pub fn columns() -> Option<usize> {
    columns_of(io::stdout())
}

/// The rows of the terminal on stdout.
pub fn rows() -> Option<usize> {
    let (_, height) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(height.0)).filter(|rows| *rows > 0)
}

/// Returns when the terminal on stdin is gone. Windows ends the processes of a closed console
/// itself.
pub fn wait_for_hangup() {
    loop {
        std::thread::park();
    }
}

/// The columns of the terminal on stderr.
pub fn stderr_columns() -> Option<usize> {
    columns_of(io::stderr())
}

fn columns_of(terminal: impl Source) -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(terminal)?;
    Some(usize::from(width.0)).filter(|columns| *columns > 0)
}

/// The parent process.
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

/// A process that must outlive its parent is started detached; see [`start_detached`].
pub fn detach() {}

/// Starts a program that outlives this process: without a console and, where allowed, outside of
/// our job object.
pub fn start_detached(command: &mut Command) -> io::Result<Child> {
    keep_streams();
    let flags = DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP;
    let outside = command.creation_flags(flags | CREATE_BREAKAWAY_FROM_JOB).spawn();
    outside.or_else(|_| command.creation_flags(flags).spawn())
}

/// Stops the inheritance of our standard handles: a reader of our output would otherwise wait for
/// all processes that hold them.
#[expect(unsafe_code, reason = "the standard library lets all be inherited")]
fn keep_streams() {
    let streams =
        [io::stdin().as_raw_handle(), io::stdout().as_raw_handle(), io::stderr().as_raw_handle()];
    for stream in streams {
        // SAFETY: an invalid handle is refused, and nothing is written to.
        let _ = unsafe { SetHandleInformation(stream, HANDLE_FLAG_INHERIT, 0) };
    }
}

/// How a process is terminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// By a signal that it can handle.
    Asked,
    /// Immediately.
    Killed,
}

/// Terminates a process, which may have ended already. A process without a console cannot handle a
/// signal.
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

/// Returns when this process should exit.
pub fn termination() -> io::Result<impl Future<Output = ()>> {
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

/// The program that opens links.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there may be no screen")]
pub fn link_opener(_environment: &Environment) -> Option<&'static str> {
    Some("explorer.exe")
}
