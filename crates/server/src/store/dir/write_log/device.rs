//! A block device as a log. A file is made for its log; a device was there before, and may hold
//! somebody's data: it is taken only if it is ours already, or if what a file system, a partition
//! table or a volume begins with is zeros.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use log::identity::IdentityError;
use log::{BLOCK, BLOCK_BYTES, Identity};

use super::error::{DeviceTrouble, LogTrouble, Trouble};

/// What has to be zeros at the beginning of a device that is to become a log: all that is known by
/// a signature has one there (that of btrfs, at 64 KiB, is the farthest).
const BLANK_BYTES: usize = 1 << 20;

/// What is looked at at its end, where some keep theirs, or a copy.
const END_BYTES: u64 = 128 << 10;

/// Signatures by place and bytes, for the sentence that refuses them.
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (0x1_0040, b"_BHRfS_M", "a btrfs file system"),
    (0x438, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (0, b"XFSB", "an xfs file system"),
    (0x400, b"\x10\x20\xf5\xf2", "an f2fs file system"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (0x36, b"FAT1", "a FAT file system"),
    (0x52, b"FAT32", "a FAT file system"),
    (0xff6, b"SWAPSPACE2", "swap space"),
    (0x218, b"LVM2 001", "a volume of LVM"),
    (0x200, b"EFI PART", "a partition table"),
    (0x1000, b"\xfc\x4e\x2b\xa9", "a part of a RAID"),
    (0, b"\xfc\x4e\x2b\xa9", "a part of a RAID"),
    (0, b"LUKS\xba\xbe", "an encrypted volume"),
    (0x1fe, b"\x55\xaa", "a partition table"),
];

/// A partition table's copy, and two forms of a RAID's: so far from the end, with their bytes.
const SIGNATURES_AT_END: &[(u64, &[u8], &str)] = &[
    (512, b"EFI PART", "a partition table (its copy at the end)"),
    (4096, b"EFI PART", "a partition table (its copy at the end)"),
];

/// Of a RAID; where it is depends on the device's length.
const RAID: [u8; 4] = *b"\xfc\x4e\x2b\xa9";

pub(super) fn is_device(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_type().is_block_device())
}

/// What the kernel has to say of a device.
pub(super) fn entry(number: u64) -> PathBuf {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// Whether there is a device that nobody may write to.
pub(super) fn is_read_only(path: &Path) -> bool {
    let device = fs::metadata(path).ok().filter(|data| data.file_type().is_block_device());
    let read_only = |data: fs::Metadata| fs::read_to_string(entry(data.rdev()).join("ro")).ok();
    device.and_then(read_only).is_some_and(|text| text.trim_end() == "1")
}

/// Whether a device may be made a log: its first bytes, if they are not those of a log.
///
/// # Errors
/// What it seems to hold.
pub(super) fn check_blank(file: &File, bytes: u64) -> Result<(), Trouble> {
    let mut start = vec![0; BLANK_BYTES.min(usize::try_from(bytes).unwrap_or(BLANK_BYTES))];
    file.read_exact_at(&mut start, 0)?;
    let end_bytes = END_BYTES.min(bytes);
    let mut end = vec![0; usize::try_from(end_bytes).unwrap_or(0)];
    file.read_exact_at(&mut end, bytes - end_bytes)?;
    let what = known(&start).or_else(|| known_at_end(&end, bytes));
    let what = match what {
        Some(what) => what,
        None if start.iter().any(|&byte| byte != 0) => "something",
        None => return Ok(()),
    };
    Err(Trouble::new(
        LogTrouble::Device(DeviceTrouble::NotBlank),
        format!(
            "the device holds {what}, which is not overwritten; if nobody needs it, zeros in its \
             first MiB make it blank (wipefs --all, then dd if=/dev/zero bs=1M count=1)"
        ),
    ))
}

/// Whether the first block is a log's, if perhaps a damaged one.
pub(super) fn begins_as_log(file: &File) -> io::Result<bool> {
    let mut block = vec![0; BLOCK];
    file.read_exact_at(&mut block, 0)?;
    Ok(Identity::decode(&block) != Err(IdentityError::Foreign))
}

fn known(start: &[u8]) -> Option<&'static str> {
    let has =
        |&&(at, bytes, _): &&(usize, &[u8], _)| start.get(at..at + bytes.len()) == Some(bytes);
    SIGNATURES.iter().find(has).map(|&(_, _, what)| what)
}

fn known_at_end(end: &[u8], bytes: u64) -> Option<&'static str> {
    let len = end.len() as u64;
    let has = |from_end: u64, bytes: &[u8]| {
        let at = len.checked_sub(from_end).and_then(|at| usize::try_from(at).ok());
        at.is_some_and(|at| end.get(at..at + bytes.len()) == Some(bytes))
    };
    let signed = SIGNATURES_AT_END.iter().find(|(from_end, bytes, _)| has(*from_end, bytes));
    // Version 0.90: the last whole 64 KiB but one; version 1.0: 8 KiB before the end, at 4 KiB.
    let raids = [bytes % (64 << 10) + (64 << 10), bytes % BLOCK_BYTES + (8 << 10)];
    let is_raid = raids.into_iter().any(|from_end| has(from_end, &RAID));
    signed.map(|&(_, _, what)| what).or_else(|| is_raid.then_some("a part of a RAID"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(at: usize, bytes: &[u8]) -> Option<String> {
        let file = tempfile::tempfile().unwrap();
        let mut content = vec![0; 2 << 20];
        content[at..at + bytes.len()].copy_from_slice(bytes);
        file.write_all_at(&content, 0).unwrap();
        check_blank(&file, content.len() as u64).err().map(|trouble| trouble.what)
    }

    #[test]
    fn a_device_is_blank_only_without_any_signature() {
        for (at, bytes, what) in SIGNATURES {
            let text = refused(*at, bytes).unwrap();
            assert!(text.contains("the device holds a") || text.contains("swap"), "{what}: {text}");
        }
        for (from_end, bytes, what) in SIGNATURES_AT_END {
            let at = (2 << 20) - usize::try_from(*from_end).unwrap();
            assert!(refused(at, bytes).unwrap().contains(what));
        }
        assert!(refused((2 << 20) - (64 << 10), &RAID).unwrap().contains("RAID"));
        assert!(refused((2 << 20) - (8 << 10), &RAID).unwrap().contains("RAID"));
        assert!(refused((1 << 20) - 1, b"x").unwrap().contains("holds something"));
        assert_eq!(refused(1 << 20, b"old data that no signature leads to"), None);
        assert_eq!(refused(0, b""), None);
    }

    #[test]
    fn a_log_that_was_damaged_is_known_as_one() {
        let (id, purpose) = ([7; 16], log::Purpose::Server);
        let log = Identity { purpose, id, log: 0, logs: 1, bytes: 16 << 20, export: Vec::new() };
        let begins = |block: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(block, 0).unwrap();
            begins_as_log(&file).unwrap()
        };
        let mut block = log.encode();
        assert!(begins(&block));
        for bit in [3, 900] {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(begins(&block), "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(!begins(&[7; BLOCK]));
    }

    #[test]
    fn signatures_are_named_by_what_they_are() {
        for (at, bytes, what) in [
            (0x438, &b"\x53\xef"[..], "ext4"),
            (0, b"XFSB", "xfs"),
            (0x1_0040, b"_BHRfS_M", "btrfs"),
            (0xff6, b"SWAPSPACE2", "swap"),
            (0x1fe, b"\x55\xaa", "partition table"),
        ] {
            assert!(refused(at, bytes).unwrap().contains(what));
        }
    }
}
