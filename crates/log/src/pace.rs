//! How fast stable WRITEs come into a log that fills, so that writers feel the disk behind it all
//! the time a little, and not at first nothing and then the whole of a sweep at once. A decision:
//! whoever holds a pace does the waiting.
//!
//! A sweep syncs the files that have records: what the log held when it began is free when it ends.
//! So the last sweeps tell how long the disk takes for a byte of the log, and one that runs tells
//! how long it takes at least. Up to a quarter of the room for data a WRITE waits for nothing; from
//! there on a share `p` of the rest is in use, and it waits
//!
//! ```text
//!   bytes * time of a byte * p^2 / (1 - p)
//! ```
//!
//! Where p is 0.62, that is as fast as the disk. A log before a disk that is faster than those who
//! write stays far below, where the wait is nothing; one before a slow disk fills the slower the
//! fuller it is, and does not get full.

use std::time::Duration;

/// Shorter waits are owed until there is more of them: a thread that sleeps is late by some 0.1 ms.
const SHORTEST: Duration = Duration::from_millis(1);

/// Guess: far below the time after which a client sends a call again. What a sweep that hangs holds
/// back comes in by then, as long as there is room.
const LONGEST: Duration = Duration::from_secs(10);

/// The bytes of all logs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Load {
    /// In use or on their way, but for those that the next frame notes as free.
    pub used: u64,
    /// As many may be in use when data are admitted.
    pub room: u64,
}

impl Load {
    /// In use without anybody waiting, and without a sweep: guess. A lower one has a sweep for
    /// less; a higher one leaves less to slow writers down in.
    fn unhurried(&self) -> u64 {
        self.room / 4
    }

    /// A sweep of less shows more of the disk's latency than of its rate.
    fn telling(&self) -> u64 {
        self.unhurried() / 4
    }

    /// Whether it is time to make files past their records.
    pub fn is_filling(&self) -> bool {
        self.used > self.unhurried()
    }

    /// p^2 / (1 - p).
    fn pressure(&self) -> f64 {
        let used = self.used.saturating_sub(self.unhurried()) as f64;
        let left = self.room.saturating_sub(self.used).max(1) as f64;
        used * used / ((used + left) * left)
    }
}

/// See the module's head. Times are since whenever, the same for all.
#[derive(Debug, Default)]
pub struct Pace {
    /// What a byte of the log takes until it is free, in seconds, as the last sweeps had it; 0 is
    /// unknown.
    byte_s: f64,
    /// The sweep that runs: since when, and how much it makes free.
    sweep: Option<(Duration, u64)>,
    /// When the disk is done with what has come in, at the pace of that time.
    due: Duration,
}

impl Pace {
    pub fn sweep_begins(&mut self, now: Duration, load: Load) {
        self.sweep = Some((now, load.used));
    }

    /// Whoever waits may come in, and the next ones at the new pace.
    pub fn sweep_ended(&mut self, now: Duration, load: Load) {
        let is_telling = |(_, bytes): &(Duration, u64)| *bytes >= load.telling();
        if let Some((began, bytes)) = self.sweep.take().filter(is_telling) {
            let latest = now.saturating_sub(began).as_secs_f64() / bytes.max(1) as f64;
            let is_known = self.byte_s > 0.0;
            self.byte_s = if is_known { (self.byte_s + latest) / 2.0 } else { latest };
        }
        self.due = now;
    }

