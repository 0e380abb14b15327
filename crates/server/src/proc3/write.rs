//! WRITE (RFC 1813 section 3.3.7). The data goes to the store as a slice of the call's record.
//!
//! - A `count` that is not the length of the data is NFS3ERR_INVAL: one of the two is wrong, and
//!   writing either would be a guess.
//! - A `count` of 0 succeeds and changes nothing.
//! - More than `wtmax` is written up to `wtmax`; the client goes on from the count it gets.

use wire::nfs3::Procedure::Write;
use wire::nfs3::StableHow;
use wire::nfs3::write::{Args, Reply, ReplyOk};

use crate::durable::Committed;
use crate::store::{Store, Written};
use crate::types::{Stability, Status};

use super::{Context, changed, is_within_offsets};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let file = cx.handle(&args.file)?;
    let result = match check(cx, &args) {
        Ok(()) => {
            let len = args.data.len().min(cx.transfer_bytes_max as usize);
            let data = cx.record.slice_ref(&args.data[..len]);
            let stability = stability(args.stable);
            let write = cx.store.write(cx.caller, &file, args.offset, data, stability);
            write.await
        }
        Err(status) => cx.unchanged(&file, status).await,
    };
    let (file_wcc, Written { count, committed }) = changed(Write, result)?;
    let (committed, verifier) = match committed {
        Committed::Unstable(verifier) => (StableHow::Unstable, verifier),
        Committed::Stable(stability, durable) => (stable_how(stability), durable.verifier()),
    };
    Ok(ReplyOk { file_wcc, count, committed, verf: verifier.0 })
}

fn check<S: Store>(cx: &Context<'_, S>, args: &Args<'_>) -> Result<(), Status> {
    cx.check_writable()?;
    if args.count as usize != args.data.len() {
        return Err(Status::Invalid);
    }
    match is_within_offsets(args.offset, args.count) {
        true => Ok(()),
        false => Err(Status::TooLarge),
    }
}

fn stability(stable: StableHow) -> Stability {
    match stable {
        StableHow::Unstable => Stability::Unstable,
        StableHow::DataSync => Stability::DataSync,
        StableHow::FileSync => Stability::FileSync,
    }
}

pub(super) fn stable_how(stability: Stability) -> StableHow {
    match stability {
        Stability::Unstable => StableHow::Unstable,
        Stability::DataSync => StableHow::DataSync,
        Stability::FileSync => StableHow::FileSync,
    }
}
