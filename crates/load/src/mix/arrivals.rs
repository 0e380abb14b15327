//! When operations are meant to start: a schedule that no answer can delay.

use std::fmt;
use std::str::FromStr;

use fastrand::Rng;
use perf::units::{Instant, Nanos};
use thiserror::Error;

perf::named! {
    /// The distances between two starts.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub enum Arrivals {
        /// All the same.
        Fixed => "fixed",
        /// Anything from nothing to twice the mean, as nhfsstone sleeps.
        Uniform => "uniform",
        /// Exponential: callers that know nothing of each other, as queueing theory assumes.
        #[default]
        Poisson => "poisson",
    }
}

/// There are no such arrivals.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("unknown arrivals {0:?}; known are fixed, uniform, poisson")]
pub struct UnknownArrivals(pub String);

impl Arrivals {
    fn distance_s(self, mean_s: f64, random: &mut Rng) -> f64 {
        match self {
            Self::Fixed => mean_s,
            Self::Uniform => 2.0 * mean_s * random.f64(),
            // 1 - f64() is never 0.
            Self::Poisson => -mean_s * (1.0 - random.f64()).ln(),
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arrivals {
    type Err = UnknownArrivals;

    fn from_str(name: &str) -> Result<Self, UnknownArrivals> {
        let found = Self::ALL.into_iter().find(|arrivals| arrivals.name() == name);
        found.ok_or_else(|| UnknownArrivals(name.to_owned()))
    }
}

/// Start after start. Distances are added in seconds before they are rounded, so that a rate is
/// exact over a long run.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    mean_s: f64,
    begin: Instant,
    since_begin_s: f64,
}

impl Schedule {
    /// `per_s` operations a second from `begin` on, and `phase` of their mean distance. A rate that
    /// is none gives no start.
    pub fn new(arrivals: Arrivals, per_s: f64, phase: f64, begin: Instant) -> Self {
        let mean_s = if per_s > 0.0 { 1.0 / per_s } else { f64::INFINITY };
        let since_begin_s = if phase > 0.0 { phase * mean_s } else { 0.0 };
        Self { arrivals, mean_s, begin, since_begin_s }
    }

    /// When the next operation is meant to start.
    pub fn next(&mut self, random: &mut Rng) -> Instant {
        self.since_begin_s += self.arrivals.distance_s(self.mean_s, random);
        if !self.since_begin_s.is_finite() {
            return Instant::NEVER;
        }
        self.begin + Nanos::from_secs_f64(self.since_begin_s)
    }

    /// How many starts lie before `until`, of which one is at `due`; of random arrivals, about as
    /// many as there are on average. One by one they may be too many: 10^11 of a day.
    pub fn starts(&self, due: Instant, until: Instant) -> u64 {
        // Starts are rounded to nanoseconds.
        let seconds = until.since(due).as_secs_f64() - 0.5e-9;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let starts = (seconds / self.mean_s).ceil() as u64;
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arrivals_keep_their_rate_and_have_their_own_spread() {
        for (arrivals, variation) in [
            (Arrivals::Fixed, 0.0),
            (Arrivals::Uniform, 1.0 / 3.0_f64.sqrt()),
            (Arrivals::Poisson, 1.0),
        ] {
            let mut random = Rng::with_seed(1);
            let mut schedule = Schedule::new(arrivals, 1_000.0, 0.0, Instant::EPOCH);
            let mut before = Instant::EPOCH;
            let distances: Vec<f64> = (0..100_000)
                .map(|_| {
                    let next = schedule.next(&mut random);
                    let distance = next.since(before).as_micros_f64();
                    before = next;
                    distance
                })
                .collect();
            let mean = distances.iter().sum::<f64>() / 1e5;
            let variance = distances.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 1e5;
            assert!((mean - 1_000.0).abs() < 10.0, "{arrivals}: {mean}");
            assert!((variance.sqrt() / mean - variation).abs() < 0.01, "{arrivals}");
        }
    }

    #[test]
    fn what_is_left_of_a_schedule_is_divided_and_not_drawn() {
        let at = |ms| Instant::EPOCH + Nanos::from_millis(ms);
        let schedule = Schedule::new(Arrivals::Fixed, 500.0, 0.0, Instant::EPOCH);
        let starts = [(2, 4), (2, 5), (2, 1_000), (4, 4), (9, 4)];
        let starts = starts.map(|(due, until)| schedule.starts(at(due), at(until)));
        assert_eq!(starts, [1, 2, 499, 0, 0]);
        let day = Schedule::new(Arrivals::Poisson, 1e7, 0.0, Instant::EPOCH);
        assert_eq!(day.starts(at(0), at(86_400_000)), 864_000_000_000);
    }

    #[test]
    fn schedules_of_one_rate_take_turns_by_their_phases() {
        let mut random = Rng::with_seed(1);
        let mut starts: Vec<u64> = [0.0, 0.25, 0.5, 0.75]
            .into_iter()
            .flat_map(|phase| {
                let mut schedule = Schedule::new(Arrivals::Fixed, 250.0, phase, Instant::EPOCH);
                [(); 3].map(|()| schedule.next(&mut random).since(Instant::EPOCH).as_nanos())
            })
            .collect();
        starts.sort_unstable();
        let expected: Vec<u64> = (4..16).map(|at| at * 1_000_000).collect();
        assert_eq!(starts, expected);
    }

    #[test]
    fn no_rate_is_no_start_and_names_are_read() {
        let mut random = Rng::with_seed(1);
        for per_s in [0.0, -1.0, f64::NAN] {
            let mut schedule = Schedule::new(Arrivals::Poisson, per_s, 0.0, Instant::EPOCH);
            assert_eq!(schedule.next(&mut random), Instant::NEVER);
        }
        assert_eq!("poisson".parse(), Ok(Arrivals::Poisson));
        assert!("now".parse::<Arrivals>().unwrap_err().to_string().contains("uniform"));
    }
}
