//! Attributes between the store's neutral form and the protocol's.

use wire::nfs3::{self, FType, Fattr3, NfsTime, Sattr3, Specdata, WccAttr, WccData};

use crate::types::{Attr, Before, FileKind, SetAttr, SetTime, Status, Time, Wcc};

const NANOS_MAX: u32 = 999_999_999;

pub(super) fn fattr3(attr: &Attr) -> Fattr3 {
    Fattr3 {
        ftype: ftype(attr.kind),
        mode: attr.mode & 0o7777,
        nlink: attr.links,
        uid: attr.uid,
        gid: attr.gid,
        size: attr.size,
        used: attr.used,
        rdev: Specdata { specdata1: attr.device.0, specdata2: attr.device.1 },
        fsid: attr.fsid,
        fileid: attr.fileid,
        atime: nfstime(attr.accessed),
        mtime: nfstime(attr.modified),
        ctime: nfstime(attr.changed),
    }
}

fn ftype(kind: FileKind) -> FType {
    match kind {
        FileKind::Regular => FType::Reg,
        FileKind::Directory => FType::Dir,
        FileKind::BlockDevice => FType::Blk,
        FileKind::CharDevice => FType::Chr,
        FileKind::Symlink => FType::Lnk,
        FileKind::Socket => FType::Sock,
        FileKind::Fifo => FType::Fifo,
    }
}

pub(super) fn wcc_data(wcc: &Wcc) -> WccData {
    WccData { before: wcc.before.as_ref().map(wcc_attr), after: wcc.after.as_ref().map(fattr3) }
}

fn wcc_attr(before: &Before) -> WccAttr {
    WccAttr { size: before.size, mtime: nfstime(before.modified), ctime: nfstime(before.changed) }
}

/// A time as the protocol can say it: from 1970 to 2106, to the nearest end when outside.
pub(super) fn nfstime(time: Time) -> NfsTime {
    match (u32::try_from(time.secs), time.secs < 0) {
        (Ok(seconds), _) => NfsTime { seconds, nseconds: time.nanos.min(NANOS_MAX) },
        (Err(_), true) => NfsTime::default(),
        (Err(_), false) => NfsTime { seconds: u32::MAX, nseconds: NANOS_MAX },
    }
}

/// A time a client gives.
///
/// # Errors
/// `Invalid` with a second or more of nanoseconds.
fn time(time: NfsTime) -> Result<Time, Status> {
    match time.nseconds <= NANOS_MAX {
        true => Ok(any_time(time)),
        false => Err(Status::Invalid),
    }
}

/// A time to compare with, whatever its nanoseconds.
pub(super) fn any_time(time: NfsTime) -> Time {
    Time { secs: i64::from(time.seconds), nanos: time.nseconds }
}

/// The changes a client asks for. Mode bits beyond 07777 are passed over, as Linux does.
///
/// # Errors
/// `Invalid` with a time that is none.
pub(super) fn set_attr(sattr: &Sattr3) -> Result<SetAttr, Status> {
    Ok(SetAttr {
        mode: sattr.mode.map(|mode| mode & 0o7777),
        uid: sattr.uid,
        gid: sattr.gid,
        size: sattr.size,
        accessed: set_time(sattr.atime)?,
        modified: set_time(sattr.mtime)?,
    })
}

fn set_time(set: nfs3::SetTime) -> Result<SetTime, Status> {
    match set {
        nfs3::SetTime::DontChange => Ok(SetTime::Keep),
        nfs3::SetTime::ServerTime => Ok(SetTime::ToServer),
        nfs3::SetTime::ClientTime(given) => time(given).map(SetTime::To),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outside_the_protocols_are_moved_to_its_ends() {
        let sent = |secs, nanos| {
            let NfsTime { seconds, nseconds } = nfstime(Time { secs, nanos });
            (seconds, nseconds)
        };
        assert_eq!(sent(1, 2), (1, 2));
        assert_eq!(sent(-1, 2), (0, 0));
        assert_eq!(sent(i64::MAX, 2), (u32::MAX, NANOS_MAX));
        assert_eq!(sent(5, u32::MAX), (5, NANOS_MAX));
    }

    #[test]
    fn a_time_with_a_second_of_nanoseconds_is_none() {
        let set = |nseconds| {
            let given = NfsTime { seconds: 1, nseconds };
            set_attr(&Sattr3 { mtime: nfs3::SetTime::ClientTime(given), ..Sattr3::default() })
        };
        let last = SetTime::To(Time { secs: 1, nanos: NANOS_MAX });
        assert_eq!(set(NANOS_MAX).unwrap().modified, last);
        assert_eq!(set(NANOS_MAX + 1), Err(Status::Invalid));
    }
}
