//! A mounted directory as programs see it: system calls of one kind, one at a time, and several
//! programs that write or read at once.
//!
//! Blocks, and can be stopped between two calls. What is written is made stable by fdatasync(2)
//! unless it says otherwise; what is read was dropped from this host's memory before, as far as
//! the file system lets anybody do that.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, scope};

use bytes::Bytes;
use net::clock::Clock;
use net::floor::error::FloorError;
use perf::units::{Instant, Nanos};
use rustix::fs::{Advice, fadvise};

use crate::cached;
use crate::error::Error;
use crate::seqwrite::pattern;

/// Bytes of a call of several programs, and of the smaller single one.
pub const BLOCK_BYTES: usize = 8 << 10;
/// Bytes that each program overwrites, again and again.
const FILE_BYTES: u64 = 1 << 20;
/// Files of one directory, at most.
pub const FILES_MAX: u32 = 10_000;

/// What was made is removed, however long that takes.
const FOREVER: Nanos = Nanos::from_secs(1 << 30);

/// A directory of ours, and how to stop.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub clock: &'a Clock,
    pub dir: &'a Path,
    pub stop: &'a AtomicBool,
}

/// What names cost, call by call.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// open(2) with `O_CREAT | O_EXCL`, and close(2).
    pub created: Vec<Nanos>,
    /// stat(2) of these: the client may know all that it asks.
    pub known: Vec<Nanos>,
    /// stat(2) of names that are not there.
    pub absent: Vec<Nanos>,
    /// The whole directory, and how many names it had.
    pub listed: Option<(Nanos, usize)>,
    pub removed: Vec<Nanos>,
}

/// Writes of one size, each to the next place of a file that was written before.
#[derive(Clone, Debug, Default)]
pub struct Singles {
    pub bytes: usize,
    /// Until write(2) returned: in memory, mostly.
    pub written: Vec<Nanos>,
    /// From its beginning until fdatasync(2) returned.
    pub stable: Vec<Nanos>,
}

/// What several programs do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Each in its own file, each call made stable.
    Write,
    /// All in one file, at random, no block twice.
    Read,
}

/// Several programs at once.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// Each call's time, of all programs.
    pub calls: Vec<Nanos>,
    /// From the first call to the end of the last.
    pub span: Nanos,
    /// How much of what was read was in memory before.
    pub resident: Option<f64>,
}

impl Crowd {
    /// MiB for each second.
    pub fn mib_per_s(&self) -> f64 {
        let bytes = self.calls.len() as f64 * BLOCK_BYTES as f64;
        bytes / f64::from(1 << 20) / self.span.as_secs_f64()
    }
}

