//! `papers`: what it prints, records and leaves, and what it refuses.

use serde_json::Value;

use crate::peer::Nobody;
use crate::program::{Program, nfskit, run};
use crate::served::{Served, url};

fn read(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn latency_that_is_put_in_is_read_back() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("record.json");
    let mut command = nfskit(["papers", "loggp", "--quick", "--only", "L", "--point-time", "10ms"]);
    let finished = Program::start(command.arg("--json").arg(&path)).finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    for part in ["read back", "40.0 ms", "hidden", "8 KiB WRITE"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let record = read(&path);
    // How well is for a quiet machine to say.
    let latency_us = record["metrics"]["L/40000.000/L"]["value"].as_f64().unwrap();
    assert!((20_000.0..80_000.0).contains(&latency_us), "{latency_us}");
    assert_eq!(record["workload"]["name"], "papers-loggp");
}

#[test]
fn live_system_and_world_stand_side_by_side() {
    let out = tempfile::tempdir().unwrap();
    let (path, report) = (out.path().join("record.json"), out.path().join("report.html"));
    let mut command = nfskit(["papers", "sensitivity", "--quick", "--time", "200ms"]);
    command.arg("--json").arg(&path).arg("--out").arg(&report);
    let finished = Program::start(&mut command).finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    for part in ["against L", "saturation against o", "1/(S + k o), live", "1.25 MB/s", "differ"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let record = read(&path);
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    for name in ["o/580.000/live", "o/580.000/world", "world/service_us", "G/800.000/world"] {
        assert!(value(name) > 0.0, "{name}: {record}");
    }
    // Twice 4 ms, whatever else goes on.
    assert!(value("L/4000.000/live") > 8_000.0, "{record}");
    assert!(value("L/4000.000/world") > 8_000.0, "{record}");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("<svg") && !page.contains("<script"));
}

#[test]
fn somebody_elses_server_is_left_clean() {
    let served = Served::folder(&["--metadata-sync", "never"]);
    for (name, options) in [
        ("loggp", &["--only", "g", "--point-time", "10ms"][..]),
        ("sensitivity", &["--time", "200ms"][..]),
    ] {
        let mut command = nfskit(["papers", name, "--quick", "--target", &served.url()]);
        let finished = Program::start(command.args(options)).finish();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        assert_eq!(served.left_behind(), [] as [String; 0], "{name}");
    }
    served.stop();
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
    refused(&["papers", "sensitivity", "--repeats", "0"], &["--repeats", "1..=100"]);
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
