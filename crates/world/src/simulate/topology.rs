//! What is in a simulated world, from a TOML file.

use std::collections::BTreeMap;
use std::fmt;

use load::mix::{Arrivals, Mix};
use net::shape::profile::Profile;
use perf::model::disk;
use perf::units::Nanos;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use server::CommitMode;
use server::store::mem::MemOptions;
use server::store::sim::{SimOptions, WriteBack};
use wire::nfs3::Procedure;

use super::values::{Bytes, DiskName, LinkName, Span, Text};
use super::{unused, workload};
use crate::cost::Costs;
use crate::server::ServerSpec;

/// See the module's head. Everything has a default but the clients.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Topology {
    #[serde(default = "one")]
    pub seed: u64,
    #[serde(default)]
    pub server: Servers,
    pub clients: Vec<Clients>,
    #[serde(default)]
    pub workload: Workload,
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// Servers that are all alike; clients are spread over them in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Servers {
    #[serde(deserialize_with = "bounded::<_, SERVERS_MAX>")]
    pub count: usize,
    #[serde(deserialize_with = "bounded::<_, CORES_MAX>")]
    pub cores: usize,
    pub per_call: Span,
    pub per_byte: Span,
    /// By procedure, instead of `per-call`.
    #[serde(deserialize_with = "costs")]
    pub costs: BTreeMap<&'static str, Span>,
    pub disk: DiskName,
    pub cache: Bytes,
    pub memory: Bytes,
    pub dirty_max: Bytes,
    /// 0 for on demand.
    pub write_back: Bytes,
    pub commit_mode: Mode,
    #[serde(deserialize_with = "threads")]
    pub threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    Concurrent,
    Stall,
}

/// Clients that are all alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Clients {
    #[serde(deserialize_with = "bounded::<_, CLIENTS_MAX>")]
    pub count: usize,
    pub link: LinkName,
    #[serde(default = "one_core", deserialize_with = "bounded::<_, CORES_MAX>")]
    pub cores: usize,
}

/// What the clients do: all of them together, each on a session of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Workload {
    #[serde(deserialize_with = "mix")]
    pub mix: Mix,
    /// Operations each client keeps outstanding in a closed loop; without a rate.
    #[serde(deserialize_with = "bounded::<_, OUTSTANDING_MAX>")]
    pub outstanding: usize,
    /// Operations a second of all clients together, in an open loop.
    #[serde(deserialize_with = "rate")]
    pub rate: Option<f64>,
    pub arrivals: Text<Arrivals>,
    pub warm_up: Span,
    pub time: Span,
    /// Of the files on each server.
    pub files: Bytes,
    /// Size of the calls of a sequential write by each client, in place of the mix; and the bytes
    /// between two COMMITs of it.
    pub write: Option<Bytes>,
    pub commit: Bytes,
}

/// Something that goes wrong with every server at a moment after the warm-up began.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "what")]
pub enum Fault {
    /// Loses power, and starts again after `down`.
    Crash { at: Span, down: Span },
    /// So many WRITEs fail.
    FailWrites { at: Span, count: u32 },
    /// So many syncs fail.
    FailSyncs { at: Span, count: u32 },
    /// The disk takes so many percent of its time.
    SlowDisk {
        at: Span,
        #[serde(deserialize_with = "bounded::<_, PERCENT_MAX>")]
        percent: usize,
        r#for: Span,
    },
    /// Nothing new has room.
    Full { at: Span, r#for: Span },
}

impl Fault {
    pub(super) fn at(&self) -> Nanos {
        let (Self::Crash { at, .. }
        | Self::FailWrites { at, .. }
        | Self::FailSyncs { at, .. }
        | Self::SlowDisk { at, .. }
        | Self::Full { at, .. }) = self;
        at.nanos()
    }

    /// Nothing goes wrong.
    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Self::Crash { .. } => false,
            Self::FailWrites { count, .. } | Self::FailSyncs { count, .. } => *count == 0,
            Self::SlowDisk { percent, r#for, .. } => {
                *percent == 100 || r#for.nanos() == Nanos::ZERO
            }
            Self::Full { r#for, .. } => r#for.nanos() == Nanos::ZERO,
        }
    }
}

