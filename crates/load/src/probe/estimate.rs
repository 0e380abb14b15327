//! From the samples of a probe to the parameters: each the median over all portions, with its
//! interval.

use perf::model::relative_line::line_relative;
use perf::model::transaction::{Capacity, Path, Storage};
use perf::model::whatif::of_path::Spread;
use perf::stats::{Estimate, Interval, median_in_order};

use super::{BLOCK_BYTES, Bursts, Findings, Portion, Round, Trial, median, stragglers};
use crate::error::Error;

/// What the samples of all portions say.
pub(super) fn findings(
    portions: &[Portion],
    large_bytes: u32,
    commit_bytes: u64,
) -> Result<Findings, Error> {
    let of = Estimates::of(portions)?;
    let sizes = of.sizes();
    let block = of.block(&sizes)?;
    let (commit_us, commit_early_us) =
        (of.commit(|bursts| &bursts.commits)?, of.commit(|bursts| &bursts.early_commits)?);
    let unhidden = of.bursts("T_B", |bursts| bursts.unhidden.clone());
    let unhidden = unhidden.map_or(0.0, |unhidden| unhidden.value.max(0.0));
    let (small, large) = (
        of.bursts("g", |bursts| bursts.small.clone())?.value,
        of.bursts("G", |bursts| bursts.large.clone())?.value,
    );
    let (call_us, us_per_kib) = capacity((BLOCK_BYTES, small), (large_bytes, large));
    let (round_trip, op) = (way(&of.null, &of.beyond), of.beyond.not_negative());
    let ser = of.fits("T_ser", |(_, slope)| *slope)?.not_negative();
    let overhead = of.overhead()?;
    Ok(Findings {
        path: Path {
            round_trip_us: round_trip.value,
            ser_us_per_kib: ser.value,
            op_us: op.value,
            // No more than a whole call, which the model would count twice.
            overhead_us: overhead.value.min(small),
            capacity: Capacity { call_us: call_us.max(0.0), us_per_kib: us_per_kib.max(1e-6) },
            storage: storage(
                block.value,
                commit_us.value,
                commit_early_us.value,
                unhidden,
                commit_bytes,
            ),
        },
        null_us: portions.iter().flat_map(|portion| portion.null_us.iter().copied()).collect(),
        round_trip,
        ser_us_per_kib: ser,
        null_excess_us: of.null_excess_us(),
        op_us: op,
        block_us: block,
        writes_us: of.writes(&sizes)?,
        commit_us,
        commit_early_us,
        stable_only: portions.iter().all(|portion| portion.bursts.due == 0),
        overhead_us: overhead,
        gap_us: of.gap(large_bytes, call_us, |pair| pair.0)?,
        gap_us_per_kib: of.gap(large_bytes, us_per_kib, |pair| pair.1)?,
        bursts: portions.iter().map(|portion| portion.bursts.commits.len()).sum(),
        commit_probe_bytes: commit_bytes,
        rounds: portions.iter().map(|portion| portion.rounds.len()).sum(),
        stragglers: stragglers::of(
            portions.iter().flat_map(|portion| &portion.rounds).flat_map(|round| &round.singles),
        ),
    })
}

impl Findings {
    /// How wide the intervals are, for answers to changes; of a full pipe by its small calls.
    pub fn spread(&self, small_us: &Estimate) -> Spread {
        // Of 1; a parameter of nearly nothing is not uncertain by hundreds of itself.
        let share = |estimate: &Estimate| {
            let half = estimate.ci95.map_or(0.0, |ci95| (ci95.hi - ci95.lo) / 2.0);
            (half / estimate.value.abs().max(f64::MIN_POSITIVE)).min(1.0)
        };
        Spread {
            round_trip: share(&self.round_trip),
            ser: share(&self.ser_us_per_kib),
            op: share(&self.op_us),
            overhead: share(&self.overhead_us),
            capacity: share(small_us),
            storage: share(&self.commit_us),
        }
    }
}

