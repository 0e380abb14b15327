//! Attributes and rights of a file.

use std::pin::pin;

use perf::units::{Instant, Nanos};
use wire::nfs3::{FType, Fattr3, FileHandle, NfsStat3, Sattr3, SetTime, WccData, fsstat};

use super::options::Mistake;
use super::{Acting, Files, Found};
use crate::cache::attributes::{ReplyContext, Version};
use crate::error::{Detail, Error};
use crate::session::Credential;

/// How often an open asks while changes of ours keep beginning: of a file of which one program sets
/// attributes all the time, it takes what it gets.
const OPEN_TRIES_MAX: u32 = 4;

/// Attributes of a reply, which an open may have made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened<'a> {
    pub(super) attributes: &'a Fattr3,
    pub(super) sent: Instant,
    pub(super) is_open: bool,
}

/// For how long after a reply with a directory's attributes a SETATTR that sets the same is
/// not sent. Shorter than they are good: whoever takes rights away that another client has given
/// is to have it done.
const UNCHANGED_FOR: Nanos = Nanos::from_secs(1);

/// See [`Files::has_already`].
fn is_no_change(who: &Credential, known: &Fattr3, new: &Sattr3) -> bool {
    let Sattr3 { mode, uid, gid, size, atime, mtime } = *new;
    let is_same = |new: Option<u32>, known| new.is_none_or(|new| new == known);
    let others = size.is_some() || [atime, mtime].iter().any(|time| *time != SetTime::DontChange);
    known.ftype == FType::Dir
        && known.uid == who.uid
        && !others
        && is_same(mode, known.mode)
        && is_same(uid, known.uid)
        && is_same(gid, known.gid)
}

impl Files {
    /// The attributes of a file, from memory while they are good.
    ///
    /// # Errors
    /// As the server says.
    pub async fn getattr(&self, who: &Credential, file: FileHandle) -> Result<Fattr3, Error> {
        self.find_again(who, file).await.map(|found| found.attributes)
    }

    /// The attributes of a file and which data they are of, from memory while they are good.
    ///
    /// # Errors
    /// As the server says.
    pub async fn find_again(&self, who: &Credential, file: FileHandle) -> Result<Found, Error> {
        self.fresh(&self.acting(who), file).await
    }

    /// The attributes of a file as the server has them now, whatever is in memory.
    ///
    /// # Errors
    /// As the server says.
    pub async fn ask_attributes(
        &self,
        who: &Credential,
        file: FileHandle,
    ) -> Result<Fattr3, Error> {
        self.fetch(&self.acting(who), file).await.map(|found| found.attributes)
    }

    /// The same, as the server has it now.
    pub(super) async fn fetch(&self, acting: &Acting, handle: FileHandle) -> Result<Found, Error> {
        let sent = self.now();
        let attributes = self.heard((&handle, sent), acting.session.getattr(handle).await)?;
        Ok(self.note(&handle, Some(attributes), sent).unwrap_or_else(|| Found {
            handle,
            attributes: self.with_own_data(&handle, attributes),
            version: Version::default(),
        }))
    }

    /// What the user sees: bytes that were written and are not there for good count, and what is
    /// set of a file that is being made.
    pub(super) fn with_own_data(&self, file: &FileHandle, attributes: Fattr3) -> Fattr3 {
        let end = self.inner.write_behind.own_end(*file).unwrap_or(0);
        let attributes = self.inner.state.lock().making.shown(file, attributes);
        Fattr3 { size: attributes.size.max(end), ..attributes }
    }

    /// Sets attributes. Data on its way to the file arrives before, and is stable before rights or
    /// owners change. Of a file that is being made,
    /// what the server will surely do is done when its maker closes it, and the times of a
    /// directory that we have made with what is set of it next.
    ///
    /// # Errors
    /// As the server says.
    pub async fn setattr(
        &self,
        who: &Credential,
        file: FileHandle,
        new: Sattr3,
    ) -> Result<Fattr3, Error> {
        if let Some(found) = self.set_later(who, &file, &new) {
            return Ok(found.attributes);
        }
        if let Some(attributes) = self.has_already(who, &file, &new) {
            return Ok(attributes);
        }
        if let Some(found) = self.times_wait(who, &file, &new) {
            return Ok(found.attributes);
        }
        if let Some(set) = self.set_with_times(who, file, &new).await {
            return set.map(|found| found.attributes);
        }
        self.finish_making(file).await;
        if new.mode.is_some() || new.uid.is_some() || new.gid.is_some() {
            // Its writers may not make it stable any more, perhaps.
            self.inner.write_behind.settle(file).await;
        }
        self.set(&self.acting(who), file, new).await.map(|found| found.attributes)
    }

    /// The attributes of a directory that belongs to the caller and has this owner, group and mode:
    /// programs that copy a tree give each directory what it was made with. Its time of change
    /// stays, too. A reply has just shown that: another client may have set others since.
    fn has_already(&self, who: &Credential, file: &FileHandle, new: &Sattr3) -> Option<Fattr3> {
        let now = self.now();
        let known = {
            let mut state = self.inner.state.lock();
            state.attributes.sure(file)?;
            let is_of_now = state.attributes.is_known_for(file, UNCHANGED_FOR, now);
            state.attributes.good(file, now).filter(|_| is_of_now)?
        };
        is_no_change(who, &known, new).then(|| self.with_own_data(file, known))
    }

