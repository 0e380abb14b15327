//! Who may do what: the mode bits of Unix, and what RFC 1813 section 4.4 adds.
//!
//! ACCESS answers from the mode bits alone. READ and WRITE let two more through, because a client
//! has checked them when the file was opened and the server cannot know: the owner, whatever the
//! bits say (it may have opened the file before a chmod), and reading by those who may execute
//! (a program is read to be run). What ACCESS allows is therefore always allowed.

use crate::types::{Access, Caller, FileKind, Status};

use super::inode::Inode;

pub(super) const READ: u32 = 0o4;
pub(super) const WRITE: u32 = 0o2;
pub(super) const EXECUTE: u32 = 0o1;

pub(super) const SET_UID: u32 = 0o4000;
pub(super) const SET_GID: u32 = 0o2000;
pub(super) const STICKY: u32 = 0o1000;

pub(super) fn is_root(caller: &Caller) -> bool {
    caller.uid == 0
}

pub(super) fn is_owner(inode: &Inode, caller: &Caller) -> bool {
    is_root(caller) || caller.uid == inode.uid
}

/// Whether the mode bits give the caller all of `requested`.
pub(super) fn allows(inode: &Inode, caller: &Caller, wanted: u32) -> bool {
    caller.mode_bits(inode.kind(), inode.mode, (inode.uid, inode.gid)) & wanted == wanted
}

pub(super) fn check(inode: &Inode, caller: &Caller, wanted: u32) -> Result<(), Status> {
    allows(inode, caller, wanted).then_some(()).ok_or(Status::Access)
}

pub(super) fn check_read(inode: &Inode, caller: &Caller) -> Result<(), Status> {
    let may =
        is_owner(inode, caller) || allows(inode, caller, READ) || allows(inode, caller, EXECUTE);
    may.then_some(()).ok_or(Status::Access)
}

pub(super) fn check_write(inode: &Inode, caller: &Caller) -> Result<(), Status> {
    let may = is_owner(inode, caller) || allows(inode, caller, WRITE);
    may.then_some(()).ok_or(Status::Access)
}

/// Whether an entry for `target` may be taken out of `dir`.
pub(super) fn check_remove(dir: &Inode, target: &Inode, caller: &Caller) -> Result<(), Status> {
    check(dir, caller, WRITE | EXECUTE)?;
    let protected = dir.mode & STICKY != 0;
    match protected && !is_owner(dir, caller) && !is_owner(target, caller) {
        true => Err(Status::NotOwner),
        false => Ok(()),
    }
}

/// The bits of `requested` that the caller has. Bits without a meaning for the kind of file are not
/// given (RFC 1813 section 3.3.4).
pub(super) fn access(inode: &Inode, caller: &Caller, requested: Access) -> Access {
    let wanted: &[(u32, u32)] = match inode.kind() {
        FileKind::Directory => &[
            (Access::READ, READ),
            (Access::LOOKUP, EXECUTE),
            (Access::MODIFY, WRITE | EXECUTE),
            (Access::EXTEND, WRITE | EXECUTE),
            (Access::DELETE, WRITE | EXECUTE),
        ],
        _ => &[
            (Access::READ, READ),
            (Access::MODIFY, WRITE),
            (Access::EXTEND, WRITE),
            (Access::EXECUTE, EXECUTE),
        ],
    };
    let allowed = wanted
        .iter()
        .filter(|(_, bits)| allows(inode, caller, *bits))
        .fold(0, |allowed, (right, _)| allowed | right);
    Access(allowed & requested.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::mem::inode::tests::{directory, file};

    fn caller(uid: u32, gid: u32, gids: &[u32]) -> Caller {
        let gids = gids.to_vec();
        Caller { uid, gid, gids }
    }

    const ALL: Access = Access(0x3f);

    #[test]
    fn the_first_class_that_fits_decides() {
        let inode = file(0o146, 10, 20); // owner x, group r, others rw
        assert!(!allows(&inode, &caller(10, 20, &[]), READ));
        assert!(allows(&inode, &caller(10, 20, &[]), EXECUTE));
        assert!(!allows(&inode, &caller(11, 20, &[]), WRITE));
        assert!(allows(&inode, &caller(11, 1, &[5, 20]), READ));
        assert!(allows(&inode, &caller(11, 1, &[5]), READ | WRITE));
    }

    #[test]
    fn root_may_all_but_run_what_is_no_program() {
        let root = caller(0, 0, &[]);
        assert!(allows(&file(0, 10, 20), &root, READ | WRITE));
        assert!(!allows(&file(0o666, 10, 20), &root, EXECUTE));
        assert!(allows(&file(0o001, 10, 20), &root, EXECUTE));
        assert!(allows(&directory(0, 10, 20), &root, EXECUTE));
    }

    #[test]
    fn access_gives_only_what_has_a_meaning() {
        let root = caller(0, 0, &[]);
        assert_eq!(access(&file(0o777, 1, 1), &root, ALL), Access(0x2d));
        assert_eq!(access(&directory(0o777, 1, 1), &root, ALL), Access(0x1f));
        let other = caller(5, 5, &[]);
        assert_eq!(access(&directory(0o772, 1, 1), &other, ALL), Access(0));
        assert_eq!(
            access(&directory(0o777, 1, 1), &other, Access(Access::LOOKUP)),
            Access(Access::LOOKUP)
        );
    }

    #[test]
    fn what_access_allows_reading_and_writing_allow() {
        for mode in 0..0o1000 {
            let inode = file(mode, 10, 20);
            for who in
                [caller(0, 0, &[]), caller(10, 1, &[]), caller(11, 20, &[]), caller(12, 2, &[])]
            {
                let Access(given) = access(&inode, &who, ALL);
                if given & Access::READ != 0 {
                    assert_eq!(check_read(&inode, &who), Ok(()), "{mode:o} {who:?}");
                }
                if given & (Access::MODIFY | Access::EXTEND) != 0 {
                    assert_eq!(check_write(&inode, &who), Ok(()), "{mode:o} {who:?}");
                }
            }
        }
    }

    #[test]
    fn owners_and_those_who_may_execute_are_let_through() {
        assert_eq!(check_read(&file(0, 10, 20), &caller(10, 20, &[])), Ok(()));
        assert_eq!(check_write(&file(0, 10, 20), &caller(10, 20, &[])), Ok(()));
        let program = file(0o711, 10, 20);
        assert_eq!(check_read(&program, &caller(11, 1, &[])), Ok(()));
        let denied = Err(Status::Access);
        assert_eq!(check_write(&program, &caller(11, 1, &[])), denied);
        assert_eq!(check_read(&file(0o600, 10, 20), &caller(11, 20, &[])), denied);
    }

    #[test]
    fn a_sticky_directory_lets_only_owners_remove() {
        let (dir, target) = (directory(0o1777, 1, 1), file(0o666, 2, 2));
        let remove = |uid| check_remove(&dir, &target, &caller(uid, 9, &[]));
        assert_eq!(remove(3), Err(Status::NotOwner));
        assert_eq!((remove(1), remove(2), remove(0)), (Ok(()), Ok(()), Ok(())));
        let open = directory(0o777, 1, 1);
        assert_eq!(check_remove(&open, &target, &caller(3, 9, &[])), Ok(()));
        let closed = directory(0o755, 1, 1);
        let denied = Err(Status::Access);
        assert_eq!(check_remove(&closed, &target, &caller(2, 9, &[])), denied);
    }
}
