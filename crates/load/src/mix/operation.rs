//! The operations that a mix is made of: procedures of NFS v3, in the order of the RFC.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// One procedure. Over version 2 a session makes it what that version has instead.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Operation {
    Null,
    Getattr,
    Setattr,
    Lookup,
    Access,
    Readlink,
    Read,
    Write,
    Create,
    Remove,
    Readdir,
    Readdirplus,
    Fsstat,
    Fsinfo,
    Commit,
}

/// There is no such operation, or none that a mix can have.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is not an operation of a mix")]
pub struct UnknownOperation(pub String);

impl Operation {
    pub const ALL: [Self; 15] = [
        Self::Null,
        Self::Getattr,
        Self::Setattr,
        Self::Lookup,
        Self::Access,
        Self::Readlink,
        Self::Read,
        Self::Write,
        Self::Create,
        Self::Remove,
        Self::Readdir,
        Self::Readdirplus,
        Self::Fsstat,
        Self::Fsinfo,
        Self::Commit,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Getattr => "getattr",
            Self::Setattr => "setattr",
            Self::Lookup => "lookup",
            Self::Access => "access",
            Self::Readlink => "readlink",
            Self::Read => "read",
            Self::Write => "write",
            Self::Create => "create",
            Self::Remove => "remove",
            Self::Readdir => "readdir",
            Self::Readdirplus => "readdirplus",
            Self::Fsstat => "fsstat",
            Self::Fsinfo => "fsinfo",
            Self::Commit => "commit",
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

    fn from_str(name: &str) -> Result<Self, UnknownOperation> {
        let found = Self::ALL.into_iter().find(|operation| operation.name() == name);
        found.ok_or_else(|| UnknownOperation(name.to_owned()))
    }
}
