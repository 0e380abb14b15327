//! One step as a call of the production client.

use bytes::Bytes;
use client::error::Error as ClientError;
use client::session::Session;
use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::MknodData;
use wire::nfs3::{NfsStat3, Sattr3, StableHow, access};

use super::step::Step;
use crate::fileset::build::SYMLINK_DATA;
use crate::fileset::{Entry, Name};

/// Bytes of a reply to READDIR and READDIRPLUS: what holds a directory of the set, and what Linux
/// requested in the time of the benchmarks.
const LISTING_BYTES: u32 = 4 << 10;

/// Data that an operation has moved.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Moved {
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

/// Makes the call. `data` is at least as long as any WRITE.
///
/// # Errors
/// No reply, or a status that was not expected.
pub(super) async fn perform(
    session: &Session,
    step: &Step,
    data: &Bytes,
) -> Result<Moved, ClientError> {
    let mut moved = Moved::default();
    match step {
        Step::Null => drop(session.null().await?),
        Step::Getattr(file) => drop(session.getattr(*file).await?),
        Step::Setattr(file) => drop(session.setattr(*file, Sattr3::of_mode(0o600), None).await?),
        Step::Lookup { of, is_there } => {
            found(session.lookup(of.dir, of.label.as_bytes()).await, *is_there)?;
        }
        Step::Access(file) => drop(session.access(*file, access::ALL).await?),
        Step::Readlink(link) => drop(session.readlink(*link).await?),
        Step::Read(range) => {
            let bytes = range.bytes.min(session.sizes().read_bytes_max);
            let read = session.read(range.file, range.offset, bytes).await?;
            moved.read_bytes = read.data.len() as u64;
        }
        Step::Write { to, is_stable } => {
            let bytes = to.bytes.min(session.sizes().write_bytes_max) as usize;
            let stable = if *is_stable { StableHow::FileSync } else { StableHow::Unstable };
            let data = data.slice(..bytes.min(data.len()));
            let written = session.write(to.file, to.offset, data, stable).await?;
            moved.written_bytes = u64::from(written.reply.count);
        }
        Step::Create(entry) => {
            let Name { dir, label } = entry.name;
            let how = CreateHow::Unchecked(Sattr3::of_mode(0o600));
            made(session.create(dir, label.as_bytes(), how).await, entry)?;
        }
        Step::Mkdir(entry) => {
            let Name { dir, label } = entry.name;
            made(session.mkdir(dir, label.as_bytes(), Sattr3::of_mode(0o700)).await, entry)?;
        }
        Step::Symlink(entry) => {
            let Name { dir, label } = entry.name;
            let (name, attributes) = (label.as_bytes(), Sattr3::default());
            made(session.symlink(dir, name, attributes, SYMLINK_DATA).await, entry)?;
        }
        Step::Mknod(entry) => {
            let Name { dir, label } = entry.name;
            let what = MknodData::Fifo(Sattr3::of_mode(0o600));
            made(session.mknod(dir, label.as_bytes(), what).await, entry)?;
        }
        Step::Remove(entry) => {
            let Name { dir, label } = entry.name;
            found(session.remove(dir, label.as_bytes()).await, entry.is_there)?;
        }
        Step::Rmdir(entry) => {
            let Name { dir, label } = entry.name;
            found(session.rmdir(dir, label.as_bytes()).await, entry.is_there)?;
        }
        Step::Rename { from, to } => {
            let way = |entry: &Entry| (entry.name.dir, entry.name.label);
            let ((from_dir, from_label), (to_dir, to_label)) = (way(from), way(to));
            let (old, new) = ((from_dir, from_label.as_bytes()), (to_dir, to_label.as_bytes()));
            found(session.rename(old, new).await, from.is_there)?;
        }
        Step::Link { file, to } => {
            let Name { dir, label } = to.name;
            made(session.link(*file, dir, label.as_bytes()).await, to)?;
        }
        Step::Readdir(dir) => drop(session.readdir(*dir, 0, [0; 8], LISTING_BYTES).await?),
        Step::Readdirplus(dir) => {
            session.readdirplus(*dir, 0, [0; 8], LISTING_BYTES, LISTING_BYTES).await?;
        }
        Step::Fsstat(root) => drop(session.fsstat(*root).await?),
        Step::Fsinfo(root) => drop(session.fsinfo(*root).await?),
        Step::Pathconf(root) => drop(session.pathconf(*root).await?),
        Step::Commit(file) => drop(session.commit(*file, 0, 0).await?),
    }
    Ok(moved)
}

/// That there is no such name is the answer where there is none.
fn found<T>(answer: Result<T, ClientError>, is_there: bool) -> Result<(), ClientError> {
    match answer {
        Err(error) if !is_there && error.status() == Some(NfsStat3::NoEnt) => Ok(()),
        answer => answer.map(drop),
    }
}

/// That there is such a name already is the answer where there is one.
fn made<T>(answer: Result<T, ClientError>, entry: &Entry) -> Result<(), ClientError> {
    match answer {
        Err(error) if entry.is_there && error.status() == Some(NfsStat3::Exist) => Ok(()),
        answer => answer.map(drop),
    }
}
