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
};
