//! Where the tests work: what a server and a directory have in common.

use std::fmt;
use std::future::Future;

use ::wire::nfs3::NfsStat3;
use rustix::io::Errno;

use crate::error::Error;

/// What is known of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stat {
    pub kind: Kind,
    /// Permission bits.
    pub mode: u32,
    pub links: u64,
    pub size: u64,
    pub fileid: u64,
    /// Seconds and nanoseconds of the last change of its data, as they are reported.
    pub modified: (i64, u32),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    File,
    Dir,
    Symlink,
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::File => "a file",
            Self::Dir => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Other => "something else",
        })
    }
}

/// What an operation gave, and what its reply had on the object besides. A system call tells
/// nothing.
#[derive(Clone, Copy, Debug)]
pub struct WithAttributes<T> {
    pub value: T,
    pub stat: Option<Stat>,
}

/// Bytes of the file system.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub total: u64,
    pub free: u64,
    pub available: u64,
}

/// One entry of a directory; with attributes where they came along.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: Vec<u8>,
    pub fileid: u64,
    pub stat: Option<Stat>,
}

/// How to list a directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Listing {
    Names,
    /// READDIRPLUS; where there is none, as [`Listing::Names`].
    WithAttributes,
}

/// A change of a directory: what its reply had on the directory afterwards, and what the directory
/// has in a GETATTR.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub doing: &'static str,
    pub in_reply: Option<Stat>,
    pub by_getattr: Stat,
}

/// Which changes are made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Changes {
    Making,
    Removing,
    Renaming,
}

/// What getcwd(3) found.
#[derive(Clone, Debug)]
pub struct Above<P> {
    pub path: P,
    /// The directory above, where it was requested.
    pub parent: Option<Stat>,
}

/// Errors that are the right answer to something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Known {
    NoEnt,
    Exist,
    NotEmpty,
    Inval,
    /// The file system has not got it.
    NotSupp,
    /// Whoever runs the target must do something: no space, read-only, a broken disk.
    Environment,
    /// This user may not.
    Denied,
    Other,
}

/// An operation that did not succeed.
#[derive(Debug)]
pub struct Refused {
    /// `None` when there was no answer at all.
    pub known: Option<Known>,
    pub error: Error,
}

impl Refused {
    /// What was answered, by its name in the protocol or the system.
    pub fn answer(&self) -> String {
        match &self.error {
            Error::Client(client::error::Error::Status { status, .. }) => status.to_string(),
            Error::Local { cause, .. } => cause.to_string(),
            error => error.to_string(),
        }
    }
}

impl From<client::error::Error> for Refused {
    fn from(error: client::error::Error) -> Self {
        let known = error.status().map(|status| match status {
            NfsStat3::NoEnt => Known::NoEnt,
            NfsStat3::Exist => Known::Exist,
            NfsStat3::NotEmpty => Known::NotEmpty,
            NfsStat3::Inval => Known::Inval,
            NfsStat3::NotSupp => Known::NotSupp,
            NfsStat3::Io | NfsStat3::NoSpc | NfsStat3::DQuot | NfsStat3::RoFs => Known::Environment,
            NfsStat3::Acces | NfsStat3::Perm => Known::Denied,
            _ => Known::Other,
        });
        Self { known, error: error.into() }
    }
}

impl Refused {
    /// A system call's.
    pub fn local(doing: &'static str, path: std::path::PathBuf, errno: Errno) -> Self {
        let known = match errno {
            Errno::NOENT => Some(Known::NoEnt),
            Errno::EXIST => Some(Known::Exist),
            Errno::NOTEMPTY => Some(Known::NotEmpty),
            Errno::INVAL => Some(Known::Inval),
            Errno::OPNOTSUPP | Errno::NOSYS => Some(Known::NotSupp),
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => Some(Known::Environment),
            Errno::ACCESS | Errno::PERM => Some(Known::Denied),
            // A mount whose server is gone.
            Errno::IO
            | Errno::TIMEDOUT
            | Errno::NOTCONN
            | Errno::CONNREFUSED
            | Errno::CONNABORTED
            | Errno::CONNRESET
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH => None,
            _ => Some(Known::Other),
        };
        Self { known, error: Error::Local { doing, path, cause: errno.into() } }
    }
}

/// Result of an operation.
pub type Answer<T> = Result<T, Refused>;

