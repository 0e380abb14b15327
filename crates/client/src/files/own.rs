//! What replies to our own changes say of a file's state, for the drafts that a local disk is given
//! (`drafts`).

use bytes::Bytes;
use cache::{Cache, Time, Token};
use wire::nfs3::{FileHandle, Sattr3, WccAttr, WccData};

use super::attributes::Settled;
use super::options::Mistake;
use super::{Files, State};
use crate::cache::state::{At, key, time_of, token};

impl State {
    /// A WRITE of ours has been answered, and this is what it says of the file; before that is
    /// taken in.
    pub(super) fn draft_begins(&mut self, file: &FileHandle, wcc: &WccData, at: At) {
        let from = self.attributes.sure(file).as_ref().map(token);
        if self.drafts.begin(file, from, at.wall) {
            self.attributes.begin_own(file);
        }
        if wcc.before.is_none() || wcc.after.is_none() {
            self.drafts.spoil(file);
        }
    }

    /// It has left these bytes in the file.
    pub(super) fn draft_written(
        &mut self,
        disk: &Cache,
        file: &FileHandle,
        offset: u64,
        data: Bytes,
    ) {
        let block_bytes = disk.geometry().block_bytes();
        let spilled = self.drafts.written(file, (offset, data), block_bytes);
        if let (Some((draft, blocks)), Some(key)) = (spilled, key(file)) {
            for (at, data) in blocks {
                if !disk.store_draft(&key, &draft, at, data) {
                    return self.drafts.spoil(file);
                }
            }
        }
    }

    pub(super) fn draft_spoilt(&mut self, file: &FileHandle) {
        self.drafts.spoil(file);
    }

    pub(super) fn draft_is_clean(&mut self, disk: &Cache, file: &FileHandle, at: At) {
        self.drafts.is_clean(file);
        self.draft_ends(disk, file, at);
    }

    /// Tells the disk what the file is now, if all that we have written is stable, no change of
    /// ours is under way, and all were ours.
    pub(super) fn draft_ends(&mut self, disk: &Cache, file: &FileHandle, at: At) {
        if self.attributes.is_changing(file) {
            return;
        }
        let Some(done) = self.drafts.finish(file, disk.geometry().block_bytes()) else { return };
        let to = match self.drafts.mistake {
            Some(Mistake::OthersBlocks) => self.attributes.last(file),
            _ => self.attributes.own(file, at.now, at.wall),
        };
        if let (Some(to), Some(key)) = (to, key(file)) {
            disk.changed(&key, &done.from, &token(&to), done.parts);
        }
    }
}

impl Files {
    pub(super) fn at(&self) -> At {
        let wall = Time::since_1970(self.inner.clock.since_1970());
        At { now: self.now(), wall }
    }

    /// A SETATTR is about to be sent; gives the state that the disk may have blocks of.
    pub(super) fn set_begins(&self, file: &FileHandle, new: &Sattr3) -> Option<Token> {
        self.disk()?;
        let from = self.state(file);
        let mut state = self.inner.state.lock();
        if new.size.is_some() {
            state.draft_spoilt(file);
        }
        if state.drafts.files.contains_key(file) {
            return None;
        }
        state.attributes.begin_own(file);
        from
    }

    /// It has been answered: what the disk has is of the state that it has left, but for what lies
    /// behind the end.
    pub(super) fn set_ends(
        &self,
        file: &FileHandle,
        from: Option<Token>,
        (wcc, settled): (&WccData, Settled),
        new: &Sattr3,
    ) {
        let (Some(disk), Some(key)) = (self.disk(), key(file)) else { return };
        let at = self.at();
        let mut state = self.inner.state.lock();
        if new.size.is_some() {
            state.draft_spoilt(file);
        }
        let is_from = |from: &Token| wcc.before.as_ref().is_some_and(|before| is_of(before, from));
        let Some(from) = from.filter(is_from).filter(|_| settled.is_as_it_was) else { return };
        let to = state.attributes.own(file, at.now, at.wall).as_ref().map(token);
        if let Some(to) = to.filter(|to| *to != from && wcc.after.as_ref().map(token) == Some(*to))
        {
            disk.changed(&key, &from, &to, Vec::new());
        }
    }
}

fn is_of(attributes: &WccAttr, state: &Token) -> bool {
    let Token { size, mtime, ctime, .. } = *state;
    (attributes.size, time_of(attributes.mtime), time_of(attributes.ctime)) == (size, mtime, ctime)
}
