//! A store that does one thing wrong.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use server::durable::Committed;
use server::store::layer::Layer;
use server::store::mem::MemStore;
use server::store::{
    Changed, Entry, Extent, Linked, ListFrom, Listed, Looked, Node, Renamed, Sink, Space, Store,
    Written,
};
use server::types::{Caller, CreateHow, Handle, SetAttr, Stability, Status, Time, Verifier};

/// What is wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    Nothing,
    /// The attributes that come with the reply to CREATE say that there is a byte.
    CreateTellsAByte,
    /// MKDIR of a name that is taken succeeds.
    MakeDirTakesWhatIsThere,
    RemoveRemovesNothing,
    /// RMDIR of a directory with files succeeds.
    RemoveDirTakesFullOnes,
    /// `..` leads to the directory itself.
    ParentIsItself,
    SetAttrTellsTheModeOfBefore,
    SetAttrSetsNothing,
    WriteTellsTheSizeOfBefore,
    WriteLosesTheLastByte,
    ReadTurnsABit,
    /// The attributes that come with the data say that there is a byte more.
    ReadTellsAByteMore,
    ListSkips,
    ListRepeats,
    /// What was listed last time is listed once more.
    ListRemembers,
    RenameLeavesTheOldName,
    LinkTellsOneName,
    RenameOfNothingSucceeds,
    ReadLinkCuts,
    SymlinkMakesAFile,
    SpaceIsFreeBeyondAll,
    /// Names that lead nowhere are answered with NFS3ERR_ACCES.
    NowhereIsDenied,
    /// The directory of CREATE and REMOVE is replied as it was before.
    DirIsRepliedAsBefore,
    /// The same of RENAME.
    RenameTellsDirAsBefore,
    /// Each WRITE has a verifier of its own, as if the server had begun anew every time.
    VerifierChanges,
    /// No space after so many bytes of a file.
    Full,
    /// There are no hard links here.
    NoLinks,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Broken {
    store: MemStore,
    fault: Fault,
    verifiers: AtomicU64,
}

