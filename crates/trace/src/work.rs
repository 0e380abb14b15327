//! What a call is work for: as far as it matters for what it waits for.

use super::operation::Kind;

/// Kinds of work.
pub const WORKS: usize = 8;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Work {
    Read,
    /// WRITEs that may stay in memory.
    Write,
    /// WRITEs that are stable when they are answered.
    StableWrite,
    Commit,
    /// GETATTR, LOOKUP, ACCESS.
    Attributes,
    /// READDIR and READDIRPLUS.
    Listing,
    /// Of names or attributes, which are stable when they are answered (RFC 1813).
    Change,
    Other,
}

impl Work {
    pub const ALL: [Self; WORKS] = [
        Self::Read,
        Self::Write,
        Self::StableWrite,
        Self::Commit,
        Self::Attributes,
        Self::Listing,
        Self::Change,
        Self::Other,
    ];

    /// Of a WRITE whether it is to be stable has to be known.
    pub(super) const fn of(kind: Kind, is_stable: Option<bool>) -> Self {
        match kind {
            Kind::Read => Self::Read,
            Kind::Write => match is_stable {
                Some(true) => Self::StableWrite,
                Some(false) => Self::Write,
                None => Self::Other,
            },
            Kind::Commit => Self::Commit,
            Kind::Attributes => Self::Attributes,
            Kind::Listing => Self::Listing,
            Kind::Change => Self::Change,
            Kind::Readlink | Kind::Other => Self::Other,
        }
    }

    /// It is answered when data are stable.
    pub const fn is_sync(self) -> bool {
        matches!(self, Self::StableWrite | Self::Commit)
    }
}
