//! LINK (RFC 1813 section 3.3.15).

use wire::nfs3::link::{Args, Reply, ReplyOk};
use wire::nfs3::{Failure, WccData};

use super::{Context, convert};
use crate::status::nfsstat3;
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let wanted = context
        .writable()
        .and_then(|()| Ok((context.handle(&args.file)?, context.new_entry(&args.link)?)));
    let (file, (dir, name)) = match wanted {
        Ok(wanted) => wanted,
        Err(status) => {
            let after = context.attr_of(&args.link.dir).await;
            let detail = ReplyOk {
                file_attributes: context.attr_of(&args.file).await,
                linkdir_wcc: WccData { before: None, after },
            };
            return Err(Failure { status, detail });
        }
    };
    let linked = context.store.link(&context.caller, &file, &dir, name).await;
    let detail = ReplyOk {
        file_attributes: linked.attr.map(convert::fattr3),
        linkdir_wcc: convert::wcc_data(linked.dir),
    };
    match linked.result {
        Ok(()) => Ok(detail),
        Err(status) => Err(Failure { status: nfsstat3(status), detail }),
    }
}
