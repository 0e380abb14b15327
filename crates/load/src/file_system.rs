//! A directory as a place to measure: what file system it is on, what a flush there survives, and
//! how much room there is.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use perf::record::Durability;
use perf::words::unescaped;

use crate::error::Error;

/// What is known of a directory's file system.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileSystem {
    /// As the mount table calls it (`ext4`, `fuse.nfskit`), or by the number that statfs gives.
    pub kind: String,
    /// Options of the mount, as the mount table has them.
    pub mount_options: Option<String>,
    /// What data survive once fsync has returned; `None` where the kind does not tell.
    pub flushed: Option<Durability>,
}

/// Names of the numbers that statfs(2) gives, and what a flush survives there.
///
/// NFS promises stable storage with the reply to COMMIT (RFC 1813, section 3.3.21), and so does our
/// own mount; whether the server keeps the promise is not to be seen from here. Other FUSE file
/// systems, overlays and 9P pass the question on to something below.
const KINDS: [(u32, &str, Option<Durability>); 12] = [
    (0x0102_1994, "tmpfs", Some(Durability::Memory)),
    (0x8584_58f6, "ramfs", Some(Durability::Memory)),
    (0x0000_ef53, "ext4", Some(Durability::Stable)),
    (0x5846_5342, "xfs", Some(Durability::Stable)),
    (0x9123_683e, "btrfs", Some(Durability::Stable)),
    (0xf2f5_2010, "f2fs", Some(Durability::Stable)),
    (0xca45_1a4e, "bcachefs", Some(Durability::Stable)),
    (0x2fc1_2fc1, "zfs", Some(Durability::Stable)),
    (0x0000_6969, "nfs", Some(Durability::Stable)),
    (0x6573_5546, "fuse", None),
    (0x794c_7630, "overlay", None),
    (0x0102_1997, "9p", None),
];

/// The subtype of our own mounts in the mount table.
const OUR_MOUNT: &str = "fuse.nfskit";

impl FileSystem {
    /// It is a server's: what survives is what the protocol promises, and not seen from here.
    pub fn is_nfs(&self) -> bool {
        self.kind.starts_with("nfs") || self.kind == OUR_MOUNT
    }

    /// Asks the system about `dir`.
    ///
    /// # Errors
    /// The directory is not there, or not for this user to look at.
    pub fn of(dir: &Path) -> Result<Self, Error> {
        let failed =
            |cause| Error::Local { doing: "looking at a directory", path: dir.into(), cause };
        let dir = dir.canonicalize().map_err(failed)?;
        let stat = rustix::fs::statfs(&dir).map_err(|errno| failed(errno.into()))?;
        // The type's width and sign differ between machines; the numbers have 32 bits.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a bit pattern"
        )]
        let magic = stat.f_type as u32;
        let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
        Ok(Self::from_parts(magic, mount_of(&dir, &table)))
    }

    fn from_parts(magic: u32, mount: Option<Mount>) -> Self {
        let known = KINDS.iter().find(|(number, ..)| *number == magic);
        let kind = match (&mount, known) {
            (Some(mount), _) => mount.kind.clone(),
            (None, Some((_, name, _))) => (*name).to_owned(),
            (None, None) => format!("{magic:#x}"),
        };
        let flushed = match known {
            Some((_, _, flushed)) if kind != OUR_MOUNT => *flushed,
            None => None,
            Some(_) => Some(Durability::Stable),
        };
        Self { kind, mount_options: mount.map(|mount| mount.options), flushed }
    }
}

/// Bytes that this user may still write in `dir`.
///
/// # Errors
/// As the system says.
pub fn free_bytes(dir: &Path) -> Result<u64, Error> {
    let failed = |errno: rustix::io::Errno| Error::Local {
        doing: "looking at a directory",
        path: dir.into(),
        cause: errno.into(),
    };
    let stat = rustix::fs::statvfs(dir).map_err(failed)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Mount {
    kind: String,
    options: String,
}

/// The mount that `dir` lies on: of those whose mount point is above it the deepest, and of those
/// the last, which covers the others. A line is, by proc(5):
///
/// `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn mount_of(dir: &Path, table: &[u8]) -> Option<Mount> {
    let lines = table.split(|byte| *byte == b'\n');
    let mounts = lines.filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let point = unescaped(fields.nth(4)?);
        let options = String::from_utf8_lossy(fields.next()?).into_owned();
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        let point = Path::new(std::ffi::OsStr::from_bytes(&point)).to_owned();
        let kind = String::from_utf8_lossy(kind).into_owned();
        dir.starts_with(&point).then(|| (point.components().count(), Mount { kind, options }))
    });
    mounts.max_by_key(|(depth, _)| *depth).map(|(_, mount)| mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1g
31 30 0:26 / /tmp/my\\040mount rw - fuse.nfskit nfs://h/x rw,user_id=0
32 31 0:27 / /tmp/my\\040mount ro - nfs4 h:/x ro
broken line
";

    fn kind(dir: &str) -> Option<String> {
        mount_of(Path::new(dir), TABLE).map(|mount| mount.kind)
    }

    #[test]
    fn the_deepest_and_newest_mount_above_a_directory_is_its_own() {
        assert_eq!(kind("/home/me").as_deref(), Some("ext4"));
        assert_eq!(kind("/tmp").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/tmporary").as_deref(), Some("ext4"));
        assert_eq!(kind("/tmp/my mount/deep").as_deref(), Some("nfs4"));
        assert_eq!(mount_of(Path::new("/"), b"\n \n1 2 3\n"), None);
    }

    #[test]
    fn what_a_flush_survives_is_reported_only_where_it_is_known() {
        let flushed = |magic, kind: &str| {
            let mount = Mount { kind: kind.to_owned(), options: String::new() };
            FileSystem::from_parts(magic, Some(mount)).flushed
        };
        assert_eq!(flushed(0xef53, "ext4"), Some(Durability::Stable));
        assert_eq!(flushed(0x0102_1994, "tmpfs"), Some(Durability::Memory));
        assert_eq!(flushed(0x6573_5546, "fuse.sshfs"), None);
        assert_eq!(flushed(0x6573_5546, "fuse.nfskit"), Some(Durability::Stable));
        assert_eq!(flushed(0x794c_7630, "overlay"), None);
        assert_eq!(flushed(1, "something"), None);
        assert_eq!(FileSystem::from_parts(0xabc, None).kind, "0xabc");
    }

    #[test]
    fn this_machines_directories_have_a_kind_and_room() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!FileSystem::of(dir.path()).unwrap().kind.is_empty());
        assert!(free_bytes(dir.path()).unwrap() > 0);
        assert!(FileSystem::of(Path::new("/no/such/directory")).is_err());
    }
}
