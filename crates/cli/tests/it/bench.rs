//! Benchmarks of directories: what they print and record, and what they leave.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Program, appears, names, nfskit, run};
use crate::served::Served;

fn seqwrite(dir: &std::path::Path) -> std::process::Command {
    let mut command = nfskit(["bench", "seqwrite", "--repeats", "2", "--dir"]);
    command.arg(dir);
    command
}

#[test]
fn a_write_of_files_is_recorded_with_its_three_throughputs_and_every_call() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let csv = out.path().join("calls.csv");
    let mut command = seqwrite(dir.path());
    command.args(["--size", "256K", "--json", "-", "--latencies"]).arg(&csv);
    let finished = Program::start(&mut command).finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let record: Value = serde_json::from_str(&finished.stdout).unwrap();
    let metric = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    assert!(metric("written_mib_per_s") >= metric("closed_mib_per_s"));
    assert!(metric("flushed_mib_per_s") > 0.0);
    assert_eq!(record["workload"]["parameters"]["call_bytes"], 8192);
    let csv = std::fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 32, "{csv}");
    assert_eq!(names(dir.path()), [] as [String; 0]);
}

#[test]
fn two_places_and_two_lengths_stand_side_by_side() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let record = other.path().join("records.json");
    let mut command = seqwrite(dir.path());
    command.arg("--dir").arg(other.path()).args(["--size", "64K,128K", "--json"]).arg(&record);
    let finished = Program::start(&mut command).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["64 KiB in 8 calls of 8 KiB", "128 KiB in 16 calls", "of the first", "write()"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let records: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 4);
    assert!(records[0]["metrics"]["written_ratio_to_first"].is_null());
    assert!(records[3]["metrics"]["written_ratio_to_first"]["value"].as_f64() > Some(0.0));
}

#[test]
fn a_server_stands_beside_a_directory_and_is_left_clean() {
    let (dir, served) = (tempfile::tempdir().unwrap(), Served::folder(&[]));
    let mut command = seqwrite(dir.path());
    command.args(["--size", "1M", "--target", &served.url(), "--json", "-"]);
    let finished = Program::start(&mut command).finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let records: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(records[1]["target"]["url"], served.url());
    assert!(records[1]["metrics"]["written_ratio_to_first"]["value"].as_f64() > Some(0.0));
    assert_eq!(served.left_behind(), [] as [String; 0]);
    served.stop();
    let full = Served::memory(&["--mem-size", "8M"]);
    let mut command = nfskit(["bench", "seqwrite", "--target", &full.url()]);
    let finished = Program::start(&mut command).finish();
    finished.complains(3, &[&full.url(), "105906176 bytes are needed there"]);
    assert_eq!(full.left_behind(), [] as [String; 0]);
    full.stop();
}

#[test]
fn what_cannot_be_written_is_reported_before_it_is_tried() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    let finished = Program::start(seqwrite(&absent).args(["--size", "8K"])).finish();
    finished.complains(3, &["absent", "No such file", "a directory that exists"]);
    let file = dir.path().join("file");
    std::fs::write(&file, "data").unwrap();
    let finished = Program::start(seqwrite(&file).args(["--size", "8K"])).finish();
    finished.complains(3, &["is not a directory"]);
    let finished = Program::start(seqwrite(dir.path()).args(["--size", "4000T", "--call", "1G"]));
    finished.finish().complains(3, &["bytes are needed there", "are free"]);
    let finished = Program::start(seqwrite(dir.path()).args(["--size", "1T"])).finish();
    finished.complains(2, &["134217728 calls", "16777216", "a larger --call"]);
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn an_interrupted_benchmark_leaves_no_file() {
    for bench in [&["seqwrite", "--size", "64M", "--repeats", "1000"][..], &["fsx"]] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = nfskit(["bench"]);
        command.args(bench).arg("--dir").arg(dir.path());
        let running = Program::start(&mut command);
        appears(dir.path(), |name| name.starts_with(".nfskit-scratch-"));
        running.signal(Signal::INT);
        let finished = running.finish();
        assert_eq!(finished.code, Some(130), "{finished:?}");
        let left: Vec<String> = names(dir.path());
        // An exercise that did not come to its end keeps nothing either.
        assert_eq!(left, [] as [String; 0], "{bench:?}");
    }
}

