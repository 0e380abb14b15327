//! Names that are taken from files which are open, or are being opened: see [`super::busy`].
//!
//! Whether a file has somebody who opens it, and that a call now takes a name from it, is decided
//! under one hold of the lock. An open that begins before keeps the file, as one that has ended
//! does; an open that begins later waits for the call, and finds what that has left.

use std::pin::pin;

use perf::units::Nanos;
use wire::nfs3::{FType, FileHandle, NfsStat3};

use super::busy::{Going, Hidden};
use super::{Acting, Files, State};
use crate::cache::names::Target;
use crate::error::Error;
use crate::session::Credential;

/// How long after close(2) a kernel may take to report that a file is no longer open (guess). A
/// program that has it open by another descriptor is not waited for any longer.
const CLOSED_WITHIN: Nanos = Nanos::from_secs(1);

/// Who owns neither a file in such a directory nor the directory takes no name from it.
const STICKY: u32 = 0o1000;

/// From what a name is to be taken.
pub(super) enum Taking<'f> {
    /// A file that is open here, or being opened.
    FromOpen(FileHandle),
    /// Anything else, or nothing; what is opened from now on waits until this is dropped.
    Free(Option<Removal<'f>>),
}

/// A call that takes a name from a file, or from one that is not known.
pub(super) struct Removal<'f> {
    files: &'f Files,
    number: u64,
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        self.files.inner.state.lock().busy.end_removal(self.number);
        self.files.inner.removed.notify_waiters();
    }
}

/// An open that is under way. To be ended, or what is hidden goes a little later.
#[derive(Debug)]
pub struct Opening {
    files: Files,
    file: FileHandle,
    is_over: bool,
}

impl Opening {
    /// The file is open, or is not to be.
    pub async fn end(mut self) {
        let hidden = self.over();
        self.files.unhide_of(self.file, hidden).await;
    }

    fn over(&mut self) -> Vec<Hidden> {
        match std::mem::replace(&mut self.is_over, true) {
            true => Vec::new(),
            false => self.files.inner.state.lock().busy.end_opening(&self.file),
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let (hidden, files, file) = (self.over(), self.files.clone(), self.file);
        if !hidden.is_empty() {
            let clock = files.inner.clock.clone();
            clock.spawn(async move { files.unhide_of(file, hidden).await });
        }
    }
}

/// Hidden names of these directories are being removed.
struct Leave<'f> {
    files: &'f Files,
    dirs: Vec<FileHandle>,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut state = self.files.inner.state.lock();
        self.dirs.iter().for_each(|dir| state.busy.has_left(dir));
        drop(state);
        self.files.inner.removed.notify_waiters();
    }
}

impl Files {
    /// Begins an open: from now on the file keeps a name. Waits for calls that take one from it, or
    /// from whatever file, and have begun before.
    pub(super) async fn opening(&self, file: FileHandle) -> Opening {
        let before = self.inner.state.lock().busy.begin_opening(&file);
        let opening = Opening { files: self.clone(), file, is_over: false };
        loop {
            let mut removed = pin!(self.inner.removed.notified());
            removed.as_mut().enable();
            if !self.inner.state.lock().busy.is_losing_name(&file, before) {
                return opening;
            }
            removed.await;
        }
    }

