//! Bytes to copy: the same for the same seed, different at every place, and how to compare them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::host::about;

const CHUNK_BYTES: usize = 1024 * 1024;

/// Writes `mib` MiB that depend on the seed and on nothing else.
pub(crate) fn write(path: &Path, seed: u64, mib: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut state = seed;
    let mut chunk = vec![0; CHUNK_BYTES];
    for _ in 0..mib {
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&next(&mut state).to_le_bytes());
        }
        file.write_all(&chunk)?;
    }
    Ok(())
}

/// SplitMix64: one addition and two multiplications a word, and no two places alike.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Reads both to their ends; fails where they first differ, within one read.
pub(crate) fn compare(expected: &Path, mut got: impl Read) -> Result<(), String> {
    let mut file = File::open(expected).map_err(|error| error.to_string())?;
    let mut here = vec![0; CHUNK_BYTES];
    let mut there = vec![0; CHUNK_BYTES];
    let mut at = 0_u64;
    loop {
        let count = got.read(&mut there).map_err(|error| error.to_string())?;
        if count == 0 {
            break;
        }
        match file.read_exact(&mut here[..count]) {
            Ok(()) if here[..count] == there[..count] => at += count as u64,
            Ok(()) => return Err(format!("differs within {count} bytes from {at}")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(format!("longer than expected, at {at}"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    match file.read(&mut here).map_err(|error| error.to_string())? {
        0 => Ok(()),
        _ => Err(format!("ends at {at}, before it should")),
    }
}

/// Compares two files.
pub(crate) fn compare_files(expected: &Path, got: &Path) -> Result<(), String> {
    let file = File::open(got).map_err(about(got))?;
    compare(expected, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_writes_the_same_bytes_and_another_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, seed) in [("a", 1), ("b", 1), ("c", 2)] {
            write(&path(name), seed, 1).unwrap();
        }
        assert_eq!(compare_files(&path("a"), &path("b")), Ok(()));
        assert!(compare_files(&path("a"), &path("c")).is_err());
    }

    #[test]
    fn a_changed_byte_a_short_end_and_a_long_end_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"abcdef").unwrap();
        let outcome = |got: &'static [u8]| compare(&path, got).unwrap_err();
        assert_eq!(compare(&path, &b"abcdef"[..]), Ok(()));
        assert!(outcome(b"abcxef").contains("differs"));
        assert!(outcome(b"abc").contains("ends at 3"));
        assert!(outcome(b"abcdefg").contains("longer"));
    }
}
