//! The write verifiers of all processes that served: each its own, and never another one.
//!
//! `kill -9` leaves the kernel's page cache alone, so that no data are lost here; what would
//! happen after a loss hangs on the verifier alone, which must have changed all the same.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::answer::Complaint;
use super::tally::Violation;

#[derive(Debug, Default)]
pub(super) struct Verifiers {
    seen: Mutex<BTreeMap<u64, [u8; 8]>>,
}

impl Verifiers {
    /// Notes the verifiers of a process; the first to notice something wrong reports it.
    pub(super) fn check(&self, generation: u64, verifier: [u8; 8]) -> Result<(), Complaint> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.get(&generation) {
            Some(known) if *known == verifier => return Ok(()),
            Some(_) => {
                seen.insert(generation, verifier);
                let what = format!("process {generation} has another verifier than before");
                return Err((Violation::VerifierMoved, what));
            }
            None => {}
        }
        let same = seen.iter().find(|(_, other)| **other == verifier).map(|(other, _)| *other);
        seen.insert(generation, verifier);
        match same {
            Some(other) => {
                let what = format!("process {generation} has the verifier of process {other}");
                Err((Violation::VerifierStays, what))
            }
            None => Ok(()),
        }
    }

    /// Processes that were heard of.
    pub(super) fn count(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_verifier_of_its_own_for_all_its_life() {
        let verifiers = Verifiers::default();
        assert!(verifiers.check(1, [1; 8]).is_ok() && verifiers.check(1, [1; 8]).is_ok());
        assert!(verifiers.check(2, [2; 8]).is_ok());
        assert_eq!(verifiers.check(2, [3; 8]).unwrap_err().0, Violation::VerifierMoved);
        assert_eq!(verifiers.check(3, [1; 8]).unwrap_err().0, Violation::VerifierStays);
        assert_eq!(verifiers.count(), 3);
    }
}
