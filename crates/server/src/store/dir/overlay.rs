//! How an overlay was mounted, as the kernel lists it.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use perf::words::unescaped;

use crate::mountinfo::{Opened, fields};

/// Whether its syncs do nothing: `volatile`, or `fsync=volatile` in later kernels.
pub(super) fn is_volatile(file: BorrowedFd<'_>) -> bool {
    let options = options_at(file).unwrap_or_default();
    has_volatile(&options)
}

/// Whether the names of one file become files of their own when it is first written to: it is
/// copied to the upper layer under one of its names, unless an index (`index=on`) has the others.
/// Where that is not known, they do.
pub(super) fn parts_names(file: BorrowedFd<'_>) -> bool {
    options_at(file).is_none_or(|options| parts(&options, has_index_by_default))
}

/// What an overlay does that does not say `index=`.
fn has_index_by_default() -> bool {
    let read = std::fs::read("/sys/module/overlay/parameters/index");
    read.is_ok_and(|text| text.starts_with(b"Y"))
}

/// Of the overlay that a file is in.
pub(super) fn upper_layer(file: BorrowedFd<'_>) -> Option<PathBuf> {
    upper_of(&options_at(file)?)
}

/// Those of the file system that a file is in.
fn options_at(file: BorrowedFd<'_>) -> Option<Vec<u8>> {
    options_of(&Opened::of(file)?.mount()?).map(<[u8]>::to_vec)
}

/// The last field of its mount's line.
fn options_of(mount: &[u8]) -> Option<&[u8]> {
    fields(mount).last()
}

fn each(options: &[u8]) -> impl Iterator<Item = &[u8]> {
    options.split(|&byte| byte == b',')
}

fn has_volatile(options: &[u8]) -> bool {
    each(options).any(|option| matches!(option, b"volatile" | b"fsync=volatile"))
}

fn parts(options: &[u8], has_index_by_default: impl Fn() -> bool) -> bool {
    let index = each(options).find_map(|option| option.strip_prefix(b"index="));
    let has_index = index.map_or_else(has_index_by_default, |index| index == b"on");
    upper_of(options).is_some() && !has_index
}

fn upper_of(options: &[u8]) -> Option<PathBuf> {
    let upper = each(options).find_map(|option| option.strip_prefix(b"upperdir="))?;
    Some(PathBuf::from(OsStr::from_bytes(&unescaped(upper))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mountinfo::line;

    #[test]
    fn an_overlay_is_found_by_its_mount() {
        let mounts = b"23 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            37 23 0:41 / /live rw shared:9 - overlay overlay rw,lowerdir=/a,upperdir=/m\\040y/up,workdir=/w\n\
            38 23 0:42 / /build rw - overlay overlay rw,upperdir=/volatile,workdir=/w,volatile\n";
        let of = |mount| options_of(line(mounts, mount).unwrap()).unwrap();
        assert_eq!(upper_of(of("37")), Some("/m y/up".into()));
        assert_eq!(upper_of(of("23")), None);
        assert_eq!(line(mounts, "3"), None);
        assert_eq!([of("37"), of("38")].map(has_volatile), [false, true]);
        assert!(has_volatile(b"rw,fsync=volatile"));
        assert!(parts(of("37"), || false) && !parts(of("37"), || true));
        let upper = b"rw,upperdir=/up,index=on";
        assert!(!parts(upper, || false) && parts(b"upperdir=/up,index=off", || true));
        assert!(!parts(b"ro,lowerdir=/a:/b", || false), "nothing is ever copied up");
    }
}
