//! What a write log gains, predicted from a probe of the server that has none, and measured on one
//! that has: the production client, server and journal, over emulated disks.

use std::fmt::Write as _;

use client::transfer::{Kind as Event, Limit};
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use net::shape::profile::Profile;
use perf::model::disk;
use perf::model::transaction::Transfer;
use perf::model::whatif::of_path::{PathCase, Spread};
use perf::model::write_log::{LogDevice, Stable};
use perf::units::Nanos;
use server::store::sim::{LogSpec, SimOptions, Stats};
use wire::nfs3::{Procedure, StableHow};
use world::{ClientSpec, Costs, ServerSpec, World};

use crate::far;

const WRITE_BYTES: u32 = 8192;
const WINDOWS: [u32; 4] = [1, 4, 16, 64];
/// Of a run, at least.
const CALLS: u64 = 240;

fn spec(disk: &str, log: Option<&str>) -> ServerSpec {
    let costs = Costs { per_byte_ps: 300, ..Costs::default() }
        .with(Procedure::Write, Nanos::from_micros(25))
        .with(Procedure::Null, Nanos::from_micros(10));
    let write_log = log.map(|name| LogSpec::new(name.parse().unwrap()));
    let store = SimOptions { disk: disk.parse().unwrap(), write_log, ..SimOptions::default() };
    ServerSpec { cores: 4, costs, store, ..ServerSpec::default() }
}

/// Stable WRITEs a second in the steady state, and what the disks did.
fn measured(spec: &ServerSpec, link: &Profile, outstanding: u32) -> (f64, Stats) {
    let (spec, link) = (spec.clone(), link.clone());
    let run = World::new(11).run(move |stage| async move {
        let server = stage.server(spec);
        let session = stage.client(ClientSpec::behind(link)).mount(&server).await.unwrap();
        let scratch = Scratch::create(&session, "log").await.unwrap();
        let file = scratch.file(&session, "f").await.unwrap();
        let before = server.stats();
        let workload = Workload {
            call_bytes: WRITE_BYTES,
            outstanding: outstanding as usize,
            file_bytes: 4 << 20,
            total_bytes: CALLS.max(24 * u64::from(outstanding)) * u64::from(WRITE_BYTES),
            commit_bytes: u64::MAX,
            stable: StableHow::FileSync,
            limit: Limit::default(),
        };
        let data = seqwrite::pattern(WRITE_BYTES as usize);
        let run = seqwrite::run(stage.clock(), &session, file, &data, workload).await.unwrap();
        // What the log has, comes to its place meanwhile.
        stage.clock().sleep(Nanos::from_secs(6)).await;
        session.getattr(file).await.unwrap();
        stage.clock().sleep(Nanos::from_secs(6)).await;
        assert_eq!(before.divergences, 0);
        (run, server.stats())
    });
    let (run, stats) = run.unwrap();
    let writes = run.events.iter().filter(|event| event.kind == Event::Write);
    let mut replies: Vec<_> = writes.map(|event| event.received).collect();
    replies.sort_unstable();
    let steady = &replies[outstanding as usize..replies.len() - outstanding as usize];
    let secs = steady[steady.len() - 1].since(steady[0]).as_secs_f64();
    ((steady.len() - 1) as f64 / secs, stats)
}

/// A server without a log, as its client's side alone shows it.
fn probed(disk: &str, link: &Profile) -> PathCase {
    let transfer =
        Transfer { call_bytes: WRITE_BYTES.into(), outstanding: 1, commit_bytes: 8 << 20 };
    far::case(spec(disk, None), link.clone(), transfer)
}

#[test]
fn the_gain_of_a_log_is_predicted_over_five_devices() {
    let link: Profile = "100us/1g".parse().unwrap();
    let (mut table, mut all, mut worst) = (String::new(), Vec::new(), 0.0_f64);
    for disk::Profile { name: disk, .. } in disk::PROFILES {
        let case = probed(disk, &link);
        let mut errors = Vec::new();
        let without = WINDOWS.map(|outstanding| measured(&spec(disk, None), &link, outstanding).0);
        for log in ["nvram", "ssd-sata"] {
            let changes = [format!("write-log=sim:{log}").parse().unwrap()];
            for (outstanding, without) in WINDOWS.into_iter().zip(without) {
                let calls = Stable { bytes: WRITE_BYTES.into(), outstanding };
                let answer = case.stable(&changes, &calls, &Spread::default()).unwrap().unwrap();
                let predicted = answer[1].per_s.value / answer[0].per_s.value;
                let (with, _) = measured(&spec(disk, Some(log)), &link, outstanding);
                let gain = with / without;
                let error = 100.0 * (predicted / gain - 1.0);
                writeln!(
                    table,
                    "{disk:9}{log:9}{outstanding:3} {without:9.0} {with:9.0} {gain:7.2} \
                     {predicted:7.2} {error:+6.1} %"
                )
                .unwrap();
                errors.push(error.abs());
            }
        }
        errors.sort_unstable_by(f64::total_cmp);
        let median = errors[errors.len() / 2];
        worst = worst.max(errors[errors.len() - 1]);
        writeln!(table, "{disk}: {median:.1} % at the median").unwrap();
        all.push(median);
    }
    print!("{table}");
    assert!(all.iter().all(|median| *median <= 10.0), "{table}");
    assert!(worst <= 20.0, "{worst}\n{table}");
}

#[test]
fn a_world_of_the_path_has_the_gain_of_the_formula() {
    let (link, log): (Profile, LogDevice) =
        ("100us/1g".parse().unwrap(), "sim:nvram".parse().unwrap());
    let case = probed("ssd-sata", &link);
    for outstanding in WINDOWS {
        let calls = Stable { bytes: WRITE_BYTES.into(), outstanding };
        let world = |log| world::path::stable_per_s(&case, log, &calls).unwrap();
        let simulated = world(Some(&log)) / world(None);
        let changes = ["write-log=sim:nvram".parse().unwrap()];
        let answer = case.stable(&changes, &calls, &Spread::default()).unwrap().unwrap();
        let predicted = answer[1].per_s.value / answer[0].per_s.value;
        let ratio = predicted / simulated;
        assert!((0.9..1.1).contains(&ratio), "{outstanding}: {predicted} {simulated}");
    }
}

#[test]
fn a_hard_disk_with_a_log_in_memory_answers_thirty_times_as_fast() {
    let link: Profile = "20us/10g".parse().unwrap();
    for outstanding in [1, 16] {
        let of = |log| measured(&spec("hdd", log), &link, outstanding).0;
        let gain = of(Some("nvram")) / of(None);
        assert!(gain >= 30.0, "{outstanding}: {gain}");
    }
}

/// The guide's file of 1 MB in 128 WRITEs: a write of the disk for each without a log, and with one
/// what is coalesced.
#[test]
fn with_a_log_the_disk_writes_a_file_at_once() {
    let link: Profile = "20us/10g".parse().unwrap();
    let (_, without) = measured(&spec("hdd", None), &link, 1);
    let (_, with) = measured(&spec("hdd", Some("nvram")), &link, 1);
    assert!(without.disk.writes >= CALLS && without.log_disk.writes == 0, "{without:?}");
    assert!(with.disk.writes < 20 && with.log_disk.writes >= CALLS, "{with:?}");
    // In the same places, at least once.
    assert!(with.disk.bytes_written >= CALLS * u64::from(WRITE_BYTES), "{with:?}");
    assert!(with.disk.syncs * 20 < without.disk.syncs, "{with:?} {without:?}");
}
