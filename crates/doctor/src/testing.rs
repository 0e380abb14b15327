//! Samples for tests: texts as kernels print them, as short as they may be.

use super::case::Case;
use super::collect::Files;
use super::evidence::Evidence;
use super::finding::{Found, Judged};
use super::limits::Limits;
use super::rules::Rule;
use super::subject::Mounted;

/// A mount with these options and operations, 1234 s old.
pub(crate) fn mount(options: &str, operations: &[&str]) -> String {
    let mut text = format!(
        "device server:/export mounted on /mnt with fstype nfs statvers=1.1\n\
         \topts:\t{options}\n\tage:\t1234\n\
         \tcaps:\tcaps=0x3fef,wtmult=4096,dtsize=1048576,bsize=0,namlen=255\n\
         \tsec:\tflavor=1,pseudoflavor=1\n\
         \tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 0 0 0\n\
         \tbytes:\t100 200 0 0 100 200 1 2\n\
         \tRPC iostats version: 1.1  p/v: 100003/3 (nfs)\n\
         \txprt:\ttcp 800 1 1 0 3 400 400 0 450 17 16 30 40\n\
         \tper-op statistics\n"
    );
    for operation in operations {
        text.push_str(&format!("\t        {operation}\n"));
    }
    text
}

/// Evidence of one sample.
pub(crate) fn one(mountstats: &str) -> Evidence {
    let mut files = Files::default();
    files.put("proc/self/mountstats", mountstats);
    Evidence::of(files)
}

/// Evidence of two samples, so many seconds apart.
pub(crate) fn two(seconds: f64, first: &str, last: &str) -> Evidence {
    let mut files = Files::default();
    files.put("1/proc/self/mountstats", first);
    files.put("1/proc/uptime", "1000.0 0\n");
    files.put("2/proc/self/mountstats", last);
    files.put("2/proc/uptime", format!("{} 0\n", 1000.0 + seconds));
    Evidence::of(files)
}

/// What a rule says of the first mount of some evidence.
pub(crate) fn judged(rule: &Rule, evidence: &Evidence) -> Judged {
    let limits = Limits::default();
    let mounts = Mounted::all(evidence);
    (rule.judge)(&Case { evidence, limits: &limits, mount: mounts.first() })
}

/// The same, which must be a finding.
pub(crate) fn found(rule: &Rule, evidence: &Evidence) -> Found {
    match judged(rule, evidence) {
        Judged::Found(found) => *found,
        other => panic!("{}: {other:?}", rule.name),
    }
}

/// All is well, by a number.
pub(crate) fn is_fine(rule: &Rule, evidence: &Evidence) {
    let judged = judged(rule, evidence);
    assert!(matches!(judged, Judged::Fine(_)), "{}: {judged:?}", rule.name);
}
