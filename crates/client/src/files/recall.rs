//! Directories from the local disk: read when a name is not in memory, used where the server
//! tells that the directory is as it was, and written a little after something new was heard.

use cache::Cache;
use perf::units::Nanos;
use wire::nfs3::{Fattr3, FileHandle, NfsStat3, access};

use super::attributes::Settled;
use super::catalogs::KnownPage;
use super::joint::Question;
use super::listing::{DIR_COUNT, MAX_COUNT};
use super::names::NamesThen;
use super::{Acting, Files, Found, State};
use crate::cache::names::Target;
use crate::cache::state::{At, key, token};
use crate::error::Error;
use crate::ops::{DirEntry, DirPage};
use crate::session::Credential;

/// How long what is new waits to be written: what is heard next goes with it.
const WRITE_AFTER: Nanos = Nanos::from_secs(5);

/// What whoever looks a name up may want next: to search a directory, or to open a file.
const WANTED_NEXT: u32 =
    access::LOOKUP | access::READ | access::MODIFY | access::EXTEND | access::EXECUTE;

impl State {
    /// Writes what is known of a directory.
    fn write_catalog(&mut self, disk: &Cache, dir: &FileHandle) {
        let Some(version) = self.attributes.sure_version(dir) else {
            return self.catalogs.forget_dir(dir);
        };
        // Nobody has changed the directory since any of it was requested, and not just so that it
        // looks the same.
        let requested = self.catalogs.requested(dir);
        let closed = requested.and_then(|At { now, wall }| self.attributes.closed(dir, now, wall));
        let state = closed.as_ref().map(token);
        let attributes = &self.attributes;
        let last = |file: &FileHandle| attributes.last(file);
        if let Some(catalog) = self.catalogs.catalog(dir, (version, state), last) {
            disk.keep_catalog(&catalog);
        }
    }

    /// Lets go what is too much.
    fn catalogs_are_bounded(&mut self, disk: &Cache) {
        while let Some(dir) = self.catalogs.too_many() {
            self.write_catalog(disk, &dir);
            self.catalogs.forget_dir(&dir);
        }
    }
}

impl Files {
    /// Where a name was found to lead, in a directory that has not changed since it was requested.
    pub(super) fn learn_name(
        &self,
        dir: &FileHandle,
        name: &[u8],
        target: Target,
        before: NamesThen,
    ) {
        let (Some(disk), Some(version)) = (self.disk(), before.version) else { return };
        let mut state = self.inner.state.lock();
        if state.renames != before.renames || state.attributes.sure_version(dir) != Some(version) {
            return;
        }
        let attributes = match target {
            Target::File(file) => state.attributes.last(&file),
            Target::Nothing => None,
        };
        state.catalogs.learn(dir, name, (version, before.at), (target, attributes));
        state.catalogs_are_bounded(disk);
        self.look_after_catalogs(&mut state);
    }

    /// We have changed where a name leads.
    pub(super) fn name_changed(
        &self,
        state: &mut State,
        (dir, settled): (&FileHandle, Settled),
        name: &[u8],
        target: Option<Target>,
    ) {
        if self.disk().is_none() {
            return;
        }
        let attributes = match target {
            Some(Target::File(file)) => state.attributes.last(&file),
            _ => None,
        };
        let to = settled.version.zip(target);
        let at = self.at();
        let to = to.map(|(version, target)| ((version, at), (target, attributes)));
        state.catalogs.changed(dir, name, to);
        self.look_after_catalogs(state);
    }

    /// All of a directory was listed while it was of this version.
    pub(super) fn learn_listing(
        &self,
        dir: &FileHandle,
        before: NamesThen,
        verifier: [u8; 8],
        entries: &[DirEntry],
    ) {
        let (Some(disk), Some(version)) = (self.disk(), before.version) else { return };
        let mut state = self.inner.state.lock();
        let is_same =
            state.renames == before.renames && state.attributes.sure_version(dir) == Some(version);
        if is_same {
            state.catalogs.listed(dir, (version, before.at), verifier, entries);
            state.catalogs_are_bounded(disk);
            self.look_after_catalogs(&mut state);
        }
    }

    /// Takes in what the disk has of a directory whose attributes are good, if it was not read
    /// yet. Gives whether something is known of it now that may not have been before.
    pub(super) async fn recall(&self, dir: &FileHandle) -> bool {
        let Some((disk, key)) = self.disk().zip(key(dir)) else { return false };
        let Some(_asking) = self.inner.joint.begin(Question::Cached, *dir).await else {
            return true;
        };
        let (version, of) = {
            let mut state = self.inner.state.lock();
            let Some(of) = state.attributes.sure(dir).as_ref().map(token) else { return false };
            let Some(version) = state.attributes.version(dir) else { return false };
            if !state.catalogs.asks(dir, version) {
                return false;
            }
            (version, of)
        };
        let Ok(catalog) = disk.catalog(&key, &of).await else { return false };
        let mut state = self.inner.state.lock();
        let is_same = state.attributes.version(dir) == Some(version)
            && state.attributes.sure(dir).as_ref().map(token) == Some(of);
        if is_same {
            state.catalogs.loaded(dir, version, &catalog);
            state.catalogs_are_bounded(disk);
        }
        is_same
    }

