//! Load curves of a server stub in a world: workers with known service times, stalls that are
//! planted, and generators in several parts.

use std::sync::{Arc, Mutex};

use fastrand::Rng;
use load::curve::{
    Alone, Files, Gather, GatherError, Loads, Measured, Runs, Settings, Shard, Shards, Share,
    Signature, measure,
};
use load::mix::{Arrivals, Mix, Outcome};
use net::clock::Clock;
use net::clock::world::World;
use net::processor::Processor;
use net::shape::LinkPair;
use perf::model::queue::line::Line;
use perf::units::Nanos;
use server::{CommitMode, ServiceCost, Work};
use testkit::Site;
use tokio::sync::Barrier;
use wire::Procedure;

/// 4 workers of 10 ms: 400 calls a second.
const WORKERS: u32 = 4;
const SERVICE: Nanos = Nanos::from_millis(10);

/// Service times that are exponential, by any of the workers.
#[derive(Debug)]
struct Stub {
    clock: Clock,
    workers: Processor,
    service: Nanos,
    random: Mutex<Rng>,
    /// The first second of every ten nothing is begun.
    stalls: bool,
}

impl Stub {
    fn new(clock: &Clock, service: Nanos, stalls: bool, seed: u64) -> Arc<Self> {
        let workers = Processor::of_world(clock, WORKERS as usize);
        let random = Mutex::new(Rng::with_seed(!seed));
        Arc::new(Self { clock: clock.clone(), workers, service, random, stalls })
    }
}

impl ServiceCost for Stub {
    fn call(&self, _: Procedure, _: usize) -> Option<Work<'_>> {
        let drawn = -(1.0 - self.random.lock().unwrap().f64()).ln();
        let span = Nanos::from_secs_f64(drawn * self.service.as_secs_f64());
        Some(Box::pin(async move {
            let into_ns = self.clock.now().as_nanos() % 10_000_000_000;
            if self.stalls && into_ns < 1_000_000_000 {
                self.clock.sleep(Nanos::from_nanos(1_000_000_000 - into_ns)).await;
            }
            self.workers.spend(span).await;
        }))
    }

    fn reply(&self, _: Procedure, _: usize) -> Option<Work<'_>> {
        None
    }
}

fn settings(loads: Loads, secs: u64) -> Settings {
    Settings {
        mix: Mix::SFS97_V3,
        arrivals: Arrivals::Poisson,
        loads,
        warm_up: Nanos::from_secs(2),
        time: Nanos::from_secs(secs),
        repeats: 1,
        outstanding_max: 100_000,
        files: Files { accessed: 0.5, ..Files::at_most(512 << 10) },
        seed: 3,
    }
}

/// Generators of this process, each on a connection of its own.
async fn shards(
    clock: &Clock,
    site: &Site<impl server::store::Store>,
    whole: Share,
    n: u32,
) -> Shards {
    let mut shards = Vec::new();
    for rank in 0..n {
        let session = site.session(site.rpc()).await.unwrap();
        let dir = session.root();
        let share = whole.part(Share { rank, ranks: n });
        shards.push(Shard::new(clock, vec![session], dir, share));
    }
    Shards(shards)
}

/// The curve of a stub.
fn curve(service: Nanos, stalls: bool, settings: Settings, n: u32) -> Measured {
    let world = World::new();
    let clock = world.clock();
    let run = async move {
        let stub = Stub::new(&clock, service, stalls, settings.seed);
        let site = Site::in_memory(&clock, LinkPair::default(), CommitMode::Concurrent);
        let site = site.with_cost(stub);
        let mut subjects = [shards(&clock, &site, Share::WHOLE, n).await];
        let (tell, mut runs) = (&mut |_| {}, Runs::default());
        measure(&clock, &mut Alone, &mut subjects, &settings, tell, &mut runs).await.unwrap();
        runs.measured(&settings).remove(0)
    };
    world.run(run).unwrap()
}

