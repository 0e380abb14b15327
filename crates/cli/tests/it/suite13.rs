//! `nfskit bench suite13` as a user runs it.

use std::path::Path;

use rustix::process::Signal;

use crate::mount::can_mount;
use crate::program::{Finished, Program, appears, names, nfskit, run, scratch_appears};
use crate::served::Served;

fn on(places: &[String], words: &str) -> Finished {
    let mut command = nfskit(["bench", "suite13", "--compare"]);
    command.args(places).args(words.split_whitespace());
    Program::start(&mut command).finish()
}

fn local(dir: &Path) -> String {
    format!("local={}", dir.display())
}

/// Where our mounts of a run would be.
fn is_mounted(url: &str) -> bool {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(url)
}

#[test]
fn a_directory_alone_and_four_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let json = tempfile::NamedTempFile::new().unwrap();
    let csv = tempfile::NamedTempFile::new().unwrap();
    let words = format!(
        "--scale 0.02 --repeats 2 --test 1,2,3,4,6,7,8,9,10,11,12,13 --json {} --csv {}",
        json.path().display(),
        csv.path().display()
    );
    let finished = on(&[local(dir.path())], &words);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    for part in ["alone; seconds", "4 copies at once", " 13 small reads and writes*", "seed 1"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let json = std::fs::read_to_string(json.path()).unwrap();
    let records: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(records.as_array().unwrap().len(), 2);
    assert_eq!(records[1]["workload"]["parameters"]["copies"], 4);
    assert_eq!(records[1]["workload"]["parameters"]["scale"], 0.02);
    let runs = records[1]["tests"]["test_13"]["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["copies_s"].as_array().unwrap().len() == 4), "{runs:?}");
    // Nobody counts calls there.
    assert!(runs[0].get("calls").is_none());
    let csv = std::fs::read_to_string(csv.path()).unwrap();
    assert_eq!(csv.lines().count(), 1 + 12 * 2 * 2);
    assert_eq!(names(dir.path()), [] as [String; 0]);
}

#[test]
fn our_mount_beside_a_directory() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let dir = tempfile::tempdir().unwrap();
    let json = tempfile::NamedTempFile::new().unwrap();
    let words = format!("--scale 0.02 --repeats 1 --copies 1,2 --json {}", json.path().display());
    let places = [local(dir.path()), format!("ours={}", served.url())];
    let finished = on(&places, &words);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert!(finished.stdout.contains("calls       of ours, counted by our client"));
    let json = std::fs::read_to_string(json.path()).unwrap();
    let records: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(records.as_array().unwrap().len(), 4);
    let ours = &records[2];
    assert_eq!(ours["target"]["name"], "ours");
    assert_eq!(ours["target"]["durability"], "stable");
    let calls = |test: &str, procedure: &str| {
        let calls = &ours["tests"][test]["runs"][0]["calls"];
        calls.get(procedure).map_or(0, |calls| calls.as_u64().unwrap())
    };
    // Three directories in the small hierarchy; a file that was just read is not read again.
    assert_eq!(calls("test_1", "MKDIR"), 3);
    assert!(calls("test_8", "READ") > 0);
    assert_eq!(calls("test_9", "READ"), 0);
    assert!(calls("test_6", "CREATE") > 0);
    assert!(!is_mounted(&served.url()));
    assert_eq!(names(dir.path()), [] as [String; 0]);
    served.stop();
}

#[test]
fn writing_tests_are_compared_only_where_what_is_written_survives_the_same() {
    let (disk, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm"));
    let Ok(memory) = memory else { return };
    let places = [local(disk.path()), format!("memory={}", memory.path().display())];
    let words = "--scale 0.02 --repeats 1 --copies 1 --test 8,12";
    let finished = on(&places, words);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stdout.contains("local and memory are not compared")
            || finished.stdout.contains("memory and local are not compared"),
        "{finished:?}"
    );
    let ratios = |finished: &Finished| {
        let row = |name: &str| finished.stdout.lines().find(|line| line.contains(name)).unwrap();
        [" x", " x"]
            .iter()
            .zip(["read a big file", "small writes"])
            .map(|(mark, name)| row(name).contains(mark))
            .collect::<Vec<bool>>()
    };
    assert_eq!(ratios(&finished), [true, false], "{finished:?}");
    let finished = on(&places, &format!("{words} --mix-durability"));
    assert_eq!(ratios(&finished), [true, true], "{finished:?}");
}

