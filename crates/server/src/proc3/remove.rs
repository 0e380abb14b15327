//! REMOVE (RFC 1813 section 3.3.12).

use wire::nfs3::Procedure::Remove;
use wire::nfs3::remove::{Args, Reply, ReplyOk};

use crate::store::Store;
use crate::types::Status;

use super::{Context, changed, name};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.object.dir)?;
    let result = match check(cx, &args) {
        Ok(name) => cx.store.remove(cx.caller, &dir, name).await,
        Err(status) => cx.unchanged(&dir, status).await,
    };
    let (dir_wcc, ()) = changed(Remove, result)?;
    Ok(ReplyOk { dir_wcc })
}

fn check<'a, S: Store>(cx: &Context<'_, S>, args: &Args<'a>) -> Result<&'a [u8], Status> {
    cx.check_writable()?;
    name::to_remove(args.object.name)
}
