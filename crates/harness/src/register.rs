//! Registration with the host's rpcbind, which clients ask for our ports (RFC 1833).
//!
//! IPv4 is registered by version 2 of its protocol, which every rpcbind and portmap has; IPv6 by
//! version 4. What a dead server left there is replaced; one that still answers keeps it. At the
//! end what is as it was set is taken back: another program may have taken a number over meanwhile,
//! as Linux' lock manager does when it starts.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use net::call::{Rpc, Target};
use net::clock::Clock;
use net::transport::buffer::Pool;
use net::transport::{RECORD_BYTES_MAX, tcp};
use perf::units::Nanos;
use server::{Endpoint, Versions};
use wire::portmap::{self, Done, DumpReply, Mapping, PROTOCOL_TCP, PROTOCOL_UDP};
use wire::rpc::OpaqueAuth;
use wire::rpcbind::{self, Rpcb, parse_uaddr, uaddr};
use wire::xdr::{Encode, from_bytes};
use wire::{mount, nfs2, nfs3, nlm};

use crate::exit::Failure;

/// How long rpcbind may take.
pub const LIMIT: Nanos = Nanos::from_secs(5);

/// How long another server may take to show that it is there.
const ANSWER_LIMIT: Nanos = Nanos::from_secs(1);

/// Registrations of others that are looked at.
const LOOKED_AT_MAX: usize = 16;

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
    /// Registers NFS, MOUNT and NLM at `endpoints`.
    ///
    /// # Errors
    /// There is no rpcbind, or it refuses; or another server is registered and answers.
    pub async fn make(
        clock: &Clock,
        endpoints: &[Endpoint],
        versions: Versions,
    ) -> Result<Self, Failure> {
        let rpcbind = connect(clock).await.map_err(without_rpcbind)?;
        let mut all = distinct(endpoints, |endpoint| entries(endpoint, versions));
        let other = other_server(clock, &rpcbind, &all).await.map_err(without_rpcbind)?;
        if let Some(other) = other {
            return Err(taken(&other));
        }
        // A lock manager of this host stays, which its own mounts need: it refuses locks of our
        // files, too.
        let locks = distinct(endpoints, |endpoint| lock_entries(endpoint, versions));
        let other = other_server(clock, &rpcbind, &locks).await.map_err(without_rpcbind)?;
        if other.is_none() {
            all.extend(locks);
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

    /// Takes everything back that is still ours; what fails is left.
    pub async fn take_back(&self, clock: &Clock) {
        let all = async {
            let Ok(rpcbind) = connect(clock).await else { return };
            if let Ok(registered) = dump_by_transport(&rpcbind).await {
                for entry in still(&self.0, &registered) {
                    entry.change(&rpcbind, Change::UnsetAlone).await.ok();
                }
            } else if let Ok(DumpReply { mappings }) = dump(&rpcbind).await {
                let registered: Vec<_> = mappings.0.iter().map(Registered::of_mapping).collect();
                for entry in still(&self.0, &registered) {
                    if !is_shared(entry, &self.0, &registered) {
                        entry.change(&rpcbind, Change::Unset).await.ok();
                    }
                }
            }
        };
        clock.within(LIMIT, std::pin::pin!(all)).await.ok();
    }
}

/// A registration of anybody's, as far as it is compared.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Registered {
    program: u32,
    version: u32,
    netid: Vec<u8>,
    port: Option<u32>,
}

impl Registered {
    fn of_mapping(&Mapping { program, version, protocol, port }: &Mapping) -> Self {
        Self { program, version, netid: netid(protocol).to_vec(), port: Some(port) }
    }
}

/// Over IPv4.
fn netid(protocol: u32) -> &'static [u8] {
    if protocol == PROTOCOL_UDP { b"udp" } else { b"tcp" }
}

/// Those of ours that are registered as we have set them.
fn still<'e>(own: &'e [Entry], all: &'e [Registered]) -> impl Iterator<Item = &'e Entry> {
    own.iter().filter(|entry| all.contains(&entry.registered()))
}

