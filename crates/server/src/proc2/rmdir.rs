//! RMDIR (RFC 1094 section 2.2.16).

use wire::nfs2::Procedure::Rmdir;
use wire::nfs2::rmdir::{Args, Reply};

use crate::proc3::name;
use crate::status::nfsstat2;
use crate::store::Store;
use crate::types::Status;

use super::Context;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.what.dir)?;
    let removed = match check(cx, &args) {
        Ok(name) => cx.store.remove_dir(cx.caller, &dir, name).await.result,
        Err(status) => Err(cx.untouched(&dir, status).await),
    };
    removed.map_err(|status| nfsstat2(Rmdir, status))
}

fn check<'a, S: Store>(cx: &Context<'_, S>, args: &Args<'a>) -> Result<&'a [u8], Status> {
    cx.check_writable()?;
    name::to_remove_dir(args.what.name)
}
