//! Whether clients of a served directory come to another place of this host through it: to another
//! export, which can then be reached by two ways, or to what the server keeps for itself.
//!
//! Paths do not tell: a bind mount shows a directory somewhere else, and hides what is below it.
//! So each directory is named by its file system and its place in that (`/proc/self/mountinfo`),
//! and then the one is opened from the other as a client's names would be, without links and
//! without crossing mount points.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use perf::words::unescaped;
use rustix::fs::{Mode, OFlags};

use super::beneath::Beneath;
use super::stat::Stat;
use super::{DirStore, act_as_server};
use crate::mountinfo::{Opened, fields};

/// Where a directory lies, whatever is mounted where.
#[derive(Debug, Eq, PartialEq)]
struct Place {
    /// The file system, as the kernel numbers it.
    device: Vec<u8>,
    /// The names down from the top of the file system.
    names: Vec<Box<[u8]>>,
}

impl DirStore {
    /// Whether clients of this store can reach the directory that `other` serves, below their own
    /// root. `false` where the system does not tell.
    pub fn leads_into(&self, other: &Self) -> bool {
        let (root, inner) = (self.tree.root.path(), other.tree.root.path());
        let look = || Ok(reaches(root, self.tree.beneath, inner));
        self.tree.root_identity != other.tree.root_identity
            && self.tree.acting.as_server(look).unwrap_or(false)
    }
}

/// Whether clients of an export of `dir` can reach what lies at `path`, or change what that name
/// leads to. `false` where there is nothing at one of the two.
pub fn leads_to(dir: &Path, path: &Path) -> bool {
    act_as_server();
    let open = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
    };
    let Some(root) = open(dir) else { return false };
    let beneath = Beneath::probe(root.as_fd());
    let mut places = [Some(path), path.parent()].into_iter().flatten().filter_map(open);
    places.any(|place| reaches(root.as_fd(), beneath, place.as_fd()))
}

/// Whether `inner` can be opened by names below `root`, or is `root`.
fn reaches(root: BorrowedFd<'_>, beneath: Beneath, inner: BorrowedFd<'_>) -> bool {
    let places = Place::of(root).zip(Place::of(inner));
    let Some((outer, place)) = places.filter(|(outer, place)| outer.device == place.device) else {
        return false;
    };
    let Some(names) = place.names.strip_prefix(&outer.names[..]) else { return false };
    let found = beneath.path(root, names).and_then(|found| Stat::of(&found));
    let identities = found.ok().zip(Stat::of(inner).ok());
    identities.is_some_and(|(found, inner)| found.identity() == inner.identity())
}

impl Place {
    /// By its path where the mounts that this process sees do not say more.
    fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        let opened = Opened::of(fd)?;
        let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
        let by_path =
            || Self { device: Vec::new(), names: components(path.as_os_str().as_bytes()) };
        let in_mount = opened.mount().and_then(|mount| Self::in_mount(&mount, path.as_os_str()));
        Some(in_mount.unwrap_or_else(by_path))
    }

    /// `path` of the mount with this line.
    fn in_mount(mount: &[u8], path: &OsStr) -> Option<Self> {
        let mut fields = fields(mount).skip(2);
        let device = fields.next()?.to_vec();
        let top = unescaped(fields.next()?);
        let mounted_at = unescaped(fields.next()?);
        let mut names = components(&top);
        let path = components(path.as_bytes());
        names.extend_from_slice(path.strip_prefix(&components(&mounted_at)[..])?);
        Some(Self { device, names })
    }
}

fn components(path: &[u8]) -> Vec<Box<[u8]>> {
    let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
    names.map(Box::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mountinfo::line;

    #[test]
    fn a_place_is_that_in_the_file_system() {
        let mounts = b"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                       35 21 8:1 /data/a\\040b /mnt/x\\134y rw shared:1 - ext4 /dev/sda1 rw\n";
        let place = |id, path: &str| {
            let place = Place::in_mount(line(mounts, id)?, OsStr::new(path))?;
            let names = place.names.join(&b'/');
            Some((String::from_utf8(place.device).unwrap(), String::from_utf8(names).unwrap()))
        };
        let at = |path: &str| Some(("8:1".to_owned(), path.to_owned()));
        assert_eq!(place("21", "/"), at(""));
        assert_eq!(place("21", "/srv/data"), at("srv/data"));
        assert_eq!(place("35", "/mnt/x\\y"), at("data/a b"));
        assert_eq!(place("35", "/mnt/x\\y/c"), at("data/a b/c"));
        assert_eq!(place("35", "/elsewhere"), None);
        assert_eq!(place("36", "/mnt/x"), None);
    }
}
