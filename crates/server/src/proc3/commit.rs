//! COMMIT (RFC 1813 section 3.3.21). The reply is made from the store's proof that the data is
//! durable, and from nothing else.

use wire::nfs3::Procedure::Commit;
use wire::nfs3::commit::{Args, Reply, ReplyOk};

use crate::store::Store;

use super::{Context, changed, within_offsets};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let file = cx.handle(&args.file)?;
    // A count of 0 means all that follows.
    let (offset, count) = within_offsets(args.offset, args.count);
    let result = cx.store.commit(cx.caller, &file, offset, count).await;
    let (file_wcc, durable) = changed(Commit, result)?;
    Ok(ReplyOk { file_wcc, verf: durable.verifier().0 })
}
