//! FSSTAT (RFC 1813 section 3.3.18).

use wire::nfs3::fsstat::{Args, Reply, ReplyOk};

use super::{Context, convert, looked_failure};
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args) -> Reply {
    let handle = context.handle(&args.fsroot)?;
    let looked = context.store.space(&context.caller, &handle).await;
    match looked.result {
        Ok(space) => Ok(ReplyOk {
            obj_attributes: looked.attr.map(convert::fattr3),
            tbytes: space.bytes_total,
            fbytes: space.bytes_free,
            abytes: space.bytes_available,
            tfiles: space.files_total,
            ffiles: space.files_free,
            afiles: space.files_available,
            // Others write here, too: any second it may change.
            invarsec: 0,
        }),
        Err(status) => Err(looked_failure(status, looked.attr)),
    }
}
