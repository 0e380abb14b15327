//! What is tried of files: attributes, a read, and if it is wanted a write.

use bytes::Bytes;
use client::error::Error;
use client::mount::Ports;
use client::session::Session;
use doctor::reach::Phase;
use load::scratch::Scratch;
use perf::units::Instant;
use wire::nfs3::{FType, FileHandle, StableHow};

use crate::walk::{Ended, Walk, Wrong};
use crate::{Difference, fault};

/// Bytes that are read and written: more than a packet takes, so that a way that loses full
/// packets is seen.
const BYTES: u32 = 64 << 10;

/// Entries of the directory that are looked at for one to read.
const ENTRIES_MAX: usize = 64;

/// By how much a server's time in attributes may lag: a tick of its kernel's clock.
const TICK_MS: f64 = 10.0;

impl Walk<'_> {
    pub(crate) async fn files(
        &mut self,
        ports: &Ports,
        root: FileHandle,
        is_stopped: &impl Fn() -> bool,
    ) -> Result<(), Ended> {
        let begin = self.clock.now();
        let session = match self.steps.session(ports).await {
            Ok(session) => session.with_root(root),
            Err(error) => return self.answered(Phase::Fsinfo, begin, Err(error)),
        };
        self.attributes(&session, root).await?;
        self.go_on(is_stopped)?;
        self.read(&session, root).await?;
        if self.options.writes {
            self.go_on(is_stopped)?;
            self.write(&session).await?;
        }
        Ok(())
    }

    async fn attributes(&mut self, session: &Session, root: FileHandle) -> Result<(), Ended> {
        let begin = self.clock.now();
        let fsinfo = session.fsinfo(root).await.map(|found| {
            format!("READs of up to {} bytes, WRITEs of up to {}", found.rtmax, found.wtmax)
        });
        self.answered(Phase::Fsinfo, begin, fsinfo)?;
        let begin = self.clock.now();
        let pathconf = session.pathconf(root).await;
        let pathconf = pathconf.map(|found| format!("names of up to {} bytes", found.name_max));
        self.answered(Phase::Pathconf, begin, pathconf)?;
        let begin = self.clock.now();
        let getattr = session.getattr(root).await;
        let getattr = getattr
            .map(|found| format!("mode {:o}, owner {}:{}", found.mode, found.uid, found.gid));
        self.answered(Phase::Getattr, begin, getattr)
    }

    fn answered(
        &mut self,
        phase: Phase,
        begin: Instant,
        answer: Result<String, Error>,
    ) -> Result<(), Ended> {
        let tried = answer.map(|what| ((), what)).map_err(|error| Wrong::of(&error));
        self.settle(phase, begin, tried).map(drop)
    }

    async fn read(&mut self, session: &Session, root: FileHandle) -> Result<(), Ended> {
        let begin = self.clock.now();
        let answer = match read_largest(session, root).await {
            Ok(Some((name, bytes))) => Ok(format!("{bytes} bytes of {name:?}")),
            Ok(None) => {
                self.skip(Phase::Read, "there is no file in the directory itself");
                return Ok(());
            }
            Err(error) => Err(error),
        };
        self.answered(Phase::Read, begin, answer)
    }

    /// In a directory of its own, which is removed however it goes.
    async fn write(&mut self, session: &Session) -> Result<(), Ended> {
        let begin = self.clock.now();
        let tag = format!("{:x}-{}", self.clock.since_1970().as_nanos(), std::process::id());
        let name = Scratch::name_for(&tag);
        let written = match self.written(session, &name).await {
            Ok(difference) => {
                self.checked.clock = Some(difference);
                Ok(((), format!("{BYTES} bytes, stable, and read back; {name} was removed")))
            }
            Err(error) => {
                let what = format!("{error} (in {name})");
                Err(Wrong { fault: fault::of(&error), what })
            }
        };
        self.settle(Phase::Write, begin, written).map(drop)
    }

    /// Makes the directory, writes there, and removes it.
    async fn written(&self, session: &Session, name: &str) -> Result<Difference, Error> {
        match Scratch::create(session, name).await {
            Ok(scratch) => {
                let written = self.write_in(session, &scratch).await;
                let removed = scratch.remove(session).await;
                written.and_then(|difference| removed.map(|()| difference))
            }
            Err(error) => {
                // It may have been made, and the answer lost.
                if let Ok(Some(scratch)) = Scratch::find(session, name).await {
                    scratch.remove(session).await.ok();
                }
                Err(error)
            }
        }
    }

    /// Writes and reads back; the server's time of the file beside ours tells how clocks differ.
    async fn write_in(&self, session: &Session, scratch: &Scratch) -> Result<Difference, Error> {
        let file = scratch.file(session, "file").await?;
        let data: Vec<u8> = (0..=255_u8).cycle().take(BYTES as usize).collect();
        let mut written = 0;
        let mut before = self.clock.since_1970();
        while written < data.len() {
            before = self.clock.since_1970();
            let rest = Bytes::copy_from_slice(&data[written..]);
            let timed = session.write(file, written as u64, rest, StableHow::FileSync).await?;
            written += (timed.reply.count as usize).min(data.len() - written);
        }
        let after = self.clock.since_1970();
        let mtime = session.getattr(file).await?.mtime;
        if read_back(session, file, data.len()).await? != data {
            return Err(session.nonsense("READ", "other bytes than were written"));
        }
        let theirs = f64::from(mtime.seconds) + f64::from(mtime.nseconds) * 1e-9;
        Ok(Difference::between(theirs, before.as_secs_f64(), after.as_secs_f64()))
    }
}

