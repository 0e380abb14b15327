//! What a server keeps for the next one: a directory of its own below the state directory, named
//! after the port that clients know it by, locked while it runs.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// A state directory that is ours until dropped.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    _lock: File,
}

impl State {
    /// Makes and locks the directory of the server on `port`, below `base`.
    ///
    /// # Errors
    /// It cannot be made, or another server has it.
    pub fn open(base: &Path, port: u16) -> io::Result<Self> {
        let path = base.join(port.to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let lock = File::create(path.join("lock"))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            match errno {
                rustix::io::Errno::WOULDBLOCK => {
                    io::Error::new(io::ErrorKind::ResourceBusy, "another server has it")
                }
                errno => errno.into(),
            }
        })?;
        Ok(Self { path, _lock: lock })
    }

    /// Whether it lies in a directory, however that is written.
    pub fn is_below(&self, dir: &Path) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path);
        match (real(&self.path), real(dir)) {
            (Ok(own), Ok(dir)) => own.starts_with(dir),
            // A directory that is not there cannot be served either.
            _ => false,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
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
        drop(first);
        State::open(base.path(), 2049).unwrap();
    }
}