/// The portions, with what several parameters are taken from.
struct Estimates<'a> {
    portions: &'a [Portion],
    /// Of each portion, [`Portion::fits`].
    fits: Vec<Vec<(f64, f64)>>,
    /// What a NULL call takes.
    null: Estimate,
    /// By how much a WRITE without data takes longer; below 0 where NULL does.
    beyond: Estimate,
}

impl<'a> Estimates<'a> {
    fn of(portions: &'a [Portion]) -> Result<Self, Error> {
        let null = in_order(portions, "2 T_prop", |portion, _| portion.null_us.clone())?;
        let fits: Vec<Vec<(f64, f64)>> = portions.iter().map(Portion::fits).collect();
        // Of each difference both sides are measured anew: what either is off by shows in how the
        // differences differ, once.
        let beyond = in_order(portions, "T_op", |portion, at| {
            let null_us = portion.null_us(fits[at].len(), null.value);
            fits[at].iter().zip(null_us).map(|((intercept, _), us)| intercept - us).collect()
        })?;
        Ok(Self { portions, fits, null, beyond })
    }

    fn null_excess_us(&self) -> f64 {
        (-self.beyond.value).max(0.0)
    }

    fn fits(&self, what: &'static str, of: impl Fn(&(f64, f64)) -> f64) -> Result<Estimate, Error> {
        in_order(self.portions, what, |_, at| self.fits[at].iter().map(&of).collect())
    }

    fn bursts(
        &self,
        what: &'static str,
        of: impl Fn(&Bursts) -> Vec<f64>,
    ) -> Result<Estimate, Error> {
        in_order(self.portions, what, |portion, _| of(&portion.bursts))
    }

    /// The sizes that the server took.
    fn sizes(&self) -> Vec<u32> {
        let first = self.portions.iter().find_map(|portion| portion.rounds.first());
        first.map_or(&[][..], |round| &round.trials).iter().map(|&(size, ..)| size).collect()
    }

    /// T_B of a block; a server that takes less than a block gets what it takes.
    fn block(&self, sizes: &[u32]) -> Result<Estimate, Error> {
        let block_bytes = BLOCK_BYTES.min(sizes.last().copied().unwrap_or(BLOCK_BYTES));
        let stable = |round: &Round| {
            let trial = round.trials.iter().find(|trial| trial.0 == block_bytes)?;
            Some(trial.2 - round.rested)
        };
        let block = in_order(self.portions, "T_B", |portion, _| {
            portion.rounds.iter().filter_map(stable).collect()
        })?;
        Ok(block.not_negative())
    }

    /// Of each size, what an UNSTABLE and what a FILE_SYNC WRITE takes.
    fn writes(&self, sizes: &[u32]) -> Result<Vec<(u32, f64, f64)>, Error> {
        let median = |size: u32, of: fn(&Trial) -> f64| {
            let estimate = in_order(self.portions, "T_ser", |portion, _| {
                let of_size =
                    |round: &Round| round.trials.iter().find(|trial| trial.0 == size).map(of);
                portion.rounds.iter().filter_map(of_size).collect()
            });
            estimate.map(|estimate| estimate.value)
        };
        let write = |&size: &u32| {
            Ok((size, median(size, |trial| trial.1)?, median(size, |trial| trial.2)?))
        };
        sizes.iter().map(write).collect()
    }

    /// One of g and G, with the interval that the pairs of bursts give it.
    fn gap(
        &self,
        large_bytes: u32,
        value: f64,
        of: fn((f64, f64)) -> f64,
    ) -> Result<Estimate, Error> {
        let of_pairs = self.bursts("g", |bursts| {
            let pairs = bursts.small.iter().zip(&bursts.large);
            pairs.map(|(&s, &l)| of(capacity((BLOCK_BYTES, s), (large_bytes, l)))).collect()
        })?;
        Ok(around(value, &of_pairs).not_negative())
    }

    /// What COMMITs take beyond the way.
    fn commit(&self, of: fn(&Bursts) -> &[f64]) -> Result<Estimate, Error> {
        let excess_us = self.null_excess_us();
        let beyond_way = in_order(self.portions, "T_B of a COMMIT", |portion, _| {
            let commits = of(&portion.bursts);
            let null_us = portion.null_us(commits.len(), self.null.value);
            commits.iter().zip(null_us).map(|(us, null_us)| us - null_us + excess_us).collect()
        })?;
        Ok(beyond_way.not_negative())
    }

