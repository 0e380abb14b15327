//! The named mixes: how many of 100 operations are which, and how sure we are of that.

use std::fmt;
use std::str::FromStr;

use client::url::Version;
use thiserror::Error;

use super::operation::Operation::{
    self, Access, Commit, Create, Fsinfo, Fsstat, Getattr, Lookup, Read, Readdir, Readdirplus,
    Readlink, Remove, Setattr, Write,
};

perf::named! {
    /// What a table of shares rests on.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Sureness {
        /// Read in the benchmark's own source or in a table of its vendor's.
        Read => "read",
        /// Read, but for some entries, which are from memory.
        Partly => "partly",
        /// From memory, but for single numbers.
        Remembered => "remembered",
        /// Given by the user, who knows.
        Given => "given",
        /// Counted by a kernel, or in a capture.
        Counted => "counted",
    }
}

/// A mix with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    pub name: &'static str,
    /// Of their sum, which is 100 for the named ones.
    pub shares: &'static [(Operation, u32)],
    pub sureness: Sureness,
    /// Where the shares come from, and what is not sure.
    pub source: &'static str,
}

/// The benchmarks' mixes by age.
pub const MIXES: [Mix; 4] = [
    Mix {
        name: "laddis",
        shares: &[
            (Lookup, 34),
            (Read, 22),
            (Write, 15),
            (Getattr, 13),
            (Readlink, 8),
            (Readdir, 3),
            (Create, 2),
            (Remove, 1),
            (Fsstat, 1),
            (Setattr, 1),
        ],
        sureness: Sureness::Read,
        source: "SFS 1.x, the same as nhfsstone's default of 1990",
    },
    Mix {
        name: "sfs97-v2",
        shares: &[
            (Lookup, 36),
            (Getattr, 26),
            (Read, 14),
            (Write, 7),
            (Readlink, 7),
            (Readdir, 6),
            (Create, 1),
            (Remove, 1),
            (Fsstat, 1),
            (Setattr, 1),
        ],
        sureness: Sureness::Remembered,
        source: "SFS97 (2.0 and 3.0) for version 2; a paper that we have read prints WRITE's 7 %",
    },
    Mix {
        name: "sfs97-v3",
        shares: &[
            (Lookup, 27),
            (Read, 18),
            (Getattr, 11),
            (Write, 9),
            (Readdirplus, 9),
            (Readlink, 7),
            (Access, 7),
            (Commit, 5),
            (Readdir, 2),
            (Create, 1),
            (Remove, 1),
            (Fsstat, 1),
            (Setattr, 1),
            (Fsinfo, 1),
        ],
        sureness: Sureness::Partly,
        source: "SFS97 (3.0) for version 3; a table of 2008 that sums to 99, FSINFO's 1 % is from \
                 memory",
    },
    Mix {
        name: "sfs2008-v3",
        shares: &[
            (Getattr, 26),
            (Lookup, 24),
            (Read, 18),
            (Access, 11),
            (Write, 10),
            (Setattr, 4),
            (Readdirplus, 2),
            (Readlink, 1),
            (Readdir, 1),
            (Create, 1),
            (Remove, 1),
            (Fsstat, 1),
        ],
        sureness: Sureness::Read,
        source: "SFS2008 for version 3; a table of 2008, which leaves COMMIT out",
    },
];

/// There is no mix of this name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("unknown mix {0:?}; known are {known}", known = MIXES.map(|mix| mix.name).join(", "))]
pub struct UnknownMix(pub String);

/// Parts into which the shares of a mix that has no name here are rounded, unless they are whole by
/// themselves: the first of these that holds them exactly, or the last. Few parts keep a short run
/// close to the mix.
const PARTS: [u32; 3] = [100, 1_000, 10_000];

impl Mix {
    /// A mix of these weights, of which at least one is more than zero, and all are finite. It is
    /// in memory until the process ends, as plain as the named ones are: a command reads one.
    pub fn leaked(
        name: String,
        weights: &[(Operation, f64)],
        sureness: Sureness,
        source: String,
    ) -> Self {
        let shares = rounded(weights);
        Self {
            name: Box::leak(name.into_boxed_str()),
            shares: Box::leak(shares.into_boxed_slice()),
            sureness,
            source: Box::leak(source.into_boxed_str()),
        }
    }

    /// The first operation of it that this version has no procedure for.
    pub fn lacking(&self, version: Version) -> Option<Operation> {
        let lacks = |(operation, share): &(Operation, u32)| *share > 0 && !operation.is_in(version);
        self.shares.iter().find(|share| lacks(share)).map(|(operation, _)| *operation)
    }

