//! The procedures of NFS version 2, one file each, in the form of those of version 3.
//!
//! A failure is a status and nothing else. What the protocol cannot express is sent as well as it
//! can be: the table is in `docs/semantics.md`, the numbers in `attributes.rs`, cookies in
//! `cookies.rs`.

mod attributes;
mod cookies;
mod create;
mod getattr;
pub(crate) mod in_doubt;
mod link;
mod lookup;
mod mkdir;
mod null;
mod read;
mod readdir;
mod readlink;
mod recorded;
mod remove;
mod rename;
mod rmdir;
mod setattr;
mod statfs;
mod symlink;
mod write;

use std::pin::pin;

use bytes::Bytes;
use wire::nfs2::{self, DirOpOk, DirOpRes, FHandle, Fattr2, NfsStat2, Procedure};
use wire::xdr::{self, DecodeError, Encode};

use crate::exports::{self, Exports};
use crate::handle2;
use crate::status::nfsstat2;
use crate::store::{Node, Store};
use crate::types::{Attr, Caller, Handle, Status};

use self::attributes::fattr2;

pub(crate) use self::cookies::Cookies;
pub(crate) use self::recorded::recorded;

/// What a procedure works with.
pub(crate) struct Context<'c, S> {
    pub(crate) store: &'c S,
    pub(crate) exports: &'c Exports<S>,
    /// The export of the first handle, whose store this is.
    pub(crate) export: u32,
    /// For this client.
    pub(crate) read_only: bool,
    pub(crate) caller: &'c Caller,
    /// The call, of which a WRITE's data is a part.
    pub(crate) record: &'c Bytes,
    /// Most bytes of data in one reply; never more than the protocol's 8 KiB.
    pub(crate) transfer_bytes_max: u32,
    pub(crate) cookies: &'c Cookies,
}

/// Whether a procedure's arguments begin with a file handle: all but those that have none.
fn has_handle(procedure: Procedure) -> bool {
    !matches!(procedure, Procedure::Null | Procedure::Root | Procedure::Writecache)
}

/// Runs a procedure and appends its results to `head`; returns the payload that follows, if any.
///
/// # Errors
/// When `args` are not the procedure's arguments, no more and no less.
pub(crate) async fn serve<S: Store>(
    cx: &Context<'_, S>,
    procedure: Procedure,
    args: &[u8],
    head: &mut Vec<u8>,
) -> Result<Bytes, DecodeError> {
    macro_rules! plain {
        ($module:ident) => {{
            let reply = pin!($module::run(cx, xdr::from_bytes(args)?)).await;
            reply.encode(head);
            Ok(Bytes::new())
        }};
    }
    macro_rules! with_payload {
        ($module:ident) => {
            Ok(pin!($module::run(cx, xdr::from_bytes(args)?, head)).await)
        };
    }
    match procedure {
        Procedure::Null | Procedure::Root | Procedure::Writecache => {
            null::run(xdr::from_bytes(args)?);
            Ok(Bytes::new())
        }
        Procedure::Getattr => plain!(getattr),
        Procedure::Setattr => plain!(setattr),
        Procedure::Lookup => plain!(lookup),
        Procedure::Readlink => with_payload!(readlink),
        Procedure::Read => with_payload!(read),
        Procedure::Write => plain!(write),
        Procedure::Create => plain!(create),
        Procedure::Remove => plain!(remove),
        Procedure::Rename => plain!(rename),
        Procedure::Link => plain!(link),
        Procedure::Symlink => plain!(symlink),
        Procedure::Mkdir => plain!(mkdir),
        Procedure::Rmdir => plain!(rmdir),
        Procedure::Readdir => with_payload!(readdir),
        Procedure::Statfs => plain!(statfs),
    }
}

/// Appends results that say nothing but `status`; nothing at all for those that cannot fail.
///
/// # Errors
/// When `args` are not the procedure's arguments, no more and no less.
pub(crate) fn refuse(
    procedure: Procedure,
    args: &[u8],
    status: Status,
    head: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    wire::check_args(wire::Procedure::Nfs2(procedure), args)?;
    if has_handle(procedure) {
        nfsstat2(procedure, status).encode(head);
    }
    Ok(())
}

/// Whether a call makes data stable: every WRITE does.
pub(crate) fn commits(procedure: Procedure) -> bool {
    procedure == Procedure::Write
}

impl<S: Store> Context<'_, S> {
    fn transfer_bytes_max(&self) -> u32 {
        self.transfer_bytes_max.min(nfs2::MAXDATA)
    }

    /// The store's handle in a file handle.
    fn handle(&self, handle: &FHandle) -> Result<Handle, NfsStat2> {
        // Its errors mean the same in all procedures.
        let unwrapped = handle2::unwrap2(handle);
        unwrapped
            .and_then(|found| exports::in_export(self.exports, self.export, found))
            .map_err(|status| nfsstat2(Procedure::Getattr, status))
    }

    /// Refuses what would change a read-only export.
    fn check_writable(&self) -> Result<(), Status> {
        match self.read_only {
            true => Err(Status::ReadOnly),
            false => Ok(()),
        }
    }

    /// Why an object was left alone: it is not there, or `status`.
    async fn untouched(&self, handle: &Handle, status: Status) -> Status {
        let attr = self.store.attr(self.caller, handle).await;
        attr.err().unwrap_or(status)
    }

    /// The attributes the store gave with its result, or else those of now.
    async fn attributes(&self, known: Option<Attr>, handle: &Handle) -> Result<Fattr2, Status> {
        match known {
            Some(attr) => Ok(fattr2(&attr)),
            None => self.store.attr(self.caller, handle).await.map(|attr| fattr2(&attr)),
        }
    }

    /// Results of the procedures that find or make something.
    ///
    /// `NotSupported` when the store's handle does not fit into one of this version
    /// ([`handle2`]). What was made stays.
    fn found(&self, procedure: Procedure, node: Result<Node, Status>) -> DirOpRes {
        let found = node.and_then(|node| {
            let file = handle2::name2(self.store, self.export, &node.handle)
                .ok_or(Status::NotSupported)?;
            Ok(DirOpOk { file, attributes: fattr2(&node.attr) })
        });
        found.map_err(|status| nfsstat2(procedure, status))
    }
}
