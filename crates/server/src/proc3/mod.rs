//! The procedures of NFS version 3, one file each.
//!
//! All have the same form: `run` takes the decoded arguments, checks what the protocol says about
//! them, asks the store, and puts what the store says into the RFC's results. Attributes go into
//! failures too, as far as they can be had.

#![expect(
    clippy::result_large_err,
    reason = "a failure is a reply like success, encoded where it is made"
)]

mod access;
mod attributes;
mod commit;
mod create;
mod fsinfo;
mod fsstat;
mod getattr;
pub(crate) mod in_doubt;
mod link;
mod lookup;
mod mkdir;
mod mknod;
pub(crate) mod name;
mod null;
mod pathconf;
mod read;
mod readdir;
mod readdirplus;
mod readlink;
mod recorded;
mod remove;
mod rename;
mod rmdir;
mod setattr;
mod symlink;
mod write;

use std::pin::pin;

use bytes::Bytes;
use wire::nfs3::{
    self, Failure, FileHandle, NewObject, NfsStat3, PostOpAttr, Procedure, StableHow, WccData,
};
use wire::xdr::{self, DecodeError, Encode, Reader};

use crate::exports::{self, Exports};
use crate::handle;
use crate::status::nfsstat3;
use crate::store::{Changed, Looked, Node, Store};
use crate::types::{Caller, Handle, Status, Wcc};

pub(crate) use name::NAME_LEN_MAX;
pub(crate) use recorded::recorded;
pub(crate) use symlink::check_target;

use self::attributes::{fattr3, wcc_data};

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
    /// Most bytes of data in one call or reply.
    pub(crate) transfer_bytes_max: u32,
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
        Procedure::Null => plain!(null),
        Procedure::Getattr => plain!(getattr),
        Procedure::Setattr => plain!(setattr),
        Procedure::Lookup => plain!(lookup),
        Procedure::Access => plain!(access),
        Procedure::Readlink => with_payload!(readlink),
        Procedure::Read => with_payload!(read),
        Procedure::Write => plain!(write),
        Procedure::Create => plain!(create),
        Procedure::Mkdir => plain!(mkdir),
        Procedure::Symlink => plain!(symlink),
        Procedure::Mknod => plain!(mknod),
        Procedure::Remove => plain!(remove),
        Procedure::Rmdir => plain!(rmdir),
        Procedure::Rename => plain!(rename),
        Procedure::Link => plain!(link),
        Procedure::Readdir => with_payload!(readdir),
        Procedure::Readdirplus => with_payload!(readdirplus),
        Procedure::Fsstat => plain!(fsstat),
        Procedure::Fsinfo => plain!(fsinfo),
        Procedure::Pathconf => plain!(pathconf),
        Procedure::Commit => plain!(commit),
    }
}

/// Appends results that say nothing but `status`.
///
/// # Errors
/// When `args` are not the procedure's arguments, no more and no less.
pub(crate) fn refuse(
    procedure: Procedure,
    args: &[u8],
    status: Status,
    head: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    wire::check_args(wire::Procedure::Nfs3(procedure), args)?;
    let status = nfsstat3(procedure, status);
    match procedure {
        Procedure::Null => {}
        Procedure::Getattr => Failure::<()>::from(status).encode(head),
        Procedure::Lookup
        | Procedure::Access
        | Procedure::Readlink
        | Procedure::Read
        | Procedure::Readdir
        | Procedure::Readdirplus
        | Procedure::Fsstat
        | Procedure::Fsinfo
        | Procedure::Pathconf => Failure::<PostOpAttr>::from(status).encode(head),
        Procedure::Setattr
        | Procedure::Write
        | Procedure::Create
        | Procedure::Mkdir
        | Procedure::Symlink
        | Procedure::Mknod
        | Procedure::Remove
        | Procedure::Rmdir
        | Procedure::Commit => Failure::<WccData>::from(status).encode(head),
        Procedure::Rename => Failure::<nfs3::rename::ReplyOk>::from(status).encode(head),
        Procedure::Link => Failure::<nfs3::link::ReplyOk>::from(status).encode(head),
    }
    Ok(())
}

