//! A host of a contest: by single calls, with a mounted file system and a kernel above it, or the
//! real thing, a folder that the kernel has mounted.

mod closing;
mod kernel;
mod killing;
mod locking;
mod restarting;
mod tables;
mod unheard;

use std::fs::File;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use client::cache::attributes::Version;
use client::error::Error;
use client::files;
use client::files::open::{Mode, Open};
use client::session::Session;
use client::write_behind;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Nanos;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, StableHow};

use self::kernel::{Kernel, Node};
use self::restarting::Mounted;
use self::tables::Tables;
use self::unheard::Silent;
use super::folder::{self, Folder};
use super::locker::Locker;
use super::refused::{Refused, Way};
use crate::plan::Level;
use crate::sim::machine::me;
use crate::sim::planted::Planted;

pub(super) use self::killing::Ends;
pub(super) use self::restarting::Disk;
pub(super) use self::tables::Locking;
pub(super) use self::unheard::Unheard;

/// How often a name is looked up whose file is another one when it is opened; then the kernel's
/// cache is passed by.
const TRIES_MAX: usize = 3;

/// More than any file of a contest has.
const BYTES_MAX: u32 = 1 << 20;

const READ: Mode = Mode { read: true, write: false };
const BOTH: Mode = Mode { read: true, write: true };

/// See the module's head.
pub(super) struct Host {
    clock: Clock,
    kind: Kind,
}

enum Kind {
    Calls {
        session: Session,
        dir: FileHandle,
    },
    Files {
        files: Box<Mounted>,
        kernel: Mutex<Kernel>,
        locking: Tables,
        dir: FileHandle,
        silent: Silent,
    },
    Folder(Folder),
}

/// A file that is open for writing.
pub(super) struct Opened {
    pub(super) file: FileHandle,
    open: Descriptor,
}

enum Descriptor {
    /// By calls: what was written and may be lost, with the server's verifier.
    Calls(Mutex<Vec<Unstable>>),
    Open {
        open: Open,
        version: Option<Version>,
        number: u64,
    },
    File(File),
    Locker(Locker),
}

struct Unstable {
    at: u64,
    data: Bytes,
    verifier: [u8; 8],
}

impl Host {
    pub(super) fn new(
        clock: &Clock,
        session: Session,
        dir: FileHandle,
        (level, wsize, disk): (Level, u32, Disk),
        planted: Option<Planted>,
    ) -> Self {
        let kind = match level {
            Level::Calls => Kind::Calls { session, dir },
            Level::Files => {
                let mistake = planted.and_then(Planted::mistake);
                let options = files::Options::default();
                let write = write_behind::Options { wsize, ..options.write };
                let options = files::Options { mistake, write, ..options };
                let disk = (disk, planted);
                let files = Box::new(Mounted::new(clock, session, options, disk));
                let of_nodes = (planted == Some(Planted::LocksByNode)).then(Mutex::default);
                let locking = Tables { of_nodes, ..Tables::default() };
                let (kernel, silent) = Default::default();
                Kind::Files { files, kernel, locking, dir, silent }
            }
        };
        Self { clock: clock.clone(), kind }
    }

    pub(super) fn folder(clock: &Clock, folder: Folder) -> Self {
        Self { clock: clock.clone(), kind: Kind::Folder(folder) }
    }

    /// Whether it may find a name in memory that others have changed.
    pub(super) fn remembers(&self) -> bool {
        match &self.kind {
            Kind::Calls { .. } => false,
            Kind::Files { .. } => true,
            Kind::Folder(folder) => folder.remembers,
        }
    }

    /// Whether it takes what it remembers for true also when it changes a name: a kernel asks
    /// nobody whether a name that it remembers can be made.
    pub(super) fn believes(&self) -> bool {
        matches!(self.kind, Kind::Folder(_)) && self.remembers()
    }

    pub(super) async fn look(&self, name: &str) -> Result<FileHandle, Refused> {
        match &self.kind {
            Kind::Calls { session, dir } => Ok(session.lookup(*dir, name.as_bytes()).await?.object),
            Kind::Files { files, kernel, dir, .. } => {
                let found = files.now().lookup(&me(), *dir, name.as_bytes()).await?;
                kernel.lock().named(&found);
                Ok(found.handle)
            }
            Kind::Folder(folder) => Ok(folder.look(name)?),
        }
    }

