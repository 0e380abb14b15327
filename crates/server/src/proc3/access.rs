//! ACCESS (RFC 1813 section 3.3.4).

use wire::nfs3::Procedure;
use wire::nfs3::access::{Args, DELETE, EXTEND, MODIFY, Reply, ReplyOk};

use crate::store::Store;
use crate::types::Access;

use super::{Context, looked};

/// Rights that nobody has on a read-only export.
const CHANGES: u32 = MODIFY | EXTEND | DELETE;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let object = cx.handle(&args.object)?;
    let requested = Access(match cx.read_only {
        true => args.access & !CHANGES,
        false => args.access,
    });
    let found = cx.store.access(cx.caller, &object, requested).await;
    let (obj_attributes, given) = looked(Procedure::Access, found)?;
    Ok(ReplyOk { obj_attributes, access: given.0 & requested.0 })
}
