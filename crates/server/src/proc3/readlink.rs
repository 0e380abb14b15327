//! READLINK (RFC 1813 section 3.3.5).

use bytes::Bytes;
use wire::nfs3::Procedure::Readlink;
use wire::nfs3::readlink::{Args, Reply, ReplyFail, ReplyOk};
use wire::nfs3::{PATH_LEN_MAX, PostOpAttr};
use wire::xdr::Encode;

use crate::store::Store;
use crate::types::Status;

use super::{Context, failure, looked};

/// The path is encoded into the head: it is short, and nothing is a payload that READ and READDIR
/// are not.
pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args, head: &mut Vec<u8>) -> Bytes {
    let found = find(cx, args).await;
    let reply: Reply<'_> = match &found {
        Ok((symlink_attributes, data)) => {
            Ok(ReplyOk { symlink_attributes: *symlink_attributes, data })
        }
        Err(failure) => Err(*failure),
    };
    reply.encode(head);
    Bytes::new()
}

async fn find<S: Store>(cx: &Context<'_, S>, args: Args) -> Result<(PostOpAttr, Bytes), ReplyFail> {
    let symlink = cx.handle(&args.symlink)?;
    let found = cx.store.read_link(cx.caller, &symlink).await;
    let (attributes, path) = looked(Readlink, found)?;
    match path.len() > PATH_LEN_MAX {
        true => Err(failure(Readlink, Status::NameTooLong, attributes)),
        false => Ok((attributes, path)),
    }
}
