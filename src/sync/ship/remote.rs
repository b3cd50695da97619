//! A remote: opens a directory or bucket, and reads and writes packed objects.

use std::{
    mem,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload,
    RetryConfig, local::LocalFileSystem, path::Path as ObjectPath,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt as _;

use crate::ship::{
    Error, amazon, azure, credentials,
    error_text::{error_text, io_kind, is_no_bucket, is_unsupported},
    google,
    key::Key,
    object,
};
use claude_mem_core::{
    environment::Environment,
    os,
    paths::{Paths, expand_tilde},
    settings::{Settings, table},
};

/// An opened remote with its key. Object names are relative to its place.
#[derive(Debug, Clone)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    place: String,
    key: Option<Key>,
    compress: bool,
    is_plain_allowed: bool,
    /// Its directory, if it is one.
    directory: Option<PathBuf>,
}

/// The result of uploading an object only if it is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// Created, with this packed size.
    Written(u64),
    /// An object of this name exists.
    Exists,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Read,
    /// Write: a directory is created if its parent exists.
    Ship,
}

impl Remote {
    /// Opens a directory, `file://…`, `s3://BUCKET/PREFIX`, `gs://…` or `az://…`. Sends no request
    /// to a bucket. Uses the key in `ship.key` if it exists.
    pub fn open(
        place: &str,
        purpose: Purpose,
        paths: &Paths,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let key = Key::load(&paths.ship_key())?;
        let compress = settings.get(&table::SHIP_COMPRESS);
        let (store, prefix) = store(place, purpose, paths, settings, environment)?;
        let is_plain_allowed = key.is_none();
        let directory = directory_of(place, paths);
        let place = without_password(place);
        Ok(Self { store, prefix, place, key, compress, is_plain_allowed, directory })
    }

    /// Also accepts unencrypted objects although there is a key. By default they are rejected,
    /// because others with write access could forge them.
    #[must_use]
    pub(crate) fn allowing_plain(self) -> Self {
        Self { is_plain_allowed: true, ..self }
    }

    pub(crate) fn is_compressing(&self) -> bool {
        self.compress
    }

    pub(crate) fn packed_len(&self, bytes: &[u8]) -> Result<u64, Error> {
        Ok(self.pack("measured", bytes)?.len() as u64)
    }

    /// The place without passwords.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether others may be able to write objects that we accept. A bucket does not say who can.
    pub fn is_writable_by_others(&self) -> bool {
        let is_open = |dir: &PathBuf| {
            [dir.clone(), dir.join("hosts")].iter().any(|dir| os::is_writable_by_others(dir))
        };
        self.is_plain_allowed && self.directory.as_ref().is_none_or(is_open)
    }

    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    pub async fn get(&self, name: &str) -> Result<Vec<u8>, Error> {
        self.get_with(name, &Buffers::default(), |bytes| Ok(bytes.to_vec())).await
    }

