//! Linux, macOS and other Unix systems.

mod local_socket;
mod process_tree;
mod supervisor;
mod wake_socket;

pub use local_socket::{Listener, Listening, ask};
pub use process_tree::ProcessTree;
pub use rustix::fd::AsFd as Source;
pub use supervisor::{COMMAND as CHILD_COMMAND, launcher, main as child_main, watched};
pub use wake_socket::{WakeListener, WakeSender, send_wakeup};

use std::{
    fs::{self, File, Metadata, Permissions},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::OnceLock,
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
    fd::BorrowedFd,
    fs::{Access, Mode},
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Pid, Signal, getppid, kill_process},
};

use crate::environment::Environment;

/// Linux accepts no single argument above 128 KiB.
pub const ARGUMENT_BYTES_MAX: usize = 120_000;

/// The name of Claude Code's executable.
pub const CLIENT: &str = "claude";

/// The error message for a missing home directory.
pub const NO_HOME: &str = "HOME is not set and this user has no home directory in /etc/passwd";

/// What identifies a file or folder under all its paths.
pub fn file_id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The host name.
#[inline]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// `HOME`, else the home directory in the password file.
#[inline]
pub fn home(environment: &Environment) -> Option<PathBuf> {
    match environment.get("HOME") {
        Some(home) => Some(PathBuf::from(home)),
        None => home_in(
            &fs::read_to_string("/etc/passwd").unwrap_or_default(),
            rustix::process::getuid().as_raw(),
        ),
    }
}

/// Finds the user's home directory in the password file. `getpwuid` is not used: in a static binary
/// it would load name services that may be missing.
fn home_in(passwd: &str, user: u32) -> Option<PathBuf> {
    let line = passwd
        .lines()
        .find(|line| line.split(':').nth(2).and_then(|field| field.parse().ok()) == Some(user))?;
    line.split(':').nth(5).filter(|home| home.starts_with('/')).map(PathBuf::from)
}

/// A program's path for a shell command.
pub fn path_in_commands(path: String) -> String {
    path
}

/// Whether files can be created in a directory.
pub fn is_writable(dir: &Path) -> bool {
    rustix::fs::access(dir, Access::WRITE_OK).is_ok()
}

/// Whether this user may write to a file.
pub fn may_write(file: &Path) -> bool {
    rustix::fs::access(file, Access::WRITE_OK).is_ok()
}

/// Copies owner and group to a file, as far as permitted.
pub fn copy_owner(from: &Metadata, to: &File) {
    let (user, group) = (from.uid(), from.gid());
    // The group may be permitted where the owner is not.
    if std::os::unix::fs::fchown(to, Some(user), Some(group)).is_err() {
        let _ = std::os::unix::fs::fchown(to, None, Some(group));
    }
}

/// Advice for a directory that cannot be written.
pub fn how_to_own(dir: &Path) -> String {
    format!("change its owner: `sudo chown -R \"$USER\" '{}'`", dir.display())
}

/// Free disk space available to this user.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(dir).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Makes files that this process creates private to their owner, independent of the umask.
pub fn make_files_private() {
    let user_umask = rustix::process::umask(Mode::from_raw_mode(0o077));
    let _ = USER_UMASK.set(user_umask);
}

/// The umask before [`make_files_private`].
static USER_UMASK: OnceLock<Mode> = OnceLock::new();

/// Creates a directory and its parents with the user's umask, for files that others may read.
pub fn create_dirs_for_all(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let usual = Mode::from_raw_mode(0o022);
    let ours = rustix::process::umask(USER_UMASK.get().copied().unwrap_or(usual));
    let created = fs::create_dir_all(dir);
    rustix::process::umask(ours);
    created
}

/// The user id of this process.
#[inline]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A directory's owner, and whether its mode gives access to other users.
#[inline]
pub fn owner_and_openness(dir: &Path) -> io::Result<(u32, bool)> {
    let found = rustix::fs::stat(dir)?;
    Ok((found.st_uid, found.st_mode & 0o077 != 0))
}

/// Whether the mode of a file gives access to other users.
pub fn is_open_to_others(found: &Metadata) -> bool {
    found.mode() & 0o077 != 0
}

/// Whether another user can write to a directory. False if it does not exist.
pub fn is_writable_by_others(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|found| found.uid() != user() || found.mode() & 0o022 != 0)
}

/// Makes a file or directory private to its owner.
pub fn close_to_others(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.mode();
    fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
}

/// Sets mode 0600, independent of the umask.
pub fn give_to_owner(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Makes a file readable, or executable, for everyone.
pub fn open_to_all(path: &Path, is_program: bool) -> io::Result<()> {
    let mode = if is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Whether a file is executable.
pub fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// The stdin of this process.
#[inline]
pub fn stdin() -> BorrowedFd<'static> {
    rustix::stdio::stdin()
}

/// Waits for input or its end. False after the timeout.
#[inline]
pub fn is_ready(source: &impl Source, time_max: Duration) -> bool {
    let mut watched = [PollFd::new(source, PollFlags::IN)];
    match poll(&mut watched, Some(&timespec(time_max))) {
        Ok(count) => count > 0,
        // Interrupted, or not pollable: the next read shows the state.
        Err(_) => true,
    }
}

/// Reads once.
#[inline]
pub fn read(source: &impl Source, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(source, buffer)?)
}

