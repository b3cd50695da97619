//! `worker.json`: who serves this data directory, where, and what to show at the door.

use std::{io, path::Path};

use claude_mem_events::Id;
use serde::{Deserialize, Serialize};

use claude_mem_core::{
    os,
    user_file::{self, Readers},
};

const FILE: &str = "worker.json";

/// What a worker says of itself to the programs of its user. Nobody else may read it: it holds the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The process.
    pub pid: u32,
    /// This run of it; another start is another instance.
    pub instance: String,
    /// Of the program.
    pub version: String,
    /// Where it listens.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// Whoever shows it may read memory and write to it.
    pub token: String,
    /// Since when, in microseconds since 1970.
    pub started_us: u64,
}

impl Presence {
    /// This process, with a token of its own.
    pub fn new(host: &str, port: u16, started_us: u64) -> io::Result<Self> {
        Ok(Self {
            pid: std::process::id(),
            instance: Id::random(started_us).to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            host: host.into(),
            port,
            token: secret()?,
            started_us,
        })
    }

    /// What the last worker here said. Whether it still runs is told by its lock alone.
    pub fn read(data: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(data.join(FILE)).ok()?).ok()
    }

    /// Tells it to whoever looks from now on.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let file = data.join(FILE);
        // A draft of it takes over the permissions of the file that was there.
        Self::remove(data);
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        user_file::write(&file, &text, Readers::Owner)
    }

    /// Takes it back.
    pub fn remove(data: &Path) {
        let _ = std::fs::remove_file(data.join(FILE));
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        match self.host.contains(':') {
            true => format!("http://[{}]:{}", self.host, self.port),
            false => format!("http://{}:{}", self.host, self.port),
        }
    }
}

/// 256 bits that nobody can guess.
pub fn secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    os::fill_at_random(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_read_as_it_was_written_and_by_its_owner_alone() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join(FILE);
        std::fs::write(&file, "an older one that all may read").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(Presence::read(data.path()), None);
        let presence = Presence::new("127.0.0.1", 37777, 1).unwrap();
        presence.write(data.path()).unwrap();
        assert_eq!(Presence::read(data.path()), Some(presence.clone()));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(presence.url(), "http://127.0.0.1:37777");
        Presence::remove(data.path());
        assert_eq!(Presence::read(data.path()), None);
    }

    #[test]
    fn no_two_tokens_are_alike() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert!(one.len() == 64 && one != other);
    }
}
