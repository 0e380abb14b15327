//! What an answer means for the model, and whether it may be.
//!
//! A client's folders are its own, its names are never used twice, and what depends on order is
//! not in progress at the same time. So any status but success is a violation, and which one shows
//! in how often the call was sent: EXIST, NOENT and the like after a retransmission mean that the
//! call was executed before.

use std::ops::Range;

use wire::nfs3::{
    FileHandle, NewObject, NfsStat3, commit, create, getattr, link, lookup, mkdir, mknod, read,
    remove, rename, rmdir, setattr, symlink, write,
};
use wire::nfs3::{PostOpFh, StableHow};
use wire::xdr::{Decode, Reader};

use super::choose::Chooser;
use super::model::{Dirty, Kind, Model, Object};
use super::operation::{Id, Name, Operation};
use super::tally::{Tally, Violation};
use super::verifiers::Verifiers;
use crate::nfs::Results;

/// A violation, in words.
pub(super) type Complaint = (Violation, String);

/// How an answer was.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    /// To be called once more, as another call.
    Later,
    /// To be called next, with the locks that the model holds for it.
    Then(Operation),
}

/// Everything that an answer may change.
#[derive(Debug)]
pub(super) struct World<'w> {
    pub(super) model: &'w mut Model,
    pub(super) chooser: &'w mut Chooser,
    pub(super) tally: &'w mut Tally,
    pub(super) verifiers: &'w Verifiers,
    /// The process that answered.
    pub(super) generation: u64,
    /// The call was sent more than once.
    pub(super) retransmitted: bool,
}

