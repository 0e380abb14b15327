//! CREATE (RFC 1813 section 3.3.8).

use wire::nfs3::Procedure::Create;
use wire::nfs3::create::{self, Args, Reply};

use crate::store::Store;
use crate::types::{CreateHow, Status};

use super::attributes::set_attr;
use super::{Context, name};

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.where_.dir)?;
    let made = match check(cx, &args) {
        Ok((name, how)) => cx.store.create(cx.caller, &dir, name, how).await,
        Err(status) => cx.unchanged(&dir, status).await,
    };
    cx.new_object(Create, made)
}

fn check<'a, S: Store>(
    cx: &Context<'_, S>,
    args: &Args<'a>,
) -> Result<(&'a [u8], CreateHow), Status> {
    cx.check_writable()?;
    let name = name::to_make(args.where_.name)?;
    let wanted = |attributes| Ok(set_attr(attributes)?.of_new(cx.caller));
    let how = match &args.how {
        create::CreateHow::Unchecked(attributes) => CreateHow::Unchecked(wanted(attributes)?),
        create::CreateHow::Guarded(attributes) => CreateHow::Guarded(wanted(attributes)?),
        create::CreateHow::Exclusive(verifier) => CreateHow::Exclusive(*verifier),
    };
    Ok((name, how))
}
