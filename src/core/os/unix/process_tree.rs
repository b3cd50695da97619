//! Kills a process and all its descendants.

use std::{
    fs, io,
    os::unix::process::CommandExt as _,
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

/// How often descendants are searched again, for processes that keep starting others.
const ROUNDS_MAX: u32 = 8;

/// A process and its descendants.
#[derive(Debug)]
pub struct ProcessTree(Pid);

impl ProcessTree {
    /// Starts a process as the root of a tree.
    pub fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).spawn()?;
        let family = Self(Pid::from_child(&child));
        Ok((child, family))
    }

    /// The tree of this process.
    pub(super) fn own() -> Self {
        Self(getpid())
    }

    /// The tree of a child process.
    pub fn of(child: &Child) -> Self {
        Self(Pid::from_child(child))
    }

    /// Kills the process, its process group and all descendants in any group. Call it before
    /// waiting for the process, so that its pid is not reused.
    pub fn end(&self) {
        self.end_below();
        let _ = kill_process_group(self.0, Signal::KILL);
        let _ = kill_process(self.0, Signal::KILL);
    }

    /// Kills the descendants of the process.
    pub(super) fn end_below(&self) {
        for _ in 0..ROUNDS_MAX {
            let found = below(self.0);
            if found.is_empty() {
                return;
            }
            for pid in found {
                // It may have ended already.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// All living descendants of the root. Empty without `/proc`; then only the process group is
/// killed.
fn below(root: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let all: Vec<(i32, i32)> = entries
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, living_parent(&stat)?))
        })
        .collect();
    let mut found = vec![root.as_raw_nonzero().get()];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(all.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// The parent in a line of `/proc/PID/stat`, unless the process is a zombie. The name in
/// parentheses may contain parentheses and blanks.
fn living_parent(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_contain_anything() {
        assert_eq!(living_parent("7 (a) R (b) S 42 7 7 0"), Some(42));
        assert_eq!(living_parent("7 (dead) Z 42 7"), None);
        assert_eq!(living_parent("nonsense"), None);
    }
}