impl World<'_> {
    /// Takes the results of a call, `r` standing behind the header.
    pub(super) fn answer(
        &mut self,
        operation: &Operation,
        r: &mut Reader<'_>,
    ) -> Result<Outcome, Complaint> {
        let status = Reader::clone(r).u32().ok().and_then(NfsStat3::from_code);
        if status == Some(NfsStat3::Jukebox) {
            self.tally.jukebox += 1;
            return Ok(Outcome::Later);
        }
        match operation {
            Operation::Create { id, name, .. } => self.made::<create::Reply>(*id, name, r),
            Operation::Mkdir { id, name } => self.made::<mkdir::Reply>(*id, name, r),
            Operation::Symlink { id, name } => self.made::<symlink::Reply>(*id, name, r),
            Operation::Mkfifo { id, name } => self.made::<mknod::Reply>(*id, name, r),
            Operation::Link { id, name } => {
                let outcome = self.named::<link::Reply, _>(r);
                // Its data may be locked by another call that is still on its way.
                let object = &mut self.model.objects[*id];
                object.naming = false;
                object.names.push(name.clone());
                outcome
            }
            Operation::Remove { id, name } => {
                let outcome = self.named::<remove::Reply, _>(r);
                self.gone(*id, name);
                outcome
            }
            Operation::Rmdir { id, name } => {
                let outcome = self.named::<rmdir::Reply, _>(r);
                self.gone(*id, name);
                outcome
            }
            Operation::Rename { id, from, to, replaced } => {
                let outcome = self.named::<rename::Reply, _>(r);
                if let Some(replaced) = replaced {
                    self.gone(*replaced, to);
                }
                let object = &mut self.model.objects[*id];
                object.naming = false;
                object.names.retain(|name| name != from);
                object.names.push(to.clone());
                outcome
            }
            Operation::Write { id, range, data, stable, again } => {
                let file = &mut self.model.objects[*id];
                file.release(range);
                let ok = value::<write::Reply, _>(r).inspect_err(|_| {
                    file.lost.extend(again.then(|| range.clone()));
                })?;
                file.write(range.start, data);
                self.written(*id, range, *stable, *again, &ok)
            }
            Operation::Commit { id, upto } => self.committed(*id, *upto, r),
            Operation::Truncate { id, size } => {
                self.model.objects[*id].alone = false;
                value::<setattr::Reply, _>(r)?;
                self.model.objects[*id].truncate(*size);
                Ok(Outcome::Done)
            }
            Operation::GuardTime { id } => match value::<getattr::Reply, _>(r) {
                Ok(ok) => {
                    let guard = ok.obj_attributes.ctime;
                    Ok(Outcome::Then(Operation::Chmod { id: *id, guard }))
                }
                Err(complaint) => {
                    self.unlocked(*id);
                    Err(complaint)
                }
            },
            Operation::Chmod { id, .. } => {
                self.unlocked(*id);
                self.named::<setattr::Reply, _>(r)
            }
            Operation::Read { id, range } => self.read(*id, range, r),
            Operation::Lookup { id, name } => self.found(*id, name, r),
            Operation::Getattr { id } => self.attributes(*id, r),
            Operation::GetattrRemoved { handle } => self.stale(handle, r),
        }
    }

    fn unlocked(&mut self, id: Id) -> &mut Object {
        let object = &mut self.model.objects[id];
        object.naming = false;
        object.alone = false;
        object
    }

    fn made<'a, R>(&mut self, id: Id, name: &Name, r: &mut Reader<'a>) -> Result<Outcome, Complaint>
    where
        R: Decode<'a> + Into<Result<NewObject, create::ReplyFail>>,
    {
        // Whether by this call or by its first execution, the object is there.
        let object = self.unlocked(id);
        object.names.push(name.clone());
        let decoded = R::decode(r).map_err(undecodable)?;
        let obj: PostOpFh = match decoded.into() {
            Ok(new) => new.obj,
            Err(failure) => return Err(self.failure(failure.status)),
        };
        self.model.objects[id].handle = obj;
        Ok(Outcome::Done)
    }

    /// The results of what must not be executed twice.
    fn named<'a, R, T>(&mut self, r: &mut Reader<'a>) -> Result<Outcome, Complaint>
    where
        R: Decode<'a> + Results<T>,
    {
        match R::decode(r).map_err(undecodable)?.results() {
            Ok(_) => Ok(Outcome::Done),
            Err(status) => Err(self.failure(status)),
        }
    }

    fn failure(&self, status: NfsStat3) -> Complaint {
        use NfsStat3 as S;
        let twice = matches!(status, S::Exist | S::NoEnt | S::NotEmpty | S::NotSync | S::Stale);
        match twice && self.retransmitted {
            true => (Violation::ExecutedTwice, status.to_string()),
            false => complaint(status),
        }
    }

    fn gone(&mut self, id: Id, name: &Name) {
        let object = self.unlocked(id);
        object.names.retain(|other| other != name);
        if !object.is_there()
            && let Some(handle) = object.handle
        {
            object.content = Vec::new();
            self.chooser.removed.push(handle);
        }
    }

    fn written(
        &mut self,
        id: Id,
        range: &Range<usize>,
        stable: StableHow,
        again: bool,
        ok: &write::ReplyOk,
    ) -> Result<Outcome, Complaint> {
        self.tally.written_bytes += range.len() as u64;
        let file = &mut self.model.objects[id];
        self.model.order += 1;
        if ok.committed == StableHow::Unstable {
            let (range, order) = (range.clone(), self.model.order);
            file.dirty.push(Dirty { range, verifier: ok.verf, order });
        }
        self.verifiers.check(self.generation, ok.verf)?;
        let names = &file.names;
        if ok.committed < stable {
            let what = format!("{names:?}: {} for {stable}", ok.committed);
            return Err((Violation::LessStable, what));
        }
        if ok.count as usize != range.len() {
            let what =
                format!("{names:?}: {} of {} written, again: {again}", ok.count, range.len());
            return Err((Violation::Unexpected, what));
        }
        Ok(Outcome::Done)
    }

    fn committed(&mut self, id: Id, upto: u64, r: &mut Reader<'_>) -> Result<Outcome, Complaint> {
        self.model.objects[id].committing = false;
        let ok = value::<commit::Reply, _>(r)?;
        self.tally.commits += 1;
        let lost = self.model.objects[id].committed(upto, ok.verf);
        self.tally.rewritten_bytes += lost;
        self.verifiers.check(self.generation, ok.verf)?;
        Ok(Outcome::Done)
    }

    /// Reads what was written.
    fn read(
        &mut self,
        id: Id,
        range: &Range<usize>,
        r: &mut Reader<'_>,
    ) -> Result<Outcome, Complaint> {
        let file = &mut self.model.objects[id];
        file.alone = false;
        let ok = value::<read::Reply<'_>, _>(r)?;
        self.tally.checks += 1;
        let end = range.end.min(file.content.len());
        let expected = &file.content[range.start.min(end)..end];
        match ok.data == expected {
            true => Ok(Outcome::Done),
            false => Err(differs(&file.names, range.start, ok.data, expected)),
        }
    }

    /// A name leads to the same handle always.
    fn found(&mut self, id: Id, name: &Name, r: &mut Reader<'_>) -> Result<Outcome, Complaint> {
        self.model.objects[id].naming = false;
        let ok = value::<lookup::Reply, _>(r)?;
        self.tally.checks += 1;
        let object = &mut self.model.objects[id];
        let known = *object.handle.get_or_insert(ok.object);
        match known == ok.object {
            true => Ok(Outcome::Done),
            false => {
                object.handle = Some(ok.object);
                let what = format!("{name:?}: {known:?} became {:?}", ok.object);
                Err((Violation::HandleChanged, what))
            }
        }
    }

    /// Size and number of links are those that the model has.
    fn attributes(&mut self, id: Id, r: &mut Reader<'_>) -> Result<Outcome, Complaint> {
        self.unlocked(id);
        let ok = value::<getattr::Reply, _>(r)?;
        self.tally.checks += 1;
        let object = &self.model.objects[id];
        let (size, nlink) = (ok.obj_attributes.size, ok.obj_attributes.nlink as usize);
        let names = &object.names;
        let right = object.content.len();
        let is_right = match object.kind {
            Kind::Folder => true,
            Kind::File => size == right as u64 && nlink == names.len(),
            Kind::Fifo | Kind::Symlink => nlink == names.len(),
        };
        match is_right {
            true => Ok(Outcome::Done),
            false => {
                let what =
                    format!("{names:?}: {size} bytes, {nlink} links; {right} bytes are right");
                Err((Violation::Differs, what))
            }
        }
    }

    /// What was removed must be called stale.
    fn stale(&mut self, handle: &FileHandle, r: &mut Reader<'_>) -> Result<Outcome, Complaint> {
        self.tally.checks += 1;
        match value::<getattr::Reply, _>(r) {
            Err((Violation::Stale, _)) => Ok(Outcome::Done),
            Err(other) => Err(other),
            Ok(ok) => {
                let what = format!("{handle:?} was removed and has {:?}", ok.obj_attributes);
                Err((Violation::Differs, what))
            }
        }
    }
}

/// The results, where no failure has an excuse.
pub(super) fn value<'a, R, T>(r: &mut Reader<'a>) -> Result<T, Complaint>
where
    R: Decode<'a> + Results<T>,
{
    R::decode(r).map_err(undecodable)?.results().map_err(complaint)
}

fn undecodable(error: wire::xdr::DecodeError) -> Complaint {
    (Violation::Unexpected, format!("the reply does not decode: {error}"))
}

fn complaint(status: NfsStat3) -> Complaint {
    let violation = match status {
        NfsStat3::Stale | NfsStat3::BadHandle => Violation::Stale,
        _ => Violation::Unexpected,
    };
    (violation, status.to_string())
}

/// Says where two contents part.
pub(super) fn differs(names: &[Name], start: usize, got: &[u8], expected: &[u8]) -> Complaint {
    let same = got.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let what = format!(
        "{names:?}: {} bytes for {}, the first {same} from {start} on are right",
        got.len(),
        expected.len()
    );
    (Violation::Differs, what)
}
