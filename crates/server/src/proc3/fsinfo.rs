//! FSINFO (RFC 1813 section 3.3.19).

use wire::nfs3::fsinfo::{
    Args, FSF_CANSETTIME, FSF_HOMOGENEOUS, FSF_LINK, FSF_SYMLINK, Reply, ReplyOk,
};

use super::{Context, convert, looked_failure};
use crate::store::Store;

/// What transfers should be multiples of: a page.
const MULTIPLE_BYTES: u32 = 4096;

/// What a READDIR should ask for.
const DIR_BYTES: u32 = 64 << 10;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args) -> Reply {
    let handle = context.handle(&args.fsroot)?;
    let looked = context.store.properties(&context.caller, &handle).await;
    let properties = match looked.result {
        Ok(properties) => properties,
        Err(status) => return Err(looked_failure(status, looked.attr)),
    };
    let max = context.transfer_bytes_max;
    let links = if properties.hard_links { FSF_LINK } else { 0 };
    let symlinks = if properties.symlinks { FSF_SYMLINK } else { 0 };
    Ok(ReplyOk {
        obj_attributes: looked.attr.map(convert::fattr3),
        rtmax: max,
        rtpref: max,
        rtmult: MULTIPLE_BYTES,
        wtmax: max,
        wtpref: max,
        wtmult: MULTIPLE_BYTES,
        dtpref: DIR_BYTES.min(max),
        maxfilesize: properties.file_size_max,
        time_delta: convert::nfstime3(properties.time_resolution),
        properties: links | symlinks | FSF_HOMOGENEOUS | FSF_CANSETTIME,
    })
}
