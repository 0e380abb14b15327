//! ACCESS (RFC 1813 section 3.3.4).

use wire::nfs3::access::{Args, Reply, ReplyOk};

use super::{Context, convert, looked_failure};
use crate::store::Store;
use crate::types::Access;

const CHANGES: u32 = Access::MODIFY | Access::EXTEND | Access::DELETE;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args) -> Reply {
    let handle = context.handle(&args.object)?;
    let asked = if context.writable().is_ok() { args.access } else { args.access & !CHANGES };
    let looked = context.store.access(&context.caller, &handle, Access(asked)).await;
    match looked.result {
        Ok(granted) => Ok(ReplyOk {
            obj_attributes: looked.attr.map(convert::fattr3),
            access: granted.0 & asked,
        }),
        Err(status) => Err(looked_failure(status, looked.attr)),
    }
}
