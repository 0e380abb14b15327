//! NFS v3 over a store: one file for each procedure, with the names of `wire::nfs3`.
//!
//! Each takes the decoded arguments and gives the reply; what they share is in [`Context`]. Rules
//! for names (RFC 1813 leaves them open, this is what clients have seen from kernels): an empty
//! name, `/` or NUL in it: NFS3ERR_ACCES; over 255 bytes: NFS3ERR_NAMETOOLONG; making `.` or `..`:
//! NFS3ERR_EXIST; removing or renaming them: NFS3ERR_INVAL.

pub(crate) mod access;
pub(crate) mod commit;
pub(crate) mod create;
pub(crate) mod fsinfo;
pub(crate) mod fsstat;
pub(crate) mod getattr;
pub(crate) mod link;
pub(crate) mod lookup;
pub(crate) mod mkdir;
pub(crate) mod mknod;
pub(crate) mod pathconf;
pub(crate) mod read;
pub(crate) mod readdir;
pub(crate) mod readdirplus;
pub(crate) mod readlink;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod rmdir;
pub(crate) mod setattr;
pub(crate) mod symlink;
pub(crate) mod write;

mod convert;

use bytes::Bytes;
use wire::nfs3::{
    DirOp, Failure, FileHandle, NewObject, NfsStat3, PostOpAttr, Procedure, WccData,
};
use wire::record::Message;
use wire::xdr::{Bulk, Decode, DecodeError, Encode, Reader};

use crate::export::Export;
use crate::status::nfsstat3;
use crate::store::{Changed, Node, Store};
use crate::types::{Caller, Handle, Status};

/// What a procedure works with.
pub(crate) struct Context<'e, S> {
    pub(crate) store: &'e S,
    pub(crate) export: &'e Export,
    pub(crate) caller: Caller,
    /// Most bytes of a READ or WRITE.
    pub(crate) transfer_bytes_max: u32,
    /// The whole call; payloads are slices of it.
    pub(crate) record: Bytes,
}

/// Most bytes of a name, here and in every file system that we know of.
const NAME_BYTES_MAX: usize = 255;

impl<S: Store> Context<'_, S> {
    fn handle(&self, handle: &FileHandle) -> Result<Handle, NfsStat3> {
        self.export.unwrap(handle)
    }

    fn name<'n>(&self, name: &'n [u8]) -> Result<&'n [u8], NfsStat3> {
        match name {
            [] => Err(NfsStat3::Acces),
            name if name.len() > NAME_BYTES_MAX => Err(NfsStat3::NameTooLong),
            name if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(NfsStat3::Acces),
            name => Ok(name),
        }
    }

    /// A directory and a name in it that may be made.
    fn new_entry<'n>(&self, entry: &DirOp<'n>) -> Result<(Handle, &'n [u8]), NfsStat3> {
        self.entry(entry, NfsStat3::Exist)
    }

    /// A directory and a name in it that may go.
    fn old_entry<'n>(&self, entry: &DirOp<'n>) -> Result<(Handle, &'n [u8]), NfsStat3> {
        self.entry(entry, NfsStat3::Inval)
    }

    fn entry<'n>(
        &self,
        entry: &DirOp<'n>,
        dots: NfsStat3,
    ) -> Result<(Handle, &'n [u8]), NfsStat3> {
        let dir = self.handle(&entry.dir)?;
        match self.name(entry.name)? {
            b"." | b".." => Err(dots),
            name => Ok((dir, name)),
        }
    }

    /// NFS3ERR_ROFS on a read-only export.
    fn writable(&self) -> Result<(), NfsStat3> {
        if self.export.read_only { Err(NfsStat3::RoFs) } else { Ok(()) }
    }

    /// Attributes for a reply that fails before the store was asked.
    async fn attr_of(&self, handle: &FileHandle) -> PostOpAttr {
        let handle = self.handle(handle).ok()?;
        self.store.attr(&self.caller, &handle).await.ok().map(convert::fattr3)
    }

    /// The failure of a procedure that would have changed `handle`, before the store was asked.
    async fn refuse(&self, handle: &FileHandle, status: NfsStat3) -> Failure<WccData> {
        let after = self.attr_of(handle).await;
        Failure { status, detail: WccData { before: None, after } }
    }

    /// The reply of a procedure that makes something.
    fn made(&self, changed: Changed<Node>) -> Result<NewObject, Failure<WccData>> {
        let dir_wcc = convert::wcc_data(changed.wcc);
        match changed.result {
            Ok(node) => Ok(NewObject {
                obj: self.export.wrap(&node.handle),
                obj_attributes: Some(convert::fattr3(node.attr)),
                dir_wcc,
            }),
            Err(status) => Err(Failure { status: nfsstat3(status), detail: dir_wcc }),
        }
    }
}

/// The reply of a procedure that changes one object and says nothing else.
fn changed<T>(outcome: Changed<T>) -> Result<(T, WccData), Failure<WccData>> {
    let detail = convert::wcc_data(outcome.wcc);
    match outcome.result {
        Ok(value) => Ok((value, detail)),
        Err(status) => Err(Failure { status: nfsstat3(status), detail }),
    }
}

/// The failure of a procedure that looks at one object.
fn looked_failure(status: Status, attr: Option<crate::types::Attr>) -> Failure<PostOpAttr> {
    Failure { status: nfsstat3(status), detail: attr.map(convert::fattr3) }
}

/// Decodes the arguments, runs the procedure, and appends its results to `head`.
///
/// # Errors
/// The arguments are garbage.
pub(crate) async fn call<S: Store>(
    context: &Context<'_, S>,
    procedure: Procedure,
    reader: Reader<'_>,
    mut head: Vec<u8>,
) -> Result<Message, DecodeError> {
    macro_rules! run {
        ($procedure:ident) => {
            $procedure::call(context, arguments(reader)?).await.encode(&mut head)
        };
    }
    match procedure {
        Procedure::Null => {}
        Procedure::Getattr => run!(getattr),
        Procedure::Setattr => run!(setattr),
        Procedure::Lookup => run!(lookup),
        Procedure::Access => run!(access),
        Procedure::Readlink => readlink::call(context, arguments(reader)?, &mut head).await,
        Procedure::Read => {
            let (reply, data) = read::call(context, arguments(reader)?).await;
            reply.map(|ok| wire::nfs3::read::ReplyOk { data: &data, ..ok }).encode_head(&mut head);
            return Ok(Message { head, payload: data });
        }
        Procedure::Write => run!(write),
        Procedure::Create => run!(create),
        Procedure::Mkdir => run!(mkdir),
        Procedure::Symlink => run!(symlink),
        Procedure::Mknod => run!(mknod),
        Procedure::Remove => run!(remove),
        Procedure::Rmdir => run!(rmdir),
        Procedure::Rename => run!(rename),
        Procedure::Link => run!(link),
        Procedure::Readdir => readdir::call(context, arguments(reader)?, &mut head).await,
        Procedure::Readdirplus => readdirplus::call(context, arguments(reader)?, &mut head).await,
        Procedure::Fsstat => run!(fsstat),
        Procedure::Fsinfo => run!(fsinfo),
        Procedure::Pathconf => run!(pathconf),
        Procedure::Commit => run!(commit),
    }
    Ok(Message::new(head))
}

/// Decodes what must be the rest of the call.
pub(crate) fn arguments<'a, T: Decode<'a>>(mut reader: Reader<'a>) -> Result<T, DecodeError> {
    let arguments = T::decode(&mut reader)?;
    reader.finish()?;
    Ok(arguments)
}