impl Broken {
    pub(super) fn new(store: MemStore, fault: Fault) -> Self {
        Self { store, fault, verifiers: AtomicU64::new(0) }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    async fn is_there(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Option<Node> {
        self.store.lookup(caller, dir, name).await.result.ok()
    }
}

/// Where the lists go wrong.
const LISTED: &[u8] = b"file.7";

impl Layer for Broken {
    type Beneath = MemStore;

    fn beneath(&self) -> &MemStore {
        &self.store
    }

    async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let before = self.store.attr(caller, handle).await;
        let changes = match self.fault {
            Fault::SetAttrSetsNothing => SetAttr { mode: None, ..changes },
            _ => changes,
        };
        let mut changed = self.store.set_attr(caller, handle, changes, guard).await;
        if let (true, Some(after), Ok(before)) =
            (self.is(Fault::SetAttrTellsTheModeOfBefore), &mut changed.wcc.after, before)
        {
            after.mode = before.mode;
        }
        changed
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        let name = if self.is(Fault::ParentIsItself) && name == b".." { b"." } else { name };
        let mut looked = self.store.lookup(caller, dir, name).await;
        if self.is(Fault::NowhereIsDenied) && matches!(looked.result, Err(Status::NoEntry)) {
            looked.result = Err(Status::Access);
        }
        looked
    }

    async fn read_link(&self, caller: &Caller, handle: &Handle) -> Looked<Bytes> {
        let mut looked = self.store.read_link(caller, handle).await;
        if let (true, Ok(target)) = (self.is(Fault::ReadLinkCuts), &mut looked.result) {
            target.truncate(target.len() - 1);
        }
        looked
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        let mut looked = self.store.read(caller, handle, offset, count).await;
        if let (true, Ok(extent)) = (self.is(Fault::ReadTurnsABit), &mut looked.result)
            && offset == 16_384
        {
            let mut data = extent.data.to_vec();
            data[100] ^= 1;
            extent.data = data.into();
        }
        if let (true, Some(attr)) = (self.is(Fault::ReadTellsAByteMore), &mut looked.attr) {
            attr.size += 1;
        }
        looked
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        if self.is(Fault::Full) && offset >= 65_536 {
            let wcc = Default::default();
            return Changed { wcc, result: Err(Status::NoSpace) };
        }
        let before = self.store.attr(caller, handle).await;
        let len = data.len();
        let stored = match self.fault {
            Fault::WriteLosesTheLastByte => data.slice(..len - 1),
            _ => data,
        };
        let mut changed = self.store.write(caller, handle, offset, stored, stability).await;
        if let Ok(written) = &mut changed.result {
            written.count = u32::try_from(len).unwrap();
            if self.is(Fault::VerifierChanges) {
                let verifier = self.verifiers.fetch_add(1, Ordering::Relaxed);
                written.committed = Committed::Unstable(Verifier(verifier.to_be_bytes()));
            }
        }
        if let (Some(after), Ok(before)) = (&mut changed.wcc.after, before) {
            match self.fault {
                Fault::WriteTellsTheSizeOfBefore => after.size = before.size,
                Fault::WriteLosesTheLastByte => after.size += 1,
                _ => {}
            }
        }
        changed
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        let before = self.store.attr(caller, dir).await.ok();
        let mut changed = self.store.create(caller, dir, name, how).await;
        if self.is(Fault::DirIsRepliedAsBefore) {
            changed.wcc.after = before;
        }
        if let (true, Ok(node)) = (self.is(Fault::CreateTellsAByte), &mut changed.result) {
            node.attr.size = 1;
        }
        changed
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let mut changed = self.store.make_dir(caller, dir, name, attrs).await;
        if self.is(Fault::MakeDirTakesWhatIsThere) && changed.result.is_err() {
            changed.result = self.is_there(caller, dir, name).await.ok_or(Status::Io);
        }
        changed
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        if self.is(Fault::SymlinkMakesAFile) {
            return self.store.create(caller, dir, name, CreateHow::Unchecked(attrs)).await;
        }
        self.store.symlink(caller, dir, name, target, attrs).await
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        if self.is(Fault::RemoveRemovesNothing) {
            return Changed { wcc: Default::default(), result: Ok(()) };
        }
        self.store.remove(caller, dir, name).await
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        let mut changed = self.store.remove_dir(caller, dir, name).await;
        if self.is(Fault::RemoveDirTakesFullOnes) && changed.result.is_err() {
            changed.result = Ok(());
        }
        changed
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        let node = self.is_there(caller, from_dir, from_name).await;
        let before = self.store.attr(caller, to_dir).await.ok();
        let mut renamed = self.store.rename(caller, from_dir, from_name, to_dir, to_name).await;
        match (self.fault, node) {
            (Fault::RenameLeavesTheOldName, Some(_)) => {
                let how = CreateHow::Unchecked(SetAttr::default());
                self.store.create(caller, from_dir, from_name, how).await.result.unwrap();
            }
            (Fault::RenameTellsDirAsBefore, _) => {
                (renamed.from.after, renamed.to.after) = (before, before);
            }
            (Fault::RenameOfNothingSucceeds, None) => renamed.result = Ok(()),
            _ => {}
        }
        renamed
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        if self.is(Fault::NoLinks) {
            let (attr, wcc) = (None, Default::default());
            return Linked { attr, dir: wcc, result: Err(Status::NotSupported) };
        }
        let mut linked = self.store.link(caller, handle, dir, name).await;
        if let (true, Some(attr)) = (self.is(Fault::LinkTellsOneName), &mut linked.attr) {
            attr.links = 1;
        }
        linked
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        let fault = self.fault;
        let mut broken = move |entry: Entry<'_>| {
            let is_listed = entry.name == LISTED;
            // With a cookie of its own: a page that repeats one is given up before it is looked at.
            let again = Entry { node: None, cookie: u64::MAX - entry.cookie, ..entry };
            match fault {
                Fault::ListSkips if is_listed => true,
                Fault::ListRepeats if is_listed => sink(entry) && sink(again),
                Fault::ListRemembers if entry.name == b"." => {
                    sink(entry) && sink(Entry { name: b"file.0", ..again })
                }
                _ => sink(entry),
            }
        };
        self.store.list(caller, dir, from, &mut broken).await
    }

    async fn space(&self, caller: &Caller, handle: &Handle) -> Looked<Space> {
        let mut looked = self.store.space(caller, handle).await;
        if let (true, Ok(space)) = (self.is(Fault::SpaceIsFreeBeyondAll), &mut looked.result) {
            space.bytes_free = space.bytes_total + 1;
        }
        looked
    }
}
