//! A disk as a queue: when a read, a write or a sync that is requested now will be done.
//!
//! ```text
//!   request --> line --> seek + rotation + access --> transfer --> done
//!                        none when it goes on where    bytes / rate, one
//!                        the one before it ended       rate for all
//! ```
//!
//! `parallel` requests are worked on at once and share the transfer rate. Between requests the head
//! stays where it was; a seek takes longer the farther it goes, and the platter turns with time, so
//! that nothing here needs randomness. A sync waits for all requests before it and takes its own
//! time. What is written is on the medium when its write is done: a write cache that can lose it is
//! a fault, not a feature (see the stores that use this).
//!
//! Not modelled: zones (the rate is the same everywhere), reordering of the queue, bad sectors,
//! garbage collection.

mod profile;
mod rate;

use crate::units::{Instant, Nanos};

use self::rate::Rate;
use super::station::Station;

pub use self::profile::{PROFILES, Profile, ProfileError};

/// The state of one disk. Requests have to be given in the order of their times.
#[derive(Clone, Debug)]
pub struct Disk {
    profile: Profile,
    station: Station,
    rate: Rate,
    /// Where the request before ended.
    head: u64,
    /// Of 100, what everything takes; more is a disk that has become slow.
    slowness_percent: u64,
    counts: Counts,
}

/// What a disk did so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    pub reads: u64,
    pub writes: u64,
    pub syncs: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Requests that did not go on where the one before ended.
    pub seeks: u64,
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

