//! Reading and writing through memory mappings.
//!
//! This is the only file of the crate with unsafe code: a mapping is memory that others can change
//! and whose pages can fail to come, which no reference may promise away. So no reference to it is
//! ever made. Bytes are copied out of it or into it through pointers, and the mapping ends with the
//! function. A page that cannot be read, or that lies beyond the end of the file, ends the process
//! with SIGBUS: that is why a run tells its seed before it begins.

#![allow(unsafe_code, reason = "mapped memory cannot be touched without")]

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};

/// `len` bytes at `offset`, all within the file.
pub(super) fn read(file: &File, offset: u64, len: u32) -> io::Result<Vec<u8>> {
    let map: MmapRaw =
        MmapOptions::new().offset(offset).len(len as usize).map_raw_read_only(file)?;
    let mut bytes = vec![0_u8; len as usize];
    assert!(map.len() >= bytes.len(), "a mapping is as long as was requested");
    // SAFETY: source and destination are valid for `bytes.len()` bytes and do not overlap: the one
    // is the mapping, which lives until the end of this function, the other a vector of our own.
    // Nobody writes to the file while we copy: a run's file is its thread's alone.
    unsafe { map.as_ptr().copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
    Ok(bytes)
}

/// Writes `data` at `offset`, all within the file, and waits for it to be stable if `synced`.
pub(super) fn write(file: &File, offset: u64, data: &[u8], synced: bool) -> io::Result<()> {
    let map: MmapRaw = MmapOptions::new().offset(offset).len(data.len()).map_raw(file)?;
    assert!(map.len() >= data.len(), "a mapping is as long as was requested");
    // SAFETY: as in `read`; the mapping is shared and writable, and no reference to it exists.
    unsafe { map.as_mut_ptr().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
    if synced { map.flush() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_written_through_a_mapping_is_read_through_another() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 10_000]).unwrap();
        for synced in [false, true] {
            write(&file, 4_095, b"over the edge", synced).unwrap();
        }
        let read = read(&file, 4_090, 20).unwrap();
        assert_eq!(read, b"\x07\x07\x07\x07\x07over the edge\x07\x07");
    }
}
