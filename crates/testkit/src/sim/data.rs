//! The bytes of files: what a client writes, makes stable and reads.

use futures_util::future::join_all;
use perf::units::Nanos;
use wire::nfs3::{FileHandle, NfsStat3, StableHow};

use super::access::Taken;
use super::client::{Actor, NEVER, UNSURE, no_reply};
use super::failure::Failure;
use crate::reference::content::{Content, Written};

/// COMMITs in a row, each of which finds that the server has lost something again.
const COMMITS_MAX: usize = 50;

impl Actor {
    pub(super) async fn write(
        &mut self,
        number: u32,
        file: FileHandle,
        (at, bytes): (u32, u32),
        value: u8,
        stable: StableHow,
        pieces: u32,
    ) -> Result<(), Failure> {
        let (since, losses) = (self.stage.clock.now(), self.losses());
        let piece = bytes.div_ceil(pieces.max(1)).max(1);
        let starts = (at..at + bytes).step_by(piece as usize);
        let ranges: Vec<_> = starts.map(|from| from..(from + piece).min(at + bytes)).collect();
        if let Err(error) = self.access.open(file).await {
            return self.excuse("open", &error, since);
        }
        let access = &self.access;
        let writes = ranges.iter().map(|range| {
            let range = u64::from(range.start)..u64::from(range.end);
            access.write(file, range, value, stable)
        });
        let written = join_all(writes).await;
        for (range, written) in ranges.into_iter().zip(written) {
            let range = range.start as usize..range.end as usize;
            match written {
                Ok(taken) => {
                    let content = self.expected.content(number);
                    take(content, range, value, stable, losses, taken)?;
                }
                Err(error) => {
                    self.excuse("write", &error, since)?;
                    let is_files = self.access.is_files();
                    let content = self.expected.content(number);
                    if is_files {
                        content.doubt_all();
                    }
                    content.doubted(range, value);
                }
            }
        }
        Ok(())
    }

    pub(super) async fn commit(&mut self, number: u32, file: FileHandle) -> Result<(), Failure> {
        // What is known stays, should the client vanish meanwhile.
        let mut content = self.expected.content(number).clone();
        let committed = self.commit_all(file, &mut content, 0).await;
        *self.expected.content(number) = content;
        match committed {
            // A file without a name, whose hidden one a doubtful step has left behind or taken.
            Err(error) if error.is_stale && self.may_be_gone(number) => Ok(()),
            Err(error) => Err(error.failure),
            Ok(()) => Ok(()),
        }
    }

    fn may_be_gone(&self, number: u32) -> bool {
        self.expected.may_leave_hidden && !self.expected.has_name(number)
    }

    /// Commits, and writes again what the server has lost, until all of `content` is stable; the
    /// file has it from `offset` on.
    pub(super) async fn commit_all(
        &self,
        file: FileHandle,
        content: &mut Content,
        offset: u64,
    ) -> Result<(), Stopped> {
        for _ in 0..COMMITS_MAX {
            let since = self.stage.clock.now();
            let verifier = match self.access.commit(file).await {
                Ok(Some(verifier)) => verifier,
                Ok(None) => {
                    content.flushed();
                    return Ok(());
                }
                Err(error) => {
                    self.excused("commit", &error, since)?;
                    if self.access.is_files() {
                        content.doubt_all();
                        return Ok(());
                    }
                    self.stage.clock.sleep(Nanos::from_millis(200)).await;
                    continue;
                }
            };
            content.committed(verifier);
            let lost = content.lost(verifier);
            if lost.is_empty() {
                return Ok(());
            }
            for (range, value) in lost {
                let (since, losses) = (self.stage.clock.now(), self.losses());
                let place = offset + range.start as u64..offset + range.end as u64;
                match self.access.write(file, place, value, StableHow::Unstable).await {
                    Ok(taken) => {
                        take(content, range, value, StableHow::Unstable, losses, taken)?;
                    }
                    Err(error) => {
                        self.excused("write", &error, since)?;
                        content.doubted(range, value);
                    }
                }
            }
        }
        match self.stage.history.was_troubled() {
            true => Ok(()),
            false => {
                Err(Failure::new("commit", "the server loses everything again and again").into())
            }
        }
    }

    pub(super) async fn close(&mut self, number: u32, file: FileHandle) -> Result<(), Failure> {
        let since = self.stage.clock.now();
        if let Err(error) = self.access.close(file).await {
            if error.status() == Some(NfsStat3::Stale) && self.may_be_gone(number) {
                return Ok(());
            }
            self.excuse("close", &error, since)?;
            self.expected.content(number).doubt_all();
        }
        Ok(())
    }

    pub(super) async fn resize(
        &mut self,
        number: u32,
        file: FileHandle,
        bytes: u32,
    ) -> Result<(), Failure> {
        let since = self.stage.clock.now();
        match self.access.resize(file, u64::from(bytes)).await {
            Ok(()) => self.expected.content(number).resized(bytes as usize),
            Err(error) => {
                self.excuse("resize", &error, since)?;
                self.expected.content(number).resize_doubted(bytes as usize);
            }
        }
        Ok(())
    }

    pub(super) async fn read_and_check(
        &mut self,
        number: u32,
        file: FileHandle,
        at: u32,
        bytes: u32,
    ) -> Result<(), Failure> {
        let before = self.losses();
        let got = match self.access.read(file, u64::from(at), bytes).await {
            Err(error) if error.status() == Some(NfsStat3::Stale) && self.may_be_gone(number) => {
                return Ok(());
            }
            got => got.map_err(no_reply("read"))?,
        };
        let losses = if self.losses() == before { before } else { UNSURE };
        self.note(|| format!("  {} bytes", got.len()));
        let checked =
            self.expected.content(number).check(at as usize, bytes as usize, &got, losses);
        checked.map_err(|what| Failure::new("read", what))
    }
}

/// Why a file could not be made stable.
pub(super) struct Stopped {
    pub(super) failure: Failure,
    pub(super) is_stale: bool,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self { failure, is_stale: false }
    }
}

/// A write was taken: notes it, and checks that it is as stable as requested.
pub(super) fn take(
    content: &mut Content,
    range: std::ops::Range<usize>,
    value: u8,
    stable: StableHow,
    losses: u64,
    taken: Taken,
) -> Result<(), Failure> {
    match taken {
        Taken::Held => {
            let by = Written { verifier: [0; 8], losses: NEVER };
            content.wrote(range, value, StableHow::Unstable, by);
        }
        Taken::Answered { bytes, committed, verifier } => {
            if committed < stable || bytes > range.len() {
                let what =
                    format!("{committed:?} and {bytes} bytes, where {stable:?} was requested");
                return Err(Failure::new("stability", what));
            }
            let by = Written { verifier, losses };
            content.wrote(range.start..range.start + bytes, value, committed, by);
        }
    }
    Ok(())
}
