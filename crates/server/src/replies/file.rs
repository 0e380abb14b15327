//! The bytes of a file of slots, written without a system call where that is safe.
//!
//! What is stored in a shared mapping is in the page cache, and stays there when the process is
//! killed, as what is written by pwrite does; each call that must not be executed twice would take
//! two of those. But where a page cannot be had, a store into a mapping ends the process. So the
//! file is mapped where all its blocks are allocated beforehand and stay where they are, on ext4,
//! xfs and tmpfs, and held in memory if the process may lock so much. Anywhere else it is written.
//!
//! A mapping is memory that others can change, so no reference to it is ever made: bytes are copied
//! into it through a pointer.

#![allow(unsafe_code, reason = "mapped memory cannot be touched without")]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// Magic numbers of file systems that overwrite blocks in place: ext2 to ext4, xfs, tmpfs.
const IN_PLACE: [u32; 3] = [0xef53, 0x5846_5342, 0x0102_1994];

#[derive(Debug)]
pub(super) enum FileBytes {
    Mapped(MmapRaw),
    Written(File),
}

impl FileBytes {
    /// The first `len` bytes of the file, which has them. Fails when the file has no room for them
    /// now: then it can be written as soon as there is some.
    pub(super) fn of(file: File, len: usize) -> (Self, io::Result<()>) {
        match mapped(&file, len) {
            Ok(Some(map)) => (Self::Mapped(map), Ok(())),
            Ok(None) => (Self::Written(file), Ok(())),
            Err(no_room) => (Self::Written(file), Err(no_room.into())),
        }
    }

    /// Copies `bytes` to their place.
    ///
    /// # Errors
    /// As the file system says, where the file is not mapped.
    ///
    /// # Panics
    /// They do not lie within the file.
    pub(super) fn put(&self, at: usize, bytes: &[u8]) -> io::Result<()> {
        let map = match self {
            Self::Mapped(map) => map,
            Self::Written(file) => return file.write_all_at(bytes, at as u64),
        };
        let is_within = at.checked_add(bytes.len()).is_some_and(|end| end <= map.len());
        assert!(is_within, "{} bytes at {at} of {}", bytes.len(), map.len());
        // SAFETY: the range lies within the mapping, which lives as long as `self` and is writable,
        // and does not overlap `bytes`, to which nobody else has a mutable reference. The caller
        // holds the slot, so that nobody else writes these bytes meanwhile.
        unsafe { bytes.as_ptr().copy_to_nonoverlapping(map.as_mut_ptr().add(at), bytes.len()) };
        Ok(())
    }
}

/// None where a page of it may be missing when it is needed; fails where there is no room.
fn mapped(file: &File, len: usize) -> Result<Option<MmapRaw>, Errno> {
    let Ok(system) = rustix::fs::fstatfs(file) else { return Ok(None) };
    let kind = system.f_type;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of 32 bits")]
    let is_in_place = IN_PLACE.contains(&(kind as u32));
    if !is_in_place {
        return Ok(None);
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len as u64) {
        Ok(()) => {}
        Err(no_room @ (Errno::NOSPC | Errno::DQUOT)) => return Err(no_room),
        Err(_) => return Ok(None),
    }
    let Ok(map) = MmapOptions::new().len(len).populate().map_raw(file) else { return Ok(None) };
    // Who may not lock it has it all the same, as long as its pages can be read again.
    map.lock().ok();
    Ok(Some(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_in_the_file_whether_it_is_mapped_or_written() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let open = || {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false).open(&path).unwrap()
        };
        open().set_len(8192).unwrap();
        for bytes in [FileBytes::of(open(), 8192).0, FileBytes::Written(open())] {
            bytes.put(4090, b"over the edge").unwrap();
            drop(bytes);
            let file = std::fs::read(&path).unwrap();
            assert_eq!((&file[4090..4103], file.len()), (&b"over the edge"[..], 8192));
            std::fs::write(&path, [0; 8192]).unwrap();
        }
    }

    #[test]
    fn what_lies_beyond_a_mapping_is_never_touched() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let (bytes, _) = FileBytes::of(file, 4096);
        if matches!(bytes, FileBytes::Written(_)) {
            return;
        }
        for at in [4090, 4096, usize::MAX] {
            let put = || bytes.put(at, b"1234567").ok();
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(put)).is_err(), "{at}");
        }
    }
}
