//! RENAME (RFC 1813 section 3.3.14).

use wire::nfs3::rename::{Args, Reply, ReplyOk};
use wire::nfs3::{Failure, WccData};

use super::{Context, convert};
use crate::status::nfsstat3;
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let entries = context
        .writable()
        .and_then(|()| Ok((context.old_entry(&args.from)?, context.old_entry(&args.to)?)));
    let ((from_dir, from_name), (to_dir, to_name)) = match entries {
        Ok(entries) => entries,
        Err(status) => {
            let wcc = |after| WccData { before: None, after };
            let detail = ReplyOk {
                fromdir_wcc: wcc(context.attr_of(&args.from.dir).await),
                todir_wcc: wcc(context.attr_of(&args.to.dir).await),
            };
            return Err(Failure { status, detail });
        }
    };
    let (store, caller) = (context.store, &context.caller);
    let renamed = store.rename(caller, &from_dir, from_name, &to_dir, to_name).await;
    let detail = ReplyOk {
        fromdir_wcc: convert::wcc_data(renamed.from),
        todir_wcc: convert::wcc_data(renamed.to),
    };
    match renamed.result {
        Ok(()) => Ok(detail),
        Err(status) => Err(Failure { status: nfsstat3(status), detail }),
    }
}
