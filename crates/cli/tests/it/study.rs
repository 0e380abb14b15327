//! What a study leaves: a record with every number we promise, a report, a short summary.

use std::path::Path;

use load::study::{Plan, WINDOWS};
use serde_json::Value;

use crate::program::{Finished, names, run};
use crate::served::Served;

/// Metrics of every study besides those of each window.
const METRICS: [&str; 11] = [
    "t_prop_us",
    "t_ser_us_per_kib",
    "t_op_us",
    "t_b_us",
    "best_window",
    "model_error_pct_median",
    "model_error_pct_worst",
    "limit_mib_per_s",
    "efficiency_of_limit",
    "predicted_gain",
    "measured_gain",
];

fn study(out: &Path, options: &[&str]) -> Finished {
    let out = out.to_str().unwrap();
    run([&["study", "--quick", "--out", out], options].concat())
}

/// Asserts that the record has all promised metrics, finite and with a unit.
#[track_caller]
fn has_every_metric(record: &str) {
    let record: Value = serde_json::from_str(record).unwrap();
    assert_eq!(record["schema"], "nfskit.run/1");
    let of_windows = ["throughput_mib_per_s", "predicted_mib_per_s"].map(|name| {
        let of_window = move |n: usize| format!("{name}_n{n}");
        WINDOWS.map(of_window)
    });
    let names = of_windows.into_iter().flatten().chain(METRICS.map(str::to_owned));
    for name in names {
        let metric = &record["metrics"][&name];
        let value = metric["value"].as_f64();
        assert!(value.is_some_and(f64::is_finite), "{name}: {metric}");
        assert!(metric["unit"].is_string(), "{name}: {metric}");
    }
    let positive = ["t_prop_us", "best_window", "limit_mib_per_s", "measured_gain"];
    for name in positive.map(str::to_owned).into_iter().chain(["throughput_mib_per_s_n1".into()]) {
        assert!(record["metrics"][&name]["value"].as_f64() > Some(0.0), "{name}");
    }
    let n64 = WINDOWS[WINDOWS.len() - 1];
    assert_eq!(n64, 64, "the promised names end with n64");
}

/// Asserts that the folder holds what a study writes, and a whole page among it.
#[track_caller]
fn has_a_report(out: &Path) {
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
    assert!(html.contains("<svg"), "a report without a figure");
    assert!(!html.contains("http://") || !html.contains("<script src"), "it stands alone");
    let calls = std::fs::read_to_string(out.join("calls.csv")).unwrap();
    assert!(calls.lines().count() > 1_000, "every call is in calls.csv");
}

#[test]
fn a_study_in_a_directory_of_the_users_leaves_nothing_there_and_prints_its_record_alone() {
    let (out, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(store.path().join("precious"), "data").unwrap();
    let store_option = ["--store", store.path().to_str().unwrap()];
    let finished = study(out.path(), &[&["--json", "-", "-q"][..], &store_option].concat());
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(names(store.path()), ["precious"]);
    has_every_metric(&finished.stdout);
    says_how_often_the_ceiling_was_measured(&finished.stdout);
    has_a_report(out.path());
    has_every_metric(&std::fs::read_to_string(out.path().join("run.json")).unwrap());
}

/// Once beside each application of the recommendation, however often blocks were synced before.
#[track_caller]
fn says_how_often_the_ceiling_was_measured(record: &str) {
    let record: Value = serde_json::from_str(record).unwrap();
    let ceiling = &record["metrics"]["storage_mib_per_s"];
    assert_eq!(ceiling["n"].as_u64(), Some(Plan::QUICK.applications as u64), "{ceiling}");
}

#[test]
fn a_study_of_a_server_prints_a_short_summary_and_the_way_to_the_report() {
    let (out, served) = (tempfile::tempdir().unwrap(), Served::folder(&[]));
    // A folder that has to be made first.
    let folder = out.path().join("a/b");
    let record = out.path().join("record.json");
    let options = ["--target", &served.url(), "--json", record.to_str().unwrap()];
    let finished = study(&folder, &options);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!((5..=40).contains(&lines.len()), "{}", finished.stdout);
    assert_eq!(lines.last().copied(), folder.join("report.html").to_str());
    assert!(lines.iter().all(|line| line.chars().count() <= 120), "{}", finished.stdout);
    assert!(!finished.stdout.contains('\u{1b}'), "no colours in a pipe");
    has_one_gain(&lines.join(" "));
    has_a_report(&folder);
    has_every_metric(&std::fs::read_to_string(record).unwrap());
    served.stop();
}

/// What the sentence says was measured is what the facts below it have, to the place that it shows.
fn has_one_gain(text: &str) {
    let between =
        |begin: &str, end: &str| text.split_once(begin)?.1.split_once(end)?.0.parse().ok();
    let fact: f64 = between("measured gain: ", " x").unwrap();
    // Runs that differ much, or no gain, have no number there.
    let sentence: Option<f64> = between("measured ", " times");
    assert!(sentence.is_none_or(|gain| (gain - fact).abs() <= 0.0501), "{text}");
}

#[test]
fn a_folder_that_cannot_be_made_is_found_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("out");
    study(&below, &[]).complains(3, &["cannot write", below.to_str().unwrap(), "directories only"]);
    study(&file, &[]).complains(3, &["cannot write", file.to_str().unwrap(), "another name"]);
}

