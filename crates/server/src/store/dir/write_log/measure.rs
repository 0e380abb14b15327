//! What a log's device and the directory's take for a sync: measured at each start, because the
//! first decides how many frames are on their way at a time, and both whether the log is of use.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use log::BLOCK;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::file::{Aligned, LogFile};
use super::set::LogFiles;

/// Syncs of each kind; the middle one counts.
const SYNCS: usize = 7;

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
    /// Appended to a file of the directory, and that synced. Zero: no file can be made there.
    pub directory: Duration,
}

impl Latencies {
    /// On logs of which nothing is needed but a block of one of them, before `free`.
    pub(super) fn measure(
        logs: &LogFiles,
        (used, free): (usize, u64),
        root: &OwnedFd,
    ) -> std::io::Result<Vec<Self>> {
        let directory = directory(root).unwrap_or_default();
        let each = logs.files.iter().enumerate().map(|(index, file)| {
            let free = if index == used { free } else { BLOCK as u64 };
            Ok(Self { directory, ..Self::of_log(file, free)? })
        });
        each.collect()
    }

    fn of_log(file: &LogFile, free: u64) -> std::io::Result<Self> {
        let (mut alone, mut both) = (Vec::new(), Vec::new());
        // Beforehand: to get memory is no part of what a device takes.
        let (mut one, mut another) = (Aligned::default(), Aligned::default());
        let block = [0; BLOCK];
        let (one, another) = (one.copy(&block), another.copy(&block));
        let step = BLOCK as u64;
        let fits = free + 2 * step * SYNCS as u64 <= file.identity.bytes;
        let from = if fits { free } else { step };
        for index in 0..SYNCS as u64 {
            let at = from + index * 2 * step;
            alone.push(timed(|| file.write(at, one))?);
            both.push(timed(|| {
                let other = || file.write(at + step, another);
                let [first, second] = thread::scope(|scope| {
                    let other = scope.spawn(other);
                    let first = file.write(at, one);
                    let ended = Err(std::io::Error::other("its thread has ended"));
                    [first, other.join().unwrap_or(ended)]
                });
                first.and(second)
            })?);
        }
        let (log, log_side_by_side) = (middle(alone), middle(both));
        Ok(Self { log, log_side_by_side, ..Self::default() })
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

/// A file without a name, that no client sees.
fn directory(root: &OwnedFd) -> Result<Duration, Errno> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(root, c".", flags, Mode::RUSR)?;
    let mut took = Vec::new();
    for index in 0..SYNCS as u64 {
        took.push(timed(|| {
            rustix::io::pwrite(file.as_fd(), &[0; BLOCK], index * BLOCK as u64)?;
            rustix::fs::fsync(&file)
        })?);
    }
    Ok(middle(took))
}

fn timed<E>(work: impl FnOnce() -> Result<(), E>) -> Result<Duration, E> {
    let now = || {
        let time = clock_gettime(ClockId::Monotonic);
        let part = |number: i64| u64::try_from(number).unwrap_or(0);
        Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
    };
    let begin = now();
    work()?;
    Ok(now().saturating_sub(begin))
}

fn middle(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took.get(took.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_frames_at_a_time_are_for_devices_that_take_them_side_by_side() {
        let of = |log, side_by_side, directory| {
            let [log, log_side_by_side, directory] =
                [log, side_by_side, directory].map(Duration::from_micros);
            Latencies { log, log_side_by_side, directory }
        };
        let disk = of(8_000, 16_000, 24_000);
        assert_eq!((disk.frames_at_a_time(), disk.is_log_slow()), (1, false));
        let flash = of(90, 110, 60);
        assert_eq!((flash.frames_at_a_time(), flash.is_log_slow()), (2, true));
        assert!(!of(90, 110, 0).is_log_slow(), "the directory's is not known");
    }

    #[test]
    fn the_middle_is_one_that_was_measured() {
        let took = [9, 1, 5].map(Duration::from_micros);
        assert_eq!(middle(took.to_vec()), Duration::from_micros(5));
    }
}