/// Whether somebody else is registered for the same version of a program, over another transport.
fn is_shared(entry: &Entry, own: &[Entry], all: &[Registered]) -> bool {
    let Registered { program, version, .. } = entry.registered();
    let mut same = all.iter().filter(|one| (one.program, one.version) == (program, version));
    same.any(|one| !own.iter().any(|entry| entry.registered() == *one))
}

/// All registrations by transport, which version 2 does not distinguish.
async fn dump_by_transport(rpcbind: &Rpc) -> Result<Vec<Registered>, String> {
    let procedure = rpcbind::Procedure::Dump.code();
    let target = Target { program: rpcbind::PROGRAM, version: rpcbind::VERSION_4, procedure };
    let answer = rpcbind.call(target, OpaqueAuth::NONE, |_| (), Bytes::new()).await;
    let results = answer.map_err(|error| format!("rpcbind: {error}"))?.results();
    let dumped: rpcbind::DumpReply<'_> =
        from_bytes(&results).map_err(|error| format!("rpcbind: {error}"))?;
    let registered = |entry: &Rpcb<'_>| Registered {
        program: entry.program,
        version: entry.version,
        netid: entry.netid.to_vec(),
        port: parse_uaddr(entry.addr).map(|address| address.port().into()),
    };
    Ok(dumped.entries.0.iter().map(registered).collect())
}

fn without_rpcbind(why: String) -> Failure {
    Failure::environment(why, "start rpcbind, or be the portmapper yourself: --portmap")
}

fn taken(Mapping { program, version, port, .. }: &Mapping) -> Failure {
    Failure::environment(
        format!(
            "another server is registered with rpcbind for program {program}, version {version}, \
             and answers at port {port}: --register would take that away"
        ),
        "end that server first; or no --register, and ports in the clients' URLs",
    )
}

/// The registration of another server that answers, of a program and version of ours: clients could
/// not find it any more.
async fn other_server(
    clock: &Clock,
    rpcbind: &Rpc,
    own: &[Entry],
) -> Result<Option<Mapping>, String> {
    let DumpReply { mappings } = dump(rpcbind).await?;
    let is_other = |mapping: &Mapping| {
        let mut same = own.iter().filter(|entry| entry.is_of(mapping)).peekable();
        same.peek().is_some() && same.all(|entry| entry.port() != Some(mapping.port))
    };
    let over_tcp = mappings.0.into_iter().filter(|mapping| mapping.protocol == PROTOCOL_TCP);
    for mapping in over_tcp.filter(is_other).take(LOOKED_AT_MAX) {
        if answers(clock, &mapping).await {
            return Ok(Some(mapping));
        }
    }
    Ok(None)
}

async fn dump(rpcbind: &Rpc) -> Result<DumpReply, String> {
    let procedure = portmap::Procedure::Dump.code();
    let target = Target { program: portmap::PROGRAM, version: portmap::VERSION, procedure };
    let answer = rpcbind.call(target, OpaqueAuth::NONE, |_| (), Bytes::new()).await;
    let answer = answer.map_err(|error| format!("rpcbind: {error}"))?;
    from_bytes(&answer.results()).map_err(|error| format!("rpcbind: {error}"))
}

/// Whether a program of this host answers there.
async fn answers(clock: &Clock, &Mapping { program, version, port, .. }: &Mapping) -> bool {
    let Ok(port) = u16::try_from(port) else { return false };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let pool = Pool::new(RECORD_BYTES_MAX);
    let connected = tcp::connect(clock, address, ANSWER_LIMIT, &pool, RECORD_BYTES_MAX).await;
    let Ok(tcp) = connected else { return false };
    let null = Target { program, version, procedure: 0 };
    let rpc = Rpc::start(tcp, clock, ANSWER_LIMIT, 1);
    rpc.call(null, OpaqueAuth::NONE, |_| (), Bytes::new()).await.is_ok()
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
    /// In version 2 of all transports.
    Unset,
    /// Of its transport, which needs an rpcbind that knows version 4.
    UnsetAlone,
}

