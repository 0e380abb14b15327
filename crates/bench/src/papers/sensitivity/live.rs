//! The live system: our client, a real socket, and a server with one thread.

use client::mount::{self, Mounted, Options};
use client::session::Session;
use client::url::Target;
use harness::exit::Failure;
use harness::processors::apart;
use harness::served::Embedded;
use harness::target;
use load::fileset::Layout;
use load::mix::{Outcome, Plan};
use load::recover::Injected;
use load::scratch::Scratch;
use net::clock::Clock;
use net::shape::{LinkPair, Shape};
use perf::units::Nanos;

use super::system::{self, System};

/// What the server in memory holds: the files, and what they grow by.
const STORE_BYTES_MAX: u64 = 256 << 20;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Live<'a> {
    clock: &'a Clock,
    reply_limit: Nanos,
    /// Somebody else's server; otherwise one of our own, a new one for each run.
    target: Option<(&'a Target, Scratch)>,
}

impl<'a> Live<'a> {
    pub(super) fn embedded(clock: &'a Clock, reply_limit: Nanos) -> Self {
        Self { clock, reply_limit, target: None }
    }

    pub(super) fn at(
        clock: &'a Clock,
        reply_limit: Nanos,
        target: &'a Target,
        scratch: Scratch,
    ) -> Self {
        Self { clock, reply_limit, target: Some((target, scratch)) }
    }

    /// A new session.
    async fn session(&self, target: &Target, options: &Options) -> Result<Session, Failure> {
        let Mounted { session, .. } = mount::mount(self.clock, target, options).await?;
        Ok(session)
    }
}

impl System for Live<'_> {
    fn name(&self) -> &'static str {
        "live"
    }

    async fn run(
        &self,
        conditions: Injected,
        layout: &Layout,
        plan: &Plan,
    ) -> Result<Outcome, Failure> {
        let links = || LinkPair::symmetric(conditions.link).into();
        let clock = self.clock;
        match &self.target {
            Some((target, scratch)) => {
                let options = |links| target::options(target, self.reply_limit, links);
                let plain = self.session(target, &options(Shape::default())).await?;
                let shaped = self.session(target, &options(links())).await?;
                let inner = plain.with_root(scratch.dir());
                let inner = Scratch::create(&inner, &Scratch::name_for("files")).await?;
                let dir = inner.dir();
                let outcome = system::run(clock, &plain, dir, &shaped, layout, plan).await?;
                inner.remove(&plain).await?;
                Ok(outcome)
            }
            None => {
                let server = apart(|| Embedded::single(STORE_BYTES_MAX, conditions.overhead))?;
                let (target, plain) = server.reach(self.reply_limit, Shape::default());
                let plain = self.session(&target, &plain).await?;
                let (target, shaped) = server.reach(self.reply_limit, links());
                let shaped = self.session(&target, &shaped).await?;
                let dir = plain.root();
                Ok(system::run(clock, &plain, dir, &shaped, layout, plan).await?)
            }
        }
    }
}
