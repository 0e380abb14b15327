//! `bench policies`: what it prints, records and leaves.

use serde_json::Value;

use crate::program::{Program, nfskit};
use crate::served::Served;

#[test]
fn five_policies_stand_side_by_side_in_table_record_and_report() {
    let out = tempfile::tempdir().unwrap();
    let (report, record) = (out.path().join("report.html"), out.path().join("record.json"));
    let mut command = nfskit(["bench", "policies", "--quick", "--repeats", "1", "--out"]);
    command.arg(&report).arg("--json").arg(&record);
    let finished = Program::start(&mut command).finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    for part in ["figure 2", "table 1", "the paper", "lock wait", "482.1"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let page = std::fs::read_to_string(report).unwrap();
    let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    for policy in ["linux-2.4.4", "no-flush", "hashed", "unlocked", "adaptive"] {
        assert!(page.contains(policy), "{policy}");
        let mean = &record["metrics"][format!("{policy}/4096kib/fast/mean_us")]["value"];
        assert!(mean.as_f64() > Some(0.0), "{policy}: {mean}");
    }
    assert_eq!(record["workload"]["name"], "policies");
    assert!(!page.contains("<script"));
}

#[test]
fn somebody_elses_server_is_left_clean() {
    let (out, served) = (tempfile::tempdir().unwrap(), Served::folder(&[]));
    let report = out.path().join("report.html");
    let mut command = nfskit(["bench", "policies", "--quick", "--repeats", "1", "--target"]);
    command.arg(served.url()).arg("--out").arg(&report);
    let finished = Program::start(&mut command).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stdout.contains("slow\n"), "{finished:?}");
    assert_eq!(served.left_behind(), [] as [String; 0]);
    served.stop();
}

#[test]
fn sizes_that_no_policy_has_are_refused() {
    let mut command = nfskit(["bench", "policies", "--wsize", "2M"]);
    let finished = Program::start(&mut command).finish();
    assert_eq!(finished.code, Some(2), "{finished:?}");
}
