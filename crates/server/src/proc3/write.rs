//! WRITE (RFC 1813 section 3.3.7).
//!
//! A call whose `count` and data differ in length is NFS3ERR_INVAL: the RFC's own word for
//! arguments that the server cannot make sense of, and unlike GARBAGE_ARGS it names the call.

use wire::nfs3::NfsStat3;
use wire::nfs3::write::{Args, Reply, ReplyOk};

use super::{Context, changed, convert};
use crate::durable::Committed;
use crate::store::{Store, Written};
use crate::types::Stability;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let handle = match check(context, &args) {
        Ok(handle) => handle,
        Err(status) => return Err(context.refuse(&args.file, status).await),
    };
    // More than we take is written in part, which the client continues.
    let taken = args.data.len().min(context.transfer_bytes_max as usize);
    let data = context.record.slice_ref(&args.data[..taken]);
    let stability = convert::stability(args.stable);
    let outcome =
        context.store.write(&context.caller, &handle, args.offset, data, stability).await;
    changed(outcome).map(|(Written { count, committed }, file_wcc)| {
        let (committed, verifier) = match committed {
            Committed::Unstable(verifier) => (Stability::Unstable, verifier),
            Committed::Stable(stability, durable) => (stability, durable.verifier()),
        };
        ReplyOk { file_wcc, count, committed: convert::stable_how(committed), verf: verifier.0 }
    })
}

fn check<S: Store>(
    context: &Context<'_, S>,
    args: &Args<'_>,
) -> Result<crate::types::Handle, NfsStat3> {
    context.writable()?;
    let handle = context.handle(&args.file)?;
    if args.count as usize != args.data.len() {
        return Err(NfsStat3::Inval);
    }
    let end = args.offset.checked_add(u64::from(args.count));
    match end.map(i64::try_from) {
        Some(Ok(_)) => Ok(handle),
        _ => Err(NfsStat3::FBig),
    }
}
