//! A host of a contest: by single calls, or with a mounted file system and a kernel above it.
//!
//! The kernel is as simple as it can be and still believe what `nfskit mount` tells one: it keeps a
//! file's size and pages for as long as the file has the version with which it was found, and
//! writes go to both. What it keeps and should not shows in what programs read.

use std::collections::HashMap;

use client::cache::attributes::Version;
use client::error::Error;
use client::files::open::{Mode, Open};
use client::files::{self, Files, Found};
use client::session::Session;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Nanos;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, StableHow};

use crate::plan::Level;
use crate::sim::machine::me;

/// How often a name is looked up whose file is another one when it is opened; then the kernel's
/// cache is passed by.
const TRIES_MAX: usize = 3;

/// More than any file of a contest has.
const BYTES_MAX: u32 = 1 << 20;

const READ: Mode = Mode { read: true, write: false, truncate: false };
const BOTH: Mode = Mode { read: true, write: true, truncate: false };

/// See the module's head.
pub(super) struct Host {
    dir: FileHandle,
    clock: Clock,
    kind: Kind,
}

enum Kind {
    Calls(Session),
    Files { files: Files, kernel: Mutex<Kernel> },
}

/// Never walked: only looked up.
#[derive(Default)]
struct Kernel(HashMap<FileHandle, Node>);

struct Node {
    version: Version,
    size: u64,
    pages: Option<Vec<u8>>,
    /// Writes through it, so that what was read before one is not kept.
    writes: u64,
}

impl Kernel {
    /// A reply names a file.
    fn named(&mut self, found: &Found) {
        let Found { handle, attributes, version } = *found;
        let node = Node { version, size: attributes.size, pages: None, writes: 0 };
        let known = self.0.entry(handle).or_insert(node);
        if known.version != version {
            *known = Node { version, size: attributes.size, pages: None, writes: 0 };
        }
    }

    fn node(&mut self, file: &FileHandle, version: Option<Version>) -> Option<&mut Node> {
        self.0.get_mut(file).filter(|node| Some(node.version) == version)
    }

    /// A program writes through a descriptor of a version.
    fn wrote(&mut self, file: &FileHandle, version: Option<Version>, at: u64, data: &[u8]) {
        let Some(node) = self.node(file, version) else {
            // By an older node: what the newer one has is of before.
            self.0.remove(file);
            return;
        };
        node.writes += 1;
        let end = at + data.len() as u64;
        node.size = node.size.max(end);
        if let Some(pages) = &mut node.pages {
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let until = from.saturating_add(data.len());
            pages.resize(pages.len().max(until), 0);
            pages[from..until].copy_from_slice(data);
        }
    }
}

/// A file that is open for writing.
pub(super) struct Opened {
    pub(super) file: FileHandle,
    open: Option<(Open, Option<Version>)>,
}

impl Host {
    pub(super) fn new(
        clock: &Clock,
        session: Session,
        dir: FileHandle,
        level: Level,
        mistake: Option<files::Mistake>,
    ) -> Self {
        let kind = match level {
            Level::Calls => Kind::Calls(session),
            Level::Files => {
                let options = files::Options { mistake, ..files::Options::default() };
                let files = Files::new(clock, session, options);
                Kind::Files { files, kernel: Mutex::default() }
            }
        };
        Self { dir, clock: clock.clone(), kind }
    }

    /// Whether it may find a name in memory that others have changed.
    pub(super) fn remembers(&self) -> bool {
        matches!(self.kind, Kind::Files { .. })
    }

    pub(super) async fn look(&self, name: &str) -> Result<FileHandle, Error> {
        match &self.kind {
            Kind::Calls(session) => Ok(session.lookup(self.dir, name.as_bytes()).await?.object),
            Kind::Files { files, kernel } => {
                let found = files.lookup(&me(), self.dir, name.as_bytes()).await?;
                kernel.lock().named(&found);
                Ok(found.handle)
            }
        }
    }

    pub(super) async fn make(&self, name: &str) -> Result<FileHandle, Error> {
        let (dir, name, mode) = (self.dir, name.as_bytes(), Sattr3::of_mode(0o644));
        match &self.kind {
            Kind::Calls(session) => {
                let made = session.create(dir, name, CreateHow::Guarded(mode)).await?.obj;
                match made {
                    Some(file) => Ok(file),
                    None => Ok(session.lookup(dir, name).await?.object),
                }
            }
            Kind::Files { files, kernel } => {
                let found = files.create(&me(), dir, name, mode, true).await?;
                kernel.lock().named(&found);
                Ok(found.handle)
            }
        }
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        match &self.kind {
            Kind::Calls(session) => session.remove(self.dir, name.as_bytes()).await.map(drop),
            Kind::Files { files, .. } => files.remove(&me(), self.dir, name.as_bytes()).await,
        }
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let (from, to) = ((self.dir, from.as_bytes()), (self.dir, to.as_bytes()));
        match &self.kind {
            Kind::Calls(session) => session.rename(from, to).await.map(drop),
            Kind::Files { files, .. } => files.rename(&me(), from, to).await,
        }
    }

