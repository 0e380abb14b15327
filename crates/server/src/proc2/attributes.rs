//! Attributes between the store's neutral form and the protocol's 32 bits.
//!
//! | what | larger than it can be sent | why |
//! |---|---|---|
//! | size, blocks | 2^32 - 1 | a file that looks too small would be copied as if it were |
//! | fileid, fsid | both halves, one XOR the other | as Linux does; they only have to differ |
//! | times | the nearest end, 1970 or 2106 | |
//! | device | major and minor of 12 and 20 bits, as Linux has them | |

use wire::nfs2::{
    FType, Fattr2, MODE_TYPE_MASK, RDEV_FIFO, Sattr2, Timeval, USECONDS_SERVER_TIME, mode_type,
};

use crate::types::{Attr, FileKind, SetAttr, SetTime, Status, Time};

/// Sent as the block size of the disk; blocks are counted in 512 bytes, as in stat(2).
const BLOCK_BYTES: u32 = 4096;
const COUNTED_BLOCK_BYTES: u64 = 512;

const MICROS_MAX: u32 = 999_999;

pub(super) fn fattr2(attr: &Attr) -> Fattr2 {
    let (ftype, mode_type) = types(attr.kind);
    Fattr2 {
        ftype,
        mode: mode_type | (attr.mode & 0o7777),
        nlink: attr.links,
        uid: attr.uid,
        gid: attr.gid,
        size: clamp(attr.size),
        blocksize: BLOCK_BYTES,
        rdev: rdev(attr),
        blocks: clamp(attr.used.div_ceil(COUNTED_BLOCK_BYTES)),
        fsid: fold(attr.fsid),
        fileid: fold(attr.fileid),
        atime: timeval(attr.accessed),
        mtime: timeval(attr.modified),
        ctime: timeval(attr.changed),
    }
}

/// The type as it stands beside the mode, and in it. RFC 1094 section 2.3.5 has no type for a
/// socket ("NFNON"), and none at all for a named pipe, which SunOS made a character device.
fn types(kind: FileKind) -> (FType, u32) {
    match kind {
        FileKind::Regular => (FType::Reg, mode_type::REG),
        FileKind::Directory => (FType::Dir, mode_type::DIR),
        FileKind::BlockDevice => (FType::Blk, mode_type::BLK),
        FileKind::CharDevice => (FType::Chr, mode_type::CHR),
        FileKind::Symlink => (FType::Lnk, mode_type::LNK),
        FileKind::Socket => (FType::Non, mode_type::SOCK),
        FileKind::Fifo => (FType::Chr, mode_type::FIFO),
    }
}

fn rdev(attr: &Attr) -> u32 {
    match attr.kind {
        FileKind::BlockDevice | FileKind::CharDevice => device(attr.device),
        FileKind::Fifo => RDEV_FIFO,
        _ => 0,
    }
}

/// A device in 32 bits: the lowest eight of the minor number, twelve of the major, twelve of the
/// minor. Numbers below 256 so look as in the 16 bits of old.
fn device((major, minor): (u32, u32)) -> u32 {
    (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xf_ff00) << 12)
}

/// Major and minor number of [`device`].
pub(super) fn numbers(device: u32) -> (u32, u32) {
    ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00))
}

/// A number as the protocol can say it, the largest when it is larger.
pub(super) fn clamp(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Both halves in one.
pub(super) fn fold(number: u64) -> u32 {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    u32::from_be_bytes([a, b, c, d]) ^ u32::from_be_bytes([e, f, g, h])
}

fn timeval(time: Time) -> Timeval {
    match (u32::try_from(time.secs), time.secs < 0) {
        (Ok(seconds), _) => Timeval { seconds, useconds: (time.nanos / 1000).min(MICROS_MAX) },
        (Err(_), true) => Timeval::default(),
        (Err(_), false) => Timeval { seconds: u32::MAX, useconds: MICROS_MAX },
    }
}

/// What some old clients have put in a mode where -1 was meant; the mode stays as it is.
const MODE_KEPT: u32 = 0xffff;

/// The changes a client asks for. The type in the mode is passed over.
///
/// # Errors
/// `Invalid` with a time that is none.
pub(super) fn set_attr(sattr: &Sattr2) -> Result<SetAttr, Status> {
    Ok(SetAttr {
        mode: sattr.mode.filter(|mode| *mode != MODE_KEPT).map(|mode| mode & 0o7777),
        uid: sattr.uid,
        gid: sattr.gid,
        size: sattr.size.map(u64::from),
        accessed: set_time(sattr.atime)?,
        modified: set_time(sattr.mtime)?,
    })
}

fn set_time(given: Option<Timeval>) -> Result<SetTime, Status> {
    match given {
        None => Ok(SetTime::Keep),
        Some(Timeval { useconds: USECONDS_SERVER_TIME, .. }) => Ok(SetTime::ToServer),
        Some(Timeval { seconds, useconds: useconds @ 0..=MICROS_MAX }) => {
            Ok(SetTime::To(Time { secs: i64::from(seconds), nanos: useconds * 1000 }))
        }
        Some(_) => Err(Status::Invalid),
    }
}

/// The type a mode asks for; regular when it does not say.
pub(super) fn wanted_type(sattr: &Sattr2) -> u32 {
    match sattr.mode.map_or(0, |mode| mode & MODE_TYPE_MASK) {
        0 => mode_type::REG,
        wanted => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_largest_or_folded() {
        assert_eq!((clamp(7), clamp(u64::from(u32::MAX))), (7, u32::MAX));
        assert_eq!((clamp(1 << 32), clamp(u64::MAX)), (u32::MAX, u32::MAX));
        assert_eq!((fold(7), fold(0x0000_0001_0000_0007)), (7, 6));
        assert_eq!(fold(u64::MAX), 0);
    }

    #[test]
    fn times_outside_the_protocols_are_moved_to_its_ends() {
        let sent = |secs, nanos| {
            let Timeval { seconds, useconds } = timeval(Time { secs, nanos });
            (seconds, useconds)
        };
        assert_eq!(sent(1, 2999), (1, 2));
        assert_eq!(sent(-1, 2), (0, 0));
        assert_eq!(sent(i64::MAX, 2), (u32::MAX, MICROS_MAX));
        assert_eq!(sent(5, u32::MAX), (5, MICROS_MAX));
    }

    #[test]
    fn a_million_microseconds_mean_now_and_more_nothing() {
        let set = |useconds| set_time(Some(Timeval { seconds: 1, useconds }));
        assert_eq!(set(MICROS_MAX), Ok(SetTime::To(Time { secs: 1, nanos: 999_999_000 })));
        assert_eq!(set(USECONDS_SERVER_TIME), Ok(SetTime::ToServer));
        assert_eq!(set(USECONDS_SERVER_TIME + 1), Err(Status::Invalid));
        assert_eq!(set_time(None), Ok(SetTime::Keep));
    }

    #[test]
    fn devices_survive_the_way_there_and_back() {
        for numbers_ in [(0, 0), (8, 1), (255, 255), (0xfff, 0xf_ffff), (259, 0x1_0203)] {
            assert_eq!(numbers(device(numbers_)), numbers_);
        }
        assert_eq!(device((8, 1)), 0x0801);
    }
}
