//! What changes the names in a directory: making, linking, renaming and removing.

use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::MknodData;
use wire::nfs3::{Fattr3, FileHandle, NewObject, Sattr3, SetTime, WccData};

use super::attributes::Settled;
use super::busy::Hidden;
use super::hiding::Taking;
use super::open::Open;
use super::{Acting, Files, Found};
use crate::cache::names::Target;
use crate::error::{Detail, Error};
use crate::session::Credential;
use crate::url::Version;

impl Files {
    /// We have changed where a name leads, in a directory that this has left so.
    fn now_leads(
        &self,
        (dir, settled): (&FileHandle, Settled),
        name: &[u8],
        target: Option<Target>,
    ) {
        let mut state = self.inner.state.lock();
        state.renames += 1;
        self.name_changed(&mut state, (dir, settled), name, target);
        match (target, settled.version) {
            (Some(target), Some(version)) => state.names.put(dir, name, version, target),
            _ => state.names.forget(dir, name),
        }
    }

    /// Makes a regular file. With `exclusive` it must not be there yet; otherwise what is there is
    /// taken, and `attributes` may cut it.
    ///
    /// # Errors
    /// As the server says.
    pub async fn create(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
        attributes: Sattr3,
        exclusive: bool,
    ) -> Result<Found, Error> {
        let acting = self.acting(who);
        match self.create_as(&acting, (dir, name), attributes, exclusive).await? {
            (found, None) => Ok(found),
            (found, Some(rest)) => self.set(&acting, found.handle, rest).await,
        }
    }

    /// Makes a regular file that is not there yet, and opens it. With `exclusive` a server makes it
    /// once, however often the call is retransmitted; what an exclusive CREATE cannot set, and what
    /// is set of the file before it is closed, goes to the server together.
    ///
    /// # Errors
    /// As the server says; `NFS3ERR_EXIST` where something has the name, which is opened as any
    /// other file.
    pub async fn create_open(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
        attributes: Sattr3,
        exclusive: bool,
    ) -> Result<(Found, Open), Error> {
        let acting = self.acting(who);
        let (found, rest) = match exclusive {
            true => self.create_as(&acting, (dir, name), attributes, true).await?,
            false => (self.create_guarded(&acting, (dir, name), attributes).await?, None),
        };
        let open = self.open_made(who, found.handle);
        let Some(rest) = rest else { return Ok((found, open)) };
        if self.begins_with(who, &found, &rest) {
            let attributes = self.with_own_data(&found.handle, found.attributes);
            return Ok((Found { attributes, ..found }, open));
        }
        match self.set(&acting, found.handle, rest).await {
            Ok(found) => Ok((found, open)),
            Err(error) => {
                open.close().await;
                Err(error)
            }
        }
    }

    /// CREATE, and what is then to be set.
    async fn create_as(
        &self,
        acting: &Acting,
        (dir, name): (FileHandle, &[u8]),
        attributes: Sattr3,
        exclusive: bool,
    ) -> Result<(Found, Option<Sattr3>), Error> {
        let session = &acting.session;
        if !exclusive {
            let found = self.create_or_take(acting, (dir, name), attributes).await?;
            return Ok((found, None));
        }
        if session.version() == Version::Two {
            // It has no exclusive CREATE, and its CREATE sets all: a mode that is set afterwards
            // would have the bits that a default ACL of the directory withholds.
            return Ok((self.create_guarded(acting, (dir, name), attributes).await?, None));
        }
        let how = CreateHow::Exclusive(self.create_verifier());
        let made = self.make(acting, dir, name, session.create(dir, name, how)).await;
        let made = match made {
            Err(error) if error.is_unsupported() => {
                return Ok((self.create_guarded(acting, (dir, name), attributes).await?, None));
            }
            made => made?,
        };
        // An exclusive CREATE sets nothing, and keeps its verifier in the times (RFC 1813 3.3.8).
        let (atime, mtime) = (SetTime::ServerTime, SetTime::ServerTime);
        Ok((made, Some(Sattr3 { atime, mtime, ..attributes })))
    }

