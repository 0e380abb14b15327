//! WRITE (RFC 1094 section 2.2.9). The data goes to the store as a slice of the call's record, and
//! is stable before the reply: the attributes in it are given for the store's proof alone.
//!
//! `beginoffset` and `totalcount` are passed over, as the RFC says. Data that would end behind
//! 2^32 - 1, where the protocol cannot read it again, is NFSERR_FBIG.

use wire::nfs2::Fattr2;
use wire::nfs2::Procedure::Write;
use wire::nfs2::write::{Args, Reply};

use crate::durable::{Committed, Durable};
use crate::status::nfsstat2;
use crate::store::Store;
use crate::types::{Handle, Stability, Status};

use super::Context;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let file = cx.handle(&args.file)?;
    let written = match check(cx, &args) {
        Ok(()) => write(cx, &file, args).await,
        Err(status) => Err(cx.untouched(&file, status).await),
    };
    let stable = written.map_err(|status| nfsstat2(Write, status))?;
    Ok(stable.attributes)
}

fn check<S: Store>(cx: &Context<'_, S>, args: &Args<'_>) -> Result<(), Status> {
    cx.check_writable()?;
    let len = u32::try_from(args.data.len()).map_err(|_| Status::TooLarge)?;
    match args.offset.checked_add(len) {
        Some(_) => Ok(()),
        None => Err(Status::TooLarge),
    }
}

/// Attributes after a write, which only its proof can bring.
struct Stable {
    attributes: Fattr2,
    _proof: Durable,
}

async fn write<S: Store>(
    cx: &Context<'_, S>,
    file: &Handle,
    args: Args<'_>,
) -> Result<Stable, Status> {
    let data = cx.record.slice_ref(args.data);
    let offset = u64::from(args.offset);
    let changed = cx.store.write(cx.caller, file, offset, data, Stability::FileSync).await;
    match changed.result?.committed {
        Committed::Stable(Stability::FileSync, proof) => {
            let attributes = cx.attributes(changed.wcc.after, file).await?;
            Ok(Stable { attributes, _proof: proof })
        }
        // Less than was requested: a fault of the store, not to be hidden.
        Committed::Stable(..) | Committed::Unstable(_) => Err(Status::ServerFault),
    }
}
