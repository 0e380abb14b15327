//! Servers that commands measure: which, as whom, over which link.

use client::mount::{self, Mounted};
use client::session::{Credential, Session};
use client::url::Target;
use load::study::Subject;
use net::clock::Clock;
use net::shape::Shape;
use perf::model::transaction::Server;
use perf::units::Nanos;

/// A server, and how to connect to it.
#[derive(Clone, Debug)]
pub struct Reached {
    clock: Clock,
    server: Option<Server>,
    target: Target,
    options: mount::Options,
}

impl Reached {
    pub fn new(
        clock: &Clock,
        server: Option<Server>,
        target: &Target,
        options: mount::Options,
    ) -> Self {
        Self { clock: clock.clone(), server, target: target.clone(), options }
    }

    /// The same server, with nothing emulated on the way.
    pub fn without_link(&self) -> Self {
        let options = mount::Options { links: Shape::default(), ..self.options.clone() };
        Self { options, ..self.clone() }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl Subject for Reached {
    fn server(&self) -> Option<Server> {
        self.server
    }

    async fn connect(&self) -> Result<Session, client::error::Error> {
        let Mounted { session, .. } =
            mount::mount(&self.clock, &self.target, &self.options).await?;
        Ok(session)
    }
}

/// Who we are, how long we wait, and the link.
pub fn options(target: &Target, reply_limit: Nanos, links: Shape) -> mount::Options {
    let uid = target.uid.unwrap_or_else(|| rustix::process::getuid().as_raw());
    let gid = target.gid.unwrap_or_else(|| rustix::process::getgid().as_raw());
    let machine_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let credential = Credential { machine_name, uid, gid, gids: Vec::new() };
    let options = mount::Options::persistent(credential);
    mount::Options { reply_limit, links, persistence: None, ..options }
}

/// Whether a host is this one, by its name or address.
pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}
