//! /dev/fuse: getting it, putting it into the tree of files, and what goes through it.

use std::ffi::CString;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};
use thiserror::Error;

use crate::abi::answer::{self, Body, Notify};
use crate::mounts::{self, Entry, c_string};

const PATH: &str = "/dev/fuse";

/// The type, as the tables of mounts show it.
pub(crate) const TYPE: &str = "fuse.nfskit";

/// What mounts for those who are not root: fuse3's helper, and its older name. Where distributions
/// have it, because whoever starts us may have no PATH, or another one; and then wherever it is.
const HELPERS: [&str; 6] = [
    "/usr/bin/fusermount3",
    "/bin/fusermount3",
    "/run/wrappers/bin/fusermount3",
    "/usr/bin/fusermount",
    "fusermount3",
    "fusermount",
];

/// It could not be mounted.
#[derive(Debug, Error)]
pub enum MountError {
    #[error("{PATH} cannot be opened: {0}")]
    NoDevice(io::Error),
    /// The kernel refused, and there is no helper to ask.
    #[error("the kernel does not let this user mount, and there is no fusermount3")]
    NoPermission,
    #[error("fusermount3: {0}")]
    Helper(String),
    #[error("mount(2): {0}")]
    Kernel(io::Error),
    /// It was mounted, and what came was not what a kernel says first.
    #[error("the kernel's FUSE: {0}")]
    Handshake(String),
    #[error(transparent)]
    System(io::Error),
}

/// How to mount, in the words of mount(8).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Flags {
    pub read_only: bool,
    /// The opposite of `nosuid`, and so on: FUSE's own defaults are the careful ones.
    pub suid: bool,
    pub dev: bool,
    pub no_exec: bool,
    pub no_atime: bool,
    pub sync: bool,
    pub dir_sync: bool,
    /// Others than the user who mounts may use it.
    pub allow_other: bool,
    /// Everybody acts as one user, so that the kernel does not look at modes: what that one may do
    /// the server says.
    pub all_are_one: bool,
    /// What tables of mounts show as the source.
    pub source: String,
}

/// The open device.
#[derive(Debug)]
pub(crate) struct Device(OwnedFd);

/// What was mounted, so that it can be unmounted.
#[derive(Debug)]
pub(crate) struct Mounted {
    entry: Entry,
    by_helper: bool,
}

/// Another file system is mounted above it: umount(2) would take that one away.
#[derive(Debug, Error)]
#[error("{} (type {}) is mounted above it", .0.source, .0.kind)]
pub struct Covered(Entry);

