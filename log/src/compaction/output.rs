//! The output file of a compaction.

use super::{Chain, dry_run_output::DryRunOutput};
use crate::{
    Error, Id, Options, Seq,
    directory::{Directory, SegmentFile},
    disk::File,
    format::{
        FrameFields, GapReason, IndexEntry, KIND_CHAIN, KIND_RESERVED, KIND_SEAL, Links,
        SEGMENT_HEADER_LEN, Seal, SegmentHeader, encode_frame,
    },
    read::segment::{Segment, read_seal},
    scan::ScanResult,
    write::{roll::write_bytes, seal::count},
};
use sha2::{Digest, Sha256};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Size of the write buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// A segment being written, from its header to its seal.
pub(super) struct Output<'a> {
    options: &'a Options,
    path: PathBuf,
    file: Arc<dyn File>,
    header: SegmentHeader,
    salt: u32,
    buffer: Vec<u8>,
    /// Bytes so far, including the buffer.
    offset: u64,
    hasher: Sha256,
    seal: Seal,
    index_next: u64,
}

impl<'a> Output<'a> {
    pub(super) fn create(
        directory: &Directory,
        path: &Path,
        header: SegmentHeader,
        options: &'a Options,
    ) -> Result<Self, Error> {
        let file = directory.disk.create(path).map_err(|error| Error::io("create", path, error))?;
        Ok(Self::to(file, path, header, options))
    }

    /// An output that is only measured.
    pub(super) fn dry_run(header: SegmentHeader, options: &'a Options) -> Self {
        Self::to(Arc::new(DryRunOutput::default()), Path::new(""), header, options)
    }

    fn to(file: Arc<dyn File>, path: &Path, header: SegmentHeader, options: &'a Options) -> Self {
        Self {
            options,
            path: path.to_path_buf(),
            file,
            header,
            salt: header.salt(),
            buffer: header.encode().to_vec(),
            offset: SEGMENT_HEADER_LEN as u64,
            hasher: Sha256::new(),
            seal: Seal::empty(header.number),
            index_next: SEGMENT_HEADER_LEN as u64,
        }
    }

    /// The place of the next frame.
    pub(super) fn here(&self) -> Seq {
        Seq::new(self.header.number, self.offset)
    }

    pub(super) fn records(&self) -> u64 {
        self.seal.records
    }

    /// Writes the frame that links the segments of a merged file.
    pub(super) fn put_links(&mut self, links: &Links) -> Result<(), Error> {
        let id = Id::random(self.options.disk.now_us());
        let fields = FrameFields { kind: KIND_CHAIN, schema: 1, codec: 0, flags: 0, id };
        self.put(fields, &[&links.encode()])
    }

    /// Writes a record.
    pub(super) fn put_record(&mut self, fields: FrameFields, parts: &[&[u8]]) -> Result<(), Error> {
        if self.offset >= self.index_next {
            let time_max_before_us = self.seal.time_max_us;
            self.seal.index.push(IndexEntry { offset: self.offset, time_max_before_us });
            self.index_next = self.offset.saturating_add(self.options.index_interval_bytes);
        }
        count(&mut self.seal, fields.id);
        self.put(fields, parts)
    }

    /// Copies damaged bytes.
    pub(super) fn put_damage(&mut self, bytes: &[u8], reason: GapReason) -> Result<(), Error> {
        self.seal.gaps.push((self.offset, bytes.len() as u64, reason));
        self.buffer.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
        self.flush_if(BUFFER_BYTES)
    }

    fn put(&mut self, fields: FrameFields, parts: &[&[u8]]) -> Result<(), Error> {
        let start = self.buffer.len();
        encode_frame(fields, parts, self.salt, &mut self.buffer);
        self.offset += (self.buffer.len() - start) as u64;
        self.flush_if(BUFFER_BYTES)
    }

    fn flush_if(&mut self, bytes_min: usize) -> Result<(), Error> {
        if self.buffer.len() < bytes_min {
            return Ok(());
        }
        self.hasher.update(&self.buffer);
        write_bytes(self.file.as_ref(), &self.buffer)
            .map_err(|error| Error::io("write", &self.path, error))?;
        self.buffer.clear();
        // One record of 16 MB must not keep that much memory for the rest of the file.
        self.buffer.shrink_to(2 * BUFFER_BYTES);
        Ok(())
    }

    /// Seals the file and syncs it. Returns its length.
    pub(super) fn seal(&mut self, chain: &Chain) -> Result<u64, Error> {
        self.flush_if(0)?;
        self.seal.bytes = self.offset;
        self.seal.hash = self.hasher.clone().finalize().into();
        self.seal.hash_origin = chain.hash_origin;
        self.seal.link_previous = chain.links.last;
        self.seal.number_last = chain.number_last;
        let id = Id::random(self.options.disk.now_us());
        let frame = self.seal.encode_frame(id, self.salt);
        write_bytes(self.file.as_ref(), &frame)
            .map_err(|error| Error::io("write", &self.path, error))?;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))?;
        Ok(self.offset + frame.len() as u64)
    }

    /// Reads the file again, before the old ones are removed.
    pub(super) fn check(&self, directory: &Directory) -> Result<(), Error> {
        let failed = |why: &str| {
            let source = std::io::Error::other(why.to_owned());
            Error::Io { action: "check", path: self.path.clone(), source }
        };
        let file = SegmentFile::written(self.header.number, self.path.clone());
        let mut segment = Segment::with_header(directory, &file, Arc::clone(&self.file))?;
        let read = read_seal(self.file.as_ref(), self.salt)
            .map_err(|error| Error::io("read", &self.path, error))?;
        if read.is_none_or(|(seal, _)| seal != self.seal) {
            return Err(failed("its seal differs from what was written"));
        }
        let (mut offset, mut records, mut gaps) = (SEGMENT_HEADER_LEN as u64, 0, 0);
        loop {
            let found = segment.scan(offset)?;
            match &found {
                ScanResult::Frame(header) if header.kind == KIND_SEAL => break,
                ScanResult::Frame(header) => records += u64::from(header.kind < KIND_RESERVED),
                ScanResult::Gap { .. } => gaps += 1,
                ScanResult::Tail { .. } | ScanResult::End => {
                    return Err(failed("it ends too early"));
                }
            }
            offset = found.end(offset).unwrap_or(u64::MAX);
        }
        if records != self.seal.records || (gaps == 0) != self.seal.gaps.is_empty() {
            return Err(failed("its records differ from what was written"));
        }
        Ok(())
    }
}
