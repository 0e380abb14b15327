//! What a client asks, and the bytes of it.

use std::ops::Range;

use wire::nfs3::{self, DirOp, FileHandle, NfsTime, Sattr3, SetTime, StableHow};
use wire::nfs3::{commit, create, getattr, link, lookup, mkdir, mknod, read, remove, rename};
use wire::nfs3::{rmdir, setattr, symlink, write};
use wire::xdr::Encode;

/// An object of the model.
pub(super) type Id = usize;

/// A name in one of the client's own folders; no name is ever used again.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Name {
    pub(super) folder: usize,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum How {
    Exclusive,
    Guarded,
    Unchecked,
}

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Create {
        id: Id,
        name: Name,
        how: How,
    },
    Mkdir {
        id: Id,
        name: Name,
    },
    Symlink {
        id: Id,
        name: Name,
    },
    Mkfifo {
        id: Id,
        name: Name,
    },
    Link {
        id: Id,
        name: Name,
    },
    Remove {
        id: Id,
        name: Name,
    },
    Rmdir {
        id: Id,
        name: Name,
    },
    Rename {
        id: Id,
        from: Name,
        to: Name,
        replaced: Option<Id>,
    },
    Write {
        id: Id,
        range: Range<usize>,
        data: Vec<u8>,
        stable: StableHow,
        again: bool,
    },
    /// Covers what was acknowledged as `upto`-th and before.
    Commit {
        id: Id,
        upto: u64,
    },
    Truncate {
        id: Id,
        size: usize,
    },
    /// Asks for the time that the next one is guarded by.
    GuardTime {
        id: Id,
    },
    Chmod {
        id: Id,
        guard: NfsTime,
    },
    Read {
        id: Id,
        range: Range<usize>,
    },
    Lookup {
        id: Id,
        name: Name,
    },
    Getattr {
        id: Id,
    },
    /// The handle of what was removed.
    GetattrRemoved {
        handle: FileHandle,
    },
}

/// The permissions of every file, and those that a guarded SETATTR sets; both let us read.
pub(super) const MODE: u32 = 0o644;

impl Operation {
    /// Whether a second execution would fail, or undo what came after the first.
    pub(super) fn is_once_only(&self) -> bool {
        match self {
            Self::Create { how, .. } => *how == How::Guarded,
            Self::Mkdir { .. }
            | Self::Symlink { .. }
            | Self::Mkfifo { .. }
            | Self::Link { .. }
            | Self::Remove { .. }
            | Self::Rmdir { .. }
            | Self::Rename { .. }
            | Self::Truncate { .. }
            | Self::Chmod { .. } => true,
            _ => false,
        }
    }

    pub(super) fn procedure(&self) -> nfs3::Procedure {
        use nfs3::Procedure as P;
        match self {
            Self::Create { .. } => P::Create,
            Self::Mkdir { .. } => P::Mkdir,
            Self::Symlink { .. } => P::Symlink,
            Self::Mkfifo { .. } => P::Mknod,
            Self::Link { .. } => P::Link,
            Self::Remove { .. } => P::Remove,
            Self::Rmdir { .. } => P::Rmdir,
            Self::Rename { .. } => P::Rename,
            Self::Write { .. } => P::Write,
            Self::Commit { .. } => P::Commit,
            Self::Truncate { .. } | Self::Chmod { .. } => P::Setattr,
            Self::Read { .. } => P::Read,
            Self::Lookup { .. } => P::Lookup,
            Self::GuardTime { .. } | Self::Getattr { .. } | Self::GetattrRemoved { .. } => {
                P::Getattr
            }
        }
    }

    /// Its arguments. `handle` is that of the object, `folders` are those of the client.
    pub(super) fn encode(&self, handle: FileHandle, folders: &[FileHandle], out: &mut Vec<u8>) {
        let at = |name| place(folders, name);
        let attributes = Sattr3::of_mode(MODE);
        match self {
            Self::Create { name, how, .. } => {
                let how = match how {
                    How::Exclusive => create::CreateHow::Exclusive(verifier(&name.text)),
                    How::Guarded => create::CreateHow::Guarded(attributes),
                    How::Unchecked => create::CreateHow::Unchecked(attributes),
                };
                create::Args { where_: at(name), how }.encode(out);
            }
            Self::Mkdir { name, .. } => {
                let attributes = Sattr3 { mode: Some(0o755), ..attributes };
                mkdir::Args { where_: at(name), attributes }.encode(out);
            }
            Self::Symlink { name, .. } => {
                let symlink_data = name.text.as_bytes();
                let symlink_attributes = Sattr3::default();
                symlink::Args { where_: at(name), symlink_attributes, symlink_data }.encode(out);
            }
            Self::Mkfifo { name, .. } => {
                let what = mknod::MknodData::Fifo(attributes);
                mknod::Args { where_: at(name), what }.encode(out);
            }
            Self::Link { name, .. } => link::Args { file: handle, link: at(name) }.encode(out),
            Self::Remove { name, .. } => remove::Args { object: at(name) }.encode(out),
            Self::Rmdir { name, .. } => rmdir::Args { object: at(name) }.encode(out),
            Self::Rename { from, to, .. } => {
                rename::Args { from: at(from), to: at(to) }.encode(out);
            }
            Self::Write { range, data, stable, .. } => write::Args {
                file: handle,
                offset: range.start as u64,
                count: count(data.len()),
                stable: *stable,
                data,
            }
            .encode(out),
            Self::Commit { .. } => commit::Args { file: handle, offset: 0, count: 0 }.encode(out),
            Self::Truncate { size, .. } => {
                let new_attributes = Sattr3 { size: Some(*size as u64), ..Sattr3::default() };
                setattr::Args { object: handle, new_attributes, guard: None }.encode(out);
            }
            Self::Chmod { guard, .. } => {
                let new_attributes = Sattr3 { mtime: SetTime::ServerTime, ..attributes };
                setattr::Args { object: handle, new_attributes, guard: Some(*guard) }.encode(out);
            }
            Self::Read { range, .. } => {
                let (offset, count) = (range.start as u64, count(range.len()));
                read::Args { file: handle, offset, count }.encode(out);
            }
            Self::Lookup { name, .. } => lookup::Args { what: at(name) }.encode(out),
            Self::GuardTime { .. } | Self::Getattr { .. } => {
                getattr::Args { object: handle }.encode(out);
            }
            Self::GetattrRemoved { handle } => getattr::Args { object: *handle }.encode(out),
        }
    }
}

fn place<'a>(folders: &[FileHandle], name: &'a Name) -> DirOp<'a> {
    DirOp { dir: folders[name.folder], name: name.text.as_bytes() }
}

/// All that we write and read is far below 2^32.
pub(super) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// A verifier that belongs to this name, and so to this CREATE.
fn verifier(name: &str) -> [u8; 8] {
    let mut verifier = [b'-'; 8];
    for (byte, from) in verifier.iter_mut().zip(name.bytes().rev()) {
        *byte = from;
    }
    verifier
}
