//! Which procedure of which program a call asks for.

use std::fmt;

use crate::{mount, nfs2, nfs3, nlm, portmap, rpcbind};

/// A remote procedure, known or not.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Procedure {
    Portmap(portmap::Procedure),
    /// One that version 3 has ([`rpcbind::Procedure::is_in_version_3`]).
    Rpcbind3(rpcbind::Procedure),
    Rpcbind4(rpcbind::Procedure),
    Nfs2(nfs2::Procedure),
    Nfs3(nfs3::Procedure),
    /// Version 1, for NFS version 2.
    Mount1(mount::Procedure),
    Mount(mount::Procedure),
    /// One that version 1 has ([`nlm::Procedure::is_in_version_1`]), for NFS version 2.
    Nlm1(nlm::Procedure),
    /// Version 1 with shares.
    Nlm3(nlm::Procedure),
    /// For NFS version 3.
    Nlm4(nlm::Procedure),
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
            (rpcbind::PROGRAM, rpcbind::VERSION_3) => rpcbind::Procedure::from_code(procedure)
                .filter(|procedure| procedure.is_in_version_3())
                .map(Self::Rpcbind3),
            (rpcbind::PROGRAM, rpcbind::VERSION_4) => {
                rpcbind::Procedure::from_code(procedure).map(Self::Rpcbind4)
            }
            (nfs2::PROGRAM, nfs2::VERSION) => nfs2::Procedure::from_code(procedure).map(Self::Nfs2),
            (nfs3::PROGRAM, nfs3::VERSION) => nfs3::Procedure::from_code(procedure).map(Self::Nfs3),
            (mount::PROGRAM, mount::VERSION_1) => {
                mount::Procedure::from_code(procedure).map(Self::Mount1)
            }
            (mount::PROGRAM, mount::VERSION) => {
                mount::Procedure::from_code(procedure).map(Self::Mount)
            }
            (nlm::PROGRAM, nlm::VERSION_1) => nlm::Procedure::from_code(procedure)
                .filter(|procedure| procedure.is_in_version_1())
                .map(Self::Nlm1),
            (nlm::PROGRAM, nlm::VERSION_3) => nlm::Procedure::from_code(procedure).map(Self::Nlm3),
            (nlm::PROGRAM, nlm::VERSION_4) => nlm::Procedure::from_code(procedure).map(Self::Nlm4),
            _ => None,
        };
        known.unwrap_or(Self::Unknown { program, version, procedure })
    }

    /// Program, version and procedure, as [`Self::of`] takes them.
    pub const fn numbers(self) -> (u32, u32, u32) {
        match self {
            Self::Portmap(procedure) => (portmap::PROGRAM, portmap::VERSION, procedure.code()),
            Self::Rpcbind3(procedure) => (rpcbind::PROGRAM, rpcbind::VERSION_3, procedure.code()),
            Self::Rpcbind4(procedure) => (rpcbind::PROGRAM, rpcbind::VERSION_4, procedure.code()),
            Self::Nfs2(procedure) => (nfs2::PROGRAM, nfs2::VERSION, procedure.code()),
            Self::Nfs3(procedure) => (nfs3::PROGRAM, nfs3::VERSION, procedure.code()),
            Self::Mount1(procedure) => (mount::PROGRAM, mount::VERSION_1, procedure.code()),
            Self::Mount(procedure) => (mount::PROGRAM, mount::VERSION, procedure.code()),
            Self::Nlm1(procedure) => (nlm::PROGRAM, nlm::VERSION_1, procedure.code()),
            Self::Nlm3(procedure) => (nlm::PROGRAM, nlm::VERSION_3, procedure.code()),
            Self::Nlm4(procedure) => (nlm::PROGRAM, nlm::VERSION_4, procedure.code()),
            Self::Unknown { program, version, procedure } => (program, version, procedure),
        }
    }

    /// The RFC's name without prefix: `WRITE`, `MNT`; `?` when unknown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portmap(procedure) => procedure.name(),
            Self::Rpcbind3(procedure) | Self::Rpcbind4(procedure) => procedure.name(),
            Self::Nfs2(procedure) => procedure.name(),
            Self::Nfs3(procedure) => procedure.name(),
            Self::Mount1(procedure) | Self::Mount(procedure) => procedure.name(),
            Self::Nlm1(procedure) | Self::Nlm3(procedure) | Self::Nlm4(procedure) => {
                procedure.name()
            }
            Self::Unknown { .. } => "?",
        }
    }

    /// Every procedure that is not [`Self::Unknown`]. Fuzz inputs choose by the place in this
    /// list, so that new programs come last.
    pub(crate) fn known() -> impl Iterator<Item = Self> {
        let nfs3 = nfs3::Procedure::ALL.iter().copied().map(Self::Nfs3);
        let mount = mount::Procedure::ALL.iter().copied().map(Self::Mount);
        let portmap = portmap::Procedure::ALL.iter().copied().map(Self::Portmap);
        let nfs2 = nfs2::Procedure::ALL.iter().copied().map(Self::Nfs2);
        let mount1 = mount::Procedure::ALL.iter().copied().map(Self::Mount1);
        let rpcbind = || rpcbind::Procedure::ALL.iter().copied();
        let rpcbind3 = rpcbind().filter(|procedure| procedure.is_in_version_3());
        let rpcbind4 = rpcbind().map(Self::Rpcbind4);
        let first = nfs3.chain(mount).chain(portmap);
        let second = nfs2.chain(mount1).chain(rpcbind3.map(Self::Rpcbind3)).chain(rpcbind4);
        let nlm = || nlm::Procedure::ALL.iter().copied();
        let nlm1 = nlm().filter(|procedure| procedure.is_in_version_1()).map(Self::Nlm1);
        first.chain(second).chain(nlm1).chain(nlm().map(Self::Nlm3)).chain(nlm().map(Self::Nlm4))
    }
}

