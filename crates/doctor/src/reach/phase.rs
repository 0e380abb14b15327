//! The phases of a mount.

use std::fmt;

/// A phase, in the order in which a mount comes through them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    Name,
    Route,
    Portmapper,
    Connect,
    Null,
    MountProgram,
    Exports,
    Permission,
    Fsinfo,
    Pathconf,
    Getattr,
    Read,
    Write,
}

impl Phase {
    pub const ALL: [Self; 13] = [
        Self::Name,
        Self::Route,
        Self::Portmapper,
        Self::Connect,
        Self::Null,
        Self::MountProgram,
        Self::Exports,
        Self::Permission,
        Self::Fsinfo,
        Self::Pathconf,
        Self::Getattr,
        Self::Read,
        Self::Write,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Route => "route",
            Self::Portmapper => "portmapper",
            Self::Connect => "connect",
            Self::Null => "NULL",
            Self::MountProgram => "MOUNT program",
            Self::Exports => "export list",
            Self::Permission => "permission",
            Self::Fsinfo => "FSINFO",
            Self::Pathconf => "PATHCONF",
            Self::Getattr => "GETATTR",
            Self::Read => "READ",
            Self::Write => "WRITE",
        }
    }

    /// Whether a mount can do without it.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::Portmapper | Self::Exports | Self::Pathconf | Self::Read)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
