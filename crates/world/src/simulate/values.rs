//! Values of a topology: numbers with units, and names. What is wrong is told with what is right.

use std::fmt;
use std::str::FromStr;

use net::shape::profile::Profile as Link;
use perf::model::disk::Profile as Disk;
use perf::units::Nanos;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A value that is written as text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Text<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

/// A link.
pub type LinkName = Text<Link>;

/// A disk.
pub type DiskName = Text<Disk>;

/// A time with its unit, in picoseconds: `20us`, `1.5ms`, `0.4ns`, or `0`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    ps: u64,
}

/// The longest time.
const SECS_MAX: f64 = 1e6;

impl Span {
    pub const fn nanos(self) -> Nanos {
        Nanos::from_nanos(self.ps / 1_000)
    }

    pub const fn picos(self) -> u64 {
        self.ps
    }
}

/// Seconds for each unit.
const UNITS: [(&str, f64); 5] =
    [("ps", 1e-12), ("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self { ps: 0 });
        }
        let wrong = || format!("{text:?} is not a time: a number and ps, ns, us, ms or s, or 0");
        let (number, unit) = UNITS
            .iter()
            .find_map(|(unit, secs)| Some((text.strip_suffix(unit)?, secs)))
            .ok_or_else(wrong)?;
        let secs = number.trim().parse::<f64>().map_err(|_| wrong())? * unit;
        if !(0.0..=SECS_MAX).contains(&secs) {
            return Err(format!("{text:?} is longer than {SECS_MAX} s, or less than nothing"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "of the range that was checked; it saturates"
        )]
        Ok(Self { ps: (secs * 1e12).round() as u64 })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Bytes: a number, or one with K, M or G for powers of 1024.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a size: a number, with K, M or G for powers of 1024");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match &text[digits.len()..] {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            _ => return Err(wrong()),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).map(Self).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 4096 or \"64M\"")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Bytes, E> {
                u64::try_from(number).map(Bytes).map_err(|_| E::custom("a size below 0"))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        let ps = |text: &str| text.parse::<Span>().map(Span::picos);
        assert_eq!(ps("20us"), Ok(20_000_000));
        assert_eq!(ps("0.4ns"), Ok(400));
        assert_eq!(ps("0"), Ok(0));
        for wrong in ["", "5", "-1s", "1e9s", "nans", "5 m", "us"] {
            assert!(ps(wrong).is_err(), "{wrong}");
        }
        assert_eq!("64M".parse(), Ok(Bytes(64 << 20)));
        for wrong in ["", "M", "-1", "1.5M", "1T", "99999999999G", "\u{b5}"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }
}
