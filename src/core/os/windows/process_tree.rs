//! A process and its descendants: a job object, which ends with its last handle.

use std::{
    env,
    ffi::OsString,
    io,
    os::windows::{
        io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command},
    ptr,
};

use windows_sys::Win32::System::{
    JobObjects::{
        AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
        JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
        SetInformationJobObject, TerminateJobObject,
    },
    Threading::CREATE_NO_WINDOW,
};

/// On other systems our program supervises processes under this name. Here the system does.
pub const CHILD_COMMAND: &str = "__agent-child";

/// A guard without a process.
pub fn child_main(_arguments: impl Iterator<Item = OsString>) -> u8 {
    1
}

/// Our own program.
pub fn launcher() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| "claude-mem.exe".into())
}

/// A command for a program that [`ProcessTree::start`] starts, and that ends with this process. Its
/// arguments are added by the caller.
pub fn watched(_launcher: &Path, program: &Path) -> Command {
    Command::new(program)
}

/// A process and its descendants. They end when this is dropped, or when this process ends in any
/// way.
#[derive(Debug)]
pub struct ProcessTree(OwnedHandle);

impl ProcessTree {
    /// Starts a process in a new job. Descendants that it starts before it is assigned to the job
    /// are not included; no program is that fast.
    pub fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        let family = Self::new()?;
        let mut child = command.creation_flags(CREATE_NO_WINDOW).spawn()?;
        if let Err(error) = family.take_in(&child) {
            let _ = child.kill();
            return Err(error);
        }
        Ok((child, family))
    }

    /// Terminates all of them.
    #[expect(unsafe_code, reason = "the standard library knows of no jobs")]
    pub fn end(&self) {
        // SAFETY: the handle is open as long as `self` is.
        let _ = unsafe { TerminateJobObject(self.0.as_raw_handle(), 1) };
    }

    #[expect(unsafe_code, reason = "the standard library knows of no jobs")]
    fn new() -> io::Result<Self> {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: a handle that is given is ours to close, and `limits` is read during the call
        // only, by its length.
        unsafe {
            let job = CreateJobObjectW(ptr::null(), ptr::null());
            if job.is_null() {
                return Err(io::Error::last_os_error());
            }
            let job = OwnedHandle::from_raw_handle(job);
            let is_set = SetInformationJobObject(
                job.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of_val(&limits) as u32,
            );
            if is_set == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(job)) }
        }
    }

    #[expect(unsafe_code, reason = "the standard library knows of no jobs")]
    fn take_in(&self, child: &Child) -> io::Result<()> {
        // SAFETY: both handles are open during the call.
        let is_in =
            unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), child.as_raw_handle()) };
        if is_in == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
