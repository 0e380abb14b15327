//! nhfsstone, the mixes that it is given, and NULL at a rate: what they print, record, leave and
//! refuse.

use std::process::Command;

use serde_json::Value;

use crate::program::{Finished, Program, nfskit};
use crate::served::Served;

const NOTHING: [String; 0] = [];

fn nhfsstone(target: &str, arguments: &[&str]) -> Command {
    let mut command = nfskit(["bench", "nhfsstone", "--target", target]);
    command.args(arguments);
    command
}

fn finish(mut command: Command) -> Finished {
    Program::start(&mut command).finish()
}

#[test]
fn null_calls_are_made_at_a_rate_and_recorded() {
    let served = Served::folder(&["--udp"]);
    for (transport, proto) in [("", "tcp"), ("&version=2&proto=udp", "udp")] {
        let target = format!("{}{transport}", served.url());
        let arguments = ["--rate", "200", "--time", "100ms", "--json", "-", "--target", &target];
        let finished = finish({
            let mut command = nfskit(["bench", "null"]);
            command.args(arguments);
            command
        });
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let record: Value = serde_json::from_str(&finished.stdout).unwrap();
        let value = |name: &str| record["metrics"][name]["value"].as_f64().unwrap();
        // 19 are due; on a busy machine some of them are not started in time, and counted as such.
        assert_eq!(value("calls") + value("calls_not_started"), 19.0, "{record}");
        assert_eq!(record["target"]["proto"], proto, "{record}");
    }
}

#[test]
fn a_run_prints_the_originals_table_and_leaves_nothing() {
    let served = Served::folder(&["--udp"]);
    let out = tempfile::tempdir().unwrap();
    let record = out.path().join("run.json");
    let record_path = record.to_str().unwrap();
    for arguments in ["", "&version=2&proto=udp"] {
        let target = format!("{}{arguments}", served.url());
        let command = nhfsstone(
            &target,
            &["-p", "2", "-c", "2500", "-l", "5000", "--busy", "--json", record_path],
        );
        let finished = finish(command);
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        for part in [
            "op        want       got    calls      secs  msec/call    time %\n",
            "\nlookup     34%",
            " calls/sec ",
            " msec/call\n",
            "\nmix is off ",
        ] {
            assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
        }
        assert_eq!(served.left_behind(), NOTHING);
        let record: Value =
            serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
        assert_eq!(record["workload"]["name"], "nhfsstone");
        assert_eq!(record["workload"]["parameters"]["mix"], "laddis");
        assert!(record["metrics"]["calls"]["value"].as_f64().unwrap() >= 2500.0);
        assert_eq!(record["metrics"]["failed"]["value"], 0.0);
    }
    served.stop();
}

#[test]
fn records_are_compared_by_what_calls_take_and_not_by_the_load_that_was_offered() {
    let served = Served::folder(&[]);
    let out = tempfile::tempdir().unwrap();
    let run = |calls: &str, load: &str| {
        let path = out.path().join(format!("{calls}-{load}"));
        let path = path.to_str().unwrap().to_owned();
        let one = ["-p", "1", "-T", "getattr", "--busy"];
        let arguments = [&one[..], &["-c", calls, "-l", load, "--json", &path]].concat();
        let finished = finish(nhfsstone(&served.url(), &arguments));
        assert_eq!(finished.code, Some(0), "{finished:?}");
        path
    };
    let compare = |first: &str, second: &str| {
        Program::start(&mut nfskit(["bench", "compare", "--first", first, "--second", second]))
            .finish()
    };
    // A load that any machine keeps to: less than was offered would be a result of its own.
    let (one, longer, faster) = (run("20", "20"), run("40", "20"), run("20", "40"));
    let calls = compare(&one, &longer);
    calls.complains(2, &["calls (20 and 40)", "--mix-parameters"]);
    compare(&one, &faster).complains(2, &["load_per_s (20.0 and 40.0)"]);
    // A record of its own, and the same load.
    let same = compare(&one, &run("20", "20.0"));
    assert_eq!(same.code, Some(0), "{same:?}");
    for part in ["call_ms_mean", "getattr_ms_mean", "one record has no interval"] {
        assert!(same.stdout.contains(part), "no {part:?} in {same:?}");
    }
    for part in ["elapsed", "getattr_s", "calls_per_s", "--repeats"] {
        assert!(!same.stdout.contains(part), "{part:?} in {same:?}");
    }
    served.stop();
}

#[test]
fn a_rate_that_was_not_reached_is_reported() {
    let served = Served::folder(&[]);
    let out = tempfile::tempdir().unwrap();
    let record = out.path().join("run.json");
    let one = ["-p", "1", "-c", "1000", "-l", "1000000", "--busy", "--json"];
    let arguments = [&one[..], &[record.to_str().unwrap()]].concat();
    let finished = finish(nhfsstone(&served.url(), &arguments));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("\nrate        NOT reached: "), "{finished:?}");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    let warnings = record["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["code"] == "rate-not-kept"), "{record}");
}

#[test]
fn a_target_without_room_is_reported_before_anything_is_made() {
    let small = Served::memory(&["--mem-size", "1M"]);
    let finished = finish(nhfsstone(&small.url(), &["-p", "8"]));
    finished.complains(3, &["no room", "bytes are needed", "--processes"]);
    assert_eq!(small.left_behind(), Vec::<String>::new());
}

#[test]
fn a_mix_is_what_nfsstat_printed_or_a_file_and_a_bad_one_has_its_place() {
    let served = Served::folder(&[]);
    let files = tempfile::tempdir().unwrap();
    let given = |name: &str, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let counted = given(
        "counted",
        "Client nfs v3:\nnull getattr\n0 0% 50 25%\nmkdir rmdir\n75 37% \
                                    75 37%\n",
    );
    let run = |mix: &str| {
        let one = ["-p", "1", "-c", "200", "-l", "2000", "--busy", "-m", mix];
        finish(nhfsstone(&served.url(), &one))
    };
    let finished = run(&counted);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert!(finished.stdout.contains("200 calls of version 3 that"), "{finished:?}");
    assert!(finished.stdout.contains("\nmkdir   37.50%"), "{finished:?}");
    for (name, text, expected) in [
        ("unknown", "getattr 50\n rea 50\n", "unknown: line 2, column 2: \"rea\" is not an"),
        ("short", "getattr 50\nread 40\n", "short: the shares add up to 90.00, not to 100"),
        ("broken", "rc 1 2 3\nproc3 2 1 x\n", "broken: line 2, column 11: \"x\" where a number"),
        ("few", "rc 1 2 3\nproc3 2 1 9\n", "10 calls of version 3, and a mix rests on 100"),
    ] {
        let finished = run(&given(name, text));
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        assert!(finished.stderr.contains(expected), "{finished:?}");
        assert!(finished.stderr.contains("\n   try: "), "{finished:?}");
    }
    let refused = finish(nhfsstone(&served.url(), &["-T", "3"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(served.left_behind(), NOTHING);
    served.stop();
}
