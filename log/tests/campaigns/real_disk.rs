//! Tests that need a real disk and real processes.

use crate::records::{append, read};
use claude_mem_log::{Appender, Error, Log, Options, maintain};
use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

fn options() -> Options {
    Options { segment_bytes_max: 2000, ..Options::default() }
}

/// A process that holds the lock of a log and is stopped, like a roller under a debugger.
struct Stopped(std::process::Child);

impl Stopped {
    fn holding(path: &Path) -> Self {
        let mut child = Command::new("flock")
            .args(["--exclusive", "--no-fork"])
            .arg(path)
            .args(["sh", "-c", "echo locked; kill -STOP $$; exit 0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        assert_eq!(&ready, b"locked");
        Self(child)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_stopped_process_with_the_lock_blocks_no_other_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut appender = Appender::open(dir.path(), options()).unwrap();
    append(&mut appender, &[1]).unwrap();
    let stopped = Stopped::holding(&dir.path().join("active.log"));
    let options = Options { lock_wait_max: Duration::from_millis(2), ..options() };
    let mut other = Appender::open(dir.path(), options.clone()).unwrap();
    for number in 2..6 {
        assert_eq!(append(&mut other, &[number]).unwrap().seq, None);
    }
    other.sync().unwrap();
    drop(stopped);
    assert_eq!(maintain(dir.path(), &options).unwrap().merged, 4);
    assert_eq!(read(dir.path(), &options).numbers, [1, 2, 3, 4, 5]);
}

/// A file system of 1 MB in memory. Without it the check is counted as skipped, as `tools/test`
/// shows.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(dir.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(dir)),
            refused => {
                let skipped = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped-checks.txt");
                let mut skipped =
                    fs::OpenOptions::new().append(true).create(true).open(skipped).unwrap();
                writeln!(skipped, "full disk: mounting is refused: {refused:?}").unwrap();
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.path()).status();
        assert!(unmounted.unwrap().success());
    }
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing_that_was_acknowledged() {
    let Some(disk) = SmallDisk::mount() else { return };
    let dir = disk.0.path().join("log");
    let options =
        Options { reserve_bytes: 64 << 10, segment_bytes_max: 100_000, ..Options::default() };
    let mut appender = Appender::open(&dir, options.clone()).unwrap();
    let mut number = 0;
    let error = loop {
        match append(&mut appender, &[number]) {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(!dir.join("reserve").exists(), "the reserved space is used first");
    assert_eq!(read(&dir, &options).set(), (0..number).collect());
    // With space again, so does the log.
    fs::write(disk.0.path().join("filler"), [0; 10]).unwrap_err();
    fs::remove_file(dir.join("0000000000000001.g00.seg")).unwrap();
    append(&mut appender, &[9000]).unwrap();
    assert!(read(&dir, &options).set().contains(&9000));
}

#[test]
fn a_read_only_file_system_is_an_error() {
    let Some(disk) = SmallDisk::mount() else { return };
    let dir = disk.0.path().join("log");
    let mut appender = Appender::open(&dir, options()).unwrap();
    append(&mut appender, &[1]).unwrap();
    drop(appender);
    let remount = |how: &str| {
        let done = Command::new("mount").args(["-o", how]).arg(disk.0.path()).status().unwrap();
        assert!(done.success());
    };
    remount("remount,ro");
    let mut appender = Appender::open(&dir, options()).unwrap();
    let error = append(&mut appender, &[2]).unwrap_err();
    assert!(matches!(error, Error::NotWritable { .. }), "{error}");
    assert_eq!(read(&dir, &options()).numbers, [1]);
    remount("remount,rw");
    append(&mut appender, &[3]).unwrap();
    assert_eq!(read(&dir, &options()).numbers, [1, 3]);
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "in the way").unwrap();
    for place in ["file", "file/log"] {
        let mut appender = Appender::open(&dir.path().join(place), options()).unwrap();
        append(&mut appender, &[1]).unwrap_err();
        appender.sync().unwrap_err();
        assert!(Log::open(&dir.path().join(place), options()).unwrap().segments().is_err());
    }
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"in the way");
}

#[test]
fn a_log_is_created_again_after_its_directory_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("a/b/log");
    let mut appender = Appender::open(&log, options()).unwrap();
    append(&mut appender, &[1]).unwrap();
    let mut reader = Log::open(&log, options()).unwrap().read_from_start();
    assert!(reader.next().unwrap().is_some());
    fs::remove_dir_all(dir.path().join("a")).unwrap();
    assert!(reader.next().unwrap().is_none());
    append(&mut appender, &[2]).unwrap();
    appender.sync().unwrap();
    assert_eq!(read(&log, &options()).numbers, [2]);
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o700);
}

/// Also runs as a child of the next test, which names the log and begins all children at once by
/// closing their stdin.
#[test]
fn a_process_begins_a_log_and_appends_to_it() {
    let own = tempfile::tempdir().unwrap();
    let shared = std::env::var_os("CLAUDE_MEM_BEGIN_LOG").map(PathBuf::from);
    let log = shared.clone().unwrap_or_else(|| own.path().join("new/log"));
    let number = std::env::var("CLAUDE_MEM_BEGIN_NUMBER").map_or(7, |text| text.parse().unwrap());
    if shared.is_some() {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    }
    let mut appender = Appender::open(&log, options()).unwrap();
    append(&mut appender, &[number]).unwrap();
    if shared.is_none() {
        assert_eq!(read(&log, &options()).numbers, [number]);
    }
}

#[test]
fn processes_that_begin_a_log_at_the_same_time_begin_one() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("new/log");
        let begin = |number: u64| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "real_disk::a_process_begins_a_log_and_appends_to_it"])
                .env("CLAUDE_MEM_BEGIN_LOG", &log)
                .env("CLAUDE_MEM_BEGIN_NUMBER", number.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut children: Vec<_> = (0..6).map(begin).collect();
        for child in &mut children {
            drop(child.stdin.take());
        }
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        maintain(&log, &options()).unwrap();
        assert_eq!(read(&log, &options()).set(), (0..6).collect());
        let report = claude_mem_log::verify(&log, &options()).unwrap();
        assert!(report.gaps().next().is_none(), "{report:#?}");
    }
}
