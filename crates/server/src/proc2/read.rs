//! READ (RFC 1094 section 2.2.7). The bytes found are the payload of the reply, not copied.
//!
//! At most 8 KiB are read, whatever was requested. A file may be longer than offsets reach: what
//! lies behind 4 GiB is not to be had with this version.

use bytes::Bytes;
use wire::nfs2::Procedure::Read;
use wire::nfs2::read::{Args, Reply, ReplyOk};
use wire::nfs2::{Fattr2, NfsStat2};
use wire::xdr::Bulk;

use crate::status::nfsstat2;
use crate::store::Store;

use super::Context;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args, head: &mut Vec<u8>) -> Bytes {
    let found = find(cx, args).await;
    let reply: Reply<'_> = match &found {
        Ok((attributes, data)) => Ok(ReplyOk { attributes: *attributes, data }),
        Err(status) => Err(*status),
    };
    reply.encode_head(head);
    found.map_or_else(|_| Bytes::new(), |(_, data)| data)
}

async fn find<S: Store>(cx: &Context<'_, S>, args: Args) -> Result<(Fattr2, Bytes), NfsStat2> {
    let failure = |status| nfsstat2(Read, status);
    let file = cx.handle(&args.file)?;
    let count = args.count.min(cx.transfer_bytes_max());
    let found = cx.store.read(cx.caller, &file, u64::from(args.offset), count).await;
    let extent = found.result.map_err(failure)?;
    let attributes = cx.attributes(found.attr, &file).await.map_err(failure)?;
    Ok((attributes, extent.data))
}
