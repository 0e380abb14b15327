//! A mount from its beginning to its end.
//!
//! The end comes from either side: somebody unmounts, and the reader of requests finds no more of
//! them; or [`Mount::end`] is called, which writes back what the kernel has, unmounts, and never
//! waits longer than configured, all its steps together.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use client::files::{Files, Loss};
use client::session::Credential;
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use rustix::fs::{FlockOperation, Mode, OFlags};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::abi::init::KernelCache;
use crate::caller::Callers;
use crate::device::{self, Device, Mounted};
pub use crate::device::{Covered, Flags, MountError};
use crate::dispatch;
use crate::fs::FileSystem;
use crate::inflight::Inflight;
use crate::mounts;
pub use crate::mounts::Entry;
use crate::notify::Notifier;
use crate::tuning;
pub use crate::tuning::Untuned;

/// Why a directory cannot be mounted on, or could not.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0:?} is not there")]
    NotThere(PathBuf),
    #[error("{0:?} is not a directory")]
    NotADirectory(PathBuf),
    #[error("{0:?} is not empty")]
    NotEmpty(PathBuf),
    #[error("{:?}: {} is mounted there already (type {})", .0.at, .0.source, .0.kind)]
    Already(Entry),
    #[error("{0:?}: another mount begins there, or a program has locked the directory")]
    Claimed(PathBuf),
    /// A mount whose process has died.
    #[error("{:?}: {} is mounted there, and the process that served it is gone", .0.at, .0.source)]
    Dead(Entry),
    /// What is to be remounted.
    #[error("nothing of ours is mounted on {0:?}")]
    NotOurs(PathBuf),
    #[error("{0:?}: {1}")]
    Unreadable(PathBuf, io::Error),
    #[error(transparent)]
    Mount(#[from] MountError),
}

/// How to mount.
#[derive(Clone, Debug)]
pub struct Options {
    pub flags: Flags,
    pub cache: KernelCache,
    /// Bytes that the kernel may hold of what programs have written, which reads and closes wait
    /// behind; none for as many as the system lets it hold.
    pub dirty_bytes_max: Option<u64>,
    /// Bytes of them that may wait in this process where the kernel has no such bound, or it could
    /// not be set.
    pub waiting_bytes_max: u64,
    /// On whose behalf the mount itself asks.
    pub credential: Credential,
}

/// A mounted file system.
#[derive(Debug)]
pub struct Mount {
    clock: Clock,
    mounted: Arc<Mounted>,
    system: Arc<FileSystem>,
    inflight: Inflight,
    is_over: watch::Receiver<bool>,
    untuned: Vec<Untuned>,
    writes_back: bool,
}

/// How long the end waits for those who use the mount to leave it, and how often it looks.
const LEAVING_MAX: Nanos = Nanos::from_secs(1);
const LEAVING_AGAIN: Nanos = Nanos::from_millis(10);

/// How often the end fetches what programs go on writing.
const WRITE_BACKS_MAX: u32 = 4;

/// How a mount has ended.
#[derive(Debug)]
pub struct Ended {
    /// Somebody still used it, so that it was only taken out of the tree of files; or even that
    /// could not be done.
    pub unmounted: Unmounted,
    /// Files of which data could not be written, and why. None when the time was over before that
    /// was known.
    pub losses: Option<Vec<Loss>>,
}

#[derive(Debug)]
pub enum Unmounted {
    Cleanly,
    Lazily {
        /// Files that were open then.
        open_files: usize,
        /// Programs wrote to the last moment: the kernel may have had bytes that it has not sent.
        were_written: bool,
    },
    /// The cause may be [`Covered`].
    Not(io::Error),
}

/// Whether a directory can be mounted on. Gives it as the kernel will name it.
///
/// # Errors
/// All of [`enum@Error`] that concern the directory.
pub fn check(dir: &Path, may_have_entries: bool) -> Result<PathBuf, Error> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::NotThere(dir.to_owned()),
        _ => Error::Unreadable(dir.to_owned(), error),
    };
    let at = mounts::canonical(dir).map_err(unreadable)?;
    let there = mounts::at(&at).map_err(unreadable)?;
    let metadata = match (fs::metadata(&at), there) {
        (Err(error), Some(entry)) if error.kind() == io::ErrorKind::NotConnected => {
            return Err(Error::Dead(entry));
        }
        (Err(error), _) => return Err(unreadable(error)),
        (Ok(_), Some(entry)) => return Err(Error::Already(entry)),
        (Ok(metadata), None) => metadata,
    };
    if !metadata.is_dir() {
        return Err(Error::NotADirectory(dir.to_owned()));
    }
    if !may_have_entries && !device::is_empty(&at).map_err(unreadable)? {
        return Err(Error::NotEmpty(dir.to_owned()));
    }
    Ok(at)
}

