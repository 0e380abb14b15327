//! What an answered write survives, which two runs must have in common to be compared.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Run;

crate::named! {
    /// What an answered write survives: never to be mixed in one comparison.
    #[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Durability {
        /// Nothing: data live in the server process.
        Memory => "memory",
        /// The server process, not the machine.
        PageCache => "page-cache",
        /// Loss of power.
        Stable => "stable",
    }
}

/// Two records that must not be compared.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "the runs differ in durability: one is {}, the other {}; their numbers do not compare",
    stated(.first),
    stated(.second)
)]
pub struct DurabilityMismatch {
    pub first: Option<Durability>,
    pub second: Option<Durability>,
}

impl Run {
    /// Refuses two runs whose writes survive different things.
    pub fn check_comparable(&self, with: &Self) -> Result<(), DurabilityMismatch> {
        let (first, second) = (self.target.durability, with.target.durability);
        if first == second { Ok(()) } else { Err(DurabilityMismatch { first, second }) }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Not one of the words for a durability.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("durability is memory, page-cache or stable, not \"{0}\"")]
pub struct UnknownDurability(pub String);

impl FromStr for Durability {
    type Err = UnknownDurability;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|durability| durability.name() == word)
            .ok_or_else(|| UnknownDurability(word.into()))
    }
}

fn stated(durability: &Option<Durability>) -> &'static str {
    durability.map_or("not stated", Durability::name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::tests::minimal;

    #[test]
    fn runs_of_different_durability_do_not_compare() {
        let (mut a, mut b) = (minimal(), minimal());
        assert_eq!(a.check_comparable(&b), Ok(()));
        a.target.durability = Some(Durability::PageCache);
        let refused = a.check_comparable(&b).unwrap_err();
        assert!(refused.to_string().contains("one is page-cache, the other not stated"));
        b.target.durability = Some(Durability::Stable);
        let refused = a.check_comparable(&b).unwrap_err();
        assert!(refused.to_string().contains("one is page-cache, the other stable"));
    }

    #[test]
    fn durability_has_one_spelling_everywhere() {
        for durability in [Durability::Memory, Durability::PageCache, Durability::Stable] {
            assert_eq!(durability.to_string().parse(), Ok(durability));
            assert_eq!(json!(durability), json!(durability.to_string()));
        }
        assert_eq!("disk".parse::<Durability>(), Err(UnknownDurability("disk".into())));
    }
}
