//! Which bits of a mode the origin gives to what is made in a directory. A default ACL, or what
//! else is inherited there, withholds some. So the origin makes the first that requests a bit, and
//! what requests no others is answered from the log from then on. Pure.
//!
//! A directory that is made here inherits what the one above it has: what one of them shows counts
//! for both, until somebody else changes one.

use std::sync::atomic::{AtomicU32, Ordering};

/// Of every mode: it was seen what becomes of one at all.
const SEEN: u32 = 0o10000;

/// All bits but those that a set-group-ID directory gives.
const BITS: u32 = SEEN | 0o1777;

#[derive(Debug, Default)]
struct Bits {
    given: AtomicU32,
    withheld: AtomicU32,
}

/// See the module's head: those of files, and those of directories.
#[derive(Debug, Default)]
pub(crate) struct Modes([Bits; 2]);

impl Modes {
    fn of(&self, is_dir: bool) -> (u32, u32) {
        let Bits { given, withheld } = &self.0[usize::from(is_dir)];
        let withheld = withheld.load(Ordering::Relaxed);
        (given.load(Ordering::Relaxed) & !withheld, withheld)
    }

    /// Whether what is made with this mode has it for certain.
    pub(crate) fn gives(&self, is_dir: bool, mode: u32) -> bool {
        (mode & BITS | SEEN) & !self.of(is_dir).0 == 0
    }

    /// Whether it is known what becomes of this mode.
    pub(crate) fn are_known(&self, is_dir: bool, mode: u32) -> bool {
        let (given, withheld) = self.of(is_dir);
        (mode & BITS | SEEN) & !(given | withheld) == 0
    }

    /// The origin has made something that was to have this mode with that one.
    pub(crate) fn note(&self, is_dir: bool, requested: u32, made: u32) {
        let Bits { given, withheld } = &self.0[usize::from(is_dir)];
        let (requested, made) = (requested & BITS | SEEN, made & BITS | SEEN);
        // Where it adds some, no mode is certain.
        let lost = if made & !requested == 0 { requested & !made } else { BITS };
        given.fetch_or(requested, Ordering::Relaxed);
        withheld.fetch_or(lost, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_certain_once_the_origin_has_given_all_of_its_bits() {
        let modes = Modes::default();
        assert!(!modes.gives(false, 0) && !modes.are_known(false, 0o644));
        modes.note(false, 0o644, 0o644);
        assert!(modes.gives(false, 0o600) && modes.gives(false, 0o444));
        assert!(!modes.gives(false, 0o755) && !modes.gives(true, 0o644));
        modes.note(true, 0o777, 0o2750);
        assert!(modes.gives(true, 0o750) && !modes.gives(true, 0o755));
        assert!(modes.are_known(true, 0o755), "it is withheld");
    }

    #[test]
    fn what_is_withheld_later_is_certain_no_more_nor_is_anything_where_bits_are_added() {
        let modes = Modes::default();
        modes.note(false, 0o666, 0o666);
        modes.note(false, 0o644, 0o600);
        assert!(!modes.gives(false, 0o644) && modes.gives(false, 0o600));
        modes.note(false, 0o600, 0o660);
        assert!(!modes.gives(false, 0) && modes.are_known(false, 0o777));
    }
}