/// The directory, locked until this is dropped: of two mounts that begin there at once the second
/// sees the first's. Nothing where it cannot be opened, or its file system has no locks.
fn claim(at: &Path) -> Result<Option<OwnedFd>, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(at, flags, Mode::empty()).ok();
    let locked = dir.as_ref().map(|dir| {
        // Not waited for: any program that may open it may lock it, for ever.
        rustix::fs::flock(dir, FlockOperation::NonBlockingLockExclusive)
    });
    if locked == Some(Err(rustix::io::Errno::WOULDBLOCK)) {
        return Err(Error::Claimed(at.to_owned()));
    }
    match mounts::at(at) {
        Ok(None) => Ok(dir),
        Ok(Some(entry)) => Err(Error::Already(entry)),
        Err(error) => Err(Error::Unreadable(at.to_owned(), error)),
    }
}

/// The directory on which a mount of ours is, as the kernel names it.
///
/// # Errors
/// [`Error::NotOurs`]; or it cannot be looked at.
pub fn mounted(dir: &Path) -> Result<PathBuf, Error> {
    let unreadable = |error| Error::Unreadable(dir.to_owned(), error);
    let at = mounts::canonical(dir).map_err(unreadable)?;
    match mounts::at(&at).map_err(unreadable)? {
        Some(entry) if entry.kind == device::TYPE => Ok(at),
        _ => Err(Error::NotOurs(dir.to_owned())),
    }
}

/// Whether a path is in a mount of ours.
///
/// # Errors
/// It is not there, or may not be looked at.
pub fn is_mounted(path: &Path) -> io::Result<bool> {
    Ok(mounts::of(path)?.is_some_and(|entry| entry.kind == device::TYPE))
}

/// Gives what is mounted there other flags: those of mount(8), all of them anew. How the server is
/// spoken to stays as it is.
///
/// # Errors
/// As [`mounted`]; EBUSY if it is to be read only and is being written to.
pub fn remount(dir: &Path, flags: &Flags) -> Result<(), Error> {
    device::remount(&mounted(dir)?, flags).map_err(Error::Mount)
}

impl Mount {
    /// Mounts `files` on a directory, as [`check`] has given it. Needs a tokio runtime around it,
    /// on which everything that waits is run.
    ///
    /// # Errors
    /// [`Error::Already`] or [`Error::Claimed`], when another was faster; [`MountError`]; nothing
    /// is left mounted then.
    pub fn start(clock: &Clock, files: Files, at: &Path, options: Options) -> Result<Self, Error> {
        let claimed = claim(at)?;
        let (device, mounted) = Device::mount(at, &options.flags)?;
        drop(claimed);
        let undo = |error| {
            mounted.unmount(true).ok();
            error
        };
        let mut untuned = tuning::bound(mounted.device(), options.dirty_bytes_max);
        let is_bounded = options.dirty_bytes_max.is_some() && untuned.is_empty();
        let waiting_bytes_max = (!is_bounded).then_some(options.waiting_bytes_max);
        let agreed = dispatch::greet(&device, options.cache, waiting_bytes_max)
            .map_err(|reason| undo(MountError::Handshake(reason)))?;
        let device = Arc::new(device);
        let system = |error| undo(MountError::System(error));
        let notifier = Notifier::start(&device).map_err(system)?;
        let callers = Callers::new(clock, options.credential, options.flags.all_are_one);
        let file_system =
            Arc::new(FileSystem::new(files, clock, callers, notifier, options.cache, agreed));
        let inflight = Inflight::new(clock, &device);
        let (over, is_over) = watch::channel(false);
        let reader = {
            let (device, file_system) = (Arc::clone(&device), Arc::clone(&file_system));
            let (inflight, runtime) = (inflight.clone(), Handle::current());
            move || {
                dispatch::run(&device, &file_system, &inflight, &runtime);
                over.send_replace(true);
            }
        };
        thread::Builder::new().name("nfskit-fuse".to_owned()).spawn(reader).map_err(system)?;
        untuned.extend(tuning::read_ahead(mounted.device()));
        Ok(Self {
            clock: clock.clone(),
            mounted: Arc::new(mounted),
            system: file_system,
            inflight,
            is_over,
            untuned,
            writes_back: agreed.writes_back(),
        })
    }

    /// Limits of the kernel's cache that could not be set.
    pub fn untuned(&self) -> &[Untuned] {
        &self.untuned
    }

    /// Whether the kernel keeps what programs write, and writes it back later.
    pub fn writes_back(&self) -> bool {
        self.writes_back
    }