impl Place<'_> {
    /// As many files as `count`, or as come in `time`.
    ///
    /// # Errors
    /// As the system says.
    pub fn names(&self, count: u32, time: Nanos) -> Result<Names, Error> {
        let dir = self.dir.join("names");
        fs::create_dir(&dir).map_err(|cause| failed("making a directory", &dir, cause))?;
        let path = |number: usize| dir.join(format!("file-{number:05}"));
        let make = |number| OpenOptions::new().write(true).create_new(true).open(path(number));
        let created = self.times(count, time, |number| make(number).map(drop));
        let created = created.map_err(|cause| cause.in_("making a file", &dir))?;
        let count = u32::try_from(created.len()).unwrap_or(FILES_MAX);
        let known = self.times(count, time, |number| fs::metadata(path(number)).map(drop));
        let absent = self.times(count, time, |number| {
            match fs::metadata(dir.join(format!("absent-{number:05}"))) {
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(cause) => Err(cause),
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            }
        });
        let begin = self.clock.now();
        let listed = fs::read_dir(&dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let listed = listed.map_err(|cause| failed("listing a directory", &dir, cause))?;
        let listed = (self.clock.now().since(begin), listed.len());
        let removed = self.times(count, FOREVER, |number| fs::remove_file(path(number)));
        let looking = |times: Result<Vec<Nanos>, Ended>| {
            times.map_err(|cause| cause.in_("looking at a file", &dir))
        };
        Ok(Names {
            created,
            known: looking(known)?,
            absent: looking(absent)?,
            listed: Some(listed),
            removed: removed.map_err(|cause| cause.in_("removing a file", &dir))?,
        })
    }

    /// Writes of one size, one at a time.
    ///
    /// # Errors
    /// As the system says.
    pub fn singles(&self, bytes: usize, count: u32, time: Nanos) -> Result<Singles, Error> {
        let path = self.dir.join("singles");
        let file_bytes = FILE_BYTES.max(bytes as u64);
        let file = self.written(&path, file_bytes)?;
        let data = pattern(bytes);
        let mut written = Vec::new();
        let stable = self.times(count, time, |number| {
            let begin = self.clock.now();
            file.write_all_at(&data, number as u64 * bytes as u64 % file_bytes)?;
            written.push(self.clock.now().since(begin));
            file.sync_data()
        });
        let stable = stable.map_err(|cause| cause.in_("writing", &path))?;
        fs::remove_file(&path).map_err(|cause| failed("removing a file", &path, cause))?;
        Ok(Singles { bytes, written, stable })
    }

    /// The files that [`Self::crowd`] works on, for so many programs, with so many bytes to read.
    ///
    /// # Errors
    /// As the system says.
    pub fn prepare(&self, programs: usize, read_bytes: u64) -> Result<(), Error> {
        for program in 0..programs {
            self.written(&self.path(Kind::Write, program), FILE_BYTES)?;
        }
        self.written(&self.path(Kind::Read, 0), read_bytes)?;
        Ok(())
    }

    /// So many programs for so long, or until all is read, or each has made `calls_max` calls.
    ///
    /// # Errors
    /// As the system says.
    pub fn crowd(
        &self,
        kind: Kind,
        programs: usize,
        time: Nanos,
        calls_max: usize,
    ) -> Result<Crowd, Error> {
        let shared = self.path(Kind::Read, 0);
        let mut resident = None;
        let mut blocks = usize::MAX;
        if kind == Kind::Read {
            let failed = |cause| failed("dropping a file from memory", &shared, cause);
            cached::drop_pages(&shared).map_err(failed)?;
            let file_bytes = fs::metadata(&shared).map_err(failed)?.len();
            resident = cached::resident(&shared, file_bytes);
            blocks = usize::try_from(file_bytes / BLOCK_BYTES as u64).unwrap_or(usize::MAX);
            // The sample was read, and perhaps what is behind it.
            cached::drop_pages(&shared).map_err(failed)?;
        }
        let data = pattern(BLOCK_BYTES);
        let until = self.clock.now() + time;
        let workers = (0..programs).map(|number| {
            let path = self.path(kind, number);
            Worker { place: self, path, number, programs, blocks, until, calls_max, data: &data }
        });
        let ran: Vec<Result<Ran, Error>> = scope(|threads| {
            let started: Vec<_> = workers
                .map(|worker| {
                    let path = worker.path.clone();
                    let work = move || worker.run(kind);
                    Builder::new()
                        .spawn_scoped(threads, work)
                        .map_err(|cause| failed("starting a thread", &path, cause))
                })
                .collect();
            let ended = |_| Err(Error::Ended);
            started.into_iter().map(|one| one?.join().unwrap_or_else(ended)).collect()
        });
        let ran: Vec<Ran> = ran.into_iter().collect::<Result<_, Error>>()?;
        let begun = ran.iter().map(|one| one.begun).min();
        let ended = ran.iter().map(|one| one.ended).max();
        let span = begun.zip(ended).map_or(Nanos::ZERO, |(begun, ended)| ended.since(begun));
        Ok(Crowd { calls: ran.into_iter().flat_map(|one| one.calls).collect(), span, resident })
    }

    fn path(&self, kind: Kind, program: usize) -> PathBuf {
        match kind {
            Kind::Write => self.dir.join(format!("written-{program}")),
            Kind::Read => self.dir.join("read"),
        }
    }

    /// A file of so many bytes, stable, opened for writing.
    fn written(&self, path: &Path, file_bytes: u64) -> Result<File, Error> {
        let data = pattern(1 << 20);
        let write = || {
            let made = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
            let mut offset = 0;
            while offset < file_bytes && !self.is_stopped() {
                let left = usize::try_from(file_bytes - offset).unwrap_or(usize::MAX);
                let chunk = &data[..data.len().min(left)];
                made.write_all_at(chunk, offset)?;
                offset += chunk.len() as u64;
            }
            made.sync_all().map(|()| made)
        };
        let made = write().map_err(|cause| failed("writing a file", path, cause))?;
        if self.is_stopped() { Err(FloorError::Stopped.into()) } else { Ok(made) }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The time of each call, as many as `count`, and no call begins after `time`.
    fn times(
        &self,
        count: u32,
        time: Nanos,
        mut call: impl FnMut(usize) -> io::Result<()>,
    ) -> Result<Vec<Nanos>, Ended> {
        let begin = self.clock.now();
        let mut times = Vec::new();
        for number in 0..count.min(FILES_MAX) as usize {
            if self.is_stopped() {
                return Err(Ended::Stopped);
            }
            let before = self.clock.now();
            if number > 0 && before.since(begin) >= time {
                break;
            }
            call(number).map_err(Ended::Failed)?;
            times.push(self.clock.now().since(before));
        }
        Ok(times)
    }
}

/// Why a row of calls ended early.
enum Ended {
    Stopped,
    Failed(io::Error),
}

impl Ended {
    fn in_(self, doing: &'static str, path: &Path) -> Error {
        match self {
            Self::Stopped => FloorError::Stopped.into(),
            Self::Failed(cause) => failed(doing, path, cause),
        }
    }
}

fn failed(doing: &'static str, path: &Path, cause: io::Error) -> Error {
    Error::Local { doing, path: path.to_owned(), cause }
}

/// One of several programs.
struct Worker<'a> {
    place: &'a Place<'a>,
    path: PathBuf,
    number: usize,
    programs: usize,
    /// Blocks of the file that is read.
    blocks: usize,
    until: Instant,
    calls_max: usize,
    data: &'a Bytes,
}

