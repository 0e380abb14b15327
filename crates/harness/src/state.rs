//! What a server keeps for the next one: a directory of its own below the state directory, named
//! after the port that clients know it by, locked while it runs.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use server::locked::Locked;
use server::small_file::NO_LINK;

use crate::replaceable::changed;

/// A state directory that is ours until dropped.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    _lock: Locked,
}

impl State {
    /// Makes and locks the directory of the server on `port`, below `base`.
    ///
    /// # Errors
    /// It cannot be made, others may change it, or another server has it.
    pub fn open(base: &Path, port: u16) -> io::Result<Self> {
        let path = base.join(port.to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        stays(base)?;
        is_ours(&path)?;
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_LINK);
        let lock = Locked::new(options.open(path.join("lock"))?);
        lock.try_lock().map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another server has it")
            }
            errno => errno.into(),
        })?;
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether only we may change what lies there: it may have been made by somebody else before.
fn is_ours(path: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    let own = rustix::process::geteuid().as_raw();
    let wrong = |what| Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    match (found.is_dir(), found.uid() == own, found.mode() & 0o022) {
        (true, true, 0) => Ok(()),
        (false, ..) => wrong("it is not a directory".to_owned()),
        (_, false, _) => wrong(format!("it belongs to uid {} and not to {own}", found.uid())),
        _ => {
            let mode = found.mode() & 0o7777;
            wrong(format!("others may write to it (mode {mode:04o}): chmod go-w"))
        }
    }
}

/// Whether nobody else may put another directory in the place of one below `base`. That may be a
/// link, as systemd makes for a service without a user of its own.
fn stays(base: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    match changed(base, &std::fs::metadata(base)?, own) {
        None => Ok(()),
        Some(changed) => Err(io::Error::new(io::ErrorKind::PermissionDenied, changed.to_string())),
    }
}

/// Where servers of this user keep their state: /var/lib/nfskit for root, else the place that the
/// XDG directories name; none when there is no home.
pub fn default_base() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/nfskit"));
    }
    let named = |variable: &str| {
        std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let state = named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")))?;
    Some(state.join("nfskit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_at_a_time() {
        let base = tempfile::tempdir().unwrap();
        let first = State::open(base.path(), 2049).unwrap();
        let second = State::open(base.path(), 2049).unwrap_err();
        assert!(second.to_string().contains("another server"));
        State::open(base.path(), 2050).unwrap();
        // As a process has it that is being started.
        let inherited = first._lock.try_clone().unwrap();
        drop(first);
        State::open(base.path(), 2049).unwrap();
        drop(inherited);
    }

    #[test]
    fn a_directory_in_which_others_may_rename_is_none_for_states() {
        use std::os::unix::fs::{PermissionsExt, chown};

        let base = tempfile::tempdir().unwrap();
        for (mode, is_used) in [(0o700, true), (0o777, false), (0o770, false), (0o1777, true)] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(base.path(), mode).unwrap();
            assert_eq!(State::open(base.path(), 2049).is_ok(), is_used);
        }
        if !rustix::process::geteuid().is_root() {
            return println!("NOT TESTED: only root gives a directory to another user");
        }
        chown(base.path(), Some(27001), None).unwrap();
        let error = State::open(base.path(), 2049).unwrap_err().to_string();
        assert!(error.contains("belongs to uid 27001"), "{error}");
    }

    #[test]
    fn what_others_may_change_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("2049");
        std::fs::create_dir(&path).unwrap();
        let open_to = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).unwrap();
            State::open(base.path(), 2049).map(drop).map_err(|error| error.to_string())
        };
        assert!(open_to(0o777).unwrap_err().contains("chmod go-w"));
        let victim = base.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        symlink(&victim, path.join("lock")).unwrap();
        open_to(0o755).unwrap_err();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        std::fs::remove_file(path.join("lock")).unwrap();
        open_to(0o755).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        symlink(base.path(), &path).unwrap();
        assert!(State::open(base.path(), 2049).unwrap_err().to_string().contains("directory"));
    }
}
