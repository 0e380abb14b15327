//! `papers`: what it prints, records and leaves, and what it refuses.

use serde_json::Value;

use crate::peer::Nobody;
use crate::program::{Finished, Program, nfskit, run};
use crate::served::{Served, url};

fn read(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn latency_that_is_put_in_is_read_back() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("record.json");
    let mut command = nfskit(["papers", "loggp", "--quick", "--only", "L", "--point-time", "10ms"]);
    let finished = Program::start(command.arg("--json").arg(&path).arg("--check")).finish();
    let record = read(&path);
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    // How well it comes back is for a quiet machine to say. On any it is not less, because nothing
    // arrives before its time.
    let latency_us = value("L/40000.000/L");
    assert!(latency_us >= 38_000.0, "{latency_us}");
    assert_eq!(record["workload"]["name"], "papers-loggp");
    for part in ["read back", "40.0 ms", "hidden", "8 KiB WRITE", " of 2 within 3 %, "] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    checked(&finished, value("within_goal"), value("points"), "of 2 within 3 %");
}

/// With `--check` the goal decides how it ends, and what was measured is there all the same.
#[track_caller]
fn checked(finished: &Finished, within_goal: f64, points: f64, goal: &str) {
    assert!(finished.stdout.contains(goal), "no {goal:?} in {finished:?}");
    if within_goal < points {
        assert_eq!(finished.code, Some(1), "{finished:?}");
        for part in [goal, "   try: again on a quiet machine"] {
            assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
        }
    } else {
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    }
}

#[test]
fn live_system_and_world_stand_side_by_side() {
    let out = tempfile::tempdir().unwrap();
    let (path, report) = (out.path().join("record.json"), out.path().join("report.html"));
    let mut command = nfskit(["papers", "sensitivity", "--quick", "--time", "200ms"]);
    command.arg("--json").arg(&path).arg("--out").arg(&report).args(["--check", "--markdown"]);
    let finished = Program::start(&mut command).finish();
    let record = read(&path);
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    for part in
        ["us of response for each us of L", "1/(S + k o), world", "| 1.25 MB/s |", "| differ |"]
    {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    // What the world was given is marked, the baseline of G is compared.
    for part in ["| 10.0 us* |", "| 80.0 us* |", "| 26.00 MB/s |", " of 7 predictions within"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    assert!((value("predictions") - 7.0).abs() < 0.5, "{record}");
    checked(&finished, value("within_goal"), value("predictions"), "of 7 predictions within 10 %");
    // A spent o cannot be shorter than it is: 580 us twice an operation, one thread, and what had
    // been waiting to be counted when the measured time began.
    let saturation = value("o/580.000/live");
    assert!((0.0..950.0).contains(&saturation), "{saturation}");
    let (world, service_us) = (value("o/580.000/world"), value("world/service_us"));
    // One or two more or less in 200 ms.
    assert!(
        (world - 1e6 / (service_us.max(0.0) + 1_160.0)).abs() < 11.0,
        "{world} of {service_us}"
    );
    // Twice 4 ms, whatever else goes on, and in the world what it was given on top.
    assert!(value("L/4000.000/live") > 8_000.0, "{record}");
    let (slow, base) = (value("L/4000.000/world"), value("L/10.000/world"));
    // With an S that a starved server has, operations wait for each other, which L changes.
    assert!(service_us > 500.0 || (slow - base - 7_980.0).abs() < 400.0, "{slow} and {base}");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("<svg") && !page.contains("<script"));
}

#[test]
fn somebody_elses_server_is_left_clean_and_spends_no_overhead() {
    let served = Served::folder(&["--metadata-sync", "never"]);
    let on_it = |name: &str, options: &[&str]| {
        let mut command = nfskit(["papers", name, "--quick", "--target", &served.url()]);
        let finished = Program::start(command.args(options)).finish();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        assert_eq!(served.left_behind(), [] as [String; 0], "{name}");
        finished.stdout
    };
    let table = on_it("loggp", &["--only", "g", "--point-time", "10ms", "--markdown"]);
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 4, "{table}");
    assert!(rows.iter().all(|row| row.matches('|').count() == 11), "{table}");
    assert!(rows[2].starts_with("| g 50.0 us |") && rows[3].starts_with("| g 500 us |"), "{table}");
    let record: Value =
        serde_json::from_str(&on_it("sensitivity", &["--time", "200ms", "--json", "-"])).unwrap();
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    assert!(value("world/service_us").abs() < 1e-9 && value("predictions") > 4.5, "{record}");
    // All of the base response time is given as a delay, and an o of 80 us is no part of it.
    let without = value("L/10.000/world") - value("world/delay_us");
    assert!((0.0..200.0).contains(&without), "{without}");
    served.stop();
}

