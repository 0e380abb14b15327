//! The store as a whole, in a temporary directory. Most tests run with both kinds of handles and
//! with a cache of a single object, in which every operation meets closed files.
//!
//! What needs privilege is left out without it, and says so.

mod callers;
mod churn;
mod covered;
mod cut_replies;
mod cuts;
mod data;
mod foreign;
mod handles;
mod idle;
mod listing;
mod log_room;
mod log_trouble;
mod logged;
mod names;
mod several_logs;
mod syncs;
mod systems;
mod twin;
mod up;

use std::fs;
use std::future::Future;
use std::io::{self, Write};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use bytes::Bytes;
use perf::units::Nanos;
use rustix::io::Errno;

use super::*;
use crate::durable::Committed;
use crate::store::Entry;
use crate::types::{Before, FileKind, SetTime, Wcc};

/// A directory to serve, beside one that must never be reached.
struct Fixture {
    store: DirStore,
    options: DirOptions,
    /// Removed with everything in it at the end.
    place: tempfile::TempDir,
}

impl Fixture {
    fn new(options: DirOptions) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("export")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(place.path().join("outside/secret"), "secret").unwrap();
        let store = DirStore::open(place.path().join("export"), &options).unwrap();
        Self { store, options, place }
    }

    /// The same directory served by a new process, as far as the store can tell.
    fn restart(self) -> Self {
        let Self { store, options, place } = self;
        drop(store);
        let store = DirStore::open(place.path().join("export"), &options).unwrap();
        Self { store, options, place }
    }

    /// As other processes see it.
    fn path(&self, inside: &str) -> PathBuf {
        self.place.path().join("export").join(inside)
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.place.path().join("outside").join(name)
    }

    fn root(&self) -> Handle {
        self.store.root()
    }

    fn is_kernel(&self) -> bool {
        matches!(self.store.handles_in_use(), HandlesInUse::Kernel { .. })
    }

    fn attr(&self, handle: &Handle) -> Result<Attr, Status> {
        block_on(self.store.attr(&ME, handle))
    }

    fn lookup(&self, dir: &Handle, name: &str) -> Result<Node, Status> {
        block_on(self.store.lookup(&ME, dir, name.as_bytes())).result
    }

    /// By way of names from the root.
    fn walk(&self, path: &str) -> Result<Node, Status> {
        let mut node = Node { handle: self.root(), attr: self.attr(&self.root())? };
        for name in path.split('/') {
            node = self.lookup(&node.handle, name)?;
        }
        Ok(node)
    }

    fn create(&self, dir: &Handle, name: &str) -> Node {
        let how = CreateHow::Guarded(mode(0o644));
        let created = block_on(self.store.create(&ME, dir, name.as_bytes(), how));
        created.result.unwrap()
    }

    fn make_dir(&self, dir: &Handle, name: &str) -> Node {
        let made = block_on(self.store.make_dir(&ME, dir, name.as_bytes(), mode(0o755)));
        made.result.unwrap()
    }

    fn remove(&self, dir: &Handle, name: &str) -> Result<(), Status> {
        block_on(self.store.remove(&ME, dir, name.as_bytes())).result
    }

    fn rename(&self, from: &Handle, name: &str, to: &Handle, as_name: &str) -> Result<(), Status> {
        let renamed = self.store.rename(&ME, from, name.as_bytes(), to, as_name.as_bytes());
        block_on(renamed).result
    }

    fn write(&self, handle: &Handle, offset: u64, data: &'static [u8]) -> Result<u32, Status> {
        let written =
            self.store.write(&ME, handle, offset, Bytes::from_static(data), Stability::Unstable);
        block_on(written).result.map(|written| written.count)
    }

    fn read(&self, handle: &Handle, offset: u64, count: u32) -> Result<(Vec<u8>, bool), Status> {
        let read = block_on(self.store.read(&ME, handle, offset, count));
        read.result.map(|extent| (extent.data.to_vec(), extent.eof))
    }

    /// As its server does, at a time of the test's choice.
    fn tend(&self, seconds: u64) {
        block_on(self.store.tend(Instant::EPOCH + Nanos::from_secs(seconds)));
    }

    fn set_attr(&self, handle: &Handle, changes: SetAttr) -> Result<(), Status> {
        block_on(self.store.set_attr(&ME, handle, changes, None)).result
    }
}

