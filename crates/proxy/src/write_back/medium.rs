//! Where a log lies: a file of this host, or memory in a world.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use log::{SIZE_MIN, Set};
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Nanos;
use server::store::dir::write_log::{Alone, LogError, Writer};

use super::recover::Held;
use super::refused::{self, Refused};

/// A frame that was to be written, and what came of it.
pub(super) type Written = (Vec<u8>, io::Result<()>);

/// Takes frames.
pub trait LogDevice: Send + Sync + 'static {
    /// Gives the frame back, once it is stable, or why it is not.
    fn write(&self, at: u64, frame: Vec<u8>) -> BoxFuture<'static, Written>;

    /// Whether all of these are stable.
    fn sync(&self, files: Vec<File>) -> BoxFuture<'static, bool>;

    /// Makes a file of this host, beside the log and over one of the same name: so long, with these
    /// pieces in it. Where it is, once it is stable.
    fn keep(
        &self,
        name: Bytes,
        size: u64,
        pieces: Vec<(u64, Bytes)>,
    ) -> BoxFuture<'static, Result<String, KeepError>>;
}

/// Why a file of what the origin refuses was not made.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    #[error("{dir} has {bytes} bytes in {files} files: see to them, and remove them")]
    Full { dir: String, bytes: u64, files: u64 },
    #[error("{path}: {cause}")]
    File { path: String, cause: io::Error },
}

/// A log that nobody else has, and what it held.
pub struct Log {
    pub(super) set: Set,
    pub(super) boot: [u8; 16],
    pub(super) held: Held,
    pub(super) device: Box<dyn LogDevice>,
    /// Its file, if that was made just now.
    new: Option<PathBuf>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("bytes", &self.set.bytes).finish_non_exhaustive()
    }
}

impl Log {
    /// A log in a file, which nobody else has from now on.
    ///
    /// # Errors
    /// [`LogError`]: it is damaged, or the system gives no threads.
    pub fn of_file(alone: Alone, path: &std::path::Path) -> Result<Self, LogError> {
        let (set, boot) = (alone.set(), alone.boot());
        let held = Held::read(&alone, &set).map_err(|error| LogError::Damaged {
            file: path.to_owned(),
            what: error.to_string(),
        })?;
        let threads = |cause: io::Error| LogError::File {
            file: path.to_owned(),
            what: format!("threads: {cause}"),
        };
        let log = Arc::new(alone);
        let new = log.is_new().then(|| path.to_owned());
        let frames = Writer::start(Arc::clone(&log)).map_err(threads)?;
        let others = Writer::start(log).map_err(threads)?;
        let refused = Refused::beside(path, set.all_bytes());
        Ok(Self { set, boot, held, device: Box::new(OnDisk { frames, others, refused }), new })
    }

    /// It is not needed: what was made for nothing is removed, while nobody else can have it.
    pub(super) fn discard(self) {
        self.new.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }

    /// What the log held.
    pub fn held(&self) -> &Held {
        &self.held
    }
}

struct OnDisk {
    frames: Writer,
    others: Writer,
    refused: Refused,
}

impl LogDevice for OnDisk {
    fn write(&self, at: u64, frame: Vec<u8>) -> BoxFuture<'static, Written> {
        let over = |_| (Vec::new(), Err(io::Error::other("it ends")));
        self.frames.write(at, frame).map(move |outcome| outcome.unwrap_or_else(over)).boxed()
    }

    fn sync(&self, files: Vec<File>) -> BoxFuture<'static, bool> {
        let sync = move || files.iter().all(|file| file.sync_data().is_ok());
        self.others.run(sync).map(|outcome| outcome.unwrap_or_default()).boxed()
    }

    fn keep(
        &self,
        name: Bytes,
        size: u64,
        pieces: Vec<(u64, Bytes)>,
    ) -> BoxFuture<'static, Result<String, KeepError>> {
        let refused = self.refused.clone();
        let keep = move || refused.keep(&name, size, &pieces);
        let over = || KeepError::File { path: String::new(), cause: io::Error::other("it ends") };
        self.others.run(keep).map(move |outcome| outcome.unwrap_or_else(|_| Err(over()))).boxed()
    }
}

