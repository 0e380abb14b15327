//! Values over time, small enough to keep: bytes sent, calls outstanding, response times.
//!
//! A run may give a million points and a plot has a thousand pixels. [`Series::thinned`] keeps
//! what the eye would see: time is cut into equal slots and of each slot the lowest and the
//! highest point stay, in their order, together with the very first and the very last point. A
//! single slow call among a thousand fast ones is still there afterwards, which averages and
//! every-nth sampling would lose.

use crate::units::Nanos;

/// Points in the order they were added, usually that of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    unit: String,
    points: Vec<Point>,
}

/// One value at one time since the run's start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub t_us: u64,
    pub value: f64,
}

impl Series {
    /// An empty series of values in `unit`.
    pub fn new(unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), points: Vec::new() }
    }

    /// Adds a value at `since_start`. A value that is not finite is left out: neither a plot nor
    /// JSON has a place for it.
    pub fn push(&mut self, since_start: Nanos, value: f64) {
        let t_us = since_start.as_nanos() / 1_000;
        self.push_point(Point { t_us, value });
    }

    /// Adds a point; left out when not finite, as in [`Self::push`].
    pub fn push_point(&mut self, point: Point) {
        if point.value.is_finite() {
            self.points.push(point);
        }
    }

    pub fn unit(&self) -> &str {
        &self.unit
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    pub fn len(&self) -> usize {
        self.points.len()
    }

    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// At most `points_max` points (never fewer than four are allowed) in order of time, with the
    /// first, the last, and the extremes of every stretch of time.
    #[must_use]
    pub fn thinned(&self, points_max: usize) -> Self {
        let mut sorted = self.points.clone();
        sorted.sort_by_key(|p| p.t_us);
        let points = match sorted.as_slice() {
            [first, inner @ .., last] if sorted.len() > points_max.max(POINTS_MIN) => {
                let slots = (points_max.max(POINTS_MIN) - 2) / 2;
                let mut chosen = vec![*first];
                chosen.extend(extremes(inner, slots));
                chosen.push(*last);
                chosen
            }
            _ => sorted,
        };
        Self { unit: self.unit.clone(), points }
    }
}

/// First, last, and one slot's two extremes.
const POINTS_MIN: usize = 4;

/// The lowest and the highest point of each of `slots` equal stretches of time, in their order.
fn extremes(points: &[Point], slots: usize) -> Vec<Point> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    let span_us = u128::from(last.t_us - first.t_us) + 1;
    let slot_of = |p: &Point| u128::from(p.t_us - first.t_us) * slots as u128 / span_us;
    points.chunk_by(|a, b| slot_of(a) == slot_of(b)).flat_map(lowest_and_highest).collect()
}

fn lowest_and_highest(slot: &[Point]) -> Vec<Point> {
    let by_value = |a: &(usize, &Point), b: &(usize, &Point)| a.1.value.total_cmp(&b.1.value);
    let lowest = slot.iter().enumerate().min_by(by_value).map(|(i, _)| i);
    let highest = slot.iter().enumerate().max_by(by_value).map(|(i, _)| i);
    let mut chosen: Vec<usize> = lowest.into_iter().chain(highest).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|i| slot[i]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(points: impl IntoIterator<Item = (u64, f64)>) -> Series {
        let mut series = Series::new("ms");
        for (t_us, value) in points {
            series.push_point(Point { t_us, value });
        }
        series
    }

    #[test]
    fn a_single_slow_call_survives() {
        let calls = (0..10_000).map(|i| (i * 10, if i == 7_654 { 250.0 } else { 0.2 }));
        let thin = series(calls).thinned(100);
        assert!(thin.len() <= 100);
        assert_eq!(thin.points().iter().filter(|p| p.value == 250.0).count(), 1);
    }

    #[test]
    fn few_points_stay_as_they_are_but_in_order_of_time() {
        let thin = series([(5, 1.0), (3, 2.0), (4, 3.0)]).thinned(100);
        assert_eq!(thin, series([(3, 2.0), (4, 3.0), (5, 1.0)]));
        assert!(Series::new("ms").thinned(0).is_empty());
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        let points = [(1, f64::NAN), (2, f64::INFINITY), (3, 1.0)];
        assert_eq!(series(points), series([(3, 1.0)]));
    }

    proptest! {
        #[test]
        fn ends_extremes_and_order_are_preserved(
            points in proptest::collection::vec((any::<u64>(), -1e9..1e9f64), 1..300),
            points_max in 0usize..50,
        ) {
            let all = series(points);
            let thin = all.thinned(points_max);
            prop_assert!(thin.len() <= points_max.max(4));
            prop_assert!(thin.points().is_sorted_by_key(|p| p.t_us));
            let ends = |s: &Series| {
                let t = || s.points().iter().map(|p| p.t_us);
                let v = || s.points().iter().map(|p| p.value);
                (t().min(), t().max(), v().fold(f64::MAX, f64::min), v().fold(f64::MIN, f64::max))
            };
            prop_assert_eq!(ends(&thin), ends(&all));
        }
    }
}
