//! LOOKUP (RFC 1813 section 3.3.3).

use wire::nfs3::Procedure::Lookup;
use wire::nfs3::lookup::{Args, Reply, ReplyOk};

use crate::store::Store;

use super::attributes::fattr3;
use super::{Context, looked, name};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.what.dir)?;
    let found = match name::to_look_up(args.what.name) {
        Ok(name) => cx.store.lookup(cx.caller, &dir, name).await,
        Err(status) => cx.untouched(&dir, status).await,
    };
    let (dir_attributes, node) = looked(Lookup, found)?;
    Ok(ReplyOk {
        object: cx.file_handle(&node.handle),
        obj_attributes: Some(fattr3(&node.attr)),
        dir_attributes,
    })
}
