//! READ (RFC 1813 section 3.3.6). The bytes found are the payload of the reply, not copied.

use bytes::Bytes;
use wire::nfs3::PostOpAttr;
use wire::nfs3::Procedure::Read;
use wire::nfs3::read::{Args, Reply, ReplyFail, ReplyOk};
use wire::xdr::Bulk;

use crate::store::{Extent, Store};

use super::{Context, looked, within_offsets};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args, head: &mut Vec<u8>) -> Bytes {
    let found = find(cx, args).await;
    let reply: Reply<'_> = match &found {
        Ok((file_attributes, Extent { data, eof })) => Ok(ReplyOk {
            file_attributes: *file_attributes,
            // At most what was requested, which has 32 bits.
            count: u32::try_from(data.len()).unwrap_or(u32::MAX),
            eof: *eof,
            data,
        }),
        Err(failure) => Err(*failure),
    };
    reply.encode_head(head);
    found.map_or_else(|_| Bytes::new(), |(_, extent)| extent.data)
}

async fn find<S: Store>(
    cx: &Context<'_, S>,
    args: Args,
) -> Result<(PostOpAttr, Extent), ReplyFail> {
    let file = cx.handle(&args.file)?;
    let count = args.count.min(cx.transfer_bytes_max);
    let (offset, count) = within_offsets(args.offset, count);
    looked(Read, cx.store.read(cx.caller, &file, offset, count).await)
}