/// Runs a test with each kind of handles there is, with a large cache and with one of a single
/// object.
fn each_kind(test: impl Fn(Fixture)) {
    for handles in [HandleChoice::Table, HandleChoice::Kernel] {
        if handles == HandleChoice::Kernel && !kernel_handles_work() {
            not_tested("kernel handles: this process may not open them");
            continue;
        }
        for open_files_max in [None, Some(3)] {
            test(Fixture::new(DirOptions {
                handles,
                open_files_max,
                metadata_sync: MetadataSync::Never,
                ..DirOptions::default()
            }));
        }
    }
}

/// Past the test harness, which would hide it.
fn not_tested(what: &str) {
    let _ = writeln!(io::stderr(), "NOT TESTED: {what}");
}

/// A file with an attribute of chattr(1), until this is dropped.
struct Chattr {
    file: PathBuf,
    attribute: &'static str,
}

impl Chattr {
    /// None, loudly, where there is no such thing.
    fn set(file: PathBuf, attribute: &'static str) -> Option<Self> {
        let this = Self { file, attribute };
        if !this.change('+') {
            not_tested("chattr(1): this process or file system cannot have it");
            return None;
        }
        Some(this)
    }

    fn change(&self, sign: char) -> bool {
        let mut command = std::process::Command::new("chattr");
        command.arg(format!("{sign}{}", self.attribute)).arg(&self.file);
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Chattr {
    fn drop(&mut self) {
        self.change('-');
    }
}

fn kernel_handles_work() -> bool {
    let place = tempfile::tempdir().unwrap();
    let options = DirOptions { handles: HandleChoice::Kernel, ..DirOptions::default() };
    DirStore::open(place.path(), &options).is_ok()
}

fn is_privileged() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whoever calls: all are squashed.
static ME: Caller = Caller { uid: 0, gid: 0, gids: Vec::new() };

fn mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

/// The simplest executor: the thread sleeps until it is woken.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// A small file system of its own, unmounted at the end.
struct Mount(PathBuf);

/// As small as btrfs can be; the file has holes.
const IMAGE_BYTES: u64 = 128 << 20;

impl Mount {
    fn tmpfs(at: PathBuf, size: &str) -> Option<Self> {
        Self::at(at, &["-t", "tmpfs", "-o", size, "nfskit-test"])
    }

    /// A new file system in a file beside its mount point.
    fn made(at: &Path, make: &[&str]) -> Option<Self> {
        let image = at.with_extension("image");
        fs::File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        let (program, arguments) = make.split_first().unwrap();
        let made = std::process::Command::new(program).args(arguments).arg(&image).output();
        if !made.is_ok_and(|made| made.status.success()) {
            not_tested(&format!("a file system: there is no {program} here"));
            return None;
        }
        fs::create_dir(at).unwrap();
        Self::again(at)
    }

    /// One that was made before.
    fn again(at: &Path) -> Option<Self> {
        let image = at.with_extension("image");
        Self::at(at.to_owned(), &["-o", "loop", image.to_str().unwrap()])
    }

    fn bind(what: &Path, at: PathBuf) -> Option<Self> {
        Self::at(at, &["--bind", what.to_str().unwrap()])
    }

    /// `None`, loudly, where this process may not mount.
    fn at(at: PathBuf, arguments: &[&str]) -> Option<Self> {
        let mounted = is_privileged()
            && std::process::Command::new("mount")
                .args(arguments)
                .arg(&at)
                .status()
                .is_ok_and(|status| status.success());
        if !mounted {
            not_tested("a mount point: this process may not mount");
        }
        mounted.then(|| Self(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