/// `crash at 5.00 s, down 1.00 s`
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at();
        match self {
            Self::Crash { down, .. } => write!(f, "crash at {at}, down {}", down.nanos()),
            Self::FailWrites { count, .. } => write!(f, "fail-writes at {at}, count {count}"),
            Self::FailSyncs { count, .. } => write!(f, "fail-syncs at {at}, count {count}"),
            Self::SlowDisk { percent, r#for, .. } => {
                write!(f, "slow-disk at {at}, percent {percent}, for {}", r#for.nanos())
            }
            Self::Full { r#for, .. } => write!(f, "full at {at}, for {}", r#for.nanos()),
        }
    }
}

/// Hosts of one kind, at most.
const CLIENTS_MAX: usize = 100_000;
const SERVERS_MAX: usize = 64;
const CORES_MAX: usize = 1024;
const OUTSTANDING_MAX: usize = 1024;
const THREADS_MAX: usize = 1 << 20;
/// A thousand times as slow.
const PERCENT_MAX: usize = 100_000;
/// Of all clients together: what a simulation has in memory at once, at a few KiB each.
const OUTSTANDING_ALL_MAX: usize = 1 << 20;

fn one() -> u64 {
    1
}

fn one_core() -> usize {
    1
}

/// A number of 1 to `MAX`.
fn bounded<'de, D: Deserializer<'de>, const MAX: usize>(
    deserializer: D,
) -> Result<usize, D::Error> {
    let number = usize::deserialize(deserializer)?;
    match (1..=MAX).contains(&number) {
        true => Ok(number),
        false => Err(D::Error::custom(format!("{number} is not between 1 and {MAX}"))),
    }
}

fn threads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    bounded::<D, THREADS_MAX>(deserializer).map(Some)
}

fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let rate = f64::deserialize(deserializer)?;
    match rate > 0.0 && rate <= 1e9 {
        true => Ok(Some(rate)),
        false => Err(D::Error::custom(format!("{rate} is not a rate above 0 and up to 1e9"))),
    }
}

fn mix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mix, D::Error> {
    let name = String::deserialize(deserializer)?;
    workload::mix(&name).map_err(D::Error::custom)
}

fn costs<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<&'static str, Span>, D::Error> {
    let given = BTreeMap::<String, Span>::deserialize(deserializer)?;
    let known = |name: &str| {
        Procedure::ALL.iter().map(|procedure| procedure.name()).find(|known| *known == name)
    };
    let named = |(name, span): (String, Span)| match known(&name) {
        Some(known) => Ok((known, span)),
        None => Err(D::Error::custom(format!(
            "unknown procedure {name:?}; they are called as in RFC 1813: GETATTR, WRITE, ..."
        ))),
    };
    given.into_iter().map(named).collect()
}

impl Default for Servers {
    fn default() -> Self {
        Self {
            count: 1,
            cores: 4,
            per_call: span("20us"),
            per_byte: span("0.1ns"),
            costs: BTreeMap::new(),
            disk: Text(disk::PROFILES[0]),
            cache: Bytes(256 << 20),
            memory: Bytes(1 << 30),
            dirty_max: Bytes(64 << 20),
            write_back: Bytes(2 << 20),
            commit_mode: Mode::Concurrent,
            threads: None,
        }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            mix: Mix::SFS97_V3,
            outstanding: 1,
            rate: None,
            arrivals: Text(Arrivals::default()),
            warm_up: span("1s"),
            time: span("10s"),
            files: Bytes(64 << 20),
            write: None,
            commit: Bytes(64 << 20),
        }
    }
}

fn span(text: &str) -> Span {
    text.parse().expect("the defaults of this file are times")
}

