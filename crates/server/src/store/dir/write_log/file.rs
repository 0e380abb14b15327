//! The file or device that a log is: found or made, locked, and written past the page cache.

#[cfg(test)]
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use log::draft::Draft;
use log::identity::{EXPORT_BYTES_MAX, IdentityError};
use log::{BLOCK, BLOCK_BYTES, Identity, SIZE_MAX, SIZE_MIN, frame};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::{DeviceTrouble, LogError, LogTrouble, Trouble};
use super::marker::is_private;
use super::{device, memory};
use crate::locked::{Locked, is_locked, is_locked_by_others};
use crate::small_file::sync_directory;
use crate::store::dir::sys;

/// One log, open and locked.
pub(in crate::store::dir) struct LogFile {
    path: PathBuf,
    /// Through the page cache, for reading.
    file: Locked,
    /// Writes are on the disk when they return.
    direct: Option<File>,
    pub(super) identity: Identity,
    /// The first block is not what `identity` says.
    is_nameless: bool,
    /// So many bytes of it had been cut off when it was opened.
    cut_bytes: u64,
    #[cfg(test)]
    pub(in crate::store::dir) fails: std::sync::atomic::AtomicBool,
}

/// Memory for a frame, which begins at a block of memory as direct writes want it. It has room for
/// any, so that it never moves.
pub(super) struct Aligned {
    memory: Vec<u8>,
    from: usize,
}

impl Default for Aligned {
    fn default() -> Self {
        let memory = Vec::<u8>::with_capacity(frame::FRAME_BYTES_MAX + BLOCK);
        let from = memory.as_ptr().align_offset(BLOCK);
        Self { memory, from }
    }
}

impl Aligned {
    /// Makes the bytes of a frame here.
    pub(super) fn frame(&mut self, draft: &Draft) -> &[u8] {
        draft.write(&mut self.memory, self.from);
        &self.memory[self.from..]
    }

    pub(super) fn copy(&mut self, bytes: &[u8]) -> &[u8] {
        self.memory.clear();
        self.memory.resize(self.from, 0);
        self.memory.extend_from_slice(bytes);
        &self.memory[self.from..]
    }
}

impl LogFile {
    /// Opens and locks it, whose ever it is. `rebuilt` is the identity of one that is to be
    /// salvaged, where its first block is damaged; its length is found here.
    pub(super) fn open(path: &Path, rebuilt: Option<Identity>) -> Result<Self, LogError> {
        Self::open_whole(path, rebuilt).map_err(|trouble| trouble.about(path))
    }

    /// Opens it for reading, unless somebody has it. It is not locked: whoever begins meanwhile
    /// gets it, and changes it.
    pub(super) fn look(path: &Path) -> Result<Self, LogError> {
        let looked = open_to_look(path).and_then(|found| Self::of_opened(path, found, None, None));
        looked.map_err(|trouble| trouble.about(path))
    }

    fn open_whole(path: &Path, rebuilt: Option<Identity>) -> Result<Self, Trouble> {
        let (file, len) = open_locked(path)?;
        let direct = open_direct(path, &file)?;
        Self::of_opened(path, (file, len), direct, rebuilt)
    }

