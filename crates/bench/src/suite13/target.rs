//! A place: a directory of the system's, or a server that our client mounts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use harness::exit::Failure;
use harness::local;
use harness::mounts::embedded::{Counted, EmbeddedMount};
use harness::scratch::{Held, REMOVE_LIMIT};
use harness::target::Reached;
use load::file_system;
use load::suite13::{Material, Test, cold, room_bytes};
use net::clock::Clock;
use parking_lot::Mutex;
use perf::record::Durability;
use perf::units::Nanos;

use super::calls::{self, Calls};
use super::failure::failure;
use super::plan::Plan;
use super::thread::blocking;
use crate::suite13::args::Caches;

/// How long writing back may take at the end of a mount.
const GRACE: Nanos = Nanos::from_secs(20);
/// The same after a failure.
const FAILED_GRACE: Nanos = Nanos::from_secs(2);

/// What is reported of a place.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) name: String,
    pub(super) place: String,
    pub(super) is_server: bool,
    pub(super) file_system: String,
    pub(super) mount_options: Option<String>,
    /// What a test's changes survive when its time is over; `None` where that is not known.
    pub(super) durability: Option<Durability>,
    /// It is a server that promises it.
    pub(super) is_promised: bool,
    /// Who counts calls.
    pub(super) counted: &'static str,
    /// What was done to caches before each test.
    pub(super) cached: String,
}

pub(super) enum Kind {
    /// With the directory in it that is the run's own.
    Dir {
        scratch: PathBuf,
        is_nfs: bool,
    },
    Server(Box<Server>),
}

pub(super) struct Server {
    /// Locked while it is requested something, which blocks.
    pub(super) embedded: Arc<Mutex<EmbeddedMount>>,
    /// The server, without a mount.
    pub(super) plain: Reached,
    pub(super) held: Held,
    /// Goes after the mount.
    pub(super) at: MountPoint,
}

impl Server {
    /// Asks the mount for something, on a thread of its own.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut EmbeddedMount) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let embedded = Arc::clone(&self.embedded);
        blocking(move |_: &AtomicBool| work(&mut embedded.lock())).await?
    }
}

/// An empty directory to mount on, removed with this value: not with what is in it, which would be
/// the server's if it were still mounted. It lies in a directory that nobody else may enter: what
/// root mounts has the modes of the server's own root, and would be open to all users of this host.
pub(super) struct MountPoint(PathBuf);

impl MountPoint {
    pub(super) fn make() -> Result<Self, Failure> {
        let made = local::private(None, "a TMPDIR that this user may write in")?;
        let inside = made.path().join("suite13");
        std::fs::create_dir(&inside).map_err(Failure::resources)?;
        // Removed by us, not with what may still be mounted.
        let _: PathBuf = made.keep();
        Ok(Self(inside))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        for dir in self.0.ancestors().take(2) {
            std::fs::remove_dir(dir).ok();
        }
    }
}

pub(super) struct Target {
    pub(super) described: Described,
    pub(super) kind: Kind,
}

impl Target {
    /// The directory that is the run's own.
    pub(super) fn top(&self) -> PathBuf {
        match &self.kind {
            Kind::Dir { scratch, .. } => scratch.clone(),
            Kind::Server(server) => server.at.path().join(server.held.scratch.name()),
        }
    }

    /// Mounts what has to be mounted.
    pub(super) async fn mount(&mut self) -> Result<(), Failure> {
        if let Kind::Server(server) = &self.kind {
            let spoken = server.with(EmbeddedMount::mount).await?;
            self.described.file_system = format!("{spoken}, our mount");
        }
        Ok(())
    }

    /// Whether all copies have room; to be checked when it is mounted.
    pub(super) fn is_enough(&self, plan: &Plan, material: &Material) -> Result<(), Failure> {
        let most = plan.copies.iter().copied().max().unwrap_or(1);
        let needed = room_bytes(material).saturating_mul(u64::from(most));
        let free = file_system::free_bytes(&self.top()).map_err(Failure::from)?;
        let advice = "free space there, a smaller --scale, or fewer --copies";
        local::room(&self.described.place, needed, free, advice)
    }

    /// Brings caches into the state in which the test is to find them.
    pub(super) async fn cool(
        &self,
        plan: &Plan,
        test: Test,
        dirs: &Arc<Vec<PathBuf>>,
    ) -> Result<(), Failure> {
        match (plan.caches, &self.kind) {
            (Caches::Warm, _) => Ok(()),
            (Caches::Paper, _) => {
                let read = |_: &AtomicBool| cold::Unrelated::new()?.read();
                blocking(read).await?.map_err(failure)
            }
            (Caches::Cold, _) if test.is_warm() => Ok(()),
            (Caches::Cold | Caches::Restart, Kind::Dir { .. }) => {
                let (dirs, is_all) = (Arc::clone(dirs), plan.drop_caches);
                let drop = move |_: &AtomicBool| {
                    cold::drop_pages(&dirs)?;
                    if is_all { cold::drop_system() } else { Ok(()) }
                };
                blocking(drop).await?.map_err(failure)
            }
            (Caches::Cold | Caches::Restart, Kind::Server(server)) => {
                let again = |embedded: &mut EmbeddedMount| {
                    embedded.unmount(GRACE)?;
                    embedded.mount().map(drop)
                };
                server.with(again).await
            }
        }
    }

    /// Calls since it was mounted; `None` where nobody counts them.
    pub(super) async fn calls(&self) -> Result<Option<Calls>, Failure> {
        Ok(match &self.kind {
            Kind::Dir { is_nfs: false, .. } => None,
            Kind::Dir { scratch, .. } => calls::of_kernel(scratch),
            Kind::Server(server) => {
                let Counted { calls, cpu } = server.with(EmbeddedMount::counted).await?;
                Some(Calls { calls, cpu })
            }
        })
    }

    /// Unmounts, and removes the run's own directory.
    pub(super) async fn release<T>(
        self,
        clock: &Clock,
        outcome: Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.kind {
            Kind::Dir { scratch, .. } => removed(clock, &scratch, outcome).await,
            Kind::Server(server) => {
                // What was made for a run that has failed need not be written back.
                let grace = if outcome.is_ok() { GRACE } else { FAILED_GRACE };
                let unmounted = server.with(move |embedded| embedded.unmount(grace)).await;
                let outcome = match (outcome, unmounted) {
                    (outcome, Ok(())) => outcome,
                    (Ok(_), Err(failure)) => Err(failure),
                    (Err(failure), Err(left)) => Err(failure.and(left.what())),
                };
                server.held.clear(&server.plain, REMOVE_LIMIT, outcome).await
            }
        }
    }
}

async fn removed<T>(clock: &Clock, dir: &Path, outcome: Result<T, Failure>) -> Result<T, Failure> {
    let gone = dir.to_owned();
    let remove = blocking(move |_: &AtomicBool| std::fs::remove_dir_all(gone));
    let left = match clock.within(GRACE, remove).await {
        Ok(Ok(Ok(()))) => return outcome,
        Ok(Ok(Err(cause))) => cause.to_string(),
        Ok(Err(failure)) => failure.what().to_owned(),
        Err(elapsed) => elapsed.to_string(),
    };
    Err(local::left(dir, &left, outcome))
}
