//! Mistakes that are made on purpose.

use std::str::FromStr;

use client::files::Mistake;

/// A mistake that is made on purpose, to see whether it is noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Planted {
    /// The server forgets what it has answered.
    ReplyCacheOff,
    /// The write verifier is the same after a crash.
    VerifierStays,
    /// A COMMIT is answered before the disk has it.
    CommitEarly,
    /// The drive says that it has synced when it has not.
    DriveLies,
    /// Clients make it; noticed where they compete.
    Client(Mistake),
    /// The cache on a client's disk makes it; noticed where clients are killed.
    Cache(cache::Mistake),
    /// A host has the locks of a file for each node by which it knows the file.
    LocksByNode,
}

impl Planted {
    pub const ALL: [Self; 16] = [
        Self::ReplyCacheOff,
        Self::VerifierStays,
        Self::CommitEarly,
        Self::DriveLies,
        Self::Client(Mistake::OldAttributes),
        Self::Client(Mistake::ForgottenExcuses),
        Self::Client(Mistake::UncheckedEnds),
        Self::Client(Mistake::LateNames),
        Self::Client(Mistake::ErrorsReportedOnce),
        Self::Client(Mistake::CommitMakesState),
        Self::Client(Mistake::UnheardErrors),
        Self::Client(Mistake::OldBlocks),
        Self::Client(Mistake::OthersBlocks),
        Self::Client(Mistake::OldNames),
        Self::Cache(cache::Mistake::UncheckedBlocks),
        Self::LocksByNode,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ReplyCacheOff => "reply-cache-off",
            Self::VerifierStays => "verifier-kept",
            Self::CommitEarly => "commit-early",
            Self::DriveLies => "drive-lies",
            Self::Client(Mistake::OldAttributes) => "old-attributes",
            Self::Client(Mistake::ForgottenExcuses) => "forgotten-excuses",
            Self::Client(Mistake::UncheckedEnds) => "unasked-ends",
            Self::Client(Mistake::LateNames) => "late-names",
            Self::Client(Mistake::ErrorsReportedOnce) => "errors-told-once",
            Self::Client(Mistake::CommitMakesState) => "commit-makes-state",
            Self::Client(Mistake::UnheardErrors) => "unheard-errors",
            Self::Client(Mistake::OldBlocks) => "old-blocks",
            Self::Client(Mistake::OthersBlocks) => "others-blocks",
            Self::Client(Mistake::OldNames) => "old-names",
            Self::Cache(cache::Mistake::UncheckedBlocks) => "unchecked-blocks",
            Self::LocksByNode => "locks-by-node",
        }
    }

    /// The mistake of a client, if it is one.
    pub(super) fn mistake(self) -> Option<Mistake> {
        match self {
            Self::Client(mistake) => Some(mistake),
            _ => None,
        }
    }

    /// Whether it shows where clients compete.
    pub fn is_of_contests(self) -> bool {
        matches!(self, Self::Client(_) | Self::LocksByNode)
    }

    /// Whether it shows where clients are killed.
    pub fn is_of_kills(self) -> bool {
        matches!(self, Self::Cache(_))
    }
}

impl FromStr for Planted {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|planted| planted.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{name:?} is none of {names}")
        })
    }
}
