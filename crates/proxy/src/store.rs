//! The operations of the store: each is a call, or some, to the origin.

use bytes::Bytes;
use client::session::Session;
use client::url::Version;
use futures_util::future::try_join;
use net::call::Counters;
use perf::units::Instant;
use server::durable::Durable;
use server::metrics::Reading;
use server::store::{
    Changed, Extent, Linked, ListFrom, Listed, Looked, Medium, Node, Properties, Renamed, Sink,
    Space, Store, Written,
};
use server::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier,
};
use wire::nfs3::fsinfo;

use crate::ahead::Read;
use crate::fate::Kind;
use crate::named::Leads;
use crate::neutral;
use crate::remote::Remote;

impl Store for Remote {
    fn root(&self) -> Handle {
        self.handles.seal(&self.root)
    }

    /// As the origin answers for it.
    fn medium(&self) -> Medium {
        Medium::Stable
    }

    /// Replies carry the origin's, which no operation here needs beforehand.
    fn verifier(&self) -> Verifier {
        Verifier([0; 8])
    }

    fn brief(&self, handle: &Handle) -> Option<Handle> {
        self.handles.brief(handle)
    }

    fn full(&self, handle: &Handle) -> Handle {
        self.handles.full(handle)
    }

    /// Calls are retransmitted over each new connection.
    fn doubts(&self) -> u64 {
        let Counters { procedures, transport, .. } = self.session().rpc().counters();
        let again = procedures.iter().map(|counted| counted.retransmissions).sum::<u64>();
        transport.connects + again
    }

    /// They are the origin's.
    fn shares_clock(&self) -> bool {
        false
    }

    /// Version 2 has no ACCESS, and the origin may squash the caller, or know better.
    fn guesses_rights(&self) -> bool {
        self.session().version() == Version::Two
    }

    fn unstored_handles(&self) -> u64 {
        self.handles.unstored() as u64
    }

    async fn tend(&self, _now: Instant) {
        self.ahead.tend();
    }

    fn readings(&self) -> Vec<Reading> {
        self.all_readings()
    }

    async fn attr(&self, caller: &Caller, handle: &Handle) -> Result<Attr, Status> {
        let origin = self.origin_handle(handle)?;
        let (session, begun) = (self.acting(caller), self.clock.now());
        let returned = self.or_cached(session.getattr(origin), |known| known.last(&origin)).await;
        let (returned, was_cached) =
            returned.map_err(|error| self.failed(&error, Kind::Repeatable))?;
        if !was_cached {
            self.learn(&origin, &returned, Some(begun));
        }
        Ok(neutral::attr(&returned))
    }