/// What all endpoints have. A socket for both families tells of IPv4 twice.
fn distinct(endpoints: &[Endpoint], entries: impl Fn(Endpoint) -> Vec<Entry>) -> Vec<Entry> {
    let mut all = Vec::new();
    for entry in endpoints.iter().flat_map(|&endpoint| entries(endpoint)) {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all
}

fn entries(endpoint: Endpoint, versions: Versions) -> Vec<Entry> {
    let programs = [
        (versions.nfs2, nfs2::PROGRAM, nfs2::VERSION),
        (versions.nfs3, nfs3::PROGRAM, nfs3::VERSION),
        (versions.nfs2, mount::PROGRAM, mount::VERSION_1),
        (versions.nfs3, mount::PROGRAM, mount::VERSION),
    ];
    entries_of(endpoint, &programs)
}

fn lock_entries(endpoint: Endpoint, versions: Versions) -> Vec<Entry> {
    let programs = [
        (versions.nfs2, nlm::PROGRAM, nlm::VERSION_1),
        (versions.nfs2, nlm::PROGRAM, nlm::VERSION_3),
        (versions.nfs3, nlm::PROGRAM, nlm::VERSION_4),
    ];
    entries_of(endpoint, &programs)
}

/// Of programs and versions that are offered.
fn entries_of(endpoint: Endpoint, programs: &[(bool, u32, u32)]) -> Vec<Entry> {
    let (address, protocol, netid) = match endpoint {
        Endpoint::Tcp(address) => (address, PROTOCOL_TCP, "tcp6"),
        Endpoint::Udp(address) => (address, PROTOCOL_UDP, "udp6"),
    };
    // A TCP listener on [::] takes IPv4 too; for UDP there is a socket for each.
    let takes_ipv4 =
        address.is_ipv4() || (protocol == PROTOCOL_TCP && address.ip().is_unspecified());
    let offered = programs.iter().filter(|(offered, ..)| *offered);
    offered
        .flat_map(|&(_, program, version)| {
            let port = address.port().into();
            let ipv4 = Entry::Ipv4(Mapping { program, version, protocol, port });
            let ipv6 = Entry::Ipv6 { program, version, netid, addr: uaddr(address) };
            [takes_ipv4.then_some(ipv4), address.is_ipv6().then_some(ipv6)].into_iter().flatten()
        })
        .collect()
}

impl Entry {
    /// Whether another registration is of the same program and version.
    fn is_of(&self, other: &Mapping) -> bool {
        let (Self::Ipv4(Mapping { program, version, .. }) | Self::Ipv6 { program, version, .. }) =
            self;
        (*program, *version) == (other.program, other.version)
    }

    fn port(&self) -> Option<u32> {
        match self {
            Self::Ipv4(mapping) => Some(mapping.port),
            Self::Ipv6 { .. } => None,
        }
    }

    fn registered(&self) -> Registered {
        match self {
            Self::Ipv4(mapping) => Registered::of_mapping(mapping),
            Self::Ipv6 { program, version, netid, addr } => Registered {
                program: *program,
                version: *version,
                netid: netid.as_bytes().to_vec(),
                port: parse_uaddr(addr.as_bytes()).map(|address| address.port().into()),
            },
        }
    }

    async fn change(&self, rpcbind: &Rpc, change: Change) -> Result<bool, String> {
        let rpcb = |program, version, netid, addr| {
            let owner = b"superuser";
            Rpcb { program, version, netid, addr, owner }.to_bytes()
        };
        let (version, procedure, args) = match (self, change) {
            (Self::Ipv4(mapping), Change::Set) => {
                (portmap::VERSION, portmap::Procedure::Set.code(), mapping.to_bytes())
            }
            (Self::Ipv4(mapping), Change::Unset) => {
                (portmap::VERSION, portmap::Procedure::Unset.code(), mapping.to_bytes())
            }
            (&Self::Ipv4(Mapping { program, version, protocol, .. }), Change::UnsetAlone) => {
                let args = rpcb(program, version, netid(protocol), b"");
                (rpcbind::VERSION_4, rpcbind::Procedure::Unset.code(), args)
            }
            (Self::Ipv6 { program, version, netid, addr }, change) => {
                let args = rpcb(*program, *version, netid.as_bytes(), addr.as_bytes());
                let procedure = match change {
                    Change::Set => rpcbind::Procedure::Set,
                    Change::Unset | Change::UnsetAlone => rpcbind::Procedure::Unset,
                };
                (rpcbind::VERSION_4, procedure.code(), args)
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
    use crate::served;
    use crate::sockets::Sockets;

    /// Another portmapper does not help where this one only wants root.
    #[test]
    fn a_refusal_of_rpcbind_has_another_advice_than_its_absence() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 2049));
        let entry = &entries(Endpoint::Tcp(address), Versions::default())[0];
        assert!(refused(entry).advice().starts_with("run it as root"));
        assert!(without_rpcbind("no rpcbind".to_owned()).advice().starts_with("start rpcbind"));
    }

    /// Our own servers tell of themselves as an rpcbind does.
    #[test]
    fn a_server_that_answers_keeps_its_registration_and_one_that_is_gone_does_not() {
        let serve = || {
            let sockets = Sockets::bind(([127, 0, 0, 1], 0).into(), false).unwrap();
            let address = sockets.address;
            let store = served::memory(&Clock::real(), 1 << 20);
            let exports = server::Exports::one(server::Export::default(), store);
            let memory = served::Memory { replies: None, metrics: None };
            let options = served::Options::embedded(served::CommitMode::Concurrent, 2);
            (served::start(sockets, exports, memory, options, &Clock::real()), address)
        };
        net::runtime::block_on(async {
            let clock = Clock::real();
            let (_running, other) = serve();
            let pool = Pool::new(RECORD_BYTES_MAX);
            let tcp = tcp::connect(&clock, other, LIMIT, &pool, RECORD_BYTES_MAX).await.unwrap();
            let rpcbind = Rpc::start(tcp, &clock, LIMIT, 1);
            let at = |port| {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                entries(Endpoint::Tcp(address), Versions::default())
            };
            let found = other_server(&clock, &rpcbind, &at(1)).await.unwrap().unwrap();
            assert_eq!(found.port, u32::from(other.port()));
            assert!(taken(&found).advice().starts_with("end that server"));
            let own = other_server(&clock, &rpcbind, &at(other.port())).await.unwrap();
            assert_eq!(own, None, "left by a server that had the port before");
            let gone = Mapping { port: 1, ..found };
            assert!(!answers(&clock, &gone).await);
        })
        .unwrap();
    }

    /// Linux' lock manager takes the place of ours when it starts, over its own ports.
    #[test]
    fn what_another_program_has_registered_meanwhile_is_not_taken_back() {
        let endpoint = Endpoint::Tcp("[::]:2049".parse().unwrap());
        let versions = Versions { nfs2: false, nfs3: true };
        let own: Vec<_> = [entries(endpoint, versions), lock_entries(endpoint, versions)].concat();
        let ours: Vec<_> = own.iter().map(Entry::registered).collect();
        assert!(still(&own, &ours).eq(&own));
        let locks = |port| {
            ours.iter()
                .filter(|one| one.program == nlm::PROGRAM)
                .map(move |lock| Registered { port: Some(port), ..lock.clone() })
        };
        let others: Vec<_> = ours[..4].iter().cloned().chain(locks(40_001)).collect();
        assert!(still(&own, &others).eq(&own[..4]));
        // Of the same program over another transport, which version 2 would take away, too.
        let udp = Registered { netid: b"udp".to_vec(), port: Some(40_001), ..ours[0].clone() };
        let all: Vec<_> = ours.iter().cloned().chain([udp]).collect();
        let shared: Vec<_> = own.iter().filter(|entry| is_shared(entry, &own, &all)).collect();
        assert_eq!(shared, [&own[0], &own[1]]);
        assert!(!own.iter().any(|entry| is_shared(entry, &own, &ours)));
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
