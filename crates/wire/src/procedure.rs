//! Which procedure of which program a call asks for.

use std::fmt;

use crate::{mount, nfs3, portmap};

/// A remote procedure, known or not.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Procedure {
    Portmap(portmap::Procedure),
    Nfs3(nfs3::Procedure),
    Mount(mount::Procedure),
    Unknown {
        program: u32,
        version: u32,
        procedure: u32,
    },
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
        known.unwrap_or(Self::Unknown {
            program,
            version,
            procedure,
        })
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
            Self::Unknown {
                program,
                version,
                procedure,
            } => write!(f, "{program}.{version}.{procedure}"),
        }
    }
}
