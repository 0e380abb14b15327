//! READDIR (RFC 1813 section 3.3.16).
//!
//! Entries are encoded as the store offers them, as long as they fit `count`, into what becomes
//! the payload of the reply: the directory's attributes, which stand before them, are known only
//! afterwards.

use bytes::Bytes;
use wire::nfs3::Procedure::Readdir;
use wire::nfs3::readdir::{Args, Budget, EMPTY_LEN, Entry, ReplyFail};
use wire::nfs3::{NfsStat3, PostOpAttr};
use wire::xdr::Encode;

use crate::store::{self, ListFrom, Listed, Store};
use crate::types::Status;

use super::{Context, looked};

/// What goes into a reply: what stands before the list, and the list without its end.
pub(super) struct Found {
    dir_attributes: PostOpAttr,
    listed: Listed,
    entries: Vec<u8>,
}

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args, head: &mut Vec<u8>) -> Bytes {
    encode(find(cx, args).await, head)
}

async fn find<S: Store>(cx: &Context<'_, S>, args: Args) -> Result<Found, ReplyFail> {
    let dir = cx.handle(&args.dir)?;
    let count = args.count.min(cx.transfer_bytes_max);
    let mut budget = Budget::new(count);
    let mut entries = Vec::new();
    let mut sink = |entry: store::Entry<'_>| {
        let fits = budget.admit(entry.name.len());
        if fits {
            true.encode(&mut entries);
            Entry { fileid: entry.fileid, name: entry.name, cookie: entry.cookie }
                .encode(&mut entries);
        }
        fits
    };
    let from = list_from(args.cookie, args.cookieverf, count, false);
    let found = match count as usize >= EMPTY_LEN {
        true => cx.store.list(cx.caller, &dir, from, &mut sink).await,
        false => cx.untouched(&dir, Status::TooSmall).await,
    };
    let (dir_attributes, listed) = looked(Readdir, found)?;
    Found::new(dir_attributes, listed, entries)
}

impl Found {
    /// Refuses a reply with neither an entry nor the end: the client would ask for it forever.
    pub(super) fn new(
        dir_attributes: PostOpAttr,
        listed: Listed,
        entries: Vec<u8>,
    ) -> Result<Self, ReplyFail> {
        match entries.is_empty() && !listed.eof {
            true => Err(ReplyFail { status: NfsStat3::TooSmall, detail: dir_attributes }),
            false => Ok(Self { dir_attributes, listed, entries }),
        }
    }
}

/// Where a listing begins. A verifier means nothing at the beginning.
pub(super) fn list_from(
    cookie: u64,
    cookieverf: [u8; 8],
    bytes: u32,
    with_nodes: bool,
) -> ListFrom {
    let verifier = if cookie == 0 { [0; 8] } else { cookieverf };
    ListFrom { cookie, verifier, with_nodes, bytes }
}

/// Appends status, attributes and verifier; the list with its end is the payload.
pub(super) fn encode(found: Result<Found, ReplyFail>, head: &mut Vec<u8>) -> Bytes {
    match found {
        Ok(Found { dir_attributes, listed, mut entries }) => {
            0u32.encode(head);
            dir_attributes.encode(head);
            listed.verifier.encode(head);
            false.encode(&mut entries);
            listed.eof.encode(&mut entries);
            Bytes::from(entries)
        }
        Err(failure) => {
            failure.encode(head);
            Bytes::new()
        }
    }
}
