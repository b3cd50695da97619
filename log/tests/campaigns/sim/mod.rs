//! A disk in memory that can lose power at any call, fail any call, report a failed sync as
//! success, and run other processes between any two calls.
//!
//! After a power loss the simulated platter has any state the rules allow, not only those that a
//! well-behaved file system would leave (the model of ALICE):
//! - each 512-byte sector of a file has any of the contents it had since the file was last synced;
//! - the length is any that the file had since then, and what was never written below it reads as
//!   zeros;
//! - each name given or taken since its directory was synced is there or not, independently of all
//!   others; only a rename never loses the file.

mod files;
mod platter;

use claude_mem_log::disk::{Disk, File};
use files::SimFile;
use platter::Platter;
use std::{
    fmt, io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::random::Random;

/// The disk. Clones are the same disk.
#[derive(Clone)]
pub struct Sim(Arc<Inner>);

struct Inner {
    platter: Mutex<Platter>,
    calls: AtomicU64,
    handles: AtomicU64,
    fault: Mutex<Option<(u64, Fault)>>,
    hook: Mutex<Option<Hook>>,
}

type Hook = Box<dyn FnMut(&Sim, u64) + Send>;

/// The fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this error.
    Fails(io::ErrorKind),
    /// A write takes half of its bytes; other calls are not affected.
    Short,
    /// A sync fails; the disk drops the written data and regards the file as clean from then on.
    Lies,
}

impl fmt::Debug for Sim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sim")
    }
}

impl Sim {
    /// An empty disk with one directory, `/disk`.
    pub fn new() -> Self {
        Self::with(Platter::new())
    }

    fn with(platter: Platter) -> Self {
        Self(Arc::new(Inner {
            platter: Mutex::new(platter),
            calls: AtomicU64::new(0),
            handles: AtomicU64::new(1),
            fault: Mutex::new(None),
            hook: Mutex::new(None),
        }))
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Relaxed)
    }

    /// Makes call number `call`, counted from 1, fail.
    pub fn fail(&self, call: u64, fault: Fault) {
        *self.0.fault.lock().unwrap() = Some((call, fault));
    }

    /// Whether the fault set by [`fail`](Self::fail) is still to come.
    pub fn is_fault_pending(&self) -> bool {
        self.0.fault.lock().unwrap().is_some()
    }

    /// Runs `hook` before every call, except for those that it makes itself.
    pub fn before_each_call(&self, hook: impl FnMut(&Sim, u64) + Send + 'static) {
        *self.0.hook.lock().unwrap() = Some(Box::new(hook));
    }

    pub fn no_hook(&self) {
        *self.0.hook.lock().unwrap() = None;
    }

    /// The state after a power loss right now: one of many possibilities.
    pub fn lose_power(&self, random: &mut Random) -> Self {
        Self::with(self.platter().lose_power(random))
    }

    /// The same content on another disk, without locks.
    pub fn copy(&self) -> Self {
        Self::with(self.platter().without_locks())
    }

    /// Creates or replaces a file with this content, all of it on the platter.
    pub fn put(&self, path: &Path, content: &[u8]) {
        self.platter().put(path, content);
    }

    /// Adds bytes to a file, like a write in progress. Not a scheduling point.
    pub fn grow(&self, path: &Path, bytes: &[u8]) {
        let mut platter = self.platter();
        let inode = platter.file(path).unwrap();
        platter.append(inode, bytes);
    }

    /// The content of a file, as programs see it.
    pub fn get(&self, path: &Path) -> Vec<u8> {
        let mut platter = self.platter();
        let inode = platter.file(path).unwrap();
        let mut bytes = vec![0; platter.len(inode) as usize];
        platter.read(inode, &mut bytes, 0);
        bytes
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.platter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry point of every call.
    fn enter(&self) -> io::Result<Option<Fault>> {
        let call = self.0.calls.fetch_add(1, Relaxed) + 1;
        let hook = self.0.hook.lock().unwrap().take();
        if let Some(mut hook) = hook {
            hook(self, call);
            self.0.hook.lock().unwrap().get_or_insert(hook);
        }
        let mut fault = self.0.fault.lock().unwrap();
        match *fault {
            Some((at, kind)) if at == call => {
                *fault = None;
                match kind {
                    Fault::Fails(kind) => Err(kind.into()),
                    kind => Ok(Some(kind)),
                }
            }
            _ => Ok(None),
        }
    }

    fn handle(&self, inode: u64) -> Arc<dyn File> {
        let handle = self.0.handles.fetch_add(1, Relaxed);
        Arc::new(SimFile { sim: self.clone(), inode, handle })
    }
}

impl Disk for Sim {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.enter()?;
        self.platter().create_dir(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.enter()?;
        let inode = self.platter().file(path)?;
        Ok(self.handle(inode))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.enter()?;
        let inode = self.platter().create(path)?;
        Ok(self.handle(inode))
    }

    fn open_marker(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.enter()?;
        let mut platter = self.platter();
        let inode = match platter.file(path) {
            Ok(inode) => inode,
            Err(_) => platter.create(path)?,
        };
        drop(platter);
        Ok(self.handle(inode))
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        self.enter()?;
        self.platter().inode(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter()?;
        self.platter().link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter()?;
        self.platter().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.enter()?;
        self.platter().remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.enter()?;
        self.platter().list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if let Some(Fault::Lies) = self.enter()? {
            // Directories are in the journal: if that fails, all later operations of the file
            // system fail.
            return Err(io::Error::other("input/output error"));
        }
        self.platter().sync_dir(dir)
    }

    fn age(&self, path: &Path) -> io::Result<Duration> {
        self.enter()?;
        self.platter().age(path)
    }

    fn now_us(&self) -> u64 {
        self.platter().now_us()
    }

    fn pause(&self, time: Duration) {
        self.platter().pause(time);
    }
}
