//! `nfskit model whatif`: every change of every kind of source, predicted by all methods
//! or refused with a reason.

use std::fmt::Write;

use crate::model::PROBED;
use crate::program::run;

/// The changes that a question may be about.
const CHANGES: [&str; 8] = [
    "L=5ms",
    "disks=8",
    "cache=64G",
    "wsize=1M",
    "outstanding=32",
    "write-log=nvme",
    "clients x10",
    "threads=2",
];

/// For each source: what each change leads to; a word of the answer or of the reason.
const TABLE: [(&str, [&str; 8]); 4] = [
    (
        "curve",
        [
            "by the processor",
            "by the disks",
            "by the processor",
            "give a probe's record",
            "closed      after",
            "give a probe's record",
            "not reached",
            "say cpus=N",
        ],
    ),
    (
        "sweep",
        [
            "say how much is added",
            "give a probe's record",
            "give a curve",
            "give a probe's record",
            "bound by",
            "give a probe's record",
            "bound by",
            "give a trace, or a curve",
        ],
    ),
    (
        "probe",
        [
            "network round trip (2 T_prop)",
            "simulation",
            "give a curve",
            "simulation",
            "always busy",
            "simulation",
            "say outstanding=N",
            "simulation",
        ],
    ),
    (
        "trace",
        [
            "say how much is added",
            "say write-log=TIME",
            "give a curve",
            "simulation",
            "the servers, always busy",
            "simulation",
            "the servers, always busy",
            "simulation",
        ],
    ),
];

fn text(source: &str) -> String {
    match source {
        // The paper's SCSI server, as its own parameters give it.
        "curve" => {
            let us = [8.82, 11.51, 12.97, 13.96, 14.80, 15.64, 16.69, 18.43, 22.86];
            let mut text = "throughput_per_s response_ms\n100 4.39\n".to_owned();
            for (at, ms) in (2..).zip(us) {
                writeln!(text, "{at}00 {ms}").unwrap();
            }
            text
        }
        "sweep" => "outstanding throughput_per_s\n1 1980\n2 3890\n4 7600\n8 14000\n16 22500\n\
                    32 24800\n"
            .to_owned(),
        "probe" => PROBED.to_owned(),
        _ => trace(),
    }
}

/// Callers and two servers: 100 us of way, 60 us for a call, 8 us a KiB, 300 us for a stable one.
fn trace() -> String {
    let mut text = "sent_us answered_us bytes stable\n".to_owned();
    let mut free = [0.0_f64; 2];
    for window in [1, 2, 4, 8_usize] {
        let mut next = vec![free[0].max(free[1]) + 1e4; window];
        for call in 0..120_usize {
            let own = (0..window).min_by(|&a, &b| next[a].total_cmp(&next[b])).unwrap();
            let (bytes, is_stable) = ([0, 8192, 65_536][call % 3], call % 4 == 1);
            let server = usize::from(free[1] < free[0]);
            let sent = next[own];
            let kib = f64::from(bytes) / 1024.0;
            let demand = 60.0 + 8.0 * kib + if is_stable { 300.0 } else { 0.0 };
            free[server] = free[server].max(sent + 50.0) + demand;
            next[own] = free[server] + 50.0;
            writeln!(text, "{sent} {} {bytes} {}", next[own], u8::from(is_stable)).unwrap();
        }
    }
    text
}

#[test]
fn every_change_is_answered_or_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    for (source, words) in TABLE {
        let file = directory.path().join(source);
        std::fs::write(&file, text(source)).unwrap();
        let file = file.to_str().unwrap();
        for (change, word) in CHANGES.into_iter().zip(words) {
            let mut line = vec!["model", "whatif", file, change];
            if source == "curve" {
                // One caller does not come to the rate, of which no world is made then.
                line.extend(["--disks", "24", "--callers", "1"]);
            }
            let answer = run(line);
            let context = format!("{source} {change}: {answer:?}");
            match answer.code {
                Some(0) => {
                    assert!(answer.stdout.contains(word), "no {word:?}: {context}");
                    let simulated = ["simulation", "world   after"];
                    assert!(simulated.iter().any(|name| answer.stdout.contains(name)), "{context}");
                    assert!(!answer.stdout.contains("no simulation"), "{context}");
                }
                Some(2) => {
                    assert!(answer.stderr.contains("like this has no answer here"), "{context}");
                    assert!(answer.stderr.contains(word), "no {word:?}: {context}");
                }
                _ => panic!("{context}"),
            }
        }
    }
}

