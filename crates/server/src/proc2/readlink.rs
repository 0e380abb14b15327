//! READLINK (RFC 1094 section 2.2.6). A path longer than MAXPATHLEN, which no client of this
//! version has room for, is NFSERR_NAMETOOLONG.

use bytes::Bytes;
use wire::nfs2::MAXPATHLEN;
use wire::nfs2::Procedure::Readlink;
use wire::nfs2::readlink::{Args, Reply, ReplyOk};
use wire::xdr::Encode;

use crate::status::nfsstat2;
use crate::store::Store;
use crate::types::Status;

use super::Context;

/// The path is encoded into the head, as in version 3.
pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args, head: &mut Vec<u8>) -> Bytes {
    let found = match cx.handle(&args.file) {
        Ok(file) => {
            let found = cx.store.read_link(cx.caller, &file).await.result;
            found.and_then(check).map_err(|status| nfsstat2(Readlink, status))
        }
        Err(status) => Err(status),
    };
    let reply: Reply<'_> = match &found {
        Ok(data) => Ok(ReplyOk { data }),
        Err(status) => Err(*status),
    };
    reply.encode(head);
    Bytes::new()
}

fn check(path: Bytes) -> Result<Bytes, Status> {
    match path.len() > MAXPATHLEN {
        true => Err(Status::NameTooLong),
        false => Ok(path),
    }
}
