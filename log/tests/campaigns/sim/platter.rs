//! The content of the simulated disk: as programs see it, and as it is on the platter.

use crate::random::Random;
use claude_mem_log::disk::Lock;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, ErrorKind},
    path::Path,
    time::Duration,
};

const SECTOR: usize = 512;
const ROOT: u64 = 1;

#[derive(Debug, Clone)]
pub struct Platter {
    nodes: BTreeMap<u64, Node>,
    /// Names given and taken that are not on the platter yet, in order.
    names: Vec<NameChange>,
    locks: HashMap<u64, Vec<(u64, Lock)>>,
    next: u64,
    clock_us: u64,
}

#[derive(Debug, Clone)]
enum Node {
    Dir(Dir),
    File(Bytes),
}

#[derive(Debug, Clone, Default)]
struct Dir {
    live: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Default)]
struct Bytes {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Contents that sectors had since the last sync, in order.
    sectors: Vec<(usize, Vec<u8>)>,
    /// Lengths that the file had since then.
    lens: Vec<usize>,
    written_us: u64,
}

#[derive(Debug, Clone)]
struct NameChange {
    number: u64,
    dir: u64,
    name: String,
    to: Option<u64>,
    /// The old name of a renamed file disappears only if the new one exists.
    after: Option<u64>,
}

impl Platter {
    pub fn new() -> Self {
        let mut nodes = BTreeMap::from([(ROOT, Node::Dir(Dir::default()))]);
        nodes.insert(2, Node::Dir(Dir::default()));
        let mut platter =
            Self { nodes, names: Vec::new(), locks: HashMap::new(), next: 3, clock_us: 1 << 50 };
        platter.dir_mut(ROOT).live.insert("disk".into(), 2);
        platter.dir_mut(ROOT).durable.insert("disk".into(), 2);
        platter
    }

    pub fn without_locks(&self) -> Self {
        Self { locks: HashMap::new(), ..self.clone() }
    }

    fn dir_mut(&mut self, inode: u64) -> &mut Dir {
        match self.nodes.get_mut(&inode) {
            Some(Node::Dir(dir)) => dir,
            _ => panic!("{inode} is no directory"),
        }
    }

