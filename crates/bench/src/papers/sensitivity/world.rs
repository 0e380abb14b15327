//! The same in a world: the production client, link, RPC server and NFS server, whose processor is
//! a station, in virtual time.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use client::session::{Credential, Session};
use harness::exit::Failure;
use harness::served;
use load::error::Error;
use load::fileset::Layout;
use load::mix::{Outcome, Plan};
use load::recover::Injected;
use net::call::Rpc;
use net::clock::Clock;
use net::clock::world::World;
use net::processor::Processor;
use net::serve::{Host, Limits};
use net::shape::{LinkPair, Shape, Shaped};
use net::transport::memory;
use perf::units::Nanos;
use server::{ServiceCost, Work};
use wire::Procedure;

use super::points::{Course, Measured, Part};
use super::system::{self, System};

/// What the server in memory holds.
const STORE_BYTES_MAX: u64 = 256 << 20;

/// How long a call waits for its reply: overload may take long, and nothing is lost here.
const REPLY_LIMIT: Nanos = Nanos::from_secs(600);

/// What the world takes from the live system; see the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Simulated {
    /// S without any o: processor time of an operation.
    pub(super) service: Nanos,
    /// What of the base response time is neither S nor put in: sockets, wake-ups, the client. Half
    /// of it passes on either way.
    pub(super) delay: Nanos,
}

impl Simulated {
    /// Takes S from the live system's saturation, and the delay from its response time, both with
    /// the baseline's parameters; nothing else of what was measured is looked at.
    pub(super) async fn like(course: &Course, live: &[Measured]) -> Result<Self, Failure> {
        let baseline = |part| {
            live.iter().find(|measured| measured.point.part == part && measured.point.is_baseline())
        };
        let messages = 2.0;
        let service = baseline(Part::Overhead).map_or(Nanos::ZERO, |saturated| {
            let o_us = saturated.point.conditions.overhead.as_micros_f64();
            Nanos::from_micros_f64(1e6 / saturated.value.value - messages * o_us)
        });
        let simulated = Self { service, delay: Nanos::ZERO };
        let Some(base) = baseline(Part::Latency) else { return Ok(simulated) };
        let without = course.one(&simulated, &base.point).await?;
        let explained_us = Part::Latency.value(&without);
        let delay = Nanos::from_micros_f64(base.value.value - explained_us);
        Ok(Self { delay, ..simulated })
    }
}

impl System for Simulated {
    fn name(&self) -> &'static str {
        "in a world"
    }

    async fn run(
        &self,
        conditions: Injected,
        layout: &Layout,
        plan: &Plan,
    ) -> Result<Outcome, Failure> {
        let world = World::new();
        let (simulated, layout, plan, clock) = (*self, *layout, *plan, world.clock());
        let outcome =
            world.run(async move { simulated.outcome(&clock, conditions, &layout, &plan).await });
        let outcome =
            outcome.map_err(|stuck| Failure::environment(stuck, "report this as a bug"))?;
        Ok(outcome?)
    }
}

impl Simulated {
    async fn outcome(
        &self,
        clock: &Clock,
        conditions: Injected,
        layout: &Layout,
        plan: &Plan,
    ) -> Result<Outcome, Error> {
        let processor = Processor::of_world(clock, 1);
        let cost = Cost { processor: processor.clone(), service: self.service };
        let engine = served::engine_in_memory(clock, STORE_BYTES_MAX).with_cost(Arc::new(cost));
        let (engine, host) = (Arc::new(engine), Host::new(clock, Limits::default()));
        let busy: Shape = served::busy(conditions.overhead).into();
        let connect = async |number: u16, links: LinkPair| {
            let (ours, theirs) = memory::pair(number);
            let theirs = busy.around(theirs, &processor, clock).map_err(Error::Timer)?;
            let (host, service) = (host.clone(), served::service(&engine));
            clock.spawn(async move {
                host.connection(theirs, service).await.ok();
            });
            let ours = Shaped::new(ours, links, clock).map_err(Error::Timer)?;
            let rpc = Rpc::start(ours, clock, REPLY_LIMIT, u32::from(number) << 16);
            let machine_name = "world".to_owned();
            let credential = Credential { machine_name, uid: 0, gid: 0, gids: Vec::new() };
            let server = SocketAddr::from((Ipv4Addr::new(127, 1, 0, 1), 2049));
            Ok::<_, Error>(Session::open(rpc, server, &credential, engine.root()).await?)
        };
        let plain = connect(1, LinkPair::default()).await?;
        let mut link = conditions.link;
        link.latency += self.delay / 2;
        let shaped = connect(2, LinkPair::symmetric(link)).await?;
        system::run(clock, &plain, engine.root(), &shaped, layout, plan).await
    }
}

/// S, for each call.
#[derive(Debug)]
struct Cost {
    processor: Processor,
    service: Nanos,
}

impl ServiceCost for Cost {
    fn call(&self, _: Procedure, _: usize) -> Option<Work<'_>> {
        Some(Box::pin(self.processor.spend(self.service)))
    }

    fn reply(&self, _: Procedure, _: usize) -> Option<Work<'_>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use load::mix::{Arrivals, Load, Mix};
    use perf::model::loggp::Link;

    use super::*;

    const SIMULATED: Simulated =
        Simulated { service: Nanos::from_micros(100), delay: Nanos::from_micros(200) };

    fn run(latency: Nanos, overhead: Nanos, load: Load) -> Outcome {
        let link = Link { latency, ..Link::default() };
        let (warm_up, time) = (Nanos::from_millis(100), Nanos::from_millis(500));
        let plan = Plan { mix: Mix::SFS97_V3, load, warm_up, time, seed: 1 };
        let layout = Layout::of_bytes(1 << 20, 1);
        let running = SIMULATED.run(Injected { link, overhead }, &layout, &plan);
        net::runtime::block_on(running).unwrap().unwrap()
    }

    #[test]
    fn latency_counts_twice_and_nothing_else_moves() {
        let load = Load::Open {
            arrivals: Arrivals::Fixed,
            per_s: 400.0,
            phase: 0.0,
            outstanding_max: 100,
        };
        for latency_us in [10, 4_000] {
            let outcome = run(Nanos::from_micros(latency_us), Nanos::ZERO, load);
            let got_us = outcome.response_mean().unwrap().as_micros_f64();
            let want_us = 100.0 + 200.0 + 2.0 * latency_us as f64;
            assert!((got_us - want_us).abs() < 0.01, "{got_us} is not {want_us}");
        }
    }

    #[test]
    fn saturation_is_that_of_the_processor_with_two_messages_an_operation() {
        for overhead_us in [0.0, 80.0, 500.0] {
            let overhead = Nanos::from_micros_f64(overhead_us);
            let outcome = run(Nanos::ZERO, overhead, Load::Closed { outstanding: 16 });
            let (got, want) = (outcome.achieved_per_s(), 1e6 / (100.0 + 2.0 * overhead_us));
            assert!((got / want - 1.0).abs() < 0.005, "{got} is not {want}");
        }
    }
}
