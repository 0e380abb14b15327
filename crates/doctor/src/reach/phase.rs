//! The phases of a mount.

use std::fmt;

perf::named! {
    /// A phase, in the order in which a mount comes through them.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum Phase {
        Name => "name",
        Route => "route",
        Portmapper => "portmapper",
        Connect => "connect",
        Null => "NULL",
        MountProgram => "MOUNT program",
        Exports => "export list",
        Permission => "permission",
        Fsinfo => "FSINFO",
        Pathconf => "PATHCONF",
        Getattr => "GETATTR",
        Read => "READ",
        Write => "WRITE",
    }
}

impl Phase {
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
