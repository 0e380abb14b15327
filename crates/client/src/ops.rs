//! One typed method for each procedure of NFS v3.
//!
//! Over version 2 they give what `v2` makes of that version's procedures.
//!
//! A method gives the procedure's `ReplyOk`; an error status is [`Error::Status`]. What is large
//! (the data of READ) shares the receive buffer; what has a variable length is copied out.

use bytes::Bytes;
use net::call::Answer;
use net::error::CallError;
use perf::units::Instant;
use tokio::sync::oneshot;
use wire::nfs3::{
    DirOp, Failure, Fattr3, FileHandle, NewObject, NfsTime, PostOpAttr, Procedure, Sattr3,
    StableHow, WccData, access, commit, create, fsinfo, fsstat, getattr, link, lookup, mkdir,
    mknod, pathconf, read, readdir, readdirplus, readlink, remove, rename, setattr, symlink, write,
};
use wire::xdr::{Bulk, Decode, Encode, from_bytes};

use crate::error::{Detail, Error};
use crate::session::Session;
use crate::walk;

/// Bytes of a file.
#[derive(Clone, Debug)]
pub struct ReadOk {
    pub file_attributes: Option<Fattr3>,
    pub eof: bool,
    pub data: Bytes,
}

/// A reply and the call's times.
#[derive(Clone, Debug)]
pub struct Timed<T> {
    pub reply: T,
    pub answer: Answer,
}

/// One entry of a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DirEntry {
    pub fileid: u64,
    pub name: Vec<u8>,
    pub cookie: u64,
    /// With READDIRPLUS, where the server had them.
    pub attributes: Option<Fattr3>,
    pub handle: Option<FileHandle>,
}

/// A part of a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DirPage {
    pub dir_attributes: PostOpAttr,
    pub entries: Vec<DirEntry>,
    pub cookieverf: [u8; 8],
    pub eof: bool,
}

impl Session {
    /// NULL, and the call's times.
    ///
    /// # Errors
    /// No reply.
    pub async fn null(&self) -> Result<Answer, Error> {
        if let Some(v2) = self.v2() {
            return v2.null().await;
        }
        self.call(Procedure::Null, |_| {}, Bytes::new()).await
    }

    pub async fn getattr(&self, object: FileHandle) -> Result<Fattr3, Error> {
        if let Some(v2) = self.v2() {
            return v2.getattr(object).await;
        }
        let args = getattr::Args { object };
        let ok: getattr::ReplyOk = self.ask::<_, ()>(Procedure::Getattr, &args).await?;
        Ok(ok.obj_attributes)
    }

    pub async fn setattr(
        &self,
        object: FileHandle,
        new_attributes: Sattr3,
        guard: Option<NfsTime>,
    ) -> Result<WccData, Error> {
        if let Some(v2) = self.v2() {
            return v2.setattr(object, new_attributes, guard).await;
        }
        let args = setattr::Args { object, new_attributes, guard };
        let ok: setattr::ReplyOk = self.ask::<_, WccData>(Procedure::Setattr, &args).await?;
        Ok(ok.obj_wcc)
    }

    pub async fn lookup(&self, dir: FileHandle, name: &[u8]) -> Result<lookup::ReplyOk, Error> {
        if let Some(v2) = self.v2() {
            return v2.lookup(dir, name).await;
        }
        let args = lookup::Args { what: DirOp { dir, name } };
        self.ask::<_, PostOpAttr>(Procedure::Lookup, &args).await
    }

    pub async fn access(&self, object: FileHandle, access: u32) -> Result<access::ReplyOk, Error> {
        if let Some(v2) = self.v2() {
            return v2.access(object, access).await;
        }
        self.ask::<_, PostOpAttr>(Procedure::Access, &access::Args { object, access }).await
    }

