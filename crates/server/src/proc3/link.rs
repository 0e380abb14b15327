//! LINK (RFC 1813 section 3.3.15).

use wire::nfs3::Procedure::Link;
use wire::nfs3::link::{Args, Reply, ReplyOk};

use crate::store::{Linked, Store};
use crate::types::{Handle, Status};

use super::attributes::{fattr3, wcc_data};
use super::{Context, failure, name};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let file = cx.handle(&args.file)?;
    let dir = cx.handle(&args.link.dir)?;
    let linked = match check(cx, &args) {
        Ok(name) => cx.store.link(cx.caller, &file, &dir, name).await,
        Err(status) => refuse(cx, &file, &dir, status).await,
    };
    let attributes = ReplyOk {
        file_attributes: linked.attr.as_ref().map(fattr3),
        linkdir_wcc: wcc_data(&linked.dir),
    };
    match linked.result {
        Ok(()) => Ok(attributes),
        Err(status) => Err(failure(Link, status, attributes)),
    }
}

fn check<'a, S: Store>(cx: &Context<'_, S>, args: &Args<'a>) -> Result<&'a [u8], Status> {
    cx.check_writable()?;
    name::to_make(args.link.name)
}

async fn refuse<S: Store>(
    cx: &Context<'_, S>,
    file: &Handle,
    dir: &Handle,
    status: Status,
) -> Linked {
    let file = cx.untouched::<()>(file, status).await;
    let dir = cx.unchanged(dir, status).await;
    Linked { attr: file.attr, dir: dir.wcc, result: file.result.and(dir.result) }
}
