//! Values of a topology: numbers with units, and names. An error says what is right.

use std::fmt;
use std::str::FromStr;

use net::shape::profile::Profile as Link;
use perf::model::disk::Profile as Disk;
use perf::units::Nanos;
use perf::words;
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

/// A time in picoseconds: `20us`, `1.5ms`, `0.4ns`, `1m`, `0`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    ps: u64,
}

impl Span {
    pub const fn nanos(self) -> Nanos {
        Nanos::from_nanos(self.ps / 1_000)
    }

    pub const fn picos(self) -> u64 {
        self.ps
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        words::picos(text).map(|ps| Self { ps })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Bytes: a number, or one with a unit: `64M`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        words::size(text).map(Self)
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
        assert_eq!(ps("5"), Ok(5_000_000_000_000));
        for wrong in ["", "-1s", "1e9s", "nans", "5 x", "us"] {
            assert!(ps(wrong).is_err(), "{wrong}");
        }
        assert_eq!("64M".parse(), Ok(Bytes(64 << 20)));
        assert_eq!("1.5M".parse(), Ok(Bytes(3 << 19)));
        for wrong in ["", "M", "-1", "1.5", "99999999999G", "\u{b5}"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }
}
