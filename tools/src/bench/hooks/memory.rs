//! The peak memory of a hook.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::Path,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::world::{self, World};
use crate::bench::{BenchResult, Figure, Row, Scratch, Settings, Verdict};

/// Sizes of the input in bytes, with the limit for each in megabytes.
const LIMITS: [(usize, f64); 2] = [(4 << 10, 6.0), (10 << 20, 40.0)];

pub(super) fn measure_memory(_: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let world = World::new(scratch, "memory")?;
    let mut figures = Vec::new();
    for (bytes, limit) in LIMITS {
        let input = world::input(bytes);
        let empty = peak_mb(&world, &world.empty.clone(), &[])?;
        let most = peak_mb(&world, &world.hook, &input)?;
        let size = if bytes < 1 << 20 {
            format!("{} KB", bytes >> 10)
        } else {
            format!("{} MB", bytes >> 20)
        };
        let shown = |name: &str, megabytes: f64| Row::new(name, vec![format!("{megabytes:.1} MB")]);
        figures.push(Figure {
            title: format!("Memory of save with {size}"),
            about: "A hook writes its answer when all work is done. Here it writes to a full pipe \
                    and waits there until its `VmHWM` in `/proc` is read: its peak memory, \
                    including pages of its own file."
                .into(),
            columns: vec!["most"],
            rows: empty
                .map(|empty| shown("the empty program", empty))
                .into_iter()
                .chain([shown("save", most.unwrap_or(f64::NAN))])
                .collect(),
            verdict: Some(Verdict {
                target: format!("below {limit} MB"),
                reached: most.map_or("not known".into(), |most| format!("{most:.1} MB")),
                is_met: most.is_some_and(|most| most < limit),
            }),
        });
    }
    Ok(figures)
}

/// `None` for a program that exits without output.
fn peak_mb(world: &World, program: &Path, input: &[u8]) -> BenchResult<Option<f64>> {
    let (mut reader, writer) = full_pipe()?;
    let mut command = world.command(program, "default");
    let mut child = command.stdout(writer).stdin(Stdio::piped()).spawn()?;
    drop(command);
    let _ = child.stdin.take().ok_or("stdin is a pipe")?.write_all(input);
    let peak = wait_for_answer(&mut child)?;
    io::copy(&mut reader.by_ref(), &mut io::sink())?;
    child.wait()?;
    Ok(peak)
}

/// A full pipe.
fn full_pipe() -> BenchResult<(io::PipeReader, io::PipeWriter)> {
    let (reader, mut writer) = io::pipe()?;
    let flags = fcntl_getfl(&writer)?;
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
    while writer.write(&[0; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags)?;
    Ok((reader, writer))
}

/// Waits until the child blocks in `write` to its stdout, and reads its peak memory.
fn wait_for_answer(child: &mut Child) -> BenchResult<Option<f64>> {
    let proc = format!("/proc/{}", child.id());
    while child.try_wait()?.is_none() {
        let call = fs::read_to_string(format!("{proc}/syscall")).unwrap_or_default();
        let mut words = call.split_whitespace();
        let is_write = words.next().is_some_and(|number| number == WRITE.to_string());
        if is_write && words.next() == Some("0x1") {
            let status = fs::read_to_string(format!("{proc}/status"))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes =
                line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            return Ok(kilobytes.map(|kilobytes| kilobytes / 1024.0));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(None)
}

/// The system call number of `write`.
const WRITE: u32 = if cfg!(target_arch = "x86_64") { 1 } else { 64 };
