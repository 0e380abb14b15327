//! Load curves through the binary: short ones, of our own server.

use rustix::process::Signal;
use serde_json::Value;

use crate::peer::{Nobody, Peer};
use crate::program::{Finished, Program, nfskit, run};
use crate::served::{Served, url};

/// Few files and short runs.
const QUICK: [&str; 6] = ["--time", "300ms", "--warm-up", "100ms", "--file-set-max", "256K"];

fn curve(targets: &[String], options: &[&str]) -> Finished {
    let mut arguments = vec!["bench", "curve"];
    for target in targets {
        arguments.extend(["--target", target]);
    }
    arguments.extend(QUICK);
    arguments.extend(options);
    run(arguments)
}

/// So few operations do not have the shares of a mix, and a busy machine makes a generator late
/// and holds more outstanding than may be: all of it is reported, with exit code 1.
fn records(finished: &Finished) -> Value {
    assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
    let records: Value = serde_json::from_str(&finished.stdout).unwrap();
    let all = records.as_array().cloned().unwrap_or_else(|| vec![records.clone()]);
    for record in &all {
        let codes = record["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]);
        let excused = [
            "late-starts",
            "mix",
            "client-was-bottleneck",
            "shortfall",
            "outstanding-max",
            "busy_machine",
        ];
        let codes: Vec<&str> = codes.map(|code| code.as_str().unwrap()).collect();
        assert!(codes.iter().all(|code| excused.contains(code)), "{codes:?}");
        assert!(finished.code == Some(0) || !codes.is_empty(), "{finished:?}");
    }
    records
}

fn metric(record: &Value, name: &str) -> f64 {
    let value = record["metrics"][name]["value"].as_f64();
    value.unwrap_or_else(|| panic!("no {name} in {record}"))
}

#[test]
fn two_targets_stand_in_one_report_and_nothing_is_left_behind() {
    let (first, second) = (Served::memory(&[]), Served::folder(&[]));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (html, csv) = (file("curve.html"), file("curve.csv"));
    let options = ["--loads", "60,120", "--json", "-", "--html", &html, "--csv", &csv];
    let urls = [first.url(), second.url()];
    let finished = curve(&urls, &options);
    let records = records(&finished);
    for (record, url) in records.as_array().unwrap().iter().zip(&urls) {
        assert_eq!(record["target"]["url"], url.as_str());
        assert_eq!(record["workload"]["parameters"]["mix"], "sfs97-v3");
        // How much of the load a busy machine carries nobody knows; of a valid point it is most.
        let achieved_per_s = metric(record, "load/120.000/achieved_per_s");
        let is_valid = record["verdicts"]["load/120.000"] == "valid";
        assert!(achieved_per_s > if is_valid { 50.0 } else { 0.0 }, "{record}");
        let mut times = record["histograms"].as_object().unwrap().iter();
        assert!(times.any(|(name, of)| name.starts_with("load/120.000/") && of["max"] != 0));
        assert!(record["not_as_sfs"].as_array().unwrap().len() >= 3, "{record}");
    }
    let page = std::fs::read_to_string(html).unwrap();
    assert_eq!(page.matches("knee</text>").count(), 0);
    assert!(
        page.contains("knee") && urls.iter().all(|url| page.contains(&url.replace('&', "&amp;")))
    );
    let lines = std::fs::read_to_string(csv).unwrap();
    assert_eq!(lines.lines().filter(|line| line.contains(",all,")).count(), 4, "{lines}");
    assert_eq!(first.left_behind(), Vec::<String>::new());
    second.stop();
}

#[test]
fn the_saturation_is_found_and_threads_share_the_load() {
    let served = Served::memory(&[]);
    let options = ["--points", "2", "--threads", "2", "--connections", "4", "--json", "-"];
    let records = records(&curve(&[served.url()], &options));
    assert!(metric(&records, "found_per_s") > 10.0, "{records}");
    assert_eq!(records["workload"]["parameters"]["threads"], 2);
    assert_eq!(records["workload"]["parameters"]["connections"], 4);
    let points = records["verdicts"].as_object().unwrap();
    assert_eq!(points.len(), 3, "{points:?}");
    assert_eq!(served.left_behind(), Vec::<String>::new());
}

#[test]
fn a_closed_loop_has_numbers_outstanding_and_a_mix_comes_from_a_file() {
    let served = Served::memory(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mix = folder.path().join("mix");
    std::fs::write(&mix, "SFS MIXFILE VERSION 2\ngetattr 100%\n").unwrap();
    let options = ["--closed", "4", "--points", "2", "--mix", mix.to_str().unwrap()];
    let finished = curve(&[served.url()], &options);
    assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
    for part in ["closed loop", "1 out", "4 out", "getattr", "saturation", "not as SFS", "durable"]
    {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    assert!(!finished.stdout.contains("readlink"), "{finished:?}");
}

#[test]
fn version_2_over_udp_has_a_curve_of_its_own_mix() {
    let served = Served::memory(&["--udp"]);
    let target = format!("{}&version=2&proto=udp", served.url());
    let records = records(&curve(&[target], &["--loads", "80", "--json", "-"]));
    assert_eq!(records["workload"]["parameters"]["mix"], "sfs97-v2");
    assert_eq!(
        (&records["target"]["version"], &records["target"]["proto"]),
        (&2.into(), &"udp".into())
    );
}

#[test]
fn a_point_that_does_not_hold_a_rule_is_marked_and_fails() {
    let served = Served::memory(&[]);
    // 3 operations cannot touch 9 files, nor have the shares of a mix.
    let finished = curve(&[served.url()], &["--loads", "10", "--accessed", "90"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    for part in ["INVALID", "files were touched", "of warm-up and run would do"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    assert!(finished.stderr.contains("a point does not hold the rules"), "{finished:?}");
}

#[test]
fn a_target_without_room_is_reported_before_anything_is_made() {
    let small = Served::memory(&["--mem-size", "1M"]);
    let options = ["--loads", "100", "--file-set-max", "64M"];
    let arguments = [&["bench", "curve", "--target", &small.url(), "--time", "1s"], &options[..]];
    run(arguments.concat()).complains(3, &["no room", "bytes are needed", "--file-set-max"]);
    assert_eq!(small.left_behind(), Vec::<String>::new());
}

#[test]
fn a_place_for_the_record_is_looked_at_before_anything_is_made() {
    let served = Served::memory(&[]);
    for file in ["--json", "--csv", "--html"] {
        let options = ["--loads", "100", file, "/no/such/folder/file"];
        curve(&[served.url()], &options).complains(3, &["cannot write /no/such/folder/file"]);
    }
    assert_eq!(served.left_behind(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_worked_on_is_reported_with_what_to_try() {
    let locked = Served::memory(&["--ro"]);
    curve(&[locked.url()], &["--loads", "100"]).complains(3, &["MKDIR", "writable export"]);
    let nobody = Nobody::there();
    let port = nobody.address.port();
    curve(&[url(port, "/")], &[]).complains(3, &["refused", "start the server"]);
    curve(&[Peer::refusing().url()], &[]).complains(3, &["MNT", "export it to this host"]);
    let served = Served::memory(&[]);
    // The second target fails: the first is left clean.
    curve(&[served.url(), url(port, "/")], &[]).complains(3, &["refused"]);
    assert_eq!(served.left_behind(), Vec::<String>::new());
}

#[test]
fn bad_input_is_refused_before_anything_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let mix = folder.path().join("mix");
    std::fs::write(&mix, "SFS MIXFILE VERSION 2\ngetattr 60%\nfly 40%\n").unwrap();
    let there = mix.to_str().unwrap();
    let url = url(1, "/");
    for (options, parts) in [
        (&["--mix", there][..], &["mix", "3"][..]),
        (&["--mix", "no-such-file"], &["no-such-file"]),
        (&["--mix", "sfs97-v3", "--target", "nfs://h/x?version=2"], &["version"]),
    ] {
        let finished = curve(std::slice::from_ref(&url), options);
        assert_eq!(finished.code, Some(2), "{options:?}: {finished:?}");
        for part in parts {
            assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
        }
    }
    for wrong in [
        &["--loads", "0"][..],
        &["--loads", "1,x"],
        &["--closed", "0"],
        &["--closed", "4", "--loads", "5"],
        &["--closed", "4", "--arrivals", "fixed"],
        &["--arrivals", "now"],
        &["--accessed", "101"],
        &["--points", "0"],
    ] {
        assert_eq!(curve(std::slice::from_ref(&url), wrong).code, Some(2), "{wrong:?}");
    }
    assert_eq!(run(["bench", "curve"]).code, Some(2));
}

#[test]
fn a_server_that_dies_leaves_what_was_measured_before() {
    let (doomed, other) = (Served::memory(&[]), Served::folder(&[]));
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let mut command = nfskit(["bench", "curve", "--loads", "50,60", "--time", "2s"]);
    command.args(["--target", &doomed.url(), "--target", &other.url()]);
    command.args(["--warm-up", "1s", "--file-set-max", "64K", "--json", json.to_str().unwrap()]);
    let bench = Program::start(&mut command);
    // The other's files are made after its own, just before the first point.
    other.is_written_to("set-0-");
    let port = doomed.port();
    doomed.program.signal(Signal::KILL);
    let finished = bench.finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains(&format!("nfsport={port}")), "{finished:?}");
    let records: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let [broken, whole] = &records.as_array().unwrap()[..] else { panic!("{records}") };
    assert!(broken["warnings"].to_string().contains("\"partial\""), "{broken}");
    assert!(!whole["warnings"].to_string().contains("\"partial\""), "{whole}");
    assert!(metric(whole, "load/60.000/achieved_per_s") > 10.0);
    assert!(finished.stdout.contains("PARTIAL"), "{finished:?}");
    other.stop();
}

#[test]
fn an_interrupt_leaves_nothing() {
    let served = Served::folder(&[]);
    let mut command = nfskit(["bench", "curve", "--target", &served.url(), "--loads", "50"]);
    let bench = Program::start(command.args(["--time", "60s", "--file-set-max", "64K"]));
    served.is_written_to("set-");
    bench.signal(Signal::INT);
    bench.finish().was_interrupted();
    served.stop();
}

/// A process that is to meet others at this port of the loopback.
fn one_of(process: &str, port: u16, target: &str, key: &str) -> Program {
    let mut command = nfskit(["bench", "curve", "--target", target, "--loads", "60"]);
    command.args(QUICK).args(["--meet", &format!("127.0.0.1:{port}"), "--process", process]);
    Program::start(command.args(["--json", "-"]).env("NFSKIT_MEET_KEY", key))
}

#[test]
fn processes_that_meet_make_one_record() {
    let served = Served::memory(&[]);
    let port = Nobody::there().address.port();
    let key = "for this test alone";
    let second = one_of("1/2", port, &served.url(), key);
    let stranger = one_of("1/2", port, &served.url(), "of another measurement");
    let first = one_of("0/2", port, &served.url(), key);
    let record = records(&first.finish());
    assert_eq!(record["workload"]["parameters"]["processes"], 2);
    assert!(metric(&record, "load/60.000/achieved_per_s") > 30.0);
    let second = second.finish();
    assert_eq!((second.code, &second.stdout[..]), (Some(0), ""), "{second:?}");
    stranger.signal(Signal::TERM);
    assert_ne!(stranger.finish().code, Some(0));
    assert_eq!(served.left_behind(), Vec::<String>::new());
}

#[test]
fn a_process_that_cannot_go_on_ends_the_others() {
    let (served, locked) = (Served::memory(&[]), Served::memory(&["--ro"]));
    let port = Nobody::there().address.port();
    let key = "for this test alone";
    let second = one_of("1/2", port, &locked.url(), key);
    let first = one_of("0/2", port, &served.url(), key).finish();
    assert_eq!(first.code, Some(3), "{first:?}");
    second.finish().complains(3, &["MKDIR", "writable export"]);
    assert_eq!(served.left_behind(), Vec::<String>::new());
}

#[test]
fn a_launched_process_needs_a_place_to_meet_and_a_key() {
    let target = url(1, "/");
    let launched = |options: &[&str], key: &str| {
        let mut command = nfskit(["bench", "curve", "--target", &target]);
        command.args(options).env("OMPI_COMM_WORLD_RANK", "1").env("OMPI_COMM_WORLD_SIZE", "2");
        Program::start(command.env("NFSKIT_MEET_KEY", key)).finish()
    };
    launched(&[], "").complains(2, &["one of 2 processes", "--meet HOST:PORT"]);
    let meet = ["--meet", "127.0.0.1:7010"];
    launched(&meet, "").complains(2, &["NFSKIT_MEET_KEY has 0 characters", "mpirun -x"]);
    launched(&meet, "short").complains(2, &["NFSKIT_MEET_KEY has 5 characters"]);
    let alone = curve(std::slice::from_ref(&target), &meet);
    alone.complains(2, &["no launcher", "--process N/M"]);
    for wrong in [&["--meet", "host"][..], &["--process", "2/2"], &["--process", "0/2"]] {
        assert_eq!(curve(std::slice::from_ref(&target), wrong).code, Some(2), "{wrong:?}");
    }
}
