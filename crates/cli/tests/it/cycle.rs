//! `nfskit model cycle`, `interim`, `network`, `sensitivity`: formulas from the command line, held
//! to the numbers of the papers.

use serde_json::Value;

use crate::program::run;

const THESIS: [&str; 10] = [
    "model",
    "cycle",
    "--round-trip",
    "192.68us",
    "--ser",
    "8.192us",
    "--op",
    "61.87us",
    "--block",
    "175.98us",
];

fn record(more: &[&str]) -> Value {
    let finished = run([&THESIS[..], more, &["--json", "-"]].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

fn mbit(record: &Value, name: &str) -> f64 {
    record["metrics"][format!("{name}/mbit_per_s")]["value"].as_f64().unwrap()
}

#[track_caller]
fn assert_near(got: f64, want: f64) {
    assert!((got - want).abs() < 0.01, "{got} is not {want}");
}

#[test]
fn the_thesis_s_path_has_its_throughputs() {
    let plain = record(&[]);
    assert_near(mbit(&plain, "sequential"), 132.11);
    assert_near(mbit(&plain, "concurrent"), 372.41);
    assert_near(mbit(&plain, "loopback"), 275.53);
    let one = record(&["--daemons", "1"]);
    assert_near(mbit(&one, "daemons"), 275.53);
}

#[test]
fn striped_disks_cascades_and_datagrams_are_shown() {
    let striped = record(&["--raid", "0", "--disks", "4", "--sync-size", "1M"]);
    // T_B is a quarter.
    assert_near(mbit(&striped, "raid"), 65_536.0 / (192.68 + 65.536 + 61.87 + 175.98 / 4.0));
    let parity = record(&["--raid", "5", "--disks", "4"]);
    assert!(mbit(&parity, "raid") < mbit(&parity, "sequential"), "{parity}");
    let pairs = record(&["--raid", "10", "--disks", "4", "--sync-size", "1M"]);
    assert_near(mbit(&pairs, "raid"), 65_536.0 / (192.68 + 65.536 + 61.87 + 175.98 / 2.0));
    let hops = record(&["--hop", "192.68us,8.192us,61.87us", "--outstanding", "1"]);
    let each = 192.68 + 65.536 + 61.87;
    assert_near(mbit(&hops, "cascade"), 65_536.0 / (2.0 * each + 175.98));
    assert_near(mbit(&hops, "cascade_behind"), 65_536.0 / (each + 175.98));
    let lossless = record(&["--mtu", "1500", "--outstanding", "1"]);
    let lossy = record(&["--mtu", "1500", "--loss", "0.001", "--outstanding", "1"]);
    // Seven fragments and a reply: 0.8 % of calls wait for 700 ms, and some for more.
    let us = |record: &Value| record["metrics"]["datagrams/call_us"]["value"].as_f64().unwrap();
    let added = us(&lossy) - us(&lossless);
    assert!((4_800.0..6_000.0).contains(&added), "{added}");
    for (wrong, why) in [
        (&["--raid", "5", "--disks", "2"][..], "disks is 2: at least 3"),
        (&["--raid", "10", "--disks", "3"], "disks in pairs"),
        (&["--mtu", "1500", "--loss", "1"], "nothing arrives"),
        (&["--mtu", "1500", "--loss", "NaN"], "\"NaN\" is no share from 0 to 1"),
        (&["--hop", "1us,1us"], "is no hop"),
        (&["--hop", "1us,1us,1x"], "is not a time"),
        (&["--raid", "5"], "--disks"),
    ] {
        let refused = run([&THESIS[..], wrong].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(why), "no {why:?} in {refused:?}");
    }
}

#[test]
fn the_interim_model_is_refuted_by_its_own_machines() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mtu.txt");
    // Tables 5.2 and 4.1 of the thesis.
    let text = "mtu_bytes mbit_per_s\n256 128.6\n576 156.86\n1000 166.67\n1500 220.753\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let finished = run(["model", "interim", file]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("refuted: at an MTU of 1500"), "{finished:?}");
    // What help shows is this, and says of it what comes out.
    let help = run(["model", "interim", "--help"]).stdout;
    let shown: Vec<Vec<&str>> =
        help.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in text.lines().map(|line| line.split(' ').collect::<Vec<_>>()) {
        assert!(shown.contains(&row), "no {row:?} in {help}");
    }
    assert!(help.contains("the last refutes it: the model has 174 Mbit/s there."), "{help}");
    let last = finished.stdout.lines().find(|line| line.contains("220.75 Mb/s")).unwrap();
    let predicted: f64 = last.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!((predicted - 174.0).abs() < 0.6, "{last}");
    let two = run(["model", "interim", file, "--fit", "4"]);
    assert_eq!(two.code, Some(3), "{two:?}");
    assert!(two.stderr.contains("two points confirm any line"), "{two:?}");
    std::fs::write(file, "mtu_bytes mbit_per_s\n256 -1\n").unwrap();
    let bad = run(["model", "interim", file]);
    assert!(bad.stderr.contains("row 2: the throughput is -1"), "{bad:?}");
}

/// Two classes at a processor and a disk; think times; a delay.
const NETWORK: &str = "[[class]]\nname = \"a\"\ncallers = 3\nthink = \"5ms\"\n\
    [[class]]\nname = \"b\"\ncallers = 2\n\
    [[center]]\nname = \"cpu\"\nservers = 2\ndemand = [\"200us\", \"500us\"]\n\
    [[center]]\nname = \"disk\"\ndemand = [\"1ms\", \"2ms\"]\n\
    [[center]]\nname = \"way\"\ndelay = true\ndemand = [\"400us\", \"400us\"]\n";

#[test]
fn a_network_of_several_classes_is_solved_exactly_and_approximately() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("network.toml");
    std::fs::write(&file, NETWORK).unwrap();
    let file = file.to_str().unwrap();
    let finished = run(["model", "network", file]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["bottleneck: disk", "approximate", "residence", "way"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let json = run(["model", "network", file, "--json", "-"]);
    let record: Value = serde_json::from_str(&json.stdout).unwrap();
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    for class in ["a", "b"] {
        let ratio =
            value(&format!("approximate/{class}/per_s")) / value(&format!("exact/{class}/per_s"));
        assert!((0.8..1.2).contains(&ratio), "{record}");
    }
    // Utilization law.
    let busy = value("exact/a/per_s") * 1e-3 + value("exact/b/per_s") * 2e-3;
    assert!((value("center/disk/utilization") - busy).abs() < 1e-9, "{record}");
    for (from, to, why) in [
        ("[\"1ms\", \"2ms\"]", "[\"1ms\"]", "demands of a center"),
        ("callers = 3", "callers = -3", "row 3"),
        ("\"5ms\"", "\"5x\"", "row 4"),
        ("\"5ms\"", "\"nan us\"", "row 4"),
        ("servers = 2", "servers = 0", "servers of a center is 0"),
        ("[[class]]\nname = \"b\"", "[[klass]]\nname = \"b\"", "klass"),
    ] {
        std::fs::write(file, NETWORK.replace(from, to)).unwrap();
        let refused = run(["model", "network", file]);
        assert_eq!(refused.code, Some(3), "{from}: {refused:?}");
        assert!(refused.stderr.contains(why), "no {why:?} in {refused:?}");
    }
}

#[test]
fn sensitivity_is_that_of_the_paper_for_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scsi.txt");
    // The paper's SCSI server, as its own parameters give it.
    let text = "throughput_per_s response_ms\n100 4.39\n200 8.82\n300 11.51\n400 12.97\n\
        500 13.96\n600 14.80\n700 15.64\n800 16.69\n900 18.43\n1000 22.86\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let known = ["--disks", "24", "--disk", "12ms", "--mtu", "3584", "--json", "-"];
    let finished = run([&["model", "sensitivity", file], &known[..]].concat());
    let record: Value = serde_json::from_str(&finished.stdout).unwrap();
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    assert_eq!(value("d_base_d_latency"), 2.0);
    assert!((value("messages_per_op") - 2.42).abs() < 0.005, "{record}");
    let want = 1e6 / (900.0 + 2.42 * 100.0);
    assert!((value("saturation_per_s/o+100us") / want - 1.0).abs() < 0.02, "{record}");
    // 1.3 MB/s at 1,000 calls a second.
    let mbyte = value("gap_threshold_mbit_per_s") / 8.0;
    assert!((1.2..1.6).contains(&mbyte), "{record}");
}