    /// When a WRITE that takes so many bytes of the log may come in: now, or at a later time. The
    /// next one is admitted when this one is in.
    pub fn admit(&mut self, now: Duration, bytes: u64, load: Load) -> Duration {
        let running = self.sweep.map_or(0.0, |(began, swept)| {
            now.saturating_sub(began).as_secs_f64() / swept.max(load.telling()).max(1) as f64
        });
        let wait = bytes as f64 * self.byte_s.max(running) * load.pressure();
        self.due = self.due.max(now) + Duration::from_secs_f64(wait.min(LONGEST.as_secs_f64()));
        if self.due < now + SHORTEST { now } else { self.due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: u64 = 8 << 20;
    /// Of a WRITE of 16 KiB.
    const COST: u64 = 20 << 10;

    /// Writers that wait for each WRITE, a log, and a disk with this rate behind it, which sweeps
    /// as soon as it is time to.
    struct World {
        now: Duration,
        disk: f64,
        used: u64,
        swept: Option<(Duration, u64)>,
        pace: Pace,
        refused: u32,
    }

    impl World {
        fn new(disk: f64) -> Self {
            let (now, pace) = (Duration::from_secs(100), Pace::default());
            Self { now, disk, used: 0, swept: None, pace, refused: 0 }
        }

        fn load(&self) -> Load {
            Load { used: self.used, room: ROOM }
        }

        /// Time passes, in which a sweep may end; one that is due begins.
        fn pass(&mut self, until: Duration) {
            if let Some((end, bytes)) = self.swept.take_if(|(end, _)| *end <= until) {
                self.used -= bytes;
                self.pace.sweep_ended(end, self.load());
                self.now = end;
            }
            self.now = self.now.max(until);
            if self.swept.is_none() && self.load().is_filling() {
                let latency = Duration::from_millis(5);
                let takes = latency + Duration::from_secs_f64(self.used as f64 / self.disk);
                self.swept = Some((self.now + takes, self.used));
                self.pace.sweep_begins(self.now, self.load());
            }
        }

        /// So many WRITEs, of which each takes the log `alone`; how long each has waited.
        fn write(&mut self, count: u32, alone: Duration) -> Vec<Duration> {
            let one = |_| {
                let (began, load) = (self.now, self.load());
                let due = self.pace.admit(self.now, COST, load);
                let end = self.swept.map_or(due, |(end, _)| end);
                self.pass(due.min(end.max(began)));
                while self.used + COST > ROOM {
                    self.refused += 1;
                    self.pass(self.swept.map_or(self.now, |(end, _)| end));
                }
                self.used += COST;
                self.pass(self.now + alone);
                self.now - began
            };
            (0..count).map(one).collect()
        }
    }

    #[test]
    fn a_log_before_a_slow_disk_holds_writers_back_smoothly() {
        // From one that takes half of what comes to one that takes a hundredth of it.
        for disk in [8e6, 4e6, 1.5e6, 0.5e6, 0.15e6] {
            let mut world = World::new(disk);
            let took = world.write(5000, Duration::from_millis(1));
            let on_the_disk = Duration::from_secs_f64(COST as f64 / disk);
            let longest = took.iter().max().unwrap();
            assert!(*longest < 15 * on_the_disk, "{disk}: {longest:?} of {on_the_disk:?}");
            assert_eq!(world.refused, 0, "{disk}");
            // From here on the log gives no more than the disk takes, and no less.
            let began = world.now;
            world.write(5000, Duration::from_millis(1));
            let share = (on_the_disk * 5000).as_secs_f64() / (world.now - began).as_secs_f64();
            assert!((0.9..1.1).contains(&share), "{disk}: {share}");
        }
    }

    #[test]
    fn a_disk_that_takes_what_comes_holds_nobody_back() {
        for disk in [40e6, 100e6, 1e9] {
            let mut world = World::new(disk);
            let began = world.now;
            world.write(5000, Duration::from_millis(1));
            let shares = 5.0 / (world.now - began).as_secs_f64();
            assert!(shares > 0.99, "{disk}: {shares}");
        }
    }

    #[test]
    fn a_disk_that_gets_slow_is_met_before_its_sweep_has_ended() {
        let mut world = World::new(200e6);
        world.write(5000, Duration::from_millis(1));
        world.disk = 1.5e6;
        let took = world.write(5000, Duration::from_millis(1));
        assert!(
            took.iter().max().unwrap() < &Duration::from_millis(300),
            "{:?}",
            took.iter().max()
        );
        assert_eq!(world.refused, 0);
    }

    #[test]
    fn a_log_that_does_not_fill_takes_no_time() {
        let mut pace = Pace::default();
        let (second, load) = (Duration::from_secs(1), Load { used: ROOM / 4, room: ROOM });
        pace.sweep_begins(Duration::ZERO, load);
        assert_eq!(pace.admit(second, COST, load), second);
        let fuller = Load { used: ROOM / 2, ..load };
        assert!(pace.admit(second, COST, fuller) > second);
        pace.sweep_ended(2 * second, load);
        assert_eq!(pace.admit(2 * second, COST, load), 2 * second);
    }

    #[test]
    fn a_sweep_of_a_little_that_takes_long_shows_no_rate() {
        let mut pace = Pace::default();
        let (second, load) = (Duration::from_secs(1), Load { used: 4096, room: ROOM });
        pace.sweep_begins(Duration::ZERO, load);
        let fuller = Load { used: ROOM / 2, ..load };
        assert!(pace.admit(second, COST, fuller) < second + Duration::from_millis(50));
        pace.sweep_ended(second, load);
        assert_eq!(pace.admit(2 * second, COST, fuller), 2 * second);
    }
}
