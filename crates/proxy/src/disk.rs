//! A cache on a local disk ([`cache`]) between clients and the origin: blocks of files under the
//! state that they are of.
//!
//! A READ is answered from it if the origin has confirmed it within
//! [`GOOD_FOR`](crate::ahead::GOOD_FOR) that the file is in that state, and that this caller may
//! read it. Clients that open a file ask both, so that their READs cost the origin nothing. Where
//! it is not known, one ACCESS asks for it in place of the READs.
//!
//! What is stored was read while the file was known to be in its state, and no other state can look
//! the same. What clients write through the proxy is not stored: the file is in another state then,
//! and is fetched when it is read.

use bytes::Bytes;
use cache::{Cache, Cause, Key};
use client::cache::state::token;
use client::ops::ReadOk;
use server::metrics::Reading;
use wire::nfs3::{Fattr3, FileHandle};

use crate::ahead::Read;
use crate::known::{Known, State};
use crate::remote::Remote;

/// A cache, and what is known of the files in it; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) cache: Cache,
    pub(crate) known: Known,
}

impl Disk {
    /// The state that a READ begun now is of.
    pub(crate) fn state(&self, file: &FileHandle) -> Option<State> {
        self.known.state(file)
    }

    /// Keeps what was read, if it is of the state that the file was in when it was requested.
    pub(crate) fn keep(&self, file: &FileHandle, state: Option<State>, offset: u64, read: &ReadOk) {
        let Some(State { token: token_read, is_settled: true }) = state else { return };
        let returned = read.file_attributes.as_ref().map(token);
        if returned == Some(token_read)
            && !read.data.is_empty()
            && let Some(key) = Key::new(file.as_bytes())
        {
            self.cache.store(&key, &token_read, offset, read.data.clone());
        }
    }

    /// What it has served and stored.
    pub(crate) fn readings(&self) -> Vec<Reading> {
        let statistics = self.cache.statistics();
        let row = |name, help, count: u64| Reading::new(name, help, count as f64);
        vec![
            row("nfskit_cache_hits_total", "Reads served from the disk.", statistics.hits),
            row("nfskit_cache_hit_bytes_total", "Their bytes.", statistics.hit_bytes),
            row(
                "nfskit_cache_misses_total",
                "Reads not served from the disk.",
                statistics.misses.iter().sum(),
            ),
            row("nfskit_cache_stored_blocks_total", "Blocks stored.", statistics.stored_blocks),
            row("nfskit_cache_stored_bytes_total", "Their bytes.", statistics.stored_bytes),
            row("nfskit_cache_failures_total", "Errors of the disk.", statistics.failures),
            row("nfskit_cache_bytes", "Bytes that it takes of the disk.", statistics.filled.bytes),
            row("nfskit_cache_files", "Local files that it has.", statistics.filled.files),
        ]
    }

    /// The range made of whole blocks around a read.
    pub(crate) fn around(&self, offset: u64, count: u32) -> (u64, u32) {
        let block = self.cache.geometry().block_bytes();
        let begin = offset / block * block;
        let end = offset.saturating_add(u64::from(count)).next_multiple_of(block);
        (begin, u32::try_from(end - begin).unwrap_or(count))
    }
}

impl Remote {
    /// The bytes, if the disk has all of them and the caller may read them.
    pub(crate) async fn read_disk(&self, disk: &Disk, read: &Read<'_>) -> Option<ReadOk> {
        let Read { caller, file, .. } = read;
        if read.opens() {
            return self.open_disk(disk, read).await;
        }
        let attributes = match disk.known.readable(file, caller) {
            Some(attributes) => attributes,
            None => self.ask_readable(disk, read).await?,
        };
        self.read_cached(disk, read, attributes).await
    }

    /// The same of a READ that opens the file: if the disk has all of it, an ACCESS in place of the
    /// READ tells whether it is what it was.
    async fn open_disk(&self, disk: &Disk, read: &Read<'_>) -> Option<ReadOk> {
        let last = disk.known.last(&read.file)?;
        let cached = self.read_cached(disk, read, last).await?;
        let attributes = self.ask_readable(disk, read).await?;
        let is_same = token(&attributes) == token(&last);
        is_same.then_some(ReadOk { file_attributes: Some(attributes), ..cached })
    }

    /// What the disk has of a file in this state.
    async fn read_cached(
        &self,
        disk: &Disk,
        read: &Read<'_>,
        attributes: Fattr3,
    ) -> Option<ReadOk> {
        let Read { file, offset, count, .. } = read;
        let size = attributes.size;
        if *offset >= size {
            let (file_attributes, data) = (Some(attributes), Bytes::new());
            return Some(ReadOk { file_attributes, eof: true, data });
        }
        let state = token(&attributes);
        let key = Key::new(file.as_bytes())?;
        let data = disk.cache.read(&key, &state, *offset, *count).await.ok()?;
        // Another state may have been reported meanwhile.
        if disk.known.last(file).as_ref().map(token) != Some(state) {
            disk.cache.missed(&key, state.fileid, Cause::Unsure);
            return None;
        }
        let eof = offset.saturating_add(data.len() as u64) >= size;
        Some(ReadOk { file_attributes: Some(attributes), eof, data })
    }

    /// Asks the origin for the state of the file and what the caller may.
    async fn ask_readable(&self, disk: &Disk, read: &Read<'_>) -> Option<Fattr3> {
        let Read { session, caller, file, .. } = read;
        let was_cached =
            self.ask_access(session, caller, *file, wire::nfs3::access::ALL).await.ok()?.1;
        if was_cached {
            // The origin is away: what was known is what there is.
            let right = disk.known.last_rights(file, caller)?;
            let may = right.access & wire::nfs3::access::READ != 0;
            return right.obj_attributes.filter(|_| may);
        }
        let readable = disk.known.readable(file, caller);
        if readable.is_none() {
            let fileid = disk.known.last(file).map_or(0, |last| last.fileid);
            disk.cache.missed(&Key::new(file.as_bytes())?, fileid, Cause::Unsure);
        }
        readable
    }
}
