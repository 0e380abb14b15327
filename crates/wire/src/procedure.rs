//! Which procedure of which program a call asks for.

use std::fmt;

use crate::{mount, nfs3, portmap};

/// A remote procedure, known or not.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Procedure {
    Portmap(portmap::Procedure),
    Nfs3(nfs3::Procedure),
    Mount(mount::Procedure),
    Unknown { program: u32, version: u32, procedure: u32 },
}

impl Procedure {
    /// The procedure with these three numbers.
    pub fn of(program: u32, version: u32, procedure: u32) -> Self {
        let known = match (program, version) {
            (portmap::PROGRAM, portmap::VERSION) => {
                portmap::Procedure::from_code(procedure).map(Self::Portmap)
            }
            (nfs3::PROGRAM, nfs3::VERSION) => nfs3::Procedure::from_code(procedure).map(Self::Nfs3),
            (mount::PROGRAM, mount::VERSION) => {
                mount::Procedure::from_code(procedure).map(Self::Mount)
            }
            _ => None,
        };
        known.unwrap_or(Self::Unknown { program, version, procedure })
    }

    /// Program, version and procedure, as [`Self::of`] takes them.
    pub const fn numbers(self) -> (u32, u32, u32) {
        match self {
            Self::Portmap(procedure) => (portmap::PROGRAM, portmap::VERSION, procedure.code()),
            Self::Nfs3(procedure) => (nfs3::PROGRAM, nfs3::VERSION, procedure.code()),
            Self::Mount(procedure) => (mount::PROGRAM, mount::VERSION, procedure.code()),
            Self::Unknown { program, version, procedure } => (program, version, procedure),
        }
    }

    /// The RFC's name without prefix: `WRITE`, `MNT`; `?` when unknown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portmap(procedure) => procedure.name(),
            Self::Nfs3(procedure) => procedure.name(),
            Self::Mount(procedure) => procedure.name(),
            Self::Unknown { .. } => "?",
        }
    }
}

impl fmt::Display for Procedure {
    /// NFS procedures by their bare name, others with their program: `WRITE`, `MOUNT.MNT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Portmap(procedure) => write!(f, "PORTMAP.{procedure}"),
            Self::Nfs3(procedure) => write!(f, "{procedure}"),
            Self::Mount(procedure) => write!(f, "MOUNT.{procedure}"),
            Self::Unknown { program, version, procedure } => {
                write!(f, "{program}.{version}.{procedure}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_procedure_lead_back_to_it() {
        for (numbers, name) in [
            ((100_000, 2, 3), "PORTMAP.GETPORT"),
            ((100_003, 3, 7), "WRITE"),
            ((100_005, 3, 1), "MOUNT.MNT"),
            ((100_003, 3, 22), "100003.3.22"),
            ((100_003, 4, 1), "100003.4.1"),
            ((100_005, 1, 1), "100005.1.1"),
        ] {
            let procedure = Procedure::of(numbers.0, numbers.1, numbers.2);
            assert_eq!(procedure.to_string(), name);
            assert_eq!(procedure.numbers(), numbers);
        }
    }
}
