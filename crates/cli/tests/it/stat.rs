//! `nfskit stat` and `nfskit top`: from saved counters, and from a server of our own.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Program, nfskit, run};
use crate::served::Served;

const MOUNTS: &str = "\
device server:/export mounted on /mnt/a with fstype nfs statvers=1.1
\topts:\trw,vers=3,hard,proto=tcp
\tage:\tAGE
\tevents:\t0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
\tbytes:\t0 0 0 0 0 0 0 0
\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)
\txprt:\ttcp 800 1 1 0 3 100 100 0 100 0 16 0 0
\tper-op statistics
\t     GETATTR: CALLS CALLS 0 10000 11200 0 RTT EXECUTE 0
";

/// A copy of /proc with one mount that has this age and these counters.
fn saved(folder: &Path, age: u32, calls: u32, rtt: u32, execute: u32) {
    let text = MOUNTS.replace("AGE", &age.to_string()).replace("CALLS", &calls.to_string());
    let text = text.replace("RTT", &rtt.to_string()).replace("EXECUTE", &execute.to_string());
    fs::create_dir_all(folder.join("self")).unwrap();
    fs::write(folder.join("self/mountstats"), text).unwrap();
}

#[test]
fn two_copies_give_what_came_between_and_one_what_was_since_the_mount() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    saved(&before, 1_000, 100, 100, 200);
    saved(&after, 1_010, 300, 500, 1_400);
    let [before, after] = [&before, &after].map(|path| path.to_str().unwrap());
    let ran = run(["stat", "--from", before, "--from", after]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("server:/export on /mnt/a, version 3, in the last 10.00 s"));
    let row = ran.stdout.lines().find(|line| line.contains("GETATTR")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    // 200 calls in 10 s, of 2 ms from sending to reply and 6 in all: 0.04 outstanding.
    assert_eq!((cells[1], cells[5], cells[6], cells[7]), ("20", "2", "6", "0.040"), "{row}");
    let ran = run(["stat", "--from", before, "--json", "-"]);
    let record: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mount = &record["mounts"]["mounts"][0];
    assert_eq!(
        (&mount["span"]["since"], &mount["span"]["seconds"]),
        (&"beginning".into(), &1e3.into())
    );
    assert_eq!(mount["operations"][0]["rtt_ms_mean"], 1.0);
    assert_eq!(mount["operations"][0]["calls_per_s"], 0.1);
    run(["stat", "--from", after, "--from", before]).complains(3, &["older"]);
}

#[test]
fn what_is_no_copy_of_counters_is_reported_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    run(["stat", "--from", path]).complains(3, &[path, "none of its files", "self/mountstats"]);
    run(["stat", "--from", "/dev/zero"]).complains(3, &["/dev/zero", "no regular file"]);
    let junk = folder.path().join("junk");
    fs::write(&junk, [0xff, 0x00, 0x9f, b'\n']).unwrap();
    run(["stat", "--from", junk.to_str().unwrap()]).complains(3, &["junk", "neither mountstats"]);
    saved(folder.path(), 1, 1, 1, 1);
    let among = ["one of --mount", "--mount /mnt/a; "];
    run(["stat", "--from", path, "--mount", "/else"]).complains(3, &among);
    // As a shell completes the name of a directory.
    assert_eq!(run(["stat", "--from", path, "--mount", "/mnt//a/"]).code, Some(0));
    let blank = folder.path().join("blank");
    let text = fs::read_to_string(folder.path().join("self/mountstats")).unwrap();
    fs::write(&blank, text.replace("/mnt/a", "/mnt/it\\040is")).unwrap();
    let blank = blank.to_str().unwrap();
    let as_a_shell_takes_it = ["--mount '/mnt/it is'; "];
    run(["stat", "--from", blank, "--mount", "/else"]).complains(3, &as_a_shell_takes_it);
    assert_eq!(run(["stat", "--from", blank, "--mount", "/mnt/it is"]).code, Some(0));
    run(["stat", "--from", path, "--from", path, "1"]).complains(2, &["an interval"]);
    run(["stat", "--metrics", "127.0.0.1:1"]).complains(3, &["127.0.0.1:1", "--metrics"]);
}

#[test]
fn samples_follow_each_other_and_the_last_mount_may_go() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path(), 1_000, 100, 100, 200);
    let path = folder.path().to_str().unwrap();
    let program =
        Program::start(&mut nfskit(["stat", "100ms", "3", "--from", path, "--json", "-"]));
    let ran = program.finish();
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let spans: Vec<&Value> =
        lines.iter().map(|line| &line["mounts"]["mounts"][0]["span"]["since"]).collect();
    assert_eq!(spans, ["beginning", "sample", "sample"]);
    assert_eq!(lines[1]["mounts"]["mounts"][0]["total"]["calls"], 0);
}

/// A server, and the address of its metrics.
fn with_metrics() -> (Served, String) {
    let served = Served::folder(&["--metrics", "127.0.0.1:0"]);
    let metrics = served.program.wait_for(|out| {
        let (_, rest) = out.split_once("http://")?;
        Some(rest.split_once("/metrics")?.0.to_owned())
    });
    (served, metrics)
}

#[test]
fn a_server_that_goes_away_between_two_samples_is_named() {
    let (served, metrics) = with_metrics();
    let stat = Program::start(&mut nfskit(["stat", "--metrics", &metrics, "100ms"]));
    stat.wait_for(|out| out.contains("nfskit serve").then_some(()));
    served.stop();
    let name = format!("passed over http://{metrics}/metrics");
    stat.wait_for_error(|text| text.contains(&name).then_some(()));
    stat.signal(Signal::INT);
    let ran = stat.finish();
    assert_eq!(ran.stderr.matches("passed over").count(), 1, "{ran:?}");
}

#[test]
fn our_own_server_is_shown_with_its_percentiles_and_clients() {
    let (served, metrics) = with_metrics();
    let url = served.url();
    let wrote = run(["bench", "seqwrite", "--target", &url, "--size", "4M", "--repeats", "1"]);
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    let ran = run(["stat", "--metrics", &metrics]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["nfskit serve, since it started", "p99 ms", "WRITE", "clients", "127.0.0.1"] {
        assert!(ran.stdout.contains(part), "no {part:?} in {}", ran.stdout);
    }
    let ran = run(["stat", "--metrics", &metrics, "--json", "-"]);
    let record: Value = serde_json::from_str(&ran.stdout).unwrap();
    let server = &record["ours"][0]["server"];
    let write = server["procedures"].as_array().unwrap().iter().find(|one| one["name"] == "WRITE");
    let times = &write.unwrap()["response_ms"];
    let (p50, p99) = (times["p50"].as_f64().unwrap(), times["p99"].as_f64());
    assert!(0.0 < p50 && p99.is_none_or(|p99| p50 <= p99), "{times}");
}

#[test]
fn top_wants_a_terminal_and_says_so() {
    run(["top"]).complains(2, &["no terminal", "nfskit stat 1"]);
}
