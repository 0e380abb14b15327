//! What the engine and the stores say to each other: neutral types that carry no version's names,
//! so that one store serves every version of the protocol.

use std::fmt;

use wire::show::Hex;

/// A store's own name for a file: opaque bytes, stable for the life of the file.
///
/// The engine wraps it into the protocol's file handle together with the export's identity, so it
/// is at most [`Handle::BYTES_MAX`] bytes.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Handle {
    len: u8,
    bytes: [u8; Self::BYTES_MAX],
}

impl Handle {
    /// 64 bytes of an NFS v3 handle less the engine's prefix.
    pub const BYTES_MAX: usize = 48;

    /// `None` when `bytes` is longer than [`Handle::BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut own = [0; Self::BYTES_MAX];
        own.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { len: u8::try_from(bytes.len()).ok()?, bytes: own })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", Hex(self.as_bytes()))
    }
}

/// On whose behalf an operation runs, after the export's squashing.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub gids: Vec<u32>,
}

impl Caller {
    /// Whether the caller is in a group.
    pub fn is_member(&self, gid: u32) -> bool {
        self.gid == gid || self.gids.contains(&gid)
    }

    /// The bits of a file's mode that are this caller's: read 4, write 2, execute 1. The first
    /// class that fits decides; root has all but executing what nobody may execute.
    pub fn mode_bits(&self, kind: FileKind, mode: u32, (uid, gid): (u32, u32)) -> u32 {
        const ANY_EXECUTE: u32 = 0o111;
        if self.uid == 0 {
            let runnable = kind == FileKind::Directory || mode & ANY_EXECUTE != 0;
            return if runnable { 0o7 } else { 0o6 };
        }
        let class = match (self.uid == uid, self.is_member(gid)) {
            (true, _) => mode >> 6,
            (false, true) => mode >> 3,
            (false, false) => mode,
        };
        class & 0o7
    }
}

/// Seconds and nanoseconds since 1970. Seconds are signed as in every Unix; the engine clamps them
/// to what a version can say.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Time {
    pub secs: i64,
    pub nanos: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileKind {
    Regular,
    Directory,
    BlockDevice,
    CharDevice,
    Symlink,
    Socket,
    Fifo,
}

/// A file's attributes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Attr {
    pub kind: FileKind,
    /// Permission bits only (07777).
    pub mode: u32,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    /// Length in bytes.
    pub size: u64,
    /// Bytes of storage in use.
    pub used: u64,
    /// Major and minor number of a device.
    pub device: (u32, u32),
    pub fsid: u64,
    pub fileid: u64,
    pub accessed: Time,
    pub modified: Time,
    pub changed: Time,
    /// When it was made, where the file system keeps that.
    pub made: Option<Time>,
}

/// What a client needs of the state before an operation to keep its cache (wcc_attr).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Before {
    pub size: u64,
    pub modified: Time,
    pub changed: Time,
}

impl From<&Attr> for Before {
    fn from(attr: &Attr) -> Self {
        Self { size: attr.size, modified: attr.modified, changed: attr.changed }
    }
}

/// State of an object around an operation: weak cache consistency data.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wcc {
    pub before: Option<Before>,
    pub after: Option<Attr>,
}

impl Wcc {
    /// Around an operation that has left the object as it was seen to be.
    pub(crate) fn unchanged(attr: Attr) -> Self {
        Self { before: Some(Before::from(&attr)), after: Some(attr) }
    }
}

/// How a time is to be set.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SetTime {
    #[default]
    Keep,
    ToServer,
    To(Time),
}

/// Attributes to change; `None` keeps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SetAttr {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub accessed: SetTime,
    pub modified: SetTime,
}

impl SetAttr {
    /// Of something new, which nobody but root gives away: an owner, or a group that the caller is
    /// not in, is passed over, as Linux' server does. Clients of other systems name both with
    /// whatever they make, and see from the reply what was taken.
    #[must_use]
    pub fn of_new(self, caller: &Caller) -> Self {
        if caller.uid == 0 {
            return self;
        }
        Self { uid: None, gid: self.gid.filter(|gid| caller.is_member(*gid)), ..self }
    }
}

/// Modes of what is made by who states none, until it does: nothing is given away meanwhile.
pub const MODE_UNSTATED: u32 = 0o600;
pub const DIRECTORY_MODE_UNSTATED: u32 = 0o700;

/// How a regular file is to be created (RFC 1813 section 3.3.8).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CreateHow {
    /// An existing file is opened, its size set when requested.
    Unchecked(SetAttr),
    /// An existing name is an error.
    Guarded(SetAttr),
    /// An existing file made with this verifier is success: a retransmission.
    Exclusive([u8; 8]),
}

/// What to make with `make_node`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Special {
    BlockDevice { major: u32, minor: u32 },
    CharDevice { major: u32, minor: u32 },
    Fifo,
    Socket,
}

/// Where written bytes must be before the reply (stable_how).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Stability {
    Unstable,
    DataSync,
    FileSync,
}

/// Access rights, a set of the bits of RFC 1813 section 3.3.4.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Access(pub u32);

impl Access {
    pub const READ: u32 = 0x01;
    pub const LOOKUP: u32 = 0x02;
    pub const MODIFY: u32 = 0x04;
    pub const EXTEND: u32 = 0x08;
    pub const DELETE: u32 = 0x10;
    pub const EXECUTE: u32 = 0x20;
}

/// Why an operation failed. The names are the neutral ones of POSIX; each version maps them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// Operation not permitted: caller is neither owner nor privileged.
    NotOwner,
    NoEntry,
    Io,
    NoDevice,
    /// Permission bits deny it.
    Access,
    Exists,
    CrossDevice,
    NotDirectory,
    IsDirectory,
    Invalid,
    TooLarge,
    NoSpace,
    ReadOnly,
    TooManyLinks,
    NameTooLong,
    NotEmpty,
    Quota,
    Stale,
    BadHandle,
    /// The guard of SETATTR did not match.
    NotSync,
    BadCookie,
    NotSupported,
    /// A count the server will not work with.
    TooSmall,
    BadType,
    /// Try again later: a resource is short for the moment.
    Jukebox,
    /// The same: where the files are nobody has answered in time.
    Away,
    ServerFault,
}

/// Changes when unstable data may have been lost (writeverf3).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Verifier(pub [u8; 8]);
