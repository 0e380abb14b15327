//! The types of version 2 and those of version 3.

use wire::nfs2::{
    FHandle, FType as FType2, Fattr2, MODE_TYPE_MASK, NfsStat2, Sattr2, Timeval,
    USECONDS_SERVER_TIME, mode_type,
};
use wire::nfs3::{
    FType, Fattr3, FileHandle, NfsStat3, NfsTime, Sattr3, SetTime, Specdata, WccData, access,
};

/// Statuses have the numbers of version 3, but for the one of a write cache that nobody has.
pub(super) fn status(status: NfsStat2) -> NfsStat3 {
    match status {
        NfsStat2::WFlush => NfsStat3::Io,
        known => NfsStat3::from_code(known.code()).unwrap_or(NfsStat3::Io),
    }
}

pub(super) fn handle(handle: FHandle) -> FileHandle {
    FileHandle::new(handle.as_bytes()).expect("32 bytes are fewer than 64")
}

/// The attributes. Where the type beside the mode and the one in it differ, it is a pipe or a
/// socket, which the RFC has no types for.
pub(super) fn attributes(of: &Fattr2) -> Fattr3 {
    let ftype = match of.mode & MODE_TYPE_MASK {
        mode_type::FIFO => FType::Fifo,
        mode_type::SOCK => FType::Sock,
        mode_type::CHR => FType::Chr,
        mode_type::DIR => FType::Dir,
        mode_type::BLK => FType::Blk,
        mode_type::REG => FType::Reg,
        mode_type::LNK => FType::Lnk,
        _ => match of.ftype {
            FType2::Dir => FType::Dir,
            FType2::Blk => FType::Blk,
            FType2::Chr => FType::Chr,
            FType2::Lnk => FType::Lnk,
            FType2::Sock => FType::Sock,
            FType2::Fifo => FType::Fifo,
            FType2::Reg | FType2::Non | FType2::Bad => FType::Reg,
        },
    };
    let rdev = match ftype {
        FType::Blk | FType::Chr => specdata(of.rdev),
        _ => Specdata::default(),
    };
    Fattr3 {
        ftype,
        mode: of.mode & 0o7777,
        nlink: of.nlink,
        uid: of.uid,
        gid: of.gid,
        size: u64::from(of.size),
        used: u64::from(of.blocks) * 512,
        rdev,
        fsid: u64::from(of.fsid),
        fileid: u64::from(of.fileid),
        atime: time(of.atime),
        mtime: time(of.mtime),
        ctime: time(of.ctime),
    }
}

/// What a procedure tells that has the attributes after it.
pub(super) fn after(of: &Fattr2) -> WccData {
    WccData { before: None, after: Some(attributes(of)) }
}

fn time(of: Timeval) -> NfsTime {
    NfsTime { seconds: of.seconds, nseconds: of.useconds.min(999_999) * 1000 }
}

/// Major and minor numbers of 12 and 20 bits, as Linux has them in 32; below 256 both are where
/// the 16 bits of old have them.
fn specdata(device: u32) -> Specdata {
    let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
    Specdata { specdata1: (device >> 8) & 0xfff, specdata2: minor }
}

pub(super) fn device(of: Specdata) -> u32 {
    let minor = of.specdata2;
    (minor & 0xff) | ((of.specdata1 & 0xfff) << 8) | ((minor & 0xf_ff00) << 12)
}

/// The attributes to set; none when the size does not fit. `now` is what a time is set to where
/// the server's own cannot be requested.
pub(super) fn to_set(of: &Sattr3, now: Timeval) -> Option<Sattr2> {
    let size = of.size.map(u32::try_from).transpose().ok()?;
    // A size of -1 would set nothing.
    if size == Some(u32::MAX) {
        return None;
    }
    // Servers take the mark for both times at once. With a size it is sent for one, too: who may
    // write may do that, and only the owner sets a time that he gives.
    let both = (of.atime, of.mtime) == (SetTime::ServerTime, SetTime::ServerTime);
    let is_marked = both || of.size.is_some();
    let servers = Timeval { seconds: now.seconds, useconds: USECONDS_SERVER_TIME };
    let time = |set| match set {
        SetTime::DontChange => None,
        SetTime::ServerTime if is_marked => Some(servers),
        SetTime::ServerTime => Some(now),
        SetTime::ClientTime(NfsTime { seconds, nseconds }) => {
            Some(Timeval { seconds, useconds: nseconds / 1000 })
        }
    };
    let (atime, mtime) = (time(of.atime), time(of.mtime));
    Some(Sattr2 { mode: of.mode, uid: of.uid, gid: of.gid, size, atime, mtime })
}

