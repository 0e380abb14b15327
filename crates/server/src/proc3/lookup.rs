//! LOOKUP (RFC 1813 section 3.3.3).

use wire::nfs3::lookup::{Args, Reply, ReplyOk};
use wire::nfs3::{Failure, NfsStat3};

use super::{Context, convert, looked_failure};
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = context.handle(&args.what.dir)?;
    let name = match context.name(args.what.name) {
        Ok(name) => name,
        Err(status) => {
            return Err(Failure { status, detail: context.attr_of(&args.what.dir).await });
        }
    };
    let looked = context.store.lookup(&context.caller, &dir, name).await;
    match looked.result {
        Ok(node) => Ok(ReplyOk {
            object: context.export.wrap(&node.handle).ok_or(NfsStat3::ServerFault)?,
            obj_attributes: Some(convert::fattr3(node.attr)),
            dir_attributes: looked.attr.map(convert::fattr3),
        }),
        Err(status) => Err(looked_failure(status, looked.attr)),
    }
}