    fn bytes_mut(&mut self, inode: u64) -> &mut Bytes {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(bytes)) => bytes,
            _ => panic!("{inode} is no file"),
        }
    }

    pub fn inode(&self, path: &Path) -> io::Result<u64> {
        let mut inode = ROOT;
        for name in path.iter().skip(1) {
            let Some(Node::Dir(dir)) = self.nodes.get(&inode) else {
                return Err(ErrorKind::NotADirectory.into());
            };
            inode = *dir.live.get(name.to_str().unwrap()).ok_or(ErrorKind::NotFound)?;
        }
        Ok(inode)
    }

    fn parent(&self, path: &Path) -> io::Result<(u64, String)> {
        let dir = self.inode(path.parent().unwrap())?;
        Ok((dir, path.file_name().unwrap().to_str().unwrap().to_owned()))
    }

    pub fn file(&self, path: &Path) -> io::Result<u64> {
        let inode = self.inode(path)?;
        match self.nodes[&inode] {
            Node::File(_) => Ok(inode),
            Node::Dir(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    fn set(&mut self, dir: u64, name: &str, to: Option<u64>, after: Option<u64>) -> u64 {
        let live = &mut self.dir_mut(dir).live;
        match to {
            Some(inode) => live.insert(name.to_owned(), inode),
            None => live.remove(name),
        };
        let number = self.fresh();
        self.names.push(NameChange { number, dir, name: name.to_owned(), to, after });
        number
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add(&mut self, dir: u64, name: &str, node: Node) -> u64 {
        let inode = self.fresh();
        self.nodes.insert(inode, node);
        self.set(dir, name, Some(inode), None);
        inode
    }

    pub fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        for path in path.ancestors().collect::<Vec<_>>().into_iter().rev().skip(1) {
            if self.inode(path).is_err() {
                let (dir, name) = self.parent(path)?;
                self.add(dir, &name, Node::Dir(Dir::default()));
            }
        }
        Ok(())
    }

    pub fn create(&mut self, path: &Path) -> io::Result<u64> {
        let (dir, name) = self.parent(path)?;
        if self.inode(path).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let bytes = Bytes { written_us: self.clock_us, ..Bytes::default() };
        Ok(self.add(dir, &name, Node::File(bytes)))
    }

    pub fn put(&mut self, path: &Path, content: &[u8]) {
        self.create_dir(path.parent().unwrap()).unwrap();
        let inode = self.file(path).or_else(|_| self.create(path)).unwrap();
        let written_us = self.clock_us;
        let (live, durable) = (content.to_vec(), content.to_vec());
        *self.bytes_mut(inode) = Bytes { live, durable, written_us, ..Bytes::default() };
        let names = std::mem::take(&mut self.names);
        self.arrive(names);
    }

    pub fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.file(from)?;
        let (dir, name) = self.parent(to)?;
        if self.inode(to).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.set(dir, &name, Some(inode), None);
        Ok(())
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.file(from)?;
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let given = self.set(to_dir, &to_name, Some(inode), None);
        self.set(from_dir, &from_name, None, Some(given));
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        let (dir, name) = self.parent(path)?;
        self.set(dir, &name, None, None);
        Ok(())
    }

    pub fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let inode = self.inode(path)?;
        match &self.nodes[&inode] {
            Node::Dir(dir) => Ok(dir.live.keys().cloned().collect()),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    pub fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let inode = self.inode(path)?;
        // A name moved away from here has arrived elsewhere.
        let moved: BTreeSet<u64> = self
            .names
            .iter()
            .filter_map(|change| change.after.filter(|_| change.dir == inode))
            .collect();
        let (now, later) = std::mem::take(&mut self.names)
            .into_iter()
            .partition(|change| change.dir == inode || moved.contains(&change.number));
        self.names = later;
        self.arrive(now);
        Ok(())
    }

    fn arrive(&mut self, changes: Vec<NameChange>) {
        for change in changes {
            let durable = &mut self.dir_mut(change.dir).durable;
            match change.to {
                Some(inode) => durable.insert(change.name, inode),
                None => durable.remove(&change.name),
            };
        }
    }

    pub fn age(&self, path: &Path) -> io::Result<Duration> {
        let inode = self.file(path)?;
        let Node::File(bytes) = &self.nodes[&inode] else { unreachable!("it is a file") };
        Ok(Duration::from_micros(self.clock_us - bytes.written_us))
    }

    pub fn now_us(&mut self) -> u64 {
        self.clock_us += 1;
        self.clock_us
    }

    pub fn pause(&mut self, time: Duration) {
        self.clock_us += time.as_micros() as u64;
    }

    pub fn append(&mut self, inode: u64, bytes: &[u8]) -> u64 {
        let end = self.bytes_mut(inode).live.len();
        self.write(inode, bytes, end);
        (end + bytes.len()) as u64
    }

    pub fn write(&mut self, inode: u64, new: &[u8], offset: usize) {
        let now = self.clock_us;
        let bytes = self.bytes_mut(inode);
        bytes.written_us = now;
        let end = offset + new.len();
        bytes.live.resize(bytes.live.len().max(end), 0);
        bytes.live[offset..end].copy_from_slice(new);
        for sector in offset / SECTOR..end.div_ceil(SECTOR) {
            let range = sector * SECTOR..bytes.live.len().min((sector + 1) * SECTOR);
            bytes.sectors.push((sector, bytes.live[range].to_vec()));
        }
        bytes.lens.push(bytes.live.len());
    }

    pub fn read(&mut self, inode: u64, buffer: &mut [u8], offset: usize) -> usize {
        let live = &self.bytes_mut(inode).live;
        let from = live.get(offset..).unwrap_or_default();
        let len = from.len().min(buffer.len());
        buffer[..len].copy_from_slice(&from[..len]);
        len
    }

    pub fn len(&mut self, inode: u64) -> u64 {
        self.bytes_mut(inode).live.len() as u64
    }

    /// Everything is stored, or everything is dropped.
    pub fn sync(&mut self, inode: u64, forget: bool) {
        let bytes = self.bytes_mut(inode);
        if forget {
            // The length is in the journal, which did not fail.
            bytes.durable.resize(bytes.live.len(), 0);
        } else {
            for (sector, content) in std::mem::take(&mut bytes.sectors) {
                put(&mut bytes.durable, sector, &content);
            }
        }
        bytes.sectors.clear();
        bytes.lens.clear();
    }

    pub fn try_lock(&mut self, inode: u64, handle: u64, lock: Lock) -> bool {
        let holders = self.locks.entry(inode).or_default();
        let is_free = holders.iter().all(|(other, held)| {
            *other == handle || (lock == Lock::Shared && *held == Lock::Shared)
        });
        if is_free {
            holders.retain(|(other, _)| *other != handle);
            holders.push((handle, lock));
        }
        is_free
    }

    pub fn unlock(&mut self, inode: u64, handle: u64) {
        if let Some(holders) = self.locks.get_mut(&inode) {
            holders.retain(|(other, _)| *other != handle);
        }
    }

    /// One of the possible states after a power loss.
    pub fn lose_power(&self, random: &mut Random) -> Self {
        let mut after = self.without_locks();
        // All, nothing, or anything between.
        let percent = [0, 20, 50, 80, 100][random.below(5)];
        let mut arrived = BTreeSet::new();
        let changes = std::mem::take(&mut after.names).into_iter().filter(|change| {
            let may = change.after.is_none_or(|after| arrived.contains(&after));
            let does = may && random.chance(percent);
            if does {
                arrived.insert(change.number);
            }
            does
        });
        let changes = changes.collect();
        after.arrive(changes);
        for node in after.nodes.values_mut() {
            match node {
                Node::Dir(dir) => dir.live.clone_from(&dir.durable),
                Node::File(bytes) => bytes.lose_power(random, percent),
            }
        }
        after
    }
}

impl Bytes {
    fn lose_power(&mut self, random: &mut Random, percent: usize) {
        let mut durable = std::mem::take(&mut self.durable);
        let mut contents: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
        for (sector, content) in self.sectors.drain(..) {
            contents.entry(sector).or_default().push(content);
        }
        let mut lens = std::mem::take(&mut self.lens);
        lens.push(durable.len());
        let len = match percent {
            100 => lens.iter().copied().max().unwrap_or_default(),
            0 => durable.len(),
            _ => lens[random.below(lens.len())],
        };
        for (sector, mut contents) in contents {
            if random.chance(percent) {
                let which =
                    if percent == 100 { contents.len() - 1 } else { random.below(contents.len()) };
                put(&mut durable, sector, &contents.swap_remove(which));
            }
        }
        durable.resize(len, 0);
        self.live.clone_from(&durable);
        self.durable = durable;
    }
}

fn put(bytes: &mut Vec<u8>, sector: usize, content: &[u8]) {
    let start = sector * SECTOR;
    let end = start + content.len();
    bytes.resize(bytes.len().max(end), 0);
    bytes[start..end].copy_from_slice(content);
}