    /// Two at a time take one cycle, and what they cost each other.
    fn overhead(&self) -> Result<Estimate, Error> {
        let block_kib = f64::from(BLOCK_BYTES) / 1024.0;
        let cycle_us = |(intercept, slope): &(f64, f64)| intercept + block_kib * slope;
        let cycle = self.fits("T_cycle", cycle_us)?;
        let pairs = in_order(self.portions, "o", |portion, at| {
            let own: Vec<f64> = self.fits[at].iter().map(cycle_us).collect();
            let pairs = &portion.bursts.pairs;
            let own = parts(&own, pairs.len(), cycle.value);
            pairs.iter().zip(own).map(|(spacing, cycle_us)| 2.0 * spacing - cycle_us).collect()
        })?;
        Ok(pairs.not_negative())
    }
}

/// g and G from two sizes of calls, given with their times; either can come out below 0.
fn capacity((small, small_us): (u32, f64), (large, large_us): (u32, f64)) -> (f64, f64) {
    let (small, large) = (f64::from(small) / 1024.0, f64::from(large) / 1024.0);
    if large <= small {
        // A server that takes no more than a block: one size tells only the sum.
        return (0.0, small_us / small);
    }
    let us_per_kib = (large_us - small_us) / (large - small);
    (small_us - us_per_kib * small, us_per_kib)
}

impl Portion {
    /// Of each round, the line through its UNSTABLE WRITEs: the time without data, and per KiB.
    fn fits(&self) -> Vec<(f64, f64)> {
        let line = |round: &Round| {
            let points: Vec<(f64, f64)> =
                round.trials.iter().map(|&(size, us, _)| (f64::from(size) / 1024.0, us)).collect();
            line_relative(&points)
        };
        self.rounds.iter().filter_map(line).collect()
    }

    /// What a NULL call took, in so many parts of the portion's calls.
    fn null_us(&self, count: usize, elsewhere_us: f64) -> Vec<f64> {
        parts(&self.null_us, count, elsewhere_us)
    }
}

/// The medians of so many parts of a portion's values, to be compared with as many others; of a
/// portion without any values, what they are elsewhere. Fewer values than parts stand for several.
fn parts(values: &[f64], count: usize, elsewhere: f64) -> Vec<f64> {
    let n = values.len();
    let part = |at: usize| {
        let (from, to) = (at * n / count, ((at + 1) * n / count).max(at * n / count + 1));
        median(values.get(from..to).unwrap_or_default().to_vec(), "a part").unwrap_or(elsewhere)
    };
    (0..count).map(part).collect()
}

/// The median over all portions, whose values are in the order of their times.
fn in_order(
    portions: &[Portion],
    what: &'static str,
    of: impl Fn(&Portion, usize) -> Vec<f64>,
) -> Result<Estimate, Error> {
    let values = portions.iter().enumerate().map(|(at, portion)| of(portion, at));
    median_in_order(&values.collect::<Vec<_>>()).map_err(|_| Error::TooFew { what })
}

/// 2 T_prop: what a NULL call takes, or, if a server takes longer for NULL than for a WRITE, what a
/// WRITE without data takes. The interval holds both.
fn way(null: &Estimate, beyond: &Estimate) -> Estimate {
    let value = (null.value + beyond.value.min(0.0)).max(0.0);
    around(value, null)
}

/// The sync's fixed part and its rate, from one small sync and one large.
pub fn storage(
    block_us: f64,
    commit_us: f64,
    commit_early_us: f64,
    unhidden_us_per_kib: f64,
    commit_bytes: u64,
) -> Storage {
    let block_kib = f64::from(BLOCK_BYTES) / 1024.0;
    let commit_kib = commit_bytes as f64 / 1024.0;
    let us_per_kib = ((commit_us - block_us) / (commit_kib - block_kib)).max(0.0);
    let sync_us = (block_us - us_per_kib * block_kib).max(0.0);
    let left_us_per_kib = ((commit_early_us - sync_us) / commit_kib).max(0.0);
    Storage { sync_us, us_per_kib, left_us_per_kib, unhidden_us_per_kib }
}