impl Difference {
    /// By the server's time of a change that was made between two times of ours.
    fn between(theirs: f64, before: f64, after: f64) -> Self {
        Self {
            ahead_ms: (theirs - f64::midpoint(before, after)) * 1e3,
            error_ms: (after - before) / 2.0 * 1e3 + TICK_MS,
        }
    }
}

async fn read_back(session: &Session, file: FileHandle, len: usize) -> Result<Vec<u8>, Error> {
    let mut read = Vec::new();
    while read.len() < len {
        let found = session.read(file, read.len() as u64, BYTES).await?;
        if found.data.is_empty() {
            break;
        }
        read.extend_from_slice(&found.data);
    }
    Ok(read)
}

/// Reads the beginning of the largest of the first files that there are.
async fn read_largest(
    session: &Session,
    root: FileHandle,
) -> Result<Option<(String, usize)>, Error> {
    let Some((name, file)) = largest(session, root).await? else { return Ok(None) };
    let count = BYTES.min(session.sizes().read_bytes_max.max(BYTES));
    let read = session.read(file, 0, count).await?;
    Ok(Some((name, read.data.len())))
}

/// A file in a directory, by what the first page of its listing says.
async fn largest(
    session: &Session,
    dir: FileHandle,
) -> Result<Option<(String, FileHandle)>, Error> {
    let page = match session.readdirplus(dir, 0, [0; 8], 8 << 10, 32 << 10).await {
        Err(error) if error.is_unsupported() => session.readdir(dir, 0, [0; 8], 8 << 10).await?,
        page => page?,
    };
    let mut best: Option<(u64, String, FileHandle)> = None;
    let names = page.entries.into_iter().take(ENTRIES_MAX);
    for entry in names.filter(|entry| entry.name != b"." && entry.name != b"..") {
        let (handle, attributes) = match (entry.handle, entry.attributes) {
            (Some(handle), Some(attributes)) => (handle, attributes),
            _ => {
                let found = session.lookup(dir, &entry.name).await?.object;
                (found, session.getattr(found).await?)
            }
        };
        let size = attributes.size;
        if attributes.ftype == FType::Reg && best.as_ref().is_none_or(|(most, ..)| size > *most) {
            best = Some((size, String::from_utf8_lossy(&entry.name).into_owned(), handle));
        }
    }
    Ok(best.filter(|(size, ..)| *size > 0).map(|(_, name, handle)| (name, handle)))
}
