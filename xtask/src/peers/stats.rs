//! Medians of few runs, with their spread, and percentiles of many calls.

/// The middle of some runs, and how far apart they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) runs: usize,
}

impl Summary {
    /// None without runs.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let runs = sorted.len();
        let median = f64::midpoint(sorted[(runs - 1) / 2], sorted[runs / 2]);
        Some(Self { median, min, max, runs })
    }

    /// Half of what lies between the lowest and the highest, in percent of the median.
    pub(crate) fn spread_pct(&self) -> f64 {
        (self.max - self.min) / 2.0 / self.median * 100.0
    }
}

/// The value that so many percent of all values do not exceed; 0 without values. Sorts them.
pub(crate) fn percentile(values: &mut [u32], percent: usize) -> u32 {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        let odd = Summary::of([9.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.median, odd.min, odd.max, odd.runs), (2.0, 1.0, 9.0, 3));
        assert_eq!(odd.spread_pct(), 200.0);
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let mut values: Vec<u32> = (1..=200).rev().collect();
        assert_eq!(percentile(&mut values, 50), 100);
        assert_eq!(percentile(&mut values, 99), 198);
        assert_eq!(percentile(&mut [7], 99), 7);
        assert_eq!(percentile(&mut [], 50), 0);
    }
}
