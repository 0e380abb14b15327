//! COMMIT (RFC 1813 section 3.3.21): the reply is built from the store's proof.

use wire::nfs3::NfsStat3;
use wire::nfs3::commit::{Args, Reply, ReplyOk};

use super::{Context, changed};
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args) -> Reply {
    let end = args.offset.checked_add(u64::from(args.count)).map(i64::try_from);
    let in_range = if let Some(Ok(_)) = end { Ok(()) } else { Err(NfsStat3::Inval) };
    let allowed = context.writable().and(in_range);
    let handle = match allowed.and_then(|()| context.handle(&args.file)) {
        Ok(handle) => handle,
        Err(status) => return Err(context.refuse(&args.file, status).await),
    };
    let (offset, count) = (args.offset, args.count);
    let outcome = context.store.commit(&context.caller, &handle, offset, count).await;
    changed(outcome).map(|(durable, file_wcc)| ReplyOk { file_wcc, verf: durable.verifier().0 })
}
