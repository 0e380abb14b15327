//! How an overlay was mounted, as the kernel lists it (/proc/self/mountinfo).

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use perf::words::unescaped;

/// Whether its syncs do nothing: `volatile`, or `fsync=volatile` in later kernels.
pub(super) fn is_volatile(file: BorrowedFd<'_>) -> bool {
    let options = options_at(file).unwrap_or_default();
    has_volatile(&options)
}

/// Of the overlay that a file is in.
pub(super) fn upper_layer(file: BorrowedFd<'_>) -> Option<PathBuf> {
    upper_of(&options_at(file)?)
}

/// Those of the file system that a file is in.
fn options_at(file: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    options_of(&mounts, mount).map(<[u8]>::to_vec)
}

/// The last field of its line.
fn options_of<'m>(mounts: &'m [u8], mount: &str) -> Option<&'m [u8]> {
    let mut lines = mounts.split(|&byte| byte == b'\n');
    let line = lines.find(|line| line.split(|&byte| byte == b' ').next() == Some(mount.as_bytes()));
    line?.rsplit(|&byte| byte == b' ').next()
}

fn each(options: &[u8]) -> impl Iterator<Item = &[u8]> {
    options.split(|&byte| byte == b',')
}

fn has_volatile(options: &[u8]) -> bool {
    each(options).any(|option| matches!(option, b"volatile" | b"fsync=volatile"))
}

fn upper_of(options: &[u8]) -> Option<PathBuf> {
    let upper = each(options).find_map(|option| option.strip_prefix(b"upperdir="))?;
    Some(PathBuf::from(OsStr::from_bytes(&unescaped(upper))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_is_found_by_its_mount() {
        let mounts = b"23 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            37 23 0:41 / /live rw shared:9 - overlay overlay rw,lowerdir=/a,upperdir=/m\\040y/up,workdir=/w\n\
            38 23 0:42 / /build rw - overlay overlay rw,upperdir=/volatile,workdir=/w,volatile\n";
        let of = |mount| options_of(mounts, mount).unwrap();
        assert_eq!(upper_of(of("37")), Some("/m y/up".into()));
        assert_eq!(upper_of(of("23")), None);
        assert_eq!(options_of(mounts, "3"), None);
        assert_eq!([of("37"), of("38")].map(has_volatile), [false, true]);
        assert!(has_volatile(b"rw,fsync=volatile"));
    }
}