/// Two calls every 50 ms to one server: 1 ms of way, 60 us for a call, 8 us a KiB; of every seventh
/// the first takes so much longer.
fn idle(pause_us: f64) -> String {
    let mut text = "sent_us answered_us bytes stable\n".to_owned();
    for step in 0..120_u32 {
        let mut free = 0.0_f64;
        for (after_us, size, pause_us) in
            [(0.0, step, if step % 7 == 0 { pause_us } else { 0.0 }), (100.0, step / 3, 0.0)]
        {
            let bytes = [0, 8192, 65_536_u32][size as usize % 3];
            let sent = f64::from(step) * 50_000.0 + after_us;
            free = free.max(sent + 500.0) + 60.0 + f64::from(bytes) / 128.0 + pause_us;
            writeln!(text, "{sent} {} {bytes} 0", free + 500.0).unwrap();
        }
    }
    text
}

#[test]
fn a_trace_of_an_idle_client_has_its_own_rate_before_a_change_and_says_what_is_not_explained() {
    let directory = tempfile::tempdir().unwrap();
    let answered = |pause_us| {
        let file = directory.path().join("idle");
        std::fs::write(&file, idle(pause_us)).unwrap();
        let answer = run(["model", "whatif", file.to_str().unwrap(), "L+1ms"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.stdout
    };
    let sure = answered(0.0);
    assert!(sure.starts_with("base: the trace has 40 calls/s of"), "{sure}");
    assert!(sure.contains("and its replay 40 ("), "{sure}");
    assert!(sure.contains("the client, between calls"), "{sure}");
    let unsure = answered(15_000.0);
    assert!(unsure.starts_with("note: not sure: the servers that were found explain"), "{unsure}");
    assert!(unsure.contains("and its replay 40 ("), "{unsure}");
}

/// A server with a log does not stop for its disk, and what it gains by that is not the log's.
#[test]
fn a_log_gains_no_more_where_a_probe_saw_the_server_stop() {
    let directory = tempfile::tempdir().unwrap();
    let gains = |name: &str, probe: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, probe).unwrap();
        let answer = run(["model", "whatif", file.to_str().unwrap(), "write-log=30us"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let rows = answer.stdout.lines().filter(|line| line.starts_with("of 8"));
        let rows: Vec<String> = rows.map(str::to_owned).collect();
        assert!(rows.len() >= 3, "{answer:?}");
        (rows, answer.stdout.contains("stops for its disk"))
    };
    let probe = PROBED.replace("65536", "8192");
    let goes_on = gains("goes-on", &probe);
    let stops = gains("stops", &probe.replace("\"stalls\": false", "\"stalls\": true"));
    assert_eq!((&goes_on.0, goes_on.1, stops.1), (&stops.0, false, true));
}

#[test]
fn a_fit_of_any_source_is_changed_and_simulated_from_its_record() {
    let directory = tempfile::tempdir().unwrap();
    for (source, change) in [("curve", "cpus=2"), ("sweep", "L+1ms"), ("trace", "cpus=4")] {
        let file = directory.path().join(source);
        std::fs::write(&file, text(source)).unwrap();
        let (file, record) = (file.to_str().unwrap(), format!("{}.json", file.display()));
        let known: &[&str] = if source == "curve" { &["--disks", "24"] } else { &[] };
        let fitted = run([&["model", "fit", file, "--json", &record], known].concat());
        assert_eq!(fitted.code, Some(0), "{source}: {fitted:?}");
        // What was given of the server is in the record.
        let answer = run(["model", "whatif", &record, change]);
        let direct = run([&["model", "whatif", file, change], known].concat());
        assert_eq!(answer.code, Some(0), "{source}: {answer:?}");
        assert_eq!(answer.stdout, direct.stdout, "{source}");
        let simulated = run(["model", "simulate", &record]);
        assert_eq!(simulated.code, Some(0), "{source}: {simulated:?}");
        assert!(simulated.stdout.contains("response time"), "{source}: {simulated:?}");
        let sensitive = run(["model", "sensitivity", &record]);
        assert_eq!(sensitive.code, Some(0), "{source}: {sensitive:?}");
        for part in ["d(base)/dL", "saturation(o)", "G threshold"] {
            assert!(sensitive.stdout.contains(part), "{source}: no {part:?} in {sensitive:?}");
        }
    }
}

#[test]
fn the_bandwidth_that_fills_a_link_is_that_of_the_calls_that_were_probed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("probe.json");
    std::fs::write(&file, PROBED.replace("65536", "1048576")).unwrap();
    let threshold = |data: &[&str]| {
        let line =
            ["model", "sensitivity", file.to_str().unwrap(), "--reads", "0", "--writes", "100"];
        let stdout = run([&line[..], data].concat()).stdout;
        let line = stdout.lines().find(|line| line.starts_with("G threshold"));
        line.unwrap_or_else(|| panic!("{stdout}")).to_owned()
    };
    assert_eq!(threshold(&[]), threshold(&["--data", "1M"]));
    assert_ne!(threshold(&[]), threshold(&["--data", "8K"]));
}
