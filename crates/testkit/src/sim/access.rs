//! How a client does it: by single calls, or with a mounted file system.

use std::ops::Range;

use bytes::Bytes;
use client::error::Error;
use client::files::Files;
use client::files::open::{Mode, Open};
use client::session::Session;
use parking_lot::Mutex;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FType, Fattr3, FileHandle, NfsStat3, Sattr3, StableHow};

use super::machine::me;
use crate::reference::content::Verifier;
use crate::reference::tree::{Change, How, last, parent};

/// For reading and writing.
const BOTH: Mode = Mode { read: true, write: true };
const READ: Mode = Mode { read: true, write: false };

/// See the module's head. Paths are below `home`.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) home: FileHandle,
    pub(crate) means: Means,
}

#[derive(Debug)]
pub(crate) enum Means {
    Calls(Session),
    Files { files: Files, opens: Mutex<Vec<Open>> },
}

/// How a write ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taken {
    /// The server has so many bytes.
    Answered { bytes: usize, committed: StableHow, verifier: Verifier },
    /// The client keeps them until they are stable.
    Held,
}

impl Taken {
    /// How many bytes were taken of so many.
    pub(crate) fn bytes_of(self, whole: u32) -> u32 {
        match self {
            Self::Held => whole,
            Self::Answered { bytes, .. } => u32::try_from(bytes).unwrap_or(whole).min(whole),
        }
    }
}

impl Access {
    pub(crate) fn is_files(&self) -> bool {
        matches!(self.means, Means::Files { .. })
    }

    pub(crate) async fn lookup(&self, dir: FileHandle, name: &str) -> Result<FileHandle, Error> {
        match &self.means {
            Means::Calls(session) => Ok(session.lookup(dir, name.as_bytes()).await?.object),
            Means::Files { files, .. } => {
                Ok(files.lookup(&me(), dir, name.as_bytes()).await?.handle)
            }
        }
    }

