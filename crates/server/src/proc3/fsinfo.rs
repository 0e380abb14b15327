//! FSINFO (RFC 1813 section 3.3.19).

use wire::nfs3::Procedure::Fsinfo;
use wire::nfs3::fsinfo::{
    Args, FSF_CANSETTIME, FSF_HOMOGENEOUS, FSF_LINK, FSF_SYMLINK, Reply, ReplyOk,
};

use crate::store::{Properties, Store};

use super::attributes::nfstime;
use super::{Context, looked};

/// Transfers are best in multiples of a page.
const TRANSFER_MULTIPLE: u32 = 4096;

/// Bytes a READDIR should ask for: some hundreds of entries.
const DIRECTORY_BYTES_PREFERRED: u32 = 64 * 1024;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let fsroot = cx.handle(&args.fsroot)?;
    let found = cx.store.properties(cx.caller, &fsroot).await;
    let (obj_attributes, properties) = looked(Fsinfo, found)?;
    let transfer_bytes_max = cx.transfer_bytes_max;
    Ok(ReplyOk {
        obj_attributes,
        rtmax: transfer_bytes_max,
        rtpref: transfer_bytes_max,
        rtmult: TRANSFER_MULTIPLE,
        wtmax: transfer_bytes_max,
        wtpref: transfer_bytes_max,
        wtmult: TRANSFER_MULTIPLE,
        dtpref: DIRECTORY_BYTES_PREFERRED.min(transfer_bytes_max),
        maxfilesize: properties.file_size_max,
        time_delta: nfstime(properties.time_resolution),
        properties: bits(&properties),
    })
}

fn bits(properties: &Properties) -> u32 {
    let bit = |set, bit| if set { bit } else { 0 };
    bit(properties.hard_links, FSF_LINK)
        | bit(properties.symlinks, FSF_SYMLINK)
        | FSF_HOMOGENEOUS
        | FSF_CANSETTIME
}
