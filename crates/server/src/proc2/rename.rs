//! RENAME (RFC 1094 section 2.2.12).

use wire::nfs2::Procedure::Rename;
use wire::nfs2::rename::{Args, Reply};

use crate::proc3::name;
use crate::status::nfsstat2;
use crate::store::Store;
use crate::types::{Handle, Status};

use super::Context;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let from_dir = cx.handle(&args.from.dir)?;
    let to_dir = cx.handle(&args.to.dir)?;
    let renamed = match check(cx, &args) {
        Ok((from, to)) => cx.store.rename(cx.caller, &from_dir, from, &to_dir, to).await.result,
        Err(status) => Err(refusal(cx, &from_dir, &to_dir, status).await),
    };
    renamed.map_err(|status| nfsstat2(Rename, status))
}

fn check<'a, S: Store>(
    cx: &Context<'_, S>,
    args: &Args<'a>,
) -> Result<(&'a [u8], &'a [u8]), Status> {
    cx.check_writable()?;
    let from = name::to_rename(args.from.name)?;
    Ok((from, name::to_rename(args.to.name)?))
}

async fn refusal<S: Store>(
    cx: &Context<'_, S>,
    from_dir: &Handle,
    to_dir: &Handle,
    status: Status,
) -> Status {
    match cx.store.attr(cx.caller, from_dir).await {
        Ok(_) => cx.untouched(to_dir, status).await,
        Err(gone) => gone,
    }
}
