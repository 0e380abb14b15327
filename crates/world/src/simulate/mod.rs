//! A what-if: a world from a topology, a mix of operations in it, and what each part did meanwhile.
//!
//! The files are made first, by one client of each server and at the costs of the topology. What
//! is reported of operations and resources is about the time after the warm-up.

mod kinds;
mod links;
mod meter;
mod stream;
pub mod topology;
mod unused;
pub mod values;
mod workload;

use std::collections::BTreeMap;

use client::session::Session;
use load::curve::validity::keeps_up;
use load::error::Error as LoadError;
use load::fileset::{Layout, build};
use load::mix::{self, Load, Operation, Plan};
use net::call::Options;
use net::clock::world::Stuck;
use net::processor;
use perf::histogram::Histogram;
use perf::units::Nanos;
use tokio::sync::mpsc;

use self::links::Links;
use self::meter::Meter;
use self::topology::Fault;
use crate::client::{Client, ClientSpec};
use crate::server::Server;
use crate::stage::{Stage, World};
use crate::trace::Digest;

pub use self::kinds::KindOutcome;
pub use self::links::LinkOutcome;
pub use self::meter::{ServerOutcome, Slice};
pub use self::topology::{Topology, TopologyError};

/// Operations that may be outstanding in an open loop: for each client, beside those that the
/// longest link has on its way at that rate; and of all together.
const OPEN_OUTSTANDING: usize = 64;
const OPEN_OUTSTANDING_MAX: usize = 1 << 20;

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    pub operations: u64,
    pub failed: u64,
    /// Operations of an open loop that were due in the time that counts, and those of the run that
    /// never started, because the server was too far behind.
    pub meant: u64,
    pub given_up: u64,
    /// What was due came, but for what may be under way; of a closed loop always.
    pub keeps_up: bool,
    pub first_failure: Option<String>,
    /// Operations a second.
    pub per_s: f64,
    pub read_bytes_per_s: f64,
    pub written_bytes_per_s: f64,
    pub response_time: Histogram,
    pub of_operation: BTreeMap<Operation, Histogram>,
    /// In the order of the topology.
    pub kinds: Vec<KindOutcome>,
    pub servers: Vec<ServerOutcome>,
    /// Of each link that clients have, the busiest.
    pub links: Vec<LinkOutcome>,
    /// The busiest client's processor.
    pub client: processor::Load,
    /// Virtual time in all.
    pub elapsed: Nanos,
    /// Everything that was sent and received.
    pub digest: Digest,
    /// How often tasks were polled.
    pub polls: u64,
}

impl Outcome {
    /// No operation ended in the time that counts.
    pub fn is_empty(&self) -> bool {
        self.operations == 0 && self.failed == 0 && self.response_time.is_empty()
    }