#[test]
fn what_cannot_be_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let here = local(dir.path());
    let usage = |words: &[&str], part: &str| {
        let finished = run(["bench", "suite13"].iter().chain(words));
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.contains(part), "{finished:?}");
    };
    usage(&["--compare", "/tmp"], "NAME=PATH");
    usage(&["--compare", &here, "--test", "14"], "they are 1 to 13");
    usage(&["--compare", &here, "--scale", "0"], "between 0.01 and 10");
    usage(&["--compare", &here, &here], "two places are called local");
    usage(&["--compare", &here, "--drop-caches", "--caches", "warm"], "--caches cold");
    usage(&[], "--compare");
    on(&["a=/nowhere/at/all".to_owned()], "").complains(3, &["/nowhere/at/all"]);
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    on(&[format!("a={}", file.display())], "").complains(3, &["not a directory"]);
    std::fs::remove_file(file).unwrap();
    on(std::slice::from_ref(&here), "--scale 10 --copies 64000").complains_of_usage();
    assert_eq!(names(dir.path()), [] as [String; 0]);
}

impl Finished {
    fn complains_of_usage(&self) {
        assert_eq!(self.code, Some(2), "{self:?}");
    }
}

#[test]
fn too_little_space_is_reported_before_with_the_number_needed() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&["--mem-size", "20M"]);
    let finished = on(&[format!("ours={}", served.url())], "--repeats 1");
    finished.complains(3, &["bytes are needed there", "fewer --copies"]);
    assert!(!is_mounted(&served.url()));
    assert_eq!(served.left_behind(), [] as [String; 0]);
    served.stop();
}

#[test]
fn a_server_that_goes_leaves_what_was_measured_and_no_mount() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let dir = tempfile::tempdir().unwrap();
    let mut command = nfskit(["bench", "suite13", "--repeats", "100", "--copies", "1"]);
    command.args(["--scale", "0.02", "--test", "1,8", "-o", "timeo=5,retrans=1"]);
    let places = [local(dir.path()), format!("ours={}", served.url())];
    let program = Program::start(command.arg("--compare").args(places));
    // The warm-up is runs 1 and 2; the eighth is this place in the third repetition.
    appears(&scratch_appears(served.path()), |name| name == "run8-copy1");
    served.program.signal(Signal::KILL);
    let finished = program.finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("what was measured before is recorded"), "{finished:?}");
    assert!(finished.stdout.contains("PARTIAL"), "{finished:?}");
    assert!(!is_mounted(&served.url()));
    assert_eq!(names(dir.path()), [] as [String; 0]);
}

#[test]
fn an_interrupt_leaves_what_was_measured_and_nothing_else() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let mut command = nfskit(["bench", "suite13", "--repeats", "100", "--scale", "0.05"]);
    let program = Program::start(command.args(["--compare", &format!("ours={}", served.url())]));
    appears(&scratch_appears(served.path()), |name| name == "run3-copy2");
    program.signal(Signal::INT);
    // One copy has done all tests by then.
    assert!(program.finish().was_interrupted());
    assert!(!is_mounted(&served.url()));
    served.stop();
}

#[test]
fn a_mount_with_a_cache_beside_one_without() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let json = tempfile::NamedTempFile::new().unwrap();
    let words = format!(
        "--cached kept={} --scale 0.02 --repeats 3 --copies 1 --test 4,8,9,11 --json {}",
        cache.path().display(),
        json.path().display()
    );
    let (ours, cached) = (format!("ours={}", served.url()), format!("kept={}", served.url()));
    let finished = on(&[local(dir.path()), ours.clone(), cached.clone()], &words);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let json = std::fs::read_to_string(json.path()).unwrap();
    let records: serde_json::Value = serde_json::from_str(&json).unwrap();
    // The median of three: how far is read ahead depends on whether the reader had to wait.
    let reads = |record: usize, test: &str| {
        let runs = records[record]["tests"][test]["runs"].as_array().unwrap();
        let of = |run: &serde_json::Value| run["calls"]["READ"].as_u64().unwrap_or(0);
        let mut counts: Vec<u64> = runs.iter().map(of).collect();
        counts.sort_unstable();
        assert_eq!(counts.len(), 3, "{test}: {json}");
        counts
    };
    for test in ["test_4", "test_8", "test_9", "test_11"] {
        assert!(reads(2, test)[1] <= reads(1, test)[1], "{test}: {json}");
    }
    assert_eq!(reads(2, "test_9"), [0; 3], "reading again");
    let verified = run(["cache", "verify", cache.path().to_str().unwrap()]);
    assert!(verified.stdout.starts_with("whole: "), "{verified:?}");
    let lost = on(&[ours, cached], "--cached lost=/tmp/x");
    lost.complains(2, &["--cached lost=", "no server"]);
    served.stop();
}