    pub(super) async fn set(
        &self,
        acting: &Acting,
        file: FileHandle,
        new: Sattr3,
    ) -> Result<Found, Error> {
        match new.size {
            Some(_) => self.settle_before_cut(file).await,
            None => self.inner.write_behind.arrive(file, None).await,
        }
        let from = self.set_begins(&file, &new);
        let change = self.changing(file);
        let result = acting.session.setattr(file, new, None).await;
        let found = |wcc: &WccData| self.inner.state.lock().attributes.with_found(&file, &new, wcc);
        let (wcc, settled) = self.settle(change, result, found);
        let known = wcc.as_ref().copied().unwrap_or_default();
        self.set_ends(&file, from, (&known, settled), &new);
        let wcc = wcc?;
        if let Some(size) = new.size {
            // What lay behind the end must not come back when a server loses its memory.
            self.inner.write_behind.discard(file, size);
            self.inner.state.lock().busy.changed(&file);
        }
        let known = {
            let state = self.inner.state.lock();
            state.attributes.last(&file).zip(state.attributes.version(&file))
        };
        match (wcc.after, known) {
            (Some(after), Some((known, version))) => {
                // Some servers tell the size of before (NFS-Ganesha 4.3, now and then). What
                // a later reply has is as it is: its version has no older size.
                let size = new.size.filter(|_| known == after).unwrap_or(known.size);
                let attributes = self.with_own_data(&file, Fattr3 { size, ..known });
                Ok(Found { handle: file, attributes, version })
            }
            _ => self.fetch(acting, file).await,
        }
    }

    /// What was written to a file that is about to be cut becomes stable before. Did it only
    /// arrive, a server that forgets it would be sent it again, maybe after the cut. Errors stay
    /// for the writers.
    pub(super) async fn settle_before_cut(&self, file: FileHandle) {
        self.inner.write_behind.settle(file).await;
    }

    /// Which of the rights `wanted` (`ACCESS3_*`) the caller has.
    ///
    /// # Errors
    /// As the server says.
    pub async fn access(
        &self,
        who: &Credential,
        file: FileHandle,
        wanted: u32,
    ) -> Result<u32, Error> {
        self.finish_making(file).await;
        let acting = self.acting(who);
        let now = self.now();
        let known = {
            let mut state = self.inner.state.lock();
            let good = state.attributes.good(&file, now);
            good.and_then(|good| state.rights.find(&file, acting.id, good.ctime, wanted))
        };
        match known {
            Some(granted) => Ok(granted),
            None => self.ask_access(&acting, file, wanted, false).await,
        }
    }

    pub(super) async fn ask_access(
        &self,
        acting: &Acting,
        file: FileHandle,
        wanted: u32,
        is_open: bool,
    ) -> Result<u32, Error> {
        let mut tries = 0;
        let (sent, answer, attributes) = loop {
            if is_open {
                self.changes_settled(&file).await;
            }
            let sent = self.now();
            let answer = self.heard((&file, sent), acting.session.access(file, wanted).await)?;
            let attributes = match answer.obj_attributes {
                Some(attributes) => attributes,
                None => self.heard((&file, sent), acting.session.getattr(file).await)?,
            };
            // The answer may have a state that our own change has made, whose reply is not here.
            tries += 1;
            let is_changing = self.inner.state.lock().attributes.is_changing(&file);
            if !is_open || !is_changing || tries == OPEN_TRIES_MAX {
                break (sent, answer, attributes);
            }
        };
        let known = Opened { attributes: &attributes, sent, is_open };
        self.may(acting, &file, known, (wanted, answer.access));
        Ok(answer.access & wanted)
    }

    /// Whether a caller has all of the rights `wanted` of a file, by a call that was sent at
    /// `begun` or later, and the file is what such calls have returned: an open that began then
    /// needs no further one.
    pub fn was_requested_since(
        &self,
        who: &Credential,
        file: &FileHandle,
        (wanted, begun): (u32, Instant),
    ) -> bool {
        self.requested_since(&self.acting(who), file, (wanted, begun)).is_some()
    }

    pub(super) fn requested_since(
        &self,
        acting: &Acting,
        file: &FileHandle,
        (wanted, begun): (u32, Instant),
    ) -> Option<(Fattr3, Instant)> {
        let now = self.now();
        let is_needed = self.inner.options.close_to_open && !self.is_dirty(file);
        let mut state = self.inner.state.lock();
        // A name of the file that we have taken since makes them worth nothing.
        state.attributes.good(file, now).filter(|_| is_needed)?;
        let (attributes, sent) = state.attributes.known_since(file, begun)?;
        let of = (attributes.ctime, begun);
        let granted = state.rights.find_since(file, acting.id, of, wanted)?;
        (granted == wanted).then_some((attributes, sent))
    }

