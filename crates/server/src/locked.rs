//! Files that one process at a time may have, by flock(2); and whether somebody has one, found
//! without taking the lock: whoever begins at that moment and wants it would be refused.

use std::fs::{self, File};
use std::io::Read;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::mountinfo::{Opened, fields};

/// A file whose lock, where it has one, goes with it. A process that is just being started has
/// descriptors of ours for a moment, so that closing ours is not enough.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    pub fn new(file: File) -> Self {
        Self(file)
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// `WOULDBLOCK`: somebody else has it.
    pub fn try_lock(&self) -> Result<(), Errno> {
        flock(&self.0, FlockOperation::NonBlockingLockExclusive)
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        flock(&self.0, FlockOperation::Unlock).ok();
    }
}

/// As `/proc/locks` has it (proc(5)). A lock of a process outside of our PID namespace is not seen;
/// nor is any where the system has no such file.
pub fn is_locked(file: &File) -> bool {
    let locks = all_locks();
    kernel_name(file).is_some_and(|name| has_flock(&locks, &name))
}

/// All that are held. Read in large pieces: between two of them the list may change, and a line
/// that moves towards its front is in neither.
fn all_locks() -> String {
    let mut text = Vec::with_capacity(64 << 10);
    File::open("/proc/locks").and_then(|mut locks| locks.read_to_end(&mut text)).ok();
    String::from_utf8_lossy(&text).into_owned()
}

/// Whether all who have a lock of it are programs of users other than root and ours, or have ended
/// and left it to who was started by them.
pub fn is_locked_by_others(file: &File) -> bool {
    let locks = all_locks();
    let Some(name) = kernel_name(file) else { return false };
    let mut holders = holders(&locks, &name).peekable();
    holders.peek().is_some() && holders.all(|holder| holder.is_some_and(is_of_others))
}

/// Whose process it is: its real user, whom nobody can give to a program but root.
fn is_of_others(process: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return true };
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let user = ids.and_then(|ids| ids.split_whitespace().next()?.parse().ok());
    user.is_some_and(|user: u32| user != 0 && user != rustix::process::geteuid().as_raw())
}

/// `MAJOR:MINOR:INODE`, as the kernel prints it there. What stat(2) replies differs on Btrfs and
/// overlayfs, so both come from what /proc has of the open file and its mount.
fn kernel_name(file: &File) -> Option<String> {
    let opened = Opened::of(file.as_fd())?;
    let (major, minor) = device(&opened.mount()?)?;
    // Linux has it since 5.14.
    let inode = opened.field("ino:").and_then(|inode| inode.parse().ok());
    let inode: u64 = inode.or_else(|| Some(file.metadata().ok()?.ino()))?;
    Some(format!("{major:02x}:{minor:02x}:{inode}"))
}

/// The device of the mount with this line.
fn device(mount: &[u8]) -> Option<(u32, u32)> {
    let device = std::str::from_utf8(fields(mount).nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether a lock is held.
fn has_flock(locks: &str, name: &str) -> bool {
    holders(locks, name).next().is_some()
}

/// The processes that have taken a lock which is held; those who wait for one have `->` before the
/// kind.
fn holders<'l>(locks: &'l str, name: &'l str) -> impl Iterator<Item = Option<u32>> + 'l {
    let of_line = move |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_it = fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&name);
        is_it.then(|| fields[4].parse().ok().filter(|process| *process > 0))
    };
    locks.lines().filter_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mountinfo::line;

    #[test]
    fn a_lock_is_seen_and_not_taken() {
        let found = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().write(true).open(found.path()).unwrap();
        let (looking, having) = (open(), open());
        assert!(!is_locked(&looking));
        for how in [FlockOperation::NonBlockingLockExclusive, FlockOperation::NonBlockingLockShared]
        {
            flock(&having, how).unwrap();
            assert!(is_locked(&looking), "{how:?}");
        }
        flock(&having, FlockOperation::Unlock).unwrap();
        assert!(!is_locked(&looking));
    }

    #[test]
    fn a_lock_of_another_user_is_not_taken_for_ours() {
        use std::io::Write;
        use std::os::unix::fs::PermissionsExt;
        use std::os::unix::process::CommandExt;
        use std::process::{Command, Stdio};

        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let open = || File::open(dir.path()).unwrap();
        let (looking, having) = (open(), open());
        assert!(!is_locked_by_others(&looking), "nobody has one");
        flock(&having, FlockOperation::LockExclusive).unwrap();
        assert!(!is_locked_by_others(&looking), "it is ours");
        drop(having);
        let mut command = Command::new("flock");
        command.arg(dir.path()).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut other) = command.uid(27001).spawn() else {
            return println!("NOT TESTED: only root runs programs of others; or no flock(1)");
        };
        other.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        other.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert!(is_locked(&looking) && is_locked_by_others(&looking));
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    #[test]
    fn a_lock_goes_though_another_process_has_the_descriptor() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || Locked::new(File::options().write(true).open(file.path()).unwrap());
        let (one, two) = (open(), open());
        assert!(one.try_lock().is_ok() && two.try_lock().is_err());
        let inherited = one.try_clone().unwrap();
        drop(one);
        assert!(two.try_lock().is_ok());
        drop(inherited);
    }

    #[test]
    fn only_locks_of_flock_that_are_held_count() {
        let locks = "1: FLOCK  ADVISORY  WRITE 31471 fe:00:901868 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 32644 fe:00:901869 0 EOF\n\
                     2: POSIX  ADVISORY  READ 2549 08:10:901870 128 128\n";
        let held = |name| has_flock(locks, name);
        assert!(held("fe:00:901868"));
        assert_eq!(holders(locks, "fe:00:901868").collect::<Vec<_>>(), [Some(31471)]);
        assert!(!held("fe:00:901869") && !held("08:10:901870") && !held("fe:00:90186"));
        let mounts = b"27 1 254:0 / / rw\n28 27 0:30 / /t rw\n";
        assert_eq!(device(line(mounts, "28").unwrap()), Some((0, 30)));
    }
}
