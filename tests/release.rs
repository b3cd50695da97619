//! The files of a release: built from the test binary, and installed from a local folder without a
//! toolchain.

use std::{
    env::{self, consts::ARCH},
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, binary, count_as_skipped};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const REPOSITORY: &str = "https://example.org/me/claude-mem";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn target() -> String {
    format!("{ARCH}-unknown-linux-gnu")
}

fn ok(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    text(&output)
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn pack(arguments: &[&str], runnable: &Path) {
    let mut command = Command::new(repository().join("tools/release/pack"));
    // The best compression level would take most of the time.
    command.args(arguments).env("GZIP_LEVEL", "1").env("RUNNABLE", runnable);
    ok(&mut command);
}

/// All files of a release. For platforms that do not run here, the binary is a short text.
fn packed(dir: &Path) -> PathBuf {
    let stripped = dir.join("claude-mem");
    fs::copy(binary(), &stripped).unwrap();
    // Half of a debug build is symbols.
    let _ = Command::new("strip").arg(&stripped).status();
    let foreign = dir.join("foreign");
    fs::write(&foreign, "a binary of another platform").unwrap();
    let out = dir.join("out");
    let folder = out.to_str().unwrap();
    pack(&["archive", &target(), stripped.to_str().unwrap(), folder], &stripped);
    for other in ["aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-pc-windows-msvc"] {
        pack(&["archive", other, foreign.to_str().unwrap(), folder], &stripped);
    }
    pack(&["release", folder, REPOSITORY], &stripped);
    out
}

/// A PATH with only these programs: no compiler and no cargo.
fn only(sandbox: &Sandbox, programs: &[&str]) -> String {
    let dir = sandbox.home().join("only");
    fs::create_dir(&dir).unwrap();
    for program in programs {
        let path = env::var_os("PATH").unwrap();
        let found = env::split_paths(&path).map(|dir| dir.join(program)).find(|it| it.exists());
        symlink(found.unwrap_or_else(|| panic!("no {program} here")), dir.join(program)).unwrap();
    }
    dir.to_str().unwrap().to_owned()
}

/// Runs the hooks that are registered in Claude Code for one session, and returns the context of
/// the next one.
fn first_memory(sandbox: &Sandbox, path: &str) -> String {
    let settings: Value = serde_json::from_str(&sandbox.read(".claude/settings.json")).unwrap();
    let command =
        |event: &str| settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
    let shop = sandbox.home().join("shop");
    fs::create_dir_all(&shop).unwrap();
    let send = |event: &str, session: &str, mut payload: Value| {
        payload["hook_event_name"] = event.into();
        payload["session_id"] = session.into();
        payload["cwd"] = shop.to_str().unwrap().into();
        let file = sandbox.write("payload.json", &payload.to_string());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command(event)]).env_clear().env("HOME", sandbox.home());
        shell.env("PATH", path).env("CLAUDE_MEM_WORKER_AUTOSTART", "false");
        ok(shell.stdin(fs::File::open(file).unwrap()))
    };
    send("SessionStart", "one", json!({"source": "startup"}));
    let prompt = "Always round totals once, at the end of the invoice.";
    send("UserPromptSubmit", "one", json!({ "prompt": prompt }));
    let edit = json!({"file_path": shop.join("total.rs"), "old_string": "a", "new_string": "b"});
    send(
        "PostToolUse",
        "one",
        json!({"tool_name": "Edit", "tool_input": edit, "tool_use_id": "t",
        "tool_response": {"filePath": shop.join("total.rs")}}),
    );
    send("Stop", "one", json!({"last_assistant_message": "Totals are now rounded once."}));
    send("SessionEnd", "one", json!({"reason": "exit"}));
    let program = command("Stop").rsplit_once('"').unwrap().0.trim_matches('"').to_owned();
    let mut distill = Command::new(program);
    distill.arg("distill").env_clear().env("HOME", sandbox.home()).env("PATH", path);
    ok(distill.env("CLAUDE_MEM_PROVIDER", "extract").env("CLAUDE_MEM_SEMANTIC", "off"));
    send("SessionStart", "two", json!({"source": "startup"}))
}

#[test]
fn every_file_of_a_release_installs_from_a_folder_without_a_toolchain() {
    let dir = tempfile::tempdir().unwrap();
    let out = packed(dir.path());
    ok(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&out));
    let address = served(&out);
    the_script_installs_and_upgrades(&out, &address);
    the_debian_package_installs_and_is_removed(&out);
    npx_installs_a_copy_that_stays(&address);
    the_formula_and_cargo_binstall_name_the_archives(&out);
}

