//! Commands that measure a disk without a write log and with one, side by side.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Finished, run};

/// A directory to serve, and where a log can be; none, loudly, where there can be none.
fn places() -> Option<tempfile::TempDir> {
    let places = tempfile::tempdir().unwrap();
    fs::create_dir(places.path().join("data")).unwrap();
    let is_memory = rustix::fs::statfs(places.path()).unwrap().f_type == 0x0102_1994;
    if !rustix::process::geteuid().is_root() || is_memory {
        eprintln!("SKIPPED: a log beside none needs root and a disk");
        return None;
    }
    Some(places)
}

fn with_log(places: &Path, command: &[&str]) -> Finished {
    let (data, log) = (places.join("data"), places.join("log"));
    let both = ["--store", data.to_str().unwrap(), "--write-log", log.to_str().unwrap()];
    run([command, &both].concat())
}

fn nothing_is_left(places: &Path) {
    assert!(fs::symlink_metadata(places.join("log")).is_err());
    assert_eq!(fs::read_dir(places.join("data")).unwrap().count(), 0);
}

/// Short runs on a machine that does other things: what that does to them is a warning, no fault.
fn record(finished: &Finished) -> Value {
    assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn a_curve_has_both_servers_and_leaves_neither() {
    let Some(places) = places() else { return };
    let quick = ["--time=200ms", "--warm-up=50ms", "--file-set-max=64K", "--loads=50"];
    let curve = [&["bench", "curve", "--mix=WRITE", "--json=-"], &quick[..]].concat();
    let records = record(&with_log(places.path(), &curve));
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 2);
    for (record, name) in records.iter().zip(["without a write log", "with a write log"]) {
        assert!(record.to_string().contains(name), "{record}");
    }
    nothing_is_left(places.path());
    // What is there is not overwritten.
    let log = places.path().join("log");
    fs::write(&log, "somebody's").unwrap();
    with_log(places.path(), &curve).complains(3, &["is there already", "a new name"]);
    assert_eq!(fs::read(&log).unwrap(), b"somebody's");
}

#[test]
fn a_study_has_the_gain_of_a_log_beside_what_was_predicted() {
    let Some(places) = places() else { return };
    let out = places.path().join("out");
    let study = ["study", "--quick", "--json=-", "-q", "--out", out.to_str().unwrap()];
    let record = record(&with_log(places.path(), &study));
    let metric = |name: &str| record["metrics"][name]["value"].as_f64();
    assert!(metric("log/write_us").is_some_and(|us| us > 0.0), "{record}");
    for outstanding in [1, 4, 16, 64] {
        for what in ["without_per_s", "with_per_s", "gain", "gain_predicted"] {
            let name = format!("log/{outstanding}/{what}");
            assert!(metric(&name).is_some_and(|value| value > 0.0), "{name} in {record}");
        }
    }
    nothing_is_left(places.path());
}
