//! The procedures, in the order of those of version 3.

use bytes::Bytes;
use net::call::Answer;
use perf::units::Instant;
use tokio::sync::oneshot;
use wire::nfs2::{
    self, DirOpOk, Fattr2, MAXDATA, Procedure, Sattr2, Timeval, create, getattr, link, lookup,
    mkdir, mode_type, read, readdir, readlink, remove, rename, rmdir, setattr, statfs, symlink,
    write,
};
use wire::nfs3::access::{self, ReplyOk as Access};
use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::MknodData;
use wire::nfs3::{
    self, Fattr3, FileHandle, NewObject, NfsStat3, NfsTime, PostOpAttr, Sattr3, StableHow, WccData,
    commit, fsinfo, fsstat, pathconf,
};
use wire::rpc::AuthSys;
use wire::xdr::{Bulk, Void, from_bytes};

use super::{V2, target, types};
use crate::error::Error;
use crate::ops::{DirEntry, DirPage, ReadOk, Timed};

/// Bytes of a listing to ask for; READDIR counts all that follows the status.
const LISTING_BYTES_MAX: u32 = MAXDATA;

/// What every file system of those days could do.
const PROPERTIES: u32 =
    fsinfo::FSF_LINK | fsinfo::FSF_SYMLINK | fsinfo::FSF_HOMOGENEOUS | fsinfo::FSF_CANSETTIME;

/// Of a file that is made without a mode.
const MODE_UNSTATED: u32 = 0o600;

/// Never changes, because every WRITE is stable.
const VERIFIER: [u8; 8] = *b"nfs2    ";