#[test]
fn a_stub_with_exponential_service_times_matches_the_formula_at_eight_loads() {
    let line = Line::new(WORKERS, SERVICE.as_micros_f64()).unwrap();
    let rates: Vec<f64> = (1..=8).map(|n| line.saturation_per_s() * 0.1 * f64::from(n)).collect();
    let mut missed = Vec::new();
    for seed in 1..=3 {
        let settings = Settings { seed, ..settings(Loads::Rates(rates.clone()), 30) };
        let measured = curve(SERVICE, false, settings, 1);
        assert_eq!(measured.points.len(), 8);
        for (point, per_s) in measured.points.iter().zip(rates.iter().copied()) {
            let (got, want_us) = (point.response_us().unwrap(), line.response_us(per_s).unwrap());
            if !got.ci95.unwrap().contains(want_us) {
                missed.push((seed, per_s, got, want_us));
            }
            assert!((got.value / want_us - 1.0).abs() < 0.15, "at {per_s}: {got:?}, {want_us}");
            let run = &point.outcome;
            let (offered, achieved) = (run.offered_per_s(), run.achieved_per_s());
            assert!((achieved / offered - 1.0).abs() < 0.01, "{achieved} of {offered}");
            assert!(point.is_valid() && point.keeps_up, "{:?}", point.breaches);
            // Little's law.
            let (calls, outstanding) = (line.calls(per_s).unwrap(), point.outstanding());
            assert!((outstanding / calls - 1.0).abs() < 0.15, "{outstanding} {calls}");
        }
    }
    // Intervals that hold the truth 95 times in 100: of 24 more than 4 miss it in one of 100 tries.
    assert!(missed.len() <= 4, "{missed:?}");
}

#[test]
fn what_is_offered_comes_until_the_saturation_which_is_found() {
    let measured = curve(SERVICE, false, settings(Loads::Find { points: 10 }, 10), 1);
    let found = measured.search.as_ref().unwrap().best_per_s();
    assert!((found / 400.0 - 1.0).abs() < 0.06, "{found}");
    assert_eq!(measured.points.len(), 11);
    let (over, below) = measured.points.split_last().unwrap();
    for point in below.iter().filter(|point| point.load < 390.0) {
        let (offered, achieved) = (point.outcome.offered_per_s(), point.outcome.achieved_per_s());
        assert!((achieved / offered - 1.0).abs() < 0.01, "{achieved} of {offered}");
        assert!(point.is_valid() && !point.is_over(), "{}: {:?}", point.load, point.breaches);
    }
    assert!(over.is_over() && over.is_valid(), "{:?}", over.breaches);
    let signature = Signature::of(&measured.points).unwrap();
    let saturation = signature.highest_per_s;
    assert!((saturation.value / 400.0 - 1.0).abs() < 0.05, "{saturation:?}");
    // At a tenth of the load nobody waits; it has 400 service times, whose mean is within a tenth.
    assert!((signature.base_us.unwrap().value / 10_000.0 - 1.0).abs() < 0.15, "{signature:?}");
    assert!(signature.overall_us.unwrap().ci95.is_some() && signature.slope.is_some());
    // The working set of a point is in proportion to its load.
    let accessed = |at: usize| measured.points[at].outcome.accessed;
    assert!(accessed(0) * 5 < accessed(9), "{} {}", accessed(0), accessed(9));
}

#[test]
fn a_stall_shows_in_the_open_loop_and_in_the_closed_only_as_less_throughput() {
    let service = Nanos::from_millis(2);
    let open = curve(service, true, settings(Loads::Rates(vec![200.0]), 50), 1);
    let times = open.points[0].outcome.response_times();
    let (median, p99) = (times.quantile(0.5), times.quantile(0.99));
    assert!(median < Nanos::from_millis(5), "{median}");
    assert!(p99 > Nanos::from_millis(850) && p99 < Nanos::from_millis(1_050), "{p99}");
    // A tenth of them came in the stall.
    let p92 = times.quantile(0.92);
    assert!(p92 > Nanos::from_millis(100), "{p92}");

    let closed = |stalls| {
        let measured = curve(service, stalls, settings(Loads::Outstanding(vec![1]), 50), 1);
        let outcome = measured.points[0].outcome.clone();
        (outcome.achieved_per_s(), outcome.response_times().quantile(0.99))
    };
    let ((calm_per_s, calm_p99), (per_s, p99)) = (closed(false), closed(true));
    assert!((per_s / calm_per_s - 0.9).abs() < 0.02, "{per_s} of {calm_per_s}");
    assert!(p99.as_micros_f64() < 1.05 * calm_p99.as_micros_f64(), "{p99} {calm_p99}");
}

#[test]
fn generators_in_parts_make_the_same_load_on_files_of_their_own() {
    let rates = || settings(Loads::Rates(vec![100.0, 200.0]), 40);
    let (one, three) = (curve(SERVICE, false, rates(), 1), curve(SERVICE, false, rates(), 3));
    for (one, three) in one.points.iter().zip(&three.points) {
        let ratio = three.outcome.achieved_per_s() / one.outcome.achieved_per_s();
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
        let [one_us, three_us] = [one, three].map(|point| point.response_us().unwrap());
        let overlap = one_us.ci95.unwrap().overlaps(&three_us.ci95.unwrap());
        assert!(overlap, "{one_us:?} {three_us:?}");
        assert!(three.is_valid(), "{:?}", three.breaches);
    }
    assert!(three.built.files >= one.built.files);
}

