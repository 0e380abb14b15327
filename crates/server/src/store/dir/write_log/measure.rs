//! What a log's device and the directory's take for a sync: measured at each start, because the
//! first decides how many frames are on their way at a time, and both whether the log is of use.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use log::BLOCK;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::file::{Aligned, LogFile};
use super::set::LogFiles;
use super::times::monotonic;

/// Syncs of each kind, at least; the middle one counts.
const SYNCS: usize = 7;
/// As many more as are done in so long, and no more than these.
const TIME: Duration = Duration::from_millis(20);
const SYNCS_MAX: usize = 31;

/// Blocks of a long frame: 64 KiB more than the shortest.
const LONG_BLOCKS: usize = 17;

/// Two frames at a time pay if the two take less than this many times one: else those who wait are
/// only cut into smaller groups.
const SIDE_BY_SIDE_MAX: f64 = 1.5;

/// How long 4 KiB take until they are stable.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Latencies {
    /// Written to the log.
    pub log: Duration,
    /// Each of two writes of the log at the same time.
    pub log_side_by_side: Duration,
    /// Written to the log right after a file of the directory has changed: a file system may write
    /// that one's inode along with the log's.
    pub log_used: Duration,
    /// The same of 68 KiB.
    pub log_long: Duration,
    /// Appended to a file of the directory, and that synced. Zero: no file can be made there.
    pub directory: Duration,
    /// Written over what that file has, and it synced.
    pub overwritten: Duration,
}

impl Latencies {
    /// On logs of which nothing is needed but a block of one of them, before `free`.
    pub(super) fn measure(
        logs: &LogFiles,
        (used, free): (usize, u64),
        root: &OwnedFd,
    ) -> std::io::Result<Vec<Self>> {
        let beside = Beside::make(root).ok();
        let syncs = beside.as_ref().map(Beside::syncs).transpose().unwrap_or_default();
        let (directory, overwritten) = syncs.unwrap_or_default();
        let each = logs.files.iter().enumerate().map(|(index, file)| {
            let free = if index == used { free } else { BLOCK as u64 };
            Ok(Self { directory, overwritten, ..Self::of_log(file, free, beside.as_ref())? })
        });
        each.collect()
    }

    fn of_log(file: &LogFile, free: u64, beside: Option<&Beside>) -> std::io::Result<Self> {
        // Beforehand: to get memory is no part of what a device takes.
        let (mut one, mut another) = (Aligned::default(), Aligned::default());
        let zeros = [0; LONG_BLOCKS * BLOCK];
        let (long, block) = (one.copy(&zeros), another.copy(&zeros[..BLOCK]));
        let step = BLOCK as u64;
        let fits = free + (SYNCS_MAX * zeros.len()) as u64 <= file.identity.bytes;
        let from = if fits { free } else { step };
        let write = |index: u64, bytes: &[u8]| {
            timed(|| file.write(from + index * bytes.len() as u64, bytes))
        };
        let used = |index: u64, bytes: &[u8]| {
            // One that cannot be changed is no reason not to serve.
            beside.and_then(|beside| beside.change(0).ok());
            write(index, bytes)
        };
        let both = |index: u64| {
            let at = from + 2 * index * step;
            timed(|| {
                thread::scope(|scope| {
                    let other = scope.spawn(|| file.write(at + step, block));
                    let first = file.write(at, &long[..BLOCK]);
                    let ended = Err(std::io::Error::other("its thread has ended"));
                    let second = other.join().unwrap_or(ended);
                    first.and(second)
                })
            })
        };
        Ok(Self {
            log: middle(|index| write(index, block))?,
            log_side_by_side: middle(both)?,
            log_used: middle(|index| used(index, block))?,
            log_long: middle(|index| used(index, long))?,
            ..Self::default()
        })
    }

    /// Each KiB more than a block's of a frame, us.
    pub fn log_us_per_kib(&self) -> f64 {
        let more_us = self.log_long.saturating_sub(self.log_used).as_secs_f64() * 1e6;
        more_us / ((LONG_BLOCKS - 1) * BLOCK / 1024) as f64
    }