/// Whether a call makes data stable: COMMIT, and WRITE unless it is UNSTABLE.
pub(crate) fn commits(procedure: wire::Procedure, args: &Reader<'_>) -> bool {
    match procedure {
        wire::Procedure::Nfs3(Procedure::Commit) => true,
        wire::Procedure::Nfs3(Procedure::Write) => {
            let args = xdr::from_bytes::<nfs3::write::Args<'_>>(args.rest());
            args.is_ok_and(|args| args.stable > StableHow::Unstable)
        }
        _ => false,
    }
}

impl<S: Store> Context<'_, S> {
    /// The store's handle in a file handle.
    fn handle(&self, handle: &FileHandle) -> Result<Handle, NfsStat3> {
        // Its errors mean the same in all procedures.
        exports::second_handle(self.exports, self.export, handle)
            .map_err(|status| nfsstat3(Procedure::Getattr, status))
    }

    fn file_handle(&self, handle: &Handle) -> FileHandle {
        handle::wrap(self.export, handle)
    }

    /// Refuses what would change a read-only export.
    fn check_writable(&self) -> Result<(), Status> {
        match self.read_only {
            true => Err(Status::ReadOnly),
            false => Ok(()),
        }
    }

    /// Attributes of an object that was left alone because of `status`.
    async fn untouched<T>(&self, handle: &Handle, status: Status) -> Looked<T> {
        let attr = self.store.attr(self.caller, handle).await;
        Looked { attr: attr.ok(), result: Err(attr.err().unwrap_or(status)) }
    }

    /// [`Self::untouched`], for procedures that would have changed it. Their clients take what they
    /// see after a change, and not before it, for their own doing.
    async fn unchanged<T>(&self, handle: &Handle, status: Status) -> Changed<T> {
        let Looked { attr, result } = self.untouched(handle, status).await;
        let wcc = attr.map(Wcc::unchanged).unwrap_or_default();
        Changed { wcc, result }
    }

    /// The results of procedures that make something.
    fn new_object(
        &self,
        procedure: Procedure,
        changed: Changed<Node>,
    ) -> Result<NewObject, Failure<WccData>> {
        let dir_wcc = wcc_data(&changed.wcc);
        match changed.result {
            Ok(node) => Ok(NewObject {
                obj: Some(self.file_handle(&node.handle)),
                obj_attributes: Some(fattr3(&node.attr)),
                dir_wcc,
            }),
            Err(status) => Err(failure(procedure, status, dir_wcc)),
        }
    }
}

/// Attributes and result of a procedure that only looks.
fn looked<T>(
    procedure: Procedure,
    looked: Looked<T>,
) -> Result<(PostOpAttr, T), Failure<PostOpAttr>> {
    let attributes = looked.attr.as_ref().map(fattr3);
    match looked.result {
        Ok(result) => Ok((attributes, result)),
        Err(status) => Err(failure(procedure, status, attributes)),
    }
}

/// Attributes and result of a procedure that changes one object.
fn changed<T>(procedure: Procedure, changed: Changed<T>) -> Result<(WccData, T), Failure<WccData>> {
    let wcc = wcc_data(&changed.wcc);
    match changed.result {
        Ok(result) => Ok((wcc, result)),
        Err(status) => Err(failure(procedure, status, wcc)),
    }
}

/// Where files end at the latest: offsets are signed 64-bit numbers in the interfaces of clients
/// and servers.
const OFFSET_MAX: u64 = i64::MAX.cast_unsigned();

/// Whether `count` bytes from `offset` end where a file may end.
fn is_within_offsets(offset: u64, count: u32) -> bool {
    matches!(offset.checked_add(u64::from(count)), Some(..=OFFSET_MAX))
}

/// What of `count` bytes from `offset` lies where a file may have some: who reads whole pages
/// requests more at the end of the longest file.
fn within_offsets(offset: u64, count: u32) -> (u64, u32) {
    let offset = offset.min(OFFSET_MAX);
    (offset, u32::try_from(OFFSET_MAX - offset).map_or(count, |left| count.min(left)))
}

fn failure<D>(procedure: Procedure, status: Status, detail: D) -> Failure<D> {
    let status = nfsstat3(procedure, status);
    Failure { status, detail }
}