    /// The file that a name is known to lead to: its attributes are requested, in place of the
    /// name. None where the name has to be requested.
    pub(super) async fn confirm(
        &self,
        acting: &Acting,
        file: FileHandle,
    ) -> Result<Option<Found>, Error> {
        if self.disk().is_none() {
            return Ok(None);
        }
        let found = match self.was_searched(acting, &file) {
            true => self.fresh(acting, file).await,
            // It may be a directory, of which the disk has names.
            false => self.ask_with_right(acting, file).await,
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.status() == Some(NfsStat3::Stale) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn ask_with_right(&self, acting: &Acting, file: FileHandle) -> Result<Found, Error> {
        let asking = self.inner.joint.begin(Question::Attributes, file).await;
        if asking.is_some() {
            self.ask_access(acting, file, WANTED_NEXT, false).await?;
        }
        self.or_fetch(acting, file, self.found(&file)).await
    }

    /// The same by a part of a listing that tells of many, where all of the directory is known.
    pub(super) async fn confirm_by_page(
        &self,
        acting: &Acting,
        dir: FileHandle,
        name: &[u8],
        file: FileHandle,
    ) -> Option<Found> {
        self.disk()?;
        let before = {
            let mut state = self.inner.state.lock();
            let version = state.attributes.sure_version(&dir)?;
            state.catalogs.before(&dir, name, version)?
        };
        self.confirm_all(acting, dir, before, &file).await
    }

    /// Of a directory that was listed from memory or disk, whoever asks for one file mostly asks
    /// for all: one READDIRPLUS tells of many.
    async fn confirm_all(
        &self,
        acting: &Acting,
        dir: FileHandle,
        (cookie, verifier): (u64, [u8; 8]),
        file: &FileHandle,
    ) -> Option<Found> {
        let sent = self.now();
        let page = acting.session.readdirplus(dir, cookie, verifier, DIR_COUNT, MAX_COUNT).await;
        let page = self.heard((&dir, sent), page);
        if page.as_ref().map_or(true, |page| page.eof) {
            self.inner.state.lock().catalogs.is_not_bare(&dir);
        }
        let page = page.ok()?;
        self.note(&dir, page.dir_attributes, sent);
        for entry in &page.entries {
            if let Some(handle) = &entry.handle {
                self.note(handle, entry.attributes, sent);
            }
        }
        self.found(file)
    }

    /// The entries of a directory that follow a cookie, if all of it is known and the server lets
    /// the caller list it. Whoever begins to list sees what was there then: an ACCESS in place of a
    /// READDIRPLUS tells whether it is the same.
    pub(super) async fn known_page(
        &self,
        who: &Credential,
        dir: &FileHandle,
        cookie: u64,
    ) -> Option<DirPage> {
        self.disk()?;
        let acting = self.acting(who);
        if cookie == 0 {
            self.recall(dir).await;
            let is_whole = {
                let mut state = self.inner.state.lock();
                let version = state.attributes.sure_version(dir)?;
                state.catalogs.is_whole(dir, version)
            };
            if !is_whole {
                return None;
            }
            self.ask_access(&acting, *dir, access::READ, false).await.ok()?;
        }
        let mut state = self.inner.state.lock();
        let ctime = state.attributes.last(dir)?.ctime;
        state.rights.find(dir, acting.id, ctime, access::READ).filter(|granted| *granted != 0)?;
        let dir_attributes = state.attributes.last(dir);
        let version = state.attributes.sure_version(dir)?;
        let KnownPage { entries, verifier, is_last } = state.catalogs.page(dir, version, cookie)?;
        drop(state);
        Some(DirPage { dir_attributes, entries, cookieverf: verifier, eof: is_last })
    }

    /// What a link leads to, if its attributes are good.
    pub(super) fn known_link(&self, link: &FileHandle) -> Option<Vec<u8>> {
        self.disk()?;
        let now = self.now();
        let mut state = self.inner.state.lock();
        state.attributes.good(link, now)?;
        let of = state.attributes.sure(link).as_ref().map(token)?;
        state.catalogs.link(link, &of)
    }

    /// A link has been read that was in this state before and is now.
    pub(super) fn learn_link(&self, link: &FileHandle, attributes: Option<&Fattr3>, text: &[u8]) {
        if let (Some(_), Some(attributes)) = (self.disk(), attributes) {
            self.inner.state.lock().catalogs.learn_link(link, token(attributes), text);
        }
    }

    /// Writes what is new, in a while.
    fn look_after_catalogs(&self, state: &mut State) {
        if state.catalogs.may_have_news
            && !std::mem::replace(&mut state.catalogs.is_looked_after, true)
        {
            self.inner.clock.spawn(look_after(self.clone()));
        }
    }

    /// Writes what is new.
    pub(super) fn write_catalogs(&self) {
        let Some(disk) = self.disk() else { return };
        let mut state = self.inner.state.lock();
        for dir in state.catalogs.with_news() {
            state.write_catalog(disk, &dir);
        }
    }
}

/// Writes what is new every now and then, until nothing is.
async fn look_after(files: Files) {
    loop {
        files.inner.clock.sleep(WRITE_AFTER).await;
        files.write_catalogs();
        let mut state = files.inner.state.lock();
        if state.catalogs.with_news().is_empty() {
            state.catalogs.is_looked_after = false;
            state.catalogs.may_have_news = false;
            return;
        }
    }
}