    /// READLINK: the target, and the attributes of the link.
    pub async fn readlink(&self, symlink: FileHandle) -> Result<(Vec<u8>, PostOpAttr), Error> {
        if let Some(v2) = self.v2() {
            return v2.readlink(symlink).await;
        }
        let answer = self.send(Procedure::Readlink, &readlink::Args { symlink }).await?;
        let results = answer.results();
        let ok = self.unwrap(Procedure::Readlink, from_bytes::<readlink::Reply<'_>>(&results))?;
        Ok((ok.data.to_vec(), ok.symlink_attributes))
    }

    pub async fn read(&self, file: FileHandle, offset: u64, count: u32) -> Result<ReadOk, Error> {
        self.read_timed(file, offset, count).await.map(|timed| timed.reply)
    }

    /// READ, and the call's times.
    pub async fn read_timed(
        &self,
        file: FileHandle,
        offset: u64,
        count: u32,
    ) -> Result<Timed<ReadOk>, Error> {
        let Timed { mut reply, answer } = match self.v2() {
            Some(v2) => v2.read(file, offset, count).await?,
            None => self.read_v3(file, offset, count).await?,
        };
        if reply.data.is_empty() && count > 0 && !reply.eof {
            let ends_before = |attributes: &Fattr3| attributes.size <= offset;
            if !reply.file_attributes.as_ref().is_some_and(ends_before) {
                let what = "no bytes, though the file does not end there";
                return Err(self.nonsense(Procedure::Read.name(), what));
            }
            reply.eof = true;
        }
        Ok(Timed { reply, answer })
    }

    async fn read_v3(
        &self,
        file: FileHandle,
        offset: u64,
        count: u32,
    ) -> Result<Timed<ReadOk>, Error> {
        let answer = self.send(Procedure::Read, &read::Args { file, offset, count }).await?;
        let results = answer.results();
        let ok = self.unwrap(Procedure::Read, from_bytes::<read::Reply<'_>>(&results))?;
        if ok.count as usize != ok.data.len() || ok.count > count {
            return Err(self.nonsense(Procedure::Read.name(), "count and data differ"));
        }
        let data = results.slice_ref(ok.data);
        let reply = ReadOk { file_attributes: ok.file_attributes, eof: ok.eof, data };
        Ok(Timed { reply, answer })
    }

    /// WRITE, and the call's times. `data` is sent from where it lies.
    pub async fn write(
        &self,
        file: FileHandle,
        offset: u64,
        data: Bytes,
        stable: StableHow,
    ) -> Result<Timed<write::ReplyOk>, Error> {
        self.write_sent(file, offset, data, stable, None).await
    }

    /// WRITE, as [`Session::write`]; `handed` resolves when the call was passed to the socket.
    pub async fn write_sent(
        &self,
        file: FileHandle,
        offset: u64,
        data: Bytes,
        stable: StableHow,
        handed: Option<oneshot::Sender<Instant>>,
    ) -> Result<Timed<write::ReplyOk>, Error> {
        if let Some(v2) = self.v2() {
            return v2.write(file, offset, data, handed).await;
        }
        let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let payload = data.clone();
        let encode = |out: &mut Vec<u8>| {
            write::Args { file, offset, count, stable, data: &data }.encode_head(out);
        };
        let answer = self.call_sent(Procedure::Write, encode, payload, handed).await?;
        let decoded = from_bytes::<write::Reply>(&answer.results());
        let reply = self.unwrap(Procedure::Write, decoded)?;
        if reply.count > count || (reply.count == 0 && count > 0) {
            return Err(
                self.nonsense(Procedure::Write.name(), "an impossible count was acknowledged")
            );
        }
        // RFC 1813 section 3.3.7; whoever asks for stable storage because nothing else stays
        // would ask without end.
        if reply.committed < stable {
            let what = "the data are less stable than was requested";
            return Err(self.nonsense(Procedure::Write.name(), what));
        }
        Ok(Timed { reply, answer })
    }

    pub async fn create(
        &self,
        dir: FileHandle,
        name: &[u8],
        how: create::CreateHow,
    ) -> Result<NewObject, Error> {
        if let Some(v2) = self.v2() {
            return v2.create(dir, name, how).await;
        }
        let args = create::Args { where_: DirOp { dir, name }, how };
        self.ask::<_, WccData>(Procedure::Create, &args).await
    }

    pub async fn mkdir(
        &self,
        dir: FileHandle,
        name: &[u8],
        attributes: Sattr3,
    ) -> Result<NewObject, Error> {
        if let Some(v2) = self.v2() {
            return v2.mkdir(dir, name, attributes).await;
        }
        let args = mkdir::Args { where_: DirOp { dir, name }, attributes };
        self.ask::<_, WccData>(Procedure::Mkdir, &args).await
    }

    pub async fn symlink(
        &self,
        dir: FileHandle,
        name: &[u8],
        symlink_attributes: Sattr3,
        symlink_data: &[u8],
    ) -> Result<NewObject, Error> {
        if let Some(v2) = self.v2() {
            return v2.symlink(dir, name, symlink_attributes, symlink_data).await;
        }
        let where_ = DirOp { dir, name };
        let args = symlink::Args { where_, symlink_attributes, symlink_data };
        self.ask::<_, WccData>(Procedure::Symlink, &args).await
    }

    pub async fn mknod(
        &self,
        dir: FileHandle,
        name: &[u8],
        what: mknod::MknodData,
    ) -> Result<NewObject, Error> {
        if let Some(v2) = self.v2() {
            return v2.mknod(dir, name, what).await;
        }
        let args = mknod::Args { where_: DirOp { dir, name }, what };
        self.ask::<_, WccData>(Procedure::Mknod, &args).await
    }

    pub async fn remove(&self, dir: FileHandle, name: &[u8]) -> Result<WccData, Error> {
        if let Some(v2) = self.v2() {
            return v2.remove(dir, name).await;
        }
        let args = remove::Args { object: DirOp { dir, name } };
        let ok: remove::ReplyOk = self.ask::<_, WccData>(Procedure::Remove, &args).await?;
        Ok(ok.dir_wcc)
    }

    pub async fn rmdir(&self, dir: FileHandle, name: &[u8]) -> Result<WccData, Error> {
        if let Some(v2) = self.v2() {
            return v2.rmdir(dir, name).await;
        }
        let args = remove::Args { object: DirOp { dir, name } };
        let ok: remove::ReplyOk = self.ask::<_, WccData>(Procedure::Rmdir, &args).await?;
        Ok(ok.dir_wcc)
    }

    pub async fn rename(
        &self,
        from: (FileHandle, &[u8]),
        to: (FileHandle, &[u8]),
    ) -> Result<rename::ReplyOk, Error> {
        if let Some(v2) = self.v2() {
            return v2.rename(from, to).await;
        }
        let entry = |(dir, name)| DirOp { dir, name };
        let args = rename::Args { from: entry(from), to: entry(to) };
        self.ask::<_, rename::ReplyOk>(Procedure::Rename, &args).await
    }

    pub async fn link(
        &self,
        file: FileHandle,
        dir: FileHandle,
        name: &[u8],
    ) -> Result<link::ReplyOk, Error> {
        if let Some(v2) = self.v2() {
            return v2.link(file, dir, name).await;
        }
        let args = link::Args { file, link: DirOp { dir, name } };
        self.ask::<_, link::ReplyOk>(Procedure::Link, &args).await
    }

    pub async fn readdir(
        &self,
        dir: FileHandle,
        cookie: u64,
        cookieverf: [u8; 8],
        count: u32,
    ) -> Result<DirPage, Error> {
        if let Some(v2) = self.v2() {
            return self.checked(Procedure::Readdir, cookie, v2.readdir(dir, cookie, count).await?);
        }
        let args = readdir::Args { dir, cookie, cookieverf, count };
        let answer = self.send(Procedure::Readdir, &args).await?;
        let results = answer.results();
        let ok = self.unwrap(Procedure::Readdir, from_bytes::<readdir::Reply<'_>>(&results))?;
        let entries = ok.entries.iter().map(|entry| DirEntry {
            fileid: entry.fileid,
            name: entry.name.to_vec(),
            cookie: entry.cookie,
            attributes: None,
            handle: None,
        });
        let (dir_attributes, cookieverf, eof) = (ok.dir_attributes, ok.cookieverf, ok.eof);
        let page = DirPage { dir_attributes, entries: entries.collect(), cookieverf, eof };
        self.checked(Procedure::Readdir, cookie, page)
    }

    pub async fn readdirplus(
        &self,
        dir: FileHandle,
        cookie: u64,
        cookieverf: [u8; 8],
        dircount: u32,
        maxcount: u32,
    ) -> Result<DirPage, Error> {
        if let Some(v2) = self.v2() {
            let page = v2.readdir(dir, cookie, maxcount).await?;
            return self.checked(Procedure::Readdir, cookie, page);
        }
        let args = readdirplus::Args { dir, cookie, cookieverf, dircount, maxcount };
        let answer = self.send(Procedure::Readdirplus, &args).await?;
        let results = answer.results();
        let decoded = from_bytes::<readdirplus::Reply<'_>>(&results);
        let ok = self.unwrap(Procedure::Readdirplus, decoded)?;
        let entries = ok.entries.iter().map(|entry| DirEntry {
            fileid: entry.fileid,
            name: entry.name.to_vec(),
            cookie: entry.cookie,
            attributes: entry.name_attributes,
            handle: entry.name_handle,
        });
        let (dir_attributes, cookieverf, eof) = (ok.dir_attributes, ok.cookieverf, ok.eof);
        let page = DirPage { dir_attributes, entries: entries.collect(), cookieverf, eof };
        self.checked(Procedure::Readdirplus, cookie, page)
    }

    /// A page behind `cookie`, if one can go on behind each of its entries.
    fn checked(&self, procedure: Procedure, cookie: u64, page: DirPage) -> Result<DirPage, Error> {
        match walk::fault(cookie, &page) {
            Some(what) => Err(self.nonsense(procedure.name(), what)),
            None => Ok(page),
        }
    }

    pub async fn fsstat(&self, fsroot: FileHandle) -> Result<fsstat::ReplyOk, Error> {
        if let Some(v2) = self.v2() {
            return v2.fsstat(fsroot).await;
        }
        self.ask::<_, PostOpAttr>(Procedure::Fsstat, &fsstat::Args { fsroot }).await
    }

    pub async fn fsinfo(&self, fsroot: FileHandle) -> Result<fsinfo::ReplyOk, Error> {
        if let Some(v2) = self.v2() {
            return v2.fsinfo(fsroot).await;
        }
        self.ask::<_, PostOpAttr>(Procedure::Fsinfo, &fsinfo::Args { fsroot }).await
    }

    pub async fn pathconf(&self, object: FileHandle) -> Result<pathconf::ReplyOk, Error> {
        if let Some(v2) = self.v2() {
            return Ok(v2.pathconf());
        }
        self.ask::<_, PostOpAttr>(Procedure::Pathconf, &pathconf::Args { object }).await
    }

    /// COMMIT, and the call's times. `count` 0 means to the end of the file.
    pub async fn commit(
        &self,
        file: FileHandle,
        offset: u64,
        count: u32,
    ) -> Result<Timed<commit::ReplyOk>, Error> {
        if let Some(v2) = self.v2() {
            return Ok(v2.commit());
        }
        let answer = self.send(Procedure::Commit, &commit::Args { file, offset, count }).await?;
        let decoded = from_bytes::<commit::Reply>(&answer.results());
        let reply = self.unwrap(Procedure::Commit, decoded)?;
        Ok(Timed { reply, answer })
    }

    async fn send(&self, procedure: Procedure, args: &impl Encode) -> Result<Answer, Error> {
        self.call(procedure, |out| args.encode(out), Bytes::new()).await
    }

    /// Calls a procedure whose results borrow nothing: `T`, or a failure with `D`.
    async fn ask<T, D>(&self, procedure: Procedure, args: &impl Encode) -> Result<T, Error>
    where
        T: for<'a> Decode<'a>,
        D: for<'a> Decode<'a> + Into<Detail>,
    {
        let answer = self.send(procedure, args).await?;
        self.unwrap(procedure, from_bytes::<Result<T, Failure<D>>>(&answer.results()))
    }

    /// Takes the `ReplyOk` out of a decoded reply.
    fn unwrap<T, D: Into<Detail>>(
        &self,
        procedure: Procedure,
        decoded: Result<Result<T, Failure<D>>, wire::xdr::DecodeError>,
    ) -> Result<T, Error> {
        match decoded {
            Ok(Ok(ok)) => Ok(ok),
            Ok(Err(Failure { status, detail })) => Err(Error::Status {
                procedure: procedure.name(),
                server: self.server(),
                status,
                detail: Box::new(detail.into()),
            }),
            Err(cause) => Err(Error::Call {
                procedure: procedure.name(),
                server: self.server(),
                cause: CallError::Malformed(cause),
            }),
        }
    }
}
