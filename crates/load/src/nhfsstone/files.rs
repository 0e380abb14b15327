//! The files of a task: 40 that are read and written, and names that come and go beside them.

use bytes::Bytes;
use client::error::Error as ClientError;
use client::session::Session;
use client::walk::Walk;
use fastrand::Rng;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::MknodData;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, StableHow, access};

use crate::error::Error;
use crate::fileset::build::SYMLINK_DATA;
use crate::fileset::names::{Names, Taken};
use crate::mix::Operation;
use crate::scratch::{directory, file, handle};
use crate::seqwrite::pattern;
use crate::space::{ALLOCATED_BYTES, Need};

/// Files of a task.
const FILES: u32 = 40;

/// Of a READ and a WRITE.
const BLOCK_BYTES: u64 = 8 << 10;

/// Blocks of a large file.
const LARGE_BLOCKS: u64 = 32;

/// Symbolic links that stay.
const SYMLINKS: usize = 10;

/// Bytes of a reply to READDIR, as long as a block.
const LISTING_BYTES: u32 = 8 << 10;

/// Pages of a directory that are read, at most.
const PAGES_MAX: usize = 1_000;

/// One call that was answered.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) operation: Operation,
    pub(super) took: Nanos,
    /// The answer, when it was not the expected one.
    pub(super) failure: Option<String>,
}

/// What an operation works with.
pub(super) struct Work<'a> {
    pub(super) clock: &'a Clock,
    pub(super) session: &'a Session,
    pub(super) is_stable: bool,
    /// What the opening of a file is made of: what the mix still lacks.
    pub(super) looks_up: bool,
    pub(super) asks_attributes: bool,
    /// From when its first call counts.
    pub(super) due: Instant,
    pub(super) calls: &'a mut Vec<Call>,
}

