//! The experiment of Boumenot 2002, chapters 9 and 12, in a world: what a server that stops the
//! network while its disk works gets out of a disk, and one that does not.
//!
//! The crossover connection to Beast: 2 T_prop 175.39 us, a gigabit, blocks of 8 KiB which Beast's
//! disk takes at 46.55 MB/s (T_B 175.98 us), T_op 61.87 us. Every WRITE is stable when it is
//! answered. The world runs the production code with these times; the formula is that of
//! `perf::model::transaction`, which knows nothing of the headers' bytes.

use std::fmt::Write as _;

use client::transfer::Limit;
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use net::shape::profile::Profile;
use perf::model::transaction::{Capacity, Path, Server, Storage, Transfer};
use perf::units::Nanos;
use server::store::sim::SimOptions;
use wire::nfs3::{Procedure, StableHow};
use world::{ClientSpec, Costs, ServerSpec, World};

const CALL_BYTES: u32 = 8192;
const ROUND_TRIP_US: f64 = 175.39;
const OP_US: f64 = 61.87;
const BLOCK_US: f64 = 175.98;
const SER_US: f64 = 65.536;

/// Of the disk alone.
const DISK_MBIT_PER_S: f64 = 372.4;

/// The thesis's prediction for one call at a time, which it measured as 137.58.
const THESIS_MBIT_PER_S: f64 = 136.88;

const WINDOWS: [u32; 5] = [1, 2, 4, 8, 16];

fn spec(server: Server) -> ServerSpec {
    let costs = Costs::default().with(Procedure::Write, Nanos::from_micros_f64(OP_US));
    let disk = "rate=46.55MB/s,seek=0".parse().unwrap();
    let store = SimOptions { disk, ..SimOptions::default() };
    let spec = ServerSpec { cores: 1, costs, store, ..ServerSpec::default() };
    match server {
        Server::Stall => spec.stalling(),
        Server::Concurrent => spec,
    }
}

/// What the production code gets, in Mbit/s.
fn in_world(server: Server, outstanding: u32) -> f64 {
    let world = World::new(1);
    let run = world.run(move |stage| async move {
        let server = stage.server(spec(server));
        let latency = Nanos::from_micros_f64(ROUND_TRIP_US / 2.0);
        let link = Profile::of("crossover", latency, 1_000_000_000);
        let session = stage.client(ClientSpec::behind(link)).mount(&server).await.unwrap();
        let scratch = Scratch::create(&session, "thesis").await.unwrap();
        let file = scratch.file(&session, "f").await.unwrap();
        let workload = Workload {
            call_bytes: CALL_BYTES,
            outstanding: outstanding as usize,
            file_bytes: 64 << 20,
            total_bytes: 600 * u64::from(CALL_BYTES),
            commit_bytes: u64::MAX,
            stable: StableHow::FileSync,
            limit: Limit::default(),
        };
        let data = seqwrite::pattern(CALL_BYTES as usize);
        seqwrite::run(stage.clock(), &session, file, &data, workload).await.unwrap()
    });
    mbit(run.unwrap().mib_per_s().unwrap())
}

fn by_formula(server: Server, outstanding: u32) -> f64 {
    let kib = f64::from(CALL_BYTES) / 1024.0;
    let path = Path {
        round_trip_us: ROUND_TRIP_US,
        ser_us_per_kib: SER_US / kib,
        op_us: OP_US,
        overhead_us: 0.0,
        // What holds up the disk of a server that stalls is its processor, not the link.
        capacity: Capacity { call_us: OP_US, us_per_kib: 0.0 },
        storage: Storage {
            sync_us: 0.0,
            us_per_kib: BLOCK_US / kib,
            left_us_per_kib: BLOCK_US / kib,
            unhidden_us_per_kib: 0.0,
        },
    };
    // No COMMITs: stable WRITEs need none.
    let (call_bytes, commit_bytes) = (u64::from(CALL_BYTES), u64::MAX);
    mbit(path.predict(server, &Transfer { call_bytes, outstanding, commit_bytes }).mib_per_s)
}

fn mbit(mib_per_s: f64) -> f64 {
    mib_per_s * f64::from(1 << 20) * 8.0 / 1e6
}

#[test]
fn a_server_that_stalls_gets_a_third_of_what_its_disk_could() {
    let mut table = "Mbit/s of stable WRITEs of 8 KiB; the disk alone: 372.4\n\n".to_owned();
    table.push_str("       server that stalls    server that does not\n");
    table.push_str("    N    world    formula       world    formula\n");
    let mut found = Vec::new();
    for outstanding in WINDOWS {
        write!(table, "{outstanding:5}").unwrap();
        for server in [Server::Stall, Server::Concurrent] {
            let (world, formula) = (in_world(server, outstanding), by_formula(server, outstanding));
            write!(table, "{world:9.2}  {formula:9.2}   ").unwrap();
            assert!((world / formula - 1.0).abs() < 0.03, "{server:?} {outstanding}: {table}");
            found.push(world);
        }
        table = format!("{}\n", table.trim_end());
    }
    insta::assert_snapshot!(table);
    let (stalled, concurrent) = (found[0], found[found.len() - 1]);
    assert!((stalled / THESIS_MBIT_PER_S - 1.0).abs() < 0.015, "{stalled}");
    assert!(concurrent >= 0.98 * DISK_MBIT_PER_S, "{concurrent}");
}
