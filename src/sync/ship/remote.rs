//! A place elsewhere that objects are put in: from what the user wrote to something that can be asked.

use std::{
    mem,
    path::Path,
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
    error_text::{first_line, io_kind, is_no_bucket, is_unsupported},
    google,
    key::Key,
    object,
};
use claude_mem_core::{
    environment::Environment,
    paths::{Paths, expand_tilde},
    settings::{Settings, table},
};

/// A place, and the key to what is in it. Names are relative to the place.
#[derive(Debug, Clone)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    place: String,
    key: Option<Key>,
    compress: bool,
    is_plain_allowed: bool,
}

/// What became of an object that was to be put only if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is there now, in as many bytes.
    Written(u64),
    /// There was one of this name already.
    WasThere,
}

/// What is going to be done with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It must be there.
    Read,
    /// A directory is made if the one above it is there.
    Ship,
}

impl Remote {
    /// Opens a place: a directory, `file://…`, `s3://BUCKET/PREFIX`, `gs://…` or `az://…`. Asks nothing of a
    /// bucket yet. Takes the key of `ship.key` if there is one.
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
        let place = without_password(place);
        Ok(Self { store, prefix, place, key, compress, is_plain_allowed })
    }

    /// Also takes what is not encrypted although there is a key. Otherwise whoever can write to the remote
    /// could slip something in.
    #[must_use]
    pub fn allowing_plain(self) -> Self {
        Self { is_plain_allowed: true, ..self }
    }

    /// Whether objects are compressed.
    pub fn is_compressing(&self) -> bool {
        self.compress
    }

    /// How long an object of these bytes would be.
    pub fn packed_len(&self, bytes: &[u8]) -> Result<u64, Error> {
        Ok(self.pack("measured", bytes)?.len() as u64)
    }

    /// The place as the user wrote it, without passwords.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What is encrypted with, if anything is.
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// The bytes of an object, unpacked and checked.
    pub async fn get(&self, name: &str) -> Result<Vec<u8>, Error> {
        self.get_with(name, &Buffers::default(), |bytes| Ok(bytes.to_vec())).await
    }

    /// Gives the bytes of an object, unpacked and checked, to `work`, where that keeps nobody else waiting.
    pub async fn get_with<T: Send + 'static>(
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
            return object::unpack(name, &packed, self.key.as_ref(), bytes).and_then(work);
        }
        let (name, key) = (name.to_owned(), self.key.clone());
        let mut buffer = buffers.take().await;
        let unpack =
            move || object::unpack(&name, &packed, key.as_ref(), &mut buffer.bytes).and_then(work);
        tokio::task::spawn_blocking(unpack).await.map_err(|error| Error::Unreachable {
            place: self.place.clone(),
            why: error.to_string(),
        })?
    }

    /// The object itself.
    pub async fn get_packed(&self, name: &str) -> Result<Vec<u8>, Error> {
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

    /// Packs these bytes and puts them under a name that must be free. Says so if it is not.
    pub async fn put_new(&self, name: &str, bytes: &[u8]) -> Result<Put, Error> {
        let packed = self.pack(name, bytes)?;
        let len = packed.len() as u64;
        let payload = PutPayload::from(packed);
        match self.put_packed(name, payload.clone(), PutMode::Create).await {
            Ok(()) => Ok(Put::Written(len)),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(Put::WasThere),
            // Some servers know no conditions. Then looking first is the next best thing.
            Err(error) if is_unsupported(&error) => match self.store.head(&self.path(name)).await {
                Ok(_) => Ok(Put::WasThere),
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

    /// Packs these bytes and puts them under this name, whatever was there. Says how many were put.
    pub async fn put_over(&self, name: &str, bytes: &[u8]) -> Result<u64, Error> {
        let packed = self.pack(name, bytes)?;
        let len = packed.len() as u64;
        self.put_packed(name, packed.into(), PutMode::Overwrite)
            .await
            .map_err(|error| self.error(name, &error))?;
        Ok(len)
    }

    /// The names of all objects under `folder`, in no order. A name may be missing if it is very new.
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

    /// The names of the folders directly in `folder`.
    pub async fn folders(&self, folder: &str) -> Result<Vec<String>, Error> {
        let listed = self.store.list_with_delimiter(Some(&self.path(folder))).await;
        let listed = listed.map_err(|error| self.error(folder, &error))?;
        let last =
            |path: &ObjectPath| path.parts().next_back().map(|part| part.as_ref().to_owned());
        Ok(listed.common_prefixes.iter().filter_map(last).collect())
    }

    /// Deletes an object; fine if there is none.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        match self.store.delete(&self.path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error(name, &error)),
        }
    }

    fn pack(&self, name: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        object::pack(name, bytes, self.key.as_ref(), self.compress)
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
        let why = first_line(error);
        if let Some(error) = credentials::failed(&place, error) {
            return error;
        }
        match error {
            // A listing that is refused is told only in words.
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

/// Room for objects that are unpacked, used again and again while many are. Whoever finds none free waits: with more
/// at once than there are processors, each would lose to the others what it has in their caches.
#[derive(Debug, Clone)]
pub struct Buffers {
    free: Arc<Mutex<Vec<Vec<u8>>>>,
    places: Arc<Semaphore>,
}

impl Default for Buffers {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        // While one waits for the disk, another can be unpacked.
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

/// One of them, which goes back when it is dropped.
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

/// The directory or bucket, and where in it.
fn store(
    place: &str,
    purpose: Purpose,
    paths: &Paths,
    settings: &Settings,
    environment: &Environment,
) -> Result<(Arc<dyn ObjectStore>, ObjectPath), Error> {
    let unusable = |why: String| Error::Place { place: without_password(place), why };
    let Some((scheme, rest)) = place.split_once("://") else {
        return directory(Path::new(place), purpose, paths).map_err(unusable);
    };
    let prefix = || {
        let prefix = rest.split_once('/').map_or("", |(_, prefix)| prefix);
        ObjectPath::parse(prefix.trim_end_matches('/')).map_err(|error| unusable(error.to_string()))
    };
    if scheme != "file" {
        prepare_connections();
    }
    match scheme {
        "file" => directory(Path::new(rest), purpose, paths).map_err(unusable),
        "s3" | "s3a" => {
            let bucket = amazon::bucket(place, paths, settings, environment)?;
            Ok((Arc::new(bucket), prefix()?))
        }
        "gs" => {
            let bucket = google::bucket(place, paths, settings, environment)?;
            Ok((Arc::new(bucket), prefix()?))
        }
        "az" | "azure" => {
            let container = azure::container(place, environment)?;
            Ok((Arc::new(container), prefix()?))
        }
        _ => Err(unusable(format!("`{scheme}://` is not known"))),
    }
}

/// A directory is as good a place as a bucket if it is another disk. It is not made from nothing: where a
/// disk is not mounted, that would fill the one below it.
fn directory(
    path: &Path,
    purpose: Purpose,
    paths: &Paths,
) -> Result<(Arc<dyn ObjectStore>, ObjectPath), String> {
    let path = expand_tilde(path, paths.home.as_deref());
    let path = std::path::absolute(&path).map_err(|error| error.to_string())?;
    if !path.is_dir() {
        let is_parent_there = path.parent().is_some_and(Path::is_dir);
        match purpose {
            Purpose::Read => return Err("there is no such directory".into()),
            Purpose::Ship if !is_parent_there => {
                return Err(
                    "neither it nor the directory above it is there; is the disk mounted?".into()
                );
            }
            Purpose::Ship => {
                claude_mem_core::paths::create_private(&path).map_err(|error| error.to_string())?;
            }
        }
    }
    let store = LocalFileSystem::new_with_prefix(&path).map_err(|error| error.to_string())?;
    Ok((Arc::new(store.with_fsync(true)), ObjectPath::default()))
}

/// Variables that begin with one of these, in lower case as the builders want them.
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

/// Nobody is waited for longer than this without a byte arriving.
pub(super) fn client() -> ClientOptions {
    ClientOptions::new()
        .with_connect_timeout(Duration::from_secs(5))
        .with_read_timeout(Duration::from_secs(20))
        .with_timeout(Duration::from_secs(180))
}

/// Hiccups are passed over here; anything longer is for whoever ships, who tries again later.
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
