//! Calls over a blocking connection.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_send_buffer_size,
};
use wire::Procedure;
use wire::mount::{self, DirPath, MntReply};
use wire::nfs3::{
    self, DirOp, FileHandle, Procedure as P, Sattr3, StableHow, create, lookup, readdirplus, write,
};
use wire::rpc::OpaqueAuth;
use wire::xdr::{Decode, Encode, Reader};

use crate::rpc;

const REPLY_WITHIN: Duration = Duration::from_secs(100);

pub(super) const MIB: u32 = 1 << 20;

/// What the system may hold for us: two large replies.
const RECEIVED_BYTES: usize = 2 << 20;

/// What a file that is read has, in MiB.
const FILE_MIB: u64 = 4;

/// Of the loopback, and not that of the healthy client: other hosts, for the server. The last part
/// of the first one's address.
const HOSTILE: u8 = 66;

/// What the system takes of ours for one of many connections, of which each sends much.
const SENT_BYTES: usize = 16 << 10;

/// A connection of a hostile host.
pub(super) fn hostile(to: SocketAddr) -> io::Result<TcpStream> {
    from(Ipv4Addr::new(127, 0, 0, HOSTILE), to)
}

/// One of many connections, of as many hostile hosts as it takes when each has so many.
pub(super) fn one_of_many(number: usize, of_host: usize, to: SocketAddr) -> io::Result<TcpStream> {
    let host = u8::try_from(number / of_host).map_err(io::Error::other)?;
    let stream = from(Ipv4Addr::new(127, 0, 0, HOSTILE.saturating_add(host)), to)?;
    set_socket_send_buffer_size(&stream, SENT_BYTES)?;
    Ok(stream)
}

/// A connection of this address.
pub(super) fn from(address: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&fd, &SocketAddr::from((address, 0)))?;
    connect(&fd, &to)?;
    Ok(fd.into())
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    xid: u32,
}

/// A call with its mark.
pub(super) fn record(xid: u32, procedure: Procedure, args: &impl Encode) -> Vec<u8> {
    rpc::record(rpc::call(xid, procedure, OpaqueAuth::NONE, &args.to_bytes()))
}

/// READs of so many bytes, one behind the other.
pub(super) fn reads(file: FileHandle, count: u32, calls: u32) -> Vec<u8> {
    let args = nfs3::read::Args { file, offset: 0, count };
    (0..calls).flat_map(|xid| record(xid, Procedure::Nfs3(P::Read), &args)).collect()
}

impl Connection {
    pub(super) fn to(address: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    pub(super) fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // With segments of 64 KiB, the loopback's, a small window closes and is opened by a timer.
        set_socket_recv_buffer_size_force(&stream, RECEIVED_BYTES)
            .or_else(|_| set_socket_recv_buffer_size(&stream, RECEIVED_BYTES))?;
        stream.set_read_timeout(Some(REPLY_WITHIN))?;
        Ok(Self { stream, xid: 0 })
    }

    pub(super) fn root(&mut self) -> io::Result<FileHandle> {
        let mnt = Procedure::Mount(mount::Procedure::Mnt);
        let reply = self.ask(mnt, &DirPath { dirpath: b"/" })?;
        let mounted: MntReply = results(&reply)?;
        Ok(mounted.map_err(|status| refused("MNT", status))?.fhandle)
    }

    pub(super) fn lookup(&mut self, dir: FileHandle, name: &[u8]) -> io::Result<FileHandle> {
        let args = lookup::Args { what: DirOp { dir, name } };
        let reply = self.ask(Procedure::Nfs3(P::Lookup), &args)?;
        let found: lookup::Reply = results(&reply)?;
        Ok(found.map_err(|failure| refused("LOOKUP", failure.status))?.object)
    }

    /// Reads a directory to its end, with the attributes of all that is in it.
    pub(super) fn walk(&mut self, dir: FileHandle, maxcount: u32) -> io::Result<()> {
        let (mut cookie, mut cookieverf) = (0, [0; 8]);
        loop {
            let args = readdirplus::Args { dir, cookie, cookieverf, dircount: maxcount, maxcount };
            let reply = self.ask(Procedure::Nfs3(P::Readdirplus), &args)?;
            let listed: readdirplus::Reply<'_> = results(&reply)?;
            let listed = listed.map_err(|failure| refused("READDIRPLUS", failure.status))?;
            let last = listed.entries.last().filter(|_| !listed.eof);
            let Some(last) = last else { return Ok(()) };
            (cookie, cookieverf) = (last.cookie, listed.cookieverf);
        }
    }

    /// Makes the file that is read.
    pub(super) fn prepare(mut self) -> io::Result<FileHandle> {
        let root = self.root()?;
        let where_ = DirOp { dir: root, name: b"large" };
        let how = create::CreateHow::Unchecked(Sattr3::default());
        let reply = self.ask(Procedure::Nfs3(P::Create), &create::Args { where_, how })?;
        let created: create::Reply = results(&reply)?;
        let file = created.map_err(|failure| refused("CREATE", failure.status))?.obj;
        let file = file.ok_or_else(|| refused("CREATE", "no handle"))?;
        let data = vec![7; MIB as usize];
        for at in 0..FILE_MIB {
            let (offset, stable) = (at * u64::from(MIB), StableHow::Unstable);
            let args = write::Args { file, offset, count: MIB, stable, data: &data };
            let reply = self.ask(Procedure::Nfs3(P::Write), &args)?;
            let written: write::Reply = results(&reply)?;
            written.map_err(|failure| refused("WRITE", failure.status))?;
        }
        Ok(file)
    }

    /// A call, and the record that answers it.
    pub(super) fn ask(&mut self, procedure: Procedure, args: &impl Encode) -> io::Result<Vec<u8>> {
        self.xid += 1;
        self.stream.write_all(&record(self.xid, procedure, args))?;
        rpc::receive(&mut self.stream)
    }
}

fn results<'r, R: Decode<'r>>(reply: &'r [u8]) -> io::Result<R> {
    let results = rpc::results(reply).map_err(io::Error::other)?;
    R::decode(&mut Reader::new(results)).map_err(io::Error::other)
}

fn refused(what: &str, why: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("{what}: {why:?}"))
}