    pub(super) async fn make(&self, name: &str) -> Result<FileHandle, Refused> {
        let mode = Sattr3::of_mode(0o644);
        match &self.kind {
            Kind::Calls { session, dir } => {
                let how = CreateHow::Guarded(mode);
                match session.create(*dir, name.as_bytes(), how).await?.obj {
                    Some(file) => Ok(file),
                    None => self.look(name).await,
                }
            }
            Kind::Files { files, kernel, dir, .. } => {
                let name = name.as_bytes();
                let (found, open) = files.now().create_open(&me(), *dir, name, mode, true).await?;
                kernel.lock().named(&found);
                let closed = open.flush_at_close().await;
                open.close().await;
                closed?;
                Ok(found.handle)
            }
            Kind::Folder(folder) => Ok(folder.make(name)?),
        }
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Refused> {
        match &self.kind {
            Kind::Calls { session, dir } => {
                session.remove(*dir, name.as_bytes()).await?;
            }
            Kind::Files { files, dir, .. } => {
                files.now().remove(&me(), *dir, name.as_bytes()).await?
            }
            Kind::Folder(folder) => folder.remove(name)?,
        }
        Ok(())
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), Refused> {
        let names = |dir: FileHandle| ((dir, from.as_bytes()), (dir, to.as_bytes()));
        match &self.kind {
            Kind::Calls { session, dir } => {
                let (from, to) = names(*dir);
                session.rename(from, to).await?;
            }
            Kind::Files { files, dir, .. } => {
                let (from, to) = names(*dir);
                files.now().rename(&me(), from, to).await?;
            }
            Kind::Folder(folder) => folder.rename(from, to)?,
        }
        Ok(())
    }

    /// Gives a file that was found by `from` one more name.
    pub(super) async fn link(
        &self,
        (from, file): (&str, FileHandle),
        to: &str,
    ) -> Result<(), Refused> {
        match &self.kind {
            Kind::Calls { session, dir } => {
                session.link(file, *dir, to.as_bytes()).await?;
            }
            Kind::Files { files, kernel, dir, .. } => {
                let found = files.now().link(&me(), file, *dir, to.as_bytes()).await?;
                kernel.lock().named(&found);
            }
            Kind::Folder(folder) => folder.link((from, file), to)?,
        }
        Ok(())
    }

    /// Changes the mode of a file.
    pub(super) async fn set_mode(&self, name: &str) -> Result<(), Refused> {
        let mode = Sattr3::of_mode(0o640);
        match &self.kind {
            Kind::Calls { session, .. } => {
                session.setattr(self.look(name).await?, mode, None).await?;
            }
            Kind::Files { files, .. } => {
                files.now().setattr(&me(), self.look(name).await?, mode).await?;
            }
            Kind::Folder(folder) => folder.set_mode(name)?,
        }
        Ok(())
    }

    /// Cuts a file to nothing.
    pub(super) async fn cut(&self, of: &Opened) -> Result<(), Refused> {
        let nothing = Sattr3 { size: Some(0), ..Sattr3::default() };
        match (&self.kind, &of.open) {
            (Kind::Calls { session, .. }, _) => {
                session.setattr(of.file, nothing, None).await?;
            }
            (Kind::Files { files, kernel, .. }, Descriptor::Open { version, .. }) => {
                kernel.lock().cut(&of.file, *version);
                files.now().setattr(&me(), of.file, nothing).await?;
                kernel.lock().cut(&of.file, *version);
            }
            (_, Descriptor::File(file)) => file.set_len(0)?,
            _ => {}
        }
        Ok(())
    }

    /// Opens a file for reading and writing.
    pub(super) async fn open(&self, name: &str, way: Way) -> Result<Opened, Refused> {
        let (files, kernel, locking) = match &self.kind {
            Kind::Calls { .. } => {
                let open = Descriptor::Calls(Mutex::default());
                return Ok(Opened { file: self.look(name).await?, open });
            }
            Kind::Folder(folder) => {
                let (file, open) = folder.open(name, way)?;
                return Ok(Opened { file, open: Descriptor::File(open) });
            }
            Kind::Files { files, kernel, locking, .. } => (files, kernel, locking),
        };
        let files = files.now();
        for left in (0..TRIES_MAX).rev() {
            let file = self.look(name).await?;
            let open = match files.open(&me(), file, BOTH).await {
                Err(error) if error.status() == Some(NfsStat3::Stale) && left > 0 => continue,
                open => open?,
            };
            let version = files.version(&file);
            if kernel.lock().node(&file, version).is_some() || left == 0 {
                let number = locking.descriptors.fetch_add(1, Ordering::Relaxed);
                return Ok(Opened { file, open: Descriptor::Open { open, version, number } });
            }
            open.close().await;
        }
        unreachable!("the last try returns")
    }

    /// Reads all of a file, from open to close.
    pub(super) async fn read(&self, name: &str) -> Result<(FileHandle, Vec<u8>), Refused> {
        let files = match &self.kind {
            Kind::Calls { session, .. } => {
                let file = self.look(name).await?;
                return Ok((file, read_all(session, file).await?));
            }
            Kind::Folder(folder) => return Ok(folder.read(name)?),
            Kind::Files { files, .. } => files.now(),
        };
        for left in (0..TRIES_MAX).rev() {
            let file = self.look(name).await?;
            let read = match files.open(&me(), file, READ).await {
                Ok(open) => {
                    let read = self.read_open(&open, left == 0).await;
                    open.close().await;
                    read
                }
                Err(error) => Err(error),
            };
            match read {
                Ok(Some(data)) => return Ok((file, data)),
                Ok(None) => {}
                Err(error) if error.status() == Some(NfsStat3::Stale) && left > 0 => {}
                Err(error) => return Err(error.into()),
            }
        }
        unreachable!("the last try returns")
    }

    /// From what the kernel has; none when it has to look the name up again.
    async fn read_open(&self, open: &Open, passes_by: bool) -> Result<Option<Vec<u8>>, Error> {
        let Kind::Files { files, kernel, .. } = &self.kind else { return Ok(None) };
        let file = open.file();
        let version = files.now().version(&file);
        let (size, changed) = match kernel.lock().node(&file, version) {
            Some(Node { pages: Some(pages), .. }) => return Ok(Some(pages.clone())),
            Some(node) => (node.size, node.changed),
            None if passes_by => (u64::from(BYTES_MAX), u64::MAX),
            None => return Ok(None),
        };
        let count = u32::try_from(size).unwrap_or(BYTES_MAX).min(BYTES_MAX);
        let mut data = open.read(0, count).await?.to_vec();
        if let Some(node) =
            kernel.lock().node(&file, version).filter(|node| node.changed == changed)
        {
            // A kernel that keeps the size takes what is missing for a hole.
            data.resize(count as usize, 0);
            node.pages = Some(data.clone());
        }
        Ok(Some(data))
    }

    /// The names in the directory, listed in portions.
    pub(super) async fn list(&self, wait: Nanos) -> Result<Vec<String>, Refused> {
        let mut names = Vec::new();
        let listing = match &self.kind {
            Kind::Calls { .. } => None,
            Kind::Files { files, dir, .. } => Some(files.now().listing(&me(), *dir)),
            Kind::Folder(folder) => {
                let entries = folder.entries()?;
                self.clock.sleep(wait).await;
                return Ok(folder::names(entries)?);
            }
        };
        let (mut cookie, mut verifier) = (0, [0; 8]);
        loop {
            let page = match (&self.kind, &listing) {
                (Kind::Files { .. }, Some(listing)) => listing.page(cookie).await?,
                (Kind::Calls { session, dir }, _) => {
                    session.readdir(*dir, cookie, verifier, 512).await?
                }
                _ => return Ok(names),
            };
            // The kernel takes what it has room for, and the rest with the next request.
            self.clock.sleep(wait).await;
            for entry in &page.entries {
                names.push(String::from_utf8_lossy(&entry.name).into_owned());
                cookie = entry.cookie;
                if let Kind::Files { files, kernel, .. } = &self.kind
                    && entry.name != b"."
                    && entry.name != b".."
                    && let Some(found) = files.now().listed(entry)
                {
                    kernel.lock().named(&found);
                }
            }
            verifier = page.cookieverf;
            if page.eof || page.entries.is_empty() {
                return Ok(names);
            }
        }
    }

    pub(super) async fn write(&self, to: &Opened, at: u64, data: &[u8]) -> Result<(), Refused> {
        match (&self.kind, &to.open) {
            (Kind::Calls { session, .. }, Descriptor::Calls(unstable)) => {
                let mut data = Bytes::copy_from_slice(data);
                let mut at = at;
                while !data.is_empty() {
                    let most = session.sizes_now().write_bytes_max as usize;
                    let part = data.slice(..data.len().min(most));
                    let how = StableHow::Unstable;
                    let reply = session.write(to.file, at, part, how).await?.reply;
                    let (verifier, data) = (reply.verf, data.split_to(reply.count as usize));
                    unstable.lock().push(Unstable { at, data, verifier });
                    at += u64::from(reply.count);
                }
            }
            (Kind::Files { kernel, .. }, Descriptor::Open { open, version, .. }) => {
                kernel.lock().writes(&to.file, *version);
                self.heard(to, open.write(at, data).await)?;
                kernel.lock().wrote(&to.file, *version, at, data);
            }
            (_, Descriptor::File(file)) => folder::write(file, at, data)?,
            (_, Descriptor::Locker(locker)) => locker.write(at, data)?,
            _ => {}
        }
        Ok(())
    }

    /// Looks at the attributes of a file, as the server has them now.
    pub(super) async fn attributes(&self, of: &Opened) -> Result<(), Refused> {
        match (&self.kind, &of.open) {
            (Kind::Calls { session, .. }, _) => {
                session.getattr(of.file).await?;
            }
            (Kind::Files { files, .. }, _) => {
                files.now().ask_attributes(&me(), of.file).await?;
            }
            (_, Descriptor::File(file)) => {
                file.metadata()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// To the end.
    pub(super) async fn append(&self, to: &Opened, data: &[u8]) -> Result<(), Refused> {
        let end = match (&self.kind, &to.open) {
            (Kind::Calls { session, .. }, _) => session.getattr(to.file).await?.size,
            (_, Descriptor::Open { open, .. }) => open.end().await?,
            (_, Descriptor::File(file)) => return Ok(folder::append(file, data)?),
            _ => 0,
        };
        self.write(to, end, data).await
    }
}

async fn read_all(session: &Session, file: FileHandle) -> Result<Vec<u8>, Error> {
    let mut data = Vec::new();
    loop {
        let most = session.sizes_now().read_bytes_max;
        let part = session.read(file, data.len() as u64, most).await?;
        data.extend_from_slice(&part.data);
        if part.eof || part.data.is_empty() {
            return Ok(data);
        }
    }
}
