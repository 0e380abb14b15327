//! What the layer below may know of NFS's procedures.
//!
//! The classes are those of Linux's client: attributes and ACCESS, LOOKUP, whatever reads, WRITE.
//! The rest changes something or waits for a disk: its times differ too much to estimate, and
//! sending it again early does no good.

use net::call::{Bulk, Traits};
use wire::{nfs2, nfs3};

/// Version 2.
pub(crate) const NFS2: Traits = Traits {
    class: |procedure| {
        use nfs2::Procedure::{Getattr, Lookup, Read, Readdir, Readlink, Write};
        match nfs2::Procedure::from_code(procedure)? {
            Getattr => Some(1),
            Lookup => Some(2),
            Read | Readlink | Readdir => Some(3),
            Write => Some(4),
            _ => None,
        }
    },
    bulk: |procedure| match nfs2::Procedure::from_code(procedure)? {
        nfs2::Procedure::Read => Some(Bulk::Read),
        nfs2::Procedure::Write => Some(Bulk::Write),
        _ => None,
    },
    is_idempotent: |procedure| {
        use nfs2::Procedure::{Getattr, Lookup, Null, Read, Readdir, Readlink, Statfs};
        let known = nfs2::Procedure::from_code(procedure);
        known.is_some_and(|procedure| {
            matches!(procedure, Null | Getattr | Lookup | Readlink | Read | Readdir | Statfs)
        })
    },
};

/// Version 3.
pub(crate) const NFS3: Traits = Traits {
    class: |procedure| {
        use nfs3::Procedure::{
            Access, Getattr, Lookup, Read, Readdir, Readdirplus, Readlink, Write,
        };
        match nfs3::Procedure::from_code(procedure)? {
            Getattr | Access => Some(1),
            Lookup => Some(2),
            Read | Readlink | Readdir | Readdirplus => Some(3),
            Write => Some(4),
            _ => None,
        }
    },
    bulk: |procedure| match nfs3::Procedure::from_code(procedure)? {
        nfs3::Procedure::Read => Some(Bulk::Read),
        nfs3::Procedure::Write => Some(Bulk::Write),
        _ => None,
    },
    is_idempotent: |procedure| {
        use nfs3::Procedure::{
            Access, Commit, Create, Fsinfo, Fsstat, Getattr, Link, Lookup, Mkdir, Mknod, Null,
            Pathconf, Read, Readdir, Readdirplus, Readlink, Remove, Rename, Rmdir, Setattr,
            Symlink, Write,
        };
        nfs3::Procedure::from_code(procedure).is_some_and(|procedure| match procedure {
            Null | Getattr | Lookup | Access | Readlink | Read | Readdir | Readdirplus => true,
            Fsstat | Fsinfo | Pathconf | Commit => true,
            Setattr | Write | Create | Mkdir | Symlink | Mknod => false,
            Remove | Rmdir | Rename | Link => false,
        })
    },
};
