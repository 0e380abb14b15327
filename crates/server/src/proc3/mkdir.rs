//! MKDIR (RFC 1813 section 3.3.9).

use wire::nfs3::mkdir::{Args, Reply};

use super::{Context, convert};
use crate::store::Store;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let entry = context.writable().and_then(|()| context.new_entry(&args.where_));
    let (dir, name) = match entry {
        Ok(entry) => entry,
        Err(status) => return Err(context.refuse(&args.where_.dir, status).await),
    };
    let attrs = convert::set_attr(args.attributes);
    context.made(context.store.make_dir(&context.caller, &dir, name, attrs).await)
}
