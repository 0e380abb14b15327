//! Packets that pass the interfaces of this host, as a packet socket gives them (packet(7)).
//!
//! The kernel takes the link layer off, so that every interface reads alike, and says when each
//! packet passed. A filter in the kernel lets through the interfaces that are requested, and of
//! each packet on a loopback, which leaves and arrives there, the arrival only.
//!
//! What waits to be taken is bounded by the socket's buffer; over it the kernel drops packets and
//! counts them ([`Live::dropped`]). The options of packet sockets are not among those that crates
//! have, so nix's own macro makes them.

use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;

use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, getsockopt, recvmsg, setsockopt, sockopt,
};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Interfaces that are listened to at once: what a filter has room for, and more than hosts have.
pub const INTERFACES_MAX: usize = 32;
/// Bytes of a packet that are taken: above what cards are given to cut into segments.
pub const PACKET_LEN_MAX: usize = 256 << 10;
/// What we ask the kernel to hold for us: half a second of a gigabit a second.
const SOCKET_BYTES: usize = 64 << 20;

mod option {
    use nix::libc;
    use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Packets since it was last read.
        Statistics,
        GetOnly,
        libc::SOL_PACKET,
        libc::PACKET_STATISTICS,
        libc::tpacket_stats
    );
    sockopt_impl!(
        /// Has an interface take what is for other hosts, too, for as long as the socket lives.
        AddMembership,
        SetOnly,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        libc::packet_mreq
    );
}

/// Why nothing can be captured.
#[derive(Debug, Error)]
pub enum CaptureError {
    #[error("there is no interface {name}: there are {}", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("interface {name} is down: nothing passes it")]
    Down { name: String },
    #[error("{got} interfaces at once: at most {INTERFACES_MAX} are listened to")]
    TooMany { got: usize },
    #[error("not permitted to capture on {names}: {cause}")]
    Denied { names: String, cause: io::Error },
    #[error("cannot capture on {names}: {cause}")]
    Io { names: String, cause: io::Error },
}

/// A packet, from its network header on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Passed<'a> {
    /// When the kernel saw it, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The type in its link header, such as 0x0800.
    pub protocol: u16,
    /// The index of its interface.
    pub interface: u32,
    /// Bytes it had.
    pub wire_len: u32,
    /// Those of them that were taken.
    pub data: &'a [u8],
}

/// Interfaces that are listened to.
#[derive(Debug)]
pub struct Live {
    /// A packet socket; the type is what registers any socket for readiness.
    socket: UdpSocket,
    wanted: Vec<Interface>,
    buffer: Vec<u8>,
    control: Vec<u8>,
    dropped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    index: u32,
    is_loopback: bool,
    is_up: bool,
}

impl Live {
    /// Begins to listen; with `promiscuous` also to what is for other hosts, as the port of a
    /// switch that mirrors others brings it.
    ///
    /// # Errors
    /// An interface is not there, or down, or we may not.
    pub fn open(names: &[String], promiscuous: bool) -> Result<Self, CaptureError> {
        let joined = || names.join(", ");
        let io = |cause: io::Error| CaptureError::Io { names: joined(), cause };
        let wanted = wanted(names, &interfaces().map_err(io)?)?;
        let all = i32::from(u16::try_from(libc::ETH_P_ALL).unwrap_or(u16::MAX).to_be());
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(all)));
        let socket = socket.map_err(|cause| match cause.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => CaptureError::Denied { names: joined(), cause },
            _ => io(cause),
        })?;
        socket.attach_filter(&filter(&wanted)).map_err(io)?;
        for interface in wanted.iter().filter(|one| promiscuous && !one.is_loopback) {
            let all = interface.everything();
            setsockopt(&socket, option::AddMembership, &all).map_err(|no| io(no.into()))?;
        }
        if setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BYTES).is_err() {
            // Less, without the privilege; then there are more drops, which are counted.
            setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BYTES).ok();
        }
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(|no| io(no.into()))?;
        socket.set_nonblocking(true).map_err(io)?;
        Ok(Self {
            socket: UdpSocket::from_std(socket.into()).map_err(io)?,
            wanted,
            buffer: vec![0; PACKET_LEN_MAX],
            control: nix::cmsg_space!(nix::sys::time::TimeSpec),
            dropped: 0,
        })
    }

    /// Waits until a packet may be there.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// The next packet that waits; `None` when none does.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub fn take(&mut self) -> io::Result<Option<Passed<'_>>> {
        let Received { at_ns, protocol, len, index: interface, .. } = loop {
            let (socket, buffer, control) = (&self.socket, &mut self.buffer, &mut self.control);
            let received = socket.try_io(Interest::READABLE, || receive(socket, buffer, control));
            let received = match received {
                Ok(received) => received,
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(cause),
            };
            // What came before there was a filter.
            if self.wanted.iter().any(|wanted| wanted.wants(&received)) {
                break received;
            }
        };
        let data = &self.buffer[..len.min(PACKET_LEN_MAX)];
        let wire_len = u32::try_from(len).unwrap_or(u32::MAX);
        Ok(Some(Passed { at_ns, protocol, interface, wire_len, data }))
    }

    /// Packets that the kernel had no room for.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub fn dropped(&mut self) -> io::Result<u64> {
        // It begins at zero again each time.
        let new = getsockopt(&self.socket, option::Statistics)?;
        self.dropped += u64::from(new.tp_drops);
        Ok(self.dropped)
    }
}

/// What came with a packet.
struct Received {
    at_ns: u64,
    protocol: u16,
    len: usize,
    index: u32,
    is_leaving: bool,
}