struct Ran {
    calls: Vec<Nanos>,
    begun: Instant,
    ended: Instant,
}

impl Worker<'_> {
    fn run(&self, kind: Kind) -> Result<Ran, Error> {
        let clock = self.place.clock;
        let opened = match kind {
            Kind::Write => OpenOptions::new().write(true).open(&self.path),
            Kind::Read => File::open(&self.path),
        };
        let file = opened.map_err(|cause| failed("opening a file", &self.path, cause))?;
        // Nobody is to read ahead what another will be timed with.
        fadvise(&file, 0, None, Advice::Random).ok();
        let mut buffer = vec![0; BLOCK_BYTES];
        let (begun, mut calls) = (clock.now(), Vec::new());
        let mut before = begun;
        while calls.len() < self.calls_max && !self.place.is_stopped() {
            let call = match kind {
                Kind::Write => {
                    let offset = (calls.len() * BLOCK_BYTES) as u64 % FILE_BYTES;
                    file.write_all_at(self.data, offset).and_then(|()| file.sync_data())
                }
                Kind::Read => match self.block(calls.len()) {
                    Some(block) => file.read_exact_at(&mut buffer, (block * BLOCK_BYTES) as u64),
                    None => break,
                },
            };
            call.map_err(|cause| failed(doing(kind), &self.path, cause))?;
            let after = clock.now();
            calls.push(after.since(before));
            before = after;
            if before >= self.until {
                break;
            }
        }
        Ok(Ran { calls, begun, ended: before })
    }

    /// The block of a program's call: all blocks come once, in an order that no read-ahead knows.
    fn block(&self, call: usize) -> Option<usize> {
        let turn = call * self.programs + self.number;
        // An odd number and a power of two have no divisor in common: every block comes once.
        let all = 1 << self.blocks.max(1).ilog2();
        (turn < all).then(|| turn.wrapping_mul(SPREAD) % all)
    }
}

/// Odd, and near the golden section of a thousand: neighbours in time are none in the file.
const SPREAD: usize = 617;

const fn doing(kind: Kind) -> &'static str {
    match kind {
        Kind::Write => "writing",
        Kind::Read => "reading",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_place(test: impl FnOnce(&Place<'_>)) {
        let (dir, clock, stop) =
            (tempfile::tempdir().unwrap(), Clock::real(), AtomicBool::new(false));
        test(&Place { clock: &clock, dir: dir.path(), stop: &stop });
    }

    #[test]
    fn every_kind_of_call_is_timed_as_often_as_it_was_made() {
        with_place(|place| {
            let names = place.names(7, Nanos::from_secs(60)).unwrap();
            let counts = [&names.created, &names.known, &names.absent, &names.removed];
            assert!(counts.iter().all(|times| times.len() == 7), "{names:?}");
            assert_eq!(names.listed.unwrap().1, 7);
            let singles = place.singles(BLOCK_BYTES, 5, Nanos::from_secs(60)).unwrap();
            assert_eq!((singles.written.len(), singles.stable.len()), (5, 5));
            let both = singles.stable.iter().zip(&singles.written);
            assert!(both.clone().all(|(stable, written)| stable >= written), "{singles:?}");
        });
    }

    #[test]
    fn readers_share_all_blocks_of_a_file_and_writers_have_one_each() {
        with_place(|place| {
            place.prepare(3, 64 * BLOCK_BYTES as u64).unwrap();
            let read = place.crowd(Kind::Read, 3, Nanos::from_secs(60), usize::MAX).unwrap();
            assert_eq!(read.calls.len(), 64);
            assert!(read.mib_per_s() > 0.0);
            let written = place.crowd(Kind::Write, 3, Nanos::from_secs(60), 4).unwrap();
            assert_eq!(written.calls.len(), 12);
            assert_eq!(fs::read_dir(place.dir).unwrap().count(), 4);
        });
    }

    #[test]
    fn no_block_is_read_twice() {
        with_place(|place| {
            let data = Bytes::new();
            let worker = |number| Worker {
                place,
                path: PathBuf::new(),
                number,
                programs: 3,
                blocks: 100,
                until: place.clock.now(),
                calls_max: 0,
                data: &data,
            };
            let of = |number| (0..100).map_while(move |call| worker(number).block(call));
            let mut all: Vec<usize> = (0..3).flat_map(of).collect();
            all.sort_unstable();
            assert_eq!(all, (0..64).collect::<Vec<usize>>());
        });
    }

    #[test]
    fn who_is_stopped_ends_and_a_directory_that_is_gone_is_named() {
        with_place(|place| {
            place.stop.store(true, Ordering::Relaxed);
            let error = place.names(7, Nanos::from_secs(60)).unwrap_err();
            assert!(matches!(error, Error::Floor(FloorError::Stopped)), "{error}");
            let gone = place.dir.join("gone");
            let error = Place { dir: &gone, ..*place }.prepare(1, 1).unwrap_err();
            assert!(error.to_string().contains("gone"), "{error}");
        });
    }
}
