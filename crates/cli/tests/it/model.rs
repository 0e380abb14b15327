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
    for part in ["open        after", "closed      after", "by the processor"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let foreign = run([&["model", "whatif", &curve, "wsize=1M"], &known[..]].concat());
    assert_eq!(foreign.code, Some(2));
    assert!(
        foreign.stderr.contains("a change of wsize like this has no answer here"),
        "{foreign:?}"
    );
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
fn a_sweep_or_a_curve_that_does_not_saturate_has_no_number_for_it() {
    let files = Files::new();
    let line = "outstanding throughput_per_s\n1 1000\n2 2000\n4 4000\n8 8000\n16 16000\n";
    let sweep = files.with("sweep.txt", line);
    let json = files.with("out.json", "");
    let printed = run(["model", "fit", &sweep, "--json", &json]).stdout;
    let record = std::fs::read_to_string(&json).unwrap();
    assert!(!record.contains("saturation_per_s") && !record.contains("/stage"), "{record}");
    for part in [
        "no saturation shows up to 16 calls outstanding: 16000 calls/s at least",
        "62.5 us at most",
        "stage does not show in this data",
    ] {
        assert!(printed.contains(part), "no {part:?} in {printed}");
    }
    let printed = run(["model", "whatif", &sweep, "outstanding x4", "--outstanding", "8"]).stdout;
    for part in ["none shows", "no saturation shows up to 16 calls outstanding: with more"] {
        assert!(printed.contains(part), "no {part:?} in {printed}");
    }
    let rows = (1..=6).map(|row| format!("{row}00 1\n")).collect::<String>();
    let curve = files.with("flat.txt", &format!("throughput_per_s response_ms\n{rows}"));
    let printed = run(["model", "infer", &curve]).stdout;
    assert!(printed.contains("none shows up to 600 calls/s"), "{printed}");
}

#[test]
fn callers_that_are_few_limit_the_formula_and_the_world_alike() {
    let files = Files::new();
    let (curve, json) = (files.with("curve.txt", F840), files.with("out.json", ""));
    let few = ["--cpus", "2", "--disks", "76", "--callers", "2", "--json", &json];
    let printed = run([&["model", "whatif", &curve, "L+1ms"], &few[..]].concat()).stdout;
    assert!(printed.contains("calls/s, by the callers"), "{printed}");
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let value = |name: &str| {
        record["metrics"][format!("{name}/saturation_per_s")]["value"].as_f64().unwrap()
    };
    for when in ["before", "after"] {
        let (world, formula) =
            (value(&format!("simulation/{when}")), value(&format!("closed/{when}")));
        assert!((world / formula - 1.0).abs() < 0.1, "{when}: {world} {formula}");
    }
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

/// As a probe of a path 500 us away leaves it. Calls are long, so that few of them are simulated.
pub(crate) const PROBED: &str = r#"{"schema": "nfskit.run/1", "tool": {"version": "0"},
"started": "2026-01-01T00:00:00Z", "model": {"path": {"round_trip_us": 1000.0,
"ser_us_per_kib": 8.5, "op_us": 40.0, "overhead_us": 1.0, "capacity_call_us": 3.0,
"capacity_us_per_kib": 8.2, "sync_us": 100.0, "sync_us_per_kib": 2.0, "sync_left_us_per_kib": 0.5,
"unhidden_us_per_kib": 0.1, "stalls": false, "latency_us": 0.0, "call_bytes": 65536,
"outstanding": 2, "commit_bytes": 4194304, "spread": [0.05, 0.02, 0.1, 0.2, 0.05, 0.3]}}}"#;

#[test]
fn a_probed_path_is_changed_by_formula_mean_value_analysis_and_simulation() {
    let files = Files::new();
    let probed = files.with("probe.json", PROBED);
    let json = files.with("whatif.json", "");
    let finished = run(["model", "whatif", &probed, "L+1ms", "--json", &json]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in
        ["formula", "MVA", "simulation", "bound by", "network round trip (2 T_prop)", "gain"]
    {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
    let (formula, world) = (value("formula/after/mib_per_s"), value("simulation/after/mib_per_s"));
    assert!((world / formula - 1.0).abs() < 0.1, "{record}");
    assert!(record["metrics"]["formula/after/mib_per_s"]["ci95"].is_array(), "{record}");
    let many = run(["model", "whatif", &probed, "outstanding=64", "wsize=64K"]);
    assert!(many.stdout.contains("always busy"), "{many:?}");
    let foreign = run(["model", "whatif", &probed, "cache=64G"]);
    assert_eq!(foreign.code, Some(2), "{foreign:?}");
    let simulated = run(["model", "simulate", &probed]);
    assert_eq!(simulated.code, Some(0), "{simulated:?}");
    let broken = files.with("broken.json", &PROBED.replace("1000.0", "-1.0"));
    let refused = run(["model", "whatif", &broken, "L+1ms"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("round_trip_us is -1"), "{refused:?}");
}

/// The same path behind a link of 50 us and 1 Gbit/s, with what was measured of it.
fn linked(measured: &str) -> String {
    let known =
        format!(r#""latency_us": 50.0, "link_us_per_kib": 8.192, "measured": [{measured}]"#);
    PROBED.replace(r#""latency_us": 0.0"#, &known)
}

/// With a sweep of it.
fn swept() -> String {
    let measured =
        [(1, 39.0), (2, 78.0), (4, 114.0), (8, 116.0)].map(|(outstanding, mib_per_s)| {
            let point = format!(r#""outstanding": {outstanding}, "mib_per_s": {mib_per_s}"#);
            format!(r#"{{"call_bytes": 65536, {point}}}"#)
        });
    linked(&measured.join(", "))
}

#[test]
fn the_latency_and_the_rate_that_a_record_knows_of_are_replaced() {
    let files = Files::new();
    let (unknown, known) = (files.with("probe.json", PROBED), files.with("link.json", &linked("")));
    let after = |file: &str, change: &str| {
        let json = files.with("out.json", "");
        let finished = run(["model", "whatif", file, change, "--json", &json]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let record: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        (record["metrics"]["formula/after/mib_per_s"]["value"].as_f64().unwrap(), finished.stdout)
    };
    // 50 us are there already: nothing changes. Where they are not known, they are added, and the
    // reply has that.
    let (same, text) = after(&known, "L=50us");
    assert!((same / after(&known, "L+0us").0 - 1.0).abs() < 1e-9 && !text.contains("is added"));
    let (added, text) = after(&unknown, "L=50us");
    assert!((added / after(&unknown, "L+50us").0 - 1.0).abs() < 1e-9, "{text}");
    assert!(text.contains("is added") && text.contains("--latency"), "{text}");
    let with_latency = run(["model", "whatif", &unknown, "L=50us", "--latency", "50us"]);
    assert!(!with_latency.stdout.contains("is added"), "{with_latency:?}");
    // Rates are written as a link's are, and one that is faster needs a link that is known.
    let as_link = ["G=100m", "G=100Mbit/s", "G=100 Mbit/s", "G=12.5MB/s"];
    let rates = as_link.map(|change| after(&known, change).0);
    assert!(rates.iter().all(|rate| (rate / rates[0] - 1.0).abs() < 1e-9), "{rates:?}");
    assert!(after(&known, "G=10g").0 > after(&known, "L+0us").0);
    let refused = run(["model", "whatif", &unknown, "G=10g"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for part in ["not known", "a slower G", "probe --link"] {
        assert!(refused.stderr.contains(part), "no {part:?} in {refused:?}");
    }
}

#[test]
fn the_readmes_changes_have_an_answer_of_a_probe_of_any_server() {
    let files = Files::new();
    let probed = files.with("probe.json", PROBED);
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));
    let readme = readme.unwrap();
    let commands = readme.lines().filter_map(|line| line.strip_prefix("nfskit model whatif "));
    let mut tried = 0;
    for changes in commands.filter_map(|words| words.strip_prefix("probe.json ")) {
        let words = changes.split(" #").next().unwrap().split_whitespace();
        let finished = run(["model", "whatif", &probed].into_iter().chain(words));
        assert_eq!(finished.code, Some(0), "{changes}: {finished:?}");
        tried += 1;
    }
    assert!(tried > 1, "{tried} commands");
}

#[test]
fn a_what_if_says_which_model_it_believes_and_what_its_base_rests_on() {
    let files = Files::new();
    let (unknown, known) = (files.with("probe.json", PROBED), files.with("link.json", &swept()));
    let text = run(["model", "whatif", &known, "L+1ms"]).stdout;
    for part in ["believe the ", "the median of 4 points", "base: held to the 78.0 MiB/s"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // What was measured of the change itself is no matter of belief.
    let text = run(["model", "whatif", &known, "outstanding x2"]).stdout;
    let measured = "\nmeasured, less the beginning and the end of the run by the model: 114.0 MiB/s, \
                    1.46 x; the formula is ";
    for part in [measured, "base: held to the 78.0 MiB/s"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("believe"), "{text}");
    let text = run(["model", "whatif", &unknown, "outstanding x2"]).stdout;
    for part in ["believe the formula", "nothing was measured", "the gain is surer"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let text = swept()
        .replace(r#""outstanding": 2, "mib_per_s": 78"#, r#""outstanding": 2, "mib_per_s": 5"#);
    let text = run(["model", "whatif", &files.with("far.json", &text), "L+1ms"]).stdout;
    assert!(text.contains("something else limits") && !text.contains("believe"), "{text}");
    let unsteady = swept().replace(r#""measured""#, r#""runs_differ_pct": 31, "measured""#);
    let text = run(["model", "whatif", &files.with("unsteady.json", &unsteady), "L+1ms"]).stdout;
    assert!(text.contains("differ by 31 % among themselves"), "{text}");
    let steady = unsteady.replace("31", "3");
    let text = run(["model", "whatif", &files.with("steady.json", &steady), "L+1ms"]).stdout;
    assert!(!text.contains("among themselves"), "{text}");
}

#[test]
fn a_what_if_repeats_what_a_record_says_of_the_machine_that_it_was_measured_on() {
    let files = Files::new();
    let mut record: serde_json::Value = serde_json::from_str(PROBED).unwrap();
    record["warnings"] = serde_json::json!([
        { "code": "busy_machine", "text": "others used 96 % of the processors" },
        { "code": "way", "text": "of no matter here" },
    ]);
    let busy = files.with("busy.json", &record.to_string());
    let text = run(["model", "whatif", &busy, "L+1ms"]).stdout;
    assert!(text.contains("the record warns: others used 96 % of the processors"), "{text}");
    assert!(!text.contains("of no matter here"), "{text}");
}

#[test]
fn a_probed_path_is_simulated_as_the_write_that_was_probed() {
    let files = Files::new();
    let json = files.with("simulated.json", "");
    let probed = files.with("probe.json", PROBED);
    let finished = run(["model", "simulate", &probed, "--json", &json]);
    assert!(finished.stdout.contains("sequential write in calls of 64 KiB"), "{finished:?}");
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let simulated = record["metrics"]["written_bytes_per_s"]["value"].as_f64().unwrap();
    let whatif = run(["model", "whatif", &probed, "L+0us"]).stdout;
    let formula: f64 =
        whatif.lines().nth(1).unwrap().split_whitespace().nth(4).unwrap().parse().unwrap();
    let ratio = simulated / f64::from(1 << 20) / formula;
    assert!((0.9..1.1).contains(&ratio), "{ratio} of {formula}: {finished:?}");
    let beside = format!("formula       {formula:.1}");
    assert!(finished.stdout.contains(&beside[..beside.len() - 1]), "{beside}: {finished:?}");
    assert_eq!(run(["model", "simulate", &probed, "--curve"]).code, Some(2));
}

#[test]
fn a_simulated_rate_that_does_not_come_is_a_warning_and_nothing_measured_a_failure() {
    let files = Files::new();
    let of = |name: &str, workload: &str| {
        let text = format!(
            "[server]\ndisk = \"hdd\"\n[[clients]]\ncount = 1\nlink = \"lan-1g\"\n\
             [workload]\nmix = \"write\"\nfiles = \"1M\"\n{workload}"
        );
        files.with(name, &text)
    };
    let over = of("over.toml", "rate = 100000\nwarm-up = \"200ms\"\ntime = \"200ms\"\n");
    let json = files.with("over.json", "");
    let finished = run(["model", "simulate", &over, "--json", &json]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["the rate was not kept: of 100000 operations/s", "never started"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    assert!(!finished.stdout.contains(" 0 ns "), "{finished:?}");
    assert!(std::fs::read_to_string(&json).unwrap().contains("rate-not-kept"));
    let idle = of("idle.toml", "rate = 0.0001\ntime = \"1s\"\n");
    run(["model", "simulate", &idle]).complains(3, &["nothing was measured"]);
}

#[test]
fn clients_of_several_kinds_are_simulated_side_by_side_and_have_a_table() {
    let files = Files::new();
    let json = files.with("kinds.json", "");
    let topology = files.with(
        "kinds.toml",
        "[[clients]]\ncount = 2\nlink = \"lan-1g\"\n[[clients]]\ncount = 2\nlink = \"wan-80ms\"\n\
         [workload]\nmix = \"getattr\"\nfiles = \"64K\"\nwarm-up = \"100ms\"\ntime = \"200ms\"\n",
    );
    let text = run(["model", "simulate", &topology, "--json", &json]).stdout;
    let rows = text.lines().filter(|line| line.starts_with("2 "));
    let row = |link: &str| rows.clone().find(|row| row.ends_with(&format!("behind {link}")));
    let near = row("lan-1g").unwrap_or_else(|| panic!("{text}"));
    let cells: Vec<&str> = near.split_whitespace().collect();
    assert_eq!((cells[0], &cells[1][..2], &cells[2][..2]), ("2", "90", "45"), "{text}");
    assert!(row("wan-80ms").is_some_and(|row| row.contains("80.")), "{text}");
    let json = std::fs::read_to_string(&json).unwrap();
    assert!(json.contains("clients2/operations_per_s"), "{json}");
}

#[test]
fn a_change_that_cannot_be_is_refused_with_its_limit() {
    let probe = "../../examples/probe.json";
    let refused = |args: &[&str], why: &str| {
        run(["model"].iter().chain(args)).complains(2, &[why]);
    };
    refused(&["whatif", probe, "wsize=1G"], "at least 1 and at most 1000000000");
    refused(&["whatif", probe, "outstanding=1.5"], "outstanding is 1.5: it has to be a whole");
    refused(&["whatif", probe, "--latency", "1h", "L=1ms"], "more than the round trip of");
    let shares = ["sensitivity", probe, "--reads", "60", "--writes", "60"];
    refused(&shares, "--reads 60 and --writes 60 are 120 of 100 operations");
}

#[test]
fn callers_that_are_too_few_have_no_simulated_response_time() {
    let files = Files::new();
    let curve = files.with("f840.txt", F840);
    let one = ["--cpus", "2", "--disks", "76", "--callers", "1"];
    let text = run([&["model", "whatif", &curve, "L+1ms"], &one[..]].concat()).stdout;
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("simulation")).collect();
    assert!(rows.iter().take(2).all(|row| row.contains("not reached")), "{text}");
}

#[test]
fn a_sweep_that_falls_is_a_warning() {
    let files = Files::new();
    let rows = "1 1000\n2 900\n4 800\n8 700\n16 600\n";
    let sweep = files.with("falls.txt", &format!("outstanding throughput_per_s\n{rows}"));
    let fit = run(["model", "fit", &sweep]).stdout;
    for part in ["throughput falls from 1000 calls/s with 1", "1000 calls/s at least"] {
        assert!(fit.contains(part), "no {part:?} in {fit}");
    }
    assert!(!fit.contains("until throughput stops growing"), "{fit}");
    let whatif = run(["model", "whatif", &sweep, "outstanding x4"]).stdout;
    assert!(whatif.contains("throughput falls from"), "{whatif}");
}

#[test]
fn what_a_fit_saved_is_changed_as_what_it_was_fitted_to() {
    let files = Files::new();
    let sweep = files.with(
        "sweep.txt",
        "outstanding throughput_per_s\n1 1980\n2 3890\n4 7600\n8 14000\n16 22500\n32 24800\n",
    );
    let saved = files.with("fit.json", "");
    run(["model", "fit", &sweep, "--json", &saved]);
    let ask = |file: &str| run(["model", "whatif", file, "outstanding x4", "--outstanding", "4"]);
    let (direct, by_record) = (ask(&sweep), ask(&saved));
    assert_eq!(direct.code, Some(0), "{direct:?}");
    assert_eq!(direct.stdout, by_record.stdout);
    let curve = files.with("f840.txt", F840);
    let saved = files.with("infer.json", "");
    run(["model", "infer", &curve, "--cpus", "2", "--disks", "76", "--json", &saved]);
    // So few callers do not come to the rate, which is not simulated then.
    let known = ["--cpus", "2", "--disks", "76", "--callers", "2"];
    let answer = run([&["model", "whatif", &saved, "L+1ms"], &known[..]].concat());
    assert!(answer.stdout.contains("by the processor"), "{answer:?}");
    let fitted = run(["model", "fit", &curve, "--cpus", "2", "--disks", "76"]);
    assert!(fitted.stdout.contains("overall response time 1.559 ms"), "{fitted:?}");
}

#[test]
fn a_trace_is_explained_and_what_it_does_not_show_is_stated() {
    let files = Files::new();
    let mut text = "sent_us answered_us bytes stable\n".to_owned();
    // Two callers, one server: 100 us of way, 60 us for a call, 8 us a KiB.
    let (mut free, mut next) = (0.0_f64, [0.0_f64, 10.0]);
    for call in 0..400 {
        let own = usize::from(next[1] < next[0]);
        let kib = [1.0, 8.0, 64.0][call % 3];
        let sent = next[own];
        let done = free.max(sent + 50.0) + 60.0 + 8.0 * kib;
        (free, next[own]) = (done, done + 50.0);
        let (answered, bytes) = (next[own], kib * 1024.0);
        text.push_str(&format!("{sent} {answered} {bytes} 0\n"));
    }
    let finished = run(["model", "fit", &files.with("trace.txt", &text)]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["400 of 400 transactions", "way", "op", "ser", "servers", "typical error"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let broken = files.with("broken.txt", "sent_us answered_us bytes stable\n5 4 0 0\n");
    let refused = run(["model", "fit", &broken]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("row 2: the response time is -1"), "{refused:?}");
}

#[test]
fn a_bad_file_is_reported_by_its_row_and_reason() {
    let files = Files::new();
    for (text, why) in [
        ("", "0 rows of numbers"),
        ("100 1\n200 2\n", "row 1: the heading has to name two columns with their units"),
        ("throughput_per_s response_ms\n100 1\n90 2\n", "row 3: the throughput of 90 a second"),
        ("throughput_per_s response_ms\n100 1\n200 -2\n", "row 3: the response time is -2000"),
        ("throughput_per_s response_ms\n100 1\nNaN 2\n", "row 3: the throughput is NaN"),
    ] {
        let finished = run(["model", "infer", &files.with("bad.txt", text)]);
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert!(finished.stderr.contains(why), "no {why:?} in {finished:?}");
    }
    let few = files.with("few.txt", "throughput_per_s response_ms\n100 1\n200 2\n");
    let finished = run(["model", "infer", &few, "--disks", "1"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("2 values for 4 parameters"), "{finished:?}");
}

#[test]
fn a_bad_sweep_trace_or_record_is_reported_by_its_row_and_reason() {
    let files = Files::new();
    let (sweep, trace) = ("outstanding throughput_per_s\n", "sent_us answered_us bytes stable\n");
    for (text, why) in [
        ("outstanding throughput\n1 2\n".to_owned(), "row 1: the heading has to name two columns"),
        (format!("{sweep}1 1980\n0 3\n"), "row 3: the number of outstanding calls is 0"),
        (format!("{sweep}1.5 3\n"), "row 2: the number of outstanding calls is 1.5"),
        (format!("{sweep}1 NaN\n"), "row 2: the throughput is NaN"),
        (format!("{sweep}1 -3\n"), "row 2: the throughput is -3"),
        (format!("{sweep}1 2 3\n"), "row 2: 2 numbers are needed"),
        ("sent_us answered_us bytes\n1 2 3\n".to_owned(), "row 1: the heading has to name"),
        (format!("{trace}1 2 -5 0\n"), "row 2: the number of bytes is -5"),
        (format!("{trace}-1 2 5 0\n"), "row 2: the time at which the call was sent is -1"),
        (format!("{trace}1 2 5 0.5\n"), "row 2: the mark of a stable call is 0.5"),
        (format!("{trace}1 NaN 5 0\n"), "row 2: the response time is NaN"),
        (format!("{trace}1 2 5 yes\n"), "row 2: 4 numbers are needed"),
        ("{".to_owned(), "line 1"),
        ("{}".to_owned(), "not a run record"),
        ("[]".to_owned(), "there are 0 records"),
        (PROBED.replace("model", "other"), "has nothing to explain"),
        (PROBED.replace("1000.0", "null"), "model.path"),
        (PROBED.replace("\"outstanding\": 2", "\"outstanding\": 0"), "outstanding is 0"),
    ] {
        let finished = run(["model", "whatif", &files.with("bad", &text), "outstanding=4"]);
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert!(finished.stderr.contains(why), "no {why:?} in {finished:?}");
    }
    let binary = files.directory.path().join("binary");
    std::fs::write(&binary, b"outstanding throughput_per_s\n1 \xff\n").unwrap();
    let finished = run(["model", "fit", binary.to_str().unwrap()]);
    finished.complains(3, &["row 2: this is no text"]);
    for (text, code, why) in [
        (format!("{sweep}1 1980\n2 3890\n"), 3, "2 values for"),
        (format!("{trace}1 2 5 0\n"), 3, "1 values for"),
        (format!("{sweep}1 100\n2 1\n4 100\n8 1\n"), 1, "the model does not fit"),
    ] {
        let finished = run(["model", "fit", &files.with("few", &text)]);
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.stderr.contains(why), "no {why:?} in {finished:?}");
    }
}

/// As `nfskit bench curve` writes it, of two servers.
fn curve_records(servers: &[&str]) -> String {
    let record = |server: &&str| {
        let mut metrics = String::new();
        let mut verdicts = String::new();
        for line in F840.lines().skip(1) {
            let (per_s, ms) = line.split_once(' ').unwrap();
            let us = ms.parse::<f64>().unwrap() * 1e3;
            metrics += &format!(
                "\"load/{per_s}.000/achieved_per_s\": {{\"value\": {per_s}, \"unit\": \"1/s\"}}, \
                 \"load/{per_s}.000/response_us\": {{\"value\": {us}, \"unit\": \"us\"}}, "
            );
            verdicts += &format!("\"load/{per_s}.000\": \"valid\", ");
        }
        // Beyond its saturation.
        metrics += "\"load/40000.000/achieved_per_s\": {\"value\": 31000, \"unit\": \"1/s\"}, \
                    \"load/40000.000/response_us\": {\"value\": 900000, \"unit\": \"us\"}";
        verdicts += "\"load/40000.000\": \"over\"";
        format!(
            "{{\"schema\": \"nfskit.run/1\", \"tool\": {{\"version\": \"0\"}}, \"started\": \"\", \
             \"target\": {{\"kind\": \"server\", \"url\": \"{server}\"}}, \
             \"workload\": {{\"name\": \"curve\"}}, \"metrics\": {{{metrics}}}, \
             \"verdicts\": {{{verdicts}}}}}"
        )
    };
    let records: Vec<String> = servers.iter().map(record).collect();
    match &records[..] {
        [one] => one.clone(),
        all => format!("[\n{}\n]\n", all.join(",\n")),
    }
}

#[test]
fn a_record_of_a_measured_curve_is_fitted_as_the_curve_is() {
    let files = Files::new();
    let known = ["--cpus", "2", "--disks", "76"];
    let curve = run([&["model", "fit", &files.with("f840.txt", F840)], &known[..]].concat());
    let one = files.with("one.json", &curve_records(&["nfs://a/x"]));
    let fitted = run([&["model", "fit", &one], &known[..]].concat());
    assert_eq!(fitted.code, Some(0), "{fitted:?}");
    assert_eq!(fitted.stdout, curve.stdout);
    let two = files.with("two.json", &curve_records(&["nfs://a/x", "nfs://b/x"]));
    let which = run(["model", "fit", &two]);
    assert_eq!(which.code, Some(2), "{which:?}");
    assert!(which.stderr.contains("choose with --of, of nfs://a/x, nfs://b/x"), "{which:?}");
    let chosen = run([&["model", "fit", &two, "--of", "//b"], &known[..]].concat());
    assert_eq!(chosen.stdout, curve.stdout);
}
