//! A store whose commits wait until they are let go, which keeps what it was given to write, and
//! whose cookies may be large.

use std::sync::Mutex;

use bytes::Bytes;
use server::durable::Durable;
use server::store::layer::Layer;
use server::store::{
    Changed, Entry, Linked, ListFrom, Listed, Looked, Node, Renamed, Sink, Store, Written,
};
use server::types::{Caller, CreateHow, Handle, SetAttr, Special, Stability};
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

impl<S: Store> Layer for Held<S> {
    type Beneath = S;

    fn beneath(&self) -> &S {
        &self.inner
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
}
