//! Changes predicted from probes of servers that nothing was adjusted to, and applied.

use std::fmt::Write as _;

use client::transfer::{Kind as Event, Limit};
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use net::shape::profile::Profile;
use perf::model::transaction::{Server as Kind, Transfer};
use perf::model::whatif::believed::{Believed, Held, believed};
use perf::model::whatif::of_path::PathCase;
use perf::units::Nanos;
use server::store::sim::{SimOptions, WriteBack};
use wire::nfs3::{Procedure, StableHow};
use world::{ClientSpec, Costs, ServerSpec, World};

use crate::far;

/// A server that no model was adjusted to.
#[derive(Clone)]
struct Place {
    name: &'static str,
    spec: ServerSpec,
    link: Profile,
}

fn place(
    name: &'static str,
    link: &str,
    cores: usize,
    (op_us, per_byte_ps): (f64, u64),
    disk: &str,
) -> Place {
    let costs = Costs { per_byte_ps, ..Costs::default() }
        .with(Procedure::Write, Nanos::from_micros_f64(op_us))
        .with(Procedure::Null, Nanos::from_micros_f64(op_us / 4.0));
    let store = SimOptions { disk: disk.parse().unwrap(), ..SimOptions::default() };
    let spec = ServerSpec { cores, costs, store, ..ServerSpec::default() };
    Place { name, spec, link: link.parse().unwrap() }
}

fn places() -> Vec<Place> {
    let on_demand = |mut place: Place, name| {
        place.spec.store.write_back = WriteBack::OnDemand;
        Place { name, ..place }
    };
    let slow_disk = place("slow disk", "100us/1g", 4, (30.0, 300), "rate=40MB/s,seek=0,sync=4ms");
    let stalling = place("stalling", "200us/1g", 4, (40.0, 500), "rate=100MB/s,seek=0,sync=2ms");
    vec![
        place("one core", "100us/1g", 1, (150.0, 2_000), "none"),
        place("jitter", "100us/1g,jitter=exponential:60us", 4, (40.0, 200), "none"),
        slow_disk.clone(),
        on_demand(slow_disk, "slow disk, on demand"),
        Place { spec: stalling.spec.clone().stalling(), ..stalling },
    ]
}

const COMMIT_BYTES: u64 = 8 << 20;

/// Steady throughput, MiB/s.
fn measured(place: &Place, transfer: Transfer) -> f64 {
    let (spec, link) = (place.spec.clone(), place.link.clone());
    let world = World::new(7);
    let run = world.run(move |stage| async move {
        let server = stage.server(spec);
        let session = stage.client(ClientSpec::behind(link)).mount(&server).await.unwrap();
        let scratch = Scratch::create(&session, "whatif").await.unwrap();
        let file = scratch.file(&session, "f").await.unwrap();
        let workload = Workload {
            call_bytes: u32::try_from(transfer.call_bytes).unwrap(),
            outstanding: transfer.outstanding as usize,
            file_bytes: 16 << 20,
            total_bytes: 3 * COMMIT_BYTES,
            commit_bytes: COMMIT_BYTES,
            stable: StableHow::Unstable,
            limit: Limit::default(),
        };
        let data = seqwrite::pattern(workload.call_bytes as usize);
        seqwrite::run(stage.clock(), &session, file, &data, workload).await.unwrap()
    });
    let run = run.unwrap();
    let commits: Vec<_> = run.events.iter().filter(|e| e.kind == Event::Commit).collect();
    let (first, last) = (commits[0].received, commits[commits.len() - 1].received);
    let bytes = (commits.len() - 1) as f64 * COMMIT_BYTES as f64;
    bytes / f64::from(1 << 20) / last.since(first).as_secs_f64()
}

fn probed(place: &Place, transfer: Transfer) -> PathCase {
    let case = far::case(place.spec.clone(), place.link.clone(), transfer);
    // How it treats its disk, by the form that fits a sweep better.
    let windows = [1, 4, 16].map(|outstanding| Transfer { outstanding, ..transfer });
    let real = windows.map(|transfer| measured(place, transfer));
    let off = |server: &Kind| {
        let mut errors = [0, 1, 2].map(|at| {
            let case = PathCase { server: *server, transfer: windows[at], ..case };
            (case.formula().mib_per_s / real[at] - 1.0).abs()
        });
        errors.sort_unstable_by(f64::total_cmp);
        errors[1]
    };
    let server =
        if off(&Kind::Stall) < off(&Kind::Concurrent) { Kind::Stall } else { Kind::Concurrent };
    PathCase { server, ..case }
}

/// The place after a change, as far as it is not one of the calls.
fn applied(place: &Place, change: &str) -> Place {
    let mut place = place.clone();
    for conditions in [&mut place.link.there, &mut place.link.back] {
        match change {
            "L+1ms" => conditions.link.latency += Nanos::from_millis(1),
            // 100 Mbit/s: 80 ns a byte.
            "G=100m" => conditions.link.gap_per_byte_ps = 80_000,
            _ => {}
        }
    }
    place
}

/// What was predicted of each change, and how far it is off, percent.
fn errors(place: &Place, changes: &[&str], table: &mut String) -> Vec<f64> {
    let base = Transfer { call_bytes: 8192, outstanding: 4, commit_bytes: COMMIT_BYTES };
    let found = probed(place, base);
    let measured_base = measured(place, base);
    let world = |case: &PathCase| world::path::case_mib_per_s(case).unwrap();
    let (formula, simulated) = (found.formula().mib_per_s, world(&found));
    let held = [Held { measured: measured_base, formula, simulated }];
    let before = found.calibrated(measured_base);
    let mut errors = Vec::new();
    for change in changes {
        let after = before.changed(&[change.parse().unwrap()]).unwrap();
        let Believed { model, mib_per_s, .. } =
            believed(after.formula().mib_per_s, Some(world(&after)), &held);
        let real = measured(&applied(place, change), after.transfer);
        let error = 100.0 * (mib_per_s / real - 1.0);
        writeln!(
            table,
            "{:24}{change:16}{real:8.2}{mib_per_s:8.2}{error:+6.1} % {model:?}",
            place.name
        )
        .unwrap();
        errors.push(error.abs());
    }
    errors
}

#[test]
fn changes_of_servers_that_nothing_was_adjusted_to_are_predicted() {
    let (mut table, mut all) = (String::new(), Vec::new());
    for place in places() {
        let changes = ["L+1ms", "G=100m", "wsize=64K"];
        all.extend(errors(&place, &changes, &mut table));
    }
    all.sort_unstable_by(f64::total_cmp);
    let (median, worst) = (all[all.len() / 2], all[all.len() - 1]);
    // The worst is a server that writes back early and stops for its disk: how much a COMMIT finds
    // to do depends on how fast the WRITEs came.
    assert!(median <= 5.0 && worst <= 14.0, "{median} {worst}\n{table}");
}
