//! When memory that was needed under load goes back to the system.
//!
//! The allocator keeps what is freed: a server that once held 1 GiB of replies had still 1 GiB half
//! an hour later. Giving it back costs as much as getting it again, so it is done when much was
//! in flight, little is now, and that has been so for a while.

use perf::units::Nanos;

use crate::clock::Clock;

/// How often it is looked.
const LOOK_INTERVAL: Nanos = Nanos::from_secs(1);

/// Less than this is not worth it.
const PEAK_BYTES_MIN: u64 = 32 << 20;

/// Looks in a row, with little in flight, before memory is given back.
const QUIET_LOOKS: u32 = 5;

/// Little, as a part of what there was.
const QUIET_PART: u64 = 8;

/// Says when it is time; to be shown what is in flight every second or so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slack {
    /// Most bytes since memory was last given back.
    peak_bytes: u64,
    /// Looks in a row that saw little.
    quiet: u32,
}

impl Slack {
    /// Gives memory back when it is time, for as long as it is polled. `look` says how much is in
    /// flight, as [`Self::is_due`] wants it; `release` lets go of what is pooled.
    pub async fn watch(mut self, clock: Clock, look: impl Fn() -> (u64, u64), release: impl Fn()) {
        loop {
            clock.sleep(LOOK_INTERVAL).await;
            let (peak_bytes, bytes) = look();
            if self.is_due(peak_bytes, bytes) {
                release();
                begin_to_give_back();
            }
        }
    }

    /// `peak_bytes` is the most since the last look, or 0.
    pub fn is_due(&mut self, peak_bytes: u64, bytes: u64) -> bool {
        self.peak_bytes = self.peak_bytes.max(peak_bytes).max(bytes);
        if self.peak_bytes < PEAK_BYTES_MIN {
            return false;
        }
        let is_quiet = bytes.max(peak_bytes) <= self.peak_bytes / QUIET_PART;
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        let is_due = self.quiet == QUIET_LOOKS;
        if is_due {
            *self = Self::default();
        }
        is_due
    }
}

/// Gives memory back in a thread of its own: it takes tens of milliseconds for each GiB, in which
/// nobody is to wait for this one.
pub fn begin_to_give_back() {
    std::thread::Builder::new().spawn(give_back).ok();
}

/// Has the allocator give back what it keeps free, where it has a call for it.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[allow(unsafe_code, reason = "the allocator's own function has no other interface")]
        // SAFETY: malloc_trim(3) takes a number, and may be called at any time by any thread.
        let _has_given = unsafe { nix::libc::malloc_trim(0) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::clock::world::World;

    const MIB: u64 = 1 << 20;

    /// How many looks until it is due, when so much is in flight at each.
    fn looks(slack: &mut Slack, seen: impl Fn(u32) -> u64) -> Option<u32> {
        (1..1000).find(|&look| slack.is_due(seen(look), 0))
    }

    #[test]
    fn memory_goes_back_once_after_load_and_not_during_it() {
        let mut slack = Slack::default();
        assert_eq!(looks(&mut slack, |look| if look < 20 { 900 * MIB } else { MIB }), Some(24));
        assert_eq!(looks(&mut slack, |_| MIB), None, "it has been given back");
        // Load that comes in waves needs its memory again.
        assert_eq!(looks(&mut slack, |look| if look % 4 == 0 { 900 * MIB } else { 0 }), None);
        assert_eq!(looks(&mut Slack::default(), |_| 20 * MIB), None, "it is not worth it");
        assert_eq!(looks(&mut Slack::default(), |_| 900 * MIB), None, "it is needed");
    }

    #[test]
    fn what_is_pooled_is_let_go_some_seconds_after_load() {
        let world = World::new();
        let clock = world.clock();
        let seconds = world.run(async move {
            let (pooled, began) = (Arc::new(AtomicU64::new(1)), clock.now());
            let look = {
                let clock = clock.clone();
                move || match clock.now().since(began) {
                    load if load <= Nanos::from_secs(10) => (200 * MIB, 100 * MIB),
                    _ => (0, MIB),
                }
            };
            let released = Arc::clone(&pooled);
            let release = move || released.store(0, Ordering::Relaxed);
            clock.spawn(Slack::default().watch(clock.clone(), look, release));
            while pooled.load(Ordering::Relaxed) > 0 {
                clock.sleep(Nanos::from_millis(100)).await;
            }
            clock.now().since(began).as_secs_f64()
        });
        let seconds = seconds.unwrap();
        assert!((14.9..15.2).contains(&seconds), "{seconds}");
    }
}
