//! Reads the newest state of a log in a remote.

use std::collections::VecDeque;

use crate::ship::{
    Error,
    local::blocking,
    manifest::{
        Description, Entry, Hash, HostId, Increment, Manifest, Part, PartLocation, Segment,
    },
    remote::{Buffers, Remote},
};

/// The state of a log in a remote: the newest manifest and the increments after it.
#[derive(Debug, Clone)]
pub struct Head {
    pub host: HostId,
    pub number: u64,
    pub hash: Hash,
    /// When it was created, microseconds since 1970, by the clock of its host.
    pub time_us: u64,
    pub manifest: Manifest,
    /// The increments after it, in order.
    pub increments: Vec<Increment>,
}

const AHEAD_MAX: usize = 4;
/// Increments downloaded in parallel: they are small, so latency dominates.
const RUN_AHEAD_MAX: usize = 16;

pub async fn hosts(remote: &Remote) -> Result<Vec<HostId>, Error> {
    let mut hosts: Vec<HostId> =
        remote.folders("hosts").await?.iter().filter_map(|name| HostId::parse(name)).collect();
    hosts.sort();
    Ok(hosts)
}

/// The description of a host; `None` if it is missing.
pub async fn describe(remote: &Remote, host: HostId) -> Result<Option<Description>, Error> {
    let name = host.description();
    match remote.get(&name).await {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Error::Damaged { object: name, why: error.to_string() }),
        Err(Error::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The newest state of a log; `None` if the remote has none.
///
/// `number_known` is an entry seen before, or 0. It detects listings that lack the newest objects.
pub async fn newest(
    remote: &Remote,
    host: HostId,
    number_known: u64,
) -> Result<Option<Head>, Error> {
    let listed = entries(remote, host).await?;
    let mut number = listed.last().copied().unwrap_or(0).max(number_known);
    // A listing may be outdated: probe the next entries.
    while exists(remote, &host.entry(number + 1)).await? {
        number += 1;
    }
    match number {
        0 => Ok(None),
        number => load(remote, host, number).await.map(Some),
    }
}

/// The numbers of the listed entries, in order.
pub async fn entries(remote: &Remote, host: HostId) -> Result<Vec<u64>, Error> {
    let names = remote.list(&format!("{}/chain", host.folder())).await?;
    let number = |name: &String| u64::from_str_radix(name.rsplit('/').next()?, 16).ok();
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

async fn exists(remote: &Remote, name: &str) -> Result<bool, Error> {
    match remote.get_packed(name).await {
        Ok(_) => Ok(true),
        Err(Error::Missing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The state at entry `number`, with every link of the chain back to its manifest verified.
pub async fn load(remote: &Remote, host: HostId, number: u64) -> Result<Head, Error> {
    let (last, hash) = entry(remote, host, number).await?;
    let first = match &last {
        Entry::Manifest(_) => number,
        Entry::Increment(increment) => increment.manifest,
    };
    if first == 0 || first > number || number - first > 1 << 20 {
        let why = "it refers to an impossible manifest".into();
        return Err(Error::Damaged { object: host.entry(number), why });
    }
    let time_us = match &last {
        Entry::Manifest(manifest) => manifest.time_us,
        Entry::Increment(increment) => increment.time_us,
    };
    let (manifest, manifest_hash) = match last {
        Entry::Manifest(manifest) => (manifest, hash),
        Entry::Increment(_) => match entry(remote, host, first).await? {
            (Entry::Manifest(manifest), hash) => (manifest, hash),
            (Entry::Increment(_), _) => {
                let why = "it is not a manifest".into();
                return Err(Error::Damaged { object: host.entry(first), why });
            }
        },
    };
    let increments = run(remote, host, first + 1, number, Some(manifest_hash), hash).await?;
    let head = Head { host, number, hash, time_us, manifest, increments };
    head.check_increments()?;
    Ok(head)
}

/// Reads one entry and its hash, and checks that it matches its name.
async fn entry(remote: &Remote, host: HostId, number: u64) -> Result<(Entry, Hash), Error> {
    let name = host.entry(number);
    let bytes = remote.get(&name).await?;
    let entry = Entry::decode(&name, &bytes)?;
    let found = match &entry {
        Entry::Manifest(manifest) if manifest.log != host => {
            return Err(Error::OtherLog { object: name, found: manifest.log.to_string() });
        }
        Entry::Manifest(manifest) => manifest.number,
        Entry::Increment(increment) => increment.number,
    };
    if found != number {
        let why = format!("it contains entry {found:x}");
        return Err(Error::Damaged { object: name, why });
    }
    Ok((entry, Hash::of(&bytes)))
}

/// Reads the increments `first` to `last`: each linked to the previous one, the last with this
/// hash.
async fn run(
    remote: &Remote,
    host: HostId,
    first: u64,
    last: u64,
    before: Option<Hash>,
    hash_last: Hash,
) -> Result<Vec<Increment>, Error> {
    let mut before = before;
    let mut increments = Vec::new();
    let mut ahead = VecDeque::new();
    let mut next = first;
    for number in first..=last {
        while next <= last && ahead.len() < RUN_AHEAD_MAX {
            let (remote, number) = (remote.clone(), next);
            ahead.push_back(tokio::spawn(async move { entry(&remote, host, number).await }));
            next += 1;
        }
        let task = ahead.pop_front().expect("the loop above requested it");
        let (found, hash) = task.await.map_err(|error| stopped(&error))??;
        let damaged = |why: &str| Error::Damaged { object: host.entry(number), why: why.into() };
        let Entry::Increment(increment) = found else {
            return Err(damaged("it is not an increment"));
        };
        if before.is_some_and(|before| before != increment.previous) {
            return Err(damaged("it does not follow the previous entry"));
        }
        before = Some(hash);
        increments.push(increment);
    }
    if first <= last && before != Some(hash_last) {
        let why = "its hash differs from the manifest".into();
        return Err(Error::Damaged { object: host.entry(last), why });
    }
    Ok(increments)
}

pub(super) fn stopped(error: &tokio::task::JoinError) -> Error {
    Error::Unreachable { place: "the remote".into(), why: error.to_string() }
}

impl Head {
    /// The segments, in order, including the increments after the manifest.
    pub fn segments(&self) -> Vec<Segment> {
        let mut segments = self.manifest.segments.clone();
        if let (Some(segment), Some(first), Some(last)) =
            (segments.last_mut(), self.increments.first(), self.increments.last())
        {
            segment.parts.push(Part {
                from: first.from,
                to: last.to(),
                hash: self.hash,
                at: PartLocation::Run(first.number, last.number),
            });
            segment.bytes = last.to();
        }
        segments
    }

    pub fn bytes(&self) -> u64 {
        let increments: usize = self.increments.iter().map(|increment| increment.bytes.len()).sum();
        self.manifest.segments.iter().map(|segment| segment.bytes).sum::<u64>() + increments as u64
    }

    /// The names of all referenced objects, including the entries.
    pub fn objects(&self) -> Vec<String> {
        let mut names: Vec<String> =
            (self.manifest.number..=self.number).map(|number| self.host.entry(number)).collect();
        for part in self.manifest.segments.iter().flat_map(|segment| &segment.parts) {
            match &part.at {
                PartLocation::Object(object) => names.push(self.host.part(object)),
                PartLocation::Run(first, last) => {
                    names.extend((*first..=*last).map(|number| self.host.entry(number)));
                }
            }
        }
        names
    }

    fn check_increments(&self) -> Result<(), Error> {
        let Some(segment) = self.manifest.segments.last() else {
            return match self.increments.first() {
                None => Ok(()),
                Some(_) => Err(self.misplaced(self.number)),
            };
        };
        let mut end = segment.bytes;
        for increment in &self.increments {
            let fits = increment.segment == segment.number
                && increment.from == end
                && segment.is_active
                && increment.manifest == self.manifest.number;
            if !fits {
                return Err(self.misplaced(increment.number));
            }
            end = increment.to();
        }
        Ok(())
    }

    fn misplaced(&self, number: u64) -> Error {
        let why = "it does not start where the previous entry ends".into();
        Error::Damaged { object: self.host.entry(number), why }
    }

    /// Passes the bytes of one of [`segments`](Self::segments) to `take`, from offset `from`, in
    /// order and verified piece by piece. If `from` is 0, the hash of the whole segment is
    /// verified, too.
    pub async fn read(
        &self,
        remote: &Remote,
        segment: &Segment,
        from: u64,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let parts: Vec<&Part> = segment.parts.iter().filter(|part| part.to > from).collect();
        let mut hasher = (from == 0).then(blake3::Hasher::new);
        let mut ahead = VecDeque::new();
        let mut waiting = parts.iter();
        for part in &parts {
            while ahead.len() < AHEAD_MAX
                && let Some(part) = waiting.next()
            {
                ahead.push_back(self.fetch(remote, part));
            }
            let task = ahead.pop_front().expect("the loop above requested it");
            let bytes = task.await.map_err(|error| stopped(&error))??;
            if let Some(hasher) = &mut hasher
                && part.from < segment.hash_bytes
            {
                hasher.update(&bytes);
            }
            let skip = from.saturating_sub(part.from) as usize;
            take(part.from + skip as u64, &bytes[skip..])?;
        }
        match hasher.map(|hasher| Hash(hasher.finalize().into())) {
            Some(hash) if hash != segment.hash => Err(Error::Damaged {
                object: format!("segment {:016x}.g{:02}", segment.number, segment.generation),
                why: "its parts do not match its hash in the manifest".into(),
            }),
            _ => Ok(()),
        }
    }

    pub fn fetch(
        &self,
        remote: &Remote,
        part: &Part,
    ) -> tokio::task::JoinHandle<Result<Vec<u8>, Error>> {
        let (fetched, remote) = (self.fetched(part), remote.clone());
        tokio::spawn(async move {
            fetched.give(&remote, &Buffers::default(), |bytes| Ok(bytes.to_vec())).await
        })
    }

    pub fn fetched(&self, part: &Part) -> Fetched {
        let held = match part.at {
            PartLocation::Run(first, _) if first > self.manifest.number => {
                Some(bytes_of(&self.increments))
            }
            _ => None,
        };
        Fetched { host: self.host, part: part.clone(), held }
    }
}

/// A part that is not downloaded yet.
#[derive(Debug)]
pub struct Fetched {
    host: HostId,
    part: Part,
    /// Its bytes, if they came with the entries.
    held: Option<Vec<u8>>,
}

impl Fetched {
    pub fn range(&self) -> (u64, u64) {
        (self.part.from, self.part.to)
    }

    /// Downloads and verifies the part, then passes its bytes to `work`.
    pub async fn give<T: Send + 'static>(
        self,
        remote: &Remote,
        buffers: &Buffers,
        work: impl FnOnce(&[u8]) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Self { host, part, held } = self;
        let len = (part.to - part.from) as usize;
        match part.at {
            PartLocation::Object(object) => {
                let name = host.part(&object);
                let damaged = Error::Damaged {
                    object: name.clone(),
                    why: "its hash differs from the manifest".into(),
                };
                let check = move |bytes: &[u8]| match bytes.len() == len {
                    true if Hash::of(bytes) == part.hash => work(bytes),
                    _ => Err(damaged),
                };
                remote.get_with(&name, buffers, check).await
            }
            PartLocation::Run(first, last) => {
                let bytes = match held {
                    Some(held) => held,
                    None => bytes_of(&run(remote, host, first, last, None, part.hash).await?),
                };
                if bytes.len() != len {
                    let why = "its length differs from the manifest".into();
                    return Err(Error::Damaged { object: host.entry(last), why });
                }
                blocking(move || work(&bytes)).await
            }
        }
    }
}

fn bytes_of(increments: &[Increment]) -> Vec<u8> {
    let pieces: Vec<&[u8]> =
        increments.iter().map(|increment| increment.bytes.as_slice()).collect();
    pieces.concat()
}
