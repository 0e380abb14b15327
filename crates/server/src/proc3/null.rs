//! NULL: does nothing.

use wire::nfs3::null::{Args, Reply};

use crate::store::Store;

use super::Context;

pub(super) async fn run<S: Store>(_cx: &Context<'_, S>, _args: Args) -> Reply {}
