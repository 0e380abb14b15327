//! LINK (RFC 1094 section 2.2.13).

use wire::nfs2::Procedure::Link;
use wire::nfs2::link::{Args, Reply};

use crate::proc3::name;
use crate::status::nfsstat2;
use crate::store::Store;
use crate::types::Status;

use super::Context;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let file = cx.handle(&args.from)?;
    let dir = cx.handle(&args.to.dir)?;
    let linked = match check(cx, &args) {
        Ok(name) => cx.store.link(cx.caller, &file, &dir, name).await.result,
        Err(status) => Err(cx.untouched(&file, cx.untouched(&dir, status).await).await),
    };
    linked.map_err(|status| nfsstat2(Link, status))
}

fn check<'a, S: Store>(cx: &Context<'_, S>, args: &Args<'a>) -> Result<&'a [u8], Status> {
    cx.check_writable()?;
    name::to_make(args.to.name)
}
