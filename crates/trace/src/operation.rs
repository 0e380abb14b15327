//! What a call asks for, as a small number with a name.

use std::fmt;

use wire::{mount, nfs2, nfs3, portmap, rpcbind};

/// Programs that are told apart, with their versions where the procedures differ.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Program {
    Nfs2,
    Nfs3,
    /// One transaction of a COMPOUND, by its main operation.
    Nfs4,
    /// Calls from the server to the client.
    Nfs4Callback,
    NfsAcl,
    Mount,
    Nlm,
    Nsm,
    Portmap,
    Rpcbind,
    Other,
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

/// A COMPOUND without an operation that we know.
pub(super) const V4_EMPTY: u8 = 0;
/// NULL of NFS version 4, behind its operations.
pub(super) const V4_NULL: u8 = 95;

pub(super) mod v4 {
    pub(crate) const ACCESS: u32 = 3;
    pub(crate) const CLOSE: u32 = 4;
    pub(crate) const COMMIT: u32 = 5;
    pub(crate) const CREATE: u32 = 6;
    pub(crate) const DELEGPURGE: u32 = 7;
    pub(crate) const DELEGRETURN: u32 = 8;
    pub(crate) const GETATTR: u32 = 9;
    pub(crate) const GETFH: u32 = 10;
    pub(crate) const LINK: u32 = 11;
    pub(crate) const LOOKUP: u32 = 15;
    pub(crate) const OPEN: u32 = 18;
    pub(crate) const PUTFH: u32 = 22;
    pub(crate) const PUTROOTFH: u32 = 24;
    pub(crate) const READ: u32 = 25;
    pub(crate) const READDIR: u32 = 26;
    pub(crate) const READLINK: u32 = 27;
    pub(crate) const REMOVE: u32 = 28;
    pub(crate) const RENAME: u32 = 29;
    pub(crate) const RESTOREFH: u32 = 31;
    pub(crate) const SAVEFH: u32 = 32;
    pub(crate) const SETATTR: u32 = 34;
    pub(crate) const WRITE: u32 = 38;
    pub(crate) const SEQUENCE: u32 = 53;
    pub(crate) const READ_PLUS: u32 = 68;
}

/// The operations of NFS version 4 by number (RFC 7531, RFC 5662, RFC 7863).
const V4_NAMES: [&str; 76] = [
    "COMPOUND",
    "?",
    "?",
    "ACCESS",
    "CLOSE",
    "COMMIT",
    "CREATE",
    "DELEGPURGE",
    "DELEGRETURN",
    "GETATTR",
    "GETFH",
    "LINK",
    "LOCK",
    "LOCKT",
    "LOCKU",
    "LOOKUP",
    "LOOKUPP",
    "NVERIFY",
    "OPEN",
    "OPENATTR",
    "OPEN_CONFIRM",
    "OPEN_DOWNGRADE",
    "PUTFH",
    "PUTPUBFH",
    "PUTROOTFH",
    "READ",
    "READDIR",
    "READLINK",
    "REMOVE",
    "RENAME",
    "RENEW",
    "RESTOREFH",
    "SAVEFH",
    "SECINFO",
    "SETATTR",
    "SETCLIENTID",
    "SETCLIENTID_CONFIRM",
    "VERIFY",
    "WRITE",
    "RELEASE_LOCKOWNER",
    "BACKCHANNEL_CTL",
    "BIND_CONN_TO_SESSION",
    "EXCHANGE_ID",
    "CREATE_SESSION",
    "DESTROY_SESSION",
    "FREE_STATEID",
    "GET_DIR_DELEGATION",
    "GETDEVICEINFO",
    "GETDEVICELIST",
    "LAYOUTCOMMIT",
    "LAYOUTGET",
    "LAYOUTRETURN",
    "SECINFO_NO_NAME",
    "SEQUENCE",
    "SET_SSV",
    "TEST_STATEID",
    "WANT_DELEGATION",
    "DESTROY_CLIENTID",
    "RECLAIM_COMPLETE",
    "ALLOCATE",
    "COPY",
    "COPY_NOTIFY",
    "DEALLOCATE",
    "IO_ADVISE",
    "LAYOUTERROR",
    "LAYOUTSTATS",
    "OFFLOAD_CANCEL",
    "OFFLOAD_STATUS",
    "READ_PLUS",
    "SEEK",
    "WRITE_SAME",
    "CLONE",
    "GETXATTR",
    "SETXATTR",
    "LISTXATTRS",
    "REMOVEXATTR",
];

const NLM_NAMES: [&str; 24] = [
    "NULL",
    "TEST",
    "LOCK",
    "CANCEL",
    "UNLOCK",
    "GRANTED",
    "TEST_MSG",
    "LOCK_MSG",
    "CANCEL_MSG",
    "UNLOCK_MSG",
    "GRANTED_MSG",
    "TEST_RES",
    "LOCK_RES",
    "CANCEL_RES",
    "UNLOCK_RES",
    "GRANTED_RES",
    "?",
    "?",
    "?",
    "?",
    "SHARE",
    "UNSHARE",
    "NM_LOCK",
    "FREE_ALL",
];

const NSM_NAMES: [&str; 7] = ["NULL", "STAT", "MON", "UNMON", "UNMON_ALL", "SIMU_CRASH", "NOTIFY"];

