//! RENAME (RFC 1813 section 3.3.14).
//!
//! For a target of another sort, or one that is not empty, the RFC suggests NFS3ERR_EXIST
//! ("should"); like the Linux server we say NOTDIR, ISDIR or NOTEMPTY, which programs expect of
//! rename(2).

use wire::nfs3::Procedure::Rename;
use wire::nfs3::rename::{Args, Reply, ReplyOk};

use crate::store::{Renamed, Store};
use crate::types::{Handle, Status};

use super::attributes::wcc_data;
use super::{Context, failure, name};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let from_dir = cx.handle(&args.from.dir)?;
    let to_dir = cx.handle(&args.to.dir)?;
    let renamed = match check(cx, &args) {
        Ok((from, to)) => cx.store.rename(cx.caller, &from_dir, from, &to_dir, to).await,
        Err(status) => refuse(cx, &from_dir, &to_dir, status).await,
    };
    let wcc = ReplyOk { fromdir_wcc: wcc_data(&renamed.from), todir_wcc: wcc_data(&renamed.to) };
    match renamed.result {
        Ok(()) => Ok(wcc),
        Err(status) => Err(failure(Rename, status, wcc)),
    }
}

fn check<'a, S: Store>(
    cx: &Context<'_, S>,
    args: &Args<'a>,
) -> Result<(&'a [u8], &'a [u8]), Status> {
    cx.check_writable()?;
    let from = name::to_rename(args.from.name)?;
    Ok((from, name::to_rename(args.to.name)?))
}

async fn refuse<S: Store>(
    cx: &Context<'_, S>,
    from_dir: &Handle,
    to_dir: &Handle,
    status: Status,
) -> Renamed {
    let from = cx.unchanged::<()>(from_dir, status).await;
    let to = cx.unchanged(to_dir, status).await;
    Renamed { from: from.wcc, to: to.wcc, result: from.result.and(to.result) }
}
