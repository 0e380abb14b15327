//! What `nfsiostat` prints: rates and mean times of each mount's reads and writes.
//!
//! They become the counters that a mount would have after an hour at these rates, so that who
//! reads counters need not know of a second form. Numbers of calls are then those of that hour,
//! and no measurement.

use std::collections::BTreeSet;

use super::fields::{Line, Word};
use super::mountstats::{MOUNTS_MAX, Mount, Operation};
use super::problem::{Problem, Wrong};
use super::rpc::bounded;

/// The time that rates stand for.
pub const SECONDS: u64 = 3600;

/// A rate above this is none that a network has.
const VALUE_MAX: f64 = 1e12;

/// Whether a text looks like it.
pub fn is_likely(text: &str) -> bool {
    text.contains("rpc bklog") && text.lines().any(|line| mounted(line).is_some())
}

/// Whether a mount is reported more than once: only the first report is since it was made, and of
/// each mount the last is read.
pub fn is_interval(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut known = BTreeSet::new();
    text.lines().filter_map(mounted).any(|mount| !known.insert(mount))
}

/// `server:/export mounted on /mnt:`
fn mounted(line: &str) -> Option<(&str, &str)> {
    let (device, point) = line.trim().strip_suffix(':')?.split_once(" mounted on ")?;
    Some((device, point))
}

/// The head of an operation's columns: its name, if we know these columns, which have the rate of
/// calls first. The program `mountstats` has no colon behind the name.
fn columns(line: &str) -> Option<Option<&str>> {
    let first = line.split_whitespace().next()?;
    let (name, has_colon) = match line.split_once(':') {
        Some((name, _)) => (name, true),
        None => (first, false),
    };
    let is_known = line.contains("ops/s") && (has_colon || line.contains("kB/op"));
    (has_colon || is_known).then(|| Some(name).filter(|_| is_known))
}

/// Reads the text: of a mount with several reports the last.
///
/// # Errors
/// The first line of numbers that is broken; [`Wrong::Nothing`] where no mount has any.
pub fn read(text: &[u8]) -> Result<Vec<Mount>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut mounts: Vec<Mount> = Vec::new();
    let mut operation: Option<&str> = None;
    let mut at: Option<usize> = None;
    for line in Line::all(&text) {
        bounded(&line)?;
        if let Some(named) = mounted(line.whole()) {
            at = Some(begin(&mut mounts, named, line)?);
            operation = None;
        } else if let Some(name) = columns(line.trimmed()) {
            operation = name;
        } else if let (Some(name), Some(at), false) =
            (operation.take(), at, line.trimmed().is_empty())
        {
            let read = operation_of(name, line)?;
            mounts[at].operations.push(read);
        }
    }
    match mounts.iter().all(|mount| mount.operations.is_empty()) {
        true => Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing }),
        false => Ok(mounts),
    }
}

/// Begins a mount, in the place of an earlier report on it; gives its place.
fn begin(
    mounts: &mut Vec<Mount>,
    (device, point): (&str, &str),
    line: Line<'_>,
) -> Result<usize, Problem> {
    let mount = Mount {
        device: device.to_owned(),
        point: point.to_owned(),
        kind: "nfs".to_owned(),
        age_s: Some(SECONDS),
        ..Mount::default()
    };
    let is_one = |other: &Mount| other.point == mount.point && other.device == mount.device;
    let known = mounts.iter().position(is_one);
    if known.is_none() && mounts.len() == MOUNTS_MAX {
        let wrong = Wrong::TooMany { what: "mounts", max: MOUNTS_MAX };
        return Err({ line }.word().wrong(wrong));
    }
    match known {
        Some(known) => mounts[known] = mount,
        None => mounts.push(mount),
    }
    Ok(known.unwrap_or(mounts.len() - 1))
}

