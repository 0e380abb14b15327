//! `nfskit model predict`, `infer`, `fit`, `whatif`: files in, tables and records out.

use std::path::PathBuf;

use crate::program::run;

struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn with(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// A published curve: SPECsfs97 report 20000905-00194.
const F840: &str = "throughput_per_s response_ms
3037 1.1\n6071 1.3\n9135 1.4\n13147 1.2\n16242 1.3
18983 1.4\n21771 1.9\n24532 2.0\n27650 2.4\n30555 3.5\n";

#[test]
fn a_published_curve_tells_its_server_and_its_overall_response_time() {
    let files = Files::new();
    let curve = files.with("f840.txt", F840);
    let finished = run(["model", "infer", &curve, "--cpus", "2", "--disks", "76"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["overall response time 1.559 ms", "by the processor", "cache", "typical error"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let json = run(["model", "infer", &curve, "--cpus", "2", "--disks", "76", "--json", "-"]);
    let record: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let cpu = &record["metrics"]["cpu"];
    assert_eq!(cpu["unit"], "us");
    assert!((60.0..68.0).contains(&cpu["value"].as_f64().unwrap()), "{cpu}");
    assert!(cpu["ci95"].is_array());
}

#[test]
fn a_change_is_answered_by_formula_and_by_mean_value_analysis() {
    let files = Files::new();
    let curve = files.with("f840.txt", F840);
    let known = ["--cpus", "2", "--disks", "76", "--callers", "96"];
    let finished = run([&["model", "whatif", &curve, "L+1ms"], &known[..]].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["open    after", "closed  after", "by the processor"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let foreign = run([&["model", "whatif", &curve, "wsize=1M"], &known[..]].concat());
    assert_eq!(foreign.code, Some(2));
    assert!(foreign.stderr.contains("wsize is not part of this model"), "{foreign:?}");
    let unread = run(["model", "whatif", &curve, "L=5"]);
    assert_eq!(unread.code, Some(2));
    assert!(unread.stderr.contains("time with a unit"), "{unread:?}");
}

#[test]
fn a_sweep_is_explained() {
    let files = Files::new();
    let sweep = files.with(
        "sweep.txt",
        "outstanding throughput_per_s\n1 1980\n2 3890\n4 7600\n8 14000\n16 22500\n32 24800\n",
    );
    let finished = run(["model", "fit", &sweep]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("saturation 24"), "{finished:?}");
}

#[test]
fn parameters_make_a_curve() {
    let finished = run([
        "model",
        "predict",
        "--cpu",
        "900us",
        "--disks",
        "24",
        "--disk",
        "12ms",
        "--cache",
        "128000000",
        "--delay",
        "3400us",
        "--callers",
        "24",
    ]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("saturation 1111.1 calls/s, by the processor"));
    assert!(finished.stdout.contains("with 24 callers"));
}

#[test]
fn a_bad_file_is_told_by_its_row_and_reason() {
    let files = Files::new();
    for (text, why) in [
        ("", "0 load points"),
        ("100 1\n200 2\n", "row 1: the heading has to name two columns with their units"),
        ("throughput_per_s response_ms\n100 1\n90 2\n", "row 3: the throughput of 90 a second"),
        ("throughput_per_s response_ms\n100 1\n200 -2\n", "row 3: the response time is -2000"),
        ("throughput_per_s response_ms\n100 1\nNaN 2\n", "row 3: the throughput is NaN"),
    ] {
        let finished = run(["model", "infer", &files.with("bad.txt", text)]);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.contains(why), "no {why:?} in {finished:?}");
    }
    let few = files.with("few.txt", "throughput_per_s response_ms\n100 1\n200 2\n");
    let finished = run(["model", "infer", &few, "--disks", "1"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("2 values for 4 parameters"), "{finished:?}");
}
