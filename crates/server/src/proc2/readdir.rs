//! READDIR (RFC 1094 section 2.2.17).
//!
//! Entries are encoded as the store offers them, as long as they fit `count`, into what becomes
//! the payload of the reply. Not even one fits, and there is one: NFSERR_INVAL, since the client
//! would ask for it forever.
//!
//! The protocol has no verifier. Where a store wants one, it is the one of now: that a listing was
//! begun before the store came back is not noticed.

use bytes::Bytes;
use wire::nfs2;
use wire::nfs2::NfsStat2;
use wire::nfs2::Procedure::Readdir;
use wire::nfs2::readdir::{Args, Budget, EMPTY_LEN, Entry};
use wire::xdr::Encode;

use crate::status::nfsstat2;
use crate::store::{self, ListFrom, Listed, Store};
use crate::types::{Handle, Status};

use super::Context;
use super::attributes::fold;
use super::cookies::{Cookies, Dir};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args, head: &mut Vec<u8>) -> Bytes {
    match find(cx, args).await {
        Ok(Part { mut entries, eof, .. }) => {
            0u32.encode(head);
            false.encode(&mut entries);
            eof.encode(&mut entries);
            Bytes::from(entries)
        }
        Err(status) => {
            status.encode(head);
            Bytes::new()
        }
    }
}

/// A part of a listing while it is filled.
struct Part<'c> {
    cookies: &'c Cookies,
    dir: Dir,
    budget: Budget,
    /// The list without its end.
    entries: Vec<u8>,
    eof: bool,
}

impl Part<'_> {
    fn take(&mut self, entry: &store::Entry<'_>) -> bool {
        let fits = self.budget.admit(entry.name.len());
        if fits {
            let cookie = self.cookies.number(self.dir, entry.cookie);
            let fileid = fold(entry.fileid);
            true.encode(&mut self.entries);
            Entry { fileid, name: entry.name, cookie }.encode(&mut self.entries);
        }
        fits
    }
}

async fn find<'c, S: Store>(cx: &Context<'c, S>, args: Args) -> Result<Part<'c>, NfsStat2> {
    let handle = cx.handle(&args.dir)?;
    let count = args.count.min(cx.transfer_bytes_max());
    let dir = Dir { export: cx.export, handle };
    let budget = Budget::new(count);
    let part = Part { cookies: cx.cookies, dir, budget, entries: Vec::new(), eof: false };
    let filled = match cx.cookies.cookie(dir, args.cookie) {
        Ok(cookie) if count as usize >= EMPTY_LEN => fill(cx, &handle, cookie, part).await,
        Ok(_) => Err(cx.untouched(&handle, Status::TooSmall).await),
        Err(status) => Err(cx.untouched(&handle, status).await),
    };
    filled.map_err(|status| nfsstat2(Readdir, status))
}

async fn fill<'c, S: Store>(
    cx: &Context<'_, S>,
    dir: &Handle,
    cookie: u64,
    mut part: Part<'c>,
) -> Result<Part<'c>, Status> {
    let mut verifier = [0; 8];
    let mut listed = list(cx, dir, (cookie, verifier), &mut part).await;
    if cookie != 0 && part.entries.is_empty() && listed.is_err_and(is_bad_cookie) {
        verifier = verifier_now(cx, dir).await?;
        listed = list(cx, dir, (cookie, verifier), &mut part).await;
    }
    part.eof = listed?.eof;
    match part.entries.is_empty() && !part.eof {
        true => Err(Status::TooSmall),
        false => Ok(part),
    }
}

fn is_bad_cookie(status: Status) -> bool {
    status == Status::BadCookie
}

async fn list<S: Store>(
    cx: &Context<'_, S>,
    dir: &Handle,
    (cookie, verifier): (u64, [u8; 8]),
    part: &mut Part<'_>,
) -> Result<Listed, Status> {
    let from = ListFrom { cookie, verifier, with_nodes: false, bytes: nfs2::MAXDATA };
    let mut sink = |entry: store::Entry<'_>| part.take(&entry);
    cx.store.list(cx.caller, dir, from, &mut sink).await.result
}

/// What the store gives with the beginning of a listing.
async fn verifier_now<S: Store>(cx: &Context<'_, S>, dir: &Handle) -> Result<[u8; 8], Status> {
    let bytes = nfs2::MAXDATA;
    let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: false, bytes };
    let found = cx.store.list(cx.caller, dir, from, &mut |_| false).await;
    found.result.map(|listed| listed.verifier)
}
