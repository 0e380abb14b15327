//! RMDIR (RFC 1813 section 3.3.13).

use wire::nfs3::Procedure::Rmdir;
use wire::nfs3::rmdir::{Args, Reply, ReplyOk};

use crate::store::Store;
use crate::types::Status;

use super::{Context, changed, name};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.object.dir)?;
    let result = match check(cx, &args) {
        Ok(name) => cx.store.remove_dir(cx.caller, &dir, name).await,
        Err(status) => cx.unchanged(&dir, status).await,
    };
    let (dir_wcc, ()) = changed(Rmdir, result)?;
    Ok(ReplyOk { dir_wcc })
}

fn check<'a, S: Store>(cx: &Context<'_, S>, args: &Args<'a>) -> Result<&'a [u8], Status> {
    cx.check_writable()?;
    name::to_remove_dir(args.object.name)
}