impl Device {
    /// A kernel of a test's own at the other end.
    #[cfg(test)]
    pub(crate) fn over(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Mounts on a directory, which is canonical.
    pub(crate) fn mount(at: &Path, flags: &Flags) -> Result<(Self, Mounted), MountError> {
        let device = rustix::fs::open(PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let refused = match device {
            Ok(device) => match by_kernel(&device, at, flags) {
                Ok(()) => return Ok((Self(device), Mounted::new(at, false)?)),
                Err(rustix::io::Errno::PERM) => None,
                Err(errno) => return Err(MountError::Kernel(errno.into())),
            },
            Err(errno) => Some(errno),
        };
        match (refused, rustix::process::geteuid().is_root()) {
            // What root cannot open, its helper cannot either.
            (Some(errno), true) => Err(MountError::NoDevice(errno.into())),
            (Some(errno @ (rustix::io::Errno::NOENT | rustix::io::Errno::NXIO)), _) => {
                Err(MountError::NoDevice(errno.into()))
            }
            _ => {
                let device = by_helper(at, flags)?;
                Ok((Self(device), Mounted::new(at, true)?))
            }
        }
    }

    /// The next request, into `buffer`, which has room for the largest. None at the end.
    ///
    /// # Errors
    /// The device fails, which it does not.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<()>> {
        use rustix::io::Errno;
        loop {
            buffer.clear();
            match rustix::io::read(&self.0, rustix::buffer::spare_capacity(buffer)) {
                Ok(0) | Err(Errno::NODEV) => return Ok(None),
                Ok(_) => return Ok(Some(())),
                // A request that was withdrawn while we took it.
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Answers. False when nobody waits for it any more.
    pub(crate) fn answer(&self, unique: u64, errno: i32, body: &[u8]) -> bool {
        self.send(&answer::header(unique, errno, body.len()), body, &[])
    }

    /// Tells the kernel something. False when it knows no such node, or no such page.
    pub(crate) fn notify(&self, code: Notify, body: &Body, data: &[u8]) -> bool {
        let body = body.as_slice();
        self.send(&answer::notification(code, body.len() + data.len()), body, data)
    }

    fn send(&self, header: &[u8], body: &[u8], data: &[u8]) -> bool {
        let parts = [IoSlice::new(header), IoSlice::new(body), IoSlice::new(data)];
        loop {
            match rustix::io::writev(&self.0, &parts) {
                Err(rustix::io::Errno::INTR) => {}
                sent => return sent.is_ok(),
            }
        }
    }
}

/// Other flags for what is mounted there.
///
/// # Errors
/// [`MountError::Kernel`]
pub(crate) fn remount(at: &Path, flags: &Flags) -> Result<(), MountError> {
    rustix::mount::mount_remount(at, flags.bits(), c"")
        .map_err(|errno| MountError::Kernel(errno.into()))
}

fn by_kernel(device: &OwnedFd, at: &Path, flags: &Flags) -> Result<(), rustix::io::Errno> {
    use rustix::io::Errno;
    let mut options = format!(
        "fd={},rootmode=40000,user_id={},group_id={}",
        device.as_raw_fd(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    options.push_str(flags.for_others());
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    let source = CString::new(flags.source.as_str()).map_err(|_| Errno::INVAL)?;
    let at = c_string(at).map_err(|_| Errno::INVAL)?;
    rustix::mount::mount(&source, &at, TYPE, flags.bits(), options.as_c_str())
}

impl Flags {
    fn bits(&self) -> MountFlags {
        let given = [
            (self.read_only, MountFlags::RDONLY),
            (!self.suid, MountFlags::NOSUID),
            (!self.dev, MountFlags::NODEV),
            (self.no_exec, MountFlags::NOEXEC),
            (self.no_atime, MountFlags::NOATIME),
            (self.sync, MountFlags::SYNCHRONOUS),
            (self.dir_sync, MountFlags::DIRSYNC),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| flag).collect()
    }

    /// The same, as the helper takes them.
    fn words(&self) -> String {
        // It splits at commas.
        let source = self.source.replace('\\', "\\\\").replace(',', "\\,");
        let mut words = format!("fsname={source},subtype=nfskit");
        let given = [
            (self.read_only, ",ro"),
            (self.no_exec, ",noexec"),
            (self.no_atime, ",noatime"),
            (self.sync, ",sync"),
            (self.dir_sync, ",dirsync"),
        ];
        words.extend(given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, word)| word));
        words + self.for_others()
    }

    /// FUSE's own options. What is remembered of names and data serves all users, so that the
    /// kernel keeps them apart where there are several.
    fn for_others(&self) -> &'static str {
        match (self.allow_other, self.all_are_one) {
            (false, _) => "",
            (true, true) => ",allow_other",
            (true, false) => ",allow_other,default_permissions",
        }
    }
}

/// The helper mounts, and sends the device through a socket whose number is in its environment.
fn by_helper(at: &Path, flags: &Flags) -> Result<OwnedFd, MountError> {
    let system = |errno: rustix::io::Errno| MountError::System(errno.into());
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::empty(),
        None,
    )
    .map_err(system)?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC).map_err(system)?;
    let mut started = None;
    for helper in HELPERS {
        let mut command = Command::new(helper);
        command.arg("-o").arg(flags.words()).arg("--").arg(at);
        command.env("_FUSE_COMMFD", theirs.as_raw_fd().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            child => {
                started = Some(child.map_err(MountError::System)?);
                break;
            }
        }
    }
    drop(theirs);
    let Some(child) = started else { return Err(MountError::NoPermission) };
    let device = received(&ours);
    let output = child.wait_with_output().map_err(MountError::System)?;
    match device {
        Ok(Some(device)) => {
            rustix::io::fcntl_setfd(&device, rustix::io::FdFlags::CLOEXEC).map_err(system)?;
            Ok(device)
        }
        _ => {
            let reason = String::from_utf8_lossy(&output.stderr);
            let reason = reason.trim().trim_start_matches("fusermount3: ").to_owned();
            Err(MountError::Helper(if reason.is_empty() {
                output.status.to_string()
            } else {
                reason
            }))
        }
    }
}

fn received(socket: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    loop {
        match rustix::net::recvmsg(socket.as_fd(), &mut parts, &mut control, RecvFlags::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(_) => break,
        }
    }
    let mut messages = control.drain();
    Ok(messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    }))
}

