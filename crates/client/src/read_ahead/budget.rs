//! How much may be held for readers: a bound over all files of a mount.
//!
//! When it is reached, and nobody gives way ([`super::holders`]), nothing is fetched ahead, and
//! readers are served as they ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module's head; clones share the bound.
#[derive(Clone, Debug)]
pub struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes_max: u64,
    held_bytes: AtomicU64,
}

/// Bytes that are held; dropping it gives them back.
#[derive(Debug)]
pub struct Permit {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    pub fn new(bytes_max: u64) -> Self {
        Self { shared: Arc::new(Shared { bytes_max, held_bytes: AtomicU64::new(0) }) }
    }

    /// Room for so many bytes, if there is.
    pub fn take(&self, bytes: u64) -> Option<Permit> {
        let Shared { bytes_max, held_bytes } = &*self.shared;
        let add = |held: u64| held.checked_add(bytes).filter(|sum| sum <= bytes_max);
        held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Permit { budget: self.clone(), bytes })
    }

    pub fn held_bytes(&self) -> u64 {
        self.shared.held_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.shared.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_the_bound_and_what_is_dropped_comes_back() {
        let budget = Budget::new(10);
        let six = budget.take(6).unwrap();
        assert!(budget.take(5).is_none());
        let four = budget.take(4).unwrap();
        assert_eq!(budget.held_bytes(), 10);
        drop((six, four));
        assert_eq!(budget.held_bytes(), 0);
        assert!(budget.take(u64::MAX).is_none());
    }
}