    fn removal(&self, state: &mut State, of: Option<FileHandle>) -> Removal<'_> {
        Removal { files: self, number: state.busy.begin_removal(of) }
    }

    /// What `name` leads to, before it is taken from that.
    pub(super) async fn taking(
        &self,
        acting: &Acting,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<Taking<'_>, Error> {
        let mut target = self.find(&dir, name);
        if target.is_none() && self.inner.state.lock().busy.is_any_open() {
            target = match self.ask_lookup(acting, dir, name).await {
                Ok(found) => Some(Target::File(found.handle)),
                Err(error) if error.status() == Some(NfsStat3::NoEnt) => Some(Target::Nothing),
                Err(error) => return Err(error),
            };
        }
        let mut state = self.inner.state.lock();
        Ok(match target {
            Some(Target::File(file)) if state.busy.is_used(&file) => Taking::FromOpen(file),
            Some(Target::File(file)) => Taking::Free(Some(self.removal(&mut state, Some(file)))),
            Some(Target::Nothing) => Taking::Free(None),
            // Whatever is opened may be what loses it.
            None => Taking::Free(Some(self.removal(&mut state, None))),
        })
    }

    /// `file` has got a hidden name, which goes when the file is closed.
    pub(super) async fn hide(&self, file: FileHandle, hidden: Hidden) -> Result<(), Error> {
        let (closed_meanwhile, _removal) = {
            let mut state = self.inner.state.lock();
            (state.busy.hide(&file, hidden), self.removal(&mut state, Some(file)))
        };
        match closed_meanwhile {
            Some(Hidden { dir, name, by }) => {
                let removed = self.ask_remove(&self.acting(&by), dir, &name).await;
                self.inner.state.lock().attributes.expire(&file);
                removed
            }
            None => Ok(()),
        }
    }

    /// Removes what stood for a file that was open.
    pub(super) async fn unhide(&self, hidden: Vec<Hidden>) {
        for Hidden { dir, name, by } in hidden {
            // It may have been removed by somebody else, and nobody waits for this.
            self.ask_remove(&self.acting(&by), dir, &name).await.ok();
        }
    }

    /// The same of a file that nobody has open any more, and that may have other names.
    pub(super) async fn unhide_of(&self, file: FileHandle, hidden: Vec<Hidden>) {
        if hidden.is_empty() {
            return;
        }
        let dirs = hidden.iter().map(|hidden| hidden.dir).collect();
        let _leave = Leave { files: self, dirs };
        self.unhide(hidden).await;
        self.inner.state.lock().attributes.expire(&file);
    }

    /// Waits, before a directory is removed, for what it hides of files that programs have closed:
    /// a kernel reports it when the program has gone on already.
    pub(super) async fn hidden_go(&self, dir: FileHandle) {
        let until = self.now() + CLOSED_WITHIN;
        loop {
            let mut removed = pin!(self.inner.removed.notified());
            removed.as_mut().enable();
            let left = until.since(self.now());
            let going = self.inner.state.lock().busy.going(&dir);
            match going {
                Going::Gone | Going::Not => return,
                Going::Perhaps if left == Nanos::ZERO => return,
                Going::Surely => {}
                Going::Perhaps => {
                    self.inner.clock.within(left, removed).await.ok();
                    continue;
                }
            }
            removed.await;
        }
    }

    /// Whether a name that is renamed to one of `file` replaces it: a directory is refused, and two
    /// names of one file stay as they are (RFC 1813 section 3.3.14).
    pub(super) async fn replaces(
        &self,
        who: &Credential,
        (dir, name): (FileHandle, &[u8]),
        file: FileHandle,
    ) -> Result<bool, Error> {
        let found = self.lookup(who, dir, name).await?;
        Ok(found.handle != file && found.attributes.ftype != FType::Dir)
    }

    /// Whether a link that the caller makes may be one that it cannot remove again. Root may be
    /// another user for the server.
    fn may_not_unlink(&self, who: &Credential, (dir, file): (&FileHandle, &FileHandle)) -> bool {
        let is_own = |of| self.last(of).is_some_and(|last| last.uid == who.uid && who.uid != 0);
        let is_sticky = self.last(dir).is_some_and(|dir| dir.mode & STICKY != 0);
        is_sticky && !is_own(dir) && !is_own(file)
    }

    /// Gives an open file a hidden name beside the one it is about to lose. A link, so that the
    /// name it has is never missing; where there are none, or the caller could not remove it, it is
    /// renamed, as others do. Gives whether it was; and nothing if the file is gone already.
    pub(super) async fn keep_by_link(
        &self,
        who: &Credential,
        file: FileHandle,
        to: (FileHandle, &[u8]),
    ) -> Result<Option<(Hidden, bool)>, Error> {
        let acting = self.acting(who);
        let name = self.inner.state.lock().busy.hidden_name();
        let (dir, by) = (to.0, who.clone());
        self.finish_making(dir).await;
        if self.may_not_unlink(who, (&dir, &file)) {
            self.ask_rename(&acting, to, (dir, &name)).await?;
            return Ok(Some((Hidden { dir, name, by }, true)));
        }
        let change = self.changing(dir);
        let linked = acting.session.link(file, dir, &name).await;
        match self.settle(change, linked, |answer| answer.linkdir_wcc).0 {
            Ok(_) => {
                self.inner.state.lock().attributes.expire(&file);
                Ok(Some((Hidden { dir, name, by }, false)))
            }
            Err(error) => match error.status() {
                // It is not for want of links: a disk that has failed a link may do half of the
                // two renames.
                Some(NfsStat3::IsDir | NfsStat3::Io | NfsStat3::NoSpc | NfsStat3::DQuot) => {
                    Err(error)
                }
                // Somebody else has replaced it: the name leads to another file by now.
                Some(NfsStat3::Stale | NfsStat3::NoEnt) => Ok(None),
                _ => {
                    self.ask_rename(&acting, to, (dir, &name)).await?;
                    Ok(Some((Hidden { dir, name, by }, true)))
                }
            },
        }
    }
}
