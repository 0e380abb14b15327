//! The operations that a mix is made of: procedures of NFS v3, in the order of the RFC.
//!
//! Version 2's ROOT and WRITECACHE are none: the first has been obsolete since the Mount protocol,
//! the second was for a version that never came (RFC 1094, section 2.2), and a server has nothing
//! to do for them.

use std::fmt;
use std::str::FromStr;

use client::url::Version;
use thiserror::Error;

perf::named! {
    /// One procedure.
    #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
    pub enum Operation {
        Null => "null",
        Getattr => "getattr",
        Setattr => "setattr",
        Lookup => "lookup",
        Access => "access",
        Readlink => "readlink",
        Read => "read",
        Write => "write",
        Create => "create",
        Mkdir => "mkdir",
        Symlink => "symlink",
        Mknod => "mknod",
        Remove => "remove",
        Rmdir => "rmdir",
        Rename => "rename",
        Link => "link",
        Readdir => "readdir",
        Readdirplus => "readdirplus",
        Fsstat => "fsstat",
        Fsinfo => "fsinfo",
        Pathconf => "pathconf",
        Commit => "commit",
    }
}

/// There is no such operation, or none that a mix can have.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is not an operation of a mix")]
pub struct UnknownOperation(pub String);

impl Operation {
    /// Whether this version has a procedure for it. Over version 2 a session makes of the others
    /// what that version has instead, or answers by itself.
    pub const fn is_in(self, version: Version) -> bool {
        match (version, self) {
            (
                Version::Two,
                Self::Access
                | Self::Mknod
                | Self::Readdirplus
                | Self::Fsinfo
                | Self::Pathconf
                | Self::Commit,
            ) => false,
            (Version::Two | Version::Three, _) => true,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = UnknownOperation;

    /// In letters of any case; `statfs` is what version 2 calls FSSTAT.
    fn from_str(name: &str) -> Result<Self, UnknownOperation> {
        if name.eq_ignore_ascii_case("statfs") {
            return Ok(Self::Fsstat);
        }
        let is_named = |operation: &Self| operation.name().eq_ignore_ascii_case(name);
        let found = Self::ALL.into_iter().find(is_named);
        found.ok_or_else(|| UnknownOperation(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_in_any_case_and_version_2_lacks_six() {
        assert_eq!("ReadDirPlus".parse(), Ok(Operation::Readdirplus));
        assert_eq!("STATFS".parse(), Ok(Operation::Fsstat));
        assert!("wrcache".parse::<Operation>().is_err());
        let in_two = Operation::ALL.iter().filter(|operation| operation.is_in(Version::Two));
        assert_eq!(in_two.count(), 16);
    }
}
