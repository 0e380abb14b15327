//! What this host's kernel knows of the way to another, without sending anything.

use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::sys::socket::{getsockopt, sockopt};

/// See the module's head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Way {
    /// The address that packets leave from.
    pub local: IpAddr,
    /// The largest packet that passes, as far as the kernel has learned it: that of the interface
    /// until a router complains. Not known over IPv6.
    pub mtu_bytes: Option<u32>,
}

/// The way to a host.
///
/// # Errors
/// There is none.
pub fn find(host: IpAddr) -> io::Result<Way> {
    let address = SocketAddr::new(host, DISCARD_PORT);
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
    socket.connect(&address.into())?;
    let local = socket.local_addr()?.as_socket().map(|local| local.ip());
    let mtu = getsockopt(&socket, sockopt::IpMtu).ok().filter(|_| host.is_ipv4());
    Ok(Way {
        local: local.ok_or(io::ErrorKind::AddrNotAvailable)?,
        mtu_bytes: mtu.and_then(|mtu| u32::try_from(mtu).ok()),
    })
}

/// A datagram socket has to be connected to some port; nothing is sent there.
const DISCARD_PORT: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_this_host_is_its_own_address() {
        let host = IpAddr::from([127, 0, 0, 1]);
        let way = find(host).unwrap();
        assert_eq!(way.local, host);
        assert!(way.mtu_bytes.unwrap() >= 1280);
    }
}
