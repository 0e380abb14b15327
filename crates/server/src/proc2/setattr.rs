//! SETATTR (RFC 1094 section 2.2.3).

use wire::nfs2::Procedure::Setattr;
use wire::nfs2::setattr::{Args, Reply};
use wire::nfs2::{Fattr2, Sattr2};

use crate::status::nfsstat2;
use crate::store::Store;
use crate::types::{Handle, SetAttr, Status};

use super::Context;
use super::attributes::set_attr;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let file = cx.handle(&args.file)?;
    let set = match check(cx, &args.attributes) {
        Ok(changes) => change(cx, &file, changes).await,
        Err(status) => Err(cx.untouched(&file, status).await),
    };
    set.map_err(|status| nfsstat2(Setattr, status))
}

fn check<S: Store>(cx: &Context<'_, S>, attributes: &Sattr2) -> Result<SetAttr, Status> {
    cx.check_writable()?;
    set_attr(attributes)
}

async fn change<S: Store>(
    cx: &Context<'_, S>,
    file: &Handle,
    changes: SetAttr,
) -> Result<Fattr2, Status> {
    let changed = cx.store.set_attr(cx.caller, file, changes, None).await;
    changed.result?;
    cx.attributes(changed.wcc.after, file).await
}
