//! How much the kernel caches for this mount: /sys/class/bdi/MAJOR:MINOR.
//!
//! A file system in user space may fill one hundredth of the memory that may be dirty, and is
//! throttled by its own share (`strict_limit`); reads run ahead by 128 KiB. Both are limits for
//! programs that are not trusted. They cost a writer of 256 MiB most of its speed, and need root
//! to be lifted.

use std::fs;
use std::io;
use std::path::Path;

/// Read-ahead: two of the largest READs of NFS.
const READ_AHEAD_KIB: u32 = 2048;

/// What could not be changed.
#[derive(Debug)]
pub struct Untuned {
    pub file: &'static str,
    pub cause: io::Error,
}

/// Lifts the limits, as far as we may.
pub(crate) fn tune(device: &str) -> Vec<Untuned> {
    tune_in(&Path::new("/sys/class/bdi").join(device))
}

fn tune_in(folder: &Path) -> Vec<Untuned> {
    let values = [
        ("strict_limit", "0".to_owned()),
        ("max_ratio", "100".to_owned()),
        ("read_ahead_kb", READ_AHEAD_KIB.to_string()),
    ];
    let set = values.into_iter().map(|(file, value)| (file, fs::write(folder.join(file), value)));
    set.filter_map(|(file, result)| result.err().map(|cause| Untuned { file, cause })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_set_is_named() {
        let untuned = tune_in(Path::new("/nowhere"));
        let files: Vec<_> = untuned.iter().map(|untuned| untuned.file).collect();
        assert_eq!(files, ["strict_limit", "max_ratio", "read_ahead_kb"]);
    }
}
