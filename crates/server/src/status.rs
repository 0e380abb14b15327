//! The one table from [`Status`] to the numbers of NFS versions 2 and 3.

use wire::nfs2::{self, NfsStat2};
use wire::nfs3::{NfsStat3, Procedure};

use crate::types::Status;

/// How `procedure` says `status`.
///
/// The RFC's lists of errors are "not intended to be the definitive statement" (RFC 1813
/// section 3), and clients turn every number into the errno of that name. Two kinds are replaced
/// all the same: those that the RFC says otherwise for a procedure, and those with a meaning that
/// a client would act on in the wrong place.
pub(crate) fn nfsstat3(procedure: Procedure, status: Status) -> NfsStat3 {
    use Procedure as P;
    match (status, procedure) {
        // Not a regular file (sections 3.3.2, 3.3.6, 3.3.7, 3.3.21), or not to be linked (3.3.15).
        (Status::IsDirectory, P::Setattr | P::Read | P::Write | P::Commit | P::Link) => {
            NfsStat3::Inval
        }
        // Without a name in the arguments, only the file itself can be missing.
        (
            Status::NoEntry,
            P::Getattr | P::Setattr | P::Access | P::Readlink | P::Read | P::Write | P::Commit,
        )
        | (Status::NoEntry, P::Readdir | P::Readdirplus | P::Fsstat | P::Fsinfo | P::Pathconf) => {
            NfsStat3::Stale
        }
        // Answers to a question that was not put.
        (Status::NotSync, procedure) if procedure != P::Setattr => NfsStat3::ServerFault,
        (Status::BadCookie | Status::TooSmall, procedure)
            if !matches!(procedure, P::Readdir | P::Readdirplus) =>
        {
            NfsStat3::ServerFault
        }
        (status, _) => plain(status),
    }
}

fn plain(status: Status) -> NfsStat3 {
    match status {
        Status::NotOwner => NfsStat3::Perm,
        Status::NoEntry => NfsStat3::NoEnt,
        Status::Io => NfsStat3::Io,
        Status::NoDevice => NfsStat3::NxIo,
        Status::Access => NfsStat3::Acces,
        Status::Exists => NfsStat3::Exist,
        Status::CrossDevice => NfsStat3::XDev,
        Status::NotDirectory => NfsStat3::NotDir,
        Status::IsDirectory => NfsStat3::IsDir,
        Status::Invalid => NfsStat3::Inval,
        Status::TooLarge => NfsStat3::FBig,
        Status::NoSpace => NfsStat3::NoSpc,
        Status::ReadOnly => NfsStat3::RoFs,
        Status::TooManyLinks => NfsStat3::MLink,
        Status::NameTooLong => NfsStat3::NameTooLong,
        Status::NotEmpty => NfsStat3::NotEmpty,
        Status::Quota => NfsStat3::DQuot,
        Status::Stale => NfsStat3::Stale,
        Status::BadHandle => NfsStat3::BadHandle,
        Status::NotSync => NfsStat3::NotSync,
        Status::BadCookie => NfsStat3::BadCookie,
        Status::NotSupported => NfsStat3::NotSupp,
        Status::TooSmall => NfsStat3::TooSmall,
        Status::BadType => NfsStat3::BadType,
        Status::Jukebox | Status::Away => NfsStat3::Jukebox,
        Status::ServerFault => NfsStat3::ServerFault,
    }
}

/// How a procedure of version 2 says `status`.
///
/// The RFC's numbers are those of UNIX's errors; three more of those that all clients know are
/// sent, rather than a wrong one: XDEV, INVAL, MLINK. What has no number at all is the nearest.
pub(crate) fn nfsstat2(procedure: nfs2::Procedure, status: Status) -> NfsStat2 {
    use nfs2::Procedure as P;
    match (status, procedure) {
        // Without a name in the arguments, only the file itself can be missing.
        (
            Status::NoEntry,
            P::Getattr | P::Setattr | P::Readlink | P::Read | P::Write | P::Readdir | P::Statfs,
        ) => NfsStat2::Stale,
        (status, _) => plain2(status),
    }
}