    /// `None` where nothing that was due in the time that counts was answered.
    pub fn response_mean(&self) -> Option<Nanos> {
        (!self.response_time.is_empty()).then(|| self.response_time.mean())
    }
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{0}")]
    Stuck(#[from] Stuck),
    #[error("a server's part of the run ended without a result")]
    Lost,
}

impl From<client::error::Error> for SimulateError {
    fn from(error: client::error::Error) -> Self {
        Self::Load(LoadError::Client(error))
    }
}

/// Runs a topology to its end.
///
/// # Errors
/// [`SimulateError`].
pub fn run(topology: &Topology) -> Result<Outcome, SimulateError> {
    let world = World::new(topology.seed);
    let own = topology.clone();
    let mut outcome = world.run(|stage| async move { play(&stage, &own).await })??;
    outcome.polls = world.polls();
    outcome.digest = world.digest();
    Ok(outcome)
}

async fn play(stage: &Stage, topology: &Topology) -> Result<Outcome, SimulateError> {
    let spec = topology.server.spec(topology.crashes());
    let servers: Vec<Server> =
        (0..topology.server.count).map(|_| stage.server(spec.clone())).collect();
    let mut clients = Vec::new();
    for kind in &topology.clients {
        let spec = ClientSpec { cores: kind.cores, link: kind.link.0.clone() };
        clients.extend(stage.clients(kind.count, &spec));
    }
    let (done, mut results) = mpsc::unbounded_channel();
    for (number, server) in servers.iter().enumerate() {
        let own: Vec<_> = clients.iter().skip(number).step_by(servers.len()).cloned().collect();
        let part = Part {
            stage: stage.clone(),
            topology: topology.clone(),
            server: server.clone(),
            number,
            seed: stage.seed_of(0x5e_0000 + number as u64),
        };
        let done = done.clone();
        stage.clock().spawn(async move {
            let ran = part.run(own).await;
            done.send(ran).ok();
        });
    }
    drop(done);
    let (mut ran, mut links) = (Vec::new(), Vec::new());
    while let Some(part) = results.recv().await {
        let (part, of_server, of_links) = part?;
        ran.push((part, of_server));
        links.extend(of_links);
    }
    if ran.len() != servers.len() {
        return Err(SimulateError::Lost);
    }
    ran.sort_by_key(|(_, of_server)| of_server.number);
    let (parts, metered): (Vec<_>, Vec<_>) = ran.into_iter().unzip();
    links.sort_by(|a: &LinkOutcome, b| a.name.cmp(&b.name));
    let outcome = summed(stage, topology, &parts, metered, &clients);
    Ok(Outcome { links: links::busiest(links), ..outcome })
}

/// One server with its clients.
struct Part {
    stage: Stage,
    topology: Topology,
    server: Server,
    number: usize,
    seed: u64,
}

impl Part {
    async fn run(
        &self,
        clients: Vec<Client>,
    ) -> Result<(mix::Outcome, ServerOutcome, Vec<LinkOutcome>), SimulateError> {
        let sessions = self.sessions(&clients).await?;
        let (clock, workload) = (self.stage.clock(), &self.topology.workload);
        let meter = || {
            let (after, span) = (workload.warm_up.nanos(), workload.time.nanos());
            let links = Links::start(clock, &clients, after, span);
            (Meter::start(clock, &self.server, self.number, after, span), links)
        };
        let read = |(meter, links): (Meter, Links)| async move {
            let lost = SimulateError::Lost;
            meter.read().await.zip(links.read().await).ok_or(lost)
        };
        if workload.write.is_some() {
            let files = stream::files(&sessions).await?;
            self.begin(&clients);
            let meter = meter();
            let outcome = stream::run(clock, &sessions, &files, &self.topology).await?;
            let (server, links) = read(meter).await?;
            return Ok((outcome, server, links));
        }
        let first = &sessions[0];
        let layout = Layout { accessed: 1.0, ..Layout::of_bytes(workload.files.0, self.seed) };
        let mut files = build(first, first.root(), &layout).await?;
        self.begin(&clients);
        let plan = Plan {
            mix: workload.mix,
            load: self.load(sessions.len()),
            warm_up: workload.warm_up.nanos(),
            time: workload.time.nanos(),
            seed: self.seed,
        };
        let meter = meter();
        let outcome = mix::run(clock, &sessions, &mut files, &plan).await?;
        let (server, links) = read(meter).await?;
        Ok((outcome, server, links))
    }

    fn load(&self, sessions: usize) -> Load {
        let workload = &self.topology.workload;
        let Some(per_s) = workload.rate else {
            return Load::ClosedEach { outstanding: workload.outstanding };
        };
        let per_s = per_s / self.topology.server.count as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let on_the_way = (per_s * self.topology.round_trip_max().as_secs_f64()).ceil() as usize;
        let outstanding_max = (sessions * OPEN_OUTSTANDING).saturating_add(on_the_way);
        Load::Open {
            arrivals: workload.arrivals.0,
            per_s,
            phase: 0.0,
            outstanding_max: outstanding_max.min(OPEN_OUTSTANDING_MAX),
        }
    }

