//! What a call requests, as a small number with a name.

use std::fmt;

use wire::{mount, nfs2, nfs3, nfs4, nfsacl, nlm, nsm, portmap, rpcbind};

perf::named! {
    /// Programs that are distinguished, with their versions where the procedures differ.
    #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
    pub enum Program {
        Nfs2 => "NFS v2",
        Nfs3 => "NFS v3",
        /// One transaction of a COMPOUND, by its main operation.
        Nfs4 => "NFS v4",
        /// Calls from the server to the client.
        Nfs4Callback => "NFS v4 callback",
        NfsAcl => "NFSACL",
        Mount => "MOUNT",
        Nlm => "NLM",
        Nsm => "NSM",
        Portmap => "PORTMAP",
        Rpcbind => "RPCBIND",
        Other => "RPC",
    }
}

/// An operation: a procedure of a program, or the main operation of a COMPOUND.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Operation {
    pub program: Program,
    pub code: u8,
}

/// Procedures, or operations, that a program has.
const CODES: usize = 96;
/// Operations there can be: places of a table.
pub const OPERATIONS: usize = 11 * CODES;

/// A COMPOUND without an operation that we know: it is empty, encrypted, or cut off before it.
pub(super) const V4_EMPTY: u8 = 0;
/// NULL of NFS version 4, behind its operations.
pub(super) const V4_NULL: u8 = 95;
/// A CB_COMPOUND without an operation that we know: the number of its procedure.
const CALLBACK_EMPTY: u32 = 1;

impl Program {
    /// The program with this number.
    pub fn of(program: u32, version: u32) -> Self {
        match (program, version) {
            (nfs2::PROGRAM, nfs2::VERSION) => Self::Nfs2,
            (nfs3::PROGRAM, nfs3::VERSION) => Self::Nfs3,
            (nfs3::PROGRAM, nfs4::VERSION) => Self::Nfs4,
            (mount::PROGRAM, _) => Self::Mount,
            (portmap::PROGRAM, portmap::VERSION) => Self::Portmap,
            (portmap::PROGRAM, _) => Self::Rpcbind,
            (nlm::PROGRAM, _) => Self::Nlm,
            (nsm::PROGRAM, _) => Self::Nsm,
            (nfsacl::PROGRAM, _) => Self::NfsAcl,
            (program, 1) if nfs4::CALLBACK_PROGRAMS.contains(&program) => Self::Nfs4Callback,
            _ => Self::Other,
        }
    }

    /// One of the versions of NFS itself.
    pub const fn is_nfs(self) -> bool {
        matches!(self, Self::Nfs2 | Self::Nfs3 | Self::Nfs4)
    }
}

impl Operation {
    pub(super) fn new(program: Program, code: u32) -> Self {
        let code = u8::try_from(code).unwrap_or(u8::MAX);
        Self { program, code: if usize::from(code) < CODES { code } else { 94 } }
    }

    /// A callback of NFS version 4 by its main operation.
    pub(super) fn callback(main: Option<nfs4::Callback>) -> Self {
        Self::new(Program::Nfs4Callback, main.map_or(CALLBACK_EMPTY, nfs4::Callback::code))
    }

