//! Which part of the whole load a generator makes.
//!
//! Generators know each other only by their number: each takes its part of the rate, of the calls
//! outstanding and of the files, in a directory and with random numbers of its own. Poisson
//! arrivals of all together are Poisson arrivals; with fixed ones the generators take turns, as
//! nearly as they begin at the same moment.

use crate::fileset::Layout;
use crate::mix::{Arrivals, Load, Plan};

/// See the module's head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Share {
    /// From 0.
    pub rank: u32,
    /// All generators; at least one.
    pub ranks: u32,
}

impl Share {
    /// A single generator makes all of it.
    pub const WHOLE: Self = Self { rank: 0, ranks: 1 };

    /// Of this share, which is divided again among `inner.ranks`, the part of `inner.rank`: the
    /// threads of a process.
    #[must_use]
    pub const fn part(self, inner: Self) -> Self {
        Self { rank: self.rank * inner.ranks + inner.rank, ranks: self.ranks * inner.ranks }
    }

    /// Its part of so many things that cannot be divided: the first generators take one more.
    pub fn of_count(self, count: usize) -> usize {
        let (rank, ranks) = (self.rank as usize, self.ranks.max(1) as usize);
        count / ranks + usize::from(rank < count % ranks)
    }

    /// Its own random numbers.
    pub fn seed(self, seed: u64) -> u64 {
        // 2^64 over the golden ratio: neighbours are far apart.
        seed ^ u64::from(self.rank).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Its part of a set of files.
    #[must_use]
    pub fn layout(self, whole: &Layout) -> Layout {
        let part = |count: usize| self.of_count(count).max(1);
        Layout {
            files: part(whole.files),
            // As few names would be in use all the time.
            entries: whole.entries,
            subdirs: whole.subdirs,
            symlinks: part(whole.symlinks),
            seed: self.seed(whole.seed),
            ..*whole
        }
    }

    /// Its part of a run. `None` for a generator that has nothing to do in it.
    pub fn plan(self, whole: &Plan) -> Option<Plan> {
        let load = match whole.load {
            Load::Open { arrivals, per_s, phase, outstanding_max } => Load::Open {
                arrivals,
                per_s: per_s / f64::from(self.ranks.max(1)),
                phase: match arrivals {
                    Arrivals::Fixed => phase + f64::from(self.rank) / f64::from(self.ranks.max(1)),
                    Arrivals::Uniform | Arrivals::Poisson => phase,
                },
                outstanding_max: self.of_count(outstanding_max).max(1),
            },
            Load::Closed { outstanding } => match self.of_count(outstanding) {
                0 => return None,
                outstanding => Load::Closed { outstanding },
            },
            // Each generator has sessions of its own.
            each @ Load::ClosedEach { .. } => each,
        };
        Some(Plan { load, seed: self.seed(whole.seed), ..*whole })
    }
}

#[cfg(test)]
mod tests {
    use perf::units::Nanos;

    use super::*;
    use crate::mix::Mix;

    #[test]
    fn the_parts_make_the_whole() {
        let shares: Vec<Share> = (0..2)
            .flat_map(|rank| {
                (0..3).map(move |thread| {
                    Share { rank, ranks: 2 }.part(Share { rank: thread, ranks: 3 })
                })
            })
            .collect();
        assert!(shares.iter().enumerate().all(|(at, share)| share.rank as usize == at));
        assert_eq!(shares.iter().map(|share| share.of_count(100)).sum::<usize>(), 100);
        let plan = Plan {
            mix: Mix::SFS97_V3,
            load: Load::Closed { outstanding: 4 },
            warm_up: Nanos::ZERO,
            time: Nanos::from_secs(1),
            seed: 7,
        };
        let plans: Vec<Option<Plan>> = shares.iter().map(|share| share.plan(&plan)).collect();
        assert_eq!(plans.iter().flatten().count(), 4);
        assert_ne!(plans[0].unwrap().seed, plans[1].unwrap().seed);
        assert_eq!(Share::WHOLE.plan(&plan), Some(plan));
    }
}
