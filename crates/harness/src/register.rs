//! Registration with the host's rpcbind, which clients ask for our ports (RFC 1833).
//!
//! IPv4 is registered by version 2 of its protocol, which every rpcbind and portmap has; IPv6 by
//! version 4. What a dead server left there is replaced.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use net::call::{Rpc, Target};
use net::clock::Clock;
use net::transport::buffer::Pool;
use net::transport::{RECORD_BYTES_MAX, tcp};
use perf::units::Nanos;
use server::{Endpoint, Versions};
use wire::portmap::{self, Done, Mapping, PROTOCOL_TCP, PROTOCOL_UDP};
use wire::rpc::OpaqueAuth;
use wire::rpcbind::{self, Rpcb, uaddr};
use wire::xdr::{Encode, from_bytes};
use wire::{mount, nfs2, nfs3};

use crate::exit::Failure;

/// How long rpcbind may take.
const LIMIT: Nanos = Nanos::from_secs(5);

/// Something that is registered, to be taken back.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Entry {
    Ipv4(Mapping),
    Ipv6 { program: u32, version: u32, netid: &'static str, addr: String },
}

/// What is registered in our name.
#[derive(Debug)]
pub struct Registration(Vec<Entry>);

impl Registration {
    /// Registers NFS and MOUNT at `endpoints`.
    ///
    /// # Errors
    /// There is no rpcbind, or it refuses.
    pub async fn make(
        clock: &Clock,
        endpoints: &[Endpoint],
        versions: Versions,
    ) -> Result<Self, Failure> {
        let rpcbind = connect(clock).await.map_err(without_rpcbind)?;
        let mut all = Vec::new();
        for entry in endpoints.iter().flat_map(|&endpoint| entries(endpoint, versions)) {
            // A socket for both families tells of IPv4 twice.
            if !all.contains(&entry) {
                all.push(entry);
            }
        }
        // All before the first SET: in version 2 it takes every protocol of a program away.
        for entry in &all {
            entry.change(&rpcbind, Change::Unset).await.map_err(without_rpcbind)?;
        }
        let registration = Self(all);
        for entry in &registration.0 {
            let failure = match entry.change(&rpcbind, Change::Set).await {
                Ok(true) => continue,
                Ok(false) => refused(entry),
                Err(why) => without_rpcbind(why),
            };
            registration.take_back(clock).await;
            return Err(failure);
        }
        Ok(registration)
    }

    /// Takes everything back; what fails is left.
    pub async fn take_back(&self, clock: &Clock) {
        let all = async {
            let Ok(rpcbind) = connect(clock).await else { return };
            for entry in &self.0 {
                entry.change(&rpcbind, Change::Unset).await.ok();
            }
        };
        clock.within(LIMIT, std::pin::pin!(all)).await.ok();
    }
}

fn without_rpcbind(why: String) -> Failure {
    Failure::environment(why, "start rpcbind, or be the portmapper yourself: --portmap")
}

fn refused(entry: &Entry) -> Failure {
    Failure::environment(
        format!("rpcbind refuses {entry:?}: it takes them from root alone"),
        "run it as root; or rpcbind -i, which takes them from every user of this host; or no \
         --register, and ports in the clients' URLs",
    )
}

async fn connect(clock: &Clock) -> Result<Rpc, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, portmap::PORT));
    let pool = Pool::new(RECORD_BYTES_MAX);
    let tcp = tcp::connect(clock, address, LIMIT, &pool, RECORD_BYTES_MAX).await;
    let tcp = tcp.map_err(|error| format!("cannot register with rpcbind: {error}"))?;
    Ok(Rpc::start(tcp, clock, LIMIT, 1))
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Set,
    Unset,
}