fn the_script_installs_and_upgrades(out: &Path, address: &str) {
    let sandbox = Sandbox::new();
    let tools =
        ["cp", "curl", "gzip", "mkdir", "mktemp", "mv", "rm", "sed", "sha256sum", "tar", "uname"];
    let path = only(&sandbox, &tools);
    let install = |from: &str| {
        let mut shell = Command::new("/bin/sh");
        shell.arg(out.join("install.sh")).arg("--from").arg(from).env_clear();
        shell.env("HOME", sandbox.home()).env("PATH", &path).output().unwrap()
    };
    let damaged = sandbox.home().join("damaged");
    fs::create_dir(&damaged).unwrap();
    let archive = format!("claude-mem-v{VERSION}-{}.tar.gz", target());
    fs::copy(out.join("SHA256SUMS"), damaged.join("SHA256SUMS")).unwrap();
    let mut bytes = fs::read(out.join(&archive)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(damaged.join(&archive), bytes).unwrap();
    let refused = install(damaged.to_str().unwrap());
    assert!(text(&refused).contains("another checksum than SHA256SUMS"), "{}", text(&refused));
    assert!(!refused.status.success() && !sandbox.home().join(".local").exists());

    let installed = install(out.to_str().unwrap());
    assert!(installed.status.success(), "{}", text(&installed));
    let bin = sandbox.home().join(".local/bin");
    assert!(text(&installed).contains(&format!("{}/claude-mem install", bin.display())));
    assert!(text(&installed).contains(&format!("export PATH=\"{}:$PATH\"", bin.display())));
    for file in ["man/man1/claude-mem-search.1", "bash-completion/completions/claude-mem"] {
        assert!(sandbox.home().join(".local/share").join(file).exists(), "{file}");
    }
    let mut command = Command::new(bin.join("claude-mem"));
    command.arg("install").env_clear().env("HOME", sandbox.home()).env("PATH", &path);
    assert!(ok(&mut command).contains("✓ hooks       ~/.claude/settings.json"));
    let given = first_memory(&sandbox, &path);
    assert!(given.contains("Always round totals once"), "{given}");

    // This time over the network. Recorded events stay.
    let log = fs::read(sandbox.data().join("log/active.log")).unwrap();
    let again = text(&install(address));
    assert!(again.contains(&format!("it replaces claude-mem {VERSION}; your memories stay")));
    assert_eq!(fs::read(sandbox.data().join("log/active.log")).unwrap(), log);
}

fn the_debian_package_installs_and_is_removed(out: &Path) {
    let architecture = if ARCH == "aarch64" { "arm64" } else { "amd64" };
    let package = out.join(format!("claude-mem_{VERSION}_{architecture}.deb"));
    if !rustix::process::geteuid().is_root() {
        count_as_skipped("only root can install a Debian package");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let state = root.path().join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(state.join(folder)).unwrap();
    }
    fs::write(state.join("status"), "").unwrap();
    let dpkg = |arguments: &[&str]| {
        let mut command = Command::new("dpkg");
        ok(command.arg(format!("--root={}", root.path().display())).args(arguments))
    };
    dpkg(&["--install", package.to_str().unwrap()]);
    assert!(dpkg(&["--status", "claude-mem"]).contains(&format!("Version: {VERSION}\n")));
    let program = root.path().join("usr/bin/claude-mem");
    assert_eq!(ok(Command::new(program).arg("--version")), format!("claude-mem {VERSION}\n"));
    assert!(root.path().join("usr/share/man/man1/claude-mem.1.gz").exists());
    dpkg(&["--remove", "claude-mem"]);
    assert!(!root.path().join("usr").exists());
}

/// Serves the files in a folder, and acts as an npm registry for the packages in it.
fn served(out: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (out, base) = (out.to_owned(), url.clone());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let name = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
            let body = fs::read(out.join(name)).or_else(|_| {
                let file = format!("npm-{name}-{VERSION}.tgz");
                fs::metadata(out.join(&file)).map(|_| about(&out, &file, &base))
            });
            let status = if body.is_ok() { "200 OK" } else { "404 Not Found" };
            let body = body.unwrap_or_default();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
            let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes());
            let _ = stream.write_all(&body);
        }
    });
    url
}

/// The registry's document about the only version of a package.
fn about(out: &Path, file: &str, base: &str) -> Vec<u8> {
    let mut tar = Command::new("tar");
    tar.arg("-xOzf").arg(out.join(file)).arg("package/package.json");
    let mut package: Value = serde_json::from_str(&ok(&mut tar)).unwrap();
    package["dist"] = json!({ "tarball": format!("{base}/{file}") });
    let name = package["name"].clone();
    json!({"name": name, "dist-tags": {"latest": VERSION}, "versions": {VERSION: package}})
        .to_string()
        .into_bytes()
}

