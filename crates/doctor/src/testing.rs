//! Samples for tests: texts as kernels print them, as short as they may be.

use super::case::Case;
use super::collect::Files;
use super::evidence::Evidence;
use super::finding::{Found, Judged, NoFinding};
use super::rule::{Limits, Rule};
use super::subject::{Hosted, Mounted, Served};

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

/// Evidence of one sample of these files.
pub(crate) fn files(texts: &[(&str, &str)]) -> Evidence {
    let mut files = Files::default();
    for (path, text) in texts {
        files.put(*path, *text);
    }
    Evidence::of(files)
}

/// What a rule says of the first mount, the server and the host of some evidence.
pub(crate) fn judged(rule: &Rule, evidence: &Evidence) -> Judged {
    let limits = Limits::default();
    let (mounts, server) = (Mounted::all(evidence), Served::of(evidence));
    let host = &Hosted::of(evidence);
    let (mount, server) = (mounts.first(), server.as_ref());
    (rule.judge)(&Case { evidence, limits: &limits, host, mount, server })
}

/// The same, which must be a finding.
pub(crate) fn found(rule: &Rule, evidence: &Evidence) -> Found {
    judged(rule, evidence).unwrap_or_else(|other| panic!("{}: {other:?}", rule.name))
}

/// All is well, by a number.
pub(crate) fn is_fine(rule: &Rule, evidence: &Evidence) {
    let judged = judged(rule, evidence);
    assert!(matches!(judged, Err(NoFinding::Fine(_))), "{}: {judged:?}", rule.name);
}

/// It is not about this.
pub(crate) fn is_quiet(rule: &Rule, evidence: &Evidence) {
    let judged = judged(rule, evidence);
    assert!(matches!(judged, Err(NoFinding::NotApplicable)), "{}: {judged:?}", rule.name);
}

/// It wants more to judge by.
pub(crate) fn wants_more(rule: &Rule, evidence: &Evidence) {
    let judged = judged(rule, evidence);
    assert!(matches!(judged, Err(NoFinding::Missing(_))), "{}: {judged:?}", rule.name);
}

/// A server whose counters have these lines, and these files besides.
pub(crate) fn server(lines: &str, others: &[(&str, &str)]) -> Evidence {
    let mut text = lines.to_owned();
    if !lines.contains("rpc ") {
        text.push_str("rpc 20000 0 0 0 0\n");
    }
    text.push_str("th 8 0\n");
    let all: Vec<(&str, &str)> =
        [("proc/net/rpc/nfsd", &*text)].into_iter().chain(others.iter().copied()).collect();
    files(&all)
}

/// A server of which one file has changed in ten seconds.
pub(crate) fn server_twice(path: &str, first: &str, last: &str) -> Evidence {
    let counters = [
        ("1/proc/net/rpc/nfsd", "rpc 100 0 0 0 0\nth 8 0\n"),
        ("2/proc/net/rpc/nfsd", "rpc 20000 0 0 0 0\nth 8 0\n"),
    ];
    host_twice(path, first, last, &counters)
}

/// A host of which one file has changed in ten seconds; other files are of the second sample,
/// unless they say otherwise.
pub(crate) fn host_twice(path: &str, first: &str, last: &str, others: &[(&str, &str)]) -> Evidence {
    let (one, two) = (format!("1/{path}"), format!("2/{path}"));
    let mut all = vec![("1/proc/uptime", "1000.0 0\n"), ("2/proc/uptime", "1010.0 0\n")];
    all.extend([(one.as_str(), first), (two.as_str(), last)]);
    let below: Vec<(String, &str)> = others
        .iter()
        .map(|(path, text)| match path.starts_with(['1', '2']) {
            true => ((*path).to_owned(), *text),
            false => (format!("2/{path}"), *text),
        })
        .collect();
    all.extend(below.iter().map(|(path, text)| (path.as_str(), *text)));
    files(&all)
}