impl fmt::Display for Procedure {
    /// Procedures of NFS version 3 by their bare name, others with their program: `WRITE`,
    /// `NFS2.WRITE`, `MOUNT.MNT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Portmap(procedure) => write!(f, "PORTMAP.{procedure}"),
            Self::Rpcbind3(procedure) => write!(f, "RPCBIND3.{procedure}"),
            Self::Rpcbind4(procedure) => write!(f, "RPCBIND4.{procedure}"),
            Self::Nfs2(procedure) => write!(f, "NFS2.{procedure}"),
            Self::Nfs3(procedure) => write!(f, "{procedure}"),
            Self::Mount1(procedure) => write!(f, "MOUNT1.{procedure}"),
            Self::Mount(procedure) => write!(f, "MOUNT.{procedure}"),
            Self::Nlm1(procedure) => write!(f, "NLM1.{procedure}"),
            Self::Nlm3(procedure) => write!(f, "NLM3.{procedure}"),
            Self::Nlm4(procedure) => write!(f, "NLM4.{procedure}"),
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
            ((100_000, 3, 3), "RPCBIND3.GETADDR"),
            ((100_000, 3, 9), "100000.3.9"),
            ((100_000, 4, 9), "RPCBIND4.GETVERSADDR"),
            ((100_003, 2, 8), "NFS2.WRITE"),
            ((100_003, 3, 7), "WRITE"),
            ((100_005, 1, 1), "MOUNT1.MNT"),
            ((100_005, 3, 1), "MOUNT.MNT"),
            ((100_021, 1, 2), "NLM1.LOCK"),
            ((100_021, 1, 20), "100021.1.20"),
            ((100_021, 3, 20), "NLM3.SHARE"),
            ((100_021, 4, 23), "NLM4.FREE_ALL"),
            ((100_021, 4, 16), "100021.4.16"),
            ((100_003, 3, 22), "100003.3.22"),
            ((100_003, 4, 1), "100003.4.1"),
            ((100_005, 2, 1), "100005.2.1"),
        ] {
            let procedure = Procedure::of(numbers.0, numbers.1, numbers.2);
            assert_eq!(procedure.to_string(), name);
            assert_eq!(procedure.numbers(), numbers);
        }
    }

    #[test]
    fn all_known_procedures_come_back_from_their_numbers() {
        for known in Procedure::known() {
            let (program, version, procedure) = known.numbers();
            assert_eq!(Procedure::of(program, version, procedure), known);
        }
        assert_eq!(Procedure::known().count(), 22 + 6 + 6 + 18 + 6 + 9 + 13 + 16 + 20 + 20);
    }
}
