//! Links by name, or by their two numbers.

use std::fmt;
use std::str::FromStr;

use perf::model::loggp::Link;
use perf::units::Nanos;
use thiserror::Error;

use super::LinkPair;

/// A link that has a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    pub name: &'static str,
    pub latency: Nanos,
    pub bits_per_sec: Option<u64>,
}

/// The latencies are one way, the rates those of both directions.
pub const PROFILES: [Profile; 6] = [
    Profile { name: "none", latency: Nanos::ZERO, bits_per_sec: None },
    Profile { name: "lan-100m", latency: Nanos::from_micros(100), bits_per_sec: Some(100_000_000) },
    Profile { name: "lan-1g", latency: Nanos::from_micros(100), bits_per_sec: Some(1_000_000_000) },
    Profile {
        name: "lan-10g",
        latency: Nanos::from_micros(50),
        bits_per_sec: Some(10_000_000_000),
    },
    Profile { name: "wan-10ms", latency: Nanos::from_millis(5), bits_per_sec: Some(100_000_000) },
    Profile { name: "wan-80ms", latency: Nanos::from_millis(40), bits_per_sec: Some(100_000_000) },
];

#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "unknown link profile {0:?}; known are {known}, or LATENCY/RATE such as 1ms/1g or 50us/100m",
    known = names()
)]
pub struct UnknownProfile(pub String);

/// The name of a link that was given by its numbers.
const UNNAMED: &str = "custom";

/// The longest latency that can be asked for: the moon and back, twice.
const LATENCY_MAX: Nanos = Nanos::from_secs(10);

/// `1ms/1g`: latency one way, and bits per second.
fn by_numbers(text: &str) -> Option<Profile> {
    let (latency, rate) = text.split_once('/')?;
    let latency_nanos = scaled(latency, &[("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])?;
    let units = [("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
    let bits_per_sec = scaled(rate, &units).filter(|bits| *bits > 0)?;
    let latency = Nanos::from_nanos(latency_nanos);
    let is_possible = latency <= LATENCY_MAX && bits_per_sec <= 8_000_000_000_000;
    let profile = Profile { name: UNNAMED, latency, bits_per_sec: Some(bits_per_sec) };
    is_possible.then_some(profile)
}

/// A whole number with one of these units.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    digits.parse::<u64>().ok()?.checked_mul(*scale)
}

fn names() -> String {
    PROFILES.map(|profile| profile.name).join(", ")
}

impl Profile {
    pub fn link(&self) -> Link {
        Link {
            latency: self.latency,
            gap: Nanos::ZERO,
            gap_per_byte_ps: self.bits_per_sec.map_or(0, |bits| 8_000_000_000_000 / bits.max(1)),
        }
    }

    pub fn links(&self) -> LinkPair {
        LinkPair::symmetric(self.link())
    }

    /// The most data it can carry; none when it is no limit.
    pub fn mib_per_s(&self) -> Option<f64> {
        self.bits_per_sec.map(|bits| bits as f64 / 8.0 / f64::from(1 << 20))
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let found = PROFILES.into_iter().find(|profile| profile.name == name);
        found.or_else(|| by_numbers(name)).ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits_per_sec {
            None => f.write_str("none (bare loopback or the network as it is)"),
            Some(bits) => {
                let (rate, unit) = if bits >= 1_000_000_000 {
                    (bits / 1_000_000_000, "Gbit/s")
                } else {
                    (bits / 1_000_000, "Mbit/s")
                };
                write!(f, "{} (emulated: L {} one way, {rate} {unit})", self.name, self.latency)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_by_its_name_and_an_unknown_one_lists_the_known() {
        let lan: Profile = "lan-1g".parse().unwrap();
        assert_eq!(lan.link().serialization(8192), Nanos::from_nanos(65_536));
        assert_eq!(lan.to_string(), "lan-1g (emulated: L 100 us one way, 1 Gbit/s)");
        let own: Profile = "20ms/2g".parse().unwrap();
        assert_eq!(own.to_string(), "custom (emulated: L 20.0 ms one way, 2 Gbit/s)");
        for wrong in ["1ms", "1/1g", "1ms/", "1ms/0g", "-1ms/1g", "99s/1g", "1ms/1x", "\u{b5}/1g"] {
            assert!(wrong.parse::<Profile>().is_err(), "{wrong}");
        }
        let error = "lan-2g".parse::<Profile>().unwrap_err().to_string();
        assert!(error.contains("wan-10ms") && error.contains("\"lan-2g\""), "{error}");
    }
}
