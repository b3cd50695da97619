//! `worker.json`: the running worker, its address and its token.

use std::{io, path::Path};

use claude_mem_events::Id;
use serde::{Deserialize, Serialize};

use claude_mem_core::{
    os,
    user_file::{self, Readers},
};

const FILE: &str = "worker.json";

/// Content of `worker.json`. Only the user can read it, because it contains the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Process ID.
    pub pid: u32,
    /// ID of this run.
    #[serde(rename = "instance")]
    pub run_id: String,
    /// Version of the program.
    pub version: String,
    /// Listening address.
    pub host: String,
    /// Listening address.
    pub port: u16,
    /// Grants full access to the API.
    pub token: String,
    /// Start, in microseconds since 1970.
    pub started_us: u64,
}

impl Instance {
    /// This process, with a new token.
    pub fn new(host: &str, port: u16, started_us: u64) -> io::Result<Self> {
        Ok(Self {
            pid: std::process::id(),
            run_id: Id::random(started_us).to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            host: host.into(),
            port,
            token: secret()?,
            started_us,
        })
    }

    /// Written by the last worker. Only its lock shows whether it is still running.
    pub fn read(data: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(data.join(FILE)).ok()?).ok()
    }

    /// Writes the file.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let file = data.join(FILE);
        // The temporary file would inherit the permissions of an existing one.
        Self::remove(data);
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        user_file::write(&file, &text, Readers::Owner)
    }

    /// Removes the file.
    pub fn remove(data: &Path) {
        let _ = std::fs::remove_file(data.join(FILE));
    }

    /// URL of the HTTP server.
    pub fn url(&self) -> String {
        match self.host.contains(':') {
            true => format!("http://[{}]:{}", self.host, self.port),
            false => format!("http://{}:{}", self.host, self.port),
        }
    }
}

/// 256 random bits.
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
    fn worker_json_round_trips_and_only_its_owner_can_read_it() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join(FILE);
        std::fs::write(&file, "an older one that all may read").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(Instance::read(data.path()), None);
        let instance = Instance::new("127.0.0.1", 37777, 1).unwrap();
        instance.write(data.path()).unwrap();
        assert_eq!(Instance::read(data.path()), Some(instance.clone()));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(instance.url(), "http://127.0.0.1:37777");
        Instance::remove(data.path());
        assert_eq!(Instance::read(data.path()), None);
    }

    #[test]
    fn every_token_is_different() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert!(one.len() == 64 && one != other);
    }
}