/// Reads once into the spare capacity.
#[inline]
pub fn read_behind(source: &impl Source, bytes: &mut Vec<u8>) -> io::Result<usize> {
    Ok(rustix::io::read(source, spare_capacity(bytes))?)
}

/// Raises a pipe's buffer to the limit for unprivileged users.
#[cfg(target_os = "linux")]
#[inline]
pub fn widen(pipe: &impl Source) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
}

/// Pipe buffers cannot be changed here.
#[cfg(not(target_os = "linux"))]
pub fn widen(_pipe: &impl Source) {}

/// Gives this thread the lowest priority.
#[cfg(target_os = "linux")]
pub fn lower_thread_priority() {
    // On Linux the value applies to the thread; elsewhere it would apply to the process.
    let _ = rustix::process::nice(19);
}

/// The run time of this thread, and its time waiting for a processor. `None` where the system does
/// not report them.
#[cfg(target_os = "linux")]
pub fn thread_times() -> Option<(Duration, Duration)> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut nanos = times.split(' ').map(|field| field.parse().map(Duration::from_nanos));
    Some((nanos.next()?.ok()?, nanos.next()?.ok()?))
}

/// This system does not report it.
#[cfg(not(target_os = "linux"))]
pub fn thread_times() -> Option<(Duration, Duration)> {
    None
}

/// Only the whole process has a priority here.
#[cfg(not(target_os = "linux"))]
pub fn lower_thread_priority() {}

/// One unbuffered write to stdout.
#[inline]
pub fn write_out(bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(rustix::stdio::stdout(), bytes)?)
}

/// Redirects stdout.
pub fn redirect_stdout(to: impl Into<OwnedFd>) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdout(to.into())?)
}

/// The width of the terminal on stdout.
pub fn columns() -> Option<usize> {
    columns_of(io::stdout())
}

/// The height of the terminal on stdout.
pub fn rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Returns when the terminal on stdin is closed; never if the system cannot detect that.
pub fn wait_for_hangup() {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
    while !terminal[0].revents().contains(PollFlags::HUP) {
        let polled = poll(&mut terminal, None);
        if terminal[0].revents().contains(PollFlags::NVAL)
            || polled.is_err_and(|error| error != Errno::INTR)
        {
            std::thread::park();
        }
    }
}

/// The width of the terminal on stderr.
pub fn stderr_columns() -> Option<usize> {
    columns_of(io::stderr())
}

fn columns_of(terminal: impl Source) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The parent process.
#[derive(Debug)]
pub struct Parent(Option<Pid>);

impl Parent {
    /// Call it first, while the parent is certainly running.
    #[expect(clippy::new_without_default, reason = "it reads the state of the process")]
    pub fn new() -> Self {
        Self(getppid())
    }

    /// Waits for input. False if the parent is gone, which is checked periodically.
    ///
    /// When the parent dies, its end of the pipe closes, unless another process inherited it.
    /// `PR_SET_PDEATHSIG` does not help: it fires when the thread that started us ends.
    pub fn wait(&self, source: &impl Source, look: Duration) -> io::Result<bool> {
        loop {
            let mut polled = [PollFd::new(source, PollFlags::IN)];
            match poll(&mut polled, Some(&timespec(look))) {
                Ok(0) | Err(Errno::INTR) if getppid() != self.0 => return Ok(false),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Leaves the parent's session, so that its end does not end this process.
pub fn detach() {
    // It fails for a process group leader, which is in its own session already.
    let _ = rustix::process::setsid();
}

/// Starts a program that outlives this process. It leaves our session by itself, and inherits no
/// descriptor: a script that calls us may hold a lock or a pipe open.
pub fn start_detached(command: &mut Command) -> io::Result<Child> {
    close_descriptors_on_exec();
    command.spawn()
}

fn close_descriptors_on_exec() {
    let Ok(open) = fs::read_dir("/dev/fd") else { return };
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|number| *number > 2) {
        #[expect(unsafe_code, reason = "only the descriptor's number is known")]
        // SAFETY: the descriptor was just listed as open, and only its flag is changed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

/// Which signal ends a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// `SIGTERM`.
    Asked,
    /// `SIGKILL`.
    Killed,
}

/// Signals a process to end. It may have ended already.
pub fn terminate(pid: u32, urgency: Urgency) {
    let signal = match urgency {
        Urgency::Asked => Signal::TERM,
        Urgency::Killed => Signal::KILL,
    };
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns when this process receives `SIGTERM` or `SIGINT`.
pub fn termination() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

/// The program that opens links, if there is a display.
pub fn link_opener(environment: &Environment) -> Option<&'static str> {
    if cfg!(target_os = "macos") {
        return Some("open");
    }
    let has_screen =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment.get(name).is_some());
    has_screen.then_some("xdg-open")
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_home_is_looked_up_in_the_password_file() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n\nbroken\n";
        assert_eq!(home_in(passwd, 1000), Some("/home/ada".into()));
        assert_eq!(home_in(passwd, 7), None);
        assert_eq!(home_in("nobody:x:7:7:::\n", 7), None);
        assert_ne!(home(&Environment::fixed(&[("HOME", "")])), Some("".into()));
    }
}
