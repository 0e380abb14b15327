//! FSSTAT (RFC 1813 section 3.3.18).

use wire::nfs3::Procedure::Fsstat;
use wire::nfs3::fsstat::{Args, Reply, ReplyOk};

use crate::store::Store;

use super::{Context, looked};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let fsroot = cx.handle(&args.fsroot)?;
    let found = cx.store.space(cx.caller, &fsroot).await;
    let (obj_attributes, space) = looked(Fsstat, found)?;
    Ok(ReplyOk {
        obj_attributes,
        tbytes: space.bytes_total,
        fbytes: space.bytes_free,
        abytes: space.bytes_available,
        tfiles: space.files_total,
        ffiles: space.files_free,
        afiles: space.files_available,
        invarsec: 0,
    })
}
