//! Every command line in the README, run as a newcomer would run it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{import::upstream::left_behind, sandbox::Sandbox};

const README: &str = include_str!("../README.md");

/// The blocks of shell, each a script.
fn scripts() -> Vec<&'static str> {
    let blocks = README.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix("sh\n")).collect()
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A home in which somebody has worked already, and a folder of programs to call by name.
struct Newcomer {
    sandbox: Sandbox,
}

impl Newcomer {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.run(&["demo", "--keep", "demo"]).ok();
        fs::rename(sandbox.home().join("demo/data"), sandbox.data()).unwrap();
        fs::create_dir(sandbox.home().join("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_claude-mem"), sandbox.home().join("bin/claude-mem")).unwrap();
        // Nobody looks at a page that opens here.
        sandbox.write("bin/xdg-open", "#!/bin/sh\n");
        let opener = sandbox.home().join("bin/xdg-open");
        fs::set_permissions(opener, fs::Permissions::from_mode(0o755)).unwrap();
        sandbox.write("demo/shop/my-prompt.txt", "Remember only what was decided, and why.\n");
        fs::create_dir_all(sandbox.home().join(".claude/projects")).unwrap();
        left_behind(&sandbox);
        Self { sandbox }
    }

    fn project(&self) -> PathBuf {
        self.sandbox.home().join("demo/shop")
    }

    fn run(&self, script: &str) {
        let home = self.sandbox.home();
        let mut command = Command::new("/bin/sh");
        command.args(["-euc", script]).current_dir(self.project()).env_clear();
        command.env("HOME", &home).env("PATH", format!("{}/bin:/usr/bin:/bin", home.display()));
        command.env("CLAUDE_MEM_PROVIDER", "extract").env("CLAUDE_MEM_WORKER_PORT", "0");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{script}\nfailed: {shown}");
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.sandbox.run(&["worker", "stop"]);
    }
}

#[test]
fn every_command_line_of_the_readme_works() {
    let newcomer = Newcomer::new();
    let scripts = scripts();
    assert!(scripts.len() > 10, "the README has lost its commands: {scripts:?}");
    for script in scripts {
        match script.trim() {
            // This test is run by it.
            "./tools/test" => {
                let ci = fs::read_to_string(repository().join(".ci/run")).unwrap();
                assert!(ci.contains("tools/test"), "{ci}");
            }
            // The release takes minutes to link; the same command of the binary at hand does not.
            "cargo run --release -- demo" => newcomer.run("claude-mem demo"),
            // The first half is a test of its own.
            "cargo install --locked --path . && claude-mem install" => {
                newcomer.run("claude-mem install");
            }
            script => newcomer.run(script),
        }
    }
}

#[test]
fn cargo_installs_it_from_its_folder() {
    let root = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "install",
        "--path",
        ".",
        "--debug",
        "--locked",
        "--offline",
        "--quiet",
        "--root",
    ]);
    command.arg(root.path()).current_dir(repository());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut installed = Command::new(root.path().join("bin/claude-mem"));
    let version = installed.arg("--version").output().unwrap().stdout;
    assert!(String::from_utf8(version).unwrap().starts_with("claude-mem 0."));
}
