//! A directory on the server for the length of a run.
//!
//! Its name says whose it is, and it is removed with everything in it however the run ends: the
//! caller keeps the [`Scratch`] outside of what may fail or be interrupted, and calls
//! [`Scratch::remove`] afterwards, over a connection of its own if the first one broke.

use client::error::Error;
use client::session::Session;
use client::walk::Recurring;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FType, FileHandle, NewObject, NfsStat3, Sattr3};

/// Prefix of the directory's name.
pub const PREFIX: &str = ".nfskit-scratch-";

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Scratch {
    parent: FileHandle,
    name: String,
    dir: FileHandle,
}

impl Scratch {
    /// The name of the directory of a run; `tag` keeps runs apart.
    pub fn name_for(tag: &str) -> String {
        format!("{PREFIX}{tag}")
    }

    /// Makes the directory in the session's root.
    ///
    /// # Errors
    /// The export is read-only, or full, or not ours to write. Unless the server answered MKDIR
    /// with an error it may be there all the same: see [`Scratch::find`].
    pub async fn create(session: &Session, name: &str) -> Result<Self, Error> {
        let parent = session.root();
        let dir = directory(session, parent, name).await?;
        Ok(Self { parent, name: name.to_owned(), dir })
    }

    /// The directory of a run whose MKDIR was not answered, if it was made.
    ///
    /// # Errors
    /// As the server says.
    pub async fn find(session: &Session, name: &str) -> Result<Option<Self>, Error> {
        let parent = session.root();
        match session.lookup(parent, name.as_bytes()).await {
            Ok(found) => Ok(Some(Self { parent, name: name.to_owned(), dir: found.object })),
            Err(error) if error.status() == Some(NfsStat3::NoEnt) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same directory as another server names it that serves the same: a handle means
    /// something to the server that gave it, and to no other.
    ///
    /// # Errors
    /// As the server says: it has no such directory.
    pub async fn at(&self, session: &Session) -> Result<Self, Error> {
        let parent = session.root();
        let dir = session.lookup(parent, self.name.as_bytes()).await?.object;
        Ok(Self { parent, name: self.name.clone(), dir })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory.
    pub fn dir(&self) -> FileHandle {
        self.dir
    }

    /// Makes an empty file in it.
    ///
    /// # Errors
    /// As the server says.
    pub async fn file(&self, session: &Session, name: &str) -> Result<FileHandle, Error> {
        file(session, self.dir, name).await
    }

    /// One of its files, which is there.
    ///
    /// # Errors
    /// As the server says.
    pub async fn find_file(&self, session: &Session, name: &str) -> Result<FileHandle, Error> {
        Ok(session.lookup(self.dir, name.as_bytes()).await?.object)
    }

    /// Removes one of its files.
    ///
    /// # Errors
    /// As the server says.
    pub async fn remove_file(&self, session: &Session, name: &str) -> Result<(), Error> {
        session.remove(self.dir, name.as_bytes()).await.map(drop)
    }

    /// Removes the directory with everything in it. Succeeds when it is gone already.
    ///
    /// # Errors
    /// As the server says; the message names what is left.
    pub async fn remove(&self, session: &Session) -> Result<(), Error> {
        // The way down to what is being emptied.
        let mut way = vec![Level::new(self.parent, self.name.as_bytes().to_vec(), self.dir)];
        let mut removed = 0;
        loop {
            let depth = way.len();
            let Some(level) = way.last_mut() else { return Ok(()) };
            let dir = level.dir;
            match level.empty(session, &mut removed).await? {
                Some((name, below)) if depth < DEPTH_MAX => {
                    way.push(Level::new(dir, name, below));
                }
                _ => {
                    gone(session.rmdir(level.parent, &level.name).await)?;
                    way.pop();
                }
            }
        }
    }
}

/// A directory that is being emptied.
struct Level {
    parent: FileHandle,
    name: Vec<u8>,
    dir: FileHandle,
    /// What it has been listed to have.
    listed: Recurring,
}

/// Makes an empty file, or empties the one that is there.
pub(crate) async fn file(
    session: &Session,
    dir: FileHandle,
    name: impl AsRef<[u8]>,
) -> Result<FileHandle, Error> {
    let name = name.as_ref();
    let attributes = Sattr3 { size: Some(0), ..Sattr3::of_mode(0o600) };
    let made = session.create(dir, name, CreateHow::Unchecked(attributes)).await?;
    handle(session, made, dir, name).await
}

/// Makes a directory that is its owner's only.
pub(crate) async fn directory(
    session: &Session,
    parent: FileHandle,
    name: impl AsRef<[u8]>,
) -> Result<FileHandle, Error> {
    let name = name.as_ref();
    let made = session.mkdir(parent, name, Sattr3::of_mode(0o700)).await?;
    handle(session, made, parent, name).await
}

/// The handle of what was made, which a server need not give.
pub(crate) async fn handle(
    session: &Session,
    made: NewObject,
    parent: FileHandle,
    name: &[u8],
) -> Result<FileHandle, Error> {
    match made.obj {
        Some(handle) => Ok(handle),
        None => Ok(session.lookup(parent, name).await?.object),
    }
}

/// Directories in directories that are removed: more than any workload makes.
const DEPTH_MAX: usize = 128;

/// Names that are removed at the end of a run: more than any workload makes.
const NAMES_MAX: u64 = 1 << 24;

impl Level {
    fn new(parent: FileHandle, name: Vec<u8>, dir: FileHandle) -> Self {
        Self { parent, name, dir, listed: Recurring::default() }
    }

    /// Removes files from the directory until it is empty, or there is a directory in it.
    async fn empty(
        &mut self,
        session: &Session,
        removed: &mut u64,
    ) -> Result<Option<(Vec<u8>, FileHandle)>, Error> {
        let dir = self.dir;
        loop {
            let mut page = match session.readdir(dir, 0, [0; 8], 64 << 10).await {
                Err(error) if error.status() == Some(NfsStat3::Stale) => return Ok(None),
                page => page?,
            };
            page.entries.retain(|entry| !is_dot(&entry.name));
            if self.listed.page(&page.entries) || *removed > NAMES_MAX {
                let what = "names that were removed are listed again and again";
                return Err(session.nonsense("READDIR", what));
            }
            for entry in &page.entries {
                *removed += 1;
                match gone(session.remove(dir, &entry.name).await) {
                    // What REMOVE says of a directory, RFC 1813 leaves to the server.
                    Err(refused) if refused.status().is_some() => {
                        let found = session.lookup(dir, &entry.name).await?.object;
                        return match session.getattr(found).await?.ftype {
                            FType::Dir => Ok(Some((entry.name.clone(), found))),
                            _ => Err(refused),
                        };
                    }
                    removed => removed?,
                }
            }
            if page.eof || page.entries.is_empty() {
                return Ok(None);
            }
        }
    }
}

/// What is not there any more has been removed.
fn gone<T>(answer: Result<T, Error>) -> Result<(), Error> {
    match answer {
        Err(error) if error.status() == Some(NfsStat3::NoEnt) => Ok(()),
        answer => answer.map(drop),
    }
}

pub(crate) fn is_dot(name: &[u8]) -> bool {
    name == b"." || name == b".."
}
