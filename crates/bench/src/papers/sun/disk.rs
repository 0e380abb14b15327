//! What disks are given to do: those of servers on this host as `/proc/diskstats` counts it, and
//! emulated ones.
//!
//! Linux counts a flush without data as a write, too, if the disk has a volatile cache. Then how
//! many writes had data is known within limits; of a disk without such a cache it is exact.

use std::fs;
use std::path::Path;

use counters::host::disk::{self, Disk as Counted};
use harness::exit::Failure;
use perf::model::disk::Counts;

const DISKSTATS: &str = "/proc/diskstats";
const ADVICE: &str =
    "the name of a whole disk in /proc/diskstats, such as nvme0n1 or sda, of the servers' disk";

/// What a disk has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Requests {
    pub(super) writes: u64,
    pub(super) flushes: u64,
    pub(super) bytes: u64,
    /// Of the writes, those that may have been a flush without data.
    pub(super) empty_max: u64,
}

impl Requests {
    /// Of an emulated disk.
    pub(super) fn of(counts: &Counts) -> Self {
        let Counts { writes, syncs, bytes_written, .. } = *counts;
        Self { writes, flushes: syncs, bytes: bytes_written, empty_max: 0 }
    }

    /// What came since `before`, of which each flush may be one of the writes.
    pub(super) fn since(&self, before: &Self) -> Self {
        let writes = self.writes.saturating_sub(before.writes);
        let flushes = self.flushes.saturating_sub(before.flushes);
        let bytes = self.bytes.saturating_sub(before.bytes);
        Self { writes, flushes, bytes, empty_max: self.empty_max.min(writes).min(flushes) }
    }

    /// Writes with data, as a number or its limits.
    pub(super) fn with_data(&self) -> String {
        match self.empty_max {
            0 => self.writes.to_string(),
            empty => format!("{}-{}", self.writes.saturating_sub(empty), self.writes),
        }
    }
}

/// The disk of a server, and that of its write log, if it is another.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Pair {
    pub(super) files: Option<Requests>,
    pub(super) log: Option<Requests>,
}

impl Pair {
    pub(super) fn since(&self, before: &Self) -> Self {
        let since = |now: Option<Requests>, before: Option<Requests>| {
            now.zip(before).map(|(now, before)| now.since(&before))
        };
        Self { files: since(self.files, before.files), log: since(self.log, before.log) }
    }
}

/// Disks of this host, by their names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) files: Option<&'a str>,
    pub(super) log: Option<&'a str>,
}

impl Named<'_> {
    /// What they have done so far.
    pub(super) fn read(&self) -> Result<Pair, Failure> {
        let of = |name: Option<&str>| name.map(requests).transpose();
        Ok(Pair { files: of(self.files)?, log: of(self.log)? })
    }

    /// What is to be known of the numbers of writes.
    pub(super) fn note(&self) -> Option<String> {
        let names = [self.files, self.log].into_iter().flatten();
        let cached: Vec<&str> = names.filter(|name| has_cache(name)).collect();
        let first = cached.first()?;
        Some(format!(
            "Linux counts a flush without data as a write of a disk that has a volatile cache \
             ({}): how many had data is known within limits. On a disk whose content is of no \
             worth it is exact after: echo write through >/sys/block/{first}/queue/write_cache",
            cached.join(", ")
        ))
    }
}

fn requests(name: &str) -> Result<Requests, Failure> {
    let text = fs::read(DISKSTATS).map_err(|cause| Failure::environment(cause, ADVICE))?;
    let disks = disk::read(&text).map_err(|why| Failure::environment(why, ADVICE))?;
    let found = disks.into_iter().find(|disk| disk.name == name);
    let missing = || Failure::environment(format!("{DISKSTATS} has no {name}"), ADVICE);
    let Counted { writes, flushes, bytes_written, .. } = found.ok_or_else(missing)?;
    if class(name).join("partition").exists() {
        let why = format!("{name} is a part of a disk, of which Linux counts no flushes");
        return Err(Failure::environment(why, ADVICE));
    }
    let empty_max = if has_cache(name) { u64::MAX } else { 0 };
    Ok(Requests { writes, flushes, bytes: bytes_written, empty_max })
}

/// Whether the kernel sends it flushes; it does unless it is known not to.
fn has_cache(name: &str) -> bool {
    let cache = fs::read_to_string(class(name).join("queue/write_cache"));
    !cache.is_ok_and(|cache| cache.trim_end() == "write through")
}

fn class(name: &str) -> std::path::PathBuf {
    // A name that was found in /proc/diskstats has no path in it; a / there stands as ! here.
    Path::new("/sys/class/block").join(name.replace('/', "!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(writes: u64, flushes: u64, empty_max: u64) -> Requests {
        Requests { writes, flushes, bytes: writes << 12, empty_max }
    }

    #[test]
    fn flushes_are_no_writes_where_that_is_known() {
        let begun = counted(1_000, 700, u64::MAX);
        let cached = counted(1_272, 839, u64::MAX).since(&begun);
        assert_eq!((cached.with_data().as_str(), cached.bytes), ("133-272", 272 << 12));
        // Each of few writes may be one.
        assert_eq!(counted(1_003, 709, u64::MAX).since(&begun).with_data(), "0-3");
        let through = counted(146, 0, 0).since(&counted(0, 0, 0));
        assert_eq!(through.with_data(), "146");
    }

    #[test]
    fn what_is_no_disk_is_named() {
        let error = format!("{:?}", requests("no-such-disk").unwrap_err());
        assert!(error.contains("no-such-disk"), "{error}");
        let unknown = Named { files: None, log: None };
        assert_eq!((unknown.read().unwrap(), unknown.note()), (Pair::default(), None));
    }
}
