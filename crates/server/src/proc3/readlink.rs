//! READLINK (RFC 1813 section 3.3.5). The server never follows a link, it only tells it.

use wire::nfs3::readlink::{Args, Reply, ReplyOk};
use wire::xdr::Encode;

use super::{Context, convert, looked_failure};
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args, head: &mut Vec<u8>) {
    let handle = match context.handle(&args.symlink) {
        Ok(handle) => handle,
        Err(status) => return Reply::Err(status.into()).encode(head),
    };
    let looked = context.store.read_link(&context.caller, &handle).await;
    let reply: Reply<'_> = match &looked.result {
        Ok(data) => {
            Ok(ReplyOk { symlink_attributes: looked.attr.map(convert::fattr3), data })
        }
        Err(status) => Err(looked_failure(*status, looked.attr)),
    };
    reply.encode(head);
}
