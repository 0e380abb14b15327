//! Captures among the evidence: what `nfskit trace` says of each.

use doctor::Report;
use doctor::collect::Files;
use doctor::reason::of_capture;
use doctor::rules::Captured;
use inspect::verdict::Verdict;

/// How pcap, in both orders of bytes, with nanoseconds or not, and pcapng begin.
const MAGICS: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// A report of each capture, which is taken out of the files.
pub(super) fn reports(files: &mut Files) -> Vec<Report> {
    let is_capture = |text: &[u8]| MAGICS.iter().any(|magic| text.starts_with(magic));
    let captures = files.take(is_capture);
    let mut reports = Vec::new();
    for (path, text) in captures {
        match inspect::verdict_of(&path, &text) {
            Ok(seen) => reports.push(report(&path, seen)),
            Err(error) => files.note(path, error.to_string()),
        }
    }
    reports
}

fn report(path: &str, seen: Verdict) -> Report {
    let captured = seen.verdict.map(|found| Captured {
        of: seen.of,
        suspect: found.suspect,
        share: found.share,
        certainty: found.certainty,
        what: found.sentence,
        evidence: found.evidence,
        against: found.against,
        remedy: found.advice.to_owned(),
    });
    of_capture(path, seen.seconds, captured.as_ref().map_err(String::clone))
}