#[test]
fn an_exercise_passes_on_this_machines_file_system() {
    let dir = tempfile::tempdir().unwrap();
    let dir_name = dir.path().to_str().unwrap();
    let fsx = ["bench", "fsx", "--dir", dir_name, "--seed", "7", "--ops", "300", "--files", "2"];
    let finished = run(fsx);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    for part in ["seed 7", "600 operations", "every byte as it should be"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    assert_eq!(names(dir.path()), [] as [String; 0]);
}

/// The file is left, and the operations and the way to see it again are reported.
#[test]
fn an_exercise_finds_what_another_writes_into_its_file() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("a folder");
    std::fs::create_dir(&dir).unwrap();
    let mut command = nfskit(["bench", "fsx", "--seed", "3", "--ops", "100000000", "--dir"]);
    let running = Program::start(command.arg(&dir));
    appears(&dir, |name| name.starts_with(".nfskit-scratch-"));
    let is_over = AtomicBool::new(false);
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for name in names(&dir) {
                    // It is renamed meanwhile.
                    if let Ok(file) = File::options().write(true).open(dir.join(name)) {
                        file.write_all_at(b"not what was written", 5_000).unwrap();
                    }
                }
            }
        });
        let finished = running.finish();
        is_over.store(true, Ordering::Relaxed);
        finished
    });
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let again = format!("nfskit bench fsx --dir '{}' --seed 3 --ops ", dir.display());
    for part in ["operation ", "the file is left", &again] {
        assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
    }
    assert_eq!(names(&dir).len(), 1);
}

#[test]
fn records_of_two_places_are_compared_number_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let record = |name: &str, rate: f64, seconds: f64| {
        let path = folder.path().join(name);
        let json = serde_json::json!({
            "schema": "nfskit.run/1",
            "tool": {"version": "0"},
            "started": "2026-01-01T00:00:00Z",
            "target": {"kind": "server", "url": format!("nfs://{name}/x")},
            "workload": {"name": "basic"},
            "metrics": {
                "write_bytes_per_s": {"value": rate, "unit": "B/s", "better": "larger"},
                "create_s": {"value": seconds, "unit": "s", "better": "smaller"},
                "elapsed_s": {"value": seconds, "unit": "s"},
            },
        });
        std::fs::write(&path, json.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let fast = [record("a1", 200.0, 1.0), record("a2", 202.0, 1.01)];
    let slow = [record("b1", 100.0, 2.0), record("b2", 101.0, 2.02)];
    let alike = [record("c1", 201.0, 1.01), record("c2", 201.5, 1.0)];
    let compare = |first: &[String; 2], second: &[String; 2]| {
        let words = ["bench", "compare", "--first", &first[0], &first[1]];
        run([&words[..], &["--second", &second[0], &second[1]]].concat())
    };
    for (first, second, compared) in [
        (&fast, &slow, "compared    A is faster by 2 of 2 numbers, B by none"),
        (&slow, &fast, "compared    B is faster by 2 of 2 numbers, A by none"),
        (&fast, &alike, "compared    A and B cannot be distinguished by any of 2 numbers"),
    ] {
        let finished = compare(first, second);
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        let last = finished.stdout.lines().last().unwrap();
        assert!(last.starts_with(compared), "{finished:?}");
    }
    compare(&fast, &fast).complains(2, &["is a record of both places", "each record once"]);
    let absent = run(["bench", "compare", "--first", "no-such", "--second", &slow[0]]);
    absent.complains(3, &["no-such"]);
    let other = folder.path().join("other");
    std::fs::write(&other, "{}").unwrap();
    let other = other.to_str().unwrap();
    assert_eq!(run(["bench", "compare", "--first", other, "--second", &slow[0]]).code, Some(3));
}

/// Whoever owns it could put links in the place of files that root makes there by their paths.
#[test]
fn root_does_not_measure_in_a_directory_that_another_user_can_change() {
    if !rustix::process::geteuid().is_root() {
        return println!("NOT TESTED: only root gives a directory to another user");
    }
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("users");
    std::fs::create_dir(&dir).unwrap();
    std::os::unix::fs::chown(&dir, Some(27001), None).unwrap();
    let at = dir.to_str().unwrap();
    let compared = format!("a={at}");
    for words in [
        &["bench", "tasks", "--size", "64K", "--tasks", "1", "--dir", at][..],
        &["bench", "seqwrite", "--size", "64K", "--dir", at],
        &["bench", "storage", "--size", "64K", "--dir", at],
        &["bench", "fsx", "--ops", "10", "--dir", at],
        &["bench", "suite13", "--test", "1", "--compare", &compared],
        &["study", "--quick", "--dir", at],
    ] {
        let finished = run(words.iter().copied());
        finished.complains(3, &["root does not measure", "belongs to uid 27001", "sudo -u"]);
        assert_eq!(names(&dir), [] as [String; 0], "{words:?}");
    }
}
