//! Attributes and times, from NFS's form to the kernel's and back.

use std::time::Duration;

use wire::nfs3::mknod::{DeviceData, MknodData};
use wire::nfs3::{FType, Fattr3, NfsTime, Sattr3, SetTime, Specdata};

use crate::abi::request::Setattr;
use crate::abi::{Attr, Time, fattr};

const S_IFMT: u32 = 0o170_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFDIR: u32 = 0o040_000;
const S_IFBLK: u32 = 0o060_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;
const S_IFSOCK: u32 = 0o140_000;

/// A time this near to now, where only the other one is set to now, is meant to be now too:
/// a kernel that writes back says its own time instead.
const NOW: Duration = Duration::from_secs(1);

/// The number by which programs know a file. Those of an export's other file systems would be the
/// same as some of the first, and a mount is one file system (`st_dev`): tar, find, cp and rm
/// would take two files for one.
pub(crate) fn number(fileid: u64, fsid: u64, root_fsid: u64) -> u64 {
    // Only one number has 0 for another, and it is not a small one.
    const START: u64 = 0x9e37_79b9_7f4a_7c15;
    // Some programs take negative numbers amiss.
    if fsid == root_fsid { fileid } else { fileid ^ (mixed(fsid.wrapping_add(START)) >> 1) }
}

/// Another number for each (the finalizer of splitmix64, Steele et al. 2014).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Attributes as the kernel takes them. `ino`: see [`number`]. `blksize`: what programs should
/// read and write at a time.
pub(crate) fn attr(attributes: &Fattr3, ino: u64, blksize: u32) -> Attr {
    Attr {
        ino,
        size: attributes.size,
        blocks: attributes.used.div_ceil(512),
        atime: time(attributes.atime),
        mtime: time(attributes.mtime),
        ctime: time(attributes.ctime),
        mode: kind(attributes.ftype) | attributes.mode & !S_IFMT,
        nlink: attributes.nlink,
        uid: attributes.uid,
        gid: attributes.gid,
        rdev: rdev(attributes.rdev),
        blksize,
    }
}

/// The type's bits of a mode.
pub(crate) fn kind(ftype: FType) -> u32 {
    match ftype {
        FType::Reg => S_IFREG,
        FType::Dir => S_IFDIR,
        FType::Blk => S_IFBLK,
        FType::Chr => S_IFCHR,
        FType::Lnk => S_IFLNK,
        FType::Sock => S_IFSOCK,
        FType::Fifo => S_IFIFO,
    }
}

/// The kernel takes no fractions of a second that are whole ones.
fn time(time: NfsTime) -> Time {
    Time { seconds: u64::from(time.seconds), nanos: time.nseconds.min(999_999_999) }
}

/// A device's number as the kernel writes it (`new_encode_dev`).
fn rdev(device: Specdata) -> u32 {
    let (major, minor) = (device.specdata1, device.specdata2);
    minor & 0xff | (major & 0xfff) << 8 | (minor & 0xf_ff00) << 12
}

fn specdata(rdev: u32) -> Specdata {
    Specdata { specdata1: rdev >> 8 & 0xfff, specdata2: rdev & 0xff | rdev >> 12 & 0xf_ff00 }
}

/// What a new object of this mode is to have.
pub(crate) fn made(mode: u32) -> Sattr3 {
    Sattr3::of_mode(mode & 0o7777)
}

/// What MKNOD is to make; none for a regular file, which CREATE makes.
pub(crate) fn special(mode: u32, number: u32) -> Option<MknodData> {
    let attributes = made(mode);
    let device = DeviceData { dev_attributes: attributes, spec: specdata(number) };
    match mode & S_IFMT {
        S_IFCHR => Some(MknodData::Chr(device)),
        S_IFBLK => Some(MknodData::Blk(device)),
        S_IFIFO => Some(MknodData::Fifo(attributes)),
        S_IFSOCK => Some(MknodData::Sock(attributes)),
        _ => None,
    }
}