    fn of_opened(
        path: &Path,
        (file, len): (Locked, u64),
        direct: Option<File>,
        rebuilt: Option<Identity>,
    ) -> Result<Self, Trouble> {
        let block = first_block(&file, len);
        let block = if rebuilt.is_some() { block.unwrap_or_default() } else { block? };
        let is_device = device::is_device(&file)?;
        let own = rebuilt.as_ref().map(|rebuilt| rebuilt.id);
        let (identity, is_nameless) = match (Identity::decode(&block), rebuilt) {
            (Ok(identity), _) => (identity, false),
            (Err(IdentityError::Checksum | IdentityError::Foreign), Some(rebuilt)) => {
                let bytes = if is_device { usable(len) } else { len };
                (Identity { bytes, ..rebuilt }, true)
            }
            (Err(error), _) => return Err(error.into()),
        };
        let bytes = identity.bytes;
        if bytes > len || (bytes < len && !is_device) {
            if is_device || own != Some(identity.id) {
                return Err(wrong_length(len, bytes));
            }
            // What was cut off is zeros from now on, and read as damage.
            make_as_long(&file, len, bytes)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            direct,
            identity,
            is_nameless,
            cut_bytes: bytes.saturating_sub(len),
            #[cfg(test)]
            fails: Default::default(),
        })
    }

    /// Of one that is looked at: whether somebody has it now.
    pub(super) fn is_in_use(&self) -> bool {
        is_locked(&self.file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn metadata(&self) -> io::Result<fs::Metadata> {
        self.file.metadata()
    }

    pub(super) fn is_nameless(&self) -> bool {
        self.is_nameless
    }

    pub(super) fn cut_bytes(&self) -> u64 {
        self.cut_bytes
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        #[cfg(test)]
        if UNREADABLE.get().is_some_and(|bad| (at..at + into.len() as u64).contains(&bad)) {
            return Err(Errno::IO.into());
        }
        self.file.read_exact_at(into, at)
    }

    pub(super) fn error(&self, trouble: Trouble) -> LogError {
        trouble.about(&self.path)
    }

    pub(super) fn real_path(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// Writes what an [`Aligned`] has. Stable when it returns.
    pub(super) fn write(&self, at: u64, aligned: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if WRITES_FAIL.get() || self.fails.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(io::Error::other("a test's"));
        }
        let Some(direct) = &self.direct else {
            self.file.write_all_at(aligned, at)?;
            return self.file.sync_data();
        };
        debug_assert_eq!(aligned.as_ptr().align_offset(BLOCK), 0, "direct writes begin at a block");
        direct.write_all_at(aligned, at)
    }

    /// Writes a first block that was damaged, after all that it held was brought to its place.
    pub(super) fn name_again(&self) -> io::Result<()> {
        if self.is_nameless {
            self.file.write_all_at(&self.identity.encode(), 0)?;
            self.file.sync_data()?;
        }
        Ok(())
    }
}

// Where a test's disk has a bad sector, and whether it takes no writes, for the thread that opens a
// log.
#[cfg(test)]
thread_local! {
    pub(in crate::store::dir) static WRITES_FAIL: Cell<bool> = const { Cell::new(false) };
    pub(in crate::store::dir) static UNREADABLE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Zeros where there is none.
fn first_block(file: &File, len: u64) -> Result<Vec<u8>, Trouble> {
    let mut block = vec![0; BLOCK];
    if len >= BLOCK_BYTES {
        file.read_exact_at(&mut block, 0).map_err(|cause| {
            let what = format!("its first block cannot be read: {cause}");
            Trouble::new(LogTrouble::Damaged, what)
        })?;
    }
    Ok(block)
}

pub(super) fn wrong_length(len: u64, made: u64) -> Trouble {
    let what = format!("it is of {len} bytes and was made with {made}");
    Trouble::new(LogTrouble::WrongLength, what)
}

/// A file or a device, and its length. What else opens a device so (a mount, a volume, a second
/// server) is refused by the kernel from then on.
fn open_locked(path: &Path) -> Result<(Locked, u64), Trouble> {
    // A pipe that somebody has put here is not waited for.
    let flags = libc::O_EXCL | libc::O_NONBLOCK;
    let opened = File::options().read(true).write(true).custom_flags(flags).open(path);
    let mut file = opened.map_err(|cause| match cause.kind() {
        io::ErrorKind::PermissionDenied if device::is_read_only(path) => {
            let what = "the device is read-only";
            Trouble::new(LogTrouble::Device(DeviceTrouble::ReadOnly), what)
        }
        io::ErrorKind::ResourceBusy => {
            let what = "the device is in use: mounted, a part of another one, or another server's";
            Trouble::new(LogTrouble::InUse, what)
        }
        _ => cause.into(),
    })?;
    check_kind(&file)?;
    let len = file.seek(SeekFrom::End(0))?;
    let file = Locked::new(file);
    match file.try_lock() {
        Ok(()) => Ok((file, len)),
        Err(_) => Err(of_another_server()),
    }
}

fn open_to_look(path: &Path) -> Result<(Locked, u64), Trouble> {
    let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    check_kind(&file)?;
    if is_locked(&file) {
        return Err(of_another_server());
    }
    let len = file.seek(SeekFrom::End(0))?;
    Ok((Locked::new(file), len))
}

pub(super) fn of_another_server() -> Trouble {
    Trouble::new(LogTrouble::InUse, "another server has it")
}

/// Two servers with a log for one directory would each have stable writes that the other does not
/// know of. A lock on a directory that others may only read is no server's of theirs: anybody may
/// have one who may list it.
pub(super) fn lock_dir(root: &OwnedFd) -> Result<Locked, Trouble> {
    // A description of its own: that of `root` may be shared with others.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(root, c".", flags, Mode::empty())?;
    let dir = Locked::new(File::from(dir));
    match dir.try_lock() {
        Ok(()) => Ok(dir),
        Err(_) if is_private(root) && is_locked_by_others(&dir) => Ok(dir),
        Err(_) => Err(Trouble::new(
            LogTrouble::InUse,
            "another server has the directory with a write log, or a program has locked it",
        )),
    }
}

fn check_kind(file: &File) -> Result<(), Trouble> {
    let found = file.metadata()?;
    if !device::is_device(file)? {
        check_file(&found)?;
    }
    match memory::has(file)? {
        true => {
            Err(Trouble::new(LogTrouble::InMemory, "it lies in memory, where nothing is stable"))
        }
        false => Ok(()),
    }
}

fn check_file(found: &fs::Metadata) -> Result<(), Trouble> {
    if !found.is_file() {
        return Err(Trouble::new(LogTrouble::NoLog, "it is neither a file nor a block device"));
    }
    let others = |what| Err(Trouble::new(LogTrouble::OthersMayWrite, what));
    // What stands in a log is done again with the server's rights.
    if found.uid() != rustix::process::geteuid().as_raw() {
        return others(format!("it belongs to another user (uid {})", found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        let mode = found.mode() & 0o7777;
        return others(format!("it may be written to by others (mode {mode:o}: chmod go-w)"));
    }
    Ok(())
}

/// Gives a log its length again, with all its blocks.
fn make_as_long(file: &File, len: u64, bytes: u64) -> io::Result<()> {
    if len < bytes {
        let all = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(file, all, len, bytes - len)?;
    }
    file.set_len(bytes)?;
    file.sync_all()
}

/// What a log takes of a device.
fn usable(bytes: u64) -> u64 {
    bytes.min(SIZE_MAX) / BLOCK_BYTES * BLOCK_BYTES
}

/// Of libc, because `OFlags::DSYNC` of rustix 1 is O_SYNC on Linux: each write would also wait for
/// the inode with its new time, a second write of the disk or a commit of the journal.
const DIRECT: i32 = libc::O_DIRECT | libc::O_DSYNC;

/// The same file past the page cache, where its file system allows that.
fn open_direct(path: &Path, file: &File) -> io::Result<Option<File>> {
    let direct = match File::options().write(true).custom_flags(DIRECT).open(path) {
        Ok(direct) => direct,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) => return Err(error),
    };
    let number = |file: &File| file.metadata().map(|data| (data.dev(), data.ino()));
    match number(&direct)? == number(file)? {
        true => Ok(Some(direct)),
        false => Err(io::Error::other("it is being replaced")),
    }
}

/// Where a log is to be made.
pub(super) enum Site {
    /// It is there, whatever it is.
    Taken,
    /// Nothing is.
    Free,
    /// A device that holds nothing, of so many bytes.
    Blank(u64),
}

impl Site {
    /// # Errors
    /// Something lies there that is no log, or it cannot be looked at.
    pub(super) fn at(path: &Path) -> Result<Self, Trouble> {
        match fs::metadata(path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                const NOWHERE: &str = "it is a symbolic link that leads nowhere";
                return match fs::symlink_metadata(path) {
                    Ok(_) => Err(Trouble::new(LogTrouble::DanglingLink, NOWHERE)),
                    Err(_) => Ok(Self::Free),
                };
            }
            Err(cause) => return Err(cause.into()),
            Ok(data) if !data.file_type().is_block_device() => return Ok(Self::Taken),
            Ok(_) => {}
        }
        let (file, bytes) = open_locked(path)?;
        if bytes >= BLOCK_BYTES && device::begins_as_log(&file)? {
            return Ok(Self::Taken);
        }
        device::check_blank(&file, bytes)?;
        Ok(Self::Blank(bytes))
    }

    /// How long a log is made here.
    pub(super) fn bytes(&self, wanted: u64) -> Result<u64, Trouble> {
        let bytes = match *self {
            Self::Blank(bytes) if bytes < SIZE_MIN => {
                let what = format!("a log takes 16 MiB at least, and the device has {bytes} bytes");
                return Err(Trouble::new(LogTrouble::Device(DeviceTrouble::Short), what));
            }
            Self::Blank(bytes) => usable(bytes),
            Self::Free | Self::Taken => wanted / BLOCK_BYTES * BLOCK_BYTES,
        };
        match (SIZE_MIN..=SIZE_MAX).contains(&bytes) {
            true => Ok(bytes),
            false => {
                let what = "a log is of 16 MiB to 1 GiB (--write-log-size)";
                Err(Trouble::new(LogTrouble::Size, what))
            }
        }
    }
}

/// Makes a log as a whole or not at all, with all its blocks: what is not allocated would take a
/// commit of the file system's journal at each write.
pub(super) fn make(
    path: &Path,
    site: &Site,
    identity: &Identity,
    first: &[u8],
) -> Result<(), Trouble> {
    if let Site::Blank(_) = site {
        return make_on_device(path, identity, first);
    }
    let mut name = path.to_owned().into_os_string();
    name.push(".new");
    let new = PathBuf::from(name);
    clear_away(&new)?;
    let made = fill(&new, identity, first).and_then(|()| {
        rename_to_free(&new, path)?;
        Ok(sync_directory(path)?)
    });
    made.map_err(|trouble| {
        // What is there of it takes space only.
        fs::remove_file(&new).ok();
        trouble.in_making()
    })
}

/// Renames a file, and replaces none: somebody may have put one here meanwhile. File systems of
/// programs (FUSE) know no such rename.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        renamed => Ok(renamed?),
    }
}