    async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Changed::failed(status),
        };
        // With a guard it is another call the second time.
        let kind = if guard.is_some() { Kind::Once } else { Kind::Repeatable };
        let (changes, guard) = (neutral::sattr(&changes), guard.map(neutral::nfstime));
        match self.acting(caller).setattr(origin, changes, guard).await {
            Ok(wcc) => {
                self.changed(&origin, wcc.after.as_ref());
                Changed { wcc: neutral::wcc(&wcc), result: Ok(()) }
            }
            Err(error) => self.changed_in_vain(&error, kind),
        }
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        self.look_up(caller, dir, name).await
    }

    async fn climb(&self, caller: &Caller, dir: &Handle) -> Looked<Node> {
        match self.origin_handle(dir) {
            Ok(origin) => self.above_any(&self.acting(caller), origin).await,
            Err(status) => Looked::failed(status),
        }
    }

    async fn access(&self, caller: &Caller, handle: &Handle, requested: Access) -> Looked<Access> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Looked::failed(status),
        };
        match self.ask_access(&self.acting(caller), caller, origin, requested.0).await {
            Ok((reply, _)) => {
                let granted = Access(reply.access & requested.0);
                Looked { attr: neutral::post_op(reply.obj_attributes), result: Ok(granted) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }

    async fn read_link(&self, caller: &Caller, handle: &Handle) -> Looked<Bytes> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Looked::failed(status),
        };
        match self.acting(caller).readlink(origin).await {
            Ok((target, attributes)) => {
                Looked { attr: neutral::post_op(attributes), result: Ok(Bytes::from(target)) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        let file = match self.origin_handle(handle) {
            Ok(file) => file,
            Err(status) => return Looked::failed(status),
        };
        let session = &self.acting(caller);
        self.read_bytes(&Read { session, caller, file, offset, count }).await
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        let file = match self.origin_handle(handle) {
            Ok(file) => file,
            Err(status) => return Changed::failed(status),
        };
        let written = self.write_whole(&self.acting(caller), file, offset, data, stability).await;
        // One that has failed may have written some.
        if written.wcc.after.is_none() || written.result.is_err() {
            self.changed(&file, None);
        }
        written
    }

    async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Changed<Durable> {
        let file = match self.origin_handle(handle) {
            Ok(file) => file,
            Err(status) => return Changed::failed(status),
        };
        match self.acting(caller).commit(file, offset, count).await {
            Ok(timed) => {
                let wcc = &timed.reply.file_wcc;
                if let Some(returned) = &wcc.after {
                    self.learn(&file, returned, None);
                }
                Changed { wcc: neutral::wcc(wcc), result: Ok(Durable::of_reply(&timed.reply)) }
            }
            Err(error) => self.changed_in_vain(&error, Kind::Repeatable),
        }
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        match self.session().version() {
            Version::Two => self.create_alone(caller, dir, name, how).await,
            Version::Three => self.create_file(caller, dir, name, how).await,
        }
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let attrs = neutral::sattr(&attrs);
        let make = async |session: Session, dir| session.mkdir(dir, name, attrs).await;
        self.make(caller, dir, name, make).await
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let attrs = neutral::sattr(&attrs);
        let make = async |session: Session, dir| session.symlink(dir, name, attrs, target).await;
        self.make(caller, dir, name, make).await
    }

    async fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> Changed<Node> {
        let what = neutral::special(what, &attrs);
        let make = async |session: Session, dir| session.mknod(dir, name, what).await;
        self.make(caller, dir, name, make).await
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        let remove = async |session: Session, dir| session.remove(dir, name).await;
        self.unmake(caller, dir, name, remove).await
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        let remove = async |session: Session, dir| session.rmdir(dir, name).await;
        self.unmake(caller, dir, name, remove).await
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        let [from_dir, to_dir] = match self.origin_handles([from_dir, to_dir]) {
            Ok(dirs) => dirs,
            Err(status) => return Renamed::failed(status),
        };
        match self.acting(caller).rename((from_dir, from_name), (to_dir, to_name)).await {
            Ok(reply) => {
                self.name_moved((&from_dir, from_name), (&to_dir, to_name));
                Renamed {
                    from: neutral::wcc(&reply.fromdir_wcc),
                    to: neutral::wcc(&reply.todir_wcc),
                    result: Ok(()),
                }
            }
            Err(error) => {
                if error.status().is_none() {
                    // It may have been done.
                    self.name_moved((&from_dir, from_name), (&to_dir, to_name));
                }
                self.renamed_in_vain(&error)
            }
        }
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        let [file, dir] = match self.origin_handles([handle, dir]) {
            Ok(both) => both,
            Err(status) => return Linked::failed(status),
        };
        self.names.take(&dir, name);
        match self.acting(caller).link(file, dir, name).await {
            Ok(reply) => {
                self.names.note(&dir, name, Leads::To(file));
                if let Some(returned) = &reply.file_attributes {
                    self.learn(&file, returned, None);
                }
                Linked {
                    attr: neutral::post_op(reply.file_attributes),
                    dir: neutral::wcc(&reply.linkdir_wcc),
                    result: Ok(()),
                }
            }
            Err(error) => self.linked_in_vain(&error),
        }
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        self.list_page(caller, dir, from, sink).await
    }

    async fn space(&self, caller: &Caller, handle: &Handle) -> Looked<Space> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Looked::failed(status),
        };
        match self.acting(caller).fsstat(origin).await {
            Ok(returned) => {
                let space = Space {
                    bytes_total: returned.tbytes,
                    bytes_free: returned.fbytes,
                    bytes_available: returned.abytes,
                    files_total: returned.tfiles,
                    files_free: returned.ffiles,
                    files_available: returned.afiles,
                };
                Looked { attr: neutral::post_op(returned.obj_attributes), result: Ok(space) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }

    async fn properties(&self, caller: &Caller, handle: &Handle) -> Looked<Properties> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Looked::failed(status),
        };
        let session = self.acting(caller);
        let returned = try_join(session.fsinfo(origin), session.pathconf(origin)).await;
        match returned {
            Ok((info, paths)) => {
                let properties = Properties {
                    file_size_max: info.maxfilesize,
                    time_resolution: neutral::time(info.time_delta),
                    hard_links: info.properties & fsinfo::FSF_LINK != 0,
                    symlinks: info.properties & fsinfo::FSF_SYMLINK != 0,
                    links_max: paths.linkmax,
                    name_bytes_max: paths.name_max,
                    chown_restricted: paths.chown_restricted,
                };
                Looked { attr: neutral::post_op(info.obj_attributes), result: Ok(properties) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }
}
