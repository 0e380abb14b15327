//! Operations on names: LOOKUP and those that make, move and remove.
//!
//! Those that change something are in doubt when the connection to the origin breaks under them.
//! The calls below are retransmitted with the XID that they had, and the origin's reply cache
//! knows them.

use client::error::{Detail, Error};
use client::session::Session;
use server::store::{Changed, Linked, Looked, Node, Renamed};
use server::types::{Caller, CreateHow, Handle, Status, Wcc};
use wire::nfs3::{Fattr3, FileHandle, NewObject, NfsStat3, PostOpAttr, WccData, lookup};

use crate::disk::Disk;
use crate::fate::{self, Kind};
use crate::named::Leads;
use crate::neutral;
use crate::remote::Remote;

impl Remote {
    pub(crate) async fn look_up(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        let dir = match self.origin_handle(dir) {
            Ok(dir) => dir,
            Err(status) => return Looked::failed(status),
        };
        let session = self.acting(caller);
        if name == b".." {
            return self.above(&session, dir).await;
        }
        let call = session.lookup(dir, name);
        match self.or_cached(call, |known| known.last_name(&dir, name, caller)).await {
            Ok((reply, was_cached)) => {
                let attr = neutral::post_op(reply.dir_attributes);
                let (found, returned) = (reply.object, reply.obj_attributes);
                if was_cached {
                    return Looked { attr, result: self.cached_node(found, returned) };
                }
                self.note_name((&dir, name), caller, &reply);
                Looked { attr, result: self.node(&session, found, returned).await }
            }
            Err(error) => {
                if error.status() == Some(NfsStat3::NoEnt) {
                    self.names.note(&dir, name, Leads::Nowhere);
                }
                self.looked_in_vain(&error)
            }
        }
    }

    /// The origin has answered the caller what has this name.
    fn note_name(
        &self,
        (dir, name): (&FileHandle, &[u8]),
        caller: &Caller,
        reply: &lookup::ReplyOk,
    ) {
        self.names.note(dir, name, Leads::to(reply.object, reply.obj_attributes.as_ref()));
        if let Some(Disk { known, .. }) = &self.disk {
            known.note_name(dir, name, &reply.object);
            self.note_search(dir, caller, reply.dir_attributes.as_ref());
        }
    }

    /// The origin has shown the caller what has some name of a directory: he may know of them.
    pub(crate) fn note_search(&self, dir: &FileHandle, caller: &Caller, returned: Option<&Fattr3>) {
        let Some(Disk { known, .. }) = &self.disk else { return };
        if let Some(returned) = returned {
            known.note(dir, returned, None);
        }
        // Version 2 has none.
        if let Some(returned) = returned.copied().or_else(|| known.last(dir)) {
            known.note_search(dir, caller, &returned);
        }
    }

    /// A file by what was known of it.
    fn cached_node(&self, origin: FileHandle, returned: PostOpAttr) -> Result<Node, Status> {
        let attr = neutral::post_op(returned).ok_or(Status::Away)?;
        Ok(Node { handle: self.handles.seal(&origin), attr })
    }

    /// A file that the origin has named, with the attributes that it returned or returns now.
    pub(crate) async fn node(
        &self,
        session: &Session,
        origin: FileHandle,
        returned: PostOpAttr,
    ) -> Result<Node, Status> {
        let attributes = match returned {
            Some(attributes) => attributes,
            None => {
                let found_now = session.getattr(origin).await;
                found_now.map_err(|error| self.failed(&error, Kind::Repeatable))?
            }
        };
        self.learn(&origin, &attributes, None);
        Ok(Node { handle: self.handles.seal(&origin), attr: neutral::attr(&attributes) })
    }

    pub(crate) async fn create_file(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        let how = neutral::how(how);
        let make = async |session: Session, dir| session.create(dir, name, how).await;
        self.make(caller, dir, name, make).await
    }

    /// Calls what makes something in a directory.
    pub(crate) async fn make<M>(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        make: impl FnOnce(Session, FileHandle) -> M,
    ) -> Changed<Node>
    where
        M: Future<Output = Result<NewObject, Error>>,
    {
        let origin = match self.origin_handle(dir) {
            Ok(origin) => origin,
            Err(status) => return Changed::failed(status),
        };
        let session = self.acting(caller);
        self.names.take(&origin, name);
        match make(session.clone(), origin).await {
            Ok(NewObject { obj, obj_attributes, dir_wcc }) => {
                if let Some(made) = obj {
                    self.names.note(&origin, name, Leads::to(made, obj_attributes.as_ref()));
                }
                let result = match obj {
                    Some(made) => self.node(&session, made, obj_attributes).await,
                    // It need not tell what it has made.
                    None => self.just_made(&session, origin, name).await,
                };
                Changed { wcc: neutral::wcc(&dir_wcc), result }
            }
            Err(error) => self.changed_in_vain(&error, Kind::Once),
        }
    }

    async fn just_made(
        &self,
        session: &Session,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<Node, Status> {
        match session.lookup(dir, name).await {
            Ok(found) => self.node(session, found.object, found.obj_attributes).await,
            Err(error) => Err(self.failed(&error, Kind::Once)),
        }
    }

    /// Calls what removes something from a directory.
    pub(crate) async fn unmake<M>(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        unmake: impl FnOnce(Session, FileHandle) -> M,
    ) -> Changed<()>
    where
        M: Future<Output = Result<WccData, Error>>,
    {
        let origin = match self.origin_handle(dir) {
            Ok(origin) => origin,
            Err(status) => return Changed::failed(status),
        };
        match unmake(self.acting(caller), origin).await {
            Ok(wcc) => {
                self.name_gone(&origin, name);
                Changed { wcc: neutral::wcc(&wcc), result: Ok(()) }
            }
            Err(error) => {
                if error.status().is_none() {
                    // It may have been done.
                    self.name_gone(&origin, name);
                }
                self.changed_in_vain(&error, Kind::Once)
            }
        }
    }

    /// A name leads no more where it led: links and times of that file are others, of any file if
    /// it is not known which. Gives what is known.
    pub(crate) fn name_gone(&self, dir: &FileHandle, name: &[u8]) -> Option<Leads> {
        if let Some(disk) = &self.disk {
            disk.known.forget_name(dir, name);
        }
        let led = self.names.take(dir, name);
        match &led {
            Some(Leads::To(file)) => self.doubt(file),
            Some(Leads::Nowhere) => {}
            None => self.doubt_all(),
        }
        led
    }

    /// The same of both names of a RENAME.
    pub(crate) fn name_moved(&self, from: (&FileHandle, &[u8]), to: (&FileHandle, &[u8])) {
        let moved = self.name_gone(from.0, from.1);
        self.name_gone(to.0, to.1);
        if let Some(moved) = moved {
            self.names.note(to.0, to.1, moved);
        }
    }

    pub(crate) fn renamed_in_vain(&self, error: &Error) -> Renamed {
        let (from, to) = match error.detail() {
            Detail::Renamed { from, to } => (neutral::wcc(&from), neutral::wcc(&to)),
            _ => <(Wcc, Wcc)>::default(),
        };
        Renamed { from, to, result: Err(self.failed(error, Kind::Once)) }
    }

    pub(crate) fn linked_in_vain(&self, error: &Error) -> Linked {
        let (attr, dir) = match error.detail() {
            Detail::Linked { file, dir } => (neutral::post_op(file), neutral::wcc(&dir)),
            _ => (fate::attr(error), Wcc::default()),
        };
        Linked { attr, dir, result: Err(self.failed(error, Kind::Once)) }
    }
}
