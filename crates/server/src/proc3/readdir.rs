//! READDIR (RFC 1813 section 3.3.16).
//!
//! Entries are encoded as the store offers them, for as long as the client's `count` has room.

use wire::nfs3::readdir::{Args, Budget, Entry, Reply};
use wire::nfs3::{Failure, NfsStat3};
use wire::xdr::Encode;

use super::{Context, convert, looked_failure};
use crate::store::{ListFrom, Store};

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args, head: &mut Vec<u8>) {
    let handle = match context.handle(&args.dir) {
        Ok(handle) => handle,
        Err(status) => return Reply::Err(status.into()).encode(head),
    };
    let from =
        ListFrom { cookie: args.cookie, verifier: args.cookieverf, with_nodes: false };
    let mut budget = Budget::new(args.count.min(context.transfer_bytes_max));
    let mut entries = Vec::new();
    let (mut taken, mut too_small) = (false, false);
    let mut sink = |entry: crate::store::Entry<'_>| {
        if !budget.admit(entry.name.len()) {
            too_small = !taken;
            return false;
        }
        taken = true;
        true.encode(&mut entries);
        Entry { fileid: entry.fileid, name: entry.name, cookie: entry.cookie }
            .encode(&mut entries);
        true
    };
    let looked = context.store.list(&context.caller, &handle, from, &mut sink).await;
    let attributes = looked.attr.map(convert::fattr3);
    match looked.result {
        Ok(_) if too_small => {
            let failure = Failure { status: NfsStat3::TooSmall, detail: attributes };
            Reply::Err(failure).encode(head);
        }
        Ok(listed) => {
            0u32.encode(head);
            attributes.encode(head);
            listed.verifier.encode(head);
            head.append(&mut entries);
            false.encode(head);
            listed.eof.encode(head);
        }
        Err(status) => Reply::Err(looked_failure(status, looked.attr)).encode(head),
    }
}