/// What the mode allows whom, of what is requested.
pub(super) fn allowed(of: &Fattr3, uid: u32, gid: u32, gids: &[u32], wanted: u32) -> u32 {
    let bits = match () {
        () if uid == 0 => 0o6 | u32::from(of.mode & 0o111 != 0 || of.ftype == FType::Dir),
        () if uid == of.uid => of.mode >> 6,
        () if gid == of.gid || gids.contains(&of.gid) => of.mode >> 3,
        () => of.mode,
    };
    let mut allowed = 0;
    if bits & 0o4 != 0 {
        allowed |= access::READ;
    }
    if bits & 0o2 != 0 {
        allowed |= access::MODIFY | access::EXTEND | access::DELETE;
    }
    if bits & 0o1 != 0 {
        allowed |= access::LOOKUP | access::EXECUTE;
    }
    let meaningless = match of.ftype {
        FType::Dir => access::EXECUTE,
        _ => access::LOOKUP | access::DELETE,
    };
    allowed & wanted & !meaningless
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timeval = Timeval { seconds: 100, useconds: 5 };

    fn fattr2(ftype: FType2, mode: u32, rdev: u32) -> Fattr2 {
        let time = Timeval { seconds: 7, useconds: 999_999 };
        Fattr2 {
            ftype,
            mode,
            nlink: 1,
            uid: 10,
            gid: 20,
            size: u32::MAX,
            blocksize: 4096,
            rdev,
            blocks: 3,
            fsid: 1,
            fileid: 2,
            atime: time,
            mtime: time,
            ctime: time,
        }
    }

    #[test]
    fn types_are_known_by_the_mode_and_by_what_stands_beside_it_if_that_says_nothing() {
        let of = |ftype, mode| attributes(&fattr2(ftype, mode, 0)).ftype;
        assert_eq!(of(FType2::Chr, mode_type::FIFO | 0o644), FType::Fifo);
        assert_eq!(of(FType2::Non, mode_type::SOCK | 0o644), FType::Sock);
        assert_eq!(of(FType2::Dir, 0o755), FType::Dir);
        let regular = attributes(&fattr2(FType2::Reg, mode_type::REG | 0o4755, 9));
        assert_eq!((regular.mode, regular.rdev), (0o4755, Specdata::default()));
        assert_eq!((regular.size, regular.used), (u64::from(u32::MAX), 1536));
        assert_eq!(regular.mtime, NfsTime { seconds: 7, nseconds: 999_999_000 });
    }

    #[test]
    fn device_numbers_come_back() {
        for (specdata1, specdata2) in [(8, 1), (4, 255), (0xfff, 0xf_ffff), (259, 70_000)] {
            let device_number = Specdata { specdata1, specdata2 };
            let read = fattr2(FType2::Blk, mode_type::BLK, device(device_number));
            assert_eq!(attributes(&read).rdev, device_number);
        }
    }

    #[test]
    fn a_size_that_does_not_fit_is_refused_and_times_are_the_servers_if_both_are() {
        let sized = |size| to_set(&Sattr3 { size: Some(size), ..Sattr3::default() }, NOW);
        assert_eq!(sized(u64::from(u32::MAX) - 1).unwrap().size, Some(u32::MAX - 1));
        assert_eq!((sized(u64::from(u32::MAX)), sized(1 << 32)), (None, None));
        let (atime, mtime) = (SetTime::ServerTime, SetTime::ServerTime);
        let both = to_set(&Sattr3 { atime, mtime, ..Sattr3::default() }, NOW).unwrap();
        assert_eq!(both.atime.unwrap().useconds, USECONDS_SERVER_TIME);
        assert_eq!(both.atime, both.mtime);
        let one = to_set(&Sattr3 { atime, ..Sattr3::default() }, NOW).unwrap();
        assert_eq!((one.atime, one.mtime), (Some(NOW), None));
        // What an open for writing sends that cuts the file.
        let cut = to_set(&Sattr3 { size: Some(0), mtime, ..Sattr3::default() }, NOW).unwrap();
        assert_eq!((cut.atime, cut.mtime), (None, both.mtime));
    }

    #[test]
    fn access_is_what_the_mode_says() {
        let all = access::ALL;
        let file = attributes(&fattr2(FType2::Reg, mode_type::REG | 0o640, 0));
        let read_write = access::READ | access::MODIFY | access::EXTEND;
        assert_eq!(allowed(&file, 10, 0, &[], all), read_write, "owner");
        assert_eq!(allowed(&file, 11, 0, &[20], all), access::READ, "group");
        assert_eq!(allowed(&file, 11, 0, &[], all), 0, "others");
        assert_eq!(allowed(&file, 0, 0, &[], all), read_write, "root");
        assert_eq!(allowed(&file, 0, 0, &[], access::READ), access::READ, "as requested");
        let dir = attributes(&fattr2(FType2::Dir, mode_type::DIR | 0o711, 0));
        assert_eq!(allowed(&dir, 11, 0, &[], all), access::LOOKUP);
    }
}
