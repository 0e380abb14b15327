//! READDIRPLUS (RFC 1813 section 3.3.17). See READDIR for how the reply is put together.

use bytes::Bytes;
use wire::nfs3::Procedure::Readdirplus;
use wire::nfs3::readdirplus::{Args, Budget, EMPTY_LEN, Entry, ReplyFail};
use wire::xdr::Encode;

use crate::handle;
use crate::store::{self, Store};
use crate::types::Status;

use super::attributes::fattr3;
use super::readdir::{Found, encode, list_from};
use super::{Context, looked};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args, head: &mut Vec<u8>) -> Bytes {
    encode(find(cx, args).await, head)
}

async fn find<S: Store>(cx: &Context<'_, S>, args: Args) -> Result<Found, ReplyFail> {
    let dir = cx.handle(&args.dir)?;
    let maxcount = args.maxcount.min(cx.transfer_bytes_max);
    let mut budget = Budget::new(args.dircount, maxcount);
    let mut entries = Vec::new();
    let mut sink = |entry: store::Entry<'_>| {
        let node = entry.node.as_ref();
        let handle_len = node.map_or(0, |node| handle::wire_len(&node.handle));
        let fits = budget.admit(entry.name.len(), handle_len);
        if fits {
            true.encode(&mut entries);
            Entry {
                fileid: entry.fileid,
                name: entry.name,
                cookie: entry.cookie,
                name_attributes: node.map(|node| fattr3(&node.attr)),
                name_handle: node.map(|node| cx.file_handle(&node.handle)),
            }
            .encode(&mut entries);
        }
        fits
    };
    let from = list_from(args.cookie, args.cookieverf, maxcount, true);
    let found = match maxcount as usize >= EMPTY_LEN {
        true => cx.store.list(cx.caller, &dir, from, &mut sink).await,
        false => cx.untouched(&dir, Status::TooSmall).await,
    };
    let (dir_attributes, listed) = looked(Readdirplus, found)?;
    Found::new(dir_attributes, listed, entries)
}
