//! The one table from this machine's error numbers to neutral statuses.
//!
//! Two rules shape it. What passes by itself (no memory, no descriptors, an interrupted call) is
//! `Jukebox`, "try again", and never `Stale`: a client throws its state away on `Stale`. And what
//! has no row is `Io`, because a status that promises too much is worse than a dull one.

use rustix::io::Errno;

use crate::types::Status;

pub(super) fn status(errno: Errno) -> Status {
    match errno {
        Errno::PERM => Status::NotOwner,
        Errno::NOENT => Status::NoEntry,
        Errno::NXIO | Errno::NODEV => Status::NoDevice,
        // Busy is a mount point or a running program's text: waiting does not help.
        Errno::ACCESS | Errno::BUSY | Errno::TXTBSY => Status::Access,
        Errno::EXIST => Status::Exists,
        Errno::XDEV => Status::CrossDevice,
        Errno::NOTDIR => Status::NotDirectory,
        Errno::ISDIR => Status::IsDirectory,
        Errno::INVAL | Errno::LOOP => Status::Invalid,
        Errno::FBIG | Errno::OVERFLOW => Status::TooLarge,
        Errno::NOSPC => Status::NoSpace,
        Errno::ROFS => Status::ReadOnly,
        Errno::MLINK => Status::TooManyLinks,
        Errno::NAMETOOLONG => Status::NameTooLong,
        Errno::NOTEMPTY => Status::NotEmpty,
        Errno::DQUOT => Status::Quota,
        Errno::STALE => Status::Stale,
        Errno::OPNOTSUPP | Errno::NOSYS => Status::NotSupported,
        Errno::AGAIN | Errno::INTR | Errno::MFILE | Errno::NFILE | Errno::NOMEM => Status::Jukebox,
        _ => Status::Io,
    }
}

/// For opening what a handle names: a path that no longer leads to the file is a stale handle.
pub(super) fn stale_status(errno: Errno) -> Status {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::STALE => Status::Stale,
        other => status(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_never_stale() {
        for errno in [Errno::AGAIN, Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert_eq!(status(errno), Status::Jukebox);
            assert_eq!(stale_status(errno), Status::Jukebox);
        }
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_a_stale_handle_but_a_missing_name_is_not() {
        assert_eq!(status(Errno::NOENT), Status::NoEntry);
        assert_eq!(stale_status(Errno::NOENT), Status::Stale);
        assert_eq!(stale_status(Errno::ACCESS), Status::Access);
    }
}
