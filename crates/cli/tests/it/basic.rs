//! The Connectathon suite's basic tests, and its logs: what they print, record, leave and refuse.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Finished, Program, appears, names, nfskit, run, scratch_appears};
use crate::served::{Served, url};

const NOTHING: [String; 0] = [];

fn basic(arguments: &[&str]) -> Command {
    let mut command = nfskit(["bench", "basic"]);
    command.args(arguments);
    command
}

fn finish(command: &mut Command) -> Finished {
    Program::start(command).finish()
}

fn in_dir(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = basic(arguments);
    command.arg("--dir").arg(dir);
    command
}

#[test]
fn our_server_passes_in_both_versions_over_both_transports() {
    let served = Served::folder(&["--udp"]);
    for arguments in ["", "&proto=udp", "&version=2", "&version=2&proto=udp"] {
        let target = format!("{}{arguments}", served.url());
        let finished = finish(&mut basic(&["-f", "--target", &target]));
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        for part in ["(arg: -f)", "created 6 files 6 directories 2 levels deep\n", "test9 ok."] {
            assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
        }
        assert_eq!(served.left_behind(), NOTHING);
    }
    served.stop();
}

/// Of the whole suite, a part that takes no minute on a disk that syncs.
#[test]
fn a_timed_run_prints_the_suites_lines_which_are_read_again() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let record = out.path().join("run.json");
    let finished = finish(in_dir(dir.path(), &["-t"]).arg("--json").arg(&record));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    for part in [
        "Starting BASIC tests: test directory ",
        "\n./test1: File and directory creation test\n\tcreated 155 files 62 directories 5 levels \
         deep in ",
        "\n\t20500 entries read, 200 files in ",
        "\t./test9 ok.\n\nCongratulations, you passed the basic tests!\n",
        "this program's own",
        "cache: the system's",
    ] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    assert_eq!(names(dir.path()), NOTHING);
    let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    assert_eq!((&record["passed"], &record["workload"]["name"]), (&true.into(), &"basic".into()));
    for name in ["create_s", "write_bytes_per_s", "readdir_per_s", "test9_own_s"] {
        assert!(record["metrics"][name]["value"].as_f64() > Some(0.0), "no {name} in {record}");
    }
    assert_eq!(record["lines"].as_array().unwrap().len(), 10);
    assert!(record["histograms"]["test4_operation"]["p99"].as_u64() > Some(0));

    let log = out.path().join("log");
    std::fs::write(&log, &finished.stdout).unwrap();
    let read = finish(basic(&["--read"]).arg(&log));
    assert_eq!((read.code, read.stderr.as_str()), (Some(0), ""), "{read:?}");
    let rows: Vec<&str> = read.stdout.lines().skip(1).collect();
    assert_eq!(rows.len(), 10);
    for (row, line) in rows.iter().zip(record["lines"].as_array().unwrap()) {
        assert!(row.contains(",plain,") && row.ends_with(",yes,yes"), "{row}, {line}");
    }
}

#[test]
fn numbers_are_taken_and_tests_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let some = ["--test", "9,6,1", "--files", "7", "--count", "3", "--levels", "2", "--dirs", "1"];
    let finished = finish(&mut in_dir(dir.path(), &some));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["created 14 files 2 directories 2 levels", "24 entries read, 7 files", "3 statfs"]
    {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    assert!(!finished.stdout.contains("test2"), "{finished:?}");
    assert_eq!(names(dir.path()), NOTHING);
}

#[test]
fn a_directory_that_is_worked_in_itself_keeps_what_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("precious"), "data").unwrap();
    let finished = finish(&mut in_dir(dir.path(), &["-f", "-n"]));
    finished.complains(3, &["is not empty", "precious", "-i"]);
    let finished = finish(&mut in_dir(dir.path(), &["-f", "-n", "-i"]));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(names(dir.path()), ["precious"]);
    for name in ["file.0", "bigfile", "dir.1", "newfile.2"] {
        std::fs::write(dir.path().join(name), "of an earlier run").unwrap();
    }
    let finished = finish(&mut in_dir(dir.path(), &["-f", "-n", "-i"]));
    finished.complains(3, &["bigfile, dir.1, file.0 and 1 more", "an earlier run", "without -n"]);
    assert_eq!(names(dir.path()).len(), 5);
    let served = Served::folder(&[]);
    std::fs::write(served.path().join("dir.3"), "x").unwrap();
    let finished = finish(&mut basic(&["-n", "--target", &served.url()]));
    finished.complains(3, &["dir.3", "an earlier run", &served.port().to_string()]);
    std::fs::remove_file(served.path().join("dir.3")).unwrap();
    let finished = finish(&mut basic(&["-f", "-n", "--target", &served.url()]));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(names(served.path()), NOTHING);
    served.stop();
}

