//! A log in a file for whoever keeps the journal: the proxy's write-back. It is found, made, locked
//! and written as a directory's is.

use std::cmp::Ordering;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use log::identity::{IdentityError, PROXY_MAGIC};
use log::{BLOCK, BLOCK_BYTES, Identity, Journal, Medium, Purpose, Set};
use rustix::rand::GetRandomFlags;
use tokio::sync::oneshot;

use super::error::{LogError, LogTrouble, Trouble};
use super::file::{self, Aligned, LogFile, Site};

/// One log, open and locked.
pub struct Alone {
    file: LogFile,
    boot: [u8; 16],
    is_new: bool,
}

impl std::fmt::Debug for Alone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alone").field("path", &self.file.path()).finish_non_exhaustive()
    }
}

impl Medium for Alone {
    fn read(&self, log: usize, at: u64, into: &mut [u8]) -> io::Result<()> {
        match log {
            0 => self.file.read(at, into),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Alone {
    /// The log at this place, made with so many bytes if nothing is there. `owner` names what its
    /// records are for, in at most [`log::identity::EXPORT_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// [`LogError`]: it is another's, in use, cut off, or cannot be made.
    pub fn open_or_make(path: &Path, bytes: u64, owner: &[u8]) -> Result<Self, LogError> {
        let wrong = |trouble: Trouble| trouble.about(path);
        let site = Site::at(path).map_err(wrong)?;
        if !matches!(site, Site::Taken) {
            let mut id = [0; 16];
            rustix::rand::getrandom(&mut id, GetRandomFlags::empty())
                .map_err(|errno| wrong(errno.into()))?;
            let bytes = site.bytes(bytes).map_err(wrong)?;
            let set = Set { id, bytes: vec![bytes] };
            let boot = file::known_boot(path)?;
            let first = Journal::first_frame(&set, boot);
            let (purpose, export) = (Purpose::Proxy, owner.to_vec());
            let identity = Identity { purpose, id, log: 0, logs: 1, bytes, export };
            file::make(path, &site, &identity, &first).map_err(wrong)?;
        }
        let log = Self { is_new: matches!(site, Site::Free), ..Self::open(path)? };
        match log.file.identity.export == owner {
            true => Ok(log),
            false => Err(log.file.error(Trouble::other(
                "it was made for another origin: the same URL as before is needed",
            ))),
        }
    }

    /// The log at this place, whatever its records are for.
    ///
    /// # Errors
    /// As above.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let file = LogFile::open(path, None)?;
        match file.identity.purpose {
            Purpose::Proxy => Ok(Self { file, boot: file::known_boot(path)?, is_new: false }),
            Purpose::Server => Err(file.error(Trouble::other(OF_A_SERVER))),
        }
    }

    pub fn set(&self) -> Set {
        Set::from(&self.file.identity)
    }

    pub fn owner(&self) -> &[u8] {
        &self.file.identity.export
    }

    /// Whether its file was made just now.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// This machine's boot.
    pub fn boot(&self) -> [u8; 16] {
        self.boot
    }

    /// Writes a frame, which is stable then.
    fn write(&self, at: u64, frame: &[u8]) -> io::Result<()> {
        self.file.write(at, frame)?;
        self.check_place()
    }

    /// Whether the next start would find it: a file without a name goes with its process.
    fn check_place(&self) -> io::Result<()> {
        let path = self.file.path();
        let found = match std::fs::metadata(path) {
            Ok(found) => found,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::other(format!("{} was removed", path.display())));
            }
            // It may be there.
            Err(_) => return Ok(()),
        };
        let own = self.file.metadata()?;
        match (found.dev(), found.ino()) == (own.dev(), own.ino()) {
            true => Ok(()),
            false => Err(io::Error::other(format!("{} was replaced", path.display()))),
        }
    }
}

/// A log that somebody else may have, for reading. It is not locked: whoever wants it gets it.
pub struct Peek {
    file: File,
    identity: Identity,
}

impl std::fmt::Debug for Peek {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peek").finish_non_exhaustive()
    }
}

impl Medium for Peek {
    fn read(&self, _log: usize, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }
}

