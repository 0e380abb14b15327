//! SETATTR (RFC 1813 section 3.3.2).

use wire::nfs3::Procedure::Setattr;
use wire::nfs3::setattr::{Args, Reply, ReplyOk};

use crate::store::Store;
use crate::types::{SetAttr, Status};

use super::attributes::{any_time, set_attr};
use super::{Context, changed};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let object = cx.handle(&args.object)?;
    let result = match check(cx, &args) {
        Ok(changes) => {
            let guard = args.guard.map(any_time);
            let caller = cx.caller;
            cx.store.set_attr(caller, &object, changes, guard).await
        }
        Err(status) => cx.unchanged(&object, status).await,
    };
    let (obj_wcc, ()) = changed(Setattr, result)?;
    Ok(ReplyOk { obj_wcc })
}

fn check<S: Store>(cx: &Context<'_, S>, args: &Args) -> Result<SetAttr, Status> {
    cx.check_writable()?;
    set_attr(&args.new_attributes)
}
