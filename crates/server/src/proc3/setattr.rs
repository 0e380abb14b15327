//! SETATTR (RFC 1813 section 3.3.2).

use wire::nfs3::NfsStat3;
use wire::nfs3::setattr::{Args, Reply, ReplyOk};

use super::{Context, changed, convert};
use crate::store::Store;

/// Offsets are signed 64-bit numbers in every Unix.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args) -> Reply {
    let too_big = args.new_attributes.size.is_some_and(|size| size > FILE_BYTES_MAX);
    let allowed = if too_big { Err(NfsStat3::FBig) } else { context.writable() };
    let handle = match allowed.and_then(|()| context.handle(&args.object)) {
        Ok(handle) => handle,
        Err(status) => return Err(context.refuse(&args.object, status).await),
    };
    let changes = convert::set_attr(args.new_attributes);
    let guard = args.guard.map(convert::time);
    let outcome = context.store.set_attr(&context.caller, &handle, changes, guard).await;
    changed(outcome).map(|((), obj_wcc)| ReplyOk { obj_wcc })
}
