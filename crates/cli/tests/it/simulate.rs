//! `nfskit model simulate`: a topology in, one screen and a record out.

use crate::program::run;

const TOPOLOGY: &str = r#"
seed = 5
[server]
disk = "ssd-sata"
[[clients]]
count = 3
link = "lan-1g,o=5us"
[workload]
warm-up = "5ms"
time = "40ms"
files = "256K"
[[faults]]
what = "crash"
at = "20ms"
down = "5ms"
"#;

fn file(text: &str) -> (tempfile::TempDir, String) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("topology.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (place, path)
}

#[test]
fn a_topology_is_run_the_same_each_time_and_another_seed_gives_another_run() {
    let (_place, path) = file(TOPOLOGY);
    let finished = run(["model", "simulate", &path]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["throughput", "response time", "server 1 disk", "digest", "seed 5", "calls/s"] {
        assert!(finished.stdout.contains(part), "no {part:?} in {finished:?}");
    }
    let digest = |extra: &[&str]| {
        let json = run([&["model", "simulate", &path, "--json", "-"], extra].concat());
        let record: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
        assert!(record["metrics"]["operations_per_s"]["value"].as_f64().unwrap() > 0.0);
        record["workload"]["parameters"]["digest"].as_str().unwrap().to_owned()
    };
    let first = digest(&[]);
    assert!(finished.stdout.contains(&first), "{first}: {finished:?}");
    assert_eq!(digest(&["--seed", "5"]), first);
    assert_ne!(digest(&["--seed", "6"]), first);
}

#[test]
fn outputs_that_cannot_be_written_are_found_before_the_run() {
    let (place, path) = file("no topology");
    let page = place.path().join("none/page.html");
    let finished = run(["model", "simulate", &path, "--html", page.to_str().unwrap()]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("page.html"), "{finished:?}");
}

#[test]
fn a_file_without_end_is_refused_and_not_held_in_memory() {
    let (_place, path) = file("");
    std::fs::File::options().write(true).open(&path).unwrap().set_len(65 << 20).unwrap();
    run(["model", "simulate", &path]).complains(3, &["more than 64 MiB"]);
}

#[test]
fn utilization_over_time_and_the_curve_are_reported() {
    let (place, path) = file(TOPOLOGY.split("[[faults]]").next().unwrap());
    let page = place.path().join("page.html");
    let page_name = page.to_str().unwrap();
    let finished = run(["model", "simulate", &path, "--curve", "--html", page_name]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("rate") && finished.stdout.contains("p95"), "{finished:?}");
    let page = std::fs::read_to_string(page).unwrap();
    for part in ["Utilization over time", "Response time over throughput", "<svg"] {
        assert!(page.contains(part), "no {part:?}");
    }
}

#[test]
fn a_topology_that_cannot_be_had_is_refused_with_its_line() {
    let (_place, path) = file(&TOPOLOGY.replace("ssd-sata", "floppy"));
    let refused = run(["model", "simulate", &path]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    for part in ["topology.toml: line 4: unknown disk \"floppy\"", "hdd, ssd-sata", "try: "] {
        assert!(refused.stderr.contains(part), "no {part:?} in {refused:?}");
    }
    let missing = run(["model", "simulate", "/nonexistent.toml"]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
}
