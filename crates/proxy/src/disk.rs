//! A cache on a local disk ([`cache`]) between clients and the origin: blocks of files under the
//! state that they are of.
//!
//! A READ is answered from it if the origin has confirmed it within
//! [`GOOD_FOR`](crate::known::GOOD_FOR) that the file is in that state, and that this caller may
//! read it. Clients that open a file ask both, so that their READs cost the origin nothing. Where
//! it is not known, one ACCESS asks for it in place of the READs.
//!
//! What is stored was read while the file was known to be in its state, and no other state can look
//! the same. What clients write through the proxy is not stored: the file is in another state then,
//! and is fetched when it is read.

use cache::{Cache, Key, Sample};
use client::cache::state::token;
use client::ops::ReadOk;
use server::metrics::Reading;
use wire::nfs3::FileHandle;

use crate::known::{Known, State};

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
        let reading = |sample: Sample| Reading {
            labels: sample.labels(),
            ..Reading::new(sample.name, sample.help, sample.count as f64)
        };
        self.cache.statistics().samples().into_iter().map(reading).collect()
    }

    /// The range made of whole blocks around a read.
    pub(crate) fn around(&self, offset: u64, count: u32) -> (u64, u32) {
        let block = self.cache.geometry().block_bytes();
        let begin = offset / block * block;
        let end = offset.saturating_add(u64::from(count)).next_multiple_of(block);
        (begin, u32::try_from(end - begin).unwrap_or(count))
    }
}
