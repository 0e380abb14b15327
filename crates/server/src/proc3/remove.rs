//! REMOVE (RFC 1813 section 3.3.12).

use wire::nfs3::remove::{Args, Reply, ReplyOk};

use super::{Context, changed};
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let entry = context.writable().and_then(|()| context.old_entry(&args.object));
    let (dir, name) = match entry {
        Ok(entry) => entry,
        Err(status) => return Err(context.refuse(&args.object.dir, status).await),
    };
    let outcome = context.store.remove(&context.caller, &dir, name).await;
    changed(outcome).map(|((), dir_wcc)| ReplyOk { dir_wcc })
}
