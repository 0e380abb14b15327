//! SYMLINK (RFC 1813 section 3.3.10).

use wire::nfs3::NfsStat3;
use wire::nfs3::symlink::{Args, Reply};

use super::{Context, convert};
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let entry = context.writable().and_then(|()| context.new_entry(&args.where_));
    let entry = entry.and_then(|entry| target(args.symlink_data).map(|()| entry));
    let (dir, name) = match entry {
        Ok(entry) => entry,
        Err(status) => return Err(context.refuse(&args.where_.dir, status).await),
    };
    let attrs = convert::set_attr(args.symlink_attributes);
    let to = args.symlink_data;
    context.made(context.store.symlink(&context.caller, &dir, name, to, attrs).await)
}

/// What a link may say: something, without NUL, no longer than a path.
fn target(data: &[u8]) -> Result<(), NfsStat3> {
    match data {
        [] => Err(NfsStat3::Inval),
        data if data.contains(&0) => Err(NfsStat3::Inval),
        data if data.len() > 4095 => Err(NfsStat3::NameTooLong),
        _ => Ok(()),
    }
}