#[test]
fn a_store_that_is_no_directory() {
    let folder = tempfile::tempdir().unwrap();
    let (file, absent) = (folder.path().join("file"), folder.path().join("absent"));
    std::fs::write(&file, "").unwrap();
    for (store, why) in [(&file, "Not a directory"), (&absent, "No such file")] {
        let store = store.to_str().unwrap();
        let finished = study(&folder.path().join("out"), &["--store", store]);
        finished.complains(3, &[store, why]);
    }
}

#[test]
fn a_record_that_cannot_be_written_is_reported_before_anything_is_measured() {
    let (out, served) = (tempfile::tempdir().unwrap(), Served::folder(&[]));
    let record = out.path().join("absent/record.json");
    let record = record.to_str().unwrap();
    let bench = ["bench", "seqwrite", "--wire", "--size", "4M", "--target", &served.url()];
    let finished = run([&bench[..], &["--json", record]].concat());
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(finished.stdout, "");
    assert!(finished.stderr.starts_with(&format!("nfskit: cannot write {record}: ")));
    assert!(finished.stderr.contains("\n   try: "), "{finished:?}");
    served.stop();
}

#[test]
fn a_benchmark_writes_its_record() {
    let served = Served::folder(&[]);
    let url = served.url();
    let bench = [
        "bench",
        "seqwrite",
        "--wire",
        "--size",
        "4M",
        "--call",
        "64K",
        "--repeats",
        "2",
        "--target",
        &url,
    ];
    let finished = run([&bench[..], &["--json", "-"]].concat());
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let record: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(record["workload"]["name"], "seqwrite");
    assert!(record["metrics"]["throughput_mib_per_s"]["value"].as_f64() > Some(0.0));
    let finished = run(bench);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("128 calls"), "{finished:?}");
    served.stop();
}

#[test]
fn a_directory_is_studied_as_programs_see_it_and_nothing_is_left_in_it() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ran = study(out.path(), &["--dir", dir.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    has_a_report(out.path());
    let record = std::fs::read_to_string(out.path().join("run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["target"]["kind"], "directory");
    for name in [
        "create_us",
        "stat_known_us",
        "write_stable_8k_us",
        "write_stable_mib_per_s_n16",
        "read_mib_per_s_n1",
        "file_flushed_mib_per_s",
        "file_reread_mib_per_s",
    ] {
        let value = record["metrics"][name]["value"].as_f64();
        assert!(value.is_some_and(|value| value > 0.0), "{name}: {record}");
    }
    // What one program and two refute is not predicted.
    let predicted = record["metrics"]["predicted_write_stable_mib_per_s_n16"]["value"].as_f64();
    assert!(predicted.is_none_or(|value| value > 0.0), "{record}");
    let calls = std::fs::read_to_string(out.path().join("calls.csv")).unwrap();
    assert!(calls.contains("\nwrite_stable_n16,1,"), "two repetitions of every number");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "its scratch directory");
}

#[test]
fn a_directory_that_is_none_is_reported_before_anything_is_done() {
    let out = tempfile::tempdir().unwrap();
    let ran = study(out.path(), &["--dir", "/no/such/directory"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("/no/such/directory"), "{ran:?}");
}
