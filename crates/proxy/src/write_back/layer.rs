//! The operations of a store, as clients come to them.

use std::sync::Arc;

use bytes::Bytes;
use perf::units::Instant;
use server::durable::{Committed, Durable};
use server::metrics::Reading;
use server::store::layer::Layer;
use server::store::{
    Changed, Extent, Linked, ListFrom, Listed, Looked, Node, Properties, Renamed, Sink, Space,
    Store, Written,
};
use server::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier,
};
use tokio::sync::oneshot;

use super::{Inner, WriteBack, aliases};

impl<S: Store> WriteBack<S> {
    /// Runs a change to its end, also when its caller goes away: what came of it is
    /// to be known here.
    async fn to_its_end<T, F>(&self, work: impl FnOnce(Arc<Inner<S>>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (done, hears) = oneshot::channel();
        let work = work(Arc::clone(&self.inner));
        self.inner.clock.spawn(async move {
            done.send(work.await).ok();
        });
        match hears.await {
            Ok(outcome) => outcome,
            // The process is about to end.
            Err(_) => std::future::pending().await,
        }
    }

    async fn removed(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        is_dir: bool,
    ) -> Changed<()> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let remove = move |inner: Arc<Inner<S>>| async move {
            inner.remove(&caller, &dir, &name, is_dir).await
        };
        self.to_its_end(remove).await
    }
}

impl<S: Store> Layer for WriteBack<S> {
    type Beneath = S;

    fn beneath(&self) -> &S {
        &self.inner.store
    }

    fn verifier(&self) -> Verifier {
        self.inner.verifier
    }

    fn full(&self, handle: &Handle) -> Handle {
        self.inner.id(handle)
    }

    fn brief(&self, handle: &Handle) -> Option<Handle> {
        // Ours are short.
        (!aliases::is_ours(handle)).then(|| self.inner.store.brief(handle)).flatten()
    }

    fn unstored_handles(&self) -> u64 {
        self.inner.aliases.unstored() as u64 + self.inner.store.unstored_handles()
    }

    fn readings(&self) -> Vec<Reading> {
        self.inner.all_readings()
    }

    async fn tend(&self, now: Instant) {
        self.inner.tend();
        self.inner.store.tend(now).await;
    }

    async fn attr(&self, caller: &Caller, handle: &Handle) -> Result<Attr, Status> {
        self.inner.attr(caller, handle).await
    }

    async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let (caller, handle) = (caller.clone(), *handle);
        let set = move |inner: Arc<Inner<S>>| async move {
            inner.set_attr(&caller, &handle, changes, guard).await.unwrap_or_else(Changed::failed)
        };
        self.to_its_end(set).await
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        self.inner.lookup(caller, dir, name).await
    }

    async fn access(&self, caller: &Caller, handle: &Handle, requested: Access) -> Looked<Access> {
        self.inner.access(caller, handle, requested).await.unwrap_or_else(Looked::failed)
    }

    async fn read_link(&self, caller: &Caller, handle: &Handle) -> Looked<Bytes> {
        self.inner.read_link(caller, handle).await.unwrap_or_else(Looked::failed)
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        self.inner.read(caller, handle, offset, count).await.unwrap_or_else(Looked::failed)
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        _stability: Stability,
    ) -> Changed<Written> {
        let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let (caller, handle) = (caller.clone(), *handle);
        let write = move |inner: Arc<Inner<S>>| async move {
            inner.write(&caller, &handle, offset, data).await.unwrap_or_else(Changed::failed)
        };
        let Changed { wcc, result } = self.to_its_end(write).await;
        // However it was requested, it is as stable as can be.
        let written = |durable| {
            let committed = Committed::Stable(Stability::FileSync, durable);
            Written { count, committed }
        };
        Changed { wcc, result: result.map(written) }
    }

    async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        _offset: u64,
        _count: u32,
    ) -> Changed<Durable> {
        self.inner.commit(caller, handle).await.unwrap_or_else(Changed::failed)
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let make = move |inner: Arc<Inner<S>>| async move {
            inner.create(&caller, &dir, &name, how).await
        };
        self.to_its_end(make).await
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let make = move |inner: Arc<Inner<S>>| async move {
            inner.make_dir(&caller, &dir, &name, attrs).await
        };
        self.to_its_end(make).await
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let target = Bytes::copy_from_slice(target);
        let make = move |inner: Arc<Inner<S>>| async move {
            inner.symlink(&caller, &dir, &name, &target, attrs).await
        };
        self.to_its_end(make).await
    }

    async fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let make = move |inner: Arc<Inner<S>>| async move {
            inner.make_node(&caller, &dir, &name, what, attrs).await
        };
        self.to_its_end(make).await
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        self.removed(caller, dir, name, false).await
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        self.removed(caller, dir, name, true).await
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        let (caller, from_dir, to_dir) = (caller.clone(), *from_dir, *to_dir);
        let (from, to) = (Bytes::copy_from_slice(from_name), Bytes::copy_from_slice(to_name));
        let rename = move |inner: Arc<Inner<S>>| async move {
            inner.rename(&caller, (&from_dir, &from), (&to_dir, &to)).await
        };
        self.to_its_end(rename).await
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        let (caller, file, dir) = (caller.clone(), *handle, *dir);
        let name = Bytes::copy_from_slice(name);
        let link = move |inner: Arc<Inner<S>>| async move {
            inner.link(&caller, &file, &dir, &name).await
        };
        self.to_its_end(link).await
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        self.inner.list(caller, dir, from, sink).await.unwrap_or_else(Looked::failed)
    }

    /// What was answered is stable.
    async fn settle(&self, _handle: &Handle) -> Result<(), Status> {
        Ok(())
    }

    async fn space(&self, caller: &Caller, handle: &Handle) -> Looked<Space> {
        let origin = self.inner.origin(handle).ok().flatten().unwrap_or(self.inner.root);
        let Looked { attr, result } = self.inner.store.space(caller, &origin).await;
        Looked { attr: self.inner.tell_other(handle, attr), result }
    }

    async fn properties(&self, caller: &Caller, handle: &Handle) -> Looked<Properties> {
        let origin = self.inner.origin(handle).ok().flatten().unwrap_or(self.inner.root);
        let Looked { attr, result } = self.inner.store.properties(caller, &origin).await;
        Looked { attr: self.inner.tell_other(handle, attr), result }
    }
}