#[test]
fn a_place_that_cannot_be_worked_in_is_reported_before_the_first_test() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    finish(&mut in_dir(&absent, &[])).complains(3, &["absent", "No such file", "that exists"]);
    let file = dir.path().join("file");
    std::fs::write(&file, "data").unwrap();
    finish(&mut in_dir(&file, &[])).complains(3, &["is not a directory"]);
    finish(&mut in_dir(dir.path(), &["--size", "4000T"])).complains(3, &["bytes are needed there"]);
    let full = Served::memory(&["--mem-size", "1536K"]);
    finish(&mut basic(&["--target", &full.url()])).complains(3, &["2097152 bytes are needed"]);
    full.stop();
    let read_only = Served::memory(&["--ro"]);
    for in_place in ["-n", "-f"] {
        let refused = finish(&mut basic(&[in_place, "--target", &read_only.url()]));
        refused.complains(3, &["NFS3ERR_ROFS", "a writable export"]);
    }
    let port = read_only.port();
    read_only.stop();
    let nobody = finish(&mut basic(&["--target", &url(port, "/")]));
    nobody.complains(3, &["refused the connection", &port.to_string()]);
}

#[test]
fn a_directory_that_we_may_not_write_in_is_refused() {
    if rustix::process::geteuid().is_root() {
        // Root may everything, and only root's server knows others.
        let served = Served::folder(&[]);
        let stranger = format!("{}&uid=12345&gid=12345", served.url());
        for (in_place, procedure) in [("-f", "MKDIR"), ("-n", "CREATE")] {
            let denied = finish(&mut basic(&[in_place, "--target", &stranger]));
            denied.complains(3, &[procedure, "NFS3ERR_ACCES", "?uid=N&gid=N"]);
        }
        return served.stop();
    }
    let dir = tempfile::tempdir().unwrap();
    let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o500);
    std::fs::set_permissions(dir.path(), read_only).unwrap();
    for in_place in ["-n", "-f"] {
        let finished = finish(&mut in_dir(dir.path(), &[in_place]));
        finished.complains(3, &["Permission denied", "may write in"]);
    }
}

#[test]
fn a_server_that_dies_leaves_what_was_measured() {
    let (served, out) = (Served::folder(&[]), tempfile::tempdir().unwrap());
    let record = out.path().join("run.json");
    let long = ["--test", "3,8,9", "--count", "10000000", "--reply-limit", "3s", "--target"];
    let mut command = basic(&["--test", "3", "-f", "-q", "--target"]);
    assert_eq!(finish(command.arg(served.url())).code, Some(0));
    let mut command = basic(&long);
    let running = Program::start(command.arg(served.url()).arg("--json").arg(&record));
    running.wait_for(|text| text.contains("./test3: ").then_some(()));
    served.program.signal(Signal::KILL);
    let finished = running.finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    for part in [&served.port().to_string()[..], "test 3 did not come", "could not be removed"] {
        assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
    }
    assert!(finished.stdout.contains("basic tests failed"), "{finished:?}");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    assert_eq!(record["passed"], false);
    assert_eq!(record["tests"][0]["outcome"], "not done");
    assert_eq!(record["warnings"][0]["code"], "incomplete");
    assert_eq!(record["warnings"][1]["text"], "these tests were not begun: 8, 9");
}

#[test]
fn what_somebody_puts_into_the_directory_fails_a_test_and_the_rest_stays() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let record = out.path().join("run.json");
    let long = ["--test", "1,6,9", "--files", "3000", "--levels", "1", "--count", "3000"];
    let mut command = in_dir(dir.path(), &long);
    let running = Program::start(command.arg("--json").arg(&record));
    let scratch = scratch_appears(dir.path());
    running.wait_for(|text| text.contains("./test6: ").then_some(()));
    let test = appears(&scratch, |name| name == "test6");
    std::fs::write(test.join("intruder"), "x").unwrap();
    let finished = running.finish();
    finished_with_failure(&finished, &["test6: readdir", "expected nothing but", "\"intruder\""]);
    for part in ["./test1 ok.", "./test6: (readdir", "basic tests failed"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    assert_eq!(names(dir.path()), NOTHING);
    let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    let outcomes: Vec<&Value> =
        record["tests"].as_array().unwrap().iter().map(|test| &test["outcome"]).collect();
    assert_eq!(outcomes, ["passed", "failed"]);
    assert!(record["metrics"]["create_s"]["value"].as_f64() > Some(0.0));
    assert_eq!(record["warnings"][1]["text"], "these tests were not begun: 9");
}

#[track_caller]
fn finished_with_failure(finished: &Finished, parts: &[&str]) {
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for part in parts {
        assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
    }
}

#[test]
fn an_interrupted_run_takes_away_what_it_made() {
    let long = ["-q", "--test", "1,6", "--files", "20000", "--levels", "1", "--count", "20000"];
    for in_place in [false, true] {
        let mine: &[&str] = if in_place { &["-n"] } else { &[] };
        for signal in [Signal::INT, Signal::TERM] {
            let dir = tempfile::tempdir().unwrap();
            let running = Program::start(in_dir(dir.path(), &long).args(mine));
            wait_for_files(dir.path(), in_place);
            running.signal(signal);
            running.finish().was_interrupted();
            assert_eq!(names(dir.path()), NOTHING);
        }
        let served = Served::folder(&["--metadata-sync", "never"]);
        let short = ["-q", "--test", "1", "--files", "2000", "--target"];
        let running = Program::start(basic(&short).arg(served.url()).args(mine));
        wait_for_files(served.path(), in_place);
        running.signal(Signal::INT);
        running.finish().was_interrupted();
        assert_eq!(names(served.path()), NOTHING);
        served.stop();
    }
}

