//! Another user of the host: looks for sockets of the victim's that listen, and tries what an
//! attacker would. It runs as that user, in a process of its own, until its input ends.
//!
//! What it does it prints, a line each: `looks N` at the end, `connected` once it has seen that the
//! victim has open connections, `tried TCP PORT` once it has connected there, and `got in PLACE:
//! WHAT` for everything that it should not have got.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wire::Procedure;
use wire::mount::{self, DirPath, MntReply};
use wire::nfs3::create::{self, CreateHow};
use wire::nfs3::{self, DirOp, FileHandle, Sattr3};
use wire::rpc::{AuthSys, Gids, OpaqueAuth};
use wire::xdr::{Decode, Encode, Reader};

use crate::rpc;

/// The file that an attacker leaves: a program that runs as its owner.
pub(super) const SET_UID: &[u8] = b"set-uid";
const MODE: u32 = 0o4755;

const ANSWER_WITHIN: Duration = Duration::from_millis(500);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(1);
const DATAGRAM_LEN_MAX: usize = 1 << 16;
const LOOPBACK: [u8; 4] = Ipv4Addr::LOCALHOST.octets();

/// Looks and tries until its input ends; the victim's user id is the argument.
pub(super) fn run(victim: &str) -> Result<(), String> {
    static ENDED: AtomicBool = AtomicBool::new(false);
    let victim = victim.parse().map_err(|_| format!("{victim:?} is no user id"))?;
    std::thread::spawn(|| {
        // Its end and its failure mean the same.
        io::copy(&mut io::stdin(), &mut io::sink()).ok();
        ENDED.store(true, Ordering::Relaxed);
    });
    let mut attacker = Attacker { victim, ..Attacker::default() };
    say("ready");
    while !ENDED.load(Ordering::Relaxed) {
        attacker.look();
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
    say(&format!("looks {}", attacker.looks));
    Ok(())
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).ok();
}

#[derive(Debug, Default)]
struct Attacker {
    victim: u32,
    looks: u64,
    /// What has been printed already.
    printed: BTreeSet<String>,
}

impl Attacker {
    fn look(&mut self) {
        self.looks += 1;
        let victim = self.victim;
        for socket in sockets("tcp").into_iter().filter(|socket| socket.uid == victim) {
            match socket.state {
                State::Established => self.tell("connected".to_owned()),
                State::Listens => self.try_tcp(socket.port),
                State::Other => {}
            }
        }
        for socket in sockets("udp").into_iter().filter(|socket| socket.uid == victim) {
            self.try_udp(socket.port);
        }
        for path in listening_paths() {
            if connects(&path) {
                self.tell(format!("got in {path}: it takes connections"));
            }
        }
    }

    fn tell(&mut self, line: String) {
        if self.printed.insert(line.clone()) {
            say(&line);
        }
    }

    fn try_tcp(&mut self, port: u16) {
        for uid in [self.victim, 0] {
            let Some(mut caller) = Caller::over_tcp(port, uid) else { return };
            let root = caller.mounts();
            self.tell(format!("tried TCP {port}"));
            let Some(root) = root else { continue };
            let made = caller.leaves_a_program(root);
            let what = if made { "a set-uid file made" } else { "mounted" };
            self.tell(format!("got in TCP {port}: as uid {uid}, {what}"));
        }
    }

    fn try_udp(&mut self, port: u16) {
        for uid in [self.victim, 0] {
            let Some(mut caller) = Caller::over_udp(port, uid) else { return };
            if caller.mounts().is_some() {
                self.tell(format!("got in UDP {port}: as uid {uid}, mounted"));
            }
        }
    }
}

/// One who says that he is somebody else.
#[derive(Debug)]
struct Caller {
    carrier: Carrier,
    credential: Vec<u8>,
    xid: u32,
}

#[derive(Debug)]
enum Carrier {
    Stream(TcpStream),
    Datagrams(UdpSocket),
}

impl Caller {
    fn over_tcp(port: u16, uid: u32) -> Option<Self> {
        let stream = TcpStream::connect(SocketAddr::from((LOOPBACK, port))).ok()?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
        Some(Self::new(Carrier::Stream(stream), uid))
    }

