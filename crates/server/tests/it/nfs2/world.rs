//! Typed calls of version 2, on a world whose root came from MOUNT version 1.

use std::fmt::Debug;

use server::EngineConfig;
use server::store::Store;
use server::store::dir::DirStore;
use server::store::mem::{MemOptions, MemStore};
use wire::Procedure;
use wire::mount::{self, DirPath, MntReply1, MountStat3};
use wire::nfs2::{self, DirOp, DirOpRes, FHandle, Fattr2, NfsStat2, Procedure as P, Sattr2};
use wire::xdr::{Decode, Encode};

use crate::world::World;

pub(super) struct World2<S = MemStore> {
    pub(super) world: World<S>,
    pub(super) root: FHandle,
}

impl World2 {
    pub(super) fn new() -> Self {
        Self::with(EngineConfig::default())
    }

    pub(super) fn with(config: EngineConfig) -> Self {
        Self::of(World::with(MemOptions::default(), config)).expect("memory has short handles")
    }
}

/// Runs a test over both stores. A directory's handles may be too long for this version, where the
/// process may not have those of the kernel: MNT says so, and the test has nothing to see there.
pub(super) fn over_both(test: impl Fn(&dyn Calls)) {
    test(&World2::new());
    let dir = tempfile::tempdir().unwrap();
    match World2::of(World::<DirStore>::over(dir.path(), EngineConfig::default())) {
        Ok(world) => test(&world),
        Err(status) => assert_eq!(status, MountStat3::Io),
    }
}

pub(super) fn mnt<S: Store>(world: &World<S>, dirpath: &[u8]) -> Result<FHandle, MountStat3> {
    let procedure = Procedure::Mount1(mount::Procedure::Mnt);
    let reply: MntReply1 = world.call(procedure, &DirPath { dirpath });
    reply.map(|ok| ok.directory)
}

impl<S: Store> World2<S> {
    pub(super) fn of(world: World<S>) -> Result<Self, MountStat3> {
        let root = mnt(&world, b"/")?;
        Ok(Self { world, root })
    }
}

/// What a test calls, whatever the store.
pub(super) trait Calls {
    fn root(&self) -> FHandle;
    /// The results of a successful call, leaked.
    fn call(&self, procedure: P, args: Vec<u8>) -> &'static [u8];
}

impl<S: Store> Calls for World2<S> {
    fn root(&self) -> FHandle {
        self.root
    }

    fn call(&self, procedure: P, args: Vec<u8>) -> &'static [u8] {
        let record = self.world.record(Procedure::Nfs2(procedure), &Raw(args));
        let reply = self.world.send(record).expect("a call is answered");
        let (header, rest) = crate::world::split(&reply);
        assert_eq!(header, wire::rpc::ReplyHeader::success(crate::world::XID), "{procedure}");
        rest
    }
}

/// Arguments that are encoded already.
struct Raw(Vec<u8>);

