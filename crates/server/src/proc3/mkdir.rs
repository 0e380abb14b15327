//! MKDIR (RFC 1813 section 3.3.9).

use wire::nfs3::Procedure::Mkdir;
use wire::nfs3::mkdir::{Args, Reply};

use crate::store::Store;
use crate::types::{SetAttr, Status};

use super::attributes::set_attr;
use super::{Context, name};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.where_.dir)?;
    let made = match check(cx, &args) {
        Ok((name, attrs)) => cx.store.make_dir(cx.caller, &dir, name, attrs).await,
        Err(status) => cx.unchanged(&dir, status).await,
    };
    cx.new_object(Mkdir, made)
}

fn check<'a, S: Store>(
    cx: &Context<'_, S>,
    args: &Args<'a>,
) -> Result<(&'a [u8], SetAttr), Status> {
    cx.check_writable()?;
    let name = name::to_make(args.where_.name)?;
    Ok((name, set_attr(&args.attributes)?.of_new(cx.caller)))
}