/// Two processes that meet in memory.
struct Pair {
    rank: u32,
    meeting: Arc<Barrier>,
    brought: Arc<Mutex<Vec<(u32, String)>>>,
    shared: Arc<Mutex<Vec<f64>>>,
}

impl Gather for Pair {
    fn share(&self) -> Share {
        Share { rank: self.rank, ranks: 2 }
    }

    async fn barrier(&mut self) -> Result<(), GatherError> {
        self.meeting.wait().await;
        Ok(())
    }

    async fn merge(&mut self, own: Outcome) -> Result<Outcome, GatherError> {
        self.brought.lock().unwrap().push((self.rank, own.to_text()));
        self.meeting.wait().await;
        let mut brought = self.brought.lock().unwrap().clone();
        brought.sort_unstable();
        let mut merged = Outcome::default();
        for (_, text) in brought {
            merged.merge(Outcome::from_text(&text).map_err(GatherError)?);
        }
        // Everyone has read before anything is brought again.
        if self.meeting.wait().await.is_leader() {
            self.brought.lock().unwrap().clear();
        }
        self.meeting.wait().await;
        Ok(merged)
    }

    async fn sum(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        for rank in 0..2 {
            if rank == self.rank {
                let mut shared = self.shared.lock().unwrap();
                let sums = own.iter().enumerate().map(|(at, own)| match rank {
                    0 => *own,
                    _ => own + shared[at],
                });
                *shared = sums.collect();
            }
            self.meeting.wait().await;
        }
        let sums = self.shared.lock().unwrap().clone();
        self.meeting.wait().await;
        Ok(sums)
    }

    async fn broadcast(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        if self.rank == 0 {
            self.shared.lock().unwrap().clone_from(&own);
        }
        self.meeting.wait().await;
        let shared = self.shared.lock().unwrap().clone();
        self.meeting.wait().await;
        Ok(shared)
    }
}

/// The same curve, from each of two processes.
fn pair(settings: &Settings, alone_gone: bool) -> [Measured; 2] {
    let world = World::new();
    let (clock, settings) = (world.clock(), settings.clone());
    let run = async move {
        let stub = Stub::new(&clock, SERVICE, false, settings.seed);
        let site = Site::in_memory(&clock, LinkPair::default(), CommitMode::Concurrent);
        let site = site.with_cost(stub);
        let meeting = Arc::new(Barrier::new(2));
        let (brought, shared) = (Arc::default(), Arc::default());
        let process = async |rank: u32| {
            let mut gather = Pair {
                rank,
                meeting: Arc::clone(&meeting),
                brought: Arc::clone(&brought),
                shared: Arc::clone(&shared),
            };
            let mut shards = shards(&clock, &site, gather.share(), 1).await;
            if alone_gone && rank == 1 {
                // It has lost its connections.
                shards = Shards(vec![Shard::new(&clock, Vec::new(), wire_root(), gather.share())]);
            }
            let mut subjects = [shards];
            let (tell, mut runs) = (&mut |_| {}, Runs::default());
            measure(&clock, &mut gather, &mut subjects, &settings, tell, &mut runs).await.unwrap();
            runs.measured(&settings).remove(0)
        };
        let (first, second) = futures_util::future::join(process(0), process(1)).await;
        [first, second]
    };
    world.run(run).unwrap()
}

fn wire_root() -> wire::nfs3::FileHandle {
    wire::nfs3::FileHandle::new(b"none").unwrap()
}

#[test]
fn two_processes_decide_the_same_and_see_the_same_curve() {
    let [first, second] = pair(&settings(Loads::Find { points: 3 }, 20), false);
    assert_eq!(first.points.len(), 4);
    for (first, second) in first.points.iter().zip(&second.points) {
        assert_eq!(first.load, second.load);
        assert_eq!(first.outcome.to_text(), second.outcome.to_text());
    }
    let found = Signature::of(&first.points).unwrap().highest_per_s.value;
    assert!((found / 400.0 - 1.0).abs() < 0.06, "{found}");
}

#[test]
fn what_fails_for_one_process_ends_the_curve_of_all() {
    let [first, second] = pair(&settings(Loads::Rates(vec![100.0]), 5), true);
    for measured in [&first, &second] {
        assert!(measured.broken.is_some() && measured.points.is_empty(), "{measured:?}");
    }
    assert!(first.broken.unwrap().cause.is_none());
    assert!(second.broken.unwrap().cause.is_some());
}