    /// Nodes that the kernel knows, files that are open, requests that wait.
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.system.nodes.lock().len(), self.system.opens.files(), self.inflight.len())
    }

    /// Done when somebody has unmounted it.
    pub async fn is_over(&self) {
        let mut is_over = self.is_over.clone();
        // The sender goes only with the reader, which says so before.
        is_over.wait_for(|is_over| *is_over).await.ok();
    }

    /// Unmounts and flushes, or writes back what the kernel has, flushes, and unmounts by force.
    /// All of that within `limit`: what it is over for is not done, but for the last.
    pub async fn end(&self, limit: Nanos) -> Ended {
        let grace = Grace::of(&self.clock, limit);
        let mut refused = self.unmount(&grace).await.err();
        let was_in_use = refused.is_some();
        if was_in_use {
            self.write_back(&grace).await;
        }
        let mut losses = grace.within(self.system.files.shut_down()).await;
        if refused.as_ref().is_some_and(is_busy) {
            refused = self.unmount_patiently(&grace).await.err();
        }
        let open_files = self.system.opens.files();
        let were_written = refused.is_some() && !self.write_back_until_quiet(&grace).await;
        let unmounted = match refused {
            None => Unmounted::Cleanly,
            Some(_) => match self.mounted.abort() {
                Ok(()) => Unmounted::Lazily { open_files, were_written },
                // Perhaps somebody was faster.
                Err(_) if *self.is_over.borrow() => Unmounted::Cleanly,
                Err(error) => Unmounted::Not(error),
            },
        };
        if was_in_use && let Some(lost) = &mut losses {
            // What was taken from those who used it to the last moment.
            match grace.within(self.system.files.shut_down()).await {
                Some(more) => lost.extend(more),
                None => losses = None,
            }
        }
        Ended { unmounted, losses }
    }

    /// Takes it out of the tree of files at once, whatever is lost.
    pub fn abandon(&self) {
        self.mounted.abort().ok();
    }

    async fn unmount(&self, grace: &Grace) -> io::Result<()> {
        if *self.is_over.borrow() {
            return Ok(());
        }
        self.try_unmount(grace).await
    }

    /// The same, with a moment for those who are just leaving it: a child of a program that has a
    /// file open has it, too, until its exec.
    async fn unmount_patiently(&self, grace: &Grace) -> io::Result<()> {
        let until = self.clock.now() + LEAVING_MAX;
        loop {
            match self.unmount(grace).await {
                Err(error) if is_busy(&error) && self.clock.now() < until => {
                    self.clock.sleep(LEAVING_AGAIN).await;
                }
                result => return result,
            }
        }
    }

    /// Those who use it keep what they have open, but not what is to be written.
    async fn write_back(&self, grace: &Grace) {
        let written = self.system.nodes.lock().written();
        let write_back = async {
            for node in written {
                self.system.write_back(node).await;
            }
        };
        grace.within(write_back).await;
    }

    /// The same until programs have written nothing meanwhile; false if they go on.
    async fn write_back_until_quiet(&self, grace: &Grace) -> bool {
        let written = || self.system.written_back.load(Ordering::Relaxed);
        for _ in 0..WRITE_BACKS_MAX {
            let before = written();
            self.write_back(grace).await;
            if written() == before {
                return true;
            }
        }
        false
    }

    /// umount(2) in a thread of its own: it may wait for a server.
    async fn try_unmount(&self, grace: &Grace) -> io::Result<()> {
        let mounted = Arc::clone(&self.mounted);
        let (tell, answer) = oneshot::channel();
        thread::Builder::new().name("nfskit-unmount".to_owned()).spawn(move || {
            // Nobody may be waiting any more.
            tell.send(mounted.unmount(false)).ok();
        })?;
        match grace.within(answer).await {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ResourceBusy
}

/// The time that the end may take: its steps share it.
struct Grace {
    clock: Clock,
    until: Instant,
}

impl Grace {
    fn of(clock: &Clock, limit: Nanos) -> Self {
        Self { clock: clock.clone(), until: clock.now() + limit }
    }

    /// None: there was no time left. What needs none is done even then.
    async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let left = self.until.since(self.clock.now());
        self.clock.within(left, std::pin::pin!(work)).await.ok()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !*self.is_over.borrow() {
            self.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use net::clock::world::World;

    use super::*;

    #[test]
    fn the_steps_of_an_end_share_its_time() {
        let world = World::new();
        let clock = world.clock();
        let took = world.run(async move {
            let begun = clock.now();
            let grace = Grace::of(&clock, Nanos::from_secs(60));
            assert_eq!(grace.within(clock.sleep(Nanos::from_secs(20))).await, Some(()));
            for _ in 0..3 {
                assert_eq!(grace.within(std::future::pending::<()>()).await, None);
            }
            assert_eq!(grace.within(std::future::ready(7)).await, Some(7));
            clock.now().since(begun)
        });
        assert_eq!(took.unwrap(), Nanos::from_secs(60));
    }
}
