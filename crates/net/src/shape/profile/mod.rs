//! Links by name, by their numbers, or from a file.
//!
//! ```text
//! wan-10ms                                  a name
//! 1ms/1g                                    L one way, and the rate of both directions
//! lan-1g,L=5ms,loss=1%,back.G=1.25MB/s      one of these, changed
//! L=5ms,o=50us                              nothing, changed
//! far.toml                                  a file: `file.rs` has its form
//! ```
//!
//! `keys.rs` has the keys, `words.rs` what values look like. What cannot be is refused with where
//! it was requested and what is possible; `docs/links.md` says what everything does.

mod error;
mod file;
mod keys;
mod show;
mod words;

use std::str::FromStr;

use perf::model::loggp::Link;
use perf::units::Nanos;

pub use self::error::{Cause, ProfileError};
use self::keys::Reading;
pub use self::names::NAMES;
use super::LinkPair;
use super::conditions::{Conditions, Jitter, Overhead, Ppm, Reordering};

/// A link in both directions, and what its endpoint spends on each message.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What was requested, in words that ask for it again.
    pub name: String,
    /// From the wrapped end to its peer.
    pub there: Conditions,
    pub back: Conditions,
    pub overhead: Overhead,
    /// Of everything that is left to chance.
    pub seed: u64,
}

/// The seed that nobody chose.
const SEED: u64 = 1;

const MBIT: u64 = 1_000_000;

impl Profile {
    /// No link.
    pub fn none() -> Self {
        Self::symmetric(NAMES[0], Conditions::default())
    }

    /// The same in both directions.
    pub fn symmetric(name: impl Into<String>, conditions: impl Into<Conditions>) -> Self {
        let conditions = conditions.into();
        Self {
            name: name.into(),
            there: conditions.clone(),
            back: conditions,
            overhead: Overhead::NONE,
            seed: SEED,
        }
    }

    /// A latency one way, and the rate of both directions, as `LATENCY/RATE` asks for.
    pub fn of(name: impl Into<String>, latency: Nanos, bits_per_sec: u64) -> Self {
        Self::symmetric(name, plain(latency, bits_per_sec))
    }

    /// A link that has a name. The latencies are one way and, like the rates, guesses at what is
    /// usual; those of 1 Gbit/s and below are of the order of the papers' networks.
    pub fn named(name: &str) -> Option<Self> {
        let (us, ms) = (Nanos::from_micros, Nanos::from_millis);
        let conditions = match name {
            "none" => Conditions::default(),
            "lan-100m" => plain(us(100), 100 * MBIT),
            "lan-1g" => plain(us(100), 1_000 * MBIT),
            "lan-10g" => plain(us(50), 10_000 * MBIT),
            // A few routers away, and not alone: packets with their headers meet others.
            "campus" => Conditions {
                jitter: Jitter::Exponential(us(50)),
                queue_bytes_max: Some(512 << 10),
                mtu: Some(1500),
                ..plain(us(500), 1_000 * MBIT)
            },
            "wan-10ms" => plain(ms(5), 100 * MBIT),
            "wan-80ms" => plain(ms(40), 100 * MBIT),
            "lossy" => Conditions {
                lost: Ppm::percent(1),
                duplicated: Ppm(1_000),
                reordered: Reordering { share: Ppm::percent(1), by: ms(2) },
                jitter: Jitter::Exponential(us(200)),
                mtu: Some(1500),
                ..plain(ms(1), 100 * MBIT)
            },
            _ => return None,
        };
        Some(Self::symmetric(name, conditions))
    }

    /// L, g and G, which is all that some have to know.
    pub fn links(&self) -> LinkPair {
        LinkPair { there: self.there.link, back: self.back.link }
    }

    /// The same at a rate of 1/`by`.
    #[must_use]
    pub fn slowed(mut self, by: u64) -> Self {
        for link in [&mut self.there.link, &mut self.back.link] {
            link.gap_per_byte_ps = link.gap_per_byte_ps.saturating_mul(by);
        }
        self
    }

    /// Whether there is anything between the two ends.
    pub fn has_link(&self) -> bool {
        !(self.there.is_transparent() && self.back.is_transparent())
    }

    /// The most data it can carry there; none when it is no limit.
    pub fn mib_per_s(&self) -> Option<f64> {
        let rate = self.there.link.bytes_per_sec();
        rate.is_finite().then(|| rate / f64::from(1 << 20))
    }
}

fn plain(latency: Nanos, bits_per_sec: u64) -> Conditions {
    let gap_per_byte_ps = words::gap_per_byte_ps(bits_per_sec);
    Link { latency, gap: Nanos::ZERO, gap_per_byte_ps }.into()
}

impl Default for Profile {
    fn default() -> Self {
        Self::none()
    }
}

impl From<LinkPair> for Profile {
    fn from(links: LinkPair) -> Self {
        let none = Self::symmetric("custom", Conditions::default());
        Self { there: links.there.into(), back: links.back.into(), ..none }
    }
}

impl FromStr for Profile {
    type Err = ProfileError;

    /// Reads a file if one is named.
    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let (base, changes) = match text.split_once(',') {
            Some((base, changes)) => (base, Some(changes)),
            None => (text, None),
        };
        let mut reading = if base.ends_with(".toml") {
            file::read(base)?
        } else if base.contains('=') {
            let mut reading = Reading::new(Self::none());
            reading.word(base)?;
            reading
        } else {
            Reading::new(based_on(base)?)
        };
        for change in changes.into_iter().flat_map(|changes| changes.split(',')) {
            reading.word(change)?;
        }
        let mut profile = reading.checked()?;
        text.clone_into(&mut profile.name);
        Ok(profile)
    }
}

/// A name, or `LATENCY/RATE`.
fn based_on(text: &str) -> Result<Profile, ProfileError> {
    if let Some(profile) = Profile::named(text) {
        return Ok(profile);
    }
    let Some((latency, rate)) = text.split_once('/') else {
        return Err(ProfileError::of(Cause::Unknown { name: text.to_owned() }));
    };
    let mut reading = Reading::new(Profile::none());
    for (key, value) in [("L", latency), ("G", rate)] {
        let set = if key == "G" { words::rate(value).map(|_| ()) } else { Ok(()) };
        set.and_then(|()| reading.set_both(key, value))
            .map_err(|why| ProfileError::of(Cause::Numbers { text: text.to_owned(), why }))?;
    }
    let mut profile = reading.checked()?;
    text.clone_into(&mut profile.name);
    Ok(profile)
}

mod names;
#[cfg(test)]
mod tests;