fn entries(endpoint: Endpoint, versions: Versions) -> Vec<Entry> {
    let programs = [
        (versions.nfs2, nfs2::PROGRAM, nfs2::VERSION),
        (versions.nfs3, nfs3::PROGRAM, nfs3::VERSION),
        (versions.nfs2, mount::PROGRAM, mount::VERSION_1),
        (versions.nfs3, mount::PROGRAM, mount::VERSION),
    ];
    let (address, protocol, netid) = match endpoint {
        Endpoint::Tcp(address) => (address, PROTOCOL_TCP, "tcp6"),
        Endpoint::Udp(address) => (address, PROTOCOL_UDP, "udp6"),
    };
    // A TCP listener on [::] takes IPv4 too; for UDP there is a socket for each.
    let takes_ipv4 =
        address.is_ipv4() || (protocol == PROTOCOL_TCP && address.ip().is_unspecified());
    let offered = programs.into_iter().filter(|(offered, ..)| *offered);
    offered
        .flat_map(|(_, program, version)| {
            let port = address.port().into();
            let ipv4 = Entry::Ipv4(Mapping { program, version, protocol, port });
            let ipv6 = Entry::Ipv6 { program, version, netid, addr: uaddr(address) };
            [takes_ipv4.then_some(ipv4), address.is_ipv6().then_some(ipv6)].into_iter().flatten()
        })
        .collect()
}

impl Entry {
    async fn change(&self, rpcbind: &Rpc, change: Change) -> Result<bool, String> {
        let mut args = Vec::new();
        let (version, procedure) = match self {
            Self::Ipv4(mapping) => {
                mapping.encode(&mut args);
                let procedure = match change {
                    Change::Set => portmap::Procedure::Set,
                    Change::Unset => portmap::Procedure::Unset,
                };
                (portmap::VERSION, procedure.code())
            }
            Self::Ipv6 { program, version, netid, addr } => {
                let (netid, addr) = (netid.as_bytes(), addr.as_bytes());
                let owner = b"superuser";
                Rpcb { program: *program, version: *version, netid, addr, owner }.encode(&mut args);
                let procedure = match change {
                    Change::Set => rpcbind::Procedure::Set.code(),
                    Change::Unset => rpcbind::Procedure::Unset.code(),
                };
                (rpcbind::VERSION_4, procedure)
            }
        };
        let target = Target { program: portmap::PROGRAM, version, procedure };
        let encode = |head: &mut Vec<u8>| head.extend_from_slice(&args);
        let answer = rpcbind.call(target, OpaqueAuth::NONE, encode, Bytes::new()).await;
        let answer = answer.map_err(|error| format!("rpcbind: {error}"))?;
        let Done { done } =
            from_bytes(&answer.results()).map_err(|error| format!("rpcbind: {error}"))?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another portmapper does not help where this one only wants root.
    #[test]
    fn a_refusal_of_rpcbind_has_another_advice_than_its_absence() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 2049));
        let entry = &entries(Endpoint::Tcp(address), Versions::default())[0];
        assert!(refused(entry).advice().starts_with("run it as root"));
        assert!(without_rpcbind("no rpcbind".to_owned()).advice().starts_with("start rpcbind"));
    }

    #[test]
    fn each_version_is_registered_at_each_endpoint() {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 2049));
        let all = entries(Endpoint::Udp(address), Versions::default());
        let mapping = Mapping { program: 100_003, version: 2, protocol: PROTOCOL_UDP, port: 2049 };
        assert_eq!((all.len(), &all[0]), (4, &Entry::Ipv4(mapping)));
        let third = entries(
            Endpoint::Tcp("[::]:2049".parse().unwrap()),
            Versions { nfs2: false, nfs3: true },
        );
        let mapping = Mapping { program: 100_003, version: 3, protocol: PROTOCOL_TCP, port: 2049 };
        assert_eq!((third.len(), &third[0]), (4, &Entry::Ipv4(mapping)));
        let addr = "::.8.1".to_owned();
        assert_eq!(third[1], Entry::Ipv6 { program: 100_003, version: 3, netid: "tcp6", addr });
        let one = entries(Endpoint::Tcp("[::1]:2049".parse().unwrap()), Versions::default());
        assert!(one.iter().all(|entry| matches!(entry, Entry::Ipv6 { .. })));
    }
}