impl Mounted {
    /// What was just mounted there.
    fn new(at: &Path, by_helper: bool) -> Result<Self, MountError> {
        let entry = mounts::of_type(at, TYPE).map_err(MountError::System)?;
        let entry = entry.ok_or_else(|| MountError::System(no_more()))?;
        Ok(Self { entry, by_helper })
    }

    pub(crate) fn at(&self) -> &Path {
        &self.entry.at
    }

    /// `major:minor`
    pub(crate) fn device(&self) -> &str {
        &self.entry.device
    }

    /// umount(2) takes away what is uppermost at a path, whatever it is. Somebody who mounts
    /// between this look and that call loses his mount: no call unmounts by the mount's number.
    fn is_uppermost(&self) -> io::Result<()> {
        match mounts::at(self.at())? {
            Some(entry) if entry == self.entry => Ok(()),
            Some(above) => Err(io::Error::other(Covered(above))),
            None => Err(no_more()),
        }
    }

    /// Takes it out of the tree of files. `lazily`, it lives on for those who use it.
    ///
    /// # Errors
    /// EBUSY when it is used and not `lazily`; [`Covered`].
    pub(crate) fn unmount(&self, lazily: bool) -> io::Result<()> {
        self.is_uppermost()?;
        if self.by_helper {
            return self.unmount_by_helper(lazily);
        }
        let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        rustix::mount::unmount(self.at(), flags | UnmountFlags::NOFOLLOW)?;
        Ok(())
    }

    /// The same, and whoever waits for an answer gets an error: without that a thread of ours that
    /// the kernel keeps waiting for ourselves would never let this process end.
    ///
    /// # Errors
    /// It is not mounted any more, or may not be unmounted; [`Covered`], and nobody waits then
    /// either.
    pub(crate) fn abort(&self) -> io::Result<()> {
        if let Err(error) = self.is_uppermost() {
            self.disconnect();
            return Err(error);
        }
        if self.by_helper {
            return self.unmount_by_helper(true);
        }
        let flags = UnmountFlags::FORCE | UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        rustix::mount::unmount(self.at(), flags)?;
        Ok(())
    }

    /// Errors for all who wait, while it stays mounted. Where fusectl is not mounted, the end of
    /// this process does it.
    fn disconnect(&self) {
        if !mounts::is_there(&self.entry) {
            // The number may be another's by now.
            return;
        }
        let minor = self.device().rsplit(':').next().unwrap_or_default();
        fs::write(format!("/sys/fs/fuse/connections/{minor}/abort"), "1").ok();
    }

    fn unmount_by_helper(&self, lazily: bool) -> io::Result<()> {
        let options = if lazily { "-uqz" } else { "-uq" };
        for helper in HELPERS {
            let run = Command::new(helper).arg(options).arg("--").arg(self.at()).output();
            match run {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(output) if output.status.success() => return Ok(()),
                Ok(_) => return Err(io::ErrorKind::ResourceBusy.into()),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

fn no_more() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "it is not mounted there any more")
}

/// Whether a directory has no entries.
pub(crate) fn is_empty(dir: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(dir)?.next().is_none())
}
