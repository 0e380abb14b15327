//! The directory itself, without NFS: what the server's storage can do.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use net::clock::Clock;
use perf::stats::{Estimate, Sample};

use super::BLOCK_BYTES;
use crate::error::Error;

/// T_B: a block written and synced, less one only written, on a file that exists already.
///
/// # Errors
/// As the system says.
pub fn block_us(clock: &Clock, dir: &Path, trials: usize) -> Result<Estimate, Error> {
    let file = Ceiling::prepare(dir, trials as u64 * 2 * u64::from(BLOCK_BYTES))?;
    let block = &file.data[..BLOCK_BYTES as usize];
    let mut differences = Vec::with_capacity(trials);
    for trial in 0..trials as u64 {
        let offset = trial * 2 * u64::from(BLOCK_BYTES);
        let began = clock.now();
        file.write(block, offset).map_err(|cause| file.failed("writing", cause))?;
        let written = clock.now();
        file.write(block, offset + u64::from(BLOCK_BYTES))
            .and_then(|()| file.inner().sync_all())
            .map_err(|cause| file.failed("syncing", cause))?;
        let synced = clock.now();
        let (alone, both) = (written.since(began), synced.since(written));
        differences.push(both.as_micros_f64() - alone.as_micros_f64());
    }
    let sample = Sample::new(differences).map_err(|_| Error::TooFew { what: "T_B" })?;
    Ok(sample.median_estimate().not_negative())
}

/// A file in the directory, open, and removed with this value.
#[derive(Debug)]
pub struct Ceiling {
    file: tempfile::NamedTempFile,
    data: Vec<u8>,
    file_bytes: u64,
}

const CHUNK_BYTES: usize = 1 << 20;

impl Ceiling {
    /// Makes the file and writes it once, so that later passes overwrite.
    ///
    /// # Errors
    /// The directory cannot be written, or is full.
    pub fn prepare(dir: &Path, file_bytes: u64) -> Result<Self, Error> {
        let failed = |cause| Error::Local { doing: "writing a file", path: dir.to_owned(), cause };
        let file = tempfile::Builder::new()
            .prefix(crate::scratch::PREFIX)
            .tempfile_in(dir)
            .map_err(failed)?;
        let data = crate::seqwrite::pattern(CHUNK_BYTES).to_vec();
        let ceiling = Self { file, data, file_bytes };
        ceiling.write_all(u64::MAX).map_err(failed)?;
        Ok(ceiling)
    }

    /// Overwrites the file, with a sync after every `commit_bytes` and at the end, as a client
    /// would commit; MiB/s.
    ///
    /// # Errors
    /// As the system says.
    pub fn measure(&self, clock: &Clock, commit_bytes: u64) -> Result<f64, Error> {
        let started = clock.now();
        self.write_all(commit_bytes).map_err(|cause| self.failed("writing", cause))?;
        let elapsed = clock.now().since(started);
        Ok(self.file_bytes as f64 / (1 << 20) as f64 / elapsed.as_secs_f64())
    }

    fn write_all(&self, commit_bytes: u64) -> io::Result<()> {
        let (mut offset, mut unsynced) = (0, 0);
        while offset < self.file_bytes {
            let left = usize::try_from(self.file_bytes - offset).unwrap_or(usize::MAX);
            let chunk = &self.data[..CHUNK_BYTES.min(left)];
            self.write(chunk, offset)?;
            offset += chunk.len() as u64;
            unsynced += chunk.len() as u64;
            if unsynced >= commit_bytes && offset < self.file_bytes {
                self.inner().sync_data()?;
                unsynced = 0;
            }
        }
        self.inner().sync_data()
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.inner().write_all_at(data, offset)
    }

    fn inner(&self) -> &File {
        self.file.as_file()
    }

    fn failed(&self, doing: &'static str, cause: io::Error) -> Error {
        Error::Local { doing, path: self.file.path().to_owned(), cause }
    }
}
