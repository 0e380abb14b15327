//! The file that a log is: found or made, locked, and written past the page cache.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use log::identity::{EXPORT_BYTES_MAX, IdentityError};
use log::journal::Begin;
use log::replay::Plan;
use log::scan::{Found, Lost, ScanError, salvage, scan};
use log::{BLOCK, BLOCK_BYTES, Identity, Journal, Limits, Medium, SIZE_MAX, SIZE_MIN, frame};
use rustix::fs::FlockOperation;
use rustix::rand::GetRandomFlags;

use super::marker::Marker;
use super::{LogError, WriteLog};
use crate::store::dir::data::FileSystem;
use crate::store::dir::sys;

/// What `nfskit log inspect` tells.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub id: [u8; 16],
    pub size_bytes: u64,
    /// What a recovery would read.
    pub frames: usize,
    pub frames_bytes: u64,
    pub sequence: u64,
    /// What it would do again.
    pub files: usize,
    pub records: u64,
    pub bytes: u64,
    pub is_clean: bool,
    pub is_torn: bool,
    pub has_doubts: bool,
}

pub(in crate::store::dir) struct LogFile {
    path: PathBuf,
    /// Through the page cache, for reading; it holds the lock.
    file: File,
    /// Writes are on the disk when they return.
    direct: Option<File>,
    pub(super) identity: Identity,
    /// The first block is not what `identity` says.
    is_nameless: bool,
    #[cfg(test)]
    pub(in crate::store::dir) fails: std::sync::atomic::AtomicBool,
}

/// Memory for direct writes, with room to begin at a block.
pub(super) struct Aligned(Vec<u8>);

impl Default for Aligned {
    fn default() -> Self {
        Self(vec![0; frame::FRAME_BYTES_MAX + BLOCK])
    }
}

impl Medium for LogFile {
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }
}

impl LogFile {
    /// The log of this directory at its place, made if nothing is there.
    pub(super) fn open_or_make(
        options: &WriteLog,
        root: &OwnedFd,
        boot: [u8; 16],
    ) -> Result<Self, LogError> {
        let path = options.file.clone();
        let wrong = |what: String| LogError::File { file: options.file.clone(), what };
        let export = export_name(root).map_err(|cause| wrong(format!("no handle: {cause}")))?;
        let marker = Marker::of(root);
        if !path.try_exists().map_err(|cause| wrong(cause.to_string()))? {
            if let Some(Marker { file, .. }) = marker {
                return Err(LogError::Missing { file });
            }
            make(options, export.clone(), boot).map_err(&wrong)?;
        }
        let rebuilt = marker.clone().filter(|_| options.salvages).map(|marker| marker.id);
        let log = Self::open(&path, rebuilt.map(|id| (id, export.clone())))?;
        if log.identity.export != export {
            return Err(wrong("it was made for another directory".to_owned()));
        }
        match marker {
            Some(Marker { id, file }) if id != log.identity.id => Err(LogError::Missing { file }),
            Some(_) => Ok(log),
            None if log.needs_nothing()? => Ok(log),
            None => Err(wrong(
                "it holds stable writes, but the directory does not know it any more: it was \
                 restored, or the log could not be written and its server went on without it. Keep \
                 a copy of the log, and remove it"
                    .to_owned(),
            )),
        }
    }

