//! Calls by procedure.

use std::fmt;

use super::difference;

/// A version of NFS; what the kernel counts for the operations inside of version 4's COMPOUND is
/// apart from its two procedures.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Version {
    V2,
    V3,
    V4,
}

impl Version {
    pub const fn number(self) -> u32 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
            Self::V4 => 4,
        }
    }

    /// What has this number.
    pub fn of(number: u64) -> Option<Self> {
        [Self::V2, Self::V3, Self::V4]
            .into_iter()
            .find(|version| u64::from(version.number()) == number)
    }

    /// The procedures in the order of their numbers. Of version 4 there are two; its clients count
    /// what they call by names of their own, which change with every kernel.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::V2 => &NAMES_V2,
            Self::V3 => &NAMES_V3,
            Self::V4 => &["null", "compound"],
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}", self.number())
    }
}

/// RFC 1094, section 2.2.
const NAMES_V2: [&str; 18] = [
    "null", "getattr", "setattr", "root", "lookup", "readlink", "read", "wrcache", "write",
    "create", "remove", "rename", "link", "symlink", "mkdir", "rmdir", "readdir", "fsstat",
];

/// RFC 1813, section 3.
const NAMES_V3: [&str; 22] = [
    "null",
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "create",
    "mkdir",
    "symlink",
    "mknod",
    "remove",
    "rmdir",
    "rename",
    "link",
    "readdir",
    "readdirplus",
    "fsstat",
    "fsinfo",
    "pathconf",
    "commit",
];

/// Calls of one version, in the order of [`Version::names`] as far as that goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Procedures {
    pub version: Version,
    pub calls: Vec<u64>,
}

impl Procedures {
    /// Calls of all procedures.
    pub fn total(&self) -> u64 {
        self.calls.iter().fold(0, |sum, calls| sum.saturating_add(*calls))
    }

    /// Each procedure that has a name, and its calls.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.version.names().iter().copied().zip(self.calls.iter().copied())
    }

    /// What came since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let before = before.calls.iter().copied().chain(std::iter::repeat(0));
        let calls = self.calls.iter().zip(before).map(|(now, before)| difference(*now, before));
        Self { version: self.version, calls: calls.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_have_names_and_differences() {
        let before = Procedures { version: Version::V3, calls: vec![1, 5] };
        let now = Procedures { version: Version::V3, calls: vec![1, 12, 7] };
        let since = now.since(&before);
        assert_eq!(
            since.named().collect::<Vec<_>>(),
            [("null", 0), ("getattr", 7), ("setattr", 7)]
        );
        assert_eq!(since.total(), 14);
        assert_eq!(Version::of(3), Some(Version::V3));
        assert_eq!(Version::of(5), None);
    }
}
