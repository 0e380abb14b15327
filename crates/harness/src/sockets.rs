//! Where a server's clients come in: TCP and UDP sockets for NFS and MOUNT, and those of the
//! portmapper.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use net::transport::tcp::Listener;
use net::transport::udp::Udp;
use net::transport::{CALL_BYTES_MAX, private};
use server::Endpoint;

/// Times that a free port is looked for which both protocols have free.
const ATTEMPTS: usize = 16;

/// Sockets that are bound, and what the portmapper answers about them.
#[derive(Debug)]
pub struct Sockets {
    pub listeners: Vec<Listener>,
    pub datagrams: Vec<Udp>,
    /// Where NFS and MOUNT are.
    pub endpoints: Vec<Endpoint>,
    /// Where the portmapper is.
    pub portmap_endpoints: Vec<Endpoint>,
    /// The first of the TCP sockets for NFS.
    pub address: SocketAddr,
}

/// An address that could not be had.
#[derive(Debug)]
pub struct Refused {
    pub address: SocketAddr,
    pub protocol: &'static str,
    pub cause: io::Error,
}

impl Sockets {
    /// For NFS and MOUNT, over TCP and, as an option, UDP, on the same port.
    pub fn bind(listen: SocketAddr, udp: bool) -> Result<Self, Refused> {
        let (listener, datagrams) = match udp {
            true => bind_both(listen)?,
            false => (tcp(listen)?, None),
        };
        let address = listener.local_addr().map_err(|cause| refused(listen, "TCP", cause))?;
        let endpoints = endpoints(address, udp);
        Ok(Self {
            listeners: vec![listener],
            datagrams: datagrams.into_iter().collect(),
            // Without a portmapper of its own the port answers about itself.
            portmap_endpoints: endpoints.clone(),
            endpoints,
            address,
        })
    }

    /// Nobody else's: what comes from this process's own clients.
    pub fn private(listener: Listener) -> Self {
        Self {
            listeners: vec![listener],
            datagrams: Vec::new(),
            endpoints: Vec::new(),
            portmap_endpoints: Vec::new(),
            address: private::ADDRESS,
        }
    }

    /// Adds the portmapper, on the same addresses.
    pub fn add_portmapper(&mut self) -> Result<(), Refused> {
        let address = SocketAddr::new(self.address.ip(), wire::portmap::PORT);
        if address != self.address {
            self.listeners.push(tcp(address)?);
            self.datagrams.push(udp(address)?);
        }
        self.portmap_endpoints = endpoints(address, true);
        Ok(())
    }
}

/// The same port for both protocols, although the system only knows ports free in one of them.
fn bind_both(listen: SocketAddr) -> Result<(Listener, Option<Udp>), Refused> {
    let mut attempts = if listen.port() == 0 { ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let listener = tcp(listen)?;
        let address = listener.local_addr().map_err(|cause| refused(listen, "TCP", cause))?;
        match udp(address) {
            Err(refused) if attempts > 0 && refused.cause.kind() == io::ErrorKind::AddrInUse => {}
            bound => return Ok((listener, Some(bound?))),
        }
    }
}

fn tcp(address: SocketAddr) -> Result<Listener, Refused> {
    Listener::bind(address, CALL_BYTES_MAX).map_err(|cause| refused(address, "TCP", cause))
}

fn udp(address: SocketAddr) -> Result<Udp, Refused> {
    Udp::bind(address).map_err(|cause| refused(address, "UDP", cause))
}

fn refused(address: SocketAddr, protocol: &'static str, cause: io::Error) -> Refused {
    Refused { address, protocol, cause }
}

/// An unspecified IPv6 address takes IPv4 clients, too.
fn endpoints(address: SocketAddr, udp: bool) -> Vec<Endpoint> {
    let mut addresses = vec![address];
    if address.ip().is_unspecified() && address.is_ipv6() {
        addresses.insert(0, SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port()));
    }
    let tcp = addresses.iter().copied().map(Endpoint::Tcp);
    let datagrams = addresses.iter().copied().filter(|_| udp).map(Endpoint::Udp);
    tcp.chain(datagrams).collect()
}
