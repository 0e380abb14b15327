//! GETATTR (RFC 1813 section 3.3.1).

use wire::nfs3::Procedure::Getattr;
use wire::nfs3::getattr::{Args, Reply, ReplyOk};

use crate::store::Store;

use super::attributes::fattr3;
use super::{Context, failure};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let object = cx.handle(&args.object)?;
    match cx.store.attr(cx.caller, &object).await {
        Ok(attr) => Ok(ReplyOk { obj_attributes: fattr3(&attr) }),
        Err(status) => Err(failure(Getattr, status, ())),
    }
}
