//! From what the origin says to what stores say, and back.

use server::types::{
    Attr, Before, Caller, CreateHow, FileKind, SetAttr, SetTime, Special, Status, Time, Wcc,
};
use wire::nfs3::mknod::{DeviceData, MknodData};
use wire::nfs3::{
    self, FType, Fattr3, NfsStat3, NfsTime, PostOpAttr, Sattr3, Specdata, WccAttr, WccData, create,
};

use client::session::Credential;

/// Whatever the origin says as a status is one of ours, or a fault of a server.
pub(crate) fn status(of: NfsStat3) -> Status {
    match of {
        NfsStat3::Perm => Status::NotOwner,
        NfsStat3::NoEnt => Status::NoEntry,
        NfsStat3::Io => Status::Io,
        NfsStat3::NxIo | NfsStat3::NoDev => Status::NoDevice,
        NfsStat3::Acces => Status::Access,
        NfsStat3::Exist => Status::Exists,
        NfsStat3::XDev => Status::CrossDevice,
        NfsStat3::NotDir => Status::NotDirectory,
        NfsStat3::IsDir => Status::IsDirectory,
        NfsStat3::Inval => Status::Invalid,
        NfsStat3::FBig => Status::TooLarge,
        NfsStat3::NoSpc => Status::NoSpace,
        NfsStat3::RoFs => Status::ReadOnly,
        NfsStat3::MLink => Status::TooManyLinks,
        NfsStat3::NameTooLong => Status::NameTooLong,
        NfsStat3::NotEmpty => Status::NotEmpty,
        NfsStat3::DQuot => Status::Quota,
        // A handle that the origin does not understand is one of ours that was good: its file is
        // out of reach, and that is the reply to clients.
        NfsStat3::Stale | NfsStat3::BadHandle | NfsStat3::Remote => Status::Stale,
        NfsStat3::NotSync => Status::NotSync,
        NfsStat3::BadCookie => Status::BadCookie,
        NfsStat3::NotSupp => Status::NotSupported,
        NfsStat3::TooSmall => Status::TooSmall,
        NfsStat3::BadType => Status::BadType,
        NfsStat3::Jukebox => Status::Jukebox,
        _ => Status::ServerFault,
    }
}

fn kind(of: FType) -> FileKind {
    match of {
        FType::Reg => FileKind::Regular,
        FType::Dir => FileKind::Directory,
        FType::Blk => FileKind::BlockDevice,
        FType::Chr => FileKind::CharDevice,
        FType::Lnk => FileKind::Symlink,
        FType::Sock => FileKind::Socket,
        FType::Fifo => FileKind::Fifo,
    }
}

pub(crate) fn attr(of: &Fattr3) -> Attr {
    Attr {
        kind: kind(of.ftype),
        mode: of.mode & 0o7777,
        links: of.nlink,
        uid: of.uid,
        gid: of.gid,
        size: of.size,
        used: of.used,
        device: (of.rdev.specdata1, of.rdev.specdata2),
        fsid: of.fsid,
        fileid: of.fileid,
        accessed: time(of.atime),
        modified: time(of.mtime),
        changed: time(of.ctime),
        // Version 3 does not tell.
        made: None,
    }
}

pub(crate) fn post_op(of: PostOpAttr) -> Option<Attr> {
    of.as_ref().map(attr)
}

pub(crate) fn wcc(of: &WccData) -> Wcc {
    Wcc { before: of.before.as_ref().map(before), after: post_op(of.after) }
}

fn before(of: &WccAttr) -> Before {
    Before { size: of.size, modified: time(of.mtime), changed: time(of.ctime) }
}

pub(crate) fn time(of: NfsTime) -> Time {
    Time { secs: i64::from(of.seconds), nanos: of.nseconds }
}

/// The time as the client gave it: it came in this form.
pub(crate) fn nfstime(of: Time) -> NfsTime {
    NfsTime { seconds: u32::try_from(of.secs.max(0)).unwrap_or(u32::MAX), nseconds: of.nanos }
}

pub(crate) fn sattr(of: &SetAttr) -> Sattr3 {
    let &SetAttr { mode, uid, gid, size, accessed, modified } = of;
    Sattr3 { mode, uid, gid, size, atime: set_time(accessed), mtime: set_time(modified) }
}

/// The other way.
pub(crate) fn set_attr(of: &Sattr3) -> SetAttr {
    let &Sattr3 { mode, uid, gid, size, atime, mtime } = of;
    let set = |of: nfs3::SetTime| match of {
        nfs3::SetTime::DontChange => SetTime::Keep,
        nfs3::SetTime::ServerTime => SetTime::ToServer,
        nfs3::SetTime::ClientTime(at) => SetTime::To(time(at)),
    };
    SetAttr { mode, uid, gid, size, accessed: set(atime), modified: set(mtime) }
}

fn set_time(of: SetTime) -> nfs3::SetTime {
    match of {
        SetTime::Keep => nfs3::SetTime::DontChange,
        SetTime::ToServer => nfs3::SetTime::ServerTime,
        SetTime::To(time) => nfs3::SetTime::ClientTime(nfstime(time)),
    }
}

pub(crate) fn how(of: CreateHow) -> create::CreateHow {
    match of {
        CreateHow::Unchecked(attributes) => create::CreateHow::Unchecked(sattr(&attributes)),
        CreateHow::Guarded(attributes) => create::CreateHow::Guarded(sattr(&attributes)),
        CreateHow::Exclusive(verifier) => create::CreateHow::Exclusive(verifier),
    }
}

pub(crate) fn special(of: Special, attrs: &SetAttr) -> MknodData {
    let dev_attributes = sattr(attrs);
    let device = |specdata1, specdata2| DeviceData {
        dev_attributes,
        spec: Specdata { specdata1, specdata2 },
    };
    match of {
        Special::BlockDevice { major, minor } => MknodData::Blk(device(major, minor)),
        Special::CharDevice { major, minor } => MknodData::Chr(device(major, minor)),
        Special::Fifo => MknodData::Fifo(dev_attributes),
        Special::Socket => MknodData::Sock(dev_attributes),
    }
}

/// The caller, as AUTH_SYS has him.
pub(crate) fn credential(caller: &Caller, machine_name: &str) -> Credential {
    let &Caller { uid, gid, ref gids } = caller;
    Credential { machine_name: machine_name.to_owned(), uid, gid, gids: gids.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_that_the_protocol_lists_is_passed_on_as_itself() {
        let faults = NfsStat3::LISTED.iter().filter(|of| status(**of) == Status::ServerFault);
        assert_eq!(faults.collect::<Vec<_>>(), [&NfsStat3::ServerFault]);
        let unlisted = NfsStat3::from_code(12_345).unwrap();
        assert_eq!(status(unlisted), Status::ServerFault);
        assert_eq!(status(NfsStat3::BadHandle), Status::Stale);
    }

    #[test]
    fn a_time_that_a_client_has_given_is_passed_on_as_it_is() {
        for seconds in [0, 1, u32::MAX] {
            let given = NfsTime { seconds, nseconds: 999_999_999 };
            assert_eq!(nfstime(time(given)), given);
        }
        assert_eq!(nfstime(Time { secs: -1, nanos: 5 }).seconds, 0);
    }
}