/// `ops/s kB/s kB/op retrans (share) RTT exe [queue] [errors (share)]`
fn operation_of(name: &str, mut line: Line<'_>) -> Result<Operation, Problem> {
    let mut values = Vec::new();
    let mut shares = Vec::new();
    while let Some(word) = line.next() {
        match word.text.strip_prefix('(') {
            Some(_) => shares.push(value(word)? / 100.0),
            None => values.push(value(word)?),
        }
    }
    let [per_s, _, kib_each, _, rtt_ms, execute_ms, rest @ ..] = &values[..] else {
        let (what, found) = (name.to_owned(), values.len());
        return Err(line.word().wrong(Wrong::TooFew { what, expected: 6, found }));
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let whole = |value: f64| value.clamp(0.0, VALUE_MAX * 1e6).round() as u64;
    let calls = per_s * SECONDS as f64;
    let queue_ms = rest.first().copied().unwrap_or_else(|| (execute_ms - rtt_ms).max(0.0));
    let bytes = whole(kib_each * 1024.0 * calls);
    let is_read = name.eq_ignore_ascii_case("read");
    Ok(Operation {
        name: name.trim().to_uppercase(),
        calls: whole(calls),
        transmissions: whole(calls * (1.0 + shares.first().copied().unwrap_or(0.0))),
        major_timeouts: 0,
        sent_bytes: if is_read { 0 } else { bytes },
        received_bytes: if is_read { bytes } else { 0 },
        queue_ms: whole(queue_ms * calls),
        rtt_ms: whole(rtt_ms * calls),
        execute_ms: whole(execute_ms * calls),
        errors: None,
    })
}

/// A number, also of a share: `(0.5%)`.
fn value(word: Word<'_>) -> Result<f64, Problem> {
    let bare = word.text.trim_matches(['(', ')', '%']);
    let parsed: Option<f64> = bare.parse().ok();
    let known = parsed.filter(|value| (0.0..VALUE_MAX).contains(value));
    known.ok_or_else(|| word.unexpected("a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "
server:/export mounted on /mnt/data:

           ops/s       rpc bklog
         120.500           3.000

read:              ops/s            kB/s           kB/op         retrans    avg RTT (ms)    avg exe (ms)  avg queue (ms)          errors
                  20.000         640.000          32.000        1 (0.5%)           4.000           9.000           5.000        0 (0.0%)
write:             ops/s            kB/s           kB/op         retrans    avg RTT (ms)    avg exe (ms)  avg queue (ms)          errors
                 100.000         800.000           8.000        0 (0.0%)           2.000           2.500           0.250        0 (0.0%)
";

    #[test]
    fn rates_become_the_counters_of_an_hour() {
        let [mount] = &read(NEW.as_bytes()).unwrap()[..] else { panic!("one mount") };
        assert_eq!((mount.point.as_str(), mount.age_s), ("/mnt/data", Some(3600)));
        let [read, write] = &mount.operations[..] else { panic!("{mount:?}") };
        assert_eq!((read.name.as_str(), read.calls, read.transmissions), ("READ", 72_000, 72_360));
        assert_eq!((read.queue_ms, read.rtt_ms, read.execute_ms), (360_000, 288_000, 648_000));
        assert_eq!((write.sent_bytes, write.received_bytes), (8_192 * 360_000, 0));
        assert!(is_likely(NEW));
    }

    #[test]
    fn the_older_form_has_no_queue_and_the_last_report_counts() {
        let old = "s:/e mounted on /m:\n\n  op/s\t\trpc bklog\n  1.00\t0.00\n\
            read:   ops/s kB/s kB/op retrans avg RTT (ms) avg exe (ms)\n\
            \t1.000 8.000 8.000 0 (0.0%) 4.000 10.000\n";
        let twice = format!("{old}{}", old.replace("4.000", "6.000"));
        let [mount] = &read(twice.as_bytes()).unwrap()[..] else { panic!("one mount") };
        assert_eq!(mount.operations.len(), 1);
        assert_eq!((mount.operations[0].rtt_ms, mount.operations[0].queue_ms), (21_600, 14_400));
    }

    #[test]
    fn what_is_broken_has_its_place() {
        let problem = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert!(problem(&NEW.replace("640.000", "many")).contains("line 8, column 34: \"many\""));
        assert!(problem("s:/e mounted on /m:\nread: ops/s\n 1 2 3\n").contains("has 3 numbers"));
        assert!(problem("s:/e mounted on /m:\n").contains("no NFS counters"));
    }
}