#[test]
fn upper_load_points_and_changes_are_predicted_beside_what_is_measured() {
    // How near it comes is for a quiet machine to say: here it is what is printed and recorded.
    let short = ["--quick", "--time", "20ms"];
    let predicted = run([&["papers", "predict", "--markdown"][..], &short].concat());
    assert_eq!((predicted.code, predicted.stderr.as_str()), (Some(0), ""), "{predicted:?}");
    for part in ["memory", "directory, UNSTABLE", "directory, FILE_SYNC"] {
        assert!(predicted.stdout.contains(part), "no {part:?} in {predicted:?}");
    }
    // On a busy machine no server may be explained: then this is reported, and no error.
    let has = |words: &str| predicted.stdout.contains(words);
    let is_silent = has("none of 3 servers could be explained");
    assert!(has("predictions, error") != is_silent, "{predicted:?}");
    let changed = run([&["papers", "whatif", "--json", "-"][..], &short].concat());
    assert_eq!((changed.code, changed.stderr.as_str()), (Some(0), ""), "{changed:?}");
    let record: Value = serde_json::from_str(&changed.stdout).unwrap();
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    // How much is the machine's affair; that it costs something is the model's.
    assert!(value("L + 1 ms/formula_gain") < 1.0, "{record}");
    for name in ["L + 1 ms", "G to 100 Mbit/s", "o + 50 us", "threads 1", "outstanding x 4"] {
        assert!(value(&format!("{name}/measured_gain")) > 0.0, "{record}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let refused = |arguments: &[&str], parts: &[&str]| {
        let finished = run(arguments);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        for part in parts {
            assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
        }
    };
    refused(&["papers", "loggp", "--only", "L,x"], &["--only", "'x'"]);
    refused(&["papers", "loggp", "--point-time", "1us"], &["1.00 us", "10.0 ms"]);
    refused(&["papers", "loggp", "--target", "nfs://h/x?version=2"], &["version 3"]);
    refused(&["papers", "sensitivity", "--mix", "sfs2014"], &["sfs2014", "sfs97-v3"]);
    refused(&["papers", "sensitivity", "--time", "1ms"], &["too short", "200 ms"]);
    refused(&["papers", "predict", "--time", "1ms"], &["too short", "10.0 ms"]);
    refused(&["papers", "whatif", "--time", "9ms"], &["too short", "10.0 ms"]);
    refused(&["papers", "sun", "--time", "999ms"], &["too short", "1.00 s"]);
    refused(&["papers", "sensitivity", "--repeats", "0"], &["--repeats", "from 1 to 100"]);
}

#[test]
fn a_disk_that_is_none_is_reported_before_anything_is_measured() {
    let servers = ["--without", "nfs://127.0.0.1/a", "--with", "nfs://127.0.0.1/b"];
    let sun = |options: &[&str]| run([&["papers", "sun"][..], &servers, options].concat());
    sun(&["--disk", "no-such"]).complains(3, &["has no no-such", "whole disk"]);
    let finished = sun(&["--log-disk", "no-such"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("--disk <NAME>"), "{finished:?}");
}

#[test]
fn a_target_that_cannot_be_reached_or_written_ends_with_3() {
    let nobody = Nobody::there();
    let nowhere = url(nobody.address.port(), "/x");
    let (old, read_only) = (Served::memory(&["--versions", "2"]), Served::memory(&["--ro"]));
    for name in ["loggp", "sensitivity"] {
        let fails = |target: &str, parts: &[&str]| {
            run(["papers", name, "--quick", "--target", target]).complains(3, parts);
        };
        fails(&nowhere, &["refused the connection", "nfsport="]);
        fails(&old.url(), &["version"]);
        fails(&read_only.url(), &["ROFS", "writable"]);
    }
    old.stop();
    read_only.stop();
}