impl Work<'_> {
    /// Times a call; an error status is an answer.
    async fn call<T>(
        &mut self,
        operation: Operation,
        call: impl Future<Output = Result<T, ClientError>>,
        expected: Option<NfsStat3>,
    ) -> Result<Option<T>, ClientError> {
        let begin = if self.calls.is_empty() { self.due } else { self.clock.now() };
        let (given, failure) = match call.await {
            Ok(given) => (Some(given), None),
            Err(error) if error.status().is_some() && error.status() == expected => (None, None),
            Err(error) if error.status().is_some() => (None, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        let took = self.clock.now().since(begin);
        self.calls.push(Call { operation, took, failure });
        Ok(given)
    }
}

/// A place where names come and go: its names, and how they are written.
#[derive(Clone, Debug)]
struct Pool {
    dir: FileHandle,
    names: Names,
    write: fn(u32) -> String,
}

/// See the module's head.
#[derive(Clone, Debug)]
pub(super) struct Files {
    dir: FileHandle,
    files: Vec<(FileHandle, u64)>,
    symlinks: Vec<FileHandle>,
    /// Files that are created, and links, symbolic links and pipes; all are removed by REMOVE.
    made: [Pool; 3],
    subdirs: Pool,
    /// Which of the two names the renamed file has.
    renamed: bool,
    written: Option<FileHandle>,
    data: Bytes,
}

/// So long that no client of its time had it in its cache of names.
fn file_name(number: u32) -> String {
    format!("{number:03}abcdefghijklmn")
}

const RENAMED: [&[u8]; 2] = [b"rename1", b"rename2"];

/// Half of the files have up to 3 KiB, most others up to six blocks, and three of a hundred 32.
fn length(random: &mut Rng) -> u64 {
    let drawn = random.u64(..100);
    match drawn {
        0..50 => (drawn % 3 + 1) << 10,
        50..97 => (drawn % 6 + 1) * BLOCK_BYTES,
        _ => LARGE_BLOCKS * BLOCK_BYTES,
    }
}

/// Those of a task's files, which are the first that it draws.
fn lengths(random: &mut Rng) -> Vec<u64> {
    (0..FILES).map(|_| length(random)).collect()
}

/// What the files of a task need that draws from this.
pub(super) fn need(random: &mut Rng) -> Need {
    let bytes = lengths(random).into_iter().map(|bytes| bytes.next_multiple_of(ALLOCATED_BYTES));
    // Directories, the file that is renamed, symbolic links, and names that come and go.
    let others = 5 + SYMLINKS as u64 + u64::from(FILES);
    let inodes = u64::from(FILES) + others;
    Need { bytes: bytes.sum::<u64>() + others * ALLOCATED_BYTES, inodes }
}

impl Files {
    /// Makes those of task `number`.
    ///
    /// # Errors
    /// Any call's.
    pub(super) async fn make(
        session: &Session,
        root: FileHandle,
        number: usize,
        random: &mut Rng,
    ) -> Result<Self, Error> {
        let dir = directory(session, root, &format!("testdir{number}")).await?;
        let subdir = directory(session, dir, "dir").await?;
        let sym = directory(session, dir, "sym").await?;
        let lin = directory(session, dir, "lin").await?;
        file(session, dir, RENAMED[0]).await?;
        let data = pattern(usize::try_from(BLOCK_BYTES).unwrap_or(0));
        let lengths = lengths(random);
        let files = (0..)
            .zip(lengths)
            .map(|(number, length)| written(session, dir, file_name(number), length, data.clone()));
        let files = each(files).await?;
        let symlinks = each((0..SYMLINKS).map(|number| async move {
            let name = format!("to{number:03}");
            let attributes = Sattr3::default();
            let made = session.symlink(sym, name.as_bytes(), attributes, SYMLINK_DATA).await?;
            Ok(handle(session, made, sym, name.as_bytes()).await?)
        }))
        .await?;
        // Every second one of the others is there at the beginning.
        let others = (0..FILES).step_by(2).map(|number| async move {
            file(session, dir, created_name(number)).await.map(drop).map_err(Error::from)
        });
        each(others).await?;
        let pool = |dir, count, write| Pool { dir, names: Names::new(count), write };
        Ok(Self {
            dir,
            files,
            symlinks,
            made: [
                pool(dir, FILES as usize, created_name),
                pool(sym, 0, below_name),
                pool(lin, 0, below_name),
            ],
            subdirs: pool(subdir, 0, below_name),
            renamed: false,
            written: None,
            data,
        })
    }

    /// Does an operation, with as many calls as it takes.
    ///
    /// # Errors
    /// A call without an answer.
    pub(super) async fn perform(
        &mut self,
        operation: Operation,
        work: &mut Work<'_>,
        random: &mut Rng,
    ) -> Result<(), ClientError> {
        let session = work.session.clone();
        let number = random.usize(..self.files.len());
        let (file, bytes) = self.files[number];
        match operation {
            Operation::Null => drop(work.call(operation, session.null(), None).await?),
            Operation::Getattr => {
                work.call(operation, session.getattr(file), None).await?;
            }
            Operation::Setattr => {
                work.call(operation, session.setattr(file, Sattr3::of_mode(0o666), None), None)
                    .await?;
            }
            Operation::Lookup => {
                let name = file_name(u32::try_from(number).unwrap_or(0));
                work.call(operation, session.lookup(self.dir, name.as_bytes()), None).await?;
            }
            Operation::Readlink => {
                let link = self.symlinks[random.usize(..self.symlinks.len())];
                work.call(operation, session.readlink(link), None).await?;
            }
            Operation::Read => self.read(file, bytes, work).await?,
            Operation::Write => self.write(number, work).await?,
            Operation::Create | Operation::Symlink | Operation::Mknod | Operation::Link => {
                self.make_one(operation, file, work, random).await?;
            }
            Operation::Remove => self.remove(work, random).await?,
            Operation::Rename => {
                let (from, to) = (usize::from(self.renamed), usize::from(!self.renamed));
                let names = ((self.dir, RENAMED[from]), (self.dir, RENAMED[to]));
                let renamed = work.call(operation, session.rename(names.0, names.1), None).await?;
                self.renamed ^= renamed.is_some();
            }
            Operation::Mkdir | Operation::Rmdir => self.subdir(operation, work, random).await?,
            Operation::Readdir | Operation::Readdirplus => self.list(operation, work).await?,
            Operation::Access => {
                work.call(operation, session.access(file, access::ALL), None).await?;
            }
            Operation::Fsstat => drop(work.call(operation, session.fsstat(self.dir), None).await?),
            Operation::Fsinfo => drop(work.call(operation, session.fsinfo(self.dir), None).await?),
            Operation::Pathconf => {
                work.call(operation, session.pathconf(self.dir), None).await?;
            }
            Operation::Commit => {
                let written = self.written.unwrap_or(file);
                work.call(operation, session.commit(written, 0, 0), None).await?;
            }
        }
        Ok(())
    }

    /// Opens it, which is a GETATTR where its name is known, and reads all of it.
    async fn read(
        &self,
        file: FileHandle,
        bytes: u64,
        work: &mut Work<'_>,
    ) -> Result<(), ClientError> {
        let session = work.session.clone();
        if work.asks_attributes {
            work.call(Operation::Getattr, session.getattr(file), None).await?;
        }
        for (offset, _) in blocks(bytes) {
            let count = session.sizes().read_bytes_max.min(u32::try_from(BLOCK_BYTES).unwrap_or(0));
            work.call(Operation::Read, session.read(file, offset, count), None).await?;
        }
        Ok(())
    }

    /// Opens it, and writes all of it anew.
    async fn write(&mut self, number: usize, work: &mut Work<'_>) -> Result<(), ClientError> {
        let session = work.session.clone();
        let (file, bytes) = self.files[number];
        if work.looks_up {
            let name = file_name(u32::try_from(number).unwrap_or(0));
            work.call(Operation::Lookup, session.lookup(self.dir, name.as_bytes()), None).await?;
        }
        if work.asks_attributes {
            work.call(Operation::Getattr, session.getattr(file), None).await?;
        }
        let stable = if work.is_stable { StableHow::FileSync } else { StableHow::Unstable };
        for (offset, bytes) in blocks(bytes) {
            let data = piece(&session, &self.data, bytes);
            work.call(Operation::Write, session.write(file, offset, data, stable), None).await?;
        }
        self.written = Some(file);
        Ok(())
    }

    async fn make_one(
        &mut self,
        operation: Operation,
        file: FileHandle,
        work: &mut Work<'_>,
        random: &mut Rng,
    ) -> Result<(), ClientError> {
        let session = work.session.clone();
        let pool = match operation {
            Operation::Create => &mut self.made[0],
            Operation::Link => &mut self.made[2],
            _ => &mut self.made[1],
        };
        let Some(Taken { number, is_there }) = pool.names.take_absent(random) else {
            return Ok(());
        };
        let (dir, name) = (pool.dir, (pool.write)(number));
        let name = name.as_bytes();
        let exists = is_there.then_some(NfsStat3::Exist);
        let made = match operation {
            Operation::Create => {
                let how = CreateHow::Unchecked(Sattr3::of_mode(0o600));
                work.call(operation, session.create(dir, name, how), exists).await?.is_some()
            }
            Operation::Link => {
                work.call(operation, session.link(file, dir, name), exists).await?.is_some()
            }
            Operation::Mknod => {
                let fifo = MknodData::Fifo(Sattr3::of_mode(0o600));
                work.call(operation, session.mknod(dir, name, fifo), exists).await?.is_some()
            }
            _ => {
                let made = session.symlink(dir, name, Sattr3::default(), SYMLINK_DATA);
                work.call(operation, made, exists).await?.is_some()
            }
        };
        pool.names.settle(number, made || is_there);
        Ok(())
    }

    /// Removes one of those of which there are most.
    async fn remove(&mut self, work: &mut Work<'_>, random: &mut Rng) -> Result<(), ClientError> {
        let session = work.session.clone();
        let [created, links, symlinks] = &mut self.made;
        let first = if created.names.there() >= links.names.there() { created } else { links };
        let pool = if first.names.there() >= symlinks.names.there() { first } else { symlinks };
        let Some(Taken { number, is_there }) = pool.names.take_there(random) else {
            return Ok(());
        };
        let name = (pool.write)(number);
        let missing = (!is_there).then_some(NfsStat3::NoEnt);
        let removed = session.remove(pool.dir, name.as_bytes());
        let removed = work.call(Operation::Remove, removed, missing).await?;
        pool.names.settle(number, is_there && removed.is_none());
        Ok(())
    }

    async fn subdir(
        &mut self,
        operation: Operation,
        work: &mut Work<'_>,
        random: &mut Rng,
    ) -> Result<(), ClientError> {
        let session = work.session.clone();
        let pool = &mut self.subdirs;
        let is_made = operation == Operation::Mkdir;
        let taken = match is_made {
            true => pool.names.take_absent(random),
            false => pool.names.take_there(random),
        };
        let Some(Taken { number, is_there }) = taken else { return Ok(()) };
        let name = (pool.write)(number);
        let is_there = if is_made {
            let made = session.mkdir(pool.dir, name.as_bytes(), Sattr3::of_mode(0o700));
            let exists = is_there.then_some(NfsStat3::Exist);
            work.call(operation, made, exists).await?.is_some() || is_there
        } else {
            let removed = session.rmdir(pool.dir, name.as_bytes());
            let missing = (!is_there).then_some(NfsStat3::NoEnt);
            work.call(operation, removed, missing).await?.is_none() && is_there
        };
        pool.names.settle(number, is_there);
        Ok(())
    }

    /// All of the directory, page by page.
    async fn list(&self, operation: Operation, work: &mut Work<'_>) -> Result<(), ClientError> {
        let session = work.session.clone();
        let (mut cookie, mut verifier) = (0, [0; 8]);
        let mut walk = Walk::default();
        for _ in 0..PAGES_MAX {
            let bytes = LISTING_BYTES;
            let page = match operation {
                Operation::Readdirplus => {
                    let page = session.readdirplus(self.dir, cookie, verifier, bytes, bytes);
                    work.call(operation, page, None).await?
                }
                _ => {
                    let page = session.readdir(self.dir, cookie, verifier, bytes);
                    work.call(operation, page, None).await?
                }
            };
            let Some(page) = page else { break };
            walk.page(cookie, &page).map_err(|what| session.nonsense(operation.name(), what))?;
            let last = page.entries.last().map(|entry| entry.cookie);
            match last.filter(|_| !page.eof) {
                Some(last) => (cookie, verifier) = (last, page.cookieverf),
                None => break,
            }
        }
        Ok(())
    }
}

fn created_name(number: u32) -> String {
    file_name(number.saturating_add(FILES))
}

fn below_name(number: u32) -> String {
    format!("{number:03}")
}

/// A file with its bytes, all stable.
async fn written(
    session: &Session,
    dir: FileHandle,
    name: String,
    length: u64,
    data: Bytes,
) -> Result<(FileHandle, u64), Error> {
    let made = file(session, dir, name).await?;
    for (offset, bytes) in blocks(length) {
        let data = piece(session, &data, bytes);
        session.write(made, offset, data, StableHow::FileSync).await?;
    }
    Ok((made, length))
}

/// Offsets and lengths of the calls that a file takes.
fn blocks(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let offsets = (0..bytes).step_by(usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX));
    offsets.map(move |offset| (offset, BLOCK_BYTES.min(bytes - offset)))
}

/// As much of the data as a call may have.
fn piece(session: &Session, data: &Bytes, bytes: u64) -> Bytes {
    let most = (session.sizes().write_bytes_max as usize).min(data.len());
    data.slice(..usize::try_from(bytes).unwrap_or(usize::MAX).min(most))
}

/// So many calls at a time while files are made.
const AT_ONCE: usize = 8;

/// Does the work for all of these, a few at a time.
async fn each<T, F: Future<Output = Result<T, Error>>>(
    work: impl Iterator<Item = F>,
) -> Result<Vec<T>, Error> {
    iter(work).buffered(AT_ONCE).try_collect().await
}