    /// Opens and locks it, whose ever it is. `rebuilt` are the id and the export of one whose first
    /// block is damaged.
    fn open(path: &Path, rebuilt: Option<([u8; 16], Vec<u8>)>) -> Result<Self, LogError> {
        let wrong = |what: String| LogError::File { file: path.to_owned(), what };
        let told = |cause: io::Error| wrong(cause.to_string());
        let file = File::options().read(true).write(true).open(path).map_err(told)?;
        check_kind(&file).map_err(&wrong)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| wrong("another server has it".to_owned()))?;
        let mut block = vec![0; BLOCK];
        let len = file.metadata().map_err(told)?.len();
        if len >= BLOCK_BYTES {
            file.read_exact_at(&mut block, 0).map_err(told)?;
        }
        let (identity, is_nameless) = match (Identity::decode(&block), rebuilt) {
            (Ok(identity), _) => (identity, false),
            (Err(IdentityError::Checksum | IdentityError::Foreign), Some((id, export))) => {
                (Identity { id, bytes: len, export }, true)
            }
            (Err(error @ IdentityError::Checksum), None) => {
                return Err(LogError::Damaged { file: path.to_owned(), what: error.to_string() });
            }
            (Err(error), _) => return Err(wrong(error.to_string())),
        };
        if identity.bytes != len {
            let bytes = identity.bytes;
            return Err(wrong(format!("it is of {len} bytes and was made with {bytes}")));
        }
        let direct = open_direct(path, &file).map_err(told)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            direct,
            identity,
            is_nameless,
            #[cfg(test)]
            fails: Default::default(),
        })
    }

    pub(super) fn error(&self, what: String) -> LogError {
        LogError::File { file: self.path.clone(), what }
    }

    pub(super) fn real_path(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// Stable when it returns.
    pub(super) fn write(&self, at: u64, bytes: &[u8], aligned: &mut Aligned) -> io::Result<()> {
        #[cfg(test)]
        if self.fails.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(io::Error::other("a test's"));
        }
        let Some(direct) = &self.direct else {
            self.file.write_all_at(bytes, at)?;
            return self.file.sync_data();
        };
        let from = aligned.0.as_ptr().align_offset(BLOCK);
        let aligned = &mut aligned.0[from..from + bytes.len()];
        aligned.copy_from_slice(bytes);
        direct.write_all_at(aligned, at)
    }

    pub(super) fn scan(&self) -> Result<(Found, Plan), LogError> {
        let (found, _) = self.scan_with(false, self)?;
        let plan = self.plan(&found)?;
        Ok((found, plan))
    }

    /// What is to be read of it, through a medium that sees its progress; `salvages` takes what is
    /// whole of a damaged one, and says what is not there any more.
    pub(super) fn scan_with(
        &self,
        salvages: bool,
        medium: &impl Medium,
    ) -> Result<(Found, Option<Lost>), LogError> {
        match scan(medium, &self.identity) {
            Ok(found) => Ok((found, None)),
            Err(ScanError::Empty | ScanError::Damaged { .. }) if salvages => {
                let (found, lost) =
                    salvage(medium, &self.identity).map_err(|error| self.unreadable(error))?;
                Ok((found, Some(lost)))
            }
            Err(error) => Err(self.unreadable(error)),
        }
    }

    pub(super) fn plan(&self, found: &Found) -> Result<Plan, LogError> {
        Plan::of(self, &self.identity, found).map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: ScanError) -> LogError {
        match error {
            ScanError::Io(_) => self.error(error.to_string()),
            damage => LogError::Damaged { file: self.path.clone(), what: damage.to_string() },
        }
    }

    /// Writes a first block that was damaged, after all that it held was brought to its place.
    pub(super) fn name_again(&self) -> io::Result<()> {
        if self.is_nameless {
            self.file.write_all_at(&self.identity.encode(), 0)?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn needs_nothing(&self) -> Result<bool, LogError> {
        Ok(self.scan()?.1.files.is_empty())
    }
}

/// Reads a log that no server has.
pub(super) fn inspect(path: &Path) -> Result<Inspection, LogError> {
    let log = LogFile::open(path, None)?;
    let (found, plan) = log.scan()?;
    Ok(Inspection {
        frames: found.frames.len(),
        frames_bytes: found.frames.iter().map(|place| place.bytes).sum(),
        sequence: found.last.sequence,
        files: plan.files.len(),
        records: plan.files.values().map(|needed| needed.records).sum(),
        bytes: plan.files.values().map(|needed| needed.bytes).sum(),
        is_clean: found.last.flags & frame::CLEAN != 0,
        is_torn: found.is_torn,
        has_doubts: found.last.flags & frame::DOUBT != 0,
        id: log.identity.id,
        size_bytes: log.identity.bytes,
    })
}

fn check_kind(file: &File) -> Result<(), String> {
    if !file.metadata().map_err(|cause| cause.to_string())?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let system = FileSystem::of(file.as_fd()).map_err(|errno| errno.to_string())?;
    match system.is_memory() {
        true => Err("it lies in memory (tmpfs), where nothing is stable".to_owned()),
        false => Ok(()),
    }
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

/// Makes a log as a whole or not at all, with all its blocks: what is not allocated would take a
/// commit of the file system's journal at each write.
fn make(options: &WriteLog, export: Vec<u8>, boot: [u8; 16]) -> Result<(), String> {
    let bytes = options.bytes / BLOCK_BYTES * BLOCK_BYTES;
    if !(SIZE_MIN..=SIZE_MAX).contains(&bytes) {
        return Err("a log is of 16 MiB to 1 GiB (--write-log-size)".to_owned());
    }
    let mut id = [0; 16];
    rustix::rand::getrandom(&mut id, GetRandomFlags::empty()).map_err(|errno| errno.to_string())?;
    let identity = Identity { id, bytes, export };
    let mut name = options.file.clone().into_os_string();
    name.push(".new");
    let new = PathBuf::from(name);
    let made = fill(&new, &identity, boot).and_then(|()| {
        fs::rename(&new, &options.file)?;
        let dir = options.file.parent().filter(|dir| !dir.as_os_str().is_empty());
        File::open(dir.unwrap_or_else(|| Path::new(".")))?.sync_all()
    });
    made.map_err(|cause| {
        // What is there of it takes space only.
        fs::remove_file(&new).ok();
        format!("it cannot be made: {cause}")
    })
}

fn fill(path: &Path, identity: &Identity, boot: [u8; 16]) -> io::Result<()> {
    // What an interrupted start has left goes first. A link that somebody has put here meanwhile is
    // not followed.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    check_kind(&file).map_err(io::Error::other)?;
    file.write_all(&identity.encode())?;
    let zeros = vec![0; 1 << 20];
    let mut left = identity.bytes - BLOCK_BYTES;
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(&zeros[..len])?;
        left -= len as u64;
    }
    let mut first = Vec::new();
    let mut journal = Journal::<()>::new(identity, boot, None, Limits::default());
    if let Begin::Write { at, .. } = journal.begin(&mut first) {
        file.write_all_at(&first, at)?;
    }
    file.sync_all()
}

/// What names a directory after a reboot and no other: the file system's UUID, where the kernel
/// tells it, and the kernel's handle of the directory.
fn export_name(root: &OwnedFd) -> io::Result<Vec<u8>> {
    let uuid = sys::file_system_uuid(root.as_fd()).unwrap_or_default();
    let (handle, _) = sys::name_to_handle(root.as_fd())?;
    let mut name = uuid.to_vec();
    name.extend(handle.tag.to_le_bytes());
    name.extend_from_slice(&handle.bytes[..usize::from(handle.len)]);
    debug_assert!(name.len() <= EXPORT_BYTES_MAX, "a handle of ours is short");
    Ok(name)
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