fn make_on_device(path: &Path, identity: &Identity, first: &[u8]) -> Result<(), Trouble> {
    let (file, bytes) = open_locked(path)?;
    // Somebody may have come since it was looked at.
    device::check_blank(&file, bytes)?;
    let mut start = identity.encode();
    start.extend_from_slice(first);
    let made = file.write_all_at(&start, 0).and_then(|()| file.sync_all());
    made.map_err(|cause| Trouble::from(cause).in_making())
}

/// What an interrupted start has left of a log goes, and nothing else.
fn clear_away(new: &Path) -> Result<(), Trouble> {
    let mut begin = Vec::new();
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags).open(new);
    let read = opened.and_then(|file| {
        let is_file = file.metadata()?.is_file();
        file.take(BLOCK_BYTES).read_to_end(&mut begin)?;
        Ok(is_file)
    });
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(true) if begin.is_empty() || Identity::decode(&begin).is_ok() => {}
        _ => {
            let what = format!("{} is a file that is no log", new.display());
            return Err(Trouble::new(LogTrouble::Taken, what).in_making());
        }
    }
    fs::remove_file(new).map_err(|cause| Trouble::from(cause).in_making())
}

fn fill(path: &Path, identity: &Identity, first: &[u8]) -> Result<(), Trouble> {
    // A link that somebody has put here meanwhile is not followed.
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    check_kind(&file)?;
    file.write_all(&identity.encode())?;
    let zeros = vec![0; 1 << 20];
    let mut left = identity.bytes - BLOCK_BYTES;
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(&zeros[..len])?;
        left -= len as u64;
    }
    file.write_all_at(first, BLOCK_BYTES)?;
    Ok(file.sync_all()?)
}

