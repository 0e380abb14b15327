//! Calls of a second hump: so few that no median has them, so slow that a transfer waits for them.

use std::collections::BTreeMap;

use super::{Stragglers, median};

/// A call that takes so many times what is usual of its size, and so much longer, is one.
const TIMES: f64 = 10.0;
const LONGER_US: f64 = 10_000.0;

/// Among calls of several sizes, each with what it took.
pub(super) fn of<'a>(singles: impl Iterator<Item = &'a (u32, f64)>) -> Stragglers {
    let mut by_size: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for &(size, us) in singles {
        by_size.entry(size).or_default().push(us);
    }
    let (mut slow, mut usual) = (Vec::new(), Vec::new());
    for times in by_size.into_values() {
        let middle = median_us(&times);
        let is_slow = |us: &f64| *us > TIMES * middle && *us > middle + LONGER_US;
        let (late, others): (Vec<f64>, Vec<f64>) = times.into_iter().partition(is_slow);
        slow.extend(late);
        usual.extend(others);
    }
    let (count, of) = (slow.len(), slow.len() + usual.len());
    Stragglers { count, of, median_us: median_us(&slow), usual_us: median_us(&usual) }
}

/// 0 of none.
fn median_us(times: &[f64]) -> f64 {
    median(times.to_vec(), "single WRITEs").unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_of_twenty_that_takes_400_ms_is_found_among_sizes_that_differ() {
        // What a size takes is no straggler: 1 MiB takes fifty times as long as 1 KiB.
        let usual = |at: u32| if at < 100 { (1 << 10, 200.0) } else { (1 << 20, 10_500.0) };
        let mut singles: Vec<(u32, f64)> = (0..200).map(usual).collect();
        assert_eq!(of(singles.iter()).count, 0);
        singles.iter_mut().step_by(20).for_each(|(_, us)| *us = 400_000.0);
        let found = of(singles.iter());
        assert_eq!((found.count, found.of, found.median_us), (10, 200, 400_000.0));
        assert!(found.usual_us <= 10_500.0, "{found:?}");
        assert_eq!(of([].iter()), Stragglers::default());
    }
}
