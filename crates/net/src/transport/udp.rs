//! Datagrams over UDP.
//!
//! A server's socket learns which of our addresses each datagram was sent to (IP_PKTINFO), and
//! sends the reply from there: where a host has several addresses and the socket is bound to none
//! of them, the system would choose by the route back, and clients drop what comes from an address
//! that they never called.
//!
//! A message larger than the path's MTU is cut into fragments by IP. Losing one loses the message,
//! so who requests sizes stays below 32 KiB.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use wire::record::Message;

use super::buffer::{COPIED_BYTES_MAX, Pool, ReceiveBuffer, SMALL_BYTES};
use super::datagram::{Datagram, Datagrams, Route};

/// What we ask the system to hold for us in either direction: 128 datagrams of 32 KiB. It gives
/// less to processes without privilege, usually 200 KiB.
const SOCKET_BYTES: usize = 4 << 20;

/// A socket.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    /// The peer, if there is only one.
    connected: Option<SocketAddr>,
    is_ipv6: bool,
    buffer: ReceiveBuffer,
    control: Vec<u8>,
}

impl Udp {
    /// A server's socket.
    ///
    /// # Errors
    /// The address is taken, or not of this host, or needs a privilege.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let domain = socket2::Domain::for_address(address);
        let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        let is_ipv6 = address.is_ipv6();
        // Without it replies leave from where the system will; that is right on most hosts.
        match is_ipv6 {
            true => setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true).ok(),
            false => setsockopt(&socket, sockopt::Ipv4PacketInfo, &true).ok(),
        };
        Self::new(socket, None, is_ipv6)
    }

    /// A client's socket, for one server. Bound to a privileged port if we may have one.
    ///
    /// # Errors
    /// There is no way to that address.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::connect_from(address, super::tcp::privileged_ports())
    }

    /// The same, bound to any other port.
    ///
    /// # Errors
    /// There is no way to that address.
    pub fn connect_unprivileged(address: SocketAddr) -> io::Result<Self> {
        Self::connect_from(address, std::iter::empty())
    }

    fn connect_from(address: SocketAddr, ports: impl Iterator<Item = u16>) -> io::Result<Self> {
        let domain = socket2::Domain::for_address(address);
        let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
        let any = match address {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        for port in ports {
            match socket.bind(&SocketAddr::new(any, port).into()) {
                Err(cause) if cause.kind() == io::ErrorKind::AddrInUse => {}
                // Bound, or not allowed: then any port will do.
                _ => break,
            }
        }
        socket.connect(&address.into())?;
        Self::new(socket, Some(address), address.is_ipv6())
    }

    fn new(
        socket: socket2::Socket,
        connected: Option<SocketAddr>,
        is_ipv6: bool,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        enlarge(&socket);
        Ok(Self {
            socket: UdpSocket::from_std(socket.into())?,
            connected,
            is_ipv6,
            buffer: ReceiveBuffer::new(Pool::new(SMALL_BYTES)),
            control: nix::cmsg_space!(libc::in_pktinfo, libc::in6_pktinfo),
        })
    }

    /// Control message for the address that a reply is to come from.
    fn send(&self, message: &Message, route: &Route) -> io::Result<()> {
        let slices = [&message.head, &message.payload[..], message.padding()].map(IoSlice::new);
        let to = match self.connected {
            Some(_) => None,
            None => Some(SockaddrStorage::from(route.peer)),
        };
        let fd = self.socket.as_raw_fd();
        let send = |control: &[ControlMessage<'_>]| {
            sendmsg(fd, &slices, control, MsgFlags::empty(), to.as_ref())
        };
        match route.local {
            Some(IpAddr::V4(local)) if !self.is_ipv6 => {
                let address = libc::in_addr { s_addr: u32::from_ne_bytes(local.octets()) };
                send(&[ControlMessage::Ipv4PacketInfo(&libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: address,
                    ipi_addr: address,
                })])
            }
            Some(IpAddr::V6(local)) if self.is_ipv6 => {
                let scope = match route.peer {
                    // A link-local address means nothing without its link.
                    SocketAddr::V6(peer) if local.is_unicast_link_local() => peer.scope_id(),
                    _ => 0,
                };
                send(&[ControlMessage::Ipv6PacketInfo(&libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr { s6_addr: local.octets() },
                    ipi6_ifindex: scope,
                })])
            }
            _ => send(&[]),
        }?;
        Ok(())
    }
}

/// Room for bursts: as much as the system lets us have.
pub(crate) fn enlarge(socket: &impl AsFd) {
    #[cfg(target_os = "linux")]
    if setsockopt(socket, sockopt::RcvBufForce, &SOCKET_BYTES).is_ok()
        && setsockopt(socket, sockopt::SndBufForce, &SOCKET_BYTES).is_ok()
    {
        return;
    }
    setsockopt(socket, sockopt::RcvBuf, &SOCKET_BYTES).ok();
    setsockopt(socket, sockopt::SndBuf, &SOCKET_BYTES).ok();
}

fn is_transient(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The next datagram: its bytes in the front of `space`, and how it came.
fn receive(
    socket: &UdpSocket,
    control: &mut [u8],
    space: &mut [u8],
) -> io::Result<(usize, Option<SocketAddr>, Option<IpAddr>)> {
    let mut slices = [IoSliceMut::new(space)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut slices,
        Some(control),
        MsgFlags::empty(),
    )?;
    let local = received.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            let address = Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes());
            Some(IpAddr::from(address))
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            Some(IpAddr::from(Ipv6Addr::from(info.ipi6_addr.s6_addr)))
        }
        _ => None,
    });
    let peer = received.address.as_ref().and_then(socket_address);
    Ok((received.bytes, peer, local))
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let ipv4 = address.as_sockaddr_in().map(|ipv4| SocketAddr::V4((*ipv4).into()));
    ipv4.or_else(|| address.as_sockaddr_in6().map(|ipv6| SocketAddr::V6((*ipv6).into())))
}

impl Datagrams for Udp {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>> {
        let (count, peer, local) = loop {
            let space = self.buffer.space(SMALL_BYTES);
            let (socket, control) = (&self.socket, &mut self.control);
            match socket.try_io(Interest::READABLE, || receive(socket, control, space)) {
                Ok(received) => break received,
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
                    self.buffer.rest();
                    ready!(self.socket.poll_recv_ready(cx))?;
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Poll::Ready(Err(cause)),
            }
        };
        let Some(peer) = peer.or(self.connected) else {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::InvalidData)));
        };
        let bytes = if count <= COPIED_BYTES_MAX {
            Bytes::copy_from_slice(&self.buffer.space(SMALL_BYTES)[..count])
        } else {
            self.buffer.advance(count);
            self.buffer.take(count)
        };
        Poll::Ready(Ok(Datagram { bytes, route: Route { peer, local } }))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<io::Result<()>> {
        // A new socket is not known to be writable until the runtime has looked at it, and who
        // sends one datagram must not lose it for that.
        match self.send(message, route) {
            Err(cause) if is_transient(&cause) => {}
            sent => return Poll::Ready(sent),
        }
        loop {
            match self.socket.try_io(Interest::WRITABLE, || self.send(message, route)) {
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.socket.poll_send_ready(cx))?;
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                sent => return Poll::Ready(sent),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}
