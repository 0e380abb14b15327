//! Makes a file set on a server, a few calls at a time.

use bytes::Bytes;
use client::session::Session;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use wire::nfs3::{FileHandle, NewObject, Sattr3, StableHow};

use super::layout::Layout;
use super::touched::Touched;
use super::{BLOCK_BYTES, Entry, File, FileSet, entry_name, file_name, symlink_name};
use crate::error::Error;
use crate::scratch::file;
use crate::seqwrite::pattern;

/// Files in the making at once.
const AT_ONCE: usize = 8;

/// Most bytes of a WRITE while the files are made.
const WRITE_BYTES_MAX: u32 = 64 << 10;

/// What a symbolic link says: as long as SFS's, and nowhere.
const SYMLINK_DATA: &[u8] = b"./symlinknamelongstuff";

/// Makes the set in `root`, an empty directory. What is there when it fails, stays.
///
/// # Errors
/// Any call's.
pub async fn build(session: &Session, root: FileHandle, layout: &Layout) -> Result<FileSet, Error> {
    let call_bytes = session.sizes().write_bytes_max.clamp(1, WRITE_BYTES_MAX);
    let maker = Maker { session, data: pattern(call_bytes as usize) };
    let names = (0..layout.dirs()).map(|number| format!("dir_{number:05}"));
    let dirs: Vec<FileHandle> = stream::iter(names)
        .map(|name| maker.dir(root, name))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let dir_of = |number: usize| dirs[number % dirs.len()];
    let files: Vec<File> = stream::iter(layout.lengths().into_iter().enumerate())
        .map(|(number, bytes)| maker.file(dir_of(number), file_name(number), bytes))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let entries: Vec<Entry> = stream::iter(0..layout.entries)
        .map(|number| maker.entry(dir_of(number), number))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let symlinks: Vec<FileHandle> = stream::iter(0..layout.symlinks)
        .map(|number| maker.symlink(dir_of(number), symlink_name(number)))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let accessed = layout.accessed_files().min(files.len());
    let is_large = |number: &usize| files[*number].bytes >= BLOCK_BYTES;
    Ok(FileSet {
        root,
        accessed,
        large: (0..files.len()).filter(is_large).collect(),
        touched: Touched::default(),
        bytes: files.iter().map(|file| file.bytes).sum(),
        dirs,
        files,
        entries,
        symlinks,
        grown_bytes: 0,
    })
}

struct Maker<'a> {
    session: &'a Session,
    data: Bytes,
}

impl Maker<'_> {
    async fn dir(&self, root: FileHandle, name: String) -> Result<FileHandle, Error> {
        let attributes = Sattr3 { mode: Some(0o700), ..Sattr3::default() };
        let made = self.session.mkdir(root, name.as_bytes(), attributes).await?;
        self.handle(made, root, &name).await
    }

    async fn file(&self, dir: FileHandle, name: String, bytes: u64) -> Result<File, Error> {
        let handle = file(self.session, dir, &name).await?;
        let mut offset = 0;
        while offset < bytes {
            let len = usize::try_from(bytes - offset).unwrap_or(usize::MAX).min(self.data.len());
            let written = self
                .session
                .write(handle, offset, self.data.slice(..len), StableHow::Unstable)
                .await?;
            if written.reply.count == 0 {
                return Err(Error::TooFew { what: "a file: the server writes nothing of it" });
            }
            offset += u64::from(written.reply.count);
        }
        self.session.commit(handle, 0, 0).await?;
        Ok(File { handle, bytes })
    }

    /// Every second one is there at the beginning.
    async fn entry(&self, dir: FileHandle, number: usize) -> Result<Entry, Error> {
        let is_there = number.is_multiple_of(2);
        if is_there {
            file(self.session, dir, &entry_name(number)).await?;
        }
        Ok(Entry { is_there, is_busy: false })
    }

    async fn symlink(&self, dir: FileHandle, name: String) -> Result<FileHandle, Error> {
        let attributes = Sattr3::default();
        let made = self.session.symlink(dir, name.as_bytes(), attributes, SYMLINK_DATA).await?;
        self.handle(made, dir, &name).await
    }

    async fn handle(
        &self,
        made: NewObject,
        dir: FileHandle,
        name: &str,
    ) -> Result<FileHandle, Error> {
        match made.obj {
            Some(handle) => Ok(handle),
            None => Ok(self.session.lookup(dir, name.as_bytes()).await?.object),
        }
    }
}
