//! Counters that cost next to nothing: each thread has its own set, and a reader adds them up.
//!
//! A counter that one thread alone writes needs no atomic addition, only a load and a store that a
//! reader never sees torn. So a thread takes a *seat* when it first counts, and gives it back when
//! it ends; a seat has one shard of every [`Shards`]. Threads that find no seat share one more
//! shard, whose counters are added to atomically.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Who may write a shard's counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Writers {
    One,
    Several,
}

/// A sum that wraps, as all differences of it do.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64, writers: Writers) {
        match writers {
            Writers::One => self.0.store(self.value().wrapping_add(count), Ordering::Relaxed),
            Writers::Several => {
                self.0.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// For a value that is no sum; of several writers the last one wins.
    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One `T` for each thread that has a seat, made when it is first needed, and one for the others.
#[derive(Debug)]
pub(super) struct Shards<T> {
    seated: [OnceLock<Box<T>>; SEATS_MAX],
    shared: OnceLock<Box<T>>,
}

impl<T> Default for Shards<T> {
    fn default() -> Self {
        Self { seated: std::array::from_fn(|_| OnceLock::new()), shared: OnceLock::new() }
    }
}

impl<T: Default> Shards<T> {
    /// The calling thread's.
    pub(super) fn mine(&self) -> (&T, Writers) {
        // Without a seat while the thread ends, too.
        match SEAT.try_with(|seat| seat.0) {
            Ok(Some(seat)) => (self.seated[seat].get_or_init(Box::default), Writers::One),
            _ => (self.shared.get_or_init(Box::default), Writers::Several),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.seated.iter().chain([&self.shared]).filter_map(OnceLock::get).map(Box::as_ref)
    }
}

/// A server has as many threads as there are processors; so many are few enough to add up.
const SEATS_MAX: usize = 64;

/// The seats that are taken, one bit each. Its lock also orders what two threads that have a seat
/// one after the other write to its shards.
static TAKEN: Mutex<u64> = Mutex::new(0);

thread_local! {
    static SEAT: Seat = Seat::take();
}

struct Seat(Option<usize>);

impl Seat {
    fn take() -> Self {
        let mut taken = TAKEN.lock();
        let free = taken.trailing_ones() as usize;
        if free >= SEATS_MAX {
            return Self(None);
        }
        *taken |= 1 << free;
        Self(Some(free))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(seat) = self.0 {
            *TAKEN.lock() &= !(1 << seat);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_seats() {
        let shards = Shards::<Counter>::default();
        for _ in 0..3 {
            thread::scope(|scope| {
                for _ in 0..SEATS_MAX + 20 {
                    scope.spawn(|| {
                        for _ in 0..1000 {
                            let (counter, writers) = shards.mine();
                            counter.add(1, writers);
                        }
                    });
                }
            });
        }
        let sum: u64 = shards.iter().map(Counter::value).sum();
        assert_eq!(sum, 3 * 1000 * (SEATS_MAX as u64 + 20));
    }
}
