//! Why a log cannot be used: a sentence for people, and its kind, by which advice is chosen.

use std::io;
use std::path::{Path, PathBuf};

use log::identity::IdentityError;
use log::scan::ScanError;
use rustix::io::Errno;

/// Why a log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system's error, or another of which there is only one.
    #[error("write log {}: {what}", file.display())]
    File { file: PathBuf, what: String },
    #[error("write log {}: {what}", file.display())]
    Damaged { file: PathBuf, what: String },
    #[error("write log {}: {what}", file.display())]
    Refused { file: PathBuf, kind: LogTrouble, what: String },
    #[error(
        "its last server had the write log {}, which may hold stable writes that are nowhere else: \
         give it (--write-log), or bring them to their place (nfskit log drain)",
        listed(files)
    )]
    Missing { files: Vec<PathBuf> },
    #[error(
        "it lies in {}, whose last server had the write log {}, which may hold stable writes to \
         files in here: bring them to their place first (nfskit log drain)",
        dir.display(),
        listed(files)
    )]
    Above { dir: PathBuf, files: Vec<PathBuf> },
    #[error("whether it has a write log (user.nfskit.write_log) cannot be read: {0}")]
    Mark(Errno),
    #[error("a write log is only for names and attributes that are synced")]
    NeedsSyncedMetadata,
    #[error(
        "a write log is only for a directory whose files can be opened by the kernel's handles, \
         after a restart too"
    )]
    NeedsHandles,
    #[error(
        "a write log is only for a directory that is synced, and this one is on an overlay that is \
         mounted volatile"
    )]
    NeedsSyncs,
}

/// What kind of trouble a log is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogTrouble {
    /// Its first block, or what it holds.
    Damaged,
    /// A symbolic link to nothing is in its place.
    DanglingLink,
    /// A device that holds something, is too short, or takes no writes.
    Device(DeviceTrouble),
    /// Where it lies nothing is stable.
    InMemory,
    InUse,
    NeedsHandles,
    NeedsSyncedMetadata,
    NeedsSyncs,
    /// What is there is another thing than a log.
    NoLog,
    NoSpace,
    /// The directory cannot remember which log it has: its file system has no such attributes, no
    /// room for them, or is read-only.
    NotRemembered,
    NotRememberedForRoom,
    NotRememberedReadOnly,
    /// Some logs of the directory are missing, or one is given twice.
    NotEachOnce,
    NotFound,
    NotMade,
    NotPermitted,
    /// It is of another directory or server.
    OfAnother,
    /// The directory names it, and its file system has another UUID than when it was made.
    OfOtherUuid,
    /// It is the log of a proxy.
    OfProxy,
    Other,
    /// Others than this user could have made or changed it.
    OthersMayWrite,
    /// More or less than a log may have.
    Size,
    /// A file that is no log is where it would be made.
    Taken,
    /// It is longer or shorter than it was made.
    WrongLength,
}

/// Why a device cannot become a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DeviceTrouble {
    NotBlank,
    ReadOnly,
    Short,
}

impl LogError {
    pub fn kind(&self) -> LogTrouble {
        match self {
            Self::Damaged { .. } => LogTrouble::Damaged,
            Self::File { .. } | Self::Mark(_) => LogTrouble::Other,
            Self::Above { .. } | Self::Missing { .. } => LogTrouble::OfAnother,
            Self::NeedsHandles => LogTrouble::NeedsHandles,
            Self::NeedsSyncedMetadata => LogTrouble::NeedsSyncedMetadata,
            Self::NeedsSyncs => LogTrouble::NeedsSyncs,
            Self::Refused { kind, .. } => *kind,
        }
    }
}

fn listed(files: &[PathBuf]) -> String {
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    files.join(" and ")
}

/// What is wrong with a log, or with the place of one.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) kind: LogTrouble,
    pub(super) what: String,
}

impl Trouble {
    pub(super) fn new(kind: LogTrouble, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    pub(super) fn other(what: impl Into<String>) -> Self {
        Self::new(LogTrouble::Other, what)
    }

    /// The same, with what was done before it.
    pub(super) fn in_doing(self, doing: &str) -> Self {
        Self { what: format!("{doing}: {}", self.what), ..self }
    }

    /// The same, with what that means.
    pub(super) fn and(self, more: &str) -> Self {
        Self { what: format!("{}: {more}", self.what), ..self }
    }

    /// The same of a log that was being made.
    pub(super) fn in_making(self) -> Self {
        use LogTrouble::{InMemory, NoSpace, NotMade, Taken};
        let kind =
            if matches!(self.kind, InMemory | NoSpace | Taken) { self.kind } else { NotMade };
        Self { kind, ..self.in_doing("it cannot be made") }
    }

    pub(super) fn about(self, file: &Path) -> LogError {
        let (file, what) = (file.to_owned(), self.what);
        match self.kind {
            LogTrouble::Other => LogError::File { file, what },
            LogTrouble::Damaged => LogError::Damaged { file, what },
            kind => LogError::Refused { file, kind, what },
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(cause: io::Error) -> Self {
        let kind = match cause.kind() {
            io::ErrorKind::IsADirectory => LogTrouble::NoLog,
            io::ErrorKind::NotFound => LogTrouble::NotFound,
            io::ErrorKind::PermissionDenied => LogTrouble::NotPermitted,
            io::ErrorKind::StorageFull => LogTrouble::NoSpace,
            _ => LogTrouble::Other,
        };
        Self::new(kind, cause.to_string())
    }
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl From<IdentityError> for Trouble {
    fn from(error: IdentityError) -> Self {
        let kind = match error {
            IdentityError::Checksum => LogTrouble::Damaged,
            IdentityError::Foreign => LogTrouble::NoLog,
            IdentityError::Invalid | IdentityError::Version { .. } => LogTrouble::Other,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<ScanError> for Trouble {
    fn from(error: ScanError) -> Self {
        let what = error.to_string();
        match error {
            ScanError::Io(cause) => Self { what, ..cause.into() },
            _ => Self::new(LogTrouble::Damaged, what),
        }
    }
}
