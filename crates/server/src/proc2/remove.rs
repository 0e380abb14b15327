//! REMOVE (RFC 1094 section 2.2.11).

use wire::nfs2::Procedure::Remove;
use wire::nfs2::remove::{Args, Reply};

use crate::proc3::name;
use crate::status::nfsstat2;
use crate::store::Store;
use crate::types::Status;

use super::Context;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.what.dir)?;
    let removed = match check(cx, &args) {
        Ok(name) => cx.store.remove(cx.caller, &dir, name).await.result,
        Err(status) => Err(cx.untouched(&dir, status).await),
    };
    removed.map_err(|status| nfsstat2(Remove, status))
}

fn check<'a, S: Store>(cx: &Context<'_, S>, args: &Args<'a>) -> Result<&'a [u8], Status> {
    cx.check_writable()?;
    name::to_remove(args.what.name)
}
