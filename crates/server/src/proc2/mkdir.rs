//! MKDIR (RFC 1094 section 2.2.15).

use wire::nfs2::Procedure::Mkdir;
use wire::nfs2::mkdir::{Args, Reply};

use crate::proc3::name;
use crate::store::Store;
use crate::types::{SetAttr, Status};

use super::Context;
use super::attributes::set_attr;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.where_.dir)?;
    let made = match check(cx, &args) {
        Ok((name, attrs)) => cx.store.make_dir(cx.caller, &dir, name, attrs).await.result,
        Err(status) => Err(cx.untouched(&dir, status).await),
    };
    cx.found(Mkdir, made)
}

fn check<'a, S: Store>(
    cx: &Context<'_, S>,
    args: &Args<'a>,
) -> Result<(&'a [u8], SetAttr), Status> {
    cx.check_writable()?;
    let name = name::to_make(args.where_.name)?;
    // A directory has no size to set: what a client puts there is passed over.
    let attrs = SetAttr { size: None, ..set_attr(&args.attributes)?.of_new(cx.caller) };
    Ok((name, attrs))
}
