//! Finding names.

use futures_util::future::{OptionFuture, join};
use wire::nfs3::{FType, FileHandle, NfsStat3};

use super::joint::Question;
use super::options::Mistake;
use super::{Acting, Files, Found, Opening};
use crate::cache::attributes::Version;
use crate::cache::names::Target;
use crate::cache::state::{At, token};
use crate::error::Error;
use crate::session::Credential;

/// How often a name is looked up for an open that may not fail again, while programs here change
/// names (guess).
const AGAIN_TRIES_MAX: u32 = 8;

/// When a name was requested, in terms of what may make the answer old.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamesThen {
    pub(super) renames: u64,
    pub(super) version: Option<Version>,
    pub(super) at: At,
}

impl Files {
    /// Finds a name. What is known of the directory is used while its attributes are good.
    ///
    /// # Errors
    /// As the server says; `NFS3ERR_NOENT` may come from memory.
    pub async fn lookup(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<Found, Error> {
        self.lookup_unless(who, (dir, name), |_| false).await
    }

    /// As [`Files::lookup`], on the way to a file that the caller could not open: it was `refused`,
    /// or a handle was stale. What a program here does to the name from now on leaves the file one
    /// that can be opened, until the opening is dropped.
    ///
    /// # Errors
    /// As the server says.
    pub async fn lookup_again(
        &self,
        who: &Credential,
        (dir, name): (FileHandle, &[u8]),
        refused: Option<FileHandle>,
    ) -> Result<(Found, Option<Opening>), Error> {
        let mut tries = 0;
        loop {
            let before = self.names_now(&dir).renames;
            let found = match refused {
                Some(file) => self.lookup_past(who, (dir, name), file).await?,
                None => self.lookup_anew(who, dir, name).await?,
            };
            if found.attributes.ftype != FType::Reg {
                return Ok((found, None));
            }
            let opening = self.opening(found.handle).await;
            // A call of ours may have taken the name from the file before that.
            let is_sure = self.names_now(&dir).renames == before
                || self.find(&dir, name) == Some(Target::File(found.handle));
            tries += 1;
            if is_sure || tries == AGAIN_TRIES_MAX {
                return Ok((found, Some(opening)));
            }
            opening.end().await;
        }
    }

    /// As [`Files::lookup`], by a caller that was refused the file that the name has led to: what
    /// is known here tells where it leads now only if that is the same file, or a directory. Who
    /// has put another file there may have done so again.
    async fn lookup_past(
        &self,
        who: &Credential,
        (dir, name): (FileHandle, &[u8]),
        refused: FileHandle,
    ) -> Result<Found, Error> {
        let is_another = |target: &Target| match target {
            Target::Nothing => true,
            Target::File(file) if *file == refused => false,
            Target::File(file) => self.last(file).is_none_or(|last| last.ftype != FType::Dir),
        };
        self.lookup_unless(who, (dir, name), is_another).await
    }

    /// As [`Files::lookup`]; the server is called where the name has led to what `is_doubted` says.
    async fn lookup_unless(
        &self,
        who: &Credential,
        (dir, name): (FileHandle, &[u8]),
        is_doubted: impl Fn(&Target) -> bool,
    ) -> Result<Found, Error> {
        let acting = self.acting(who);
        let old = self.both_are_old(&acting, (&dir, name), &is_doubted).await;
        if old.is_some() && self.disk().is_none() {
            return self.ask_lookup(&acting, dir, name).await;
        }
        let confirmed = OptionFuture::from(old.map(|file| self.confirm(&acting, file)));
        let (known, mut confirmed) = join(self.known(&acting, dir, name), confirmed).await;
        let (known, may_search) = known?;
        if !may_search {
            // The server's own refusal is the error.
            return self.ask_lookup(&acting, dir, name).await;
        }
        match known {
            Some(target) if is_doubted(&target) => {
                return self.ask_lookup(&acting, dir, name).await;
            }
            Some(Target::Nothing) => return Err(self.known_status("LOOKUP", NfsStat3::NoEnt)),
            Some(Target::File(handle)) if self.may_have_moved(&handle) => {
                return self.ask_lookup(&acting, dir, name).await;
            }
            Some(Target::File(handle)) => {
                if let Some(found) = self.found(&handle) {
                    return Ok(found);
                }
                if let Some(found) = self.confirm_by_page(&acting, dir, name, handle).await {
                    return Ok(found);
                }
            }
            None => {}
        }
        if let Some(found) = self.find_by_listing(who, dir, name).await {
            return Ok(found);
        }
        if let Some(Target::File(handle)) = known {
            let confirmed = match confirmed.take().filter(|_| old == Some(handle)) {
                Some(confirmed) => confirmed,
                None => self.confirm(&acting, handle).await,
            };
            if let Some(found) = confirmed? {
                return Ok(found);
            }
        }
        self.ask_lookup(&acting, dir, name).await
    }

    /// Where a name leads by what is known of a directory that is what it was, and whether the
    /// caller may be given that.
    async fn known(
        &self,
        acting: &Acting,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<(Option<Target>, bool), Error> {
        self.revalidate(acting, dir).await?;
        let mut known = self.find(&dir, name);
        if known.is_none() && self.recall(&dir).await {
            known = self.find(&dir, name);
        }
        let may_search = known.is_none() || self.may_search(acting, dir).await?;
        Ok((known, may_search))
    }

    /// As [`Files::lookup`], of the server, whatever is known here: that has led to a stale handle.
    ///
    /// # Errors
    /// As the server says.
    pub async fn lookup_anew(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<Found, Error> {
        self.finish_making(dir).await;
        self.ask_lookup(&self.acting(who), dir, name).await
    }

    /// As [`Files::lookup`], of the server.
    pub(super) async fn ask_lookup(
        &self,
        acting: &Acting,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<Found, Error> {
        let sent = self.now();
        let before = self.names_now(&dir);
        let answer = self.heard((&dir, sent), acting.session.lookup(dir, name).await);
        let answer = match answer {
            Err(error) if error.status() == Some(NfsStat3::NoEnt) => {
                self.has_searched(acting, &dir);
                self.remember(&dir, name, Target::Nothing, before);
                return Err(error);
            }
            answer => answer.inspect_err(|error| self.name_refused(&dir, error))?,
        };
        self.note(&dir, answer.dir_attributes, sent);
        let found = self.note(&answer.object, answer.obj_attributes, sent);
        self.has_searched(acting, &dir);
        self.remember(&dir, name, Target::File(answer.object), before);
        self.or_fetch(acting, answer.object, found).await
    }

    /// Asks for the directory's attributes unless they are good; by a call that tells whether the
    /// caller may search it, if that will be needed.
    async fn revalidate(&self, acting: &Acting, dir: FileHandle) -> Result<(), Error> {
        let now = self.now();
        let is_good = self.inner.state.lock().attributes.good(&dir, now).is_some();
        if is_good {
            return Ok(());
        }
        if self.was_searched(acting, &dir) {
            return self.fresh(acting, dir).await.map(drop);
        }
        let _asking = self.inner.joint.begin(Question::Attributes, dir).await;
        self.may_search(acting, dir).await.map(drop)
    }

    /// Where a name leads, as far as that is known without a call.
    pub fn find(&self, dir: &FileHandle, name: &[u8]) -> Option<Target> {
        let now = self.now();
        let mut state = self.inner.state.lock();
        let version = state.attributes.sure_version(dir)?;
        let found = state.names.find(dir, name, version);
        let found = found.or_else(|| state.catalogs.find(dir, name, version));
        found.or_else(|| state.is_absent((dir, version), name, now).then_some(Target::Nothing))
    }

    /// The file, if its attributes are good. Attributes and version are of one moment: what an
    /// older reply has of the file goes with no newer version.
    pub fn found(&self, handle: &FileHandle) -> Option<Found> {
        let now = self.now();
        let mut state = self.inner.state.lock();
        let attributes = state.attributes.good(handle, now)?;
        let version = state.attributes.version(handle)?;
        drop(state);
        Some(Found { handle: *handle, attributes: self.with_own_data(handle, attributes), version })
    }

    /// What a reply has of a handle, or a GETATTR if it has nothing.
    pub(super) async fn or_fetch(
        &self,
        acting: &Acting,
        handle: FileHandle,
        found: Option<Found>,
    ) -> Result<Found, Error> {
        match found {
            Some(found) => Ok(found),
            None => self.fetch(acting, handle).await,
        }
    }

    /// What is known of a directory's names before a call asks for one of them.
    pub(super) fn names_now(&self, dir: &FileHandle) -> NamesThen {
        let at = self.at();
        let state = self.inner.state.lock();
        NamesThen { renames: state.renames, version: state.attributes.version(dir), at }
    }

    /// Remembers where a name leads, unless names have been changed since it was requested: by us,
    /// or in this directory by others, as another reply has meanwhile. Of a directory that
    /// nothing was known of, nobody can tell.
    pub(super) fn remember(
        &self,
        dir: &FileHandle,
        name: &[u8],
        target: Target,
        before: NamesThen,
    ) {
        let mut state = self.inner.state.lock();
        if let Target::File(file) = &target {
            state.moved.named(file);
        }
        if state.renames == before.renames
            && let Some(version) = state.attributes.version(dir)
            && (before.version == Some(version) || self.makes(Mistake::LateNames))
        {
            state.names.put(dir, name, version, target);
        }
        drop(state);
        self.learn_name(dir, name, target, before);
    }

    /// READLINK.
    ///
    /// # Errors
    /// As the server says.
    pub async fn readlink(&self, who: &Credential, link: FileHandle) -> Result<Vec<u8>, Error> {
        if let Some(text) = self.known_link(&link) {
            return Ok(text);
        }
        let (sent, state) = (self.now(), self.state(&link));
        let answer = self.acting(who).session.readlink(link).await;
        let (text, attributes) = self.heard((&link, sent), answer)?;
        self.note(&link, attributes, sent);
        let attributes = attributes.filter(|attributes| state == Some(token(attributes)));
        self.learn_link(&link, attributes.as_ref(), &text);
        Ok(text)
    }
}