    /// Reads, unpacks and verifies an object, and passes the bytes to `work` on a blocking thread.
    pub(crate) async fn get_with<T: Send + 'static>(
        &self,
        name: &str,
        buffers: &Buffers,
        work: impl FnOnce(&[u8]) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let packed = self.get_packed(name).await?;
        if !self.is_plain_allowed && !object::is_encrypted(&packed) {
            return Err(Error::NotEncrypted { object: name.into() });
        }
        if packed.len() < UNPACK_APART_BYTES_MIN {
            let bytes = &mut Vec::new();
            return object::unpack_object(name, &packed, self.key.as_ref(), bytes).and_then(work);
        }
        let (name, key) = (name.to_owned(), self.key.clone());
        let mut buffer = buffers.take().await;
        let unpack = move || {
            object::unpack_object(&name, &packed, key.as_ref(), &mut buffer.bytes).and_then(work)
        };
        tokio::task::spawn_blocking(unpack).await.map_err(|error| Error::Unreachable {
            place: self.place.clone(),
            why: error.to_string(),
        })?
    }

    /// Reads an object without unpacking it.
    pub(crate) async fn get_packed(&self, name: &str) -> Result<Vec<u8>, Error> {
        let wrap = |error: object_store::Error| self.error(name, &error);
        let found = self.store.get(&self.path(name)).await.map_err(wrap)?;
        let expected = found.meta.size;
        let bytes = found.bytes().await.map_err(wrap)?;
        if bytes.len() as u64 != expected {
            let why = format!("{} of {expected} bytes arrived", bytes.len());
            return Err(Error::Unreachable { place: self.place.clone(), why });
        }
        Ok(bytes.into())
    }

    /// Packs and creates an object. Fails softly if the name exists.
    pub(crate) async fn put_new(&self, name: &str, bytes: &[u8]) -> Result<Put, Error> {
        let packed = self.pack(name, bytes)?;
        let len = packed.len() as u64;
        let payload = PutPayload::from(packed);
        match self.put_packed(name, payload.clone(), PutMode::Create).await {
            Ok(()) => Ok(Put::Written(len)),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(Put::Exists),
            // Some servers do not support conditional requests. Check first instead.
            Err(error) if is_unsupported(&error) => match self.store.head(&self.path(name)).await {
                Ok(_) => Ok(Put::Exists),
                Err(object_store::Error::NotFound { .. }) => self
                    .put_packed(name, payload, PutMode::Overwrite)
                    .await
                    .map(|()| Put::Written(len))
                    .map_err(|error| self.error(name, &error)),
                Err(error) => Err(self.error(name, &error)),
            },
            Err(error) => Err(self.error(name, &error)),
        }
    }

    /// Packs and writes an object, replacing an existing one. Returns its packed size.
    pub(crate) async fn put_over(&self, name: &str, bytes: &[u8]) -> Result<u64, Error> {
        let packed = self.pack(name, bytes)?;
        let len = packed.len() as u64;
        self.put_packed(name, packed.into(), PutMode::Overwrite)
            .await
            .map_err(|error| self.error(name, &error))?;
        Ok(len)
    }

    /// All object names in `folder`, unordered. Very new names may be missing.
    pub async fn list(&self, folder: &str) -> Result<Vec<String>, Error> {
        let under = self.path(folder);
        let mut found = self.store.list(Some(&under));
        let mut names = Vec::new();
        while let Some(object) = found.next().await {
            let location = object.map_err(|error| self.error(folder, &error))?.location;
            names.extend(self.name(&location));
        }
        Ok(names)
    }

    pub async fn folders(&self, folder: &str) -> Result<Vec<String>, Error> {
        let listed = self.store.list_with_delimiter(Some(&self.path(folder))).await;
        let listed = listed.map_err(|error| self.error(folder, &error))?;
        let last =
            |path: &ObjectPath| path.parts().next_back().map(|part| part.as_ref().to_owned());
        Ok(listed.common_prefixes.iter().filter_map(last).collect())
    }

    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        match self.store.delete(&self.path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error(name, &error)),
        }
    }

    fn pack(&self, name: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        object::pack_object(name, bytes, self.key.as_ref(), self.compress)
            .map_err(|error| Error::io("pack", name, error))
    }

    async fn put_packed(
        &self,
        name: &str,
        payload: PutPayload,
        mode: PutMode,
    ) -> object_store::Result<()> {
        self.store.put_opts(&self.path(name), payload, mode.into()).await.map(|_| ())
    }

    fn path(&self, name: &str) -> ObjectPath {
        name.split('/').fold(self.prefix.clone(), ObjectPath::join)
    }

    fn name(&self, location: &ObjectPath) -> Option<String> {
        let parts: Vec<_> = location.prefix_match(&self.prefix)?.collect();
        Some(parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/"))
    }

    fn error(&self, name: &str, error: &object_store::Error) -> Error {
        use object_store::Error as E;
        let place = self.place.clone();
        let why = error_text(error);
        if let Some(error) = credentials::credentials_error(&place, error) {
            return error;
        }
        match error {
            // A denied listing is recognized only by its text.
            _ if is_no_bucket(&why) => Error::NoBucket { place },
            E::NotFound { .. } => Error::Missing { object: name.into() },
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => Error::Denied { place, why },
            _ if ["401", "403"]
                .iter()
                .any(|code| why.contains(&format!("status code: {code}"))) =>
            {
                Error::Denied { place, why }
            }
            _ => match io_kind(error) {
                Some(kind @ std::io::ErrorKind::StorageFull) => {
                    Error::io("write", format!("{place}/{name}"), kind.into())
                }
                Some(std::io::ErrorKind::PermissionDenied) => Error::Denied { place, why },
                _ => Error::Unreachable { place, why },
            },
        }
    }
}

const UNPACK_APART_BYTES_MIN: usize = 64 << 10;

/// Reusable buffers for unpacking. Their number limits concurrent unpacking to the number of
/// processors, so tasks do not evict each other's caches.
#[derive(Debug, Clone)]
pub struct Buffers {
    free: Arc<Mutex<Vec<Vec<u8>>>>,
    places: Arc<Semaphore>,
}

impl Default for Buffers {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        // One more than processors: one unpacks while another waits for the disk.
        Self { free: Arc::default(), places: Arc::new(Semaphore::new(processors + 1)) }
    }
}

