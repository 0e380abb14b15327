//! READ (RFC 1813 section 3.3.6).

use bytes::Bytes;
use wire::nfs3::NfsStat3;
use wire::nfs3::read::{Args, Reply, ReplyOk};

use super::{Context, convert, looked_failure};
use crate::store::Store;

/// The reply without its data, and the data.
pub(crate) async fn call<S: Store>(
    context: &Context<'_, S>,
    args: Args,
) -> (Reply<'static>, Bytes) {
    let handle = match context.handle(&args.file) {
        Ok(handle) if i64::try_from(args.offset).is_ok() => handle,
        Ok(_) => return (Err(NfsStat3::Inval.into()), Bytes::new()),
        Err(status) => return (Err(status.into()), Bytes::new()),
    };
    let count = args.count.min(context.transfer_bytes_max);
    let looked = context.store.read(&context.caller, &handle, args.offset, count).await;
    match looked.result {
        Ok(extent) => {
            let ok = ReplyOk {
                file_attributes: looked.attr.map(convert::fattr3),
                count: u32::try_from(extent.data.len()).unwrap_or(u32::MAX),
                eof: extent.eof,
                data: &[],
            };
            (Ok(ok), extent.data)
        }
        Err(status) => (Err(looked_failure(status, looked.attr)), Bytes::new()),
    }
}
