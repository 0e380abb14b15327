//! What is put into a path: the parameters of LogGP, by name.

use std::fmt;

use perf::model::loggp::Link;
use perf::units::Nanos;

perf::named! {
    /// One of the four.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub enum Parameter {
        Latency => "L",
        Overhead => "o",
        Gap => "g",
        GapPerByte => "G",
    }
}

/// What both directions of a link, and both of its ends, are given on top of what they have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Injected {
    /// L, g and G of each direction.
    pub link: Link,
    /// o: processor time for each message that is sent or received, at both ends.
    pub overhead: Nanos,
}

impl Parameter {
    /// So much of this parameter and nothing else: microseconds, or nanoseconds per byte of G.
    pub fn injected(self, amount: f64) -> Injected {
        let mut injected = Injected::default();
        let time = Nanos::from_micros_f64(amount);
        match self {
            Self::Latency => injected.link.latency = time,
            Self::Overhead => injected.overhead = time,
            Self::Gap => injected.link.gap = time,
            Self::GapPerByte => {
                injected.link.gap_per_byte_ps = Nanos::from_micros_f64(amount).as_nanos();
            }
        }
        injected
    }

    /// How much of this parameter there is, in the same units.
    pub fn of(self, injected: &Injected) -> f64 {
        match self {
            Self::Latency => injected.link.latency.as_micros_f64(),
            Self::Overhead => injected.overhead.as_micros_f64(),
            Self::Gap => injected.link.gap.as_micros_f64(),
            Self::GapPerByte => injected.link.gap_per_byte_ps as f64 / 1e3,
        }
    }
}

impl Injected {
    /// G of so many bytes a second.
    pub fn rate(bytes_per_sec: f64) -> Self {
        Parameter::GapPerByte.injected(1e9 / bytes_per_sec)
    }

    /// Both, one after the other; of the gaps, the larger.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (ours, theirs) = (&self.link, &other.link);
        let link = Link {
            latency: ours.latency + theirs.latency,
            gap: ours.gap.max(theirs.gap),
            gap_per_byte_ps: ours.gap_per_byte_ps + theirs.gap_per_byte_ps,
        };
        Self { link, overhead: self.overhead + other.overhead }
    }

    /// The largest delay that a small message meets once.
    pub fn delay(&self) -> Nanos {
        self.link.latency + self.overhead + self.overhead
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_found_where_it_was_put() {
        for parameter in Parameter::ALL {
            let injected = parameter.injected(2.5);
            for other in Parameter::ALL {
                let expected = if other == parameter { 2.5 } else { 0.0 };
                assert!((other.of(&injected) - expected).abs() < 1e-9, "{parameter} {other}");
            }
        }
        assert_eq!(Injected::rate(1.25e6).link.serialization(1_000), Nanos::from_micros(800));
    }
}