    /// Of several logs: a frame is answered when those begun before it are there, so that the
    /// slowest counts.
    pub(super) fn slowest(each: &[Self]) -> Self {
        each.iter().copied().max_by_key(|one| one.log).unwrap_or_default()
    }

    /// How many frames are on their way at the same time.
    pub fn frames_at_a_time(&self) -> usize {
        let is_parallel = self.log_side_by_side < self.log.mul_f64(SIDE_BY_SIDE_MAX);
        1 + usize::from(is_parallel)
    }

    /// Whether a write of the log is stable no sooner than one of the directory: then it is of use
    /// only where many files are written at the same time.
    pub fn is_log_slow(&self) -> bool {
        !self.directory.is_zero() && self.log >= self.directory
    }
}

/// A file of the directory without a name, that no client sees.
struct Beside(OwnedFd);

impl Beside {
    fn make(root: &OwnedFd) -> Result<Self, Errno> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(root, c".", flags, Mode::RUSR).map(Self)
    }

    fn change(&self, block: u64) -> Result<(), Errno> {
        rustix::io::pwrite(self.0.as_fd(), &[0; BLOCK], block * BLOCK as u64).map(drop)
    }

    /// Of a block that is appended, and of one that is there.
    fn syncs(&self) -> Result<(Duration, Duration), Errno> {
        let sync = |block| timed(|| self.change(block).and_then(|()| rustix::fs::fsync(&self.0)));
        Ok((middle(sync)?, middle(|_| sync(0))?))
    }
}

fn timed<E>(work: impl FnOnce() -> Result<(), E>) -> Result<Duration, E> {
    let begin = monotonic();
    work()?;
    Ok(monotonic().saturating_sub(begin))
}

/// The middle one of several; each gets the number of those before it.
fn middle<E>(mut one: impl FnMut(u64) -> Result<Duration, E>) -> Result<Duration, E> {
    let mut took = Vec::new();
    while took.len() < SYNCS || (took.len() < SYNCS_MAX && took.iter().sum::<Duration>() < TIME) {
        took.push(one(took.len() as u64)?);
    }
    took.sort_unstable();
    Ok(took[took.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_frames_at_a_time_are_for_devices_that_take_them_side_by_side() {
        let of = |log, side_by_side, directory| {
            let [log, log_side_by_side, directory] =
                [log, side_by_side, directory].map(Duration::from_micros);
            Latencies { log, log_side_by_side, directory, ..Latencies::default() }
        };
        let disk = of(8_000, 16_000, 24_000);
        assert_eq!((disk.frames_at_a_time(), disk.is_log_slow()), (1, false));
        let flash = of(90, 110, 60);
        assert_eq!((flash.frames_at_a_time(), flash.is_log_slow()), (2, true));
        assert!(!of(90, 110, 0).is_log_slow(), "the directory's is not known");
    }

    #[test]
    fn the_middle_is_one_that_was_measured_and_few_count_where_each_takes_long() {
        let of = |took: &[u64]| {
            let mut times =
                took.iter().cycle().map(|ms| Ok::<_, Errno>(Duration::from_millis(*ms)));
            let mut measured = 0;
            let found = middle(|before| {
                measured = before + 1;
                times.next().unwrap()
            });
            (found.unwrap(), measured)
        };
        assert_eq!(of(&[9, 1, 5]), (Duration::from_millis(5), 7));
        assert_eq!(of(&[1]), (Duration::from_millis(1), 20));
        assert_eq!(of(&[0]), (Duration::ZERO, 31));
        assert!(middle(|_| Err::<Duration, _>(Errno::IO)).is_err());
    }

    #[test]
    fn a_long_frame_tells_the_rate() {
        let [log_used, log_long] = [100, 164].map(Duration::from_micros);
        let of = Latencies { log_used, log_long, ..Latencies::default() };
        assert!((of.log_us_per_kib() - 1.0).abs() < 1e-9);
        let shorter = Latencies { log_used: log_long, log_long: log_used, ..of };
        assert_eq!(shorter.log_us_per_kib(), 0.0);
    }
}