/// A log in memory that outlives whoever writes it, for worlds: what a killed proxy leaves. A write
/// takes its time, and of one that was under way at the end nothing is there, or all, or a part.
#[derive(Clone, Debug)]
pub struct InMemory {
    clock: Clock,
    bytes: Arc<Mutex<Vec<u8>>>,
    latency: Nanos,
    is_broken: Arc<AtomicBool>,
    /// What was set aside.
    refused: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl InMemory {
    /// # Panics
    /// `bytes` are fewer than a log has.
    pub fn new(clock: &Clock, bytes: usize, latency: Nanos) -> Self {
        assert!(bytes as u64 >= SIZE_MIN, "a log has at least SIZE_MIN bytes");
        let bytes = Arc::new(Mutex::new(vec![0; bytes]));
        let (is_broken, refused) = Default::default();
        Self { clock: clock.clone(), bytes, latency, is_broken, refused }
    }

    /// The files that were set aside.
    pub fn refused(&self) -> BTreeMap<String, Vec<u8>> {
        self.refused.lock().clone()
    }

    /// From now on it cannot be written.
    pub fn break_down(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }

    /// The log as it is, for the next proxy; its clock is that proxy's.
    ///
    /// # Panics
    /// What it holds is damaged.
    pub fn open(&self, clock: &Clock) -> Log {
        let device = Self { clock: clock.clone(), ..self.clone() };
        let mut bytes = self.bytes.lock();
        let set = Set { id: [7; 16], bytes: vec![bytes.len() as u64] };
        if bytes[log::BLOCK..2 * log::BLOCK].iter().all(|byte| *byte == 0) {
            let first = log::Journal::first_frame(&set, [1; 16]);
            let at = log::BLOCK;
            bytes[at..at + first.len()].copy_from_slice(&first);
        }
        let held = Held::read(&bytes[..], &set).expect("it is not damaged");
        Log { set, boot: [1; 16], held, device: Box::new(device), new: None }
    }
}

/// The longest file that is set aside in memory.
const LENGTH_MAX: usize = 64 << 20;

impl LogDevice for InMemory {
    fn write(&self, at: u64, frame: Vec<u8>) -> BoxFuture<'static, Written> {
        let own = self.clone();
        async move {
            let at = usize::try_from(at).expect("it is in memory");
            let half = frame.len() / 2;
            own.bytes.lock()[at..at + half].copy_from_slice(&frame[..half]);
            own.clock.sleep(own.latency).await;
            if own.is_broken.load(Ordering::Relaxed) {
                return (frame, Err(io::Error::other("it is broken")));
            }
            own.bytes.lock()[at + half..at + frame.len()].copy_from_slice(&frame[half..]);
            (frame, Ok(()))
        }
        .boxed()
    }

    fn sync(&self, _files: Vec<File>) -> BoxFuture<'static, bool> {
        std::future::ready(true).boxed()
    }

    fn keep(
        &self,
        name: Bytes,
        size: u64,
        pieces: Vec<(u64, Bytes)>,
    ) -> BoxFuture<'static, Result<String, KeepError>> {
        let own = self.clone();
        async move {
            own.clock.sleep(own.latency).await;
            let bytes = match usize::try_from(size) {
                Ok(size) if size <= LENGTH_MAX => {
                    let mut bytes = vec![0; size];
                    for (at, data) in pieces {
                        let at = usize::try_from(at).expect("it is in memory");
                        bytes[at..at + data.len()].copy_from_slice(&data);
                    }
                    bytes
                }
                _ => refused::listed(size, &pieces),
            };
            let name = String::from_utf8_lossy(&name).into_owned();
            own.refused.lock().insert(name.clone(), bytes);
            Ok(name)
        }
        .boxed()
    }
}
