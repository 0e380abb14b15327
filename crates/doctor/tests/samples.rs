//! What the kernel's client has counted in a guest (Linux 6.1, its own server on the loopback)
//! while faults were provoked, and what the doctor reports of it. Each folder has two samples; of
//! mountstats and mountinfo it has the lines of the mount, of ss those of its connections, all else
//! is left out.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

use std::path::Path;

use doctor::collect::{Files, saved};
use doctor::{Evidence, Limits, Report, Severity, diagnose};

fn files(name: &str) -> Files {
    saved(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)).unwrap()
}

fn report(name: &str) -> Report {
    let evidence = Evidence::of(files(name));
    assert!(evidence.notes.is_empty(), "{name}: {:?}", evidence.notes);
    let mut reports = diagnose(&evidence, &Limits::default());
    assert_eq!(reports.len(), 1, "{name}");
    reports.pop().unwrap()
}

const SAMPLES: [&str; 9] =
    ["latency", "nconnect", "noac", "symlinks", "sync", "tiny", "v41", "v42nc", "well"];

#[test]
fn the_first_finding_names_the_fault_that_was_provoked() {
    for (name, rule, severity) in [
        ("latency", "latency-bound", Severity::High), // netem, 10 ms each way
        ("noac", "attribute-caching-off", Severity::High),
        ("symlinks", "attribute-caching-off", Severity::High), // actimeo=0
        ("sync", "sync-mount", Severity::High),
        ("tiny", "small-transfers", Severity::High), // rsize=1024,wsize=1024
        ("v41", "client-queue", Severity::Medium),   // 16 MiB written out in one burst
        ("v42nc", "symbolic-links", Severity::Medium), // 100 links, each followed once
    ] {
        let report = report(name);
        let first = &report.findings[0];
        assert_eq!(
            (first.rule.name, first.found.severity),
            (rule, severity),
            "{name}: {report:#?}"
        );
        assert_eq!(report.verdict, first.found.what);
    }
}

#[test]
fn a_mount_that_is_well_has_no_finding_that_weighs() {
    for name in ["well", "nconnect"] {
        let report = report(name);
        assert!(
            report.severity().is_none_or(|found| found == Severity::Low),
            "{name}: {report:#?}"
        );
        assert!(report.verdict.starts_with("nothing stands out"), "{}", report.verdict);
    }
}

#[test]
fn the_floor_is_that_of_the_connection_and_the_shares_add_up() {
    let report = report("latency");
    let floor = report.floor.unwrap();
    assert!((20.0..21.0).contains(&floor.ms), "{floor:?}");
    let shares = report.shares.unwrap();
    let sum: f64 = shares.of_calls.iter().map(|(_, share)| share).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    let network = shares.of_calls.iter().find(|(place, _)| place.name() == "network").unwrap().1;
    assert!((0.85..0.95).contains(&network), "{network}");
}

/// What is cut off is reported, or all that is left are whole lines, or nothing.
fn is_reported(files: Files, path: &str, end: usize) {
    let left = files.text(path).unwrap_or_default().to_vec();
    let evidence = Evidence::of(files);
    let reports = diagnose(&evidence, &Limits::default());
    let says = !evidence.notes.is_empty() || reports.iter().any(|one| !one.missing.is_empty());
    // Of a single line nobody knows whether it has ended.
    let is_whole = left.last().is_none_or(|last| *last == b'\n') || !left.contains(&b'\n');
    assert!(says || is_whole || !reports.is_empty(), "{path} to {end}");
}

#[test]
fn any_beginning_of_any_sample_gives_findings_from_what_is_there_or_says_what_is_not() {
    const CUTS: usize = 30;
    for folder in SAMPLES {
        let whole = files(folder);
        let paths: Vec<String> = whole.all().map(|(path, _)| path.to_owned()).collect();
        for path in paths {
            let text = whole.text(&path).unwrap().to_vec();
            for end in (0..text.len()).step_by(text.len() / CUTS + 1) {
                let mut files = whole.clone();
                files.put(path.clone(), &text[..end]);
                is_reported(files, &path, end);
            }
        }
    }
}

#[test]
fn any_beginning_of_any_output_that_somebody_has_pasted_does_so_too() {
    for corpus in ["pasted_outputs", "host_counters", "mountstats", "nfsd_counters", "nfsstat"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read(entry.unwrap().path()).unwrap();
            // Each place of a line is met, whatever its length: all of them take a quarter minute.
            for end in (0..text.len()).step_by(5) {
                let mut files = Files::default();
                files.put("output", &text[..end]);
                is_reported(files, "output", end);
            }
        }
    }
}