fn plain2(status: Status) -> NfsStat2 {
    match status {
        Status::NotOwner => NfsStat2::Perm,
        Status::NoEntry => NfsStat2::NoEnt,
        Status::NoDevice => NfsStat2::NxIo,
        Status::Access => NfsStat2::Acces,
        Status::Exists => NfsStat2::Exist,
        Status::CrossDevice => NfsStat2::XDev,
        Status::NotDirectory => NfsStat2::NotDir,
        Status::IsDirectory => NfsStat2::IsDir,
        // The last three are what a client may ask for, and this version has no word for.
        Status::Invalid | Status::BadCookie | Status::TooSmall | Status::BadType => NfsStat2::Inval,
        Status::TooLarge => NfsStat2::FBig,
        Status::NoSpace => NfsStat2::NoSpc,
        Status::ReadOnly => NfsStat2::RoFs,
        Status::TooManyLinks => NfsStat2::MLink,
        Status::NameTooLong => NfsStat2::NameTooLong,
        Status::NotEmpty => NfsStat2::NotEmpty,
        Status::Quota => NfsStat2::DQuot,
        // A handle we never made leads nowhere either.
        Status::Stale | Status::BadHandle => NfsStat2::Stale,
        // There is no "try again": an error that passes is one of the disk, and never STALE.
        Status::Io
        | Status::Jukebox
        | Status::Away
        | Status::NotSupported
        | Status::NotSync
        | Status::ServerFault => NfsStat2::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Status; 26] = [
        Status::NotOwner,
        Status::NoEntry,
        Status::Io,
        Status::NoDevice,
        Status::Access,
        Status::Exists,
        Status::CrossDevice,
        Status::NotDirectory,
        Status::IsDirectory,
        Status::Invalid,
        Status::TooLarge,
        Status::NoSpace,
        Status::ReadOnly,
        Status::TooManyLinks,
        Status::NameTooLong,
        Status::NotEmpty,
        Status::Quota,
        Status::Stale,
        Status::BadHandle,
        Status::NotSync,
        Status::BadCookie,
        Status::NotSupported,
        Status::TooSmall,
        Status::BadType,
        Status::Jukebox,
        Status::ServerFault,
    ];

    #[test]
    fn no_two_statuses_share_a_number() {
        let mut codes: Vec<u32> = ALL.iter().map(|&status| plain(status).code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ALL.len());
        assert_eq!(plain(Status::Away), plain(Status::Jukebox), "but that is to be tried again");
    }

    #[test]
    fn version_2_has_fewer_numbers_and_all_of_them_listed() {
        for status in ALL {
            let sent = plain2(status);
            assert!(NfsStat2::LISTED.contains(&sent), "{status:?}");
            let same = sent.code() == plain(status).code();
            let nearest = matches!(
                status,
                Status::BadCookie
                    | Status::TooSmall
                    | Status::BadType
                    | Status::BadHandle
                    | Status::Jukebox
                    | Status::NotSupported
                    | Status::NotSync
                    | Status::ServerFault
            );
            assert!(same != nearest, "{status:?}");
        }
        assert_eq!(nfsstat2(nfs2::Procedure::Write, Status::NoEntry), NfsStat2::Stale);
        assert_eq!(nfsstat2(nfs2::Procedure::Lookup, Status::NoEntry), NfsStat2::NoEnt);
    }

    #[test]
    fn a_missing_file_is_stale_where_no_name_was_given() {
        let stat = |procedure| nfsstat3(procedure, Status::NoEntry);
        assert_eq!(stat(Procedure::Getattr), NfsStat3::Stale);
        assert_eq!(stat(Procedure::Fsinfo), NfsStat3::Stale);
        assert_eq!(stat(Procedure::Lookup), NfsStat3::NoEnt);
        assert_eq!(stat(Procedure::Rename), NfsStat3::NoEnt);
    }

    #[test]
    fn directories_are_invalid_for_those_who_want_bytes() {
        let stat = |procedure| nfsstat3(procedure, Status::IsDirectory);
        assert_eq!(stat(Procedure::Write), NfsStat3::Inval);
        assert_eq!(stat(Procedure::Remove), NfsStat3::IsDir);
    }

    #[test]
    fn answers_to_special_questions_stay_there() {
        let sync = |procedure| nfsstat3(procedure, Status::NotSync);
        assert_eq!(sync(Procedure::Setattr), NfsStat3::NotSync);
        assert_eq!(sync(Procedure::Write), NfsStat3::ServerFault);
        let cookie = |procedure| nfsstat3(procedure, Status::BadCookie);
        assert_eq!(cookie(Procedure::Readdirplus), NfsStat3::BadCookie);
        assert_eq!(cookie(Procedure::Lookup), NfsStat3::ServerFault);
    }
}
