//! Open files of the simulated disk, and the locks they hold.

use super::{Fault, Sim};
use claude_mem_log::disk::{AppendResult, File, Lock};
use std::{fmt, io};

pub struct SimFile {
    pub sim: Sim,
    pub inode: u64,
    pub handle: u64,
}

impl fmt::Debug for SimFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SimFile({})", self.inode)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.sim.platter().unlock(self.inode, self.handle);
    }
}

impl File for SimFile {
    fn append(&self, bytes: &[u8]) -> io::Result<AppendResult> {
        let fault = self.sim.enter()?;
        let taken = if fault == Some(Fault::Short) { bytes.len() / 2 } else { bytes.len() };
        let end = self.sim.platter().append(self.inode, &bytes[..taken]);
        Ok(AppendResult { bytes: taken, end })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.sim.enter()?;
        self.sim.platter().write(self.inode, bytes, offset as usize);
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.sim.enter()?;
        Ok(self.sim.platter().read(self.inode, buffer, offset as usize))
    }

    fn len(&self) -> io::Result<u64> {
        self.sim.enter()?;
        Ok(self.sim.platter().len(self.inode))
    }

    fn inode(&self) -> io::Result<u64> {
        self.sim.enter()?;
        Ok(self.inode)
    }

    fn sync(&self) -> io::Result<()> {
        let lies = self.sim.enter()? == Some(Fault::Lies);
        self.sim.platter().sync(self.inode, lies);
        if lies { Err(io::Error::other("input/output error")) } else { Ok(()) }
    }

    fn try_lock(&self, lock: Lock) -> io::Result<bool> {
        self.sim.enter()?;
        Ok(self.sim.platter().try_lock(self.inode, self.handle, lock))
    }

    fn unlock(&self) -> io::Result<()> {
        self.sim.enter()?;
        self.sim.platter().unlock(self.inode, self.handle);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.sim.enter()?;
        self.sim.platter().write(self.inode, &vec![0; len as usize], 0);
        Ok(())
    }

    fn is_shared_over_network(&self) -> bool {
        false
    }
}
