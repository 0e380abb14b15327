//! Whose program is at the other end of a connection from this same host.
//!
//! The kernel knows the owner of every socket, and tells anybody (sock_diag(7), as ss(8) asks it).
//! It is requested the one connection, whatever number of others there are. Only a connection that
//! is still open says something: what is left of a socket that was closed belongs to nobody, and is
//! listed as root's.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::LazyLock;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use parking_lot::Mutex;

use super::tcp::PRIVILEGED_PORTS_END;

const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// SOCK_DIAG_BY_FAMILY
const BY_FAMILY: u16 = 20;
/// NLM_F_REQUEST
const REQUEST: u16 = 1;
/// Where a message's number is (nlmsg_seq).
const NUMBER: Range<usize> = 8..12;
const ESTABLISHED: u8 = 1;
/// Of `struct inet_diag_msg` behind the header: its state, its socket's owner and inode.
const STATE_AT: usize = HEADER_BYTES + 1;
const UID_AT: usize = HEADER_BYTES + 64;
const INODE_AT: usize = HEADER_BYTES + 68;

/// The user id that stands for all that a user namespace does not know.
const OVERFLOW_UID: u32 = 65_534;

/// Answers that nobody waited for any more, at most, before the one to a question.
const STALE_MAX: usize = 4;

/// Asks the kernel, of the network that the thread which made this was in.
#[derive(Debug)]
pub(super) struct Owners {
    netlink: Option<Mutex<Netlink>>,
    /// Whether the user namespace knows every id, so that none stands for others.
    knows_all: bool,
}

/// The socket for queries, and how many were sent.
#[derive(Debug)]
struct Netlink {
    socket: OwnedFd,
    sent: u32,
}

impl Owners {
    pub(super) fn new() -> Self {
        let (raw, close) = (SockType::Raw, SockFlag::SOCK_CLOEXEC);
        let socket = socket(AddressFamily::Netlink, raw, close, SockProtocol::NetlinkSockDiag);
        let netlink = socket.ok().map(|socket| Netlink { socket, sent: 0 });
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        Self {
            netlink: netlink.and_then(Netlink::that_answers).map(Mutex::new),
            knows_all: is_whole(&map),
        }
    }

    /// The user id of who owns the socket of `peer`, which is connected to ours at `local` over
    /// TCP. None where the peer is on another host, has closed already, or cannot be decided. The
    /// addresses do not tell which: a program calls from any address of its host.
    pub(super) fn of_peer(&self, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
        let (peer_ip, local_ip) = (peer.ip().to_canonical(), local.ip().to_canonical());
        let request = request((peer_ip, peer.port()), (local_ip, local.port()))?;
        let answer = self.netlink.as_ref()?.lock().ask(request).ok()?;
        uid(&answer).filter(|uid| self.knows_all || *uid != OVERFLOW_UID)
    }
}

