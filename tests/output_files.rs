//! Every command that writes to a path chosen by the user, with something unusual at that path.

use std::{
    fs::{self, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use crate::sandbox::Sandbox;

/// A command, and one of the files it writes.
struct Case {
    arguments: &'static [&'static str],
    /// Below the home directory.
    file: &'static str,
    /// A configuration file is read first, so that a device or a FIFO in its place is refused.
    is_read_first: bool,
}

const fn output(arguments: &'static [&'static str], file: &'static str) -> Case {
    Case { arguments, file, is_read_first: false }
}

const fn configuration(arguments: &'static [&'static str], file: &'static str) -> Case {
    Case { arguments, file, is_read_first: true }
}

const CASES: &[Case] = &[
    output(&["export", "--output", "out"], "out"),
    output(&["export", "--format", "markdown", "--output", "out"], "out"),
    output(&["man", "pages"], "pages/claude-mem.1"),
    output(&["plugin", "market"], "market/plugin/.mcp.json"),
    output(&["plugin", "market"], "market/plugin/bin/claude-mem"),
    configuration(&["install"], ".claude/settings.json"),
    configuration(&["install"], ".claude.json"),
    configuration(&["install", "--client", "codex"], ".codex/config.toml"),
    configuration(&["install", "--client", "zed"], ".config/zed/settings.json"),
    configuration(&["settings", "set", "provider", "extract"], ".claude-mem/settings.json"),
    configuration(
        &["settings", "set", "openai_api_key", "sk-0123456789-abcdef"],
        ".claude-mem/.env",
    ),
];

/// A home directory with something to export, in which `put` placed something at the output path.
fn with(case: &Case, put: impl FnOnce(&Path)) -> Sandbox {
    let sandbox = Sandbox::new();
    let prompt =
        r#"{"session_id":"s","cwd":"/p","hook_event_name":"UserPromptSubmit","prompt":"walrus"}"#;
    sandbox.hook("new", prompt);
    sandbox.run(&["remember", "the walrus is shy"]).ok();
    // A folder with other content would be refused.
    if case.arguments[0] == "plugin" {
        sandbox.run(case.arguments).ok();
    }
    let file = sandbox.home().join(case.file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&file);
    put(&file);
    sandbox
}

/// A file that was there before, without content of ours.
fn original(case: &Case) -> &'static str {
    let is_json = !case.file.ends_with(".toml") && !case.file.ends_with(".yaml");
    if is_json { "{}" } else { "# mine\n" }
}

/// Our temporary files next to an output.
fn drafts(file: &Path) -> usize {
    let entries = fs::read_dir(file.parent().unwrap()).unwrap();
    entries.filter(|entry| is_draft(&entry.as_ref().unwrap().file_name().to_string_lossy())).count()
}

fn is_draft(name: &str) -> bool {
    name.starts_with(".claude-mem-") && name.ends_with(".tmp")
}

#[test]
fn a_device_is_written_in_place_or_refused_and_stays_a_device() {
    for case in CASES {
        let mut is_made = false;
        let sandbox = with(case, |file| {
            let made = Command::new("mknod").arg(file).args(["c", "1", "3"]).output();
            is_made = made.is_ok_and(|made| made.status.success())
                && OpenOptions::new().write(true).open(file).is_ok();
        });
        if !is_made {
            let message = b"NOT CHECKED: devices cannot be made here\n";
            std::io::stderr().lock().write_all(message).unwrap();
            return;
        }
        let file = sandbox.home().join(case.file);
        let run = sandbox.run(case.arguments);
        assert!(fs::metadata(&file).unwrap().file_type().is_char_device(), "{}", case.file);
        match case.is_read_first {
            false => assert_eq!(run.code, 0, "{}: {run:?}", case.file),
            true => assert!(run.fails(1).contains("not a regular file"), "{}", case.file),
        }
        assert_eq!(drafts(&file), 0, "{}", case.file);
    }
}

