//! SYMLINK (RFC 1094 section 2.2.14). The RFC lets a server on UNIX pass over the attributes; the
//! store takes of them what a link has.

use wire::nfs2::MAXPATHLEN;
use wire::nfs2::Procedure::Symlink;
use wire::nfs2::symlink::{Args, Reply};

use crate::proc3::{check_target, name};
use crate::status::nfsstat2;
use crate::store::Store;
use crate::types::{SetAttr, Status};

use super::Context;
use super::attributes::set_attr;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.from.dir)?;
    let made = match check(cx, &args) {
        Ok((name, attrs)) => {
            cx.store.symlink(cx.caller, &dir, name, args.to, attrs).await.result.map(drop)
        }
        Err(status) => Err(cx.untouched(&dir, status).await),
    };
    made.map_err(|status| nfsstat2(Symlink, status))
}

fn check<'a, S: Store>(
    cx: &Context<'_, S>,
    args: &Args<'a>,
) -> Result<(&'a [u8], SetAttr), Status> {
    cx.check_writable()?;
    check_target(args.to)?;
    if args.to.len() > MAXPATHLEN {
        return Err(Status::NameTooLong);
    }
    let name = name::to_make(args.from.name)?;
    // Nor has a link a size that is not its target's.
    Ok((name, SetAttr { size: None, ..set_attr(&args.attributes)?.of_new(cx.caller) }))
}
