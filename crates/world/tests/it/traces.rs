//! The packet traces of Boumenot 2002, chapter 11, made again in a world, and explained by
//! `analyze::trace` from their packets alone.
//!
//! As there: several calls at once until data are committed, which stops everything; then one call
//! at a time. Data go to memory (UNSTABLE), and a COMMIT writes them to the disk of Beast (46.55
//! MB/s) or of Revanche (33.82 MB/s: 242.23 us for 8 KiB). Shorter than there: 8 MiB between
//! commits instead of 100 MB. Over TCP.

use std::io::Cursor;
use std::sync::Arc;

use client::transfer::{Kind, Limit};
use load::scratch::Scratch;
use load::seqwrite::{self, Run, Workload};
use net::call::Rpc;
use net::shape::profile::Profile;
use perf::units::Nanos;
use server::store::sim::{SimOptions, WriteBack};
use trace::capture::Capture;
use trace::{Analyzer, Cause, Filter, Flow};
use wire::nfs3::{Procedure, StableHow};
use world::{ClientSpec, Costs, ServerSpec, World};

use crate::tape::{self, Tape};

const CALL_BYTES: u32 = 8192;
const ROUND_TRIP_US: f64 = 175.39;
const OP_US: f64 = 61.87;
const COMMIT_BYTES: u64 = 8 << 20;
const REPLY_LIMIT: Nanos = Nanos::from_secs(60);

fn spec(disk: &str) -> ServerSpec {
    let costs = Costs::default().with(Procedure::Write, Nanos::from_micros_f64(OP_US));
    let store = SimOptions {
        disk: disk.parse().unwrap(),
        write_back: WriteBack::OnDemand,
        ..SimOptions::default()
    };
    ServerSpec { cores: 1, costs, store, ..ServerSpec::default() }.stalling()
}

/// Transfers until the first commit with four calls at once, and behind it with one; their runs,
/// and the capture.
fn played(disk: &'static str) -> (Vec<Run>, Vec<u8>) {
    let tape = Arc::new(Tape::default());
    let taped = Arc::clone(&tape);
    let world = World::new(1);
    let runs = world.run(move |stage| async move {
        let server = stage.server(spec(disk));
        let latency = Nanos::from_micros_f64(ROUND_TRIP_US / 2.0);
        let link = Profile::of("crossover", latency, 1_000_000_000);
        let client = stage.client(ClientSpec::behind(link));
        let clock = stage.clock().clone();
        let line = tape::connection(&taped, &client, &server);
        let rpc = Rpc::start(line, &clock, REPLY_LIMIT, 1);
        let session = client.session(rpc, &server).await.unwrap();
        let scratch = Scratch::create(&session, "traces").await.unwrap();
        let file = scratch.file(&session, "f").await.unwrap();
        let data = seqwrite::pattern(CALL_BYTES as usize);
        let mut runs = Vec::new();
        for (outstanding, commits) in [(4, 1), (1, 2)] {
            let workload = Workload {
                call_bytes: CALL_BYTES,
                outstanding,
                file_bytes: 64 << 20,
                total_bytes: commits * COMMIT_BYTES,
                commit_bytes: COMMIT_BYTES,
                stable: StableHow::Unstable,
                limit: Limit::default(),
            };
            runs.push(seqwrite::run(&clock, &session, file, &data, workload).await.unwrap());
        }
        runs
    });
    (runs.unwrap(), tape.capture())
}

fn analyzed(capture: Vec<u8>) -> Analyzer {
    let mut capture = Capture::open("tape", Box::new(Cursor::new(capture))).unwrap();
    let mut analyzer = Analyzer::new(Filter::default());
    while capture.advance().unwrap() {
        analyzer.packet(&capture.packet().unwrap(), &mut |_, _, _| {});
    }
    analyzer.end();
    analyzer
}

/// The time from one WRITE to the next, while one is outstanding, as the client itself saw it.
fn true_cycle_us(run: &Run) -> f64 {
    let writes: Vec<_> = run.events.iter().filter(|event| event.kind == Kind::Write).collect();
    let cycles = writes.windows(2).map(|pair| pair[1].sent.since(pair[0].sent).as_micros_f64());
    let mut cycles: Vec<f64> = cycles.collect();
    cycles.sort_by(f64::total_cmp);
    cycles[cycles.len() / 2]
}

fn explains(disk: &'static str, block_us: f64) {
    let (runs, capture) = played(disk);
    let analyzer = analyzed(capture);
    let flows: Vec<&Flow> = analyzer.flows().iter().map(|(_, flow)| flow).collect();
    let [flow] = flows[..] else { panic!("one connection") };
    let pace = &flow.pace;

    // The stalls are commits, each as long as the disk needs.
    let mut gaps = pace.gaps.clone();
    gaps.sort_by_key(|gap| gap.begin_ns);
    assert_eq!(gaps.len(), 3, "{gaps:?}");
    #[expect(clippy::cast_precision_loss, reason = "a number of blocks")]
    let disk_us = (COMMIT_BYTES / u64::from(CALL_BYTES)) as f64 * block_us;
    for gap in &gaps {
        assert_eq!(gap.cause, Cause::Commit);
        let us = Nanos::from_nanos(gap.ns()).as_micros_f64();
        assert!((us / disk_us - 1.0).abs() < 0.05, "{us} {disk_us}");
    }

    // Several calls before the first of them; stop-and-wait behind it, and slower.
    let phases = pace.phases(flow.first_ns);
    let shares: Vec<f64> = phases.iter().filter_map(|phase| phase.stop_and_wait()).collect();
    assert!(shares[0] < 0.1, "{shares:?}");
    assert!(shares[1..].iter().all(|share| *share > 0.99), "{shares:?}");
    let slopes: Vec<f64> = phases.iter().filter_map(|phase| phase.bytes_per_s()).collect();
    assert!(slopes[0] > 1.5 * slopes[1], "{slopes:?}");

    // T_cycle: of the client's own times, and of the formula.
    let cycle_us = pace.write_cycle.quantile(0.5).as_micros_f64();
    let truth_us = true_cycle_us(&runs[1]);
    assert!((cycle_us / truth_us - 1.0).abs() < 0.05, "{cycle_us} {truth_us}");
    let formula_us = ROUND_TRIP_US + OP_US + f64::from(CALL_BYTES) * 8.0 / 1000.0;
    assert!((cycle_us / formula_us - 1.0).abs() < 0.05, "{cycle_us} {formula_us}");
}

#[test]
fn the_fast_disks_trace_is_explained_by_commits_and_stop_and_wait() {
    explains("rate=46.55MB/s,seek=0", 175.98);
}

#[test]
fn the_slow_disks_trace_is_explained_by_longer_commits() {
    explains("rate=33.82MB/s,seek=0", 242.23);
}
