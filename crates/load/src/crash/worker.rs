//! One caller: its directory, its calls, and what was answered to them.

use bytes::Bytes;
use client::error::Error as ClientError;
use client::session::Session;
use fastrand::Rng;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NewObject, NfsTime, Sattr3, SetTime};

use super::choose;
use super::content::{Generation, bytes};
use super::loss::Lost;
use super::object::Object;
use super::operation::{How, Key, Operation};
use super::options::Options;
use super::retransmit::{Sent, Sents};
use super::round::Round;
use super::tree::{Answer, Tree};
use crate::scratch::directory;

/// So many refused calls in a round are enough to see that a server does not let us.
const REFUSED_MAX: u64 = 100;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Worker {
    number: u32,
    /// Directories so far: after a loss there is a new one.
    pub(super) life: u32,
    pub(super) tree: Option<Tree>,
    rng: Rng,
    generation: Generation,
    /// The last calls of this round.
    pub(super) sent: Sents,
    pub(super) tally: Round,
}

impl Worker {
    pub(super) fn new(number: u32, rng: Rng) -> Self {
        let (sent, tally) = (Sents::default(), Round::default());
        Self { number, life: 0, tree: None, rng, generation: 0, sent, tally }
    }

    /// Its directory's name.
    pub(super) fn name(&self) -> String {
        format!("client{}-{}", self.number, self.life)
    }

    /// Makes the directory, if there is none.
    pub(super) async fn enter(
        &mut self,
        session: &Session,
        parent: FileHandle,
    ) -> Result<(), ClientError> {
        if self.tree.is_none() {
            self.life += 1;
            let dir = directory(session, parent, self.name()).await?;
            self.tree = Some(Tree::new(dir));
        }
        Ok(())
    }

    /// What it has counted since the last time.
    pub(super) fn take_tally(&mut self) -> Round {
        std::mem::take(&mut self.tally)
    }

    /// Calls without end, until the connection breaks, which it gives; or until too many are
    /// refused.
    pub(super) async fn work(
        &mut self,
        session: &Session,
        options: &Options,
    ) -> Option<ClientError> {
        self.sent = Sents::default();
        let tree = self.tree.as_mut()?;
        let mut calls = FuturesUnordered::new();
        loop {
            while calls.len() < options.outstanding as usize {
                let generation = self.generation + 1;
                let Some(chosen) = choose::next(tree, &mut self.rng, generation, options) else {
                    break;
                };
                let Some(handles) = handles(tree, &chosen) else { break };
                self.generation = generation;
                self.tally.open += 1;
                let sent = Sent::new(tree.begin(chosen), handles);
                self.sent.push(sent.clone());
                calls.push(call(session, sent));
            }
            match calls.next().await {
                None => return None,
                Some((Sent { ticket, .. }, Ok((answer, data)))) => {
                    self.tally.open -= 1;
                    let answered = &mut self.tally.answered;
                    *answered.entry(ticket.operation.procedure()).or_default() += 1;
                    let wrong = wrong(tree, &ticket.operation, &data);
                    wrong.into_iter().for_each(|lost| self.tally.lose(lost));
                    tree.answered(&ticket, answer);
                    self.sent.answered(&ticket, answer);
                }
                Some((Sent { ticket, .. }, Err(error))) if error.status().is_some() => {
                    self.sent.refused(&ticket);
                    self.tally.refused += 1;
                    self.tally.refusal.get_or_insert_with(|| error.to_string());
                    if self.tally.refused > REFUSED_MAX {
                        return None;
                    }
                }
                Some((_, Err(error))) => return Some(error),
            }
        }
    }
}

/// What is wrong with bytes that were read while nobody wrote there.
fn wrong(tree: &Tree, operation: &Operation, data: &[u8]) -> Vec<Lost> {
    let Operation::Read { file, offset, .. } = operation else { return Vec::new() };
    let content = tree.object(*file).and_then(Object::content);
    let lost = content.map(|content| content.compare(*offset, data)).unwrap_or_default();
    lost.into_iter()
        .map(|lost| lost.of(&format!("a READ before the kill, of file {file}")))
        .collect()
}

/// What was answered; of a READ also the bytes.
async fn call(session: &Session, sent: Sent) -> (Sent, Result<(Answer, Bytes), ClientError>) {
    sent.has_xid(session.rpc().next_xid());
    let answer = match sent.ticket.operation {
        Operation::Read { offset, bytes, .. } => {
            let read = session.read(sent.handles.0, offset, bytes).await;
            read.map(|read| (Answer::Done, read.data))
        }
        ref operation => {
            let answer = perform(session, operation, sent.handles).await;
            answer.map(|answer| (answer, Bytes::new()))
        }
    };
    (sent, answer)
}

