//! Which of some samples of a host came first, and which are of one run of the machine: only
//! between these there are rates.

use std::cmp::Ordering;

use counters::mountstats::Mount;

use super::Sample;

/// A sample, and the root that it was read from.
pub(super) type Read = (Sample, String);

/// By how many seconds an age, which is cut off, and an uptime may differ.
const AGE_SLACK_S: f64 = 2.0;

/// Puts samples in the order of time: by uptime where all are of one run of the machine, else by
/// the time of day, and where that is not known by the names of their roots.
pub(super) fn sort(samples: &mut [Read]) {
    samples.sort_by(|a, b| a.1.cmp(&b.1));
    let mut by_uptime: Vec<&Read> = samples.iter().collect();
    by_uptime.sort_by(|a, b| by(a.0.clock.up_s, b.0.clock.up_s));
    let is_one_run = by_uptime.windows(2).all(|two| is_one_run(two[0], two[1]));
    let is_dated = samples.iter().all(|(sample, _)| sample.clock.taken_s().is_some());
    if is_one_run {
        samples.sort_by(|a, b| by(a.0.clock.up_s, b.0.clock.up_s));
    } else if is_dated {
        samples.sort_by(|a, b| by(a.0.clock.taken_s(), b.0.clock.taken_s()));
    }
}

fn by(a: Option<f64>, b: Option<f64>) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Whether two samples, the earlier first, are of one run of the machine: their mounts have aged by
/// as much as the machine; or their runs overlap; or, where the machine's start is not known, the
/// uptime rises in the order of the roots' names.
pub(super) fn is_one_run(before: &Read, after: &Read) -> bool {
    let (earlier, later) = (&before.0.clock, &after.0.clock);
    let rises = earlier.up_s.zip(later.up_s).is_none_or(|(earlier, later)| earlier <= later);
    let is_named_so = earlier.up_s == later.up_s || before.1 <= after.1;
    has_aged_alike(&before.0, &after.0)
        || earlier.is_of_one_run(later).unwrap_or(rises && is_named_so)
}

/// Whether a mount of both has aged by as much as the machine.
fn has_aged_alike(before: &Sample, after: &Sample) -> bool {
    let Some((earlier, later)) = before.clock.up_s.zip(after.clock.up_s) else { return false };
    let is_alike = |now: &Mount, then: &Mount| {
        let ages = now.age_s.zip(then.age_s);
        (&now.device, &now.point) == (&then.device, &then.point)
            && ages.is_some_and(|(now, then)| {
                (now as f64 - then as f64 - (later - earlier)).abs() <= AGE_SLACK_S
            })
    };
    after.mounts.iter().any(|now| before.mounts.iter().any(|then| is_alike(now, then)))
}

/// Why nothing is counted from a sample of another run: the last is judged alone.
pub(super) fn why_alone(before: &Read, last: &Read) -> String {
    let (earlier, later) = (&before.0.clock, &last.0.clock);
    match earlier.is_of_one_run(later) {
        Some(_) => format!("the machine was started after it: {} is judged alone", last.1),
        None => format!(
            "the machine was started after it, or the folders' names are not in the order of time \
             (up for {:.0} s here, for {:.0} s in {}): the latter is judged alone",
            earlier.up_s.unwrap_or(0.0),
            later.up_s.unwrap_or(0.0),
            last.1
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::testing::{files, mount};

    /// Two samples with an uptime, an age of the mount, and a start of the machine each.
    fn evidence(samples: [(&str, f64, u64, Option<u64>); 2]) -> Evidence {
        let texts = samples.map(|(root, up_s, age_s, booted_s)| {
            let stats = mount("rw", &["GETATTR: 100 100 0 0 0 10 20 30"]);
            let stats = stats.replace("age:\t1234", &format!("age:\t{age_s}"));
            let booted = booted_s.map(|booted_s| format!("cpu 1 2 3 4\nbtime {booted_s}\n"));
            [
                (format!("{root}/proc/self/mountstats"), stats),
                (format!("{root}/proc/uptime"), format!("{up_s} 0\n")),
                (format!("{root}/proc/stat"), booted.unwrap_or_else(|| "cpu 1 2 3 4\n".to_owned())),
            ]
        });
        let texts: Vec<_> = texts.iter().flatten().map(|(path, text)| (&**path, &**text)).collect();
        files(&texts)
    }

    #[test]
    fn after_a_reboot_the_later_sample_is_judged_alone() {
        for booted_s in [None, Some((1_000, 2_000_000))] {
            let (first, last) = booted_s.unzip();
            let evidence = evidence([("1", 1e6, 900_000, first), ("2", 500.0, 400, last)]);
            assert_eq!(evidence.last.clock.up_s, Some(500.0), "{booted_s:?}");
            assert!(evidence.first.is_none() && evidence.between_s().is_none());
            let notes: Vec<&str> = evidence.notes.iter().map(|note| &*note.why).collect();
            assert!(notes[0].contains("the machine was started"), "{notes:?}");
            assert_eq!(notes.len(), 1, "{notes:?}");
        }
    }

    #[test]
    fn the_start_of_the_machine_counts_more_than_uptimes_and_names() {
        let evidence = evidence([("a", 900.0, 800, Some(50_000)), ("b", 500.0, 300, Some(1_000))]);
        assert_eq!(evidence.last.clock.up_s, Some(900.0), "a rising uptime, of two runs");
        assert!(evidence.first.is_none(), "{evidence:?}");
    }

    #[test]
    fn one_run_is_seen_whatever_folders_are_called_and_however_the_clock_is_set() {
        for booted_s in [None, Some((1_000, 1_000)), Some((50_000, 1_000)), Some((1_000, 50_000))] {
            let (after, before) = booted_s.unzip();
            let evidence = evidence([("after", 510.0, 410, after), ("before", 500.0, 400, before)]);
            assert_eq!(evidence.between_s(), Some(10.0), "{booted_s:?}");
            assert_eq!(evidence.last.clock.up_s, Some(510.0), "{booted_s:?}");
        }
    }
}
