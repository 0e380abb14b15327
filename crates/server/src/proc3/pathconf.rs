//! PATHCONF (RFC 1813 section 3.3.20).

use wire::nfs3::pathconf::{Args, Reply, ReplyOk};

use super::{Context, convert, looked_failure};
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args) -> Reply {
    let handle = context.handle(&args.object)?;
    let looked = context.store.properties(&context.caller, &handle).await;
    match looked.result {
        Ok(properties) => Ok(ReplyOk {
            obj_attributes: looked.attr.map(convert::fattr3),
            linkmax: properties.links_max,
            name_max: properties.name_bytes_max,
            no_trunc: true,
            chown_restricted: properties.chown_restricted,
            case_insensitive: false,
            case_preserving: true,
        }),
        Err(status) => Err(looked_failure(status, looked.attr)),
    }
}