impl Disk {
    pub fn new(profile: Profile) -> Self {
        Self {
            station: Station::new(profile.parallel),
            profile,
            rate: Rate::default(),
            head: 0,
            slowness_percent: 100,
            counts: Counts::default(),
        }
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// From now on everything takes `percent` of what it should; less than 1 is taken as 1.
    pub fn slow_down(&mut self, percent: u64) {
        self.slowness_percent = percent.max(1);
    }

    /// When `bytes` at `address` are read.
    pub fn read(&mut self, now: Instant, address: u64, bytes: u64) -> Instant {
        self.counts.reads += 1;
        self.counts.bytes_read += bytes;
        self.transfer(now, address, bytes, Direction::Read)
    }

    /// When `bytes` at `address` are written.
    pub fn write(&mut self, now: Instant, address: u64, bytes: u64) -> Instant {
        self.counts.writes += 1;
        self.counts.bytes_written += bytes;
        self.transfer(now, address, bytes, Direction::Write)
    }

    /// When all that was requested before is done, and a sync after it.
    pub fn sync(&mut self, now: Instant) -> Instant {
        self.counts.syncs += 1;
        let before = now.max(self.station.idle_at());
        self.station.claim(before, scaled(self.profile.sync, self.slowness_percent))
    }

    fn transfer(
        &mut self,
        now: Instant,
        address: u64,
        bytes: u64,
        direction: Direction,
    ) -> Instant {
        let profile = self.profile;
        let (access, ps_per_byte) = match direction {
            Direction::Read => (profile.read_access, profile.read_ps_per_byte),
            Direction::Write => (profile.write_access, profile.write_ps_per_byte),
        };
        let picoseconds = u128::from(bytes) * u128::from(ps_per_byte);
        let transfer = Nanos::from_nanos(u64::try_from(picoseconds / 1000).unwrap_or(u64::MAX));
        let transfer = scaled(transfer, self.slowness_percent);
        let (head, slowness) = (self.head, self.slowness_percent);
        if address != head {
            self.counts.seeks += 1;
        }
        self.head = address.saturating_add(bytes);
        let rate = &mut self.rate;
        self.station.claim_with(now, |begins| {
            let placed = begins + scaled(profile.placing(head, address, begins) + access, slowness);
            (placed + transfer).max(rate.claim(now, begins, transfer)).since(begins)
        })
    }

    /// Requests in work at `now`.
    pub fn busy_at(&self, now: Instant) -> usize {
        self.station.busy_at(now)
    }

    /// Share of the time until `now` in which it worked, of 1: of what it does at once, or of its
    /// rate, whichever is more.
    pub fn utilization(&self, now: Instant) -> f64 {
        let time = now.since(Instant::EPOCH).as_secs_f64();
        let of_rate = if time > 0.0 { self.transferred_by(now).as_secs_f64() / time } else { 0.0 };
        self.station.utilization(now).max(of_rate)
    }

    /// Work done by `now`, over all that it does at once.
    pub fn busy_by(&self, now: Instant) -> Nanos {
        self.station.busy_by(now)
    }

    /// How long its rate was used by `now`: the limit of transfers that share it, however few are
    /// in work.
    pub fn transferred_by(&self, now: Instant) -> Nanos {
        self.rate.used_by(now)
    }

    /// How long requests waited in line, together.
    pub fn waited(&self) -> Nanos {
        self.station.waited()
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }
}

fn scaled(span: Nanos, percent: u64) -> Nanos {
    if percent == 100 { span } else { span * percent / 100 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Profile {
        text.parse().unwrap()
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_disk_of_the_thesis_writes_a_block_in_176_us() {
        let mut disk = Disk::new(profile("rate=46.55MB/s,seek=0"));
        let one = disk.write(at(0), 0, 8192).as_nanos();
        assert_eq!(one, 175_980);
        assert_eq!(disk.write(at(0), 1 << 30, 8192).as_nanos(), 2 * one);
        assert_eq!(disk.sync(at(0)).as_nanos(), 2 * one);
    }

    #[test]
    fn what_goes_on_where_the_last_ended_pays_no_seek() {
        let mut disk = Disk::new(profile("hdd"));
        let first = disk.write(at(0), 1 << 30, 1 << 20);
        let second = disk.write(first, (1 << 30) + (1 << 20), 1 << 20);
        let transfer = Nanos::from_nanos((1 << 20) * disk.profile().write_ps_per_byte / 1000);
        assert_eq!(second.since(first), transfer);
        let far = disk.write(second, 500 << 30, 4096).since(second);
        assert!(far > Nanos::from_millis(5) && far < Nanos::from_millis(30), "{far}");
        assert_eq!(disk.counts().seeks, 2);
    }

    #[test]
    fn random_reads_of_a_disk_take_its_average_seek_and_half_a_turn() {
        let mut disk = Disk::new(profile("hdd"));
        let (mut now, mut random) = (at(0), 0x9e37_79b9_7f4a_7c15_u64);
        let reads = 20_000;
        for _ in 0..reads {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            now = disk.read(now, random % disk.profile().capacity_bytes, 4096);
        }
        let mean_ms = now.since(at(0)).as_millis_f64() / f64::from(reads);
        let expected_ms = 7.4 + 8.333 / 2.0;
        assert!((mean_ms / expected_ms - 1.0).abs() < 0.05, "{mean_ms} of {expected_ms}");
    }

    #[test]
    fn parallel_requests_share_the_rate_and_overlap_their_access_times() {
        let mut disk = Disk::new(profile("rate=1000MB/s,access=100us,parallel=8"));
        let ends: Vec<_> = (0..8).map(|i| disk.read(at(0), i << 30, 100_000).as_nanos()).collect();
        // 100 us of access and 100 us of transfer, of which one follows the other.
        assert_eq!(ends[..3], [200_000, 200_000, 300_000]);
        assert_eq!(ends[7], 800_000);
        let mut one = Disk::new(profile("rate=1000MB/s,access=100us"));
        assert_eq!(one.read(at(0), 0, 100_000).as_nanos(), 200_000);
        assert_eq!(one.read(at(0), 1 << 30, 100_000).as_nanos(), 400_000);
    }

    #[test]
    fn a_few_requests_that_use_all_of_the_rate_make_a_busy_disk() {
        let mut disk = Disk::new(profile("rate=1000MB/s,access=100us,parallel=64"));
        // Two at a time, of which each takes a millisecond of the rate.
        let mut done = [at(0); 2];
        for number in 0..100 {
            done[number % 2] = disk.write(done[number % 2], 0, 1_000_000);
        }
        let end = done[1];
        assert_eq!(disk.transferred_by(end), Nanos::from_millis(100));
        assert!(disk.busy_by(end) < end.since(at(0)) * 3, "of 64 slots");
        assert!(disk.utilization(end) > 0.99, "{}", disk.utilization(end));
    }

    #[test]
    fn a_disk_that_has_become_slow_takes_longer_for_everything() {
        let mut disk = Disk::new(profile("rate=1MB/s,access=1ms,sync=5ms"));
        disk.slow_down(1000);
        assert_eq!(disk.write(at(0), 0, 1000), at(20_000_000));
        assert_eq!(disk.sync(at(0)), at(70_000_000));
    }
}
