//! GETATTR (RFC 1094 section 2.2.2).

use wire::nfs2::Procedure::Getattr;
use wire::nfs2::getattr::{Args, Reply};

use crate::status::nfsstat2;
use crate::store::Store;

use super::Context;
use super::attributes::fattr2;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let file = cx.handle(&args.file)?;
    let attr = cx.store.attr(cx.caller, &file).await;
    attr.map(|attr| fattr2(&attr)).map_err(|status| nfsstat2(Getattr, status))
}