    /// A reply has the attributes of a file and which of the rights `wanted` the caller has.
    pub(super) fn may(
        &self,
        acting: &Acting,
        file: &FileHandle,
        Opened { attributes, sent, is_open }: Opened<'_>,
        (wanted, granted): (u32, u32),
    ) {
        let is_open = is_open && !self.makes(Mistake::ForgottenExcuses);
        let (before, known) = {
            let state = self.inner.state.lock();
            (state.attributes.last(file), state.attributes.version(file))
        };
        self.note_reply(
            file,
            attributes,
            ReplyContext { is_open, ..self.reply_context(file, sent) },
        );
        if self.makes(Mistake::OldBlocks) {
            self.take_for_new(file, before.as_ref(), attributes);
        }
        let mut state = self.inner.state.lock();
        state.rights.put(file, acting.id, (attributes.ctime, sent), wanted, granted);
        let is_changed = known.is_some() && state.attributes.version(file) != known;
        if is_open && is_changed {
            state.moved.changed(file, attributes);
        }
    }

    /// Space and number of files of the file system.
    ///
    /// # Errors
    /// As the server says.
    pub async fn statfs(&self, who: &Credential) -> Result<fsstat::ReplyOk, Error> {
        let (root, sent) = (self.root(), self.now());
        let answer = self.acting(who).session.fsstat(root).await;
        let answer = self.heard((&root, sent), answer)?;
        self.note(&root, answer.obj_attributes, sent);
        Ok(answer)
    }

    /// What the server would say, as is known without asking it.
    pub(super) fn known_status(&self, procedure: &'static str, status: NfsStat3) -> Error {
        let (server, detail) = (self.inner.session.server(), Box::default());
        Error::Status { procedure, server, status, detail }
    }

    /// Takes in what a failure has of the file the call was about, which was made at `sent`.
    pub(super) fn heard<T>(
        &self,
        (file, sent): (&FileHandle, Instant),
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(error) = &result {
            if let Some(NfsStat3::Stale | NfsStat3::BadHandle) = error.status() {
                self.inner.state.lock().attributes.forget(file);
            } else if let Detail::Attributes(attributes) = error.detail() {
                self.note(file, Some(attributes), sent);
            }
        }
        result
    }

    /// Waits until changes of the file that were announced have been answered.
    async fn changes_settled(&self, file: &FileHandle) {
        loop {
            let mut settled = pin!(self.inner.settled.notified());
            settled.as_mut().enable();
            if !self.inner.state.lock().attributes.is_changing(file) {
                return;
            }
            settled.await;
        }
    }

    /// A call that changes `file` is about to be made.
    pub(super) fn changing(&self, file: FileHandle) -> Changing {
        let attributes = &mut self.inner.state.lock().attributes;
        let (alone, version) = (attributes.changing(&file), attributes.version(&file));
        let (files, sent) = (self.clone(), self.now());
        Changing { files, file, sent, alone, version, is_settled: false }
    }

    /// The call that was announced has been answered.
    pub(super) fn settle<T>(
        &self,
        change: Changing,
        result: Result<T, Error>,
        wcc_of: impl FnOnce(&T) -> WccData,
    ) -> (Result<T, Error>, Settled) {
        let (file, sent) = (change.file, change.sent);
        let settled = match &result {
            Ok(reply) => change.settled(&wcc_of(reply)),
            Err(error) => change.settled(&match error.detail() {
                Detail::Changed(wcc) => wcc,
                _ => WccData::default(),
            }),
        };
        (self.heard((&file, sent), result), settled)
    }
}

/// A change that is under way. Dropped without an answer, it leaves the file unknown.
pub(super) struct Changing {
    files: Files,
    file: FileHandle,
    sent: Instant,
    /// Its number, if no other was under way when it began.
    alone: Option<u64>,
    /// That of before.
    version: Option<Version>,
    is_settled: bool,
}

/// What a change of a directory has left, for who remembers its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    /// None: another change of ours was under way, and which of them came first nobody knows.
    pub(super) version: Option<Version>,
    /// Nobody else had changed it before, as far as is known.
    pub(super) is_as_it_was: bool,
}

impl Changing {
    pub(super) fn settled(mut self, wcc: &WccData) -> Settled {
        self.is_settled = true;
        let version = self.tell(wcc);
        let is_as_it_was = version.is_some() && version == self.version;
        Settled { version, is_as_it_was }
    }

    fn tell(&self, wcc: &WccData) -> Option<Version> {
        let known = self.files.reply_context(&self.file, self.sent);
        let at = self.files.at();
        let mut state = self.files.inner.state.lock();
        state.attributes.changed(&self.file, wcc, known);
        if let Some(disk) = self.files.disk() {
            state.draft_ends(disk, &self.file, at);
        }
        self.files.inner.settled.notify_waiters();
        let attributes = &state.attributes;
        let is_alone = self.alone.is_some_and(|number| attributes.was_alone(&self.file, number));
        attributes.version(&self.file).filter(|_| is_alone)
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        if !self.is_settled {
            self.tell(&WccData::default());
            self.files.inner.state.lock().names.is_not_whole(&self.file);
        }
    }
}