impl Interface {
    /// The request for it to be promiscuous.
    fn everything(self) -> libc::packet_mreq {
        libc::packet_mreq {
            mr_ifindex: i32::try_from(self.index).unwrap_or(0),
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).unwrap_or(0),
            mr_alen: 0,
            mr_address: [0; 8],
        }
    }

    fn wants(&self, received: &Received) -> bool {
        self.index == received.index && !(self.is_loopback && received.is_leaving)
    }
}

fn receive(socket: &UdpSocket, buffer: &mut [u8], control: &mut [u8]) -> io::Result<Received> {
    let mut slices = [IoSliceMut::new(buffer)];
    let fd = socket.as_raw_fd();
    // With this flag the length is the packet's, though the buffer be shorter.
    let flags = MsgFlags::MSG_TRUNC;
    let received = recvmsg::<LinkAddr>(fd, &mut slices, Some(control), flags)?;
    let at_ns = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(at) => {
            let seconds = u64::try_from(at.tv_sec()).ok()?;
            let ns = u64::try_from(at.tv_nsec()).ok()?;
            Some(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
        }
        _ => None,
    });
    let from = received.address;
    Ok(Received {
        at_ns: at_ns.unwrap_or(0),
        protocol: from.map_or(0, |from| u16::from_be(from.protocol())),
        len: received.bytes,
        index: from.map_or(0, |from| u32::try_from(from.ifindex()).unwrap_or(0)),
        is_leaving: from.is_some_and(|from| from.pkttype() == libc::PACKET_OUTGOING),
    })
}

/// Every interface of this host by its name.
fn interfaces() -> io::Result<BTreeMap<String, Interface>> {
    let mut found = BTreeMap::new();
    for entry in getifaddrs()? {
        let link = entry.address.as_ref().and_then(|address| address.as_link_addr());
        let Some(index) = link.and_then(|link| u32::try_from(link.ifindex()).ok()) else {
            continue;
        };
        let interface = Interface {
            index,
            is_loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
            is_up: entry.flags.contains(InterfaceFlags::IFF_UP),
        };
        found.insert(entry.interface_name, interface);
    }
    Ok(found)
}

fn wanted(
    names: &[String],
    known: &BTreeMap<String, Interface>,
) -> Result<Vec<Interface>, CaptureError> {
    if names.len() > INTERFACES_MAX {
        return Err(CaptureError::TooMany { got: names.len() });
    }
    let find = |name: &String| match known.get(name) {
        Some(interface) if interface.is_up => Ok(*interface),
        Some(_) => Err(CaptureError::Down { name: name.clone() }),
        None => Err(CaptureError::Unknown {
            name: name.clone(),
            known: known.keys().cloned().collect(),
        }),
    };
    names.iter().map(find).collect()
}

// The machine of bpf(4): loads of a word, and of what Linux says beside a packet.
const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const PACKET_TYPE: u32 = 0xffff_f004;
const INTERFACE_INDEX: u32 = 0xffff_f008;

/// A program that takes packets of these interfaces, arriving ones only of a loopback.
fn filter(wanted: &[Interface]) -> Vec<SockFilter> {
    let captured = u32::try_from(PACKET_LEN_MAX).unwrap_or(u32::MAX);
    let mut program = Vec::new();
    for interface in wanted {
        program.push(SockFilter::new(LOAD, 0, 0, INTERFACE_INDEX));
        match interface.is_loopback {
            false => program.push(SockFilter::new(JUMP_EQUAL, 0, 1, interface.index)),
            true => {
                program.push(SockFilter::new(JUMP_EQUAL, 0, 4, interface.index));
                program.push(SockFilter::new(LOAD, 0, 0, PACKET_TYPE));
                program.push(SockFilter::new(JUMP_EQUAL, 0, 1, libc::PACKET_OUTGOING.into()));
                program.push(SockFilter::new(RETURN, 0, 0, 0));
            }
        }
        program.push(SockFilter::new(RETURN, 0, 0, captured));
    }
    program.push(SockFilter::new(RETURN, 0, 0, 0));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> BTreeMap<String, Interface> {
        let interface = |index, is_loopback, is_up| Interface { index, is_loopback, is_up };
        BTreeMap::from([
            ("eth0".to_owned(), interface(2, false, true)),
            ("eth1".to_owned(), interface(3, false, false)),
            ("lo".to_owned(), interface(1, true, true)),
        ])
    }

    #[test]
    fn interfaces_are_found_by_name_and_those_that_are_not_there_are_reported() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            wanted(&names, &known()).map_err(|error| error.to_string())
        };
        let found = of(&["lo", "eth0"]).unwrap();
        assert_eq!(found.iter().map(|one| one.index).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            of(&["eth7"]).unwrap_err(),
            "there is no interface eth7: there are eth0, eth1, lo"
        );
        assert_eq!(of(&["eth1"]).unwrap_err(), "interface eth1 is down: nothing passes it");
        assert!(of(&["lo"; 40]).unwrap_err().starts_with("40 interfaces at once"));
    }

    #[test]
    fn what_leaves_a_loopback_arrives_there_too_and_counts_once() {
        let [lo, eth0] = [known()["lo"], known()["eth0"]];
        let received =
            |index, is_leaving| Received { at_ns: 0, protocol: 0x0800, len: 0, index, is_leaving };
        assert!(lo.wants(&received(1, false)) && !lo.wants(&received(1, true)));
        assert!(eth0.wants(&received(2, true)) && !eth0.wants(&received(1, false)));
    }

    #[test]
    fn every_host_has_interfaces_and_the_filter_an_end() {
        assert!(interfaces().unwrap().values().any(|interface| interface.index > 0));
        let all: Vec<Interface> = known().into_values().collect();
        assert_eq!(filter(&all).len(), 3 + 3 + 6 + 1);
    }
}
