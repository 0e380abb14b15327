//! A server in a world is probed as any other, from its client's side alone: its parameters are
//! found within 5 %.

use load::probe::Findings;
use load::probe::concurrency::Concurrency;
use load::scratch::Scratch;
use load::study::{Measured, Plan, Study};
use net::shape::conditions::Overhead;
use net::shape::profile::Profile;
use perf::units::Nanos;
use server::store::sim::{SimOptions, WriteBack};
use wire::nfs3::Procedure;
use world::{ClientSpec, Costs, ServerSpec, World};

use crate::far::{self, Busy, Far};

const LATENCY_US: f64 = 100.0;
const SPENT_US: f64 = 5.0;
const OP_US: f64 = 60.0;
const CORES: usize = 3;
/// 1 Gbit/s.
const US_PER_KIB: f64 = 8.192;
const SYNC_US: f64 = 500.0;
/// 200 MB/s.
const DISK_US_PER_KIB: f64 = 5.12;

/// What the probe finds of a disk that is written to on demand alone.
fn probed(cores: usize, costs: Costs) -> (Findings, Concurrency) {
    let spent = Nanos::from_micros_f64(SPENT_US);
    let link = Profile {
        overhead: Overhead { send: spent, receive: spent },
        ..Profile::of("way", Nanos::from_micros_f64(LATENCY_US), 1_000_000_000)
    };
    let spec = ServerSpec { cores, costs, ..on_demand("rate=200MB/s,seek=0,sync=500us") };
    far::probed(1, spec, link, 3, Busy::Known)
}

/// WRITEs take [`OP_US`].
fn costs() -> Costs {
    Costs::default().with(Procedure::Write, Nanos::from_micros_f64(OP_US))
}

fn on_demand(disk: &str) -> ServerSpec {
    let disk = disk.parse().unwrap();
    let store = SimOptions { disk, write_back: WriteBack::OnDemand, ..SimOptions::default() };
    ServerSpec { store, ..ServerSpec::default() }
}

#[track_caller]
fn assert_near(what: &str, got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 0.05, "{what}: {got} is not {want}");
}

#[test]
fn the_parameters_of_a_server_are_found_from_its_client() {
    let (findings, concurrency) = probed(CORES, costs());
    assert_near("2 T_prop", findings.round_trip.value, 2.0 * (LATENCY_US + SPENT_US));
    assert_near("T_ser", findings.ser_us_per_kib.value, US_PER_KIB);
    assert_near("G", findings.path.capacity.us_per_kib, US_PER_KIB);
    assert_near("T_op, server", findings.op_us.value, OP_US);
    assert_near("T_B", findings.block_us.value, SYNC_US + 8.0 * DISK_US_PER_KIB);
    assert_near("sync", findings.path.storage.sync_us, SYNC_US);
    assert_near("rate", findings.path.storage.us_per_kib, DISK_US_PER_KIB);
    assert_near("T_op, client", concurrency.client_us.unwrap().value, 2.0 * SPENT_US);
    let servers = concurrency.servers.unwrap();
    assert_near("servers", servers.count.value, CORES as f64);
    assert!(servers.at_least.is_none(), "{concurrency:?}");
}

#[test]
fn more_servers_than_the_client_can_keep_busy_are_a_least_number() {
    let (_, concurrency) = probed(64, costs());
    let servers = concurrency.servers.unwrap();
    // 60 us of work come every 10 us: six, at least.
    assert!(servers.at_least.is_some() && servers.count.value > 4.0, "{concurrency:?}");
}

#[test]
fn a_server_that_takes_longer_for_null_than_for_a_write_has_no_negative_times() {
    const EXCESS_US: f64 = 40.0;
    let costs = Costs::default().with(Procedure::Null, Nanos::from_micros_f64(EXCESS_US));
    let (findings, concurrency) = probed(CORES, costs);
    assert_near("NULL beyond a WRITE", findings.null_excess_us, EXCESS_US);
    // What cannot be distinguished is 0, and not surer than by how much NULL is off.
    let op = findings.op_us;
    assert_eq!(op.value, 0.0);
    assert!(op.ci95.is_none_or(|ci95| ci95.lo == 0.0 && ci95.hi >= 0.9 * EXCESS_US), "{op:?}");
    assert_eq!(concurrency.servers, None);
    // The way is that of the WRITEs, which the model is about.
    assert_near("2 T_prop", findings.path.round_trip_us, 2.0 * (LATENCY_US + SPENT_US));
    let way = findings.round_trip.ci95.unwrap();
    assert!(way.contains(2.0 * (LATENCY_US + SPENT_US) + EXCESS_US), "{way:?}");
}

