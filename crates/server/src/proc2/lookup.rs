//! LOOKUP (RFC 1094 section 2.2.5).

use wire::nfs2::Procedure::Lookup;
use wire::nfs2::lookup::{Args, Reply};

use crate::proc3::name;
use crate::store::Store;

use super::Context;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.what.dir)?;
    let found = match name::to_look_up(args.what.name) {
        Ok(name) => cx.store.lookup(cx.caller, &dir, name).await.result,
        Err(status) => Err(cx.untouched(&dir, status).await),
    };
    cx.found(Lookup, found)
}