impl Buffers {
    async fn take(&self) -> Buffer {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let bytes = self.free.lock().ok().and_then(|mut free| free.pop()).unwrap_or_default();
        Buffer { bytes, free: Arc::clone(&self.free), _place: place }
    }
}

/// A buffer that is returned on drop.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    free: Arc<Mutex<Vec<Vec<u8>>>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Ok(mut free) = self.free.lock() {
            free.push(mem::take(&mut self.bytes));
        }
    }
}

/// The store and the prefix in it.
fn store(
    place: &str,
    purpose: Purpose,
    paths: &Paths,
    settings: &Settings,
    environment: &Environment,
) -> Result<(Arc<dyn ObjectStore>, ObjectPath), Error> {
    let unusable = |why: String| Error::Place { place: without_password(place), why };
    if let Some(path) = directory_of(place, paths) {
        return directory(&path, purpose).map_err(unusable);
    }
    let (scheme, rest) = place.split_once("://").unwrap_or_default();
    let prefix = || {
        let prefix = rest.split_once('/').map_or("", |(_, prefix)| prefix);
        ObjectPath::parse(prefix.trim_end_matches('/')).map_err(|error| unusable(error.to_string()))
    };
    prepare_connections();
    match scheme {
        "s3" | "s3a" => {
            let bucket = amazon::amazon_bucket(place, paths, settings, environment)?;
            Ok((Arc::new(bucket), prefix()?))
        }
        "gs" => {
            let bucket = google::google_bucket(place, paths, settings, environment)?;
            Ok((Arc::new(bucket), prefix()?))
        }
        "az" | "azure" => {
            let container = azure::azure_container(place, environment)?;
            Ok((Arc::new(container), prefix()?))
        }
        _ => Err(unusable(format!("`{scheme}://` is not supported"))),
    }
}

/// The directory that a place names: a path, or `file://…`.
fn directory_of(place: &str, paths: &Paths) -> Option<PathBuf> {
    let path = match place.split_once("://") {
        None => place,
        Some(("file", path)) => path,
        Some(_) => return None,
    };
    let path = expand_tilde(Path::new(path), paths.home.as_deref());
    Some(std::path::absolute(&path).unwrap_or(path))
}

/// Opens a directory. It is created only if its parent exists: on an unmounted mount point, it
/// would fill the disk below.
fn directory(path: &Path, purpose: Purpose) -> Result<(Arc<dyn ObjectStore>, ObjectPath), String> {
    if !path.is_dir() {
        let is_parent_there = path.parent().is_some_and(Path::is_dir);
        match purpose {
            Purpose::Read => return Err("there is no such directory".into()),
            Purpose::Ship if !is_parent_there => {
                return Err(
                    "neither it nor its parent directory exists; is the disk mounted?".into()
                );
            }
            Purpose::Ship => {
                claude_mem_core::paths::create_private(path).map_err(|error| error.to_string())?;
            }
        }
    }
    let store = LocalFileSystem::new_with_prefix(path).map_err(|error| error.to_string())?;
    Ok((Arc::new(store.with_fsync(true)), ObjectPath::default()))
}

/// Environment variables with one of these prefixes, in lower case for the builders of
/// `object_store`.
pub(super) fn variables(
    environment: &Environment,
    starts: &'static [&'static str],
) -> impl Iterator<Item = (String, String)> {
    environment.all().into_iter().filter_map(move |(name, value)| {
        let name = name.into_string().ok()?;
        let is_meant = starts.iter().any(|start| name.starts_with(start)) && !value.is_empty();
        Some((name.to_ascii_lowercase(), value.into_string().ok()?)).filter(|_| is_meant)
    })
}

/// Time-outs: fail when no byte arrives for this long.
pub(super) fn client() -> ClientOptions {
    ClientOptions::new()
        .with_connect_timeout(Duration::from_secs(5))
        .with_read_timeout(Duration::from_secs(20))
        .with_timeout(Duration::from_secs(180))
}

/// Retries short failures. Longer outages are retried by the caller.
pub(super) fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 2,
        retry_timeout: Duration::from_secs(30),
    }
}

/// Selects the TLS cryptography of this process. A second call has no effect.
pub(super) fn prepare_connections() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

pub(super) fn without_password(place: &str) -> String {
    match place.split_once("://").map(|(scheme, rest)| (scheme, rest.split_once('@'))) {
        Some((scheme, Some((_, rest)))) => format!("{scheme}://{rest}"),
        _ => place.into(),
    }
}