#[test]
fn a_server_that_makes_every_write_stable_by_itself_has_no_commits_and_is_probed() {
    let store = SimOptions { write_back: WriteBack::Through, ..on_demand("nvme").store };
    let spec = ServerSpec { cores: CORES, costs: costs(), store, ..ServerSpec::default() };
    let link = Profile::of("way", Nanos::from_micros_f64(LATENCY_US), 1_000_000_000);
    let (findings, _) = far::probed(1, spec, link.clone(), 3, Busy::Known);
    assert!(findings.stable_only);
    assert_eq!((findings.commit_us.value, findings.path.storage.sync_us), (0.0, 0.0));
    // What being stable takes is in each WRITE.
    assert!(findings.op_us.value > OP_US, "{:?}", findings.op_us);
    let spec = ServerSpec { cores: CORES, costs: costs(), ..on_demand("nvme") };
    assert!(!far::probed(1, spec, link, 3, Busy::Known).0.stable_only);
}

/// Of a server with two processors and a disk of 46.55 MB/s, which takes 176 us for 8 KiB, behind a
/// way that jitters, with an o at the client's end.
fn with_overhead(o_us: f64) -> (Findings, Concurrency) {
    let costs = Costs::default().with(Procedure::Write, Nanos::from_micros_f64(35.0));
    let spec = ServerSpec { cores: 2, costs, ..on_demand("rate=46.55MB/s,seek=0,sync=0") };
    let spent = Nanos::from_micros_f64(o_us);
    let link: Profile = "70us/1g,jitter=exponential:5us".parse().unwrap();
    let link = Profile { overhead: Overhead { send: spent, receive: spent }, ..link };
    far::probed(5, spec, link, 6, Busy::Known)
}

#[test]
fn no_parameter_that_varies_is_known_without_a_doubt_and_storage_is_that_of_the_disk() {
    for o_us in [25.0, 50.0, 100.0] {
        let (findings, concurrency) = with_overhead(o_us);
        let named = [
            ("2 T_prop", findings.round_trip),
            ("T_op", findings.op_us),
            ("T_B", findings.block_us),
            ("o", findings.overhead_us),
            ("stable", concurrency.stable_us),
        ];
        for (what, estimate) in named {
            let width = estimate.ci95.map_or(f64::INFINITY, |ci95| ci95.hi - ci95.lo);
            assert!(width > 0.0, "{what} at o = {o_us}: {estimate:?}");
        }
        assert_near("2 T_prop", findings.round_trip.value, 140.0 + 2.0 * o_us);
        let block = findings.block_us;
        assert!((block.value / 176.0 - 1.0).abs() < 0.1, "T_B at o = {o_us}: {block:?}");
        let together = concurrency.stable_servers.unwrap();
        assert!((together.count.value - 1.0).abs() < 0.15, "o = {o_us}: {concurrency:?}");
    }
}

/// The sweep of a probe, of a server that keeps WRITEs in memory before a disk of this rate.
fn swept(disk: &'static str) -> (Vec<Measured>, Nanos) {
    let world = World::new(1);
    let run = world.run(move |stage| async move {
        let server = stage.server(on_demand(&format!("rate={disk},seek=0,sync=100us")));
        let link = Profile::of("way", Nanos::from_micros_f64(LATENCY_US), 10_000_000_000);
        let client = stage.client(ClientSpec::behind(link));
        let session = client.mount(&server).await.unwrap();
        let scratch = Scratch::create(&session, "probe").await.unwrap();
        let subjects = [Far { client, server }];
        let plan = Plan { file_bytes_max: 128 << 20, ..Plan::PROBE_QUICK };
        let mut study = Study::begin(stage.clock(), plan, &subjects, &scratch).await.unwrap();
        study.warm_up().await.unwrap();
        let began = stage.clock().now();
        let measured = study.sweep(&mut |_, _| {}).await.unwrap();
        (measured, stage.clock().now().since(began))
    });
    run.unwrap()
}

#[test]
fn no_window_shows_more_than_the_disk_can_and_its_commits_are_waited_for() {
    let (measured, _) = swept("46MB/s");
    for measured in &measured {
        // 43.9 MiB/s; WRITEs alone come at 1 GB/s.
        let mib_per_s = measured.median().unwrap_or_else(|| panic!("{:?}", measured.configuration));
        assert!(mib_per_s <= 43.9, "{:?}: {mib_per_s}", measured.configuration);
        assert!(mib_per_s >= 20.0, "{:?}: {mib_per_s}", measured.configuration);
    }
}

#[test]
fn where_no_commit_is_answered_there_is_no_throughput() {
    let (measured, took) = swept("4MB/s");
    assert!(measured.iter().any(|measured| measured.median().is_none()));
    for measured in &measured {
        let most = measured.mib_per_s.iter().copied().fold(0.0, f64::max);
        assert!(most <= 4e6 / 1_048_576.0, "{:?}: {most}", measured.configuration);
        assert_eq!(measured.estimate().is_none(), measured.unanswered() == 1);
    }
    assert!(took < Nanos::from_secs(120), "{took:?}");
}