impl Servers {
    /// Whether a crash will come decides whether data are held twice.
    pub(super) fn spec(&self, crashes: bool) -> ServerSpec {
        let costs = self.costs.iter().map(|(name, span)| (*name, span.nanos())).collect();
        let costs = Costs {
            per_call: self.per_call.nanos(),
            per_byte_ps: self.per_byte.picos(),
            of: costs,
        };
        let write_back = match self.write_back.0 {
            0 => WriteBack::OnDemand,
            bytes => WriteBack::Early { bytes },
        };
        let memory = MemOptions {
            bytes_max: self.memory.0,
            files_max: u64::from(u32::MAX),
            ..MemOptions::default()
        };
        let store = SimOptions {
            disk: self.disk.0,
            memory,
            cache_bytes_max: self.cache.0,
            dirty_bytes_max: self.dirty_max.0,
            write_back,
            crashes,
            ..SimOptions::default()
        };
        let spec = ServerSpec { cores: self.cores, costs, store, ..ServerSpec::default() };
        let spec = match self.commit_mode {
            Mode::Concurrent => spec,
            Mode::Stall => spec.stalling(),
        };
        ServerSpec { threads: self.threads.unwrap_or(spec.threads), ..spec }
    }

    pub fn mode(&self) -> CommitMode {
        match self.commit_mode {
            Mode::Concurrent => CommitMode::Concurrent,
            Mode::Stall => CommitMode::Stall,
        }
    }
}

/// Why a topology cannot be had.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TopologyError {
    #[error("line {line}: {what}")]
    At { line: usize, what: String },
    #[error("{0}")]
    Whole(String),
}

impl Topology {
    /// From the text of a file.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        let topology: Self = toml::from_str(text).map_err(|error| {
            let what = error.message().trim().to_owned();
            match error.span() {
                Some(span) => {
                    let before = text.get(..span.start).unwrap_or_default();
                    TopologyError::At { line: before.matches('\n').count() + 1, what }
                }
                None => TopologyError::Whole(what),
            }
        })?;
        topology.check()?;
        unused::refuse(&topology, text).map_err(TopologyError::Whole)?;
        Ok(topology)
    }

    /// What does not fit together.
    fn check(&self) -> Result<(), TopologyError> {
        let whole = |what: String| Err(TopologyError::Whole(what));
        if self.clients.is_empty() {
            return whole("there are no [[clients]]".to_owned());
        }
        let count = self.clients_count();
        if count > CLIENTS_MAX {
            return whole(format!("{count} clients, and at most {CLIENTS_MAX} can be had"));
        }
        if count < self.server.count {
            let servers = self.server.count;
            return whole(format!("{count} clients for {servers} servers: some would have none"));
        }
        let outstanding = count.saturating_mul(self.workload.outstanding);
        if self.workload.rate.is_none() && outstanding > OUTSTANDING_ALL_MAX {
            return whole(format!(
                "{count} clients with {} operations outstanding each are {outstanding}, and at \
                 most {OUTSTANDING_ALL_MAX} can be had",
                self.workload.outstanding
            ));
        }
        if self.workload.files.0 > self.server.memory.0 / 2 {
            return whole("workload.files takes more than half of server.memory".to_owned());
        }
        if let Some(Bytes(call_bytes)) = self.workload.write {
            let most = u64::from(u32::MAX).min(self.workload.files.0);
            if !(1..=most).contains(&call_bytes) {
                return whole(format!(
                    "workload.write is {call_bytes}, and 1 to {most} can be had"
                ));
            }
        }
        if self.workload.time.nanos() == Nanos::ZERO {
            return whole("workload.time is 0".to_owned());
        }
        Ok(())
    }

    pub fn clients_count(&self) -> usize {
        self.clients.iter().map(|clients| clients.count).fold(0, usize::saturating_add)
    }

    /// Of the longest link, without what its queue adds.
    pub(super) fn round_trip_max(&self) -> Nanos {
        let links = self.clients.iter().map(|clients| &clients.link.0);
        let round_trip = |link: &Profile| link.there.link.latency + link.back.link.latency;
        links.map(round_trip).max().unwrap_or_default()
    }

    pub(super) fn crashes(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault, Fault::Crash { .. }))
    }
}