    fn over_udp(port: u16, uid: u32) -> Option<Self> {
        let socket = UdpSocket::bind(SocketAddr::from((LOOPBACK, 0))).ok()?;
        socket.connect(SocketAddr::from((LOOPBACK, port))).ok()?;
        socket.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
        Some(Self::new(Carrier::Datagrams(socket), uid))
    }

    fn new(carrier: Carrier, uid: u32) -> Self {
        let (machine_name, gids) = (&b"attacker"[..], Gids::default());
        let credential = AuthSys { stamp: 0, machine_name, uid, gid: uid, gids }.to_bytes();
        Self { carrier, credential, xid: 1 }
    }

    fn mounts(&mut self) -> Option<FileHandle> {
        let path = DirPath { dirpath: b"/" }.to_bytes();
        let results = self.call(Procedure::Mount(mount::Procedure::Mnt), &path)?;
        decoded::<MntReply>(&results)?.ok().map(|ok| ok.fhandle)
    }

    fn leaves_a_program(&mut self, dir: FileHandle) -> bool {
        let how = CreateHow::Unchecked(Sattr3::of_mode(MODE));
        let args = create::Args { where_: DirOp { dir, name: SET_UID }, how }.to_bytes();
        let results = self.call(Procedure::Nfs3(nfs3::Procedure::Create), &args);
        results.is_some_and(|results| {
            decoded::<create::Reply>(&results).is_some_and(|reply| reply.is_ok())
        })
    }

    /// The results of a call that was accepted.
    fn call(&mut self, procedure: Procedure, args: &[u8]) -> Option<Vec<u8>> {
        self.xid += 1;
        let credential = OpaqueAuth::sys(&self.credential);
        let call = rpc::call(self.xid, procedure, credential, args);
        let reply = match &mut self.carrier {
            Carrier::Stream(stream) => {
                stream.write_all(&rpc::record(call)).ok()?;
                rpc::receive(stream).ok()?
            }
            Carrier::Datagrams(socket) => {
                socket.send(&call).ok()?;
                let mut reply = vec![0; DATAGRAM_LEN_MAX];
                let count = socket.recv(&mut reply).ok()?;
                reply.truncate(count);
                reply
            }
        };
        rpc::results(&reply).ok().map(<[u8]>::to_vec)
    }
}

fn decoded<'r, T: Decode<'r>>(results: &'r [u8]) -> Option<T> {
    T::decode(&mut Reader::new(results)).ok()
}

/// A socket of IPv4 as /proc/net lists it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Socket {
    port: u16,
    state: State,
    uid: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Established,
    Listens,
    Other,
}

fn sockets(protocol: &str) -> Vec<Socket> {
    let files = [format!("/proc/net/{protocol}"), format!("/proc/net/{protocol}6")];
    let read = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    read.flat_map(|table| table.lines().filter_map(parsed).collect::<Vec<_>>()).collect()
}

/// `sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid ...`
fn parsed(line: &str) -> Option<Socket> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let port = u16::from_str_radix(words.next()?.rsplit_once(':')?.1, 16).ok()?;
    let state = match words.nth(1)? {
        "01" => State::Established,
        "0A" => State::Listens,
        _ => State::Other,
    };
    let uid = words.nth(3)?.parse().ok()?;
    Some(Socket { port, state, uid })
}

/// Names of sockets of the file system, and of no file system, that take connections.
fn listening_paths() -> Vec<String> {
    /// __SO_ACCEPTCON
    const ACCEPTS: &str = "00010000";
    let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let name = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        (words.nth(3)? == ACCEPTS).then(|| words.nth(3).map(str::to_owned)).flatten()
    };
    table.lines().filter_map(name).collect()
}

fn connects(path: &str) -> bool {
    match path.strip_prefix('@') {
        Some(name) => unix::net::SocketAddr::from_abstract_name(name)
            .is_ok_and(|address| UnixStream::connect_addr(&address).is_ok()),
        None => UnixStream::connect(path).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_read_as_the_kernel_lists_them() {
        let line = "   3: 0100007F:9C41 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                    1000        0 26142 1 0000000000000000 100 0 0 10 0";
        let socket = Socket { port: 40_001, state: State::Listens, uid: 1000 };
        assert_eq!(parsed(line), Some(socket));
        assert_eq!(parsed("  sl  local_address rem_address   st"), None);
        assert_eq!(parsed(""), None);
    }
}
