//! Service files that start the worker at login. They are optional: hooks start it, too.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use claude_mem_core::{
    app::App,
    failure::Failure,
    os,
    user_file::{self, Readers},
};

/// A service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// systemd of a user, on Linux.
    Systemd,
    /// launchd, on macOS.
    Launchd,
}

/// A service file, and the commands that enable it.
#[derive(Debug)]
pub struct Service {
    /// Path of the file.
    pub file: PathBuf,
    /// Content of the file.
    pub text: String,
    /// Commands to run after it is written.
    enable: Vec<Vec<String>>,
    /// Commands to run before it is removed.
    disable: Vec<Vec<String>>,
    /// Commands to run after it is removed.
    forget: Vec<Vec<String>>,
}

const UNIT: &str = "claude-mem.service";
const LABEL: &str = "claude-mem.worker";

impl Service {
    /// The user's service for this program.
    pub fn new(app: &App, manager: Manager) -> Result<Self, Failure> {
        let home = app
            .paths
            .home
            .clone()
            .ok_or_else(|| Failure::new("there is no home directory for the service file"))?;
        let program = env::current_exe().map_err(|error| {
            Failure::new(format!("cannot determine the path of claude-mem: {error}"))
        })?;
        let data = std::path::absolute(&app.paths.data).unwrap_or_else(|_| app.paths.data.clone());
        Ok(match manager {
            Manager::Systemd => {
                let config = app.environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
                let config = config.filter(|dir| dir.is_absolute());
                let dir = config.unwrap_or_else(|| home.join(".config")).join("systemd/user");
                systemd(&dir, &program, &data)
            }
            Manager::Launchd => launchd(&home.join("Library/LaunchAgents"), &program, &data),
        })
    }

    /// Writes the file and enables it. Returns commands that failed, for the user to run.
    pub fn install(&self) -> io::Result<Vec<String>> {
        if let Some(dir) = self.file.parent() {
            os::create_dirs_for_all(dir)?;
        }
        user_file::write(&self.file, self.text.as_bytes(), Readers::Everyone)?;
        Ok(run_all(&self.enable))
    }

    /// Disables and removes it; returns whether it existed.
    pub fn uninstall(&self) -> io::Result<bool> {
        if !self.file.exists() {
            return Ok(false);
        }
        run_all(&self.disable);
        user_file::remove(&self.file)?;
        run_all(&self.forget);
        Ok(true)
    }
}

impl Manager {
    /// The service manager of this system.
    pub fn here() -> Result<Self, Failure> {
        if cfg!(windows) {
            return Err(Failure::new("a service cannot be installed on Windows")
                .meaning("none is needed: hooks start the worker, and it exits when idle")
                .remedy("keep it running with `claude-mem settings set WORKER_IDLE 0`"));
        }
        Ok(if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd })
    }
}

/// No idle timeout: a service stays. A worker that is replaced by a newer version fails, so that
/// systemd starts it again.
fn systemd(dir: &Path, program: &Path, data: &Path) -> Service {
    let quoted = |path: &Path| {
        let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
        // A percent sign starts a specifier, a dollar sign a variable.
        format!("\"{}\"", text.replace('%', "%%").replace('$', "$$"))
    };
    let data = quoted(data).replace("$$", "$").trim_matches('"').to_owned();
    let text = format!(
        "# Written by `claude-mem worker install-service`.\n\
         [Unit]\n\
         Description=Long-term memory for Claude Code\n\
         \n\
         [Service]\n\
         ExecStart={} worker run\n\
         EnvironmentFile=-{data}/.env\n\
         Environment=\"CLAUDE_MEM_DATA_DIR={data}\" CLAUDE_MEM_WORKER_IDLE=0\n\
         Restart=on-failure\n\
         RestartSec=5\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        quoted(program),
    );
    let systemctl = |arguments: &[&str]| {
        let words = ["systemctl", "--user"].iter().chain(arguments);
        words.map(|word| (*word).to_owned()).collect()
    };
    Service {
        file: dir.join(UNIT),
        text,
        enable: vec![systemctl(&["daemon-reload"]), systemctl(&["enable", "--now", UNIT])],
        disable: vec![systemctl(&["disable", "--now", UNIT])],
        forget: vec![systemctl(&["daemon-reload"])],
    }
}

fn launchd(dir: &Path, program: &Path, data: &Path) -> Service {
    let escaped = |path: &Path| {
        let text = path.to_string_lossy().replace('&', "&amp;");
        text.replace('<', "&lt;").replace('>', "&gt;")
    };
    let text = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- Written by `claude-mem worker install-service`. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array><string>{}</string><string>worker</string><string>run</string></array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>CLAUDE_MEM_DATA_DIR</key><string>{}</string>
    <key>CLAUDE_MEM_WORKER_IDLE</key><string>0</string>
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>
"#,
        escaped(program),
        escaped(data),
    );
    let file = dir.join(format!("{LABEL}.plist"));
    let launchctl = |action: &str, option: &str| {
        let file = file.to_string_lossy().into_owned();
        vec!["launchctl".to_owned(), action.to_owned(), option.to_owned(), file]
    };
    Service {
        enable: vec![launchctl("load", "-w")],
        disable: vec![launchctl("unload", "-w")],
        forget: Vec::new(),
        file,
        text,
    }
}

/// Runs commands until one fails; returns that one and the rest.
fn run_all(commands: &[Vec<String>]) -> Vec<String> {
    let works = |words: &Vec<String>| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    commands.iter().skip_while(|command| works(command)).map(|words| words.join(" ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_paths_are_escaped_in_both_kinds_of_file() {
        let (program, data) = (Path::new("/a b/c%d$e"), Path::new("/data <&>"));
        let unit = systemd(Path::new("/units"), program, data);
        assert_eq!(unit.file, Path::new("/units/claude-mem.service"));
        assert!(unit.text.contains("ExecStart=\"/a b/c%%d$$e\" worker run\n"), "{}", unit.text);
        assert!(unit.text.contains("\"CLAUDE_MEM_DATA_DIR=/data <&>\""), "{}", unit.text);
        let plist = launchd(Path::new("/agents"), program, data);
        assert!(plist.text.contains("<string>/data &lt;&amp;&gt;</string>"), "{}", plist.text);
        assert!(plist.text.contains("<string>/a b/c%d$e</string>"), "{}", plist.text);
    }

    #[test]
    fn a_failing_step_is_reported_with_the_steps_after_it() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let commands = ["true", "false now", "true"].map(words);
        assert_eq!(run_all(&commands), ["false now", "true"]);
    }
}
