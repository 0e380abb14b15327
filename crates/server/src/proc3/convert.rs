//! Between the store's types and the protocol's.

use wire::nfs3::{self as nfs, FType, Fattr3, NfsTime, Sattr3, Specdata, StableHow, WccAttr};

use crate::types::{Attr, Before, FileKind, SetAttr, SetTime, Stability, Time, Wcc};

pub(super) fn fattr3(attr: Attr) -> Fattr3 {
    Fattr3 {
        ftype: match attr.kind {
            FileKind::Regular => FType::Reg,
            FileKind::Directory => FType::Dir,
            FileKind::BlockDevice => FType::Blk,
            FileKind::CharDevice => FType::Chr,
            FileKind::Symlink => FType::Lnk,
            FileKind::Socket => FType::Sock,
            FileKind::Fifo => FType::Fifo,
        },
        mode: attr.mode,
        nlink: attr.links,
        uid: attr.uid,
        gid: attr.gid,
        size: attr.size,
        used: attr.used,
        rdev: Specdata { specdata1: attr.device.0, specdata2: attr.device.1 },
        fsid: attr.fsid,
        fileid: attr.fileid,
        atime: nfstime3(attr.accessed),
        mtime: nfstime3(attr.modified),
        ctime: nfstime3(attr.changed),
    }
}

pub(super) fn wcc_data(wcc: Wcc) -> nfs::WccData {
    let before = |before: Before| WccAttr {
        size: before.size,
        mtime: nfstime3(before.modified),
        ctime: nfstime3(before.changed),
    };
    nfs::WccData { before: wcc.before.map(before), after: wcc.after.map(fattr3) }
}

/// Version 3 counts from 1970 to 2106; what lies outside is moved to the nearer end.
pub(super) fn nfstime3(time: Time) -> NfsTime {
    let seconds = u32::try_from(time.secs.clamp(0, i64::from(u32::MAX))).unwrap_or(u32::MAX);
    NfsTime { seconds, nseconds: time.nanos }
}

pub(super) fn time(time: NfsTime) -> Time {
    Time { secs: i64::from(time.seconds), nanos: time.nseconds.min(999_999_999) }
}

pub(super) fn set_attr(attributes: Sattr3) -> SetAttr {
    let set_time = |set| match set {
        nfs::SetTime::DontChange => SetTime::Keep,
        nfs::SetTime::ServerTime => SetTime::ToServer,
        nfs::SetTime::ClientTime(to) => SetTime::To(time(to)),
    };
    SetAttr {
        mode: attributes.mode.map(|mode| mode & 0o7777),
        uid: attributes.uid,
        gid: attributes.gid,
        size: attributes.size,
        accessed: set_time(attributes.atime),
        modified: set_time(attributes.mtime),
    }
}

pub(super) fn stability(stable: StableHow) -> Stability {
    match stable {
        StableHow::Unstable => Stability::Unstable,
        StableHow::DataSync => Stability::DataSync,
        StableHow::FileSync => Stability::FileSync,
    }
}

pub(super) fn stable_how(stability: Stability) -> StableHow {
    match stability {
        Stability::Unstable => StableHow::Unstable,
        Stability::DataSync => StableHow::DataSync,
        Stability::FileSync => StableHow::FileSync,
    }
}