    /// Opens a file for writing.
    pub(super) async fn open(&self, name: &str) -> Result<Opened, Error> {
        let Kind::Files { files, kernel } = &self.kind else {
            return Ok(Opened { file: self.look(name).await?, open: None });
        };
        for left in (0..TRIES_MAX).rev() {
            let file = self.look(name).await?;
            let open = match files.open(&me(), file, BOTH).await {
                Err(error) if error.status() == Some(NfsStat3::Stale) && left > 0 => continue,
                open => open?,
            };
            let version = files.version(&file);
            if kernel.lock().node(&file, version).is_some() || left == 0 {
                return Ok(Opened { file, open: Some((open, version)) });
            }
            open.close().await;
        }
        unreachable!("the last try returns")
    }

    /// Reads all of a file, from open to close.
    pub(super) async fn read(&self, name: &str) -> Result<(FileHandle, Vec<u8>), Error> {
        let files = match &self.kind {
            Kind::Calls(session) => {
                let file = session.lookup(self.dir, name.as_bytes()).await?.object;
                return Ok((file, read_all(session, file).await?));
            }
            Kind::Files { files, .. } => files,
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
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last try returns")
    }

    /// From what the kernel has; none when it has to look the name up again.
    async fn read_open(&self, open: &Open, passes_by: bool) -> Result<Option<Vec<u8>>, Error> {
        let Kind::Files { files, kernel } = &self.kind else { return Ok(None) };
        let file = open.file();
        let version = files.version(&file);
        let (size, writes) = match kernel.lock().node(&file, version) {
            Some(Node { pages: Some(pages), .. }) => return Ok(Some(pages.clone())),
            Some(node) => (node.size, node.writes),
            None if passes_by => (u64::from(BYTES_MAX), u64::MAX),
            None => return Ok(None),
        };
        let count = u32::try_from(size).unwrap_or(BYTES_MAX).min(BYTES_MAX);
        let mut data = open.read(0, count).await?.to_vec();
        if let Some(node) = kernel.lock().node(&file, version).filter(|node| node.writes == writes)
        {
            // A kernel that keeps the size takes what is missing for a hole.
            data.resize(count as usize, 0);
            node.pages = Some(data.clone());
        }
        Ok(Some(data))
    }

    /// The names in the directory, asked for in portions.
    pub(super) async fn list(&self, wait: Nanos) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        let listing = match &self.kind {
            Kind::Calls(_) => None,
            Kind::Files { files, .. } => Some(files.listing(&me(), self.dir)),
        };
        let (mut cookie, mut verifier) = (0, [0; 8]);
        loop {
            let page = match (&self.kind, &listing) {
                (Kind::Files { .. }, Some(listing)) => listing.page(cookie).await?,
                (Kind::Calls(session), _) => {
                    session.readdir(self.dir, cookie, verifier, 512).await?
                }
                (_, None) => return Ok(names),
            };
            // The kernel takes what it has room for, and the rest when somebody asks for it.
            self.clock.sleep(wait).await;
            for entry in &page.entries {
                names.push(String::from_utf8_lossy(&entry.name).into_owned());
                cookie = entry.cookie;
                if let Kind::Files { files, kernel } = &self.kind
                    && entry.name != b"."
                    && entry.name != b".."
                    && let Some(found) = files.listed(entry)
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

    pub(super) async fn write(&self, to: &Opened, at: u64, data: &[u8]) -> Result<(), Error> {
        match &self.kind {
            Kind::Calls(session) => {
                let mut done = 0;
                while done < data.len() {
                    let most = session.sizes_now().write_bytes_max as usize;
                    let part = &data[done..data.len().min(done + most)];
                    let part = bytes::Bytes::copy_from_slice(part);
                    let unstable = StableHow::Unstable;
                    let reply = session.write(to.file, at + done as u64, part, unstable).await?;
                    done += reply.reply.count as usize;
                }
                Ok(())
            }
            Kind::Files { kernel, .. } => {
                let Some((open, version)) = &to.open else { return Ok(()) };
                if let Some(node) = kernel.lock().node(&to.file, *version) {
                    node.writes += 1;
                }
                open.write(at, data).await?;
                kernel.lock().wrote(&to.file, *version, at, data);
                Ok(())
            }
        }
    }

    /// Where an append goes.
    pub(super) async fn end(&self, of: &Opened) -> Result<u64, Error> {
        match (&self.kind, &of.open) {
            (Kind::Calls(session), _) => Ok(session.getattr(of.file).await?.size),
            (_, Some((open, _))) => open.end().await,
            (_, None) => Ok(0),
        }
    }

    pub(super) async fn sync(&self, of: &Opened) -> Result<(), Error> {
        match (&self.kind, &of.open) {
            (Kind::Calls(session), _) => session.commit(of.file, 0, 0).await.map(drop),
            (_, Some((open, _))) => open.flush().await,
            (_, None) => Ok(()),
        }
    }

    pub(super) async fn close(&self, of: Opened) -> Result<(), Error> {
        let Some((open, _)) = &of.open else { return self.sync(&of).await };
        let flushed = open.flush_at_close().await;
        open.close().await;
        flushed
    }

    /// The end; gives an error that nobody was told before.
    pub(super) async fn leave(&self) -> Option<Error> {
        match &self.kind {
            Kind::Calls(_) => None,
            Kind::Files { files, .. } => {
                files.shut_down().await.into_iter().next().map(|loss| loss.error)
            }
        }
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
