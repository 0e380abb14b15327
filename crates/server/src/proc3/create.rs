//! CREATE (RFC 1813 section 3.3.8).

use wire::nfs3::create::{Args, CreateHow, Reply};

use super::{Context, convert};
use crate::store::Store;
use crate::types::CreateHow as How;

pub(crate) async fn call<S: Store>(context: &Context<'_, S>, args: Args<'_>) -> Reply {
    let entry = context.writable().and_then(|()| context.new_entry(&args.where_));
    let (dir, name) = match entry {
        Ok(entry) => entry,
        Err(status) => return Err(context.refuse(&args.where_.dir, status).await),
    };
    let how = match args.how {
        CreateHow::Unchecked(attributes) => How::Unchecked(convert::set_attr(attributes)),
        CreateHow::Guarded(attributes) => How::Guarded(convert::set_attr(attributes)),
        CreateHow::Exclusive(verifier) => How::Exclusive(verifier),
    };
    context.made(context.store.create(&context.caller, &dir, name, how).await)
}
