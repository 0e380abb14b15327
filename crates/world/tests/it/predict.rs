//! Upper load points from lower ones, and changes, in worlds, where only the models are wrong.

use std::fmt::Write as _;

use client::transfer::{Kind, Limit};
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use perf::model::informed::{Form, Informed, Seen};
use perf::model::transaction::{Capacity, Path, Server, Storage, Transfer};
use perf::model::whatif::of_path::PathCase;
use perf::units::Nanos;
use server::store::sim::SimOptions;
use wire::nfs3::{Procedure, StableHow};
use world::{ClientSpec, Costs, ServerSpec, World};

const LOWER: [u32; 5] = [1, 2, 3, 4, 5];
const UPPER: [u32; 6] = [6, 8, 10, 12, 16, 64];

/// Calls a second, and the server's processor time for each.
fn ran(disk: &'static str, stable: StableHow, outstanding: u32) -> (f64, f64) {
    let world = World::new(1);
    let run = world.run(move |stage| async move {
        let store = SimOptions { disk: disk.parse().unwrap(), ..SimOptions::default() };
        let costs = Costs::default().with(Procedure::Write, Nanos::from_micros(200));
        let spec = ServerSpec { cores: 1, costs, store, ..ServerSpec::default() };
        let server = stage.server(spec);
        let link = ClientSpec::behind("100us/1g".parse().unwrap());
        let session = stage.client(link).mount(&server).await.unwrap();
        let scratch = Scratch::create(&session, "predict").await.unwrap();
        let file = scratch.file(&session, "f").await.unwrap();
        let workload = Workload {
            call_bytes: 8192,
            outstanding: outstanding as usize,
            file_bytes: 4 << 20,
            total_bytes: 1200 * 8192,
            commit_bytes: u64::MAX,
            stable,
            limit: Limit::default(),
        };
        let data = seqwrite::pattern(8192);
        let before = server.load().busy;
        let run = seqwrite::run(stage.clock(), &session, file, &data, workload).await.unwrap();
        (run, server.load().busy - before)
    });
    let (run, busy) = run.unwrap();
    let writes = run.events.iter().filter(|event| event.kind == Kind::Write);
    let replies: Vec<_> = writes.map(|event| event.received).collect();
    let skip = outstanding as usize;
    let steady = &replies[skip..replies.len() - skip];
    let secs = steady[steady.len() - 1].since(steady[0]).as_secs_f64();
    ((steady.len() - 1) as f64 / secs, busy.as_micros_f64() / replies.len() as f64)
}

#[test]
fn upper_load_points_and_the_saturation_follow_from_the_lower_ones() {
    let servers = [
        ("memory", "none", StableHow::Unstable),
        ("disk, UNSTABLE", "rate=200MB/s,seek=0,sync=1ms", StableHow::Unstable),
        ("disk, FILE_SYNC", "rate=200MB/s,seek=0,sync=1ms", StableHow::FileSync),
    ];
    let (mut table, mut errors) = (String::new(), Vec::new());
    for (name, disk, stable) in servers {
        let lower: Vec<Seen> = LOWER
            .into_iter()
            .map(|outstanding| {
                let (per_s, busy_us) = ran(disk, stable, outstanding);
                Seen { outstanding, per_s, busy_us }
            })
            .collect();
        // A world's server spends all its time on the call, before the sync.
        let gathered = (stable == StableHow::FileSync).then_some(Form::Gathered { after: 0.0 });
        let forms: Vec<Form> = [Form::Corner, Form::Variable].into_iter().chain(gathered).collect();
        let (informed, errors_of) = Informed::best(&lower, &forms).unwrap();
        writeln!(table, "{errors_of:?} {lower:?}").unwrap();
        writeln!(table, "{name}: {}", informed.form.name()).unwrap();
        for outstanding in UPPER {
            let (measured, _) = ran(disk, stable, outstanding);
            let predicted = informed.per_s(outstanding).unwrap().value;
            let error = 100.0 * (predicted / measured - 1.0);
            writeln!(table, "{outstanding:4} {measured:8.1} {predicted:8.1} {error:+6.1} %")
                .unwrap();
            errors.push(error.abs());
        }
    }
    errors.sort_unstable_by(f64::total_cmp);
    let (median, worst) = (errors[errors.len() / 2], errors[errors.len() - 1]);
    // The aims for live servers, with nothing but the models to be wrong.
    assert!(median <= 1.0 && worst <= 15.0, "{median} {worst}\n{table}");
}

#[test]
fn what_a_change_gains_by_the_formula_it_gains_in_a_world() {
    let before = PathCase {
        path: Path {
            round_trip_us: 420.0,
            ser_us_per_kib: 8.5,
            op_us: 30.0,
            overhead_us: 0.0,
            capacity: Capacity { call_us: 5.0, us_per_kib: 8.2 },
            storage: Storage {
                sync_us: 0.0,
                us_per_kib: 0.0,
                left_us_per_kib: 0.0,
                unhidden_us_per_kib: 0.0,
            },
        },
        server: Server::Concurrent,
        transfer: Transfer { call_bytes: 8192, outstanding: 4, commit_bytes: 64 << 20 },
        latency_us: 200.0,
        link_us_per_kib: 8.2,
        ends: None,
        threads: None,
        processor_us: None,
    };
    let world = |case: &PathCase| world::path::case_mib_per_s(case).unwrap();
    // As a probe finds it, and with a processor that is known by itself.
    let known = PathCase { processor_us: Some(40.0), ..before };
    let (mut errors, mut table) = (Vec::new(), String::new());
    for before in [before, known] {
        for change in ["L+1ms", "G=100Mbit/s", "o+50us", "threads=1", "outstanding x4", "wsize=64K"]
        {
            let after = before.changed(&[change.parse().unwrap()]).unwrap();
            let formula = after.formula().mib_per_s / before.formula().mib_per_s;
            let gained = world(&after) / world(&before);
            let error = 100.0 * (formula / gained - 1.0);
            writeln!(table, "{change:16} {gained:6.3} {formula:6.3} {error:+6.1} %").unwrap();
            errors.push(error.abs());
        }
    }
    errors.sort_unstable_by(f64::total_cmp);
    assert!(errors[errors.len() / 2] <= 1.0 && errors[errors.len() - 1] <= 3.0, "{table}");
}
