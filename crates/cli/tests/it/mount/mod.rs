//! `nfskit mount` through the real kernel: each test mounts a server of its own on a directory of
//! its own. They need root and /dev/fuse; where those are missing they say so and pass, but not in
//! CI.

mod beginning;
mod below;
mod cached;
mod data;
mod ending;
mod helper;
mod names;
mod shared;

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::program::{Finished, Program, nfskit};
use crate::served::Served;

/// Attempts to unmount, each with a turn of the processor for others: seconds.
const UNMOUNTS_MAX: u32 = 1 << 20;

/// A mounted server. Unmounted when dropped, whatever has happened.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub(crate) program: Option<Program>,
    pub(crate) at: tempfile::TempDir,
}

/// Whether file systems can be mounted here.
pub(crate) fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        assert!(std::env::var_os("CI").is_none(), "tests of mounts need root and /dev/fuse");
        eprintln!("SKIPPED: a test of mounts needs root and /dev/fuse");
    }
    can
}

impl Mounted {
    pub(crate) fn new(served: &Served, options: &[&str]) -> Self {
        let at = tempfile::tempdir().unwrap();
        let mut command = mount(&served.url(), at.path());
        let program = Program::start(command.args(options));
        program.wait_for(|text| text.contains("locks (flock, fcntl) hold on").then_some(()));
        Self { program: Some(program), at }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }

    pub(crate) fn program(&self) -> &Program {
        self.program.as_ref().unwrap()
    }

    /// Waits for the end, which has been requested.
    pub(crate) fn finish(mut self) -> Finished {
        self.program.take().unwrap().finish()
    }

    /// Ends it as a user does, and it has nothing to complain about.
    pub(crate) fn stop(self) {
        self.stop_saying("unmounted; everything is written\n");
    }

    /// The same, and this is the last that it says.
    pub(crate) fn stop_saying(self, last: &str) {
        self.program().signal(rustix::process::Signal::TERM);
        let at = self.at.path().to_owned();
        let finished = self.finish();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        assert!(finished.stdout.ends_with(last), "{finished:?}");
        assert!(!is_mounted(&at));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if is_mounted(self.at.path()) {
            // A test has failed: nothing may hang on to its mount.
            rustix::mount::unmount(self.at.path(), UnmountFlags::DETACH).ok();
        }
    }
}

/// Unmounts it, once nobody has a file of it open: a child of another test has ours from fork to
/// exec.
pub(crate) fn unmount(at: &Path) {
    let mut tries = 0;
    while let Err(why) = rustix::mount::unmount(at, UnmountFlags::empty()) {
        tries += 1;
        assert!(why == Errno::BUSY && tries < UNMOUNTS_MAX, "{}: {why}", at.display());
        std::thread::yield_now();
    }
}

/// The command that mounts there.
pub(crate) fn mount(url: &str, at: &Path) -> Command {
    let mut command = nfskit(["mount", url]);
    command.arg(at);
    command
}

pub(crate) fn is_mounted(at: &Path) -> bool {
    mounts(at) > 0
}

/// How many are mounted there, one above the other.
pub(crate) fn mounts(at: &Path) -> usize {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let at = at.to_str().unwrap();
    text.lines().filter(|line| line.split(' ').nth(4) == Some(at)).count()
}

/// Mounts a memory server, and gives its directory to a test.
#[track_caller]
pub(crate) fn on_memory(options: &[&str], test: impl FnOnce(&Mounted)) {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let mounted = Mounted::new(&served, options);
    test(&mounted);
    mounted.stop();
    served.stop();
}