const ACL_NAMES: [&str; 6] = ["NULL", "GETACL", "SETACL", "GETATTR", "ACCESS", "GETXATTRDIR"];

/// Procedure 0, COMPOUNDs without an operation that we know, and the operations by number
/// (RFC 5662, RFC 7863).
const CALLBACK_NAMES: [&str; 16] = [
    "CB_NULL",
    "CB_COMPOUND",
    "?",
    "CB_GETATTR",
    "CB_RECALL",
    "CB_LAYOUTRECALL",
    "CB_NOTIFY",
    "CB_PUSH_DELEG",
    "CB_RECALL_ANY",
    "CB_RECALLABLE_OBJ_AVAIL",
    "CB_RECALL_SLOT",
    "CB_SEQUENCE",
    "CB_WANTS_CANCELLED",
    "CB_NOTIFY_LOCK",
    "CB_NOTIFY_DEVICEID",
    "CB_OFFLOAD",
];

/// Where NFS version 4 calls back to: the transient programs that clients choose.
const CALLBACK: std::ops::RangeInclusive<u32> = 0x4000_0000..=0x5fff_ffff;

impl Program {
    const ALL: [Self; 11] = [
        Self::Nfs2,
        Self::Nfs3,
        Self::Nfs4,
        Self::Nfs4Callback,
        Self::NfsAcl,
        Self::Mount,
        Self::Nlm,
        Self::Nsm,
        Self::Portmap,
        Self::Rpcbind,
        Self::Other,
    ];

    /// The program with this number.
    pub fn of(program: u32, version: u32) -> Self {
        match (program, version) {
            (nfs3::PROGRAM, 2) => Self::Nfs2,
            (nfs3::PROGRAM, 3) => Self::Nfs3,
            (nfs3::PROGRAM, 4) => Self::Nfs4,
            (mount::PROGRAM, _) => Self::Mount,
            (portmap::PROGRAM, portmap::VERSION) => Self::Portmap,
            (portmap::PROGRAM, _) => Self::Rpcbind,
            (100_021, _) => Self::Nlm,
            (100_024, _) => Self::Nsm,
            (100_227, _) => Self::NfsAcl,
            (program, 1) if CALLBACK.contains(&program) => Self::Nfs4Callback,
            _ => Self::Other,
        }
    }

    /// A name for people: `NFS v3`, `MOUNT`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nfs2 => "NFS v2",
            Self::Nfs3 => "NFS v3",
            Self::Nfs4 => "NFS v4",
            Self::Nfs4Callback => "NFS v4 callback",
            Self::NfsAcl => "NFSACL",
            Self::Mount => "MOUNT",
            Self::Nlm => "NLM",
            Self::Nsm => "NSM",
            Self::Portmap => "PORTMAP",
            Self::Rpcbind => "RPCBIND",
            Self::Other => "RPC",
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

    /// The operation of NFS version 4 with this number.
    pub fn v4(number: usize) -> Self {
        Self::new(Program::Nfs4, u32::try_from(number).unwrap_or(u32::MAX))
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
        let code = usize::from(self.code);
        let number = u32::from(self.code);
        let of = |names: &'static [&'static str]| names.get(code).copied();
        let name = match self.program {
            Program::Nfs2 => nfs2::Procedure::from_code(number).map(nfs2::Procedure::name),
            Program::Nfs3 => nfs3::Procedure::from_code(number).map(nfs3::Procedure::name),
            Program::Nfs4 if self.code == V4_NULL => Some("NULL"),
            Program::Nfs4 => of(&V4_NAMES),
            Program::Nfs4Callback => of(&CALLBACK_NAMES),
            Program::NfsAcl => of(&ACL_NAMES),
            Program::Mount => mount::Procedure::from_code(number).map(mount::Procedure::name),
            Program::Nlm => of(&NLM_NAMES),
            Program::Nsm => of(&NSM_NAMES),
            Program::Portmap => portmap::Procedure::from_code(number).map(portmap::Procedure::name),
            Program::Rpcbind => rpcbind::Procedure::from_code(number).map(rpcbind::Procedure::name),
            Program::Other => None,
        };
        name.unwrap_or("?")
    }

    /// What it does, the same in all versions.
    pub const fn kind(self) -> Kind {
        match (self.program, self.code) {
            (Program::Nfs2, 6) | (Program::Nfs3, 6) | (Program::Nfs4, 25 | 68) => Kind::Read,
            (Program::Nfs2, 8) | (Program::Nfs3, 7) | (Program::Nfs4, 38) => Kind::Write,
            (Program::Nfs3, 21) | (Program::Nfs4, 5) => Kind::Commit,
            (Program::Nfs2, 1 | 4) | (Program::Nfs3, 1 | 3 | 4) | (Program::Nfs4, 3 | 9 | 15) => {
                Kind::Attributes
            }
            (Program::Nfs2, 5) | (Program::Nfs3, 5) | (Program::Nfs4, 27) => Kind::Readlink,
            (Program::Nfs2, 16) | (Program::Nfs3, 16 | 17) | (Program::Nfs4, 26) => Kind::Listing,
            _ => Kind::Other,
        }
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