    /// The mix that the papers' comparisons use.
    pub const SFS97_V3: Self = MIXES[2];

    /// The share of an operation, from 0 to 1.
    pub fn share(&self, operation: Operation) -> f64 {
        let all: u32 = self.shares.iter().map(|(_, share)| share).sum();
        let own = self.shares.iter().find(|(named, _)| *named == operation);
        own.map_or(0.0, |(_, share)| f64::from(*share) / f64::from(all.max(1)))
    }

    /// WRITEs are UNSTABLE where COMMITs follow, and stable where none do.
    pub fn commits(&self) -> bool {
        self.share(Commit) > 0.0
    }
}

/// Whole parts by the largest remainder: they sum to what they are parts of, and none is off by a
/// whole one.
pub(crate) fn rounded(weights: &[(Operation, f64)]) -> Vec<(Operation, u32)> {
    let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let exact = |parts: u32| {
        let parts = f64::from(parts);
        weights.iter().map(move |(operation, weight)| (*operation, weight / sum * parts))
    };
    let is_whole = |parts: &u32| exact(*parts).all(|(_, part)| (part - part.round()).abs() < 1e-6);
    let most = PARTS[PARTS.len() - 1];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 10,000")]
    let own = (1.0..=f64::from(most)).contains(&sum).then_some(sum as u32);
    let parts = own.into_iter().chain(PARTS).find(is_whole).unwrap_or(most);
    let mut rounded: Vec<(Operation, u32, f64)> = exact(parts)
        .map(|(operation, part)| {
            // A hair below a whole number is that number.
            let whole = (part + 1e-6).floor();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most the parts"
            )]
            let count = whole as u32;
            (operation, count, part - whole)
        })
        .collect();
    let given: u32 = rounded.iter().map(|(_, part, _)| part).sum();
    let mut order: Vec<usize> = (0..rounded.len()).collect();
    order.sort_by(|a, b| rounded[*b].2.total_cmp(&rounded[*a].2));
    for at in order.into_iter().take(parts.saturating_sub(given) as usize) {
        rounded[at].1 += 1;
    }
    let shares = rounded.into_iter().map(|(operation, part, _)| (operation, part));
    shares.filter(|(_, part)| *part > 0).collect()
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Mix {
    type Err = UnknownMix;

    fn from_str(name: &str) -> Result<Self, UnknownMix> {
        let found = MIXES.into_iter().find(|mix| mix.name == name);
        found.ok_or_else(|| UnknownMix(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_has_a_hundred_operations_each_named_once() {
        for mix in MIXES {
            assert_eq!(mix.shares.iter().map(|(_, share)| share).sum::<u32>(), 100, "{mix}");
            for (at, (operation, _)) in mix.shares.iter().enumerate() {
                assert!(mix.shares[..at].iter().all(|(other, _)| other != operation), "{mix}");
            }
            assert_eq!(mix.name.parse::<Mix>(), Ok(mix));
        }
        assert!((Mix::SFS97_V3.share(Read) - 0.18).abs() < 1e-12);
        assert!(Mix::SFS97_V3.commits() && !MIXES[3].commits());
    }

    #[test]
    fn weights_become_few_whole_parts_that_keep_their_sum() {
        assert_eq!(rounded(&[(Read, 2.0), (Write, 2.0)]), [(Read, 2), (Write, 2)]);
        assert_eq!(rounded(&[(Read, 99.5), (Write, 0.5)]), [(Read, 995), (Write, 5)]);
        let thirds = rounded(&[(Read, 0.1), (Write, 0.1), (Lookup, 0.1), (Commit, 0.0)]);
        assert_eq!(thirds, [(Read, 3_334), (Write, 3_333), (Lookup, 3_333)]);
        // What is less than half a part falls away.
        assert_eq!(rounded(&[(Read, 1e6), (Write, 1.0)]), [(Read, 10_000)]);
    }

    #[test]
    fn a_mix_knows_what_a_version_lacks() {
        assert_eq!(Mix::SFS97_V3.lacking(Version::Three), None);
        assert_eq!(Mix::SFS97_V3.lacking(Version::Two), Some(Readdirplus));
        assert_eq!(MIXES[0].lacking(Version::Two), None);
    }

    #[test]
    fn an_unknown_mix_lists_the_known() {
        let error = "sfs2014".parse::<Mix>().unwrap_err().to_string();
        assert!(error.contains("sfs2014") && error.contains("sfs97-v3"), "{error}");
    }
}
