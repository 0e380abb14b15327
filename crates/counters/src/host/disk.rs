//! `/proc/diskstats`: what each block device has done.

use super::nothing;
use crate::difference;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::{NUMBERS_MAX, bounded, first};

/// One device, or a part of one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Disk {
    pub name: String,
    pub reads: u64,
    pub read_ms: u64,
    /// Also flushes without data, where the disk has a volatile cache.
    pub writes: u64,
    pub bytes_written: u64,
    pub write_ms: u64,
    /// Time in which something was outstanding.
    pub busy_ms: u64,
    /// That time, multiplied with what was outstanding.
    pub outstanding_ms: u64,
    /// As the disk executed them; not counted for a part of a disk.
    pub flushes: u64,
    pub flush_ms: u64,
}

/// A sector, whatever the disk's are.
const SECTOR_BYTES: u64 = 512;

impl Disk {
    /// What came since `before`. Times are 32 bits.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            name: self.name.clone(),
            reads: difference(self.reads, before.reads),
            read_ms: difference(self.read_ms, before.read_ms),
            writes: difference(self.writes, before.writes),
            bytes_written: difference(self.bytes_written, before.bytes_written),
            write_ms: difference(self.write_ms, before.write_ms),
            busy_ms: difference(self.busy_ms, before.busy_ms),
            outstanding_ms: difference(self.outstanding_ms, before.outstanding_ms),
            flushes: difference(self.flushes, before.flushes),
            flush_ms: difference(self.flush_ms, before.flush_ms),
        }
    }

    /// Mean time of a request, with its wait.
    pub fn wait_ms(&self) -> Option<f64> {
        let requests = self.reads.saturating_add(self.writes);
        let ms = self.read_ms.saturating_add(self.write_ms);
        (requests > 0).then(|| ms as f64 / requests as f64)
    }
}

/// Reads the file's content.
///
/// # Errors
/// The first line that is broken, or none.
pub fn read(text: &[u8]) -> Result<Vec<Disk>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut disks = Vec::new();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        if line.trimmed().is_empty() {
            continue;
        }
        line.number()?;
        line.number()?;
        let name = line.word().text.to_owned();
        let numbers = line.numbers("a disk", 11, NUMBERS_MAX)?;
        disks.push(disk(name, first(&numbers)));
    }
    if disks.is_empty() { Err(nothing()) } else { Ok(disks) }
}

/// The fields of Documentation/admin-guide/iostats.rst, from the fourth of the line on.
fn disk(name: String, numbers: [u64; 17]) -> Disk {
    let [reads, _, _, read_ms, writes, _, sectors_written, write_ms, numbers @ ..] = numbers;
    let [_, busy_ms, outstanding_ms, _, _, _, _, flushes, flush_ms] = numbers;
    Disk {
        name,
        reads,
        read_ms,
        writes,
        bytes_written: sectors_written.saturating_mul(SECTOR_BYTES),
        write_ms,
        busy_ms,
        outstanding_ms,
        flushes,
        flush_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_lines_are_read() {
        let disks = read(
            b"   8       0 sda 100 0 800 400 50 0 400 600 0 700 1000 0 0 0 0 20 90\n\
              8 1 sda1 1 2 3 4 5 6 7 8 9 10 11\n",
        )
        .unwrap();
        assert_eq!((disks[0].flushes, disks[0].busy_ms, disks[0].outstanding_ms), (20, 700, 1_000));
        assert_eq!((disks[0].writes, disks[0].bytes_written), (50, 400 * 512));
        assert!((disks[0].wait_ms().unwrap() - 1_000.0 / 150.0).abs() < 1e-9);
        assert_eq!((disks[1].name.as_str(), disks[1].flushes), ("sda1", 0));
        assert_eq!(disks[0].since(&disks[0]).wait_ms(), None);
        assert!(read(b"8 0 sda 1 2").is_err() && read(b"").is_err());
    }
}
