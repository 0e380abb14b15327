//! The one table from the store's reasons to the protocol's.

use wire::nfs3::NfsStat3;

use crate::types::Status;

pub(crate) fn nfsstat3(status: Status) -> NfsStat3 {
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
        Status::Jukebox => NfsStat3::Jukebox,
        Status::ServerFault => NfsStat3::ServerFault,
    }
}