impl V2<'_> {
    pub(crate) async fn null(&self) -> Result<Answer, Error> {
        self.call(Procedure::Null, |_| {}, Bytes::new()).await
    }

    pub(crate) async fn getattr(&self, object: FileHandle) -> Result<Fattr3, Error> {
        let file = self.handle(Procedure::Getattr, object)?;
        let found: Fattr2 = self.ask(Procedure::Getattr, &getattr::Args { file }).await?;
        Ok(types::attributes(&found))
    }

    pub(crate) async fn setattr(
        &self,
        object: FileHandle,
        new_attributes: Sattr3,
        guard: Option<NfsTime>,
    ) -> Result<WccData, Error> {
        const SETATTR: Procedure = Procedure::Setattr;
        if let Some(ctime) = guard
            && self.getattr(object).await?.ctime != ctime
        {
            return Err(self.refused(SETATTR, NfsStat3::NotSync));
        }
        let attributes = self.to_set(SETATTR, &new_attributes)?;
        let args = setattr::Args { file: self.handle(SETATTR, object)?, attributes };
        let after: Fattr2 = self.ask(SETATTR, &args).await?;
        Ok(types::after(&after))
    }

    pub(crate) async fn lookup(
        &self,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<nfs3::lookup::ReplyOk, Error> {
        let what = self.entry(Procedure::Lookup, dir, name)?;
        let found: DirOpOk = self.ask(Procedure::Lookup, &lookup::Args { what }).await?;
        Ok(nfs3::lookup::ReplyOk {
            object: types::handle(found.file),
            obj_attributes: Some(types::attributes(&found.attributes)),
            dir_attributes: None,
        })
    }

    pub(crate) async fn access(&self, object: FileHandle, wanted: u32) -> Result<Access, Error> {
        let attributes = self.getattr(object).await?;
        let allowed = match from_bytes::<AuthSys<'_>>(self.0.credential()) {
            Ok(AuthSys { uid, gid, gids, .. }) => {
                types::allowed(&attributes, uid, gid, gids.as_slice(), wanted)
            }
            Err(_) => 0,
        };
        Ok(access::ReplyOk { obj_attributes: Some(attributes), access: allowed })
    }

    pub(crate) async fn readlink(&self, link: FileHandle) -> Result<(Vec<u8>, PostOpAttr), Error> {
        let file = self.handle(Procedure::Readlink, link)?;
        let answer = self.send(Procedure::Readlink, &readlink::Args { file }).await?;
        let results = answer.results();
        let ok = self.unwrap(Procedure::Readlink, from_bytes::<readlink::Reply<'_>>(&results))?;
        Ok((ok.data.to_vec(), None))
    }

    pub(crate) async fn read(
        &self,
        file: FileHandle,
        offset: u64,
        count: u32,
    ) -> Result<Timed<ReadOk>, Error> {
        const READ: Procedure = Procedure::Read;
        let handle = self.handle(READ, file)?;
        let Ok(offset) = u32::try_from(offset) else {
            // No file reaches so far.
            let reply = ReadOk { file_attributes: None, eof: true, data: Bytes::new() };
            return Ok(Timed { reply, answer: self.0.rpc().without_call() });
        };
        let count = count.min(MAXDATA);
        let args = read::Args { file: handle, offset, count, totalcount: 0 };
        let answer = self.send(READ, &args).await?;
        let results = answer.results();
        let ok = self.unwrap(READ, from_bytes::<read::Reply<'_>>(&results))?;
        if ok.data.len() > count as usize {
            return Err(self.0.nonsense(READ.name(), "more data than was requested"));
        }
        let data = results.slice_ref(ok.data);
        let attributes = types::attributes(&ok.attributes);
        let eof = u64::from(offset) + data.len() as u64 >= attributes.size;
        let reply = ReadOk { file_attributes: Some(attributes), eof, data };
        Ok(Timed { reply, answer })
    }

    /// What is more than 8 KiB is left to the next call, as its count says.
    pub(crate) async fn write(
        &self,
        file: FileHandle,
        offset: u64,
        data: Bytes,
        handed: Option<oneshot::Sender<Instant>>,
    ) -> Result<Timed<nfs3::write::ReplyOk>, Error> {
        const WRITE: Procedure = Procedure::Write;
        let handle = self.handle(WRITE, file)?;
        let data = data.slice(..data.len().min(MAXDATA as usize));
        let count = u32::try_from(data.len()).unwrap_or(MAXDATA);
        // The last byte that a size of 32 bits can count.
        self.narrow(WRITE, offset.saturating_add(u64::from(count)))?;
        let offset = self.narrow(WRITE, offset)?;
        let payload = data.clone();
        let encode = |out: &mut Vec<u8>| {
            let (beginoffset, totalcount) = (offset, count);
            write::Args { file: handle, beginoffset, offset, totalcount, data: &data }
                .encode_head(out);
        };
        let answer = self.0.call_at(target(WRITE), WRITE.name(), encode, payload, handed).await?;
        let after = self.unwrap(WRITE, from_bytes::<write::Reply>(&answer.results()))?;
        let committed = StableHow::FileSync;
        let file_wcc = types::after(&after);
        let reply = nfs3::write::ReplyOk { file_wcc, count, committed, verf: VERIFIER };
        Ok(Timed { reply, answer })
    }

    pub(crate) async fn create(
        &self,
        dir: FileHandle,
        name: &[u8],
        how: CreateHow,
    ) -> Result<NewObject, Error> {
        let attributes = match how {
            CreateHow::Unchecked(attributes) | CreateHow::Guarded(attributes) => attributes,
            // The caller sets them when he has the file.
            CreateHow::Exclusive(_) => Sattr3::of_mode(MODE_UNSTATED),
        };
        if !matches!(how, CreateHow::Unchecked(_)) {
            match self.lookup(dir, name).await {
                Ok(_) => return Err(self.refused(Procedure::Create, NfsStat3::Exist)),
                Err(error) if error.status() == Some(NfsStat3::NoEnt) => {}
                Err(error) => return Err(error),
            }
        }
        self.make(dir, name, mode_type::REG, &attributes, None).await
    }

    pub(crate) async fn mkdir(
        &self,
        dir: FileHandle,
        name: &[u8],
        attributes: Sattr3,
    ) -> Result<NewObject, Error> {
        let where_ = self.entry(Procedure::Mkdir, dir, name)?;
        let attributes = self.to_set(Procedure::Mkdir, &attributes)?;
        let made: DirOpOk = self.ask(Procedure::Mkdir, &mkdir::Args { where_, attributes }).await?;
        Ok(found(&made))
    }

    /// SYMLINK gives neither handle nor attributes.
    pub(crate) async fn symlink(
        &self,
        dir: FileHandle,
        name: &[u8],
        attributes: Sattr3,
        to: &[u8],
    ) -> Result<NewObject, Error> {
        let from = self.entry(Procedure::Symlink, dir, name)?;
        let attributes = self.to_set(Procedure::Symlink, &attributes)?;
        if to.len() > nfs2::MAXPATHLEN {
            return Err(self.refused(Procedure::Symlink, NfsStat3::NameTooLong));
        }
        let args = symlink::Args { from, to, attributes };
        self.ask::<Void>(Procedure::Symlink, &args).await?;
        Ok(NewObject::default())
    }

    pub(crate) async fn mknod(
        &self,
        dir: FileHandle,
        name: &[u8],
        what: MknodData,
    ) -> Result<NewObject, Error> {
        let (kind, attributes, device) = match what {
            MknodData::Chr(given) => (mode_type::CHR, given.dev_attributes, Some(given.spec)),
            MknodData::Blk(given) => (mode_type::BLK, given.dev_attributes, Some(given.spec)),
            MknodData::Sock(attributes) => (mode_type::SOCK, attributes, None),
            MknodData::Fifo(attributes) => (mode_type::FIFO, attributes, None),
            _ => return Err(self.refused(Procedure::Create, NfsStat3::BadType)),
        };
        self.make(dir, name, kind, &attributes, device.map(types::device)).await
    }

    /// CREATE of whatever type.
    async fn make(
        &self,
        dir: FileHandle,
        name: &[u8],
        kind: u32,
        attributes: &Sattr3,
        device: Option<u32>,
    ) -> Result<NewObject, Error> {
        const CREATE: Procedure = Procedure::Create;
        let where_ = self.entry(CREATE, dir, name)?;
        let given = self.to_set(CREATE, attributes)?;
        // Servers take what has no mode for one of 0. It is its maker's alone, as in version 3.
        let mode = Some(given.mode.unwrap_or(MODE_UNSTATED) | kind);
        let attributes = Sattr2 { mode, size: device.or(given.size), ..given };
        let made: DirOpOk = self.ask(CREATE, &create::Args { where_, attributes }).await?;
        Ok(found(&made))
    }

    pub(crate) async fn remove(&self, dir: FileHandle, name: &[u8]) -> Result<WccData, Error> {
        let what = self.entry(Procedure::Remove, dir, name)?;
        self.ask::<Void>(Procedure::Remove, &remove::Args { what }).await?;
        Ok(WccData::default())
    }

    pub(crate) async fn rmdir(&self, dir: FileHandle, name: &[u8]) -> Result<WccData, Error> {
        let what = self.entry(Procedure::Rmdir, dir, name)?;
        self.ask::<Void>(Procedure::Rmdir, &rmdir::Args { what }).await?;
        Ok(WccData::default())
    }

    pub(crate) async fn rename(
        &self,
        from: (FileHandle, &[u8]),
        to: (FileHandle, &[u8]),
    ) -> Result<nfs3::rename::ReplyOk, Error> {
        const RENAME: Procedure = Procedure::Rename;
        let (from, to) = (self.entry(RENAME, from.0, from.1)?, self.entry(RENAME, to.0, to.1)?);
        self.ask::<Void>(RENAME, &rename::Args { from, to }).await?;
        let nothing = WccData::default();
        Ok(nfs3::rename::ReplyOk { fromdir_wcc: nothing, todir_wcc: nothing })
    }

    pub(crate) async fn link(
        &self,
        file: FileHandle,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<nfs3::link::ReplyOk, Error> {
        let from = self.handle(Procedure::Link, file)?;
        let to = self.entry(Procedure::Link, dir, name)?;
        self.ask::<Void>(Procedure::Link, &link::Args { from, to }).await?;
        Ok(nfs3::link::ReplyOk { file_attributes: None, linkdir_wcc: WccData::default() })
    }

    pub(crate) async fn readdir(
        &self,
        dir: FileHandle,
        cookie: u64,
        count: u32,
    ) -> Result<DirPage, Error> {
        const READDIR: Procedure = Procedure::Readdir;
        let dir = self.handle(READDIR, dir)?;
        let cookie =
            u32::try_from(cookie).map_err(|_| self.refused(READDIR, NfsStat3::BadCookie))?;
        let args = readdir::Args { dir, cookie, count: count.min(LISTING_BYTES_MAX) };
        let answer = self.send(READDIR, &args).await?;
        let results = answer.results();
        let ok = self.unwrap(READDIR, from_bytes::<readdir::Reply<'_>>(&results))?;
        let entries = ok.entries.iter().map(|entry| DirEntry {
            fileid: u64::from(entry.fileid),
            name: entry.name.to_vec(),
            cookie: u64::from(entry.cookie),
            attributes: None,
            handle: None,
        });
        let (entries, eof) = (entries.collect(), ok.eof);
        Ok(DirPage { dir_attributes: None, entries, cookieverf: [0; 8], eof })
    }

    /// Files are not counted in version 2.
    pub(crate) async fn fsstat(&self, root: FileHandle) -> Result<fsstat::ReplyOk, Error> {
        let file = self.handle(Procedure::Statfs, root)?;
        let found: statfs::ReplyOk = self.ask(Procedure::Statfs, &statfs::Args { file }).await?;
        let bytes = |blocks: u32| u64::from(blocks) * u64::from(found.bsize);
        Ok(fsstat::ReplyOk {
            obj_attributes: None,
            tbytes: bytes(found.blocks),
            fbytes: bytes(found.bfree),
            abytes: bytes(found.bavail),
            tfiles: 0,
            ffiles: 0,
            afiles: 0,
            invarsec: 0,
        })
    }

    pub(crate) async fn fsinfo(&self, root: FileHandle) -> Result<fsinfo::ReplyOk, Error> {
        let attributes = self.getattr(root).await?;
        Ok(fsinfo::ReplyOk {
            obj_attributes: Some(attributes),
            rtmax: MAXDATA,
            rtpref: MAXDATA,
            rtmult: 512,
            wtmax: MAXDATA,
            wtpref: MAXDATA,
            wtmult: 512,
            dtpref: LISTING_BYTES_MAX,
            maxfilesize: u64::from(u32::MAX),
            time_delta: NfsTime { seconds: 0, nseconds: 1000 },
            properties: PROPERTIES,
        })
    }

    pub(crate) fn pathconf(&self) -> pathconf::ReplyOk {
        pathconf::ReplyOk {
            obj_attributes: None,
            // Nobody says; POSIX has 8 at least, and file systems have thousands.
            linkmax: 32_000,
            name_max: 255,
            no_trunc: true,
            chown_restricted: true,
            case_insensitive: false,
            case_preserving: true,
        }
    }

    pub(crate) fn commit(&self) -> Timed<commit::ReplyOk> {
        let reply = commit::ReplyOk { file_wcc: WccData::default(), verf: VERIFIER };
        Timed { reply, answer: self.0.rpc().without_call() }
    }

    fn to_set(&self, procedure: Procedure, attributes: &Sattr3) -> Result<Sattr2, Error> {
        let now = self.0.rpc().since_1970();
        let seconds = u32::try_from(now.as_secs()).unwrap_or(u32::MAX - 1);
        let now = Timeval { seconds, useconds: now.subsec_micros() };
        types::to_set(attributes, now).ok_or_else(|| self.refused(procedure, NfsStat3::FBig))
    }
}

fn found(made: &DirOpOk) -> NewObject {
    NewObject {
        obj: Some(types::handle(made.file)),
        obj_attributes: Some(types::attributes(&made.attributes)),
        dir_wcc: WccData::default(),
    }
}