/// A value from the medians of two measurements, with the interval of their pairs' own, which need
/// not have it at its middle.
fn around(value: f64, pairs: &Estimate) -> Estimate {
    let with = |ci95: Interval| Interval { lo: ci95.lo.min(value), hi: ci95.hi.max(value) };
    Estimate { value, ci95: pairs.ci95.map(with) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A way of 100 us, WRITEs of 40 us and 8 us per KiB, no storage; two at a time take a cycle
    /// less `gain_us`. Nothing is measured twice the same.
    fn portions(gain_us: f64, null_noise_us: f64) -> Vec<Portion> {
        let mut random = fastrand::Rng::with_seed(9);
        let mut near = move |us: f64, noise_us: f64| us + noise_us * (random.f64() - 0.5);
        let mut portion = || {
            let mut round = || {
                let of = |kib: u32| (kib << 10, near(140.0 + 8.0 * f64::from(kib), 2.0));
                let trials = [1, 8, 64].map(of).map(|(size, us)| (size, us, us + 31.0));
                // Of the 31 us, 30 are what it takes to be woken.
                let rested = trials[1].1 + 30.0;
                Round { trials: trials.into(), singles: Vec::new(), rested }
            };
            let rounds = (0..6).map(|_| round()).collect();
            let mut times = |us: f64| (0..3).map(|_| near(us, 4.0)).collect::<Vec<_>>();
            let bursts = Bursts {
                commits: times(130.0),
                early_commits: times(130.0),
                due: 3,
                small: times(60.0),
                pairs: times((204.0 - gain_us) / 2.0),
                large: times(600.0),
                unhidden: Vec::new(),
            };
            Portion {
                null_us: (0..50).map(|_| near(100.0, null_noise_us)).collect(),
                rounds,
                bursts,
            }
        };
        vec![portion(), portion(), portion(), portion()]
    }

    #[test]
    fn an_overhead_below_nothing_is_at_most_so_much_and_never_known_to_be_nothing() {
        for gain_us in [6.0, 40.0] {
            let found = findings(&portions(gain_us, 4.0), 64 << 10, 8 << 20).unwrap();
            assert_eq!(found.overhead_us.value, 0.0);
            let at_most = found.overhead_us.at_most().unwrap();
            assert!(at_most > 1.0 && at_most < 50.0, "{gain_us}: {at_most}");
        }
        // Two at a time take longer than twice as long: what was measured is printed, and the model
        // takes no more than a call.
        let worse = findings(&portions(-200.0, 4.0), 64 << 10, 8 << 20).unwrap();
        assert!((worse.overhead_us.value - 200.0).abs() < 10.0, "{:?}", worse.overhead_us);
        assert!(worse.overhead_us.ci95.unwrap().lo > 150.0, "{:?}", worse.overhead_us);
        assert!((worse.path.overhead_us - 60.0).abs() < 4.0, "{:?}", worse.path);
        let shown = findings(&portions(-30.0, 4.0), 64 << 10, 8 << 20).unwrap().overhead_us;
        assert!(shown.at_most().is_none() && shown.ci95.unwrap().contains(30.0), "{shown:?}");
    }

    #[test]
    fn what_null_is_not_known_by_is_not_known_of_what_it_is_taken_from() {
        let width = |null_noise_us| {
            let found = findings(&portions(0.0, null_noise_us), 64 << 10, 8 << 20).unwrap();
            let ci95 = found.op_us.ci95.unwrap();
            assert!(ci95.contains(40.0), "{ci95:?}");
            // What it takes to be woken is no storage.
            assert!((found.block_us.value - 1.0).abs() < 0.5, "{:?}", found.block_us);
            ci95.hi - ci95.lo
        };
        assert!(width(60.0) > 2.0 * width(2.0), "{} {}", width(60.0), width(2.0));
    }
}
