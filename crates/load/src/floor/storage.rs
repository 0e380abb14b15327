//! What a local directory can do: the ceiling of every NFS server on it, to stand beside what NFS
//! does.
//!
//! Stresses the file system and what is below it: a fresh file written sequentially and synced,
//! read again from memory and then from below, and small appends, each made durable before the
//! next. The 2002 thesis has the same ceiling from `dd` and Bonnie (its disks wrote 32 to 40 MB/s);
//! the appends are those of a mail or database log, and what a server pays for a WRITE that is to
//! be FILE_SYNC.
//!
//! It differs in this: every number says what it survives and where its bytes came from. Before
//! the second read the file's pages are dropped (`posix_fadvise`, which anybody may, or the
//! system's whole cache, which root may), and the kernel says how much of the file is still in
//! memory (`RWF_NOWAIT` on a sample of pages). What lies below the kernel, a disk's own cache or a
//! hypervisor's, is not to be seen from here.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use net::clock::Clock;
use net::floor::error::FloorError;
use perf::units::Nanos;

use super::{Outcome, Progress};
use crate::cached;
use crate::cpu::{self, Usage};
use crate::error::Error;
use crate::seqwrite::pattern;
use crate::seqwrite_files::Fresh;

/// Bytes of an append: a page, and the block of most file systems.
pub const APPEND_BYTES: usize = 4 << 10;
/// Written before what counts.
const WARM_UP_BYTES_MAX: u64 = 16 << 20;
const WARM_UP_APPENDS_MAX: u32 = 16;
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// What to measure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    pub dir: PathBuf,
    pub file_bytes: u64,
    /// Bytes of a read or write, above zero.
    pub call_bytes: usize,
    pub repeats: u32,
    pub appends: u32,
    /// Ends the appends of a repetition, should it come before their number.
    pub append_time_max: Nanos,
    /// Drops the caches of the whole system before files are read.
    pub drop_caches: bool,
}

/// One repetition; what it did not come to is empty.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// From the first call to the last one's return, and to that of fsync.
    pub written: Option<Nanos>,
    pub flushed: Option<Nanos>,
    /// The read at once after it, and how much of the file was in memory then.
    pub read: Option<Nanos>,
    pub read_resident: Option<f64>,
    /// The read after the file was dropped, and how much of it was in memory all the same.
    pub reread: Option<Nanos>,
    pub reread_resident: Option<f64>,
    /// Each append with its fdatasync.
    pub appends: Vec<Nanos>,
    /// Processor time of this process, and of the whole machine.
    pub cpu: Nanos,
    pub machine_cpu: Option<Nanos>,
    /// From the first call to the end.
    pub span: Nanos,
}

/// See [`run`].
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub runs: Vec<Run>,
    /// Why the system's caches were not dropped.
    pub not_dropped: Option<String>,
}

/// Runs everything, on files that are removed at the end. Blocks.
pub fn run(
    clock: &Clock,
    plan: &Plan,
    name: &str,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Outcome<Measured> {
    let mut measured = Measured::default();
    let data = pattern(plan.call_bytes);
    let warm_up = Plan {
        file_bytes: plan.file_bytes.min(WARM_UP_BYTES_MAX),
        appends: plan.appends.min(WARM_UP_APPENDS_MAX),
        ..plan.clone()
    };
    let mut work = Work { clock, plan: &warm_up, name, stop, data, not_dropped: None };
    let mut failed = work.one(&mut Run::default(), &mut |_| {}).err();
    work.plan = plan;
    for repeat in 0..plan.repeats {
        if failed.is_some() {
            break;
        }
        let mut run = Run::default();
        let mut observe = |share| progress((f64::from(repeat) + share) / f64::from(plan.repeats));
        failed = work.one(&mut run, &mut observe).err();
        if run.written.is_some() {
            measured.runs.push(run);
        }
    }
    measured.not_dropped = work.not_dropped;
    Outcome { measured, failed }
}

struct Work<'a> {
    clock: &'a Clock,
    plan: &'a Plan,
    name: &'a str,
    stop: &'a AtomicBool,
    data: Bytes,
    not_dropped: Option<String>,
}