    async fn create_guarded(
        &self,
        acting: &Acting,
        (dir, name): (FileHandle, &[u8]),
        attributes: Sattr3,
    ) -> Result<Found, Error> {
        let how = CreateHow::Guarded(attributes);
        self.make(acting, dir, name, acting.session.create(dir, name, how)).await
    }

    async fn create_or_take(
        &self,
        acting: &Acting,
        (dir, name): (FileHandle, &[u8]),
        attributes: Sattr3,
    ) -> Result<Found, Error> {
        if let Some(Target::File(file)) = self.find(&dir, name)
            && attributes.size.is_some()
        {
            self.settle_before_cut(file).await;
        }
        let how = CreateHow::Unchecked(attributes);
        let made = self.make(acting, dir, name, acting.session.create(dir, name, how)).await?;
        let Some(size) = attributes.size else { return Ok(made) };
        self.inner.write_behind.discard(made.handle, size);
        self.inner.state.lock().busy.changed(&made.handle);
        // Before it was cut, our own bytes made it longer.
        let size_known =
            self.inner.state.lock().attributes.last(&made.handle).map(|last| last.size);
        if size_known == Some(size) {
            let attributes = Fattr3 { size, ..made.attributes };
            return Ok(Found { attributes, ..made });
        }
        // Some servers (NFS-Ganesha 4.3) cut a file that was there and go on telling its old size
        // until they have to set it.
        let cut = Sattr3 { size: Some(size), ..Sattr3::default() };
        self.set(acting, made.handle, cut).await
    }

    /// Differs from every other CREATE's.
    fn create_verifier(&self) -> [u8; 8] {
        let mut state = self.inner.state.lock();
        let name = state.busy.hidden_name();
        let mut verifier = [0; 8];
        for (place, byte) in name.iter().enumerate() {
            let turns = u32::try_from(place / 8).unwrap_or(0);
            verifier[place % 8] ^= byte.rotate_left(turns);
        }
        verifier
    }

    /// MKDIR.
    ///
    /// # Errors
    /// As the server says.
    pub async fn mkdir(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
        attributes: Sattr3,
    ) -> Result<Found, Error> {
        let acting = self.acting(who);
        let has_exact_names = self.has_exact_names(&acting, dir).await;
        let made = self.make(&acting, dir, name, acting.session.mkdir(dir, name, attributes)).await;
        made.inspect(|made| {
            self.has_searched(&acting, &made.handle);
            self.begins_empty(made, has_exact_names);
        })
    }

    /// SYMLINK.
    ///
    /// # Errors
    /// As the server says.
    pub async fn symlink(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
        attributes: Sattr3,
        target: &[u8],
    ) -> Result<Found, Error> {
        let acting = self.acting(who);
        self.make(&acting, dir, name, acting.session.symlink(dir, name, attributes, target)).await
    }

    /// MKNOD.
    ///
    /// # Errors
    /// As the server says.
    pub async fn mknod(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
        what: MknodData,
    ) -> Result<Found, Error> {
        let acting = self.acting(who);
        self.make(&acting, dir, name, acting.session.mknod(dir, name, what)).await
    }

    /// Awaits a call that makes an object.
    async fn make(
        &self,
        acting: &Acting,
        dir: FileHandle,
        name: &[u8],
        call: impl Future<Output = Result<NewObject, Error>>,
    ) -> Result<Found, Error> {
        self.finish_making(dir).await;
        let sent = self.now();
        let change = self.changing(dir);
        let (made, settled) = self.settle(change, call.await, |made| made.dir_wcc);
        let now_leads = |target| self.now_leads((&dir, settled), name, target);
        // Perhaps it is there and we thought it was not.
        let made = made.inspect_err(|_| now_leads(None));
        let made = self.more_granted(acting, dir, made).await?;
        let Some(handle) = made.obj else {
            now_leads(None);
            return self.ask_lookup(acting, dir, name).await;
        };
        let found = self.note(&handle, made.obj_attributes, sent);
        self.has_searched(acting, &dir);
        now_leads(Some(Target::File(handle)));
        self.or_fetch(acting, handle, found).await
    }