    /// What is planned counts from here, on links as well.
    fn begin(&self, clients: &[Client]) {
        clients.iter().for_each(Client::begin_link);
        for (index, fault) in (0..).zip(&self.topology.faults) {
            self.plan(index, fault.clone());
        }
    }

    async fn sessions(&self, clients: &[Client]) -> Result<Vec<Session>, SimulateError> {
        let mut sessions = Vec::with_capacity(clients.len());
        for client in clients {
            let options = Options { insist: true, ..Options::stream() };
            let rpc = client.persistent(&self.server, options).await.map_err(|cause| {
                let service = client::error::Service::Nfs;
                client::error::Error::Connect { service, cause }
            })?;
            sessions.push(client.session(rpc, &self.server).await?);
        }
        Ok(sessions)
    }

    /// Something will go wrong.
    fn plan(&self, index: u64, fault: Fault) {
        let (clock, server) = (self.stage.clock().clone(), self.server.clone());
        let seed = self.stage.seed_of(self.seed ^ index);
        self.stage.clock().spawn(async move {
            let faults = server.faults().clone();
            match fault {
                Fault::Crash { at, down } => {
                    clock.sleep(at.nanos()).await;
                    server.restart(seed, down.nanos()).await;
                }
                Fault::FailWrites { at, count } => {
                    clock.sleep(at.nanos()).await;
                    faults.set(|switches| switches.failing_writes = count);
                }
                Fault::FailSyncs { at, count } => {
                    clock.sleep(at.nanos()).await;
                    faults.set(|switches| switches.failing_syncs = count);
                }
                Fault::SlowDisk { at, percent, r#for } => {
                    clock.sleep(at.nanos()).await;
                    faults.set(|switches| switches.slow_percent = percent as u64);
                    clock.sleep(r#for.nanos()).await;
                    faults.set(|switches| switches.slow_percent = 0);
                }
                Fault::Full { at, r#for } => {
                    clock.sleep(at.nanos()).await;
                    faults.set(|switches| switches.full = true);
                    clock.sleep(r#for.nanos()).await;
                    faults.set(|switches| switches.full = false);
                }
            }
        });
    }
}

fn summed(
    stage: &Stage,
    topology: &Topology,
    parts: &[mix::Outcome],
    servers: Vec<ServerOutcome>,
    clients: &[Client],
) -> Outcome {
    let secs = topology.workload.time.nanos().as_secs_f64();
    let per_s =
        |count: fn(&mix::Outcome) -> u64| parts.iter().map(count).sum::<u64>() as f64 / secs;
    let mut of_operation: BTreeMap<Operation, Histogram> = BTreeMap::new();
    let mut response_time = Histogram::new();
    for (operation, tally) in parts.iter().flat_map(|part| &part.operations) {
        response_time.merge(&tally.response_time);
        of_operation.entry(*operation).or_default().merge(&tally.response_time);
    }
    let busiest = clients.iter().map(Client::load).max_by_key(|load| load.busy);
    Outcome {
        operations: parts.iter().map(|part| part.answered).sum(),
        failed: parts.iter().map(mix::Outcome::failed).sum(),
        meant: parts.iter().map(|part| part.meant).sum(),
        given_up: parts.iter().map(|part| part.given_up).sum(),
        keeps_up: topology.workload.rate.is_none() || parts.iter().all(keeps_up),
        first_failure: parts.iter().find_map(|part| part.first_failure.clone()),
        per_s: per_s(|part| part.answered),
        read_bytes_per_s: per_s(|part| part.read_bytes),
        written_bytes_per_s: per_s(|part| part.written_bytes),
        response_time,
        of_operation,
        kinds: kinds::of(topology, parts),
        servers,
        links: Vec::new(),
        client: busiest.expect("a topology has clients"),
        elapsed: stage.clock().now().since(perf::units::Instant::EPOCH),
        digest: stage.digest(),
        polls: 0,
    }
}