#[test]
fn a_terminal_shows_what_is_exported_to_it() {
    let sandbox = with(&CASES[0], |_| {});
    let (mut shown, name) = claude_mem_tools::pseudo_terminal::open_terminal().unwrap();
    sandbox.run(&["export", "--output", &name]).ok();
    let mut bytes = [0; 4096];
    let length = shown.read(&mut bytes).unwrap();
    assert!(String::from_utf8_lossy(&bytes[..length]).contains("walrus"));
    assert!(fs::metadata(name).unwrap().file_type().is_char_device());
}

#[test]
fn a_fifo_passes_everything_on_or_is_refused_and_stays_a_fifo() {
    for case in CASES {
        let sandbox = with(case, |file| {
            rustix::fs::mkfifoat(rustix::fs::CWD, file, 0o600.into()).unwrap();
        });
        let file = sandbox.home().join(case.file);
        let reader = thread::spawn({
            let file = file.clone();
            move || fs::read(file).unwrap()
        });
        let run = sandbox.run(case.arguments);
        // Opened for writing, in case the command did not: the reader needs an end of file. This
        // fails until the reader has opened it.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        while !reader.is_finished() {
            drop(OpenOptions::new().write(true).custom_flags(nonblocking).open(&file));
            thread::sleep(Duration::from_millis(5));
        }
        assert!(fs::metadata(&file).unwrap().file_type().is_fifo(), "{}", case.file);
        let read = reader.join().unwrap();
        match case.is_read_first {
            false => assert!(run.code == 0 && !read.is_empty(), "{}: {run:?}", case.file),
            true => assert!(run.fails(1).contains("not a regular file"), "{}", case.file),
        }
    }
}

#[test]
fn doctor_and_hooks_wait_for_no_fifo() {
    let sandbox = Sandbox::new();
    for file in [
        ".claude/settings.json",
        ".codex/config.toml",
        ".config/opencode/plugins/claude-mem.js",
        ".cline/hooks/TaskStart",
        ".copilot/hooks/claude-mem.json",
    ] {
        let file = sandbox.home().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, 0o600.into()).unwrap();
    }
    sandbox.run(&["doctor"]).fails(1);
    let prompt =
        r#"{"session_id":"s","cwd":"/p","hook_event_name":"UserPromptSubmit","prompt":"walrus"}"#;
    for client in ["claude-code", "copilot", "cursor", "vscode"] {
        sandbox.run_with(&["hook", "--client", client], &[], prompt).ok();
    }
}

#[test]
fn a_link_stays_and_its_target_is_replaced_with_its_mode() {
    for case in CASES {
        let elsewhere = tempfile::tempdir().unwrap();
        let target = elsewhere.path().join("target");
        let sandbox = with(case, |file| {
            fs::write(&target, original(case)).unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
            symlink(&target, file).unwrap();
        });
        sandbox.run(case.arguments).ok();
        let file = sandbox.home().join(case.file);
        assert!(fs::symlink_metadata(&file).unwrap().is_symlink(), "{}", case.file);
        let length = fs::metadata(&target).unwrap().len();
        assert!(length > original(case).len() as u64, "{}", case.file);
        let mode = fs::metadata(&target).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o640, "{}", case.file);
    }
}

#[test]
fn a_read_only_file_is_refused_and_stays_as_it_was() {
    for case in CASES {
        let sandbox = with(case, |file| {
            fs::write(file, original(case)).unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
        });
        let error = sandbox.run(case.arguments).fails(1);
        assert!(error.contains("read-only"), "{}: {error}", case.file);
        let file = sandbox.home().join(case.file);
        assert_eq!(fs::read_to_string(&file).unwrap(), original(case), "{}", case.file);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o444);
    }
}

#[test]
fn standard_output_named_as_a_file_is_appended_to() {
    let sandbox = with(&CASES[0], |_| {});
    let all = sandbox.write("all.jsonl", "first\n");
    let appended = OpenOptions::new().append(true).open(&all).unwrap();
    let export = sandbox.command(&["export", "-o", "/dev/stdout"]).stdout(appended).status();
    assert!(export.unwrap().success());
    let text = fs::read_to_string(&all).unwrap();
    assert!(text.starts_with("first\n{") && text.contains("walrus"), "{text}");
}
