//! Ending a process and everything it started.

use std::{
    fs, io,
    os::unix::process::CommandExt as _,
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

/// A process that keeps starting others while it is being ended is met again so often.
const ROUNDS_MAX: u32 = 8;

/// A process and everything it started.
#[derive(Debug)]
pub struct Family(Pid);

impl Family {
    /// Starts a process as the first of a family of its own.
    pub fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).spawn()?;
        let family = Self(Pid::from_child(&child));
        Ok((child, family))
    }

    /// The one that this process is the first of.
    pub(super) fn own() -> Self {
        Self(getpid())
    }

    /// The one that a child is the first of.
    pub fn of(child: &Child) -> Self {
        Self(Pid::from_child(child))
    }

    /// Kills the process, its process group, and all that came from it, wherever that put itself. It must
    /// not have been waited for yet, so that its number is still its own.
    pub fn end(&self) {
        self.end_below();
        let _ = kill_process_group(self.0, Signal::KILL);
        let _ = kill_process(self.0, Signal::KILL);
    }

    /// Kills all that came from the process, but not the process.
    pub(super) fn end_below(&self) {
        for _ in 0..ROUNDS_MAX {
            let found = below(self.0);
            if found.is_empty() {
                return;
            }
            for pid in found {
                // It may have ended by itself in the meantime.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Every living process that the root started, directly or through others. Empty where there is no
/// `/proc`; then the process group has to do.
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

/// The parent in a line of `/proc/PID/stat`, unless the process is dead and merely not yet waited for.
/// The name in parentheses may hold anything, parentheses and blanks included.
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
    fn a_name_may_hold_anything() {
        assert_eq!(living_parent("7 (a) R (b) S 42 7 7 0"), Some(42));
        assert_eq!(living_parent("7 (dead) Z 42 7"), None);
        assert_eq!(living_parent("nonsense"), None);
    }
}