/// A file system; see the module's head. Names are single components.
pub trait Place: Sync {
    type Dir: Clone + Send + Sync;
    /// An open file.
    type File: Send + Sync;
    type Path: Send + Sync;

    /// The directory that was named.
    fn root(&self) -> Self::Dir;

    /// As it is shown to people.
    fn show(&self, dir: &Self::Dir) -> String;

    /// Makes an empty file, or empties the one that is there, and opens it for writing.
    fn create(
        &self,
        dir: &Self::Dir,
        name: &str,
    ) -> impl Future<Output = Answer<WithAttributes<Self::File>>> + Send;

    /// Makes a file that must not be there.
    fn create_new(&self, dir: &Self::Dir, name: &str) -> impl Future<Output = Answer<()>> + Send;

    fn open(
        &self,
        dir: &Self::Dir,
        name: &str,
    ) -> impl Future<Output = Answer<WithAttributes<Self::File>>> + Send;

    /// Writes all of `data`; the attributes are of the file afterwards.
    fn write(
        &self,
        file: &mut Self::File,
        offset: u64,
        data: &bytes::Bytes,
    ) -> impl Future<Output = Answer<WithAttributes<()>>> + Send;

    /// Fewer bytes than `count` only at the end of the file.
    fn read(
        &self,
        file: &Self::File,
        offset: u64,
        count: u32,
    ) -> impl Future<Output = Answer<WithAttributes<Vec<u8>>>> + Send;

    fn close(&self, file: Self::File) -> impl Future<Output = Answer<()>> + Send;

    fn make_dir(
        &self,
        dir: &Self::Dir,
        name: &str,
    ) -> impl Future<Output = Answer<WithAttributes<()>>> + Send;

    /// chdir(2).
    fn enter(
        &self,
        dir: &Self::Dir,
        name: &str,
    ) -> impl Future<Output = Answer<WithAttributes<Self::Dir>>> + Send;

    fn remove(&self, dir: &Self::Dir, name: &str) -> impl Future<Output = Answer<()>> + Send;

    fn remove_dir(&self, dir: &Self::Dir, name: &str) -> impl Future<Output = Answer<()>> + Send;

    /// lstat(2): its attributes, and those of the LOOKUP's reply.
    fn stat(
        &self,
        dir: &Self::Dir,
        name: &str,
    ) -> impl Future<Output = Answer<WithAttributes<Stat>>> + Send;

    fn stat_dir(&self, dir: &Self::Dir) -> impl Future<Output = Answer<Stat>> + Send;

    fn set_mode(
        &self,
        dir: &Self::Dir,
        name: &str,
        mode: u32,
    ) -> impl Future<Output = Answer<WithAttributes<()>>> + Send;

    fn rename(
        &self,
        dir: &Self::Dir,
        from: &str,
        to: &str,
    ) -> impl Future<Output = Answer<()>> + Send;

    fn link(
        &self,
        dir: &Self::Dir,
        from: &str,
        to: &str,
    ) -> impl Future<Output = Answer<WithAttributes<()>>> + Send;

    fn symlink(
        &self,
        dir: &Self::Dir,
        name: &str,
        target: &str,
    ) -> impl Future<Output = Answer<WithAttributes<()>>> + Send;

    fn read_link(
        &self,
        dir: &Self::Dir,
        name: &str,
    ) -> impl Future<Output = Answer<WithAttributes<Vec<u8>>>> + Send;

    /// All entries, or the first `most`.
    fn list(
        &self,
        dir: &Self::Dir,
        how: Listing,
        most: usize,
    ) -> impl Future<Output = Answer<Vec<Entry>>> + Send;

    /// Makes such changes with a file and a directory of these names, which are not there before
    /// or after; nothing where replies tell nothing of directories.
    fn changes(
        &self,
        dir: &Self::Dir,
        which: Changes,
        names: (&str, &str),
    ) -> impl Future<Output = Answer<Vec<Change>>> + Send;

    fn space(&self, dir: &Self::Dir) -> impl Future<Output = Answer<Space>> + Send;

    /// getcwd(3).
    fn path_of(&self, dir: &Self::Dir) -> impl Future<Output = Answer<Above<Self::Path>>> + Send;

    /// stat(2) of what [`Place::path_of`] gave.
    fn stat_path(&self, path: &Self::Path) -> impl Future<Output = Answer<Stat>> + Send;
}
