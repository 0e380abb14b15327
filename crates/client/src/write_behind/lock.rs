//! The mount's lock of the paper's policies: the kernel's big lock, which one spins for.
//!
//! Whoever finds it taken tries again for some microseconds and then sleeps, which a task must.
//! As with the kernel's of 2001 there is no order among those who want it. Unlike with a lock of
//! the runtime's, a release does not hand it to somebody who must first be woken.

use std::sync::atomic::{AtomicBool, Ordering};

use net::clock::Clock;
use perf::units::Nanos;
use tokio::sync::Notify;

/// How long to try before sleeping: about one send.
const SPIN: Nanos = Nanos::from_micros(50);

/// See the module's head. It guards the indices of all files and the order of what is sent.
#[derive(Debug, Default)]
pub(super) struct BigLock {
    taken: AtomicBool,
    released: Notify,
}

/// Whoever has the lock.
#[derive(Debug)]
pub(super) struct Guard<'a>(&'a BigLock);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
        self.0.released.notify_one();
    }
}

impl BigLock {
    pub(super) async fn lock(&self, clock: &Clock) -> Guard<'_> {
        if let Some(guard) = self.try_lock().or_else(|| self.spin(clock)) {
            return guard;
        }
        loop {
            let mut released = std::pin::pin!(self.released.notified());
            released.as_mut().enable();
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            released.await;
        }
    }

    fn try_lock(&self) -> Option<Guard<'_>> {
        (!self.taken.swap(true, Ordering::Acquire)).then(|| Guard(self))
    }

    /// Nobody else runs while we spin in a world.
    fn spin(&self, clock: &Clock) -> Option<Guard<'_>> {
        if clock.is_virtual() {
            return None;
        }
        let begun = clock.now();
        while clock.now().since(begun) < SPIN {
            for _ in 0..16 {
                std::hint::spin_loop();
            }
            if !self.taken.load(Ordering::Relaxed)
                && let Some(guard) = self.try_lock()
            {
                return Some(guard);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use net::clock::world::World;

    use super::*;

    #[test]
    fn one_at_a_time_and_everybody_in_the_end() {
        let world = World::new();
        let clock = world.clock();
        let done = world
            .run(async move {
                let (lock, inside) = (Arc::new(BigLock::default()), Arc::new(AtomicUsize::new(0)));
                let done = Arc::new(AtomicUsize::new(0));
                for wait in 0..20 {
                    let (clock2, lock) = (clock.clone(), Arc::clone(&lock));
                    let (inside, done) = (Arc::clone(&inside), Arc::clone(&done));
                    clock.spawn(async move {
                        let guard = lock.lock(&clock2).await;
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        clock2.sleep(Nanos::from_micros(wait)).await;
                        inside.fetch_sub(1, Ordering::Relaxed);
                        drop(guard);
                        done.fetch_add(1, Ordering::Relaxed);
                    });
                }
                clock.sleep(Nanos::from_millis(1)).await;
                done.load(Ordering::Relaxed)
            })
            .unwrap();
        assert_eq!(done, 20);
    }
}