impl Encode for Raw {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl dyn Calls + '_ {
    pub(super) fn nfs<R: Decode<'static> + Debug>(&self, procedure: P, args: &impl Encode) -> R {
        wire::xdr::from_bytes(self.call(procedure, args.to_bytes())).unwrap()
    }

    pub(super) fn getattr(&self, file: FHandle) -> Result<Fattr2, NfsStat2> {
        self.nfs(P::Getattr, &nfs2::getattr::Args { file })
    }

    pub(super) fn setattr(&self, file: FHandle, attributes: Sattr2) -> Result<Fattr2, NfsStat2> {
        self.nfs(P::Setattr, &nfs2::setattr::Args { file, attributes })
    }

    pub(super) fn lookup(&self, dir: FHandle, name: &[u8]) -> Result<FHandle, NfsStat2> {
        let what = DirOp { dir, name };
        let reply: DirOpRes = self.nfs(P::Lookup, &nfs2::lookup::Args { what });
        reply.map(|ok| ok.file)
    }

    pub(super) fn create_with(&self, dir: FHandle, name: &[u8], attributes: Sattr2) -> DirOpRes {
        let where_ = DirOp { dir, name };
        self.nfs(P::Create, &nfs2::create::Args { where_, attributes })
    }

    pub(super) fn create(&self, dir: FHandle, name: &[u8]) -> FHandle {
        self.create_with(dir, name, mode(0o644)).unwrap().file
    }

    pub(super) fn mkdir_reply(&self, dir: FHandle, name: &[u8]) -> DirOpRes {
        let where_ = DirOp { dir, name };
        self.nfs(P::Mkdir, &nfs2::mkdir::Args { where_, attributes: mode(0o755) })
    }

    pub(super) fn mkdir(&self, dir: FHandle, name: &[u8]) -> FHandle {
        self.mkdir_reply(dir, name).unwrap().file
    }

    pub(super) fn symlink(&self, dir: FHandle, name: &[u8], to: &[u8]) -> Result<(), NfsStat2> {
        let from = DirOp { dir, name };
        self.nfs(P::Symlink, &nfs2::symlink::Args { from, to, attributes: Sattr2::default() })
    }

    pub(super) fn readlink(&self, file: FHandle) -> Result<&'static [u8], NfsStat2> {
        let reply: nfs2::readlink::Reply<'static> =
            self.nfs(P::Readlink, &nfs2::readlink::Args { file });
        reply.map(|ok| ok.data)
    }

    pub(super) fn remove(&self, dir: FHandle, name: &[u8]) -> Result<(), NfsStat2> {
        let what = DirOp { dir, name };
        self.nfs(P::Remove, &nfs2::remove::Args { what })
    }

    pub(super) fn rmdir(&self, dir: FHandle, name: &[u8]) -> Result<(), NfsStat2> {
        let what = DirOp { dir, name };
        self.nfs(P::Rmdir, &nfs2::rmdir::Args { what })
    }

    pub(super) fn rename(
        &self,
        from: (FHandle, &[u8]),
        to: (FHandle, &[u8]),
    ) -> Result<(), NfsStat2> {
        let spot = |(dir, name)| DirOp { dir, name };
        let (from, to) = (spot(from), spot(to));
        self.nfs(P::Rename, &nfs2::rename::Args { from, to })
    }

    pub(super) fn link(&self, from: FHandle, dir: FHandle, name: &[u8]) -> Result<(), NfsStat2> {
        let to = DirOp { dir, name };
        self.nfs(P::Link, &nfs2::link::Args { from, to })
    }

    pub(super) fn write(
        &self,
        file: FHandle,
        offset: u32,
        data: &[u8],
    ) -> Result<Fattr2, NfsStat2> {
        let (beginoffset, totalcount) = (u32::MAX, u32::MAX); // unused
        self.nfs(P::Write, &nfs2::write::Args { file, beginoffset, offset, totalcount, data })
    }

    pub(super) fn read(
        &self,
        file: FHandle,
        offset: u32,
        count: u32,
    ) -> nfs2::read::Reply<'static> {
        self.nfs(P::Read, &nfs2::read::Args { file, offset, count, totalcount: u32::MAX })
    }

    pub(super) fn readdir(
        &self,
        dir: FHandle,
        cookie: u32,
        count: u32,
    ) -> nfs2::readdir::Reply<'static> {
        self.nfs(P::Readdir, &nfs2::readdir::Args { dir, cookie, count })
    }

    pub(super) fn statfs(&self, file: FHandle) -> nfs2::statfs::Reply {
        self.nfs(P::Statfs, &nfs2::statfs::Args { file })
    }
}

pub(super) fn mode(mode: u32) -> Sattr2 {
    Sattr2 { mode: Some(mode), ..Sattr2::default() }
}

pub(super) fn size(size: u32) -> Sattr2 {
    Sattr2 { size: Some(size), ..Sattr2::default() }
}