    /// LINK.
    ///
    /// # Errors
    /// As the server says.
    pub async fn link(
        &self,
        who: &Credential,
        file: FileHandle,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<Found, Error> {
        self.finish_making(file).await;
        self.finish_making(dir).await;
        let acting = self.acting(who);
        let sent = self.now();
        let change = self.changing(dir);
        let result = acting.session.link(file, dir, name).await;
        // The number of links may have changed.
        self.inner.state.lock().attributes.expire(&file);
        if let Err(error) = &result
            && let Detail::Linked { file: attributes, .. } = error.detail()
        {
            self.note(&file, attributes, sent);
        }
        let (answer, settled) = self.settle(change, result, |answer| answer.linkdir_wcc);
        let now_leads = |target| self.now_leads((&dir, settled), name, target);
        // Who gets EXIST may have made it, by a call whose reply was forgotten.
        let answer = answer.inspect_err(|_| now_leads(None))?;
        let found = self.note(&file, answer.file_attributes, sent);
        self.has_searched(&acting, &dir);
        now_leads(Some(Target::File(file)));
        self.or_fetch(&acting, file, found).await
    }

    /// Removes a name. A file that is open here keeps a hidden one until it is closed.
    ///
    /// # Errors
    /// As the server says.
    pub async fn remove(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<(), Error> {
        let acting = self.acting(who);
        let _removal = match self.taking(&acting, dir, name).await? {
            Taking::FromOpen(file) => {
                let hidden = self.inner.state.lock().busy.hidden_name();
                self.ask_rename(&acting, (dir, name), (dir, &hidden)).await?;
                return self.hide(file, Hidden { dir, name: hidden, by: who.clone() }).await;
            }
            Taking::Free(removal) => removal,
        };
        let file = self.find(&dir, name);
        self.ask_remove(&acting, dir, name).await?;
        self.lost_name(file.filter(|file| *file != Target::Nothing));
        Ok(())
    }

    /// A name that led there, as far as was known, is gone: the file may have others.
    fn lost_name(&self, target: Option<Target>) {
        let now = self.now();
        let attributes = &mut self.inner.state.lock().attributes;
        match target {
            Some(Target::File(file)) => attributes.expire(&file),
            Some(Target::Nothing) => {}
            None => attributes.expire_renamed(now),
        }
    }

    pub(super) async fn ask_remove(
        &self,
        acting: &Acting,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<(), Error> {
        self.finish_making(dir).await;
        let change = self.changing(dir);
        let result = acting.session.remove(dir, name).await;
        let (removed, settled) = self.settle(change, result, |wcc| *wcc);
        let nothing = removed.is_ok().then_some(Target::Nothing);
        self.now_leads((&dir, settled), name, nothing);
        removed.map(|_| self.has_searched(acting, &dir))
    }

    /// RMDIR.
    ///
    /// # Errors
    /// As the server says.
    pub async fn rmdir(&self, who: &Credential, dir: FileHandle, name: &[u8]) -> Result<(), Error> {
        let acting = self.acting(who);
        let gone = self.find(&dir, name);
        self.finish_making(dir).await;
        if let Some(Target::File(gone)) = gone {
            self.finish_making(gone).await;
            self.hidden_go(gone).await;
        }
        let change = self.changing(dir);
        let result = acting.session.rmdir(dir, name).await;
        let (removed, settled) = self.settle(change, result, |wcc| *wcc);
        let nothing = removed.is_ok().then_some(Target::Nothing);
        self.now_leads((&dir, settled), name, nothing);
        if let (Ok(_), Some(Target::File(gone))) = (&removed, gone) {
            self.inner.state.lock().attributes.forget(&gone);
        }
        removed.map(|_| self.has_searched(&acting, &dir))
    }

    /// RENAME. A file that would be replaced and is open here keeps a hidden name.
    ///
    /// # Errors
    /// As the server says.
    pub async fn rename(
        &self,
        who: &Credential,
        from: (FileHandle, &[u8]),
        to: (FileHandle, &[u8]),
    ) -> Result<(), Error> {
        let moved = self.find(&from.0, from.1);
        match moved {
            Some(Target::File(file)) => self.finish_making(file).await,
            Some(Target::Nothing) => {}
            None => self.finish_all_making().await,
        }
        let acting = self.acting(who);
        let taking = self.taking(&acting, to.0, to.1).await?;
        let replaced = match taking {
            Taking::FromOpen(file) if from != to && self.replaces(who, from, file).await? => {
                self.keep_by_link(who, file, to).await?.map(|name| (file, name))
            }
            _ => None,
        };
        let gone = self.find(&to.0, to.1);
        if let Some(Target::File(dir)) = gone {
            self.hidden_go(dir).await;
        }
        let renamed = self.ask_rename(&acting, from, to).await;
        self.lost_name(gone);
        if moved.is_some() && may_be_done(&renamed) {
            // Where others have been in the directory this is not sure; but it may be open here.
            self.lost_name(moved);
        }
        if let Some((file, hidden)) = replaced {
            let (hidden, was_moved) = hidden;
            match (renamed.is_ok(), was_moved) {
                // What cannot be removed now is left behind; the renaming is done.
                (true, _) => self.hide(file, hidden).await.unwrap_or_default(),
                (false, false) => self.unhide(vec![hidden]).await,
                // It may be the only name the file has.
                (false, true) => {
                    let from = (hidden.dir, &hidden.name[..]);
                    self.ask_rename(&acting, from, to).await.ok();
                }
            }
        }
        renamed
    }

    pub(super) async fn ask_rename(
        &self,
        acting: &Acting,
        from: (FileHandle, &[u8]),
        to: (FileHandle, &[u8]),
    ) -> Result<(), Error> {
        self.finish_making(from.0).await;
        self.finish_making(to.0).await;
        // What can be renamed is there, whatever we thought.
        let file = self.find(&from.0, from.1).filter(|file| *file != Target::Nothing);
        let replaced = self.find(&to.0, to.1);
        let (sent, source) = (self.now(), self.changing(from.0));
        let target = (from.0 != to.0).then(|| self.changing(to.0));
        let result = acting.session.rename(from, to).await;
        let (from_wcc, to_wcc) = match &result {
            Ok(answer) => (answer.fromdir_wcc, answer.todir_wcc),
            Err(error) => match error.detail() {
                Detail::Renamed { from, to } => (from, to),
                _ => (WccData::default(), WccData::default()),
            },
        };
        let (left, reached) = match target {
            Some(target) => (source.settled(&from_wcc), target.settled(&to_wcc)),
            None => {
                let parts = |wcc: &WccData| (wcc.after.is_some(), wcc.before.is_some());
                let wcc = [to_wcc, from_wcc].into_iter().max_by_key(parts).unwrap_or_default();
                let settled = source.settled(&wcc);
                (settled, settled)
            }
        };
        // Where others have been, the names may have led elsewhere by then.
        let is_sure = left.is_as_it_was && reached.is_as_it_was;
        let [file, replaced] = [file, replaced].map(|known| known.filter(|_| is_sure));
        let is_done = result.is_ok();
        // Two names of one file stay as they are (RFC 1813 section 3.3.14).
        let is_moved = match (file, replaced) {
            (_, Some(Target::Nothing)) => true,
            (Some(file), Some(replaced)) => file != replaced,
            _ => false,
        };
        let nothing = (is_done && is_moved).then_some(Target::Nothing);
        self.now_leads((&from.0, left), from.1, nothing);
        self.now_leads((&to.0, reached), to.1, file.filter(|_| is_done));
        // Its time of change may be another.
        if may_be_done(&result) {
            self.lost_name(file);
        }
        let renamed = self.heard((&from.0, sent), result);
        renamed.map(|_| [from.0, to.0].iter().for_each(|dir| self.has_searched(acting, dir)))
    }
}

/// Whether a call has changed something, unless the server says that nothing was done.
fn may_be_done<T>(result: &Result<T, Error>) -> bool {
    result.as_ref().map_or_else(|error| error.status().is_none(), |_| true)
}