fn npx_installs_a_copy_that_stays(registry: &str) {
    let sandbox = Sandbox::new();
    let path =
        only(&sandbox, &["env", "find", "mkdir", "node", "npm", "npx", "rmdir", "sh", "sleep"]);
    let with_npm = |command: &mut Command| {
        command.env_clear().env("HOME", sandbox.home()).env("PATH", &path);
        command.env("npm_config_registry", registry).env("npm_config_update_notifier", "false");
        ok(command.current_dir(sandbox.home()))
    };
    let report = with_npm(Command::new("npx").args(["--yes", "claude-mem", "install"]));
    assert!(report.contains("✓ copied the program to ~/.claude-mem/bin/claude-mem"), "{report}");
    assert!(report.contains("✓ hooks       ~/.claude/settings.json"), "{report}");
    // The cache of npx may be deleted.
    fs::remove_dir_all(sandbox.home().join(".npm")).unwrap();
    let given = first_memory(&sandbox, &path);
    assert!(given.contains("Always round totals once"), "{given}");

    // A plugin without a binary: the first session does not wait, the MCP server does.
    sandbox.run(&["plugin", "market", "--npm", "claude-mem"]).ok();
    let launcher = sandbox.home().join("market/plugin/bin/claude-mem");
    assert!(fs::metadata(&launcher).unwrap().permissions().mode() & 0o111 != 0);
    let answer = with_npm(Command::new(&launcher).arg("save"));
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["continue"], true);
    with_npm(Command::new(&launcher).arg("mcp").stdin(std::process::Stdio::null()));
    let version = with_npm(Command::new(&launcher).arg("--version"));
    assert_eq!(version, format!("claude-mem {VERSION}\n"));
}

fn the_formula_and_cargo_binstall_name_the_archives(out: &Path) {
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    let formula = fs::read_to_string(out.join("claude-mem.rb")).unwrap();
    let base = format!("url \"{REPOSITORY}/releases/download/v{VERSION}/");
    let named: Vec<(&str, &str)> = formula
        .split(&base)
        .skip(1)
        .map(|rest| {
            let (file, rest) = rest.split_once('"').unwrap();
            (file, rest.split('"').nth(1).unwrap())
        })
        .collect();
    assert_eq!(named.len(), 3, "two for macOS, one for Linux: {formula}");
    for (file, sum) in named {
        assert!(sums.lines().any(|line| line == format!("{sum}  {file}")), "{file}: {sums}");
    }
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let (_, metadata) = manifest.split_once("[package.metadata.binstall]\n").unwrap();
    let field = |name: &str| metadata.split(&format!("{name} = \"")).nth(1).unwrap();
    let windows = "x86_64-pc-windows-msvc";
    let zipped = format!("[package.metadata.binstall.overrides.{windows}]\npkg-fmt = \"zip\"");
    assert!(manifest.contains(&zipped), "{metadata}");
    for (target, archive, program, list) in [
        (target().as_str(), ".tar.gz", "", ["tar", "-tzf"]),
        (windows, ".zip", ".exe", ["unzip", "-Z1"]),
    ] {
        let filled = |name: &str| {
            let text = field(name).split('"').next().unwrap().replace("{ repo }", REPOSITORY);
            let text = text.replace("{ name }", "claude-mem").replace("{ version }", VERSION);
            let text = text.replace("{ bin }", "claude-mem").replace("{ binary-ext }", program);
            text.replace("{ target }", target).replace("{ archive-suffix }", archive)
        };
        let url = filled("pkg-url");
        let (folder, file) = url.rsplit_once('/').unwrap();
        assert_eq!(folder, format!("{REPOSITORY}/releases/download/v{VERSION}"));
        let listed = ok(Command::new(list[0]).arg(list[1]).arg(out.join(file)));
        assert!(listed.lines().any(|line| line == filled("bin-dir")), "{listed}");
    }
}

/// The data directory in the fixture was written by version 0.1.0, including its database. The test
/// shows that its files are read, migrated and extended. `worker.rs` tests that a newer version
/// replaces an older worker.
#[test]
fn an_upgrade_from_the_first_release_keeps_everything() {
    let sandbox = Sandbox::new();
    let fixture = repository().join("tests/fixtures/releases/0.1.0.tar.gz");
    ok(Command::new("tar").arg("-xzf").arg(fixture).current_dir(sandbox.home()));
    let before = fs::read(sandbox.data().join("log/active.log")).unwrap();
    let settings = sandbox.read(".claude-mem/settings.json");
    let rows = |listed: &str| -> Vec<Value> {
        let row = |line: &str| {
            let row: Value = serde_json::from_str(line).unwrap();
            json!([row["id"], row["kind"], row["type"], row["created_at"], row["title"]])
        };
        listed.lines().map(row).collect()
    };
    let expected = rows(&sandbox.read("memories.jsonl"));
    assert_eq!(expected.len(), 13);
    let found = || rows(&sandbox.run(&["search", "--json", "--limit", "100"]).ok());
    assert_eq!(found(), expected);
    let pinned = sandbox.run(&["show", "1", "--json"]).ok();
    assert!(pinned.contains("\"is_pinned\":true"), "{pinned}");
    sandbox.run(&["verify"]).ok();

    let stop = json!({"session_id": "new", "hook_event_name": "Stop", "cwd": sandbox.home(),
        "last_assistant_message": "I chose tabs because the linter wants them."});
    sandbox.hook("summary", stop.to_string());
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
    let all = found();
    assert!(expected.iter().all(|row| all.contains(row)), "{all:#?}");
    let now = fs::read(sandbox.data().join("log/active.log")).unwrap();
    assert!(now.starts_with(&before) && now.len() > before.len(), "the log is only added to");
    fs::remove_file(sandbox.data().join("memory.db")).unwrap();
    assert_eq!(found(), all, "rebuilt from the log of both versions");
    assert_eq!(sandbox.read(".claude-mem/settings.json"), settings);
}
