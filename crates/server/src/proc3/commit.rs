//! COMMIT (RFC 1813 section 3.3.21). The reply is made from the store's proof that the data is
//! durable, and from nothing else.

use wire::nfs3::Procedure::Commit;
use wire::nfs3::commit::{Args, Reply, ReplyOk};

use crate::store::Store;
use crate::types::Status;

use super::{Context, changed, is_within_offsets};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let file = cx.handle(&args.file)?;
    let Args { offset, count, .. } = args;
    let result = match is_within_offsets(offset, count) {
        true => cx.store.commit(cx.caller, &file, offset, count).await,
        false => cx.unchanged(&file, Status::Invalid).await,
    };
    let (file_wcc, durable) = changed(Commit, result)?;
    Ok(ReplyOk { file_wcc, verf: durable.verifier().0 })
}
