//! A description of the machine, without names.

use std::{fs, path::Path, thread};

/// Processors, memory, system, the file system of `dir`, and the load, in one line.
pub(crate) fn describe_machine(dir: &Path) -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let arch = std::env::consts::ARCH;
    let memory = memory_gb().map_or(String::new(), |gb| format!(", {gb} GB of memory"));
    let system = format!("{} {}", std::env::consts::OS, release().unwrap_or_default());
    let file_system = file_system(dir).unwrap_or_else(|| "unknown".into());
    let load = load().map_or(String::new(), |load| format!(", {load} processes waiting to run"));
    let system = system.trim();
    format!("{cores} processors ({arch}{}){memory}, {system}, {file_system}{load}", features())
}

/// The average number of runnable processes in the last minute. If it exceeds the processors, all
/// times are affected.
fn load() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    Some(text.split_whitespace().next()?.to_owned())
}

/// The CPU features that checksums and hashes use.
fn features() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let known = ["pclmulqdq", "vpclmulqdq", "avx2", "avx512f", "sha_ni"];
    let found = known.into_iter().filter(|name| flags.split_whitespace().any(|flag| flag == *name));
    found.map(|name| format!(", {name}")).collect()
}

fn memory_gb() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((kilobytes + (1 << 19)) >> 20)
}

/// The first two numbers of the system's release: the rest names builds.
fn release() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = text.trim().split(['.', '-']);
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}

/// The type of the file system, from the longest mount point above `dir`.
fn file_system(dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    let below = mounts.filter(|(point, _)| dir.starts_with(point));
    below.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind)
}
