//! Permissions of the data directory: only its owner can read it, whatever they were before.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::sandbox::{Sandbox, binary};

const PROMPT: &str =
    r#"{"session_id":"s","cwd":"/p","hook_event_name":"UserPromptSubmit","prompt":"walrus"}"#;
const TOOL: &str = r#"{"session_id":"s","cwd":"/p","hook_event_name":"PostToolUse","tool_name":"Bash",
    "tool_input":{"command":"ls"},"tool_response":"walrus"}"#;
/// A user who owns nothing.
const NOBODY: u32 = 65534;

fn not_checked(why: &str) {
    writeln!(std::io::stderr().lock(), "NOT CHECKED: {why}").unwrap();
}

/// Everything below a directory that other users may access, with its mode.
fn open_to_others(path: &Path) -> Vec<(PathBuf, String)> {
    let found = fs::symlink_metadata(path).unwrap();
    let mut open = Vec::new();
    if !found.is_symlink() && found.mode() & 0o077 != 0 {
        open.push((path.to_path_buf(), format!("{:o}", found.mode())));
    }
    if found.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            open.extend(open_to_others(&entry.unwrap().path()));
        }
    }
    open
}

/// Runs the binary under this umask.
fn under_umask(sandbox: &Sandbox, umask: &str, arguments: &[&str], stdin: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(binary());
    command.args(arguments).env_clear().env("HOME", sandbox.home()).env("PATH", "/usr/bin:/bin");
    command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false").current_dir(sandbox.home());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Creates each kind of file in the data directory.
fn use_it(sandbox: &Sandbox, umask: &str) {
    let run = |arguments: &[&str], stdin: &str| {
        let output = under_umask(sandbox, umask, arguments, stdin);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    run(&["new"], PROMPT);
    run(&["save"], TOOL);
    run(&["remember", "the walrus is shy"], "");
    run(&["settings", "set", "provider", "extract"], "");
    run(&["settings", "set", "openai_api_key", "sk-0123456789-abcdef"], "");
    run(&["install"], "");
    run(&["distill"], "");
    run(&["search", "walrus"], "");
    run(&["replay", "--offline"], "");
    run(&["key", "new"], "");
    run(&["worker", "start"], "");
    let while_it_runs = open_to_others(&sandbox.data());
    run(&["worker", "stop"], "");
    assert_eq!(while_it_runs, []);
    assert!(sandbox.data().join("memory.db").exists());
    assert_eq!(open_to_others(&sandbox.data()), []);
}

#[test]
fn files_are_private_with_any_umask() {
    for umask in ["000", "022", "077", "777"] {
        let sandbox = Sandbox::new();
        use_it(&sandbox, umask);
        assert_eq!(fs::metadata(sandbox.data()).unwrap().mode() & 0o777, 0o700, "{umask}");
        let memory = fs::metadata(sandbox.data().join("memory.db")).unwrap();
        assert_eq!(memory.mode() & 0o777, 0o600, "{umask}");
    }
}

#[test]
fn a_directory_that_was_open_is_closed_by_the_first_hook_with_everything_in_it() {
    let sandbox = Sandbox::new();
    use_it(&sandbox, "022");
    sandbox.write(".claude-mem/claude-mem.db", "of the TypeScript claude-mem");
    let opened = Command::new("chmod").args(["-R", "go+rX"]).arg(sandbox.data()).status().unwrap();
    assert!(opened.success() && open_to_others(&sandbox.data()).len() > 5);
    under_umask(&sandbox, "000", &["save"], TOOL);
    assert_eq!(open_to_others(&sandbox.data()), []);
    use_it_again(&sandbox);
}

/// Stricter permissions break nothing.
fn use_it_again(sandbox: &Sandbox) {
    assert!(sandbox.run(&["search", "walrus"]).ok().contains("walrus"));
    assert_eq!(open_to_others(&sandbox.data()), []);
}

#[test]
fn permissions_of_an_older_database_are_restricted_by_any_command() {
    let sandbox = Sandbox::new();
    use_it(&sandbox, "022");
    let memory = sandbox.data().join("memory.db");
    fs::set_permissions(&memory, fs::Permissions::from_mode(0o644)).unwrap();
    use_it_again(&sandbox);
}

#[test]
fn files_for_others_can_be_read_by_others() {
    let sandbox = Sandbox::new();
    for arguments in [&["man", "a/pages"][..], &["plugin", "a/market"]] {
        assert!(under_umask(&sandbox, "022", arguments, "").status.success());
    }
    for path in ["a", "a/pages", "a/market/plugin/hooks"] {
        assert_eq!(fs::metadata(sandbox.home().join(path)).unwrap().mode() & 0o777, 0o755);
    }
}

#[test]
fn the_directory_of_another_user_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.hook("new", PROMPT);
    let events = sandbox.events().len();
    if chown(sandbox.data(), Some(NOBODY), None).is_err() {
        return not_checked("only root can give a directory away");
    }
    for hook in ["new", "save", "context"] {
        sandbox.hook(hook, PROMPT);
    }
    for arguments in [&["status"][..], &["search", "walrus"], &["remember", "x"], &["doctor"]] {
        let error = sandbox.run(arguments).fails(1);
        assert!(error.contains("belongs to user 65534, and you are user"), "{error}");
    }
    sandbox.run(&["man", "pages"]).ok();
    chown(sandbox.data(), Some(rustix::process::geteuid().as_raw()), None).unwrap();
    assert_eq!(sandbox.events().len(), events, "nothing was recorded");
}

#[test]
fn another_user_can_neither_read_nor_use_it() {
    if !rustix::process::geteuid().is_root() {
        return not_checked("only root can become another user");
    }
    let sandbox = Sandbox::new();
    use_it(&sandbox, "000");
    // The directories above are accessible, so only the data directory itself denies access.
    for dir in [sandbox.home(), sandbox.home().parent().unwrap().to_path_buf()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let other = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", program]);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", sandbox.home())
            .env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null()).output().unwrap()
    };
    assert!(other("ls", &[sandbox.home().to_str().unwrap()]).status.success());
    let memory = sandbox.data().join("memory.db");
    assert!(!other("cat", &[memory.to_str().unwrap()]).status.success());
    // If other users cannot run the binary, nothing more can be tested.
    let own = sandbox.home().join("claude-mem");
    fs::copy(binary(), &own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    let status = other(own.to_str().unwrap(), &["status"]);
    let error = String::from_utf8_lossy(&status.stderr).into_owned();
    assert!(error.contains("belongs to user 0, and you are user 65534"), "{status:?}");
    let hook = other(own.to_str().unwrap(), &["new"]);
    assert!(hook.status.success() && hook.stderr.is_empty(), "{hook:?}");
}

#[test]
fn a_link_in_the_place_of_a_lock_file_leaves_its_target_alone() {
    for lock in ["worker.lock", "ask.lock", "memory.db.lock", "memory.db.rebuild", "ship.lock"] {
        let sandbox = Sandbox::new();
        sandbox.hook("new", PROMPT);
        let target = sandbox.write("precious", "keep me");
        symlink(&target, sandbox.data().join(lock)).unwrap();
        let place = sandbox.home().join("copy");
        for arguments in [
            &["distill"][..],
            &["replay", "--offline"],
            &["search", "walrus"],
            &["ship", "--to", place.to_str().unwrap()],
            &["worker", "start"],
            &["worker", "stop"],
        ] {
            // Some of them fail as expected, because they cannot take the lock.
            sandbox.run(arguments);
        }
        assert_eq!(sandbox.read("precious"), "keep me", "{lock}");
    }
}
