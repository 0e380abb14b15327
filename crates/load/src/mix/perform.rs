//! One step as a call of the production client.

use bytes::Bytes;
use client::error::Error as ClientError;
use client::session::Session;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{NfsStat3, Sattr3, StableHow};

use super::step::Step;

/// Bytes of a reply to READDIR and READDIRPLUS: what holds a directory of the set, and what Linux
/// asked for in the time of the benchmarks.
const LISTING_BYTES: u32 = 4 << 10;

/// READ, LOOKUP, MODIFY, EXTEND, DELETE and EXECUTE (RFC 1813, section 3.3.4).
const ACCESS_ALL: u32 = 0x3f;

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
        Step::Setattr(file) => {
            let attributes = Sattr3 { mode: Some(0o600), ..Sattr3::default() };
            session.setattr(*file, attributes, None).await?;
        }
        Step::Lookup { of, .. } => {
            expecting_none(session.lookup(of.dir, of.name.as_bytes()).await)?;
        }
        Step::Access(file) => drop(session.access(*file, ACCESS_ALL).await?),
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
        Step::Create { of, .. } => {
            let attributes = Sattr3 { mode: Some(0o600), ..Sattr3::default() };
            let how = CreateHow::Unchecked(attributes);
            session.create(of.dir, of.name.as_bytes(), how).await?;
        }
        Step::Remove { of, .. } => {
            expecting_none(session.remove(of.dir, of.name.as_bytes()).await)?;
        }
        Step::Readdir(dir) => drop(session.readdir(*dir, 0, [0; 8], LISTING_BYTES).await?),
        Step::Readdirplus(dir) => {
            session.readdirplus(*dir, 0, [0; 8], LISTING_BYTES, LISTING_BYTES).await?;
        }
        Step::Fsstat(root) => drop(session.fsstat(*root).await?),
        Step::Fsinfo(root) => drop(session.fsinfo(*root).await?),
        Step::Commit(file) => drop(session.commit(*file, 0, 0).await?),
    }
    Ok(moved)
}

/// That there is no such name is an answer like any other.
fn expecting_none<T>(answer: Result<T, ClientError>) -> Result<(), ClientError> {
    match answer {
        Err(error) if error.status() == Some(NfsStat3::NoEnt) => Ok(()),
        answer => answer.map(drop),
    }
}
