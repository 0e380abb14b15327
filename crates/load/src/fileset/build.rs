//! Makes a file set on a server, a few calls at a time.

use bytes::Bytes;
use client::session::Session;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use wire::nfs3::{FileHandle, Sattr3, StableHow};

use super::layout::Layout;
use super::names::Names;
use super::touched::Touched;
use super::{BLOCK_BYTES, File, FileSet, Kind, Label, file_label};
use crate::error::Error;
use crate::scratch::{directory, file, handle};
use crate::seqwrite::pattern;

/// Files in the making at once.
const AT_ONCE: usize = 8;

/// Most bytes of a WRITE while the files are made.
const WRITE_BYTES_MAX: u32 = 64 << 10;

/// What a symbolic link says: as long as SFS's, and nowhere.
pub(crate) const SYMLINK_DATA: &[u8] = b"./symlinknamelongstuff";

/// Makes the set in `root`, an empty directory. What is there when it fails, stays.
///
/// # Errors
/// Any call's.
pub async fn build(session: &Session, root: FileHandle, layout: &Layout) -> Result<FileSet, Error> {
    build_with_progress(session, root, layout, |_| {}).await
}

/// As [`build`], and tells how much of it is done, from 0 to 1.
///
/// # Errors
/// Any call's.
pub async fn build_with_progress(
    session: &Session,
    root: FileHandle,
    layout: &Layout,
    tell: impl FnMut(f64),
) -> Result<FileSet, Error> {
    let lengths = layout.lengths();
    let call_bytes = session.sizes().write_bytes_max.clamp(1, WRITE_BYTES_MAX);
    let maker = Maker { session, data: pattern(call_bytes as usize) };
    // Every second name is there at the beginning.
    let made = |count: usize| count.div_ceil(2);
    let names = layout.dirs() + lengths.len() + made(layout.entries) + made(layout.subdirs);
    let data: u64 = lengths.iter().map(|bytes| blocks(*bytes)).sum();
    let all = (names + layout.symlinks) as u64 + data;
    let mut progress = Progress { done: 0, all, tell };
    let dirs: Vec<FileHandle> = stream::iter(0..layout.dirs())
        .map(|number| directory(session, root, format!("dir_{number:05}")))
        .buffered(AT_ONCE)
        .inspect_ok(|_| progress.add(1))
        .try_collect()
        .await?;
    let dir_of = |number: usize| dirs[number % dirs.len()];
    let files: Vec<File> = stream::iter(lengths.into_iter().enumerate())
        .map(|(number, bytes)| maker.file(dir_of(number), file_label(number), bytes))
        .buffered(AT_ONCE)
        .inspect_ok(|file| progress.add(1 + blocks(file.bytes)))
        .try_collect()
        .await?;
    for (kind, count) in [(Kind::File, layout.entries), (Kind::Dir, layout.subdirs)] {
        let there = (0..u32::try_from(count).unwrap_or(u32::MAX)).step_by(2);
        stream::iter(there)
            .map(|number| maker.entry(dir_of(number as usize), kind, number))
            .buffered(AT_ONCE)
            .inspect_ok(|()| progress.add(1))
            .try_collect::<()>()
            .await?;
    }
    let symlinks: Vec<FileHandle> = stream::iter(0..layout.symlinks)
        .map(|number| maker.symlink(dir_of(number), number))
        .buffered(AT_ONCE)
        .inspect_ok(|_| progress.add(1))
        .try_collect()
        .await?;
    let accessed = layout.accessed_files().min(files.len());
    let is_large = |number: &usize| files[*number].bytes >= BLOCK_BYTES;
    Ok(FileSet {
        root,
        accessed,
        accessed_max: accessed,
        large: (0..files.len()).filter(is_large).collect(),
        touched: Touched::default(),
        bytes: files.iter().map(|file| file.bytes).sum(),
        dirs,
        files,
        entries: Names::new(layout.entries),
        subdirs: Names::new(layout.subdirs),
        symlinks,
        grown_bytes: 0,
    })
}

/// Work in the unit of one call: a name, or a block of data.
struct Progress<F> {
    done: u64,
    all: u64,
    tell: F,
}

impl<F: FnMut(f64)> Progress<F> {
    fn add(&mut self, done: u64) {
        self.done += done;
        (self.tell)((self.done as f64 / self.all.max(1) as f64).min(1.0));
    }
}

fn blocks(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES
}

/// Cuts files that have grown to what they were made with, so that another run can append as the
/// first one did.
///
/// # Errors
/// Any call's.
pub async fn cut_back(session: &Session, files: &mut FileSet) -> Result<(), Error> {
    let cut = |(file, bytes)| async move {
        let attributes = Sattr3 { size: Some(bytes), ..Sattr3::default() };
        session.setattr(file, attributes, None).await.map(drop)
    };
    let mut cuts = stream::iter(files.take_grown()).map(cut).buffered(AT_ONCE);
    while cuts.try_next().await?.is_some() {}
    Ok(())
}

struct Maker<'a> {
    session: &'a Session,
    data: Bytes,
}

impl Maker<'_> {
    async fn file(&self, dir: FileHandle, name: Label, bytes: u64) -> Result<File, Error> {
        let handle = file(self.session, dir, name.as_bytes()).await?;
        let mut offset = 0;
        while offset < bytes {
            let len = usize::try_from(bytes - offset).unwrap_or(usize::MAX).min(self.data.len());
            let written = self
                .session
                .write(handle, offset, self.data.slice(..len), StableHow::Unstable)
                .await?;
            if written.reply.count == 0 {
                return Err(Error::WroteNothing { bytes: len as u64 });
            }
            offset += u64::from(written.reply.count);
        }
        self.session.commit(handle, 0, 0).await?;
        Ok(File { handle, bytes, built_bytes: bytes })
    }

    async fn entry(&self, dir: FileHandle, kind: Kind, number: u32) -> Result<(), Error> {
        let name = kind.label(number);
        match kind {
            Kind::File => drop(file(self.session, dir, name.as_bytes()).await?),
            Kind::Dir => drop(directory(self.session, dir, name.as_bytes()).await?),
        }
        Ok(())
    }

    async fn symlink(&self, dir: FileHandle, number: usize) -> Result<FileHandle, Error> {
        let name = Label::new(b"symlink.", u32::try_from(number).unwrap_or(u32::MAX));
        let (name, attributes) = (name.as_bytes(), Sattr3::default());
        let made = self.session.symlink(dir, name, attributes, SYMLINK_DATA).await?;
        Ok(handle(self.session, made, dir, name).await?)
    }
}
