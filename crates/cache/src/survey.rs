//! What lies in a cache's directory, whoever has it: for commands. Nothing is locked or changed;
//! what changes meanwhile may be reported as it was.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::catalog::{self, Catalog, CatalogError};
use crate::catalogs::{catalog_bytes, name_of};
use crate::header::{Geometry, HEADER_BYTES, Header, HeaderError};
use crate::key::{FileHash, Name, Token};
use crate::medium::folder::FILLED;
use crate::medium::{Folder, Medium, Stored};
use crate::missed::{self, Misses};
use crate::place::{FolderId, IDENTITY, Identity, LOCK, NoIdentity, OpenError, open_base};
use crate::texts::{TEXT_BYTES_MAX, names, open_dir, read_text};

/// An origin's folder.
#[derive(Debug)]
pub struct Found {
    /// Its name in the cache's directory.
    pub folder: String,
    pub path: PathBuf,
    pub identity: Result<Identity, NoIdentity>,
    dir: std::os::fd::OwnedFd,
}

/// A segment, as far as it can be trusted.
#[derive(Debug)]
pub struct Looked {
    pub name: Name,
    /// Bytes that it takes of the disk.
    pub disk_bytes: u64,
    pub header: Result<Header, HeaderError>,
    /// It is what is known of a directory, and no segment: there is no header.
    pub catalog: Option<Catalog>,
    /// Blocks that are not what they should be, of those that were read.
    pub wrong: Vec<usize>,
}

/// Which blocks are read and compared with their checksums.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Blocks {
    All,
    /// Those of the files with this fileid.
    Of(u64),
    Unread,
}

impl Blocks {
    fn are_read(self, header: &Header) -> bool {
        match self {
            Self::All => true,
            Self::Of(fileid) => header.token.fileid == fileid,
            Self::Unread => false,
        }
    }
}

impl Looked {
    /// Of which state of which file or directory it is.
    pub fn token(&self) -> Option<Token> {
        let catalog = self.catalog.as_ref().map(|catalog| catalog.token);
        catalog.or_else(|| self.header.as_ref().ok().map(|header| header.token))
    }
}

/// The origins that a directory has something of.
///
/// # Errors
/// It is no cache of ours, or cannot be read.
pub fn origins(path: &Path) -> Result<Vec<Found>, OpenError> {
    let base = open_base(path, false)?;
    let system =
        |errno: rustix::io::Errno| OpenError::System { path: path.to_owned(), error: errno.into() };
    let mut found = Vec::new();
    for folder in names(base.as_fd()).map_err(system)? {
        let Ok(dir) = open_dir(base.as_fd(), &folder) else { continue };
        let Ok(text) = read_text(dir.as_fd(), IDENTITY, TEXT_BYTES_MAX) else { continue };
        if text.is_none() && !has_been_used(dir.as_fd()) {
            continue;
        }
        let identity = text.ok_or(NoIdentity::Missing).and_then(|text| Identity::parse(&text));
        let path = path.join(&folder);
        found.push(Found { folder, path, identity, dir });
    }
    Ok(found)
}

/// Whether something may lie there: who has had it has noted what.
fn has_been_used(dir: BorrowedFd<'_>) -> bool {
    rustix::fs::statat(dir, FILLED, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

impl Found {
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Which folder it is.
    pub fn id(&self) -> Option<FolderId> {
        FolderId::of(self.dir())
    }

    /// What a process that has it holds locked.
    ///
    /// # Errors
    /// Nobody has ever had it, or it cannot be read.
    pub fn lock(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        Ok(rustix::fs::openat(&self.dir, LOCK, flags, Mode::empty())?.into())
    }

    /// What was missed of the files that were missed last, by its process's last second.
    pub fn missed(&self) -> BTreeMap<FileHash, Misses> {
        let text = missed::read(self.dir.as_fd());
        missed::parse(text.as_deref().unwrap_or_default()).into_iter().collect()
    }

    /// Looks at each segment, and at these blocks.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn walk(&self, blocks: Blocks, each: &mut dyn FnMut(Looked)) -> io::Result<()> {
        let folder = Folder::to_look_at(self.dir.try_clone()?);
        let mut failed = None;
        folder.list(&mut |found| {
            for (name, disk_bytes) in found {
                match look(&folder, (*name, *disk_bytes), blocks) {
                    // It has gone meanwhile.
                    Ok(None) => {}
                    Ok(Some(looked)) => each(looked),
                    Err(error) => failed = failed.take().or(Some(error)),
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

fn look(
    folder: &Folder,
    (name, disk_bytes): (Name, u64),
    blocks: Blocks,
) -> io::Result<Option<Looked>> {
    let Some(stored) = folder.open(name)? else { return Ok(None) };
    if let Some(catalog) = read_catalog(&*stored)? {
        let is_named = |catalog: &Catalog| name_of(&catalog.key) == name;
        let catalog = catalog.ok().filter(is_named);
        let header = Err(HeaderError::Checksum);
        return Ok(Some(Looked { name, disk_bytes, header, catalog, wrong: Vec::new() }));
    }
    let header = read_header(&*stored)?;
    let header = header.and_then(|header| match header.name() == name {
        true => Ok(header),
        false => Err(HeaderError::Invalid),
    });
    let mut wrong = Vec::new();
    if let Ok(header) = &header
        && blocks.are_read(header)
    {
        wrong = wrong_blocks(&*stored, header)?;
        // The process that has it may have changed them since.
        if !wrong.is_empty() {
            let again = read_header(&*stored)?;
            let is_same = |index: &usize| {
                again.as_ref().is_ok_and(|again| again.crc(*index) == header.crc(*index))
            };
            wrong.retain(is_same);
        }
    }
    Ok(Some(Looked { name, disk_bytes, header, catalog: None, wrong }))
}

/// None: it does not begin as a catalog.
fn read_catalog(stored: &dyn Stored) -> io::Result<Option<Result<Catalog, CatalogError>>> {
    let bytes = catalog_bytes(stored)?;
    Ok(bytes.starts_with(&catalog::MAGIC).then(|| Catalog::decode(&bytes)))
}

fn read_header(stored: &dyn Stored) -> io::Result<Result<Header, HeaderError>> {
    let mut bytes = [0; HEADER_BYTES];
    let count = stored.read(0, &mut bytes, false)?;
    Ok(Header::decode(&bytes[..count]))
}

/// Blocks of it whose content is not what the header says.
fn wrong_blocks(stored: &dyn Stored, header: &Header) -> io::Result<Vec<usize>> {
    let geometry: Geometry = header.geometry;
    let mut wrong = Vec::new();
    let mut room = vec![0; usize::try_from(geometry.block_bytes()).unwrap_or(usize::MAX)];
    for index in header.blocks() {
        let len = usize::try_from(header.len(index)).unwrap_or(room.len()).min(room.len());
        // Behind the end of the local file are holes.
        room[..len].fill(0);
        stored.read(geometry.place(index), &mut room[..len], false)?;
        if Some(header.crc_of(index, &room[..len])) != header.crc(index) {
            wrong.push(index);
        }
    }
    Ok(wrong)
}
