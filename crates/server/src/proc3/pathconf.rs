//! PATHCONF (RFC 1813 section 3.3.20).

use wire::nfs3::Procedure::Pathconf;
use wire::nfs3::pathconf::{Args, Reply, ReplyOk};

use crate::store::Store;

use super::{Context, looked};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let object = cx.handle(&args.object)?;
    let found = cx.store.properties(cx.caller, &object).await;
    let (obj_attributes, properties) = looked(Pathconf, found)?;
    Ok(ReplyOk {
        obj_attributes,
        linkmax: properties.links_max,
        name_max: properties.name_bytes_max,
        no_trunc: true,
        chown_restricted: properties.chown_restricted,
        case_insensitive: false,
        case_preserving: true,
    })
}
