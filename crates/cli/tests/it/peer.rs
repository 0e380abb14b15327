//! What may listen where an NFS server was expected.
//!
//! A peer accepts connections and treats each as configured, on threads that end with the test
//! process.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use testkit::lies::{Liar, Lie};
use wire::Procedure;
use wire::mount::{self, MntOk, MntReply, MountStat3};
use wire::nfs3::{self, FileHandle, NewObject, NfsTime, fsinfo};
use wire::record::Fragment;
use wire::rpc::{AUTH_SYS, Call, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader};

use crate::served::url;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) port: u16,
    calls: mpsc::Receiver<()>,
}

impl Peer {
    fn start(treat: impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let treat = Arc::new(treat);
        let (called, calls) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let treat = Arc::clone(&treat);
                called.send(()).ok();
                // The other side goes away when it has seen enough: that is no failure here.
                thread::spawn(move || treat(stream).ok());
            }
        });
        Self { port, calls }
    }

    /// Waits for a connection.
    pub(crate) fn has_been_called(&self) {
        self.calls.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        url(self.port, "/export")
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Takes everything and says nothing.
    pub(crate) fn silent() -> Self {
        Self::start(|mut stream| std::io::copy(&mut stream, &mut std::io::sink()).map(drop))
    }

    pub(crate) fn echo() -> Self {
        Self::start(|stream| std::io::copy(&mut &stream, &mut &stream).map(drop))
    }

    /// Ends each connection at once.
    pub(crate) fn closing() -> Self {
        Self::start(|stream| stream.shutdown(std::net::Shutdown::Both))
    }

    /// Says the same to everyone, and then reads on.
    pub(crate) fn saying(what: &[u8]) -> Self {
        let what = what.to_vec();
        Self::start(move |mut stream| {
            stream.write_all(&what)?;
            std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
        })
    }

    /// Says noise without end.
    pub(crate) fn noise(seed: u64) -> Self {
        Self::start(move |mut stream| {
            let mut noise = Noise(seed);
            loop {
                stream.write_all(&noise.bytes(4096))?;
            }
        })
    }

    /// Speaks RPC, but its results are garbage unless the procedure is one of `honest`.
    pub(crate) fn lying(honest: &'static [Procedure]) -> Self {
        Self::speaking(move |procedure| match honest.contains(&procedure) {
            true => results(procedure),
            false => vec![0xfe; 7],
        })
    }

    /// Exports nothing to us.
    pub(crate) fn refusing() -> Self {
        Self::speaking(|_mnt| MntReply::Err(MountStat3::Acces).to_bytes())
    }

    /// Stands before a server and tells its replies otherwise.
    pub(crate) fn telling(server: SocketAddr, lie: Lie) -> Self {
        let liar = Liar::new(lie);
        Self::start(move |mut stream| {
            let mut server = TcpStream::connect(server)?;
            loop {
                let call = record(&mut stream)?;
                say_record(&mut server, &call)?;
                let reply = record(&mut server)?;
                say_record(&mut stream, &liar.retell(&call, reply))?;
            }
        })
    }

    /// Speaks RPC, and answers with `results` of the procedure that is called.
    fn speaking(results: impl Fn(Procedure) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start(move |mut stream| {
            loop {
                let record = record(&mut stream)?;
                let Ok(Call::Version2(header)) = Call::decode(&mut Reader::new(&record)) else {
                    panic!("the client does not send calls");
                };
                let success = ReplyHeader::success(header.xid).to_bytes();
                let reply = [success, results(header.procedure())].concat();
                say_record(&mut stream, &reply)?;
            }
        })
    }
}

/// The next record, which is one fragment.
fn record(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let mut record = vec![0; Fragment::from_header(mark).len as usize];
    stream.read_exact(&mut record)?;
    Ok(record)
}

fn say_record(stream: &mut TcpStream, record: &[u8]) -> std::io::Result<()> {
    let len = u32::try_from(record.len()).unwrap();
    // At once: the second of two small writes would wait for a late acknowledgement of the first.
    stream.write_all(&[&Fragment { last: true, len }.to_header()[..], record].concat())
}

/// A port that is taken and on which nobody listens; a server of ours may.
#[derive(Debug)]
pub(crate) struct Nobody {
    pub(crate) address: SocketAddr,
    _socket: OwnedFd,
}

impl Nobody {
    pub(crate) fn there() -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        set_socket_reuseaddr(&socket, true).unwrap();
        bind(&socket, &any).unwrap();
        let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
        Self { address, _socket: socket }
    }
}

fn results(procedure: Procedure) -> Vec<u8> {
    let handle = FileHandle::new(b"handle").unwrap();
    match procedure {
        Procedure::Mount(mount::Procedure::Mnt) => {
            MntReply::Ok(MntOk { fhandle: handle, auth_flavors: vec![AUTH_SYS] }).to_bytes()
        }
        Procedure::Nfs3(nfs3::Procedure::Fsinfo) => {
            let size = 64 << 10;
            fsinfo::Reply::Ok(fsinfo::ReplyOk {
                obj_attributes: None,
                rtmax: size,
                rtpref: size,
                rtmult: 1,
                wtmax: size,
                wtpref: size,
                wtmult: 1,
                dtpref: size,
                maxfilesize: u64::MAX,
                time_delta: NfsTime::default(),
                properties: 0,
            })
            .to_bytes()
        }
        Procedure::Nfs3(nfs3::Procedure::Mkdir | nfs3::Procedure::Create) => {
            let made = NewObject { obj: Some(handle), ..NewObject::default() };
            nfs3::create::Reply::Ok(made).to_bytes()
        }
        _ => panic!("no honest {procedure} here"),
    }
}

/// Bytes without a meaning, the same for the same seed (xorshift64, Marsaglia 2003).
#[derive(Debug)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_le_bytes()).flatten().take(count).collect()
    }
}
