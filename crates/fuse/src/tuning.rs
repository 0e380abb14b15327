//! How much the kernel caches for this mount: /sys/class/bdi/MAJOR:MINOR.
//!
//! What programs have written waits in the kernel until we take it, and what they close and remove
//! waits behind it: over a slow link a queue of a fifth of the memory is many seconds long. So it
//! is bounded: in bytes where the kernel can (Linux 6.2), else by a share of what may be dirty. By
//! itself a file system in user space gets one hundredth of that, and reads run ahead by 128 KiB:
//! limits for programs that are not trusted, which cost a writer most of its speed, and need root
//! to be changed.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Read-ahead: two of the largest READs of NFS.
const READ_AHEAD_KIB: u64 = 2048;

/// What could not be changed.
#[derive(Debug)]
pub struct Untuned {
    pub file: &'static str,
    pub cause: io::Error,
}

/// Bounds, as far as we may, what the kernel holds of written data; none for whatever the system
/// lets it hold.
pub(crate) fn bound(device: &str, dirty_bytes_max: Option<u64>) -> Vec<Untuned> {
    bound_by(|file, value| set(device, file, value), dirty_bytes_max, threshold_bytes())
}

/// Lets reads run further ahead, as far as we may. INIT lowers it, so that it comes behind that.
pub(crate) fn read_ahead(device: &str) -> Option<Untuned> {
    let file = "read_ahead_kb";
    set(device, file, READ_AHEAD_KIB).map_err(|cause| Untuned { file, cause }).err()
}

fn set(device: &str, file: &str, value: u64) -> io::Result<()> {
    let path = Path::new("/sys/class/bdi").join(device).join(file);
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.to_string().as_bytes())
}

fn bound_by(
    set: impl Fn(&str, u64) -> io::Result<()>,
    dirty_bytes_max: Option<u64>,
    threshold_bytes: u64,
) -> Vec<Untuned> {
    let set =
        |file: &'static str, value: u64| set(file, value).map_err(|cause| Untuned { file, cause });
    let share = |percent| set("max_ratio", percent);
    let bound = match dirty_bytes_max {
        // An older kernel has no such file, and none takes more than the system's own limit.
        Some(most) => set("max_bytes", most).or_else(|_| share(percent(most, threshold_bytes))),
        None => share(100),
    };
    let is_strict = dirty_bytes_max.is_some();
    let strictness = match set("strict_limit", u64::from(is_strict)) {
        // Where it cannot be chosen it is strict.
        Err(untuned) if is_strict && untuned.cause.kind() == io::ErrorKind::NotFound => Ok(()),
        set => set,
    };
    [bound, strictness].into_iter().filter_map(Result::err).collect()
}

/// The share of `all` that `part` is, one hundredth at least.
fn percent(part: u64, all: u64) -> u64 {
    (part.saturating_mul(100) / all.max(1)).clamp(1, 100)
}

/// How much of all memory may be dirty; nothing where that is not known.
fn threshold_bytes() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let pages = text.lines().find_map(|line| line.strip_prefix("nr_dirty_threshold "));
    let pages = pages.and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const MOST: u64 = 64 << 20;

    /// What a kernel that has these files is given, and what could not be set.
    fn tuned(
        files: &[&str],
        dirty_bytes_max: Option<u64>,
        threshold_bytes: u64,
    ) -> (Vec<(String, u64)>, Vec<&'static str>) {
        let given: RefCell<Vec<_>> = RefCell::default();
        let set = |file: &str, value| match files.contains(&file) {
            true if file == "max_bytes" && value > threshold_bytes => {
                Err(io::ErrorKind::InvalidInput.into())
            }
            true => {
                given.borrow_mut().push((file.to_owned(), value));
                Ok(())
            }
            false => Err(io::ErrorKind::NotFound.into()),
        };
        let untuned = bound_by(set, dirty_bytes_max, threshold_bytes);
        (given.into_inner(), untuned.iter().map(|untuned| untuned.file).collect())
    }

    const ALL: [&str; 3] = ["max_bytes", "max_ratio", "strict_limit"];
    const OLD: [&str; 1] = ["max_ratio"];

    fn given(values: &[(&str, u64)]) -> Vec<(String, u64)> {
        values.iter().map(|(file, value)| ((*file).to_owned(), *value)).collect()
    }

    #[test]
    fn what_the_kernel_holds_of_written_data_is_bounded_on_every_kernel() {
        let strict = ("strict_limit", 1);
        let bounded = |files: &[&str], all| tuned(files, Some(MOST), all);
        let exact = given(&[("max_bytes", MOST), strict]);
        assert_eq!(bounded(&ALL, 10 * MOST), (exact, vec![]));
        let small = given(&[("max_ratio", 100), strict]);
        assert_eq!(bounded(&ALL, MOST / 2), (small, vec![]), "more than the system lets it hold");
        let share = given(&[("max_ratio", 10)]);
        assert_eq!(bounded(&OLD, 10 * MOST), (share, vec![]), "there it is always strict");
    }

    #[test]
    fn a_limit_that_is_not_wanted_is_lifted() {
        let lifted = given(&[("max_ratio", 100), ("strict_limit", 0)]);
        assert_eq!(tuned(&ALL, None, 10 * MOST), (lifted, vec![]));
        assert_eq!(tuned(&OLD, None, 10 * MOST).1, ["strict_limit"]);
    }

    #[test]
    fn what_cannot_be_set_is_named() {
        assert_eq!(tuned(&[], None, MOST).1, ["max_ratio", "strict_limit"]);
        assert_eq!(tuned(&[], Some(MOST), MOST).1, ["max_ratio"]);
    }
}
