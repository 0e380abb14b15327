//! Units: a point in time, a span of time, as integers of nanoseconds.
//!
//! Everything that measures or waits speaks these two types, so that a moment cannot be added to
//! a moment and a unit cannot be forgotten. Arithmetic saturates: a clock that has run for
//! 584 years reads as "the end of time" instead of wrapping to the beginning.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A moment, in nanoseconds since the clock's own epoch (process start, or a world's start).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Nanos(u64);

impl Instant {
    /// The clock's epoch.
    pub const EPOCH: Self = Self(0);
    /// Later than every other moment: "never".
    pub const NEVER: Self = Self(u64::MAX);

    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`; zero when `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Nanos {
    pub const ZERO: Self = Self(0);

    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Rounds to the nearest nanosecond; negative and NaN become zero.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate, which is what a span wants"
    )]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }

    /// Rounds to the nearest nanosecond; negative and NaN become zero.
    pub fn from_micros_f64(micros: f64) -> Self {
        Self::from_secs_f64(micros * 1e-6)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 * 1e-3
    }

    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Nanos> for Instant {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Sub<Nanos> for Instant {
    type Output = Self;
    fn sub(self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Nanos {
    type Output = Self;
    /// Division by zero gives the longest span.
    fn div(self, parts: u64) -> Self {
        Self(self.0.checked_div(parts).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Nanos {
    /// Three significant places in the unit that fits: `850 ns`, `12.3 us`, `4.56 ms`, `7.89 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            n if n < 1_000 => return write!(f, "{n} ns"),
            n if n < 1_000_000 => (n as f64 * 1e-3, "us"),
            n if n < 1_000_000_000 => (n as f64 * 1e-6, "ms"),
            n => (n as f64 * 1e-9, "s"),
        };
        let places = if value < 10.0 {
            2
        } else if value < 100.0 {
            1
        } else {
            0
        };
        write!(f, "{value:.places$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_print_in_the_unit_that_fits() {
        let printed: Vec<String> = [850, 12_340, 4_560_000, 7_890_000_000, 123_000]
            .map(|n| Nanos::from_nanos(n).to_string())
            .into();
        assert_eq!(printed, ["850 ns", "12.3 us", "4.56 ms", "7.89 s", "123 us"]);
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Instant::EPOCH.since(Instant::from_nanos(5)), Nanos::ZERO);
        assert_eq!(Instant::NEVER + Nanos::from_secs(1), Instant::NEVER);
        assert_eq!(Nanos::from_secs_f64(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_secs_f64(f64::NAN), Nanos::ZERO);
    }
}
