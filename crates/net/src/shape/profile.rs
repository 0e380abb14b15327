//! Links by name.

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
#[error("unknown link profile {0:?}; known are {known}", known = names())]
pub struct UnknownProfile(pub String);

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
        found.ok_or_else(|| UnknownProfile(name.to_owned()))
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
        let error = "lan-2g".parse::<Profile>().unwrap_err().to_string();
        assert!(error.contains("wan-10ms") && error.contains("\"lan-2g\""), "{error}");
    }
}
