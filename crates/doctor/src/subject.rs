//! What findings are about: mounts, the server, the host; and what each has done in the time
//! between two samples, or since it began.

use counters::mountstats::{Mount, Operation};

use super::evidence::Evidence;

/// The time that counters are of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub seconds: f64,
    /// Since the mount, or the boot: an average over what may have been long ago.
    pub is_lifetime: bool,
}

/// A mount, and what it has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Mounted {
    /// As it is now.
    pub now: Mount,
    /// Its operations, events and bytes in the span; the rest as it is now.
    pub since: Mount,
    /// None where not even its age is known.
    pub span: Option<Span>,
}

impl Mounted {
    /// Every NFS mount of the evidence.
    pub fn all(evidence: &Evidence) -> Vec<Self> {
        evidence.last.mounts.iter().map(|now| Self::of(now, evidence)).collect()
    }

    fn of(now: &Mount, evidence: &Evidence) -> Self {
        // A mount that is younger than at the first sample is another.
        let is_same = |before: &&Mount| {
            before.device == now.device && before.point == now.point && before.age_s <= now.age_s
        };
        let earlier = evidence.first.as_ref();
        let before = earlier.and_then(|first| first.mounts.iter().rev().find(is_same));
        let Some((before, seconds)) = before.zip(evidence.between_s()) else {
            let span =
                now.age_s.map(|age| Span { seconds: (age as f64).max(1.0), is_lifetime: true });
            return Self { now: now.clone(), since: now.clone(), span };
        };
        let mut since = now.clone();
        since.operations = now.operations_since(before);
        if let (Some(now), Some(before)) = (&now.events, &before.events) {
            since.events = Some(now.since(before));
        }
        if let (Some(now), Some(before)) = (&now.bytes, &before.bytes) {
            since.bytes = Some(now.since(before));
        }
        let span = Span { seconds, is_lifetime: false };
        Self { now: now.clone(), since, span: Some(span) }
    }

    /// All operations together.
    pub fn total(&self) -> Operation {
        sum(self.since.operations.iter())
    }

    /// Some operations together, by their names.
    pub fn of_names(&self, names: &[&str]) -> Operation {
        let is_one =
            |one: &&Operation| names.iter().any(|name| name.eq_ignore_ascii_case(&one.name));
        sum(self.since.operations.iter().filter(is_one))
    }

    pub fn is_lifetime(&self) -> bool {
        self.span.is_none_or(|span| span.is_lifetime)
    }

    pub fn is_tcp(&self) -> bool {
        match self.now.transports.first() {
            Some(transport) => transport.kind == "tcp",
            None => self.now.option("proto").is_some_and(|proto| proto.starts_with("tcp")),
        }
    }
}

fn sum<'a>(operations: impl Iterator<Item = &'a Operation>) -> Operation {
    let mut all = Operation::default();
    for one in operations {
        let add = |to: &mut u64, what: u64| *to = to.saturating_add(what);
        add(&mut all.calls, one.calls);
        add(&mut all.transmissions, one.transmissions);
        add(&mut all.major_timeouts, one.major_timeouts);
        add(&mut all.sent_bytes, one.sent_bytes);
        add(&mut all.received_bytes, one.received_bytes);
        add(&mut all.queue_ms, one.queue_ms);
        add(&mut all.rtt_ms, one.rtt_ms);
        add(&mut all.execute_ms, one.execute_ms);
        all.errors = match (all.errors, one.errors) {
            (None, None) => None,
            (sum, more) => Some(sum.unwrap_or(0).saturating_add(more.unwrap_or(0))),
        };
    }
    all
}

/// Means of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    pub queue_ms: f64,
    pub rtt_ms: f64,
    pub execute_ms: f64,
}

impl Means {
    /// None of no calls. A sum that cannot be (a counter that wrapped below zero: the clock was set
    /// back) is none either.
    pub fn of(operation: &Operation) -> Option<Self> {
        /// A year: no call has waited so long.
        const MS_MAX: u64 = 31_536_000_000;
        let calls = operation.calls;
        let sums = [operation.queue_ms, operation.rtt_ms, operation.execute_ms];
        if calls == 0 || sums.iter().any(|sum| sum / calls > MS_MAX) {
            return None;
        }
        let [queue_ms, rtt_ms, execute_ms] = sums.map(|sum| sum as f64 / calls as f64);
        Some(Self { queue_ms, rtt_ms, execute_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_came_between_two_samples_is_what_counts() {
        let first = testing::mount("rw", &["GETATTR: 100 100 0 0 0 10 20 30"]);
        let last = testing::mount("rw", &["GETATTR: 150 151 0 0 0 60 70 130 2"]);
        let evidence = testing::two(10.0, &first, &last);
        let [mounted] = &Mounted::all(&evidence)[..] else { panic!("one mount") };
        assert_eq!(mounted.span, Some(Span { seconds: 10.0, is_lifetime: false }));
        let total = mounted.total();
        assert_eq!((total.calls, total.retransmissions()), (50, 1));
        assert_eq!(Means::of(&total).unwrap().execute_ms, 2.0);
        assert_eq!(mounted.of_names(&["getattr"]).errors, Some(2));
        assert_eq!(mounted.of_names(&["READ"]).calls, 0);
    }

    #[test]
    fn one_sample_is_since_the_mount_and_a_mount_made_anew_is_another() {
        let text = testing::mount("rw", &["GETATTR: 100 100 0 0 0 10 20 30"]);
        let evidence = testing::one(&text);
        let [mounted] = &Mounted::all(&evidence)[..] else { panic!("one mount") };
        assert_eq!(mounted.span, Some(Span { seconds: 1234.0, is_lifetime: true }));
        let younger = text.replace("age:\t1234", "age:\t5");
        let evidence = testing::two(10.0, &text, &younger);
        assert!(Mounted::all(&evidence)[0].is_lifetime());
    }

    #[test]
    fn sums_that_cannot_be_have_no_means() {
        let wrapped = Operation { calls: 3, queue_ms: u64::MAX - 9, ..Operation::default() };
        assert_eq!(Means::of(&wrapped), None);
        assert_eq!(Means::of(&Operation::default()), None);
    }
}