/// What names a directory after a reboot and no other: the file system's UUID, where the kernel
/// tells it, and the kernel's handle of the directory.
pub(super) fn export_name(root: &OwnedFd) -> io::Result<Vec<u8>> {
    let uuid = sys::file_system_uuid(root.as_fd()).unwrap_or_default();
    let (handle, _) = sys::name_to_handle(root.as_fd())?;
    let mut name = uuid.to_vec();
    name.extend(handle.tag.to_le_bytes());
    name.extend_from_slice(&handle.bytes[..usize::from(handle.len)]);
    debug_assert!(name.len() <= EXPORT_BYTES_MAX, "a handle of ours is short");
    Ok(name)
}

/// What the name of an export begins with.
const UUID_BYTES: usize = 16;

/// Whether both name the same root, also if its file system has got another UUID since.
pub(super) fn is_same_root(one: &[u8], other: &[u8]) -> bool {
    one.get(UUID_BYTES..) == other.get(UUID_BYTES..)
}

/// Whether neither the file system nor the kernel had one to tell.
pub(super) fn lacks_uuid(export: &[u8]) -> bool {
    export.iter().take(UUID_BYTES).all(|&byte| byte == 0)
}

/// Whose log lies there, if there is one that only this user could have made. Somebody may have it.
pub(super) fn identity_at(path: &Path) -> Option<Identity> {
    // Others may have named it, and to open a device can be enough to set it going.
    let there = File::options().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
    let kind = there.metadata().ok()?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return None;
    }
    let there = format!("/proc/self/fd/{}", there.as_raw_fd());
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(there).ok()?;
    check_kind(&file).ok()?;
    let mut block = vec![0; BLOCK];
    file.read_exact_at(&mut block, 0).ok()?;
    Identity::decode(&block).ok()
}

/// This machine's boot, for the log at `path`.
pub(super) fn known_boot(path: &Path) -> Result<[u8; 16], LogError> {
    let doing = "the boot of this machine is not known";
    boot().map_err(|cause| Trouble::from(cause).in_doing(doing).about(path))
}

/// The kernel's id of this boot.
pub(super) fn boot() -> io::Result<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let id = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?;
    Ok(id.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_wait_for_their_data_and_not_for_the_time_of_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let Some(direct) = open_direct(file.path(), file.as_file()).unwrap() else { return };
        let flags = rustix::fs::fcntl_getfl(&direct).unwrap().bits().cast_signed();
        assert_eq!(flags & libc::O_SYNC, libc::O_DSYNC, "O_SYNC has one bit more");
    }
}
