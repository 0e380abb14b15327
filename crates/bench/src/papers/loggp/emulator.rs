//! What puts the delays in: our own client's end of a connection, and for o our server's, too.

use client::error::Error as ClientError;
use client::mount::{self, Mounted};
use client::url::Target;
use harness::exit::Failure;
use harness::processors::apart;
use harness::served::Embedded;
use harness::target;
use load::recover::{Emulator, Injected, Reached};
use net::clock::Clock;
use net::shape::conditions::Overhead;
use net::shape::profile::Profile;
use perf::units::Nanos;
use wire::nfs3::FileHandle;

/// What a server in memory holds: three files of a MiB each.
const STORE_BYTES_MAX: u64 = 64 << 20;

/// A path that something can be put into.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    clock: &'a Clock,
    reply_limit: Nanos,
    base: Injected,
    end: End<'a>,
}

/// Where a path leads.
#[derive(Debug)]
enum End<'a> {
    /// A server of our own for the bare path, and one for that behind something. Each has one
    /// thread: its processor is one station, as in the paper.
    Embedded {
        bare: Embedded,
        behind: Embedded,
    },
    Target {
        target: &'a Target,
        dir: FileHandle,
    },
}

impl<'a> Bench<'a> {
    /// To servers of our own, new ones.
    pub(super) fn embedded(
        clock: &'a Clock,
        reply_limit: Nanos,
        base: Injected,
        injected: &Injected,
    ) -> Result<Self, Failure> {
        let server = |of: &Injected| Embedded::single(STORE_BYTES_MAX, of.overhead);
        let servers = apart(|| (server(&base), server(&base.and(injected))));
        let (bare, behind) = (servers.0?, servers.1?);
        let end = End::Embedded { bare, behind };
        Ok(Self { clock, reply_limit, base, end })
    }

    /// To a directory of somebody else's.
    pub(super) fn at(
        clock: &'a Clock,
        reply_limit: Nanos,
        base: Injected,
        target: &'a Target,
        dir: FileHandle,
    ) -> Self {
        Self { clock, reply_limit, base, end: End::Target { target, dir } }
    }
}

impl Emulator for Bench<'_> {
    async fn reach(&self, injected: &Injected) -> Result<Reached, ClientError> {
        let Injected { link, overhead } = *injected;
        let profile = Profile {
            overhead: Overhead { send: overhead, receive: overhead },
            ..Profile::symmetric("put in", link)
        };
        let limit = self.reply_limit;
        let ((target, options), dir) = match &self.end {
            End::Embedded { bare, behind } => {
                let server = if *injected == self.base { bare } else { behind };
                (server.reach(limit, profile.into()), None)
            }
            End::Target { target, dir } => {
                let options = target::options(target, limit, profile.into());
                (((*target).clone(), options), Some(*dir))
            }
        };
        let Mounted { session, .. } = mount::mount(self.clock, &target, &options).await?;
        Ok(Reached { dir: dir.unwrap_or_else(|| session.root()), session })
    }

    fn busy_ends(&self) -> u32 {
        match self.end {
            End::Embedded { .. } => 2,
            End::Target { .. } => 1,
        }
    }
}