    /// The operation of NFS version 4 with this number.
    pub fn v4(number: usize) -> Self {
        Self::new(Program::Nfs4, u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// It is a COMPOUND of which is not known what for.
    pub const fn is_nameless(self) -> bool {
        matches!(self, Self { program: Program::Nfs4, code: V4_EMPTY })
    }

    /// A place in a table of [`OPERATIONS`].
    pub const fn index(self) -> usize {
        self.program as usize * CODES + self.code as usize
    }

    /// What is at a place.
    pub fn at(index: usize) -> Option<Self> {
        let program = *Program::ALL.get(index / CODES)?;
        u8::try_from(index % CODES).ok().map(|code| Self { program, code })
    }

    /// The RFC's name; `?` when there is none.
    pub fn name(self) -> &'static str {
        let code = u32::from(self.code);
        let name = match self.program {
            Program::Nfs2 => nfs2::Procedure::from_code(code).map(nfs2::Procedure::name),
            Program::Nfs3 => nfs3::Procedure::from_code(code).map(nfs3::Procedure::name),
            Program::Nfs4 if self.code == V4_EMPTY => Some("COMPOUND"),
            Program::Nfs4 if self.code == V4_NULL => Some("NULL"),
            Program::Nfs4 => nfs4::Operation::from_code(code).map(nfs4::Operation::name),
            Program::Nfs4Callback => match code {
                0 => Some("CB_NULL"),
                CALLBACK_EMPTY => Some("CB_COMPOUND"),
                _ => nfs4::Callback::from_code(code).map(nfs4::Callback::name),
            },
            Program::NfsAcl => nfsacl::Procedure::from_code(code).map(nfsacl::Procedure::name),
            Program::Mount => mount::Procedure::from_code(code).map(mount::Procedure::name),
            Program::Nlm => nlm::Procedure::from_code(code).map(nlm::Procedure::name),
            Program::Nsm => nsm::Procedure::from_code(code).map(nsm::Procedure::name),
            Program::Portmap => portmap::Procedure::from_code(code).map(portmap::Procedure::name),
            Program::Rpcbind => rpcbind::Procedure::from_code(code).map(rpcbind::Procedure::name),
            Program::Other => None,
        };
        name.unwrap_or("?")
    }

    /// The procedure of version 2 that it is.
    pub(super) fn nfs2(self) -> Option<nfs2::Procedure> {
        let code = (self.program == Program::Nfs2).then_some(self.code)?;
        nfs2::Procedure::from_code(code.into())
    }

    /// The procedure of version 3 that it is.
    pub(super) fn nfs3(self) -> Option<nfs3::Procedure> {
        let code = (self.program == Program::Nfs3).then_some(self.code)?;
        nfs3::Procedure::from_code(code.into())
    }

    /// The operation of version 4 that it is.
    pub(super) fn nfs4(self) -> Option<nfs4::Operation> {
        let code = (self.program == Program::Nfs4).then_some(self.code)?;
        nfs4::Operation::from_code(code.into())
    }

    /// What it does, the same in all versions.
    pub fn kind(self) -> Kind {
        use {nfs2::Procedure as P2, nfs3::Procedure as P3, nfs4::Operation as P4};
        match (self.nfs2(), self.nfs3(), self.nfs4()) {
            (Some(P2::Read), _, _)
            | (_, Some(P3::Read), _)
            | (_, _, Some(P4::Read | P4::ReadPlus)) => Kind::Read,
            (Some(P2::Write), _, _) | (_, Some(P3::Write), _) | (_, _, Some(P4::Write)) => {
                Kind::Write
            }
            (_, Some(P3::Commit), _) | (_, _, Some(P4::Commit)) => Kind::Commit,
            (Some(P2::Getattr | P2::Lookup), _, _)
            | (_, Some(P3::Getattr | P3::Lookup | P3::Access), _)
            | (_, _, Some(P4::Access | P4::Getattr | P4::Lookup)) => Kind::Attributes,
            (Some(P2::Readlink), _, _)
            | (_, Some(P3::Readlink), _)
            | (_, _, Some(P4::Readlink)) => Kind::Readlink,
            (Some(P2::Readdir), _, _)
            | (_, Some(P3::Readdir | P3::Readdirplus), _)
            | (_, _, Some(P4::Readdir)) => Kind::Listing,
            _ if self.is_change() => Kind::Change,
            _ => Kind::Other,
        }
    }

    /// It changes names or attributes.
    fn is_change(self) -> bool {
        use nfs2::Procedure as P2;
        use nfs3::Procedure as P3;
        use nfs4::Operation as P4;
        let two = matches!(
            self.nfs2(),
            Some(
                P2::Setattr
                    | P2::Create
                    | P2::Remove
                    | P2::Rename
                    | P2::Link
                    | P2::Symlink
                    | P2::Mkdir
                    | P2::Rmdir
            )
        );
        let three = matches!(
            self.nfs3(),
            Some(
                P3::Setattr
                    | P3::Create
                    | P3::Mkdir
                    | P3::Symlink
                    | P3::Mknod
                    | P3::Remove
                    | P3::Rmdir
                    | P3::Rename
                    | P3::Link
            )
        );
        let four = matches!(
            self.nfs4(),
            Some(P4::Create | P4::Link | P4::Remove | P4::Rename | P4::Setattr)
        );
        two || three || four
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Read,
    Write,
    Commit,
    /// GETATTR, LOOKUP, ACCESS.
    Attributes,
    Readlink,
    Listing,
    /// Of names or attributes: CREATE, REMOVE, RENAME, SETATTR and their like.
    Change,
    Other,
}

impl fmt::Display for Operation {
    /// Procedures of NFS by their bare name, others with their program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.program.is_nfs() {
            true => f.pad(self.name()),
            false => write!(f, "{}.{}", self.program.name(), self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_names_or_attributes_is_a_change_in_each_version() {
        let kind = |program, procedure| Operation::new(program, procedure).kind();
        let of_three = |procedure: nfs3::Procedure| kind(Program::Nfs3, procedure as u32);
        for procedure in [nfs3::Procedure::Setattr, nfs3::Procedure::Mknod, nfs3::Procedure::Link] {
            assert_eq!(of_three(procedure), Kind::Change, "{procedure:?}");
        }
        for procedure in [nfs3::Procedure::Null, nfs3::Procedure::Fsstat] {
            assert_eq!(of_three(procedure), Kind::Other, "{procedure:?}");
        }
        let of_two = kind(Program::Nfs2, nfs2::Procedure::Rename as u32);
        assert_eq!(of_two, Kind::Change);
    }
}
