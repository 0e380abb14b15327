//! Counters of a host at one time, from the files of one root.

use counters::client::Client;
use counters::host::device::{self, Device};
use counters::host::disk::{self, Disk};
use counters::host::named::{self, Named};
use counters::host::pressure::{self, Pressure};
use counters::host::processor::{self, Processors};
use counters::host::protocols::{self, Protocols};
use counters::host::softnet::{self, Softnet};
use counters::mountstats::{self, Mount};
use counters::pools::{self, Pool};
use counters::server::Server;
use counters::socket::{self, Connection};
use counters::{Problem, client, partial, server};

use super::Evidence;
use crate::collect::{CONNECTIONS, Files};

/// See the module's head. What the host does not have, or nobody has kept, is none or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Since the boot: the clock of samples.
    pub uptime_s: Option<f64>,
    /// Whether there was a list of mounts, be it empty.
    pub has_mounts: bool,
    pub mounts: Vec<Mount>,
    pub client: Option<Client>,
    pub server: Option<Server>,
    pub pools: Vec<Pool>,
    /// `snmp` and `netstat` together.
    pub protocols: Option<Protocols>,
    pub devices: Vec<Device>,
    pub softnet: Vec<Softnet>,
    pub memory: Option<Named>,
    pub disks: Vec<Disk>,
    pub processors: Option<Processors>,
    pub pressures: Pressures,
    pub connections: Vec<Connection>,
}

/// What was wanting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressures {
    pub processors: Option<Pressure>,
    pub disks: Option<Pressure>,
    pub memory: Option<Pressure>,
}

/// One root.
pub(super) struct Reader<'a> {
    pub(super) files: &'a Files,
    pub(super) root: &'a str,
    pub(super) evidence: &'a mut Evidence,
}

impl Reader<'_> {
    pub(super) fn sample(mut self) -> Sample {
        let mounts = self.read("proc/self/mountstats", mountstats::read);
        let mut protocols = self.read("proc/net/snmp", protocols::read);
        if let Some(more) = self.read("proc/net/netstat", protocols::read) {
            protocols.get_or_insert_default().join(more);
        }
        Sample {
            uptime_s: self.uptime(),
            has_mounts: mounts.is_some(),
            mounts: mounts.unwrap_or_default(),
            client: self.read("proc/net/rpc/nfs", client::read),
            server: self.read("proc/net/rpc/nfsd", server::read),
            pools: self.read("proc/fs/nfsd/pool_stats", pools::read).unwrap_or_default(),
            protocols,
            devices: self.read("proc/net/dev", device::read).unwrap_or_default(),
            softnet: self.read("proc/net/softnet_stat", softnet::read).unwrap_or_default(),
            memory: self.read("proc/meminfo", named::read),
            disks: self.read("proc/diskstats", disk::read).unwrap_or_default(),
            processors: self.read("proc/stat", processor::read),
            pressures: Pressures {
                processors: self.read("proc/pressure/cpu", pressure::read),
                disks: self.read("proc/pressure/io", pressure::read),
                memory: self.read("proc/pressure/memory", pressure::read),
            },
            connections: self.read(CONNECTIONS, socket::read).unwrap_or_default(),
        }
    }

    fn read<T>(&mut self, path: &str, read: impl Fn(&[u8]) -> Result<T, Problem>) -> Option<T> {
        let path = format!("{}{path}", self.root);
        let read = partial(self.files.text(&path)?, read);
        self.evidence.problems(&path, &read.problems);
        if read.value.is_some() {
            self.evidence.used.push(path);
        }
        read.value
    }

    fn uptime(&mut self) -> Option<f64> {
        let text = self.files.text(&format!("{}proc/uptime", self.root))?;
        let first = std::str::from_utf8(text).ok()?.split_whitespace().next()?;
        first.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
    }
}
