//! Counters of a host at one time, from the files of one root.

use counters::client::Client;
use counters::host::clock::Clock;
use counters::host::device::{self, Device};
use counters::host::disk::{self, Disk};
use counters::host::iostat::DiskUse;
use counters::host::load::{self, Load};
use counters::host::named::{self, Named};
use counters::host::pressure::{self, Pressure};
use counters::host::processor::{self, Processors};
use counters::host::protocols::{self, Protocols};
use counters::host::sockets::{self, Sockets};
use counters::host::softnet::{self, Softnet};
use counters::host::space::{self, Space};
use counters::host::spray::Spray;
use counters::host::tasks::{self, Waits};
use counters::mountstats::{self, Mount};
use counters::pools::{self, Pool};
use counters::server::Server;
use counters::socket::{self, Connection};
use counters::{Problem, client, partial, server};

use super::{Evidence, all_mounts};
use crate::collect::{CONNECTIONS, Files, SERVERS, SPACES, WAITS, program};

/// See the module's head. What the host does not have, or nobody has saved, is none or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    pub clock: Clock,
    /// Whether there was a list of mounts, be it empty.
    pub has_mounts: bool,
    pub mounts: Vec<Mount>,
    /// Mounts of which the options are known, and nothing else.
    pub listed: Vec<Mount>,
    /// Of mounts no times are known: they are listed, or all of them together
    /// ([`ALL_MOUNTS`](super::ALL_MOUNTS)).
    pub counts_only: bool,
    /// What the counters of mounts are made of, where nothing was counted.
    pub rates_of: Option<RatesOf>,
    pub client: Option<Client>,
    pub server: Option<Server>,
    pub pools: Vec<Pool>,
    /// `snmp` and `netstat` together.
    pub protocols: Option<Protocols>,
    /// `snmp6`.
    pub protocols_v6: Option<Named>,
    pub devices: Vec<Device>,
    pub softnet: Vec<Softnet>,
    pub sockets: Option<Sockets>,
    pub memory: Option<Named>,
    /// `vmstat`.
    pub pages: Option<Named>,
    pub load: Option<Load>,
    /// Tasks that wait for a disk or a mount.
    pub waits: Option<Waits>,
    pub disks: Vec<Disk>,
    pub processors: Option<Processors>,
    pub pressures: Pressures,
    pub connections: Vec<Connection>,
    /// Somebody listens on the port of NFS: the program, if it is known.
    pub listener: Option<String>,
    /// How full file systems are.
    pub spaces: Vec<Space>,
    /// What iostat and spray have printed.
    pub disk_uses: Vec<DiskUse>,
    pub sprays: Vec<Spray>,
}

impl Sample {
    /// Where no mount was counted by itself, those that are listed are there, and what all have
    /// called together is one.
    pub(super) fn count_together(&mut self) {
        if !self.mounts.is_empty() {
            return;
        }
        self.mounts.append(&mut self.listed);
        self.mounts.extend(self.client.as_ref().and_then(all_mounts::mount));
        self.counts_only = !self.mounts.is_empty();
    }
}

/// Rates that nfsiostat has printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RatesOf {
    /// Its first report.
    SinceTheMount,
    /// Another.
    Interval,
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
            clock: self.clock(),
            has_mounts: mounts.is_some(),
            mounts: mounts.unwrap_or_default(),
            client: self.read("proc/net/rpc/nfs", client::read),
            server: self.read("proc/net/rpc/nfsd", server::read),
            pools: self.read("proc/fs/nfsd/pool_stats", pools::read).unwrap_or_default(),
            protocols,
            protocols_v6: self.read("proc/net/snmp6", named::read),
            devices: self.read("proc/net/dev", device::read).unwrap_or_default(),
            softnet: self.read("proc/net/softnet_stat", softnet::read).unwrap_or_default(),
            sockets: self.read("proc/net/sockstat", sockets::read),
            memory: self.read("proc/meminfo", named::read),
            pages: self.read("proc/vmstat", named::read),
            load: self.read("proc/loadavg", load::read),
            waits: self.read(WAITS, tasks::read),
            disks: self.read("proc/diskstats", disk::read).unwrap_or_default(),
            processors: self.read("proc/stat", processor::read),
            pressures: Pressures {
                processors: self.read("proc/pressure/cpu", pressure::read),
                disks: self.read("proc/pressure/io", pressure::read),
                memory: self.read("proc/pressure/memory", pressure::read),
            },
            connections: self.read(CONNECTIONS, socket::read).unwrap_or_default(),
            listener: self.listener(),
            spaces: self.read(SPACES, space::read).unwrap_or_default(),
            ..Sample::default()
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

    fn listener(&mut self) -> Option<String> {
        let path = format!("{}{SERVERS}", self.root);
        let text = String::from_utf8_lossy(self.files.text(&path)?).into_owned();
        self.evidence.used.push(path);
        Some(program(&text).unwrap_or("a program").to_owned())
    }

    fn clock(&self) -> Clock {
        let text = |path: &str| self.files.text(&format!("{}{path}", self.root));
        Clock::read(text("proc/uptime"), text("proc/stat"))
    }
}
