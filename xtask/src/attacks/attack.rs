//! An attack, and where it takes place.

use std::any::Any;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use wire::nfs3::FileHandle;

use super::calls::Connection;
use crate::host::nfskit::Server;

/// One way to do harm.
pub(crate) struct Attack {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Fills a folder that is served; without it, memory is.
    pub(super) tree: Option<fn(&Path) -> io::Result<()>>,
    /// The server's further options.
    pub(super) options: &'static [&'static str],
    /// Begins; it ends when what this gives is dropped.
    pub(super) begin: fn(&Scene) -> io::Result<Box<dyn Any + Send>>,
}

/// What is attacked.
pub(crate) struct Scene {
    pub(super) address: SocketAddr,
    /// Where /metrics is.
    pub(super) metrics: SocketAddr,
    /// A file of 4 MiB.
    pub(super) file: FileHandle,
}

impl Attack {
    /// From a thread that lets all others go first, as do those that it starts.
    pub(super) fn begin(&self, scene: &Scene) -> io::Result<Box<dyn Any + Send>> {
        let begin = || {
            be_nice(19);
            (self.begin)(scene)
        };
        let joined = std::thread::scope(|scope| scope.spawn(begin).join());
        joined.unwrap_or_else(|_| Err(io::Error::other("the attack panicked")))
    }
}

/// How nice this thread is to others, as far as the system allows.
pub(super) fn be_nice(nice: i32) {
    setpriority_process(Some(gettid()), nice).ok();
}

impl Scene {
    pub(super) fn of(server: &Server) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.address.nfs_port));
        let lines = server.lines();
        let metrics = lines
            .iter()
            .find_map(|line| line.split_once("http://")?.1.split('/').next()?.parse().ok());
        let metrics = metrics
            .ok_or_else(|| io::Error::other("the server tells no address of its metrics"))?;
        let file = Connection::to(address)?.prepare()?;
        Ok(Self { address, metrics, file })
    }
}
