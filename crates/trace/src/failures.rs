//! Calls of a client that its server answers with an error: with which.

use super::postponed::is_later;

/// Statuses of a pair that are distinguished; others count in no one's number.
pub const STATUSES_MAX: usize = 64;
/// That there is no such name is an answer (NFS3ERR_NOENT, NFS4ERR_NOENT).
const NOENT: u32 = 2;

/// Errors of a client with a server.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(super) calls: u64,
    statuses: Vec<(u32, u64)>,
}

impl Failures {
    /// A call was answered so.
    pub(super) fn answered(&mut self, status: Option<u32>) {
        let Some(status) = status.filter(|status| !matches!(*status, 0 | NOENT)) else { return };
        if is_later(Some(status)) {
            return;
        }
        self.calls += 1;
        if let Some((_, count)) = self.statuses.iter_mut().find(|(known, _)| *known == status) {
            *count += 1;
        } else if self.statuses.len() < STATUSES_MAX {
            self.statuses.push((status, 1));
        }
    }

    /// The most frequent, and how often it was.
    pub(super) fn most(&self) -> Option<(u32, u64)> {
        self.statuses.iter().copied().max_by_key(|(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_error_of_the_work_does_not_count_and_statuses_are_bounded() {
        let mut failures = Failures::default();
        for status in [None, Some(0), Some(2), Some(10_008), Some(10_013)] {
            failures.answered(status);
        }
        assert_eq!((failures.calls, failures.most()), (0, None));
        (0..1_000).for_each(|more| failures.answered(Some(20_000 + more)));
        failures.answered(Some(20_003));
        assert_eq!((failures.calls, failures.most()), (1_001, Some((20_003, 2))));
        assert_eq!(failures.statuses.len(), STATUSES_MAX);
    }
}