#[test]
fn an_interrupted_run_records_the_tests_that_were_whole() {
    let (dir, served) =
        (tempfile::tempdir().unwrap(), Served::folder(&["--metadata-sync", "never"]));
    let out = tempfile::tempdir().unwrap();
    let json = out.path().join("basic.json");
    let long =
        ["--test", "3,6", "--files", "4000", "--count", "4000", "--json", json.to_str().unwrap()];
    let url = served.url();
    for (place, path) in [(dir.path().to_str().unwrap(), dir.path()), (&*url, served.path())] {
        let option = if path == dir.path() { "--dir" } else { "--target" };
        let running = Program::start(basic(&long).args([option, place]));
        let ground = appears(&scratch_appears(path), |name| name == "test6");
        appears(&ground, |name| name == "file.17");
        running.signal(Signal::INT);
        let finished = running.finish();
        assert!(finished.was_interrupted(), "{finished:?}");
        let record: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let text = record.to_string();
        assert!(text.contains("test3") && !text.contains("\"test6/"), "{text}");
        assert!(text.contains("\"code\":\"partial\""), "{text}");
        assert_eq!(names(path), NOTHING);
    }
    served.stop();
}

fn wait_for_files(dir: &Path, in_place: bool) {
    let ground = match in_place {
        true => dir.to_owned(),
        false => appears(&scratch_appears(dir), |name| name == "test1"),
    };
    appears(&ground, |name| name == "file.17");
}

#[test]
fn a_log_becomes_csv_and_json_with_both_readings() {
    let dir = tempfile::tempdir().unwrap();
    let (log, json) = (dir.path().join("a,b.log"), dir.path().join("out.json"));
    let text = "Starting BASIC tests: test directory /mnt/x (arg: -t)\n\n./test3: lookups across \
                mount point\n\t500 getcwd and stat calls in 1.7 seconds\n\t./test3 ok.\n";
    std::fs::write(&log, text).unwrap();
    let mut command = basic(&["--csv", "-", "--json"]);
    let finished = finish(command.arg(&json).arg("--read").arg(&log));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let row = finished.stdout.lines().nth(1).unwrap();
    assert!(row.starts_with(&format!("\"{}\",1,4,/mnt/x,test3,lookup,500,", log.display())));
    assert!(row.ends_with(",,ambiguous,1.07,1.7,,,yes,"), "{row}");
    let read: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(read["schema"], "nfskit.connectathon/1");
    let result = &read["logs"][0]["runs"][0]["tests"][0]["results"][0];
    assert_eq!(result["seconds_as_hundredths"].as_f64(), Some(1.07));
    assert_eq!(result["seconds_as_decimals"].as_f64(), Some(1.7));
    assert_eq!((&result["reading"], &result["seconds"]), (&"ambiguous".into(), &Value::Null));
}

#[test]
fn what_cannot_be_read_of_a_log_is_reported_with_its_line_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    std::fs::write(&log, "1500 statfs calls in 0.50 seconds\n1500 statfs calls in ? seconds\n")
        .unwrap();
    let finished = finish(basic(&["--read"]).arg(&log));
    finished_with_failure(&finished, &["log: line 2: a time that is none", "1 line looks like"]);
    assert_eq!(finished.stdout.lines().count(), 2);
    std::fs::write(&log, [0xff, 0, b'\n', 7]).unwrap();
    let nothing = finish(basic(&["--read"]).arg(&log));
    nothing.complains(3, &["2 lines, and none of the suite's"]);
    let absent = finish(&mut basic(&["--read", "/no/such/log"]));
    absent.complains(3, &["/no/such/log", "No such file"]);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let refused = |arguments: &[&str], part: &str| {
        let finished = run([&["bench", "basic"], arguments].concat());
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
    };
    refused(&[], "--dir");
    refused(&["--dir", "/tmp", "--target", "nfs://h/x"], "cannot be used with");
    refused(&["--dir", "/tmp", "-f", "-t"], "cannot be used with");
    refused(&["--read", "log", "-f"], "cannot be used with");
    refused(&["--dir", "/tmp", "--csv", "-"], "cannot be used with");
    refused(&["--dir", "/tmp", "--link", "lan-1g"], "cannot be used with");
    refused(&["--dir", "/tmp", "--test", "10"], "from 1 to 9");
    refused(&["--dir", "/tmp", "--levels", "60"], "more than 10000000 files and directories");
    refused(&["--dir", "/tmp", "--dirs", "0"], "--levels 1");
    refused(&["--dir", "/tmp", "--files", "10"], "200 passes");
    refused(&["--dir", "/tmp", "--test", "7", "--files", "0"], "there are none");
}