/// Whether a user namespace with this map knows every user id: only one in which the namespaces
/// above do, too, can have it (user_namespaces(7)). The last of 2^32 numbers is none.
fn is_whole(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Whether a port below 1024 says nothing of who calls: every user of this host may have it where
/// such ports are given to all (net.ipv4.ip_unprivileged_port_start, as for containers).
pub fn is_everybodys_port(peer: SocketAddr) -> bool {
    static FIRST: LazyLock<u16> = LazyLock::new(|| {
        let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
        let first = first.ok().and_then(|first| first.trim().parse().ok());
        first.unwrap_or(PRIVILEGED_PORTS_END)
    });
    is_among(peer.port(), *FIRST) && is_of_this_host(peer)
}

fn is_among(port: u16, first: u16) -> bool {
    (first..PRIVILEGED_PORTS_END).contains(&port)
}

/// An address that can be bound is ours.
fn is_of_this_host(mut peer: SocketAddr) -> bool {
    peer.set_port(0);
    peer.set_ip(peer.ip().to_canonical());
    peer.ip().is_loopback() || UdpSocket::bind(peer).is_ok()
}

/// Whether both ends are on this host, as far as their addresses say.
pub(super) fn is_local(peer: SocketAddr, local: SocketAddr) -> bool {
    let (peer, local) = (peer.ip().to_canonical(), local.ip().to_canonical());
    peer.is_loopback() || peer == local
}

/// The question for the socket at `own` that is connected to `other`.
fn request(own: (IpAddr, u16), other: (IpAddr, u16)) -> Option<[u8; REQUEST_BYTES]> {
    let family = match (own.0, other.0) {
        (IpAddr::V4(_), IpAddr::V4(_)) => libc::AF_INET,
        (IpAddr::V6(_), IpAddr::V6(_)) => libc::AF_INET6,
        _ => return None,
    };
    let mut bytes = [0; REQUEST_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    let length = u32::try_from(REQUEST_BYTES).ok()?;
    put(0, &length.to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST.to_ne_bytes());
    // struct inet_diag_req_v2
    put(HEADER_BYTES, &[u8::try_from(family).ok()?, u8::try_from(libc::IPPROTO_TCP).ok()?]);
    put(HEADER_BYTES + 4, &u32::MAX.to_ne_bytes());
    put(HEADER_BYTES + 8, &own.1.to_be_bytes());
    put(HEADER_BYTES + 10, &other.1.to_be_bytes());
    for (at, (ip, _)) in [(HEADER_BYTES + 12, own), (HEADER_BYTES + 28, other)] {
        match ip {
            IpAddr::V4(ip) => put(at, &ip.octets()),
            IpAddr::V6(ip) => put(at, &ip.octets()),
        }
    }
    // INET_DIAG_NOCOOKIE
    put(HEADER_BYTES + 48, &[0xff; 8]);
    Some(bytes)
}

impl Netlink {
    /// None where the kernel does not know a socket that is there: without its module (tcp_diag) it
    /// runs modprobe for each question, and each connection would wait for that.
    fn that_answers(mut self) -> Option<Self> {
        let there = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        let own = there.local_addr().ok()?;
        let nobody = (Ipv4Addr::UNSPECIFIED.into(), 0);
        let answer = self.ask(request((own.ip(), own.port()), nobody)?).ok()?;
        (kind(&answer)? == BY_FAMILY).then_some(self)
    }

    /// The kernel answers within the call that asks. An answer has its question's number.
    fn ask(&mut self, mut request: [u8; REQUEST_BYTES]) -> io::Result<Vec<u8>> {
        self.sent = self.sent.wrapping_add(1);
        let number = self.sent.to_ne_bytes();
        request[NUMBER].copy_from_slice(&number);
        send(self.socket.as_raw_fd(), &request, MsgFlags::empty())?;
        let mut answer = vec![0; 1024];
        for _ in 0..=STALE_MAX {
            let count = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
            if answer[..count].get(NUMBER) == Some(&number[..]) {
                answer.truncate(count);
                return Ok(answer);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

fn kind(answer: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?))
}

fn uid(answer: &[u8]) -> Option<u32> {
    let word = |at: usize| {
        let bytes = answer.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let is_open = answer.get(STATE_AT) == Some(&ESTABLISHED) && word(INODE_AT)? != 0;
    (kind(answer)? == BY_FAMILY && is_open).then(|| word(UID_AT)).flatten()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;

    use super::*;

    /// Both ends of a connection over this address.
    fn pair(address: &str) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(address).ok()?;
        let client = TcpStream::connect(listener.local_addr().ok()?).ok()?;
        Some((client, listener.accept().ok()?.0))
    }

    fn owner(served: &TcpStream) -> Option<u32> {
        Owners::new().of_peer(served.peer_addr().unwrap(), served.local_addr().unwrap())
    }

    #[test]
    fn a_connection_from_this_host_has_its_users_id() {
        let own = Some(rustix::process::geteuid().as_raw());
        let (client, served) = pair("127.0.0.1:0").unwrap();
        if owner(&served).is_none() {
            println!("NOT TESTED: this system does not tell whose a socket is (sock_diag)");
            return;
        }
        assert_eq!(owner(&served), own);
        drop(client);
        match pair("[::1]:0") {
            Some((_client, served)) => assert_eq!(owner(&served), own),
            None => println!("NOT TESTED over IPv6: there is no ::1"),
        }
    }

    #[test]
    fn a_user_namespace_that_knows_every_user_has_a_map_of_one_line() {
        assert!(is_whole("         0          0 4294967295\n"));
        for map in ["", "0 1000 1\n", "0 100000 65536\n", "0 0 1000\n1000 1000 4294966295\n"] {
            assert!(!is_whole(map), "{map}");
        }
    }

    #[test]
    fn who_has_closed_is_nobody_and_not_root() {
        let (client, mut served) = pair("127.0.0.1:0").unwrap();
        drop(client);
        assert_eq!(served.read(&mut [0]).unwrap(), 0, "its end has arrived");
        assert_eq!(owner(&served), None);
    }

    #[test]
    fn an_answer_that_came_too_late_is_not_taken_for_the_next() {
        let (_first, served) = pair("127.0.0.1:0").unwrap();
        let (gone, left) = pair("127.0.0.1:0").unwrap();
        let ends = |of: &TcpStream| (of.peer_addr().unwrap(), of.local_addr().unwrap());
        let (peer, local) = ends(&served);
        let owners = Owners::new();
        let Some(owner) = owners.of_peer(peer, local) else {
            println!("NOT TESTED: this system does not tell whose a socket is (sock_diag)");
            return;
        };
        // Requested, and not waited for.
        let question = request((peer.ip(), peer.port()), (local.ip(), local.port())).unwrap();
        send(
            owners.netlink.as_ref().unwrap().lock().socket.as_raw_fd(),
            &question,
            MsgFlags::empty(),
        )
        .unwrap();
        let (peer, local) = ends(&left);
        drop(gone);
        assert_eq!((&left).read(&mut [0]).unwrap(), 0, "its end has arrived");
        assert_eq!(owners.of_peer(peer, local), None, "not {owner}");
    }

    /// From another address than the one that is called.
    #[test]
    fn a_connection_from_any_address_of_this_host_has_an_owner() {
        // No packet is sent; the system says from which address one would be.
        let outwards = UdpSocket::bind("0.0.0.0:0").unwrap();
        let ours = outwards.connect("192.0.2.1:9").and_then(|()| outwards.local_addr());
        let Some(ours) = ours.ok().filter(|ours| !ours.ip().is_loopback()) else {
            println!("NOT TESTED: this host has no address but 127.0.0.1");
            return;
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let client = client.unwrap();
        client.bind(&SocketAddr::new(ours.ip(), 0).into()).unwrap();
        client.connect(&listener.local_addr().unwrap().into()).unwrap();
        let (served, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), ours.ip());
        assert!(is_of_this_host(peer));
        let (_other, known) = pair("127.0.0.1:0").unwrap();
        assert_eq!(owner(&served), owner(&known));
    }

    #[test]
    fn a_port_that_every_user_may_have_says_nothing() {
        assert!(!is_among(1023, 1024) && !is_among(80, 1024), "the system's default");
        assert!(is_among(80, 80) && is_among(1023, 80) && !is_among(79, 80) && !is_among(1024, 80));
        let at = |address: &str| SocketAddr::new(address.parse().unwrap(), 700);
        assert!(is_of_this_host(at("127.0.0.9")) && is_of_this_host(at("::ffff:127.0.0.1")));
        assert!(!is_of_this_host(at("192.0.2.1")));
    }

    #[test]
    fn a_peer_on_another_host_has_no_owner() {
        let (_client, served) = pair("127.0.0.1:0").unwrap();
        let (peer, local) = (served.peer_addr().unwrap(), served.local_addr().unwrap());
        let elsewhere = SocketAddr::new("192.0.2.1".parse().unwrap(), peer.port());
        assert_eq!(Owners::new().of_peer(elsewhere, local), None);
    }

    #[test]
    fn answers_that_say_nothing_are_no_owner() {
        let mut answer = vec![0; 100];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        answer[STATE_AT] = ESTABLISHED;
        answer[UID_AT..UID_AT + 4].copy_from_slice(&7_u32.to_ne_bytes());
        assert_eq!(uid(&answer), None, "no inode");
        answer[INODE_AT] = 1;
        assert_eq!(uid(&answer), Some(7));
        answer[STATE_AT] = 4;
        assert_eq!(uid(&answer), None, "the peer has ended its half");
        answer[STATE_AT] = ESTABLISHED;
        answer[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        assert_eq!(uid(&answer), None, "an error");
        assert_eq!(uid(&answer[..20]), None);
        assert_eq!(uid(&[]), None);
    }
}
