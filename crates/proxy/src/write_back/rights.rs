//! Who may do what with a file: what the origin has granted a caller, and what its mode says while
//! changes of that are on their way. Pure.
//!
//! A mode counts only for the owner of the file and for root, and only if they are the same at the
//! origin: it may take root for nobody, or everybody for one user. What others may, an ACL may say
//! otherwise than the mode. Of them, and of whom it is not known who they are there, the origin
//! says what they may, once it has the file and its mode.

use perf::units::{Instant, Nanos};
use server::types::{Access, Attr, Caller, FileKind};

/// How long a caller is taken to have the rights that the origin reported: as for a directory, by
/// nfs(5).
const RIGHTS_GOOD_FOR: Nanos = Nanos::from_secs(60);

/// Callers of a node whose rights are known.
const CALLERS_MAX: usize = 8;

/// Who calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'c> {
    pub(crate) caller: &'c Caller,
    /// The origin takes him for who he says he is.
    pub(crate) is_himself: bool,
}

impl Who<'_> {
    /// Root, at the origin, too.
    pub(crate) fn is_root(&self) -> bool {
        self.is_himself && self.caller.uid == 0
    }

    /// Whether the file is certainly his.
    pub(crate) fn owns(&self, attr: &Attr) -> bool {
        self.is_himself && attr.uid == self.caller.uid
    }
}

#[derive(Clone, Debug)]
struct Right {
    caller: Caller,
    granted: u32,
    at: Instant,
}

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    of_origin: Vec<Right>,
    /// The record by which mode or owner are otherwise here than there.
    own: Option<u64>,
    /// The origin's replies to calls of before this count no more.
    epoch: u64,
}

impl Rights {
    /// The mode or the owner is another one by this record.
    pub(crate) fn change(&mut self, number: u64) {
        self.own = Some(number);
    }

    /// Records up to this one, or all, have come to the origin.
    pub(crate) fn arrived(&mut self, number: u64, is_last: bool, epoch: u64) {
        if self.own.take_if(|own| is_last || *own <= number).is_some() {
            self.forget(epoch);
        }
    }

    /// They are others at the origin since this epoch.
    pub(crate) fn forget(&mut self, epoch: u64) {
        self.of_origin.clear();
        self.epoch = self.epoch.max(epoch);
    }

    /// Whether mode and owner are the same at the origin.
    pub(crate) fn are_there(&self) -> bool {
        self.own.is_none()
    }

    /// The origin has granted this in reply to a call of `epoch`. False: it may be otherwise by
    /// now.
    pub(crate) fn note(&mut self, caller: &Caller, granted: u32, epoch: u64, now: Instant) -> bool {
        if !self.are_there() || epoch < self.epoch {
            return false;
        }
        self.of_origin.retain(|right| right.caller != *caller);
        if self.of_origin.len() >= CALLERS_MAX {
            self.of_origin.remove(0);
        }
        self.of_origin.push(Right { caller: caller.clone(), granted, at: now });
        true
    }

    /// What the origin has granted, and whether that was lately.
    pub(crate) fn of_origin(&self, caller: &Caller, now: Instant) -> Option<(u32, bool)> {
        let right = self.of_origin.iter().find(|right| right.caller == *caller)?;
        Some((right.granted, now.since(right.at) <= RIGHTS_GOOD_FOR))
    }
}

/// What a caller may by the mode of a file that only we know.
pub(crate) fn by_mode(attr: &Attr, caller: &Caller) -> u32 {
    let is_dir = attr.kind == FileKind::Directory;
    let bits = caller.mode_bits(attr.kind, attr.mode, (attr.uid, attr.gid));
    let mut granted = 0;
    if bits & 0o4 != 0 {
        granted |= Access::READ;
    }
    if bits & 0o2 != 0 {
        granted |= Access::MODIFY | Access::EXTEND | if is_dir { Access::DELETE } else { 0 };
    }
    if bits & 0o1 != 0 {
        granted |= if is_dir { Access::LOOKUP } else { Access::EXECUTE };
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_back::nodes::tests::attr;

    fn caller(uid: u32, gid: u32) -> Caller {
        Caller { uid, gid, gids: vec![5] }
    }

    #[test]
    fn a_mode_gives_rights_to_owner_group_and_others() {
        let file = attr(1);
        assert_eq!(by_mode(&file, &caller(7, 1)), Access::READ | Access::MODIFY | Access::EXTEND);
        assert_eq!(by_mode(&file, &caller(9, 8)), Access::READ);
        assert_eq!(by_mode(&file, &caller(9, 9)), 0);
        assert_eq!(by_mode(&Attr { gid: 5, ..file }, &caller(9, 9)), Access::READ);
        assert_eq!(by_mode(&file, &caller(0, 9)) & Access::EXECUTE, 0);
        let dir = Attr { kind: FileKind::Directory, mode: 0o751, ..file };
        assert_eq!(by_mode(&dir, &caller(9, 9)), Access::LOOKUP);
    }

    #[test]
    fn what_the_origin_has_granted_is_good_for_a_minute() {
        let (mut rights, now, one) = (Rights::default(), Instant::EPOCH, caller(7, 1));
        assert_eq!(rights.of_origin(&one, now), None);
        assert!(rights.note(&one, Access::READ, 0, now));
        assert_eq!(rights.of_origin(&one, now), Some((Access::READ, true)));
        let late = now + Nanos::from_secs(61);
        assert_eq!(rights.of_origin(&one, late), Some((Access::READ, false)));
        (0..9).for_each(|uid| assert!(rights.note(&caller(uid, 1), 0, 0, now)));
        assert_eq!(rights.of_origin(&caller(0, 1), now), None, "those of eight are known");
    }

    #[test]
    fn a_reply_that_is_older_than_a_change_of_rights_is_not_noted() {
        let (mut rights, now, one) = (Rights::default(), Instant::EPOCH, caller(7, 1));
        assert!(rights.note(&one, Access::READ, 1, now));
        rights.change(4);
        rights.change(6);
        assert!(!rights.note(&one, Access::READ, 2, now), "they are to be others");
        rights.arrived(4, false, 3);
        assert!(!rights.are_there());
        rights.arrived(6, false, 5);
        assert!(rights.are_there() && rights.of_origin(&one, now).is_none());
        assert!(!rights.note(&one, Access::READ, 4, now), "requested before");
        assert!(rights.note(&one, 0, 5, now));
    }
}
