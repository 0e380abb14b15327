//! `nfskit bench tasks` as a user runs it.

use rustix::process::Signal;

use crate::program::{Program, appears, names, nfskit, run, scratch_appears};
use crate::served::Served;

fn lines<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    text.lines().filter(|line| words.iter().all(|word| line.contains(word))).collect()
}

#[test]
fn tasks_on_two_servers_and_their_clients() {
    let (first, second) = (Served::folder(&[]), Served::memory(&[]));
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("tasks.csv");
    let json = folder.path().join("tasks.json");
    let mut command = nfskit(["bench", "tasks", "--tasks", "2,5", "--size", "64K"]);
    command.args(["--repeats", "2", "--clients", "2", "--alone", "--files", "same,ten"]);
    command.args(["--target", &first.url(), "--target", &second.url()]);
    command.arg("--csv").arg(&csv).arg("--json").arg(&json);
    let finished = Program::start(&mut command).finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(lines(&finished.stdout, &["the same file each time"]).len(), 1);
    assert_eq!(lines(&finished.stdout, &["another file each time"]).len(), 1);
    assert_eq!(lines(&finished.stdout, &["3 on A alone"]).len(), 2, "{finished:?}");
    assert_eq!(lines(&finished.stdout, &["target B", "2 clients", "loss of power"]).len(), 1);
    let csv = std::fs::read_to_string(csv).unwrap();
    // Both kinds of files, twice each: 2 and 5 tasks together, and the same of each by itself.
    assert_eq!(csv.lines().count(), 1 + 2 * 2 * (2 + 5) * 2);
    let json = std::fs::read_to_string(json).unwrap();
    let records: serde_json::Value = serde_json::from_str(&json).unwrap();
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 12);
    for record in records {
        assert!(record["metrics"]["sum_mbit_per_s"]["value"].as_f64().unwrap() > 0.0);
        let runs = record["task_seconds"].as_array().unwrap();
        let tasks = record["workload"]["parameters"]["tasks"].as_u64().unwrap();
        assert!(runs.iter().all(|run| run.as_array().unwrap().len() as u64 == tasks));
    }
    for served in [first, second] {
        assert_eq!(served.left_behind(), [] as [String; 0]);
        served.stop();
    }
}

#[test]
fn a_sweep_in_a_directory_is_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let sweep = ["--sweep", "8K:32K:8K", "--tasks", "2", "--repeats", "1", "--sync"];
    let finished = run(["bench", "tasks", "--dir", at].into_iter().chain(sweep));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let table = ["8 KiB", "16 KiB", "24 KiB", "32 KiB"];
    for length in table {
        let rows = lines(&finished.stdout, &[length]);
        assert!(rows.iter().any(|row| row.trim_start().starts_with("2 ")), "{finished:?}");
    }
    assert_eq!(lines(&finished.stdout, &["growing length", "flushed"]).len(), 1);
    assert_eq!(names(dir.path()), [] as [String; 0]);
}

#[test]
fn too_little_space_is_reported_before_with_the_number_needed() {
    let served = Served::memory(&["--mem-size", "64M"]);
    let url = served.url();
    let large = ["bench", "tasks", "--size", "32M", "--files", "ten"];
    let finished = run(large.into_iter().chain(["--target", &url]));
    // 20 tasks, 10 files of 32 MiB each, and 1 MiB besides.
    finished.complains(3, &["6711934976 bytes are needed", "fewer --tasks"]);
    assert_eq!(served.left_behind(), [] as [String; 0]);
    served.stop();
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let finished = run(["bench", "tasks", "--dir", at, "--size", "1T"]);
    finished.complains(3, &["bytes are needed there", "free space there"]);
    let finished = run(["bench", "tasks", "--dir", "/nowhere/at/all"]);
    finished.complains(3, &["/nowhere/at/all", "a directory that exists"]);
}

#[test]
fn an_export_for_reading_only_is_reported() {
    let served = Served::folder(&["--ro"]);
    let finished = run(["bench", "tasks", "--target", &served.url(), "--tasks", "1"]);
    finished.complains(3, &["MKDIR", "NFS3ERR_ROFS", "a writable export"]);
    served.stop();
}

#[test]
fn a_server_that_goes_leaves_what_was_measured() {
    let served = Served::folder(&[]);
    let mut command = nfskit(["bench", "tasks", "--target", &served.url(), "--size", "64K"]);
    command.args(["--tasks", "1,4", "--repeats", "1", "--times", "2000", "--reply-limit", "2s"]);
    let program = Program::start(&mut command);
    // The first row is done when four tasks begin.
    appears(&scratch_appears(served.path()), |name| name == "task003");
    served.program.signal(Signal::KILL);
    let finished = program.finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("what was measured before is recorded"), "{finished:?}");
    assert_eq!(lines(&finished.stdout, &["PARTIAL"]).len(), 1, "{finished:?}");
}

#[test]
fn an_interrupt_leaves_nothing() {
    let served = Served::folder(&[]);
    let dir = tempfile::tempdir().unwrap();
    let mut command = nfskit(["bench", "tasks", "--target", &served.url(), "--size", "64M"]);
    command.arg("--dir").arg(dir.path()).args(["--tasks", "4", "--repeats", "1000"]);
    let program = Program::start(&mut command);
    appears(&scratch_appears(dir.path()), |name| name == "task001");
    program.signal(Signal::INT);
    program.finish().was_interrupted();
    assert_eq!(names(dir.path()), [] as [String; 0]);
    served.stop();
}
