//! GETATTR (RFC 1813 section 3.3.1).

use wire::nfs3::getattr::{Args, Reply, ReplyOk};

use super::{Context, convert};
use crate::status::nfsstat3;
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args) -> Reply {
    let handle = context.handle(&args.object)?;
    match context.store.attr(&context.caller, &handle).await {
        Ok(attr) => Ok(ReplyOk { obj_attributes: convert::fattr3(attr) }),
        Err(status) => Err(nfsstat3(status).into()),
    }
}
