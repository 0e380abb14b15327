//! A client that can say anything: bytes on a connection, and what comes back.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use wire::Procedure;
use wire::mount::{self, DirPath, MntReply};
use wire::nfs3::{
    self, DirOp, FType, FileHandle, NfsStat3, Sattr3, StableHow, create, getattr, setattr, write,
};
use wire::record::Fragment;
use wire::rpc::{AcceptStatus, AuthSys, CallHeader, Gids, OpaqueAuth, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader, from_bytes};

use crate::served::Served;

/// How long we wait for an answer or an end.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const NULL: Procedure = Procedure::Nfs3(nfs3::Procedure::Null);

/// One connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    root: FileHandle,
    next_xid: u32,
}

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) body: Outcome,
    pub(crate) results: Vec<u8>,
}

/// A reply's body, without its verifier.
pub(crate) type Outcome = Result<AcceptStatus, wire::rpc::RejectStatus>;

impl Connection {
    pub(crate) fn to(served: &Served) -> Self {
        Self::at(served.address)
    }

    pub(crate) fn at(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, root: FileHandle::new(&[]).unwrap(), next_xid: 1 }
    }

    /// Sends bytes as they are. The other end may have closed: that is for reading to find out.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).ok();
    }

    /// Sends a record in one fragment.
    pub(crate) fn say_record(&mut self, record: &[u8]) {
        self.say(&[&mark(record.len())[..], record].concat());
    }

    /// Says that nothing more will come.
    pub(crate) fn finish_saying(&self) {
        self.stream.shutdown(Shutdown::Write).ok();
    }

    /// The next record; none when the connection has ended.
    pub(crate) fn hear(&mut self) -> Option<Vec<u8>> {
        let mut mark = [0; 4];
        if !self.read(&mut mark) {
            return None;
        }
        let fragment = Fragment::from_header(mark);
        assert!(fragment.last, "our server sends records in one piece");
        let mut record = vec![0; fragment.len as usize];
        assert!(self.read(&mut record), "a reply was cut off");
        Some(record)
    }

    /// Fills `bytes`; `false` when the connection has ended before the first.
    fn read(&mut self, bytes: &mut [u8]) -> bool {
        match self.stream.read_exact(bytes) {
            Ok(()) => true,
            Err(error) => {
                let ends =
                    [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
                assert!(ends.contains(&error.kind()), "neither an answer nor an end: {error}");
                false
            }
        }
    }

    /// Asserts that the server has closed the connection, or does so now, without an answer.
    #[track_caller]
    pub(crate) fn is_closed(&mut self) {
        assert_eq!(self.hear(), None);
    }

    /// Calls with a header of the caller's making, whose XID is `xid`.
    #[track_caller]
    pub(crate) fn ask(&mut self, xid: u32, call: &[u8]) -> Reply {
        self.say_record(call);
        let record = self.hear().expect("a reply, and not the end of the connection");
        let mut reader = Reader::new(&record);
        let header = ReplyHeader::decode(&mut reader).unwrap();
        assert_eq!(header.xid, xid);
        let body = match header.body {
            ReplyBody::Accepted { status, .. } => Ok(status),
            ReplyBody::Denied(status) => Err(status),
        };
        Reply { body, results: reader.rest().to_vec() }
    }

    /// Calls a procedure with whatever bytes as its arguments.
    #[track_caller]
    pub(crate) fn call(&mut self, procedure: Procedure, arguments: &[u8]) -> Reply {
        let xid = self.next_xid;
        self.next_xid += 1;
        self.ask(xid, &call(xid, procedure, arguments))
    }

    /// The results of a call that is accepted.
    #[track_caller]
    fn results(&mut self, procedure: Procedure, arguments: &impl Encode) -> Vec<u8> {
        let Reply { body, results } = self.call(procedure, &arguments.to_bytes());
        assert_eq!(body, Ok(AcceptStatus::Success));
        results
    }

    /// Mounts `/`, once.
    pub(crate) fn root(&mut self) -> FileHandle {
        if self.root.as_bytes().is_empty() {
            let mnt = Procedure::Mount(mount::Procedure::Mnt);
            let results = self.results(mnt, &DirPath { dirpath: b"/" });
            self.root = from_bytes::<MntReply>(&results).unwrap().unwrap().fhandle;
        }
        self.root
    }

    /// Whether NULL is answered, rather than the connection closed.
    pub(crate) fn is_taken(&mut self) -> bool {
        self.say_record(&call(0, NULL, &[]));
        self.hear().is_some()
    }

    /// Asserts that NULL and GETATTR of the root are answered as they should be.
    #[track_caller]
    pub(crate) fn is_served(&mut self) {
        assert!(self.results(NULL, &()).is_empty());
        let object = self.root();
        let getattr = Procedure::Nfs3(nfs3::Procedure::Getattr);
        let results = self.results(getattr, &getattr::Args { object });
        let reply = from_bytes::<getattr::Reply>(&results).unwrap().unwrap();
        assert_eq!(reply.obj_attributes.ftype, FType::Dir);
    }

    /// Makes a file in the root.
    #[track_caller]
    pub(crate) fn creates(&mut self, name: &[u8]) -> FileHandle {
        let where_ = DirOp { dir: self.root(), name };
        let how = create::CreateHow::Guarded(Sattr3::of_mode(0o644));
        let create = Procedure::Nfs3(nfs3::Procedure::Create);
        let results = self.results(create, &create::Args { where_, how });
        from_bytes::<create::Reply>(&results).unwrap().unwrap().obj.unwrap()
    }
}

impl Connection {
    /// Writes a file from its beginning, to stable storage.
    #[track_caller]
    pub(crate) fn writes(&mut self, file: FileHandle, data: &[u8]) {
        assert_eq!(self.writes_at(file, 0, data), Ok(()));
    }

    /// The same from an offset, if it can be done.
    #[track_caller]
    pub(crate) fn writes_at(
        &mut self,
        file: FileHandle,
        offset: u64,
        data: &[u8],
    ) -> Result<(), NfsStat3> {
        let count = u32::try_from(data.len()).unwrap();
        let args = write::Args { file, offset, count, stable: StableHow::FileSync, data };
        let results = self.results(Procedure::Nfs3(nfs3::Procedure::Write), &args);
        match from_bytes::<write::Reply>(&results).unwrap() {
            Ok(written) => assert_eq!(written.count, count),
            Err(failure) => return Err(failure.status),
        }
        Ok(())
    }

    /// Sets attributes of a file.
    #[track_caller]
    pub(crate) fn sets(&mut self, object: FileHandle, new_attributes: Sattr3) {
        let args = setattr::Args { object, new_attributes, guard: None };
        let results = self.results(Procedure::Nfs3(nfs3::Procedure::Setattr), &args);
        from_bytes::<setattr::Reply>(&results).unwrap().unwrap();
    }
}

/// A call of this user.
pub(crate) fn call(xid: u32, procedure: Procedure, arguments: &[u8]) -> Vec<u8> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let gids = Gids::new(&[]).unwrap();
    let body = AuthSys { stamp: 0, machine_name: b"test", uid, gid, gids }.to_bytes();
    let header = CallHeader::new(xid, procedure, OpaqueAuth::sys(&body));
    [&header.to_bytes()[..], arguments].concat()
}

/// The mark of a record in one fragment.
pub(crate) fn mark(len: usize) -> [u8; 4] {
    Fragment { last: true, len: u32::try_from(len).unwrap() }.to_header()
}