impl Peek {
    /// # Errors
    /// It is no log of a proxy, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        Self::open_for_reading(path).map_err(|trouble| trouble.about(path))
    }

    fn open_for_reading(path: &Path) -> Result<Self, Trouble> {
        // A pipe that somebody has put here is not waited for.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(Trouble::new(LogTrouble::NoLog, "it is no file"));
        }
        let mut block = vec![0; BLOCK];
        file.read_exact_at(&mut block, 0).map_err(|cause| match cause.kind() {
            io::ErrorKind::UnexpectedEof => IdentityError::Foreign.into(),
            _ => Trouble::from(cause),
        })?;
        let identity = Identity::decode(&block)?;
        if identity.purpose != Purpose::Proxy {
            return Err(Trouble::other(OF_A_SERVER));
        }
        let (len, bytes) = (found.len(), identity.bytes);
        match len.cmp(&bytes) {
            Ordering::Less => Err(file::wrong_length(len, bytes).and("cut off")),
            Ordering::Equal => Ok(Self { file, identity }),
            Ordering::Greater => Err(file::wrong_length(len, bytes)),
        }
    }

    /// What a proxy that has it holds locked.
    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn set(&self) -> Set {
        Set::from(&self.identity)
    }

    pub fn owner(&self) -> &[u8] {
        &self.identity.export
    }
}

/// Whether a file begins as a proxy's log does, be the rest of it damaged or cut off.
pub fn begins_as_of_proxy(path: &Path) -> bool {
    let mut magic = [0; PROXY_MAGIC.len()];
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let read = file.and_then(|file| file.read_exact_at(&mut magic, 0));
    read.is_ok() && magic == PROXY_MAGIC
}

const OF_A_SERVER: &str = "it is the log of a server with a directory (--write-log)";

/// A frame to be written, or other work that may block on a disk.
enum Job {
    Write { at: u64, frame: Vec<u8>, done: oneshot::Sender<(Vec<u8>, io::Result<()>)> },
    Other(Box<dyn FnOnce() + Send>),
}

/// A thread that writes a log. It ends when this is dropped, after what it was given.
#[derive(Debug)]
pub struct Writer {
    jobs: Sender<Job>,
}

impl Writer {
    /// # Errors
    /// The system gives no thread.
    pub fn start(log: Arc<Alone>) -> io::Result<Self> {
        let (jobs, given) = channel();
        thread::Builder::new().name("nfskit-log-0".to_owned()).spawn(move || work(&log, &given))?;
        Ok(Self { jobs })
    }

    /// Gives back the frame, once it is stable, or why it is not. Nothing is sent if the thread is
    /// gone.
    pub fn write(&self, at: u64, frame: Vec<u8>) -> oneshot::Receiver<(Vec<u8>, io::Result<()>)> {
        debug_assert!(at.is_multiple_of(BLOCK_BYTES), "frames begin at blocks");
        let (done, hears) = oneshot::channel();
        self.jobs.send(Job::Write { at, frame, done }).ok();
        hears
    }

    /// Does this on the thread.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, hears) = oneshot::channel();
        let job = Box::new(move || drop(done.send(work())));
        self.jobs.send(Job::Other(job)).ok();
        hears
    }
}

fn work(log: &Alone, given: &Receiver<Job>) {
    let mut aligned = Aligned::default();
    while let Ok(job) = given.recv() {
        match job {
            Job::Write { at, frame, done } => {
                let written = log.write(at, aligned.copy(&frame));
                done.send((frame, written)).ok();
            }
            Job::Other(work) => work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locked::is_locked;

    #[test]
    fn nothing_is_stable_in_a_log_that_was_removed_or_replaced() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = place.path().join("log");
        let log = Arc::new(Alone::open_or_make(&path, 16 << 20, b"origin").unwrap());
        let writer = Writer::start(log).unwrap();
        let write = || writer.write(2 * BLOCK_BYTES, vec![7; BLOCK]).blocking_recv().unwrap().1;
        assert!(write().is_ok());
        let aside = place.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        assert!(write().unwrap_err().to_string().contains("was removed"));
        std::fs::write(&path, "another").unwrap();
        assert!(write().unwrap_err().to_string().contains("was replaced"));
        std::fs::rename(&aside, &path).unwrap();
        assert!(write().is_ok());
    }

    #[test]
    fn a_log_that_is_looked_at_is_there_for_a_proxy_that_begins() {
        // A log in memory is refused.
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = place.path().join("log");
        drop(Alone::open_or_make(&path, 16 << 20, b"origin").unwrap());
        let peek = Peek::open(&path).unwrap();
        let looked = LogFile::look(&path).unwrap();
        assert!(!is_locked(peek.file()) && !looked.is_in_use());
        let log = Alone::open(&path).unwrap();
        assert!(is_locked(peek.file()) && looked.is_in_use());
        assert_eq!(LogFile::look(&path).map(drop).unwrap_err().kind(), LogTrouble::InUse);
        drop(log);
        assert!(!is_locked(peek.file()));
    }
}