/// What SETATTR asks for, in NFS's words. `now` is the time since 1970.
pub(crate) fn wanted(setattr: &Setattr, now: Duration) -> Sattr3 {
    let has = |bit| setattr.valid & bit != 0;
    let atime_is_now = has(fattr::ATIME_NOW);
    let mtime = match nfs_time(setattr.mtime, setattr.mtime_nanos) {
        _ if !has(fattr::MTIME) => SetTime::DontChange,
        _ if has(fattr::MTIME_NOW) => SetTime::ServerTime,
        // A kernel that writes back sends its own time where utimes(2) was given none; and only the
        // owner may set a time, where whoever may write may set it to now.
        time if atime_is_now && is_near(time, now) => SetTime::ServerTime,
        time => SetTime::ClientTime(time),
    };
    let atime = match has(fattr::ATIME) {
        false => SetTime::DontChange,
        true if atime_is_now => SetTime::ServerTime,
        true => SetTime::ClientTime(nfs_time(setattr.atime, setattr.atime_nanos)),
    };
    Sattr3 {
        mode: has(fattr::MODE).then_some(setattr.mode & 0o7777),
        uid: has(fattr::UID).then_some(setattr.uid),
        gid: has(fattr::GID).then_some(setattr.gid),
        size: has(fattr::SIZE).then_some(setattr.size),
        atime,
        mtime,
    }
}

fn is_near(time: NfsTime, now: Duration) -> bool {
    Duration::new(u64::from(time.seconds), time.nseconds).abs_diff(now) < NOW
}

/// The time of modification that a kernel which writes back has of a file when this is set.
pub(crate) fn kernel_mtime(setattr: &Setattr) -> Option<NfsTime> {
    let is_its_own = setattr.valid & (fattr::MTIME | fattr::MTIME_NOW) == fattr::MTIME;
    is_its_own.then(|| nfs_time(setattr.mtime, setattr.mtime_nanos))
}

/// Whether the kernel has a time of modification that NFS cannot say.
pub(crate) fn is_out_of_range(setattr: &Setattr) -> bool {
    setattr.valid & fattr::MTIME != 0 && u32::try_from(setattr.mtime).is_err()
}

/// NFS's times begin in 1970 and end in 2106: what lies outside is cut to that.
fn nfs_time(seconds: i64, nanos: u32) -> NfsTime {
    match u32::try_from(seconds) {
        Ok(seconds) => NfsTime { seconds, nseconds: nanos.min(999_999_999) },
        Err(_) if seconds < 0 => NfsTime { seconds: 0, nseconds: 0 },
        Err(_) => NfsTime { seconds: u32::MAX, nseconds: 999_999_999 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_several_file_systems_have_numbers_of_their_own() {
        use std::collections::HashSet;

        assert_eq!(number(257, 7, 7), 257, "programs see the server's");
        let numbers = (0..50).flat_map(|fsid| (0..100).map(move |fileid| number(fileid, fsid, 7)));
        assert_eq!(numbers.collect::<HashSet<_>>().len(), 50 * 100);
        assert_eq!(number(257, 0, 7), number(257, 0, 7), "after a restart, too");
    }

    #[test]
    fn device_numbers_come_back() {
        for (major, minor) in [(0, 0), (8, 1), (0xfff, 0xf_ffff), (259, 300)] {
            let device = Specdata { specdata1: major, specdata2: minor };
            assert_eq!(specdata(rdev(device)), device);
        }
    }

    #[test]
    fn times_are_cut_to_what_nfs_can_say() {
        assert_eq!(nfs_time(-5, 7), NfsTime { seconds: 0, nseconds: 0 });
        assert_eq!(nfs_time(5, 7), NfsTime { seconds: 5, nseconds: 7 });
        assert_eq!(nfs_time(1 << 40, 7).seconds, u32::MAX);
    }

    #[test]
    fn now_is_the_servers_time_and_nothing_else_is_touched() {
        let now = Duration::from_secs(1_000);
        let valid = fattr::ATIME | fattr::ATIME_NOW | fattr::MTIME;
        let touch = Setattr { valid, mtime: 1_000, mtime_nanos: 5, ..Setattr::default() };
        let both =
            Sattr3 { atime: SetTime::ServerTime, mtime: SetTime::ServerTime, ..Sattr3::default() };
        assert_eq!(wanted(&touch, now), both);
        let long_ago = Setattr { mtime: 500, ..touch };
        let sent = SetTime::ClientTime(NfsTime { seconds: 500, nseconds: 5 });
        assert_eq!(wanted(&long_ago, now).mtime, sent);
        let chmod = Setattr { valid: fattr::MODE, mode: 0o100_644, ..Setattr::default() };
        let mode = Sattr3::of_mode(0o644);
        assert_eq!(wanted(&chmod, now), mode);
    }
}
