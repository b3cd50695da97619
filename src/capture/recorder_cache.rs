//! Caches the recorder of a long-running process.

use std::{
    fs,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use crate::recorder::Recorder;
use claude_mem_core::{environment::Environment, paths::Paths};

/// Keeps a recorder until `settings.json` changes. One `stat` per event then replaces reading and
/// parsing the file, and a change applies to the next event.
#[derive(Debug)]
pub struct RecorderCache {
    environment: Environment,
    paths: Paths,
    cached: Mutex<Option<(Version, Arc<Recorder>)>>,
}

/// Modification time and length of `settings.json`; `None` if there is none.
type Version = Option<(SystemTime, u64)>;

impl RecorderCache {
    pub fn new(environment: Environment, paths: Paths) -> Self {
        Self { environment, paths, cached: Mutex::default() }
    }

    /// The recorder for the current settings.
    pub fn current(&self) -> Arc<Recorder> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        // Read before loading, so that a concurrent change is noticed by the next call.
        let version = self.version();
        match &*cached {
            Some((known, recorder)) if *known == version => Arc::clone(recorder),
            _ => {
                let recorder = Recorder::new(self.environment.clone(), self.paths.clone());
                let recorder = Arc::new(recorder);
                *cached = Some((version, Arc::clone(&recorder)));
                recorder
            }
        }
    }

    fn version(&self) -> Version {
        let found = fs::metadata(self.paths.settings()).ok()?;
        Some((found.modified().ok()?, found.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_loaded_again_only_after_they_changed() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { home: None, data: dir.path().into() };
        let cache = RecorderCache::new(Environment::fixed(&[]), paths.clone());
        let first = cache.current();
        assert!(Arc::ptr_eq(&first, &cache.current()));
        fs::write(paths.settings(), r#"{"CLAUDE_MEM_ENABLED": "false"}"#).unwrap();
        let second = cache.current();
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &cache.current()));
        fs::write(paths.settings(), "{}").unwrap();
        assert!(!Arc::ptr_eq(&second, &cache.current()));
    }
}
