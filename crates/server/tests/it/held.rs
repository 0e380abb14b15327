//! A store whose commits wait until they are let go, which keeps what it was given to write, and
//! whose cookies may be large.

use std::sync::Mutex;

use bytes::Bytes;
use server::durable::Durable;
use server::metrics::Reading;
use server::store::{
    Changed, Entry, Extent, Linked, ListFrom, Listed, Looked, Medium, Node, Properties, Renamed,
    Sink, Space, Store, Written,
};
use server::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier,
};
use tokio::sync::Semaphore;

pub(crate) struct Held<S> {
    inner: S,
    /// A permit for each commit that may end.
    pub(crate) commits: Semaphore,
    pub(crate) written: Mutex<Vec<Bytes>>,
    /// Where operations on names stay for ever, as of a process that dies there.
    pub(crate) names_end: Mutex<Option<End>>,
    /// Cookies are the inner store's, this many bits to the left.
    pub(crate) cookie_shift: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    BeforeWork,
    AfterWork,
}

impl<S> Held<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self {
            inner,
            commits: Semaphore::new(0),
            written: Mutex::default(),
            names_end: Mutex::default(),
            cookie_shift: 0,
        }
    }

    /// Lets one commit end.
    pub(crate) fn release(&self) {
        self.commits.add_permits(1);
    }

    async fn end(&self, end: End) {
        if *self.names_end.lock().unwrap() == Some(end) {
            std::future::pending().await
        }
    }

    /// An operation on names, as far as it comes.
    async fn name<T>(&self, work: impl Future<Output = T>) -> T {
        self.end(End::BeforeWork).await;
        let done = work.await;
        self.end(End::AfterWork).await;
        done
    }

    async fn hold(&self) {
        self.commits.acquire().await.unwrap().forget();
    }
}

impl<S: Store> Store for Held<S> {
    fn root(&self) -> Handle {
        self.inner.root()
    }

    fn medium(&self) -> Medium {
        self.inner.medium()
    }

    fn verifier(&self) -> Verifier {
        self.inner.verifier()
    }

    fn readings(&self) -> Vec<Reading> {
        self.inner.readings()
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
        self.inner.set_attr(caller, handle, changes, guard).await
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        self.inner.lookup(caller, dir, name).await
    }

    async fn access(&self, caller: &Caller, handle: &Handle, asked: Access) -> Looked<Access> {
        self.inner.access(caller, handle, asked).await
    }

    async fn read_link(&self, caller: &Caller, handle: &Handle) -> Looked<Bytes> {
        self.inner.read_link(caller, handle).await
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        self.inner.read(caller, handle, offset, count).await
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        self.written.lock().unwrap().push(data.clone());
        if stability > Stability::Unstable {
            self.hold().await;
        }
        self.inner.write(caller, handle, offset, data, stability).await
    }

    async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Changed<Durable> {
        self.hold().await;
        self.inner.commit(caller, handle, offset, count).await
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        self.name(self.inner.create(caller, dir, name, how)).await
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        self.name(self.inner.make_dir(caller, dir, name, attrs)).await
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        self.name(self.inner.symlink(caller, dir, name, target, attrs)).await
    }

    async fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> Changed<Node> {
        self.name(self.inner.make_node(caller, dir, name, what, attrs)).await
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        self.name(self.inner.remove(caller, dir, name)).await
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        self.name(self.inner.remove_dir(caller, dir, name)).await
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        self.name(self.inner.rename(caller, from_dir, from_name, to_dir, to_name)).await
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        self.name(self.inner.link(caller, handle, dir, name)).await
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        let shift = self.cookie_shift;
        let from = ListFrom { cookie: from.cookie >> shift, ..from };
        let mut shifted = |entry: Entry<'_>| sink(Entry { cookie: entry.cookie << shift, ..entry });
        self.inner.list(caller, dir, from, &mut shifted).await
    }

    async fn space(&self, caller: &Caller, handle: &Handle) -> Looked<Space> {
        self.inner.space(caller, handle).await
    }

    async fn properties(&self, caller: &Caller, handle: &Handle) -> Looked<Properties> {
        self.inner.properties(caller, handle).await
    }
}
