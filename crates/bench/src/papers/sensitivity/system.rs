//! What the mix runs on: live, or in a world.

use client::session::Session;
use harness::exit::Failure;
use load::error::Error;
use load::fileset::{self, Layout};
use load::mix::{self, Outcome, Plan};
use load::recover::Injected;
use net::clock::Clock;
use wire::nfs3::FileHandle;

/// A client and a server with a path between them.
pub(super) trait System {
    /// Shown while it runs.
    fn name(&self) -> &'static str;

    /// Runs the mix, on files made for it, with these parameters in the way.
    async fn run(
        &self,
        conditions: Injected,
        layout: &Layout,
        plan: &Plan,
    ) -> Result<Outcome, Failure>;
}

/// Makes the files over the `plain` way, which takes no time that matters, and runs the mix over
/// the other.
pub(super) async fn run(
    clock: &Clock,
    plain: &Session,
    dir: FileHandle,
    shaped: &Session,
    layout: &Layout,
    plan: &Plan,
) -> Result<Outcome, Error> {
    let mut files = fileset::build(plain, dir, layout).await?;
    mix::run(clock, std::slice::from_ref(shaped), &mut files, plan).await
}
