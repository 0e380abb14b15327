//! What the kernel's client has counted in a guest (Linux 6.1, its own server on the loopback)
//! while faults were provoked, and what is said of it. Each folder has two samples; of mountstats
//! and mountinfo it has the lines of the mount, of ss those of its connections, all else is left
//! out.

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

#[test]
fn any_beginning_of_a_sample_gives_findings_from_what_is_there_or_says_what_is_not() {
    let whole = files("noac");
    let path = "2/proc/self/mountstats";
    let text = whole.text(path).unwrap().to_vec();
    for end in (0..text.len()).step_by(13) {
        let mut files = whole.clone();
        files.put(path, &text[..end]);
        let evidence = Evidence::of(files);
        let reports = diagnose(&evidence, &Limits::default());
        let is_told =
            !evidence.notes.is_empty() || reports.iter().any(|one| !one.missing.is_empty());
        let ends_a_line = end > 0 && text[end - 1] == b'\n';
        assert!(is_told || ends_a_line || !reports.is_empty(), "{end}");
    }
}