impl Work<'_> {
    /// One repetition, as far as it comes.
    fn one(&mut self, run: &mut Run, observe: &mut dyn FnMut(f64)) -> Result<(), Error> {
        let (cpu, machine_cpu, started) = (Usage::now(), cpu::machine(), self.clock.now());
        let outcome = self.phases(run, observe);
        run.span = self.clock.now().since(started);
        run.cpu = Usage::now().since(cpu).process;
        let machine_cpu = cpu::machine().zip(machine_cpu);
        run.machine_cpu = machine_cpu.map(|(now, before)| now.saturating_sub(before));
        outcome
    }

    fn phases(&mut self, run: &mut Run, observe: &mut dyn FnMut(f64)) -> Result<(), Error> {
        let (fresh, mut file) = Fresh::make(&self.plan.dir, self.name)?;
        let started = self.clock.now();
        let mut rest = self.plan.file_bytes;
        while rest > 0 {
            self.go_on()?;
            let count = usize::try_from(rest).unwrap_or(usize::MAX).min(self.data.len());
            file.write_all(&self.data[..count])
                .map_err(|cause| fresh.failed("writing a file", cause))?;
            rest -= count as u64;
        }
        run.written = Some(self.clock.now().since(started));
        file.sync_all().map_err(|cause| fresh.failed("syncing a file", cause))?;
        run.flushed = Some(self.clock.now().since(started));
        drop(file);
        observe(0.4);
        run.read_resident = cached::resident(&fresh.path, self.plan.file_bytes);
        run.read = Some(self.read(&fresh)?);
        observe(0.5);
        self.forget(&fresh)?;
        run.reread_resident = cached::resident(&fresh.path, self.plan.file_bytes);
        run.reread = Some(self.read(&fresh)?);
        drop(fresh);
        observe(0.7);
        self.append(run)
    }

    fn go_on(&self) -> Result<(), Error> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(FloorError::Stopped.into()),
            false => Ok(()),
        }
    }

    /// Reads the file from its beginning to its end.
    fn read(&self, fresh: &Fresh) -> Result<Nanos, Error> {
        let failed = |cause| fresh.failed("reading a file", cause);
        let mut file = File::open(&fresh.path).map_err(failed)?;
        let mut buffer = vec![0; self.plan.call_bytes];
        let started = self.clock.now();
        let mut bytes = 0;
        loop {
            self.go_on()?;
            let count = file.read(&mut buffer).map_err(failed)?;
            if count == 0 {
                break;
            }
            bytes += count as u64;
        }
        let span = self.clock.now().since(started);
        match bytes == self.plan.file_bytes {
            true => Ok(span),
            false => Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Drops the file from memory, as far as we may.
    fn forget(&mut self, fresh: &Fresh) -> Result<(), Error> {
        let failed = |cause| fresh.failed("dropping a file from memory", cause);
        cached::drop_pages(&fresh.path).map_err(failed)?;
        if self.plan.drop_caches {
            let dropped = OpenOptions::new()
                .write(true)
                .open(DROP_CACHES)
                .and_then(|mut caches| caches.write_all(b"1\n"));
            self.not_dropped = dropped.err().map(|cause| format!("{DROP_CACHES}: {cause}"));
        }
        Ok(())
    }

    /// Appends to a fresh file, each made durable before the next.
    fn append(&self, run: &mut Run) -> Result<(), Error> {
        let (fresh, mut file) = Fresh::make(&self.plan.dir, self.name)?;
        let page = pattern(APPEND_BYTES);
        let started = self.clock.now();
        let mut before = started;
        for _ in 0..self.plan.appends {
            self.go_on()?;
            file.write_all(&page)
                .and_then(|()| file.sync_data())
                .map_err(|cause| fresh.failed("appending to a file", cause))?;
            let after = self.clock.now();
            run.appends.push(after.since(before));
            before = after;
            if after.since(started) >= self.plan.append_time_max {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn plan(dir: &Path) -> Plan {
        Plan {
            dir: dir.to_owned(),
            file_bytes: 1_000_000,
            call_bytes: 65_536,
            repeats: 2,
            appends: 5,
            append_time_max: Nanos::from_secs(60),
            drop_caches: false,
        }
    }

    #[test]
    fn every_part_is_measured_and_nothing_is_left() {
        let (dir, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let mut shares = Vec::new();
        let mut observe = |share| shares.push(share);
        let outcome = run(&Clock::real(), &plan(dir.path()), "t", &stop, &mut observe);
        assert!(outcome.failed.is_none(), "{outcome:?}");
        let runs = outcome.measured.runs;
        assert_eq!(runs.len(), 2);
        for run in runs {
            assert!(run.flushed >= run.written && run.written > Some(Nanos::ZERO), "{run:?}");
            assert!(run.read.is_some() && run.reread.is_some());
            assert!(run.read_resident.is_none_or(|share| share > 0.9), "{run:?}");
            assert_eq!(run.appends.len(), 5);
        }
        assert!(shares.is_sorted() && shares.len() == 6, "{shares:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_stop_and_a_failure_keep_what_there_is_and_remove_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        // At the first repetition's read we are stopped.
        let mut observe = |share| stop.store(share > 0.1, Ordering::Relaxed);
        let outcome = run(&Clock::real(), &plan(dir.path()), "t", &stop, &mut observe);
        assert!(matches!(outcome.failed, Some(Error::Floor(FloorError::Stopped))));
        let [only] = &outcome.measured.runs[..] else { panic!("{outcome:?}") };
        assert!(only.flushed.is_some() && only.read.is_none() && only.appends.is_empty());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let absent = Plan { dir: dir.path().join("absent"), ..plan(dir.path()) };
        let stop = AtomicBool::new(false);
        let outcome = run(&Clock::real(), &absent, "t", &stop, &mut |_| {});
        assert!(matches!(outcome.failed, Some(Error::Local { .. })));
        assert!(outcome.measured.runs.is_empty());
    }
}