    pub(crate) async fn find(&self, path: &str) -> Result<FileHandle, Error> {
        let mut at = self.home;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = self.lookup(at, name).await?;
        }
        Ok(at)
    }

    /// The directory that a path is in, and its last name.
    async fn split<'p>(&self, path: &'p str) -> Result<(FileHandle, &'p [u8]), Error> {
        Ok((self.find(parent(path)).await?, last(path).as_bytes()))
    }

    /// Changes names; gives the handle of what was made, if the reply has it.
    pub(crate) async fn change(
        &self,
        change: &Change,
        number: u32,
    ) -> Result<Option<FileHandle>, Error> {
        match change {
            Change::Create(path, how) => {
                let (dir, name) = self.split(path).await?;
                self.create(dir, name, *how, None, number).await
            }
            Change::Mkdir(path) => self.mkdir(path).await,
            Change::Symlink(path) => self.symlink(path).await,
            Change::Remove(path) => {
                let (dir, name) = self.split(path).await?;
                match &self.means {
                    Means::Calls(session) => session.remove(dir, name).await.map(|_| None),
                    Means::Files { files, .. } => {
                        files.remove(&me(), dir, name).await.map(|()| None)
                    }
                }
            }
            Change::Rmdir(path) => {
                let (dir, name) = self.split(path).await?;
                match &self.means {
                    Means::Calls(session) => session.rmdir(dir, name).await.map(|_| None),
                    Means::Files { files, .. } => {
                        files.rmdir(&me(), dir, name).await.map(|()| None)
                    }
                }
            }
            Change::Rename(from, to) => {
                let (from, to) = (self.split(from).await?, self.split(to).await?);
                self.rename(from, to).await.map(|()| None)
            }
            Change::Link(file, link) => {
                let file = self.find(file).await?;
                let (dir, name) = self.split(link).await?;
                match &self.means {
                    Means::Calls(session) => session.link(file, dir, name).await.map(|_| None),
                    Means::Files { files, .. } => {
                        files.link(&me(), file, dir, name).await.map(|_| None)
                    }
                }
            }
        }
    }

    async fn mkdir(&self, path: &str) -> Result<Option<FileHandle>, Error> {
        let (dir, name) = self.split(path).await?;
        match &self.means {
            Means::Calls(session) => Ok(session.mkdir(dir, name, mode(0o755)).await?.obj),
            Means::Files { files, .. } => {
                Ok(Some(files.mkdir(&me(), dir, name, mode(0o755)).await?.handle))
            }
        }
    }

    async fn symlink(&self, path: &str) -> Result<Option<FileHandle>, Error> {
        let ((dir, name), text) = (self.split(path).await?, path.as_bytes());
        match &self.means {
            Means::Calls(session) => Ok(session.symlink(dir, name, mode(0o777), text).await?.obj),
            Means::Files { files, .. } => {
                Ok(Some(files.symlink(&me(), dir, name, mode(0o777), text).await?.handle))
            }
        }
    }

    pub(crate) async fn create(
        &self,
        dir: FileHandle,
        name: &[u8],
        how: How,
        size: Option<u64>,
        number: u32,
    ) -> Result<Option<FileHandle>, Error> {
        let attributes = Sattr3 { size, ..mode(0o644) };
        match &self.means {
            Means::Calls(session) => {
                let how = match how {
                    How::Unchecked => CreateHow::Unchecked(attributes),
                    How::Guarded => CreateHow::Guarded(attributes),
                    How::Exclusive => CreateHow::Exclusive(u64::from(number).to_be_bytes()),
                };
                Ok(session.create(dir, name, how).await?.obj)
            }
            Means::Files { files, .. } => {
                let is_new = how != How::Unchecked;
                match files.create_open(&me(), dir, name, attributes, is_new).await {
                    Ok((made, open)) => {
                        close(open).await?;
                        Ok(Some(made.handle))
                    }
                    Err(error) if !is_new && error.status() == Some(NfsStat3::Exist) => {
                        let found = files.lookup_anew(&me(), dir, name).await?;
                        match found.attributes.ftype {
                            FType::Reg => open_there(files, found.handle, size).await.map(Some),
                            // As a server replies where anything else has the name.
                            _ => Err(error),
                        }
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    pub(crate) async fn rename(
        &self,
        from: (FileHandle, &[u8]),
        to: (FileHandle, &[u8]),
    ) -> Result<(), Error> {
        match &self.means {
            Means::Calls(session) => session.rename(from, to).await.map(drop),
            Means::Files { files, .. } => files.rename(&me(), from, to).await,
        }
    }

    /// The file, open; opened if it is not.
    pub(crate) async fn open(&self, file: FileHandle) -> Result<Option<Open>, Error> {
        let Means::Files { files, opens } = &self.means else { return Ok(None) };
        let found = opens.lock().iter().find(|open| open.file() == file).cloned();
        if found.is_some() {
            return Ok(found);
        }
        let open = files.open(&me(), file, BOTH).await?;
        opens.lock().push(open.clone());
        Ok(Some(open))
    }

    pub(crate) fn is_open(&self, file: &FileHandle) -> bool {
        match &self.means {
            Means::Calls(_) => false,
            Means::Files { opens, .. } => opens.lock().iter().any(|open| open.file() == *file),
        }
    }

    pub(crate) async fn write(
        &self,
        file: FileHandle,
        range: Range<u64>,
        value: u8,
        stable: StableHow,
    ) -> Result<Taken, Error> {
        let bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        match &self.means {
            Means::Calls(session) => {
                // A server takes no more in one call over datagrams.
                let bytes = bytes.min(session.sizes_now().write_bytes_max as usize);
                let data = Bytes::from(vec![value; bytes]);
                let reply = session.write(file, range.start, data, stable).await?.reply;
                let (committed, verifier) = (reply.committed, reply.verf);
                Ok(Taken::Answered { bytes: reply.count as usize, committed, verifier })
            }
            Means::Files { .. } => {
                if let Some(open) = self.open(file).await? {
                    open.write(range.start, &vec![value; bytes]).await?;
                }
                Ok(Taken::Held)
            }
        }
    }

    /// COMMIT of everything, and its verifier; or all that was held is stable.
    pub(crate) async fn commit(&self, file: FileHandle) -> Result<Option<Verifier>, Error> {
        match &self.means {
            Means::Calls(session) => Ok(Some(session.commit(file, 0, 0).await?.reply.verf)),
            Means::Files { .. } => {
                if let Some(open) = self.open(file).await? {
                    open.flush().await?;
                }
                Ok(None)
            }
        }
    }

    /// Closes the file, which was committed.
    pub(crate) async fn close(&self, file: FileHandle) -> Result<(), Error> {
        let Means::Files { opens, .. } = &self.means else { return Ok(()) };
        let open = {
            let mut opens = opens.lock();
            let at = opens.iter().position(|open| open.file() == file);
            at.map(|at| opens.swap_remove(at))
        };
        let Some(open) = open else { return Ok(()) };
        close(open).await
    }

    /// Files that are open.
    pub(crate) fn opens(&self) -> Vec<FileHandle> {
        match &self.means {
            Means::Calls(_) => Vec::new(),
            Means::Files { opens, .. } => opens.lock().iter().map(Open::file).collect(),
        }
    }

    pub(crate) async fn resize(&self, file: FileHandle, bytes: u64) -> Result<(), Error> {
        let size = Sattr3 { size: Some(bytes), ..Sattr3::default() };
        match &self.means {
            Means::Calls(session) => session.setattr(file, size, None).await.map(drop),
            Means::Files { files, .. } => files.setattr(&me(), file, size).await.map(drop),
        }
    }

    /// Up to `count` bytes; fewer only at the end of the file.
    pub(crate) async fn read(
        &self,
        file: FileHandle,
        at: u64,
        count: u32,
    ) -> Result<Vec<u8>, Error> {
        match &self.means {
            Means::Calls(session) => {
                let mut got = Vec::new();
                while got.len() < count as usize {
                    let want = count - u32::try_from(got.len()).unwrap_or(count);
                    let want = want.min(session.sizes_now().read_bytes_max);
                    let part = session.read(file, at + got.len() as u64, want).await?;
                    got.extend_from_slice(&part.data);
                    if part.eof || part.data.is_empty() {
                        break;
                    }
                }
                Ok(got)
            }
            Means::Files { .. } => match self.open(file).await? {
                Some(open) => Ok(open.read(at, count).await?.to_vec()),
                None => Ok(Vec::new()),
            },
        }
    }

    /// Reads from an open of its own: what somebody else may have written and closed.
    pub(crate) async fn read_anew(&self, file: FileHandle, count: u32) -> Result<Vec<u8>, Error> {
        let Means::Files { files, .. } = &self.means else {
            return self.read(file, 0, count).await;
        };
        let open = files.open(&me(), file, READ).await?;
        let data = open.read(0, count).await;
        open.close().await;
        Ok(data?.to_vec())
    }

    pub(crate) async fn getattr(&self, file: FileHandle) -> Result<Fattr3, Error> {
        match &self.means {
            Means::Calls(session) => session.getattr(file).await,
            Means::Files { files, .. } => files.getattr(&me(), file).await,
        }
    }

    /// Text of a link.
    pub(crate) async fn readlink(&self, link: FileHandle) -> Result<Vec<u8>, Error> {
        match &self.means {
            Means::Calls(session) => session.readlink(link).await.map(|(text, _)| text),
            Means::Files { files, .. } => files.readlink(&me(), link).await,
        }
    }

    /// The names in a directory.
    pub(crate) async fn list(&self, dir: FileHandle) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        let listing = match &self.means {
            Means::Calls(_) => None,
            Means::Files { files, .. } => Some(files.listing(&me(), dir)),
        };
        let (mut cookie, mut verifier) = (0, [0; 8]);
        loop {
            let page = match (&self.means, &listing) {
                (Means::Calls(session), _) => session.readdir(dir, cookie, verifier, 512).await?,
                (_, Some(listing)) => listing.page(cookie).await?,
                (_, None) => return Ok(names),
            };
            for entry in &page.entries {
                names.push(String::from_utf8_lossy(&entry.name).into_owned());
                cookie = entry.cookie;
            }
            verifier = page.cookieverf;
            if page.eof || page.entries.is_empty() {
                names.retain(|name| name != "." && name != "..");
                return Ok(names);
            }
        }
    }
}

fn mode(mode: u32) -> Sattr3 {
    Sattr3::of_mode(mode)
}

/// Opens a file that has the name already, as a kernel does, and cuts it.
async fn open_there(
    files: &Files,
    file: FileHandle,
    size: Option<u64>,
) -> Result<FileHandle, Error> {
    let open = files.open(&me(), file, BOTH).await?;
    if size.is_some() {
        let cut = Sattr3 { size, ..Sattr3::default() };
        files.setattr(&me(), file, cut).await?;
    }
    close(open).await?;
    Ok(file)
}

/// Closes a file as close(2) does, and gives the error of its flush.
async fn close(open: Open) -> Result<(), Error> {
    let flushed = open.flush_at_close().await;
    open.close().await;
    flushed
}