/// The handles that a call needs: of the object or the directory, and of the second directory.
fn handles(tree: &Tree, operation: &Operation) -> Option<(FileHandle, FileHandle)> {
    let of = |number| tree.object(number)?.handle;
    let dir = |key: &Key| of(key.dir);
    match operation {
        Operation::Write { file, .. }
        | Operation::Commit { file, .. }
        | Operation::Read { file, .. }
        | Operation::Truncate { file, .. } => of(*file).map(|file| (file, file)),
        Operation::SetMode { object, .. } | Operation::SetTime { object, .. } => {
            of(*object).map(|object| (object, object))
        }
        Operation::Link { file, name } => Some((of(*file)?, dir(name)?)),
        Operation::Rename { from, to } => Some((dir(from)?, dir(to)?)),
        _ => {
            let dir = operation.keys().next().as_ref().and_then(dir)?;
            Some((dir, dir))
        }
    }
}

pub(super) async fn perform(
    session: &Session,
    operation: &Operation,
    (first, second): (FileHandle, FileHandle),
) -> Result<Answer, ClientError> {
    match operation {
        Operation::Write { offset, bytes: count, generation, stable, .. } => {
            let data = Bytes::from(bytes(*generation, *offset, *count as usize));
            let reply = session.write(first, *offset, data, *stable).await?.reply;
            let (count, committed, verifier) = (reply.count, reply.committed, reply.verf);
            Ok(Answer::Written { count, committed, verifier })
        }
        Operation::Commit { offset, bytes, .. } => {
            let verifier = session.commit(first, *offset, *bytes).await?.reply.verf;
            Ok(Answer::Committed { verifier })
        }
        Operation::Read { offset, bytes, .. } => {
            session.read(first, *offset, *bytes).await?;
            Ok(Answer::Done)
        }
        Operation::Truncate { size, .. } => {
            set(session, first, Sattr3 { size: Some(*size), ..Sattr3::default() }).await
        }
        Operation::SetMode { mode, .. } => set(session, first, Sattr3::of_mode(*mode)).await,
        Operation::SetTime { seconds, .. } => {
            let mtime = SetTime::ClientTime(NfsTime { seconds: *seconds, nseconds: 0 });
            set(session, first, Sattr3 { mtime, ..Sattr3::default() }).await
        }
        Operation::Link { name, .. } => {
            session.link(first, second, name.text().as_bytes()).await?;
            Ok(Answer::Done)
        }
        Operation::Remove { name } => {
            session.remove(first, name.text().as_bytes()).await?;
            Ok(Answer::Done)
        }
        Operation::RemoveDir { name } => {
            session.rmdir(first, name.text().as_bytes()).await?;
            Ok(Answer::Done)
        }
        Operation::Rename { from, to } => {
            let (from, to) = (from.text(), to.text());
            session.rename((first, from.as_bytes()), (second, to.as_bytes())).await?;
            Ok(Answer::Done)
        }
        Operation::Create { name, .. }
        | Operation::MakeDir { name, .. }
        | Operation::Symlink { name, .. } => {
            let made = make(session, first, operation, name.text().as_bytes()).await?;
            found(session, made, first, name.text().as_bytes()).await
        }
    }
}

async fn set(
    session: &Session,
    object: FileHandle,
    attributes: Sattr3,
) -> Result<Answer, ClientError> {
    session.setattr(object, attributes, None).await?;
    Ok(Answer::Done)
}

async fn make(
    session: &Session,
    dir: FileHandle,
    operation: &Operation,
    name: &[u8],
) -> Result<NewObject, ClientError> {
    match operation {
        Operation::MakeDir { mode, .. } => session.mkdir(dir, name, Sattr3::of_mode(*mode)).await,
        Operation::Symlink { target, .. } => {
            session.symlink(dir, name, Sattr3::default(), target.as_bytes()).await
        }
        Operation::Create { how: How::Guarded, mode, .. } => {
            session.create(dir, name, CreateHow::Guarded(Sattr3::of_mode(*mode))).await
        }
        Operation::Create { how: How::Exclusive, mode, .. } => {
            let mut verifier = [0; 8];
            let name = &name[..name.len().min(4)];
            verifier[..name.len()].copy_from_slice(name);
            verifier[4..].copy_from_slice(&mode.to_be_bytes());
            session.create(dir, name, CreateHow::Exclusive(verifier)).await
        }
        Operation::Create { mode, .. } => {
            session.create(dir, name, CreateHow::Unchecked(Sattr3::of_mode(*mode))).await
        }
        _ => unreachable!("it makes nothing"),
    }
}

/// What was made, as the server tells or a LOOKUP finds it.
async fn found(
    session: &Session,
    made: NewObject,
    dir: FileHandle,
    name: &[u8],
) -> Result<Answer, ClientError> {
    if let (Some(handle), Some(attributes)) = (made.obj, made.obj_attributes) {
        return Ok(Answer::Made { handle, fileid: Some(attributes.fileid) });
    }
    let found = session.lookup(dir, name).await?;
    let fileid = found.obj_attributes.map(|attributes| attributes.fileid);
    Ok(Answer::Made { handle: found.object, fileid })
}
