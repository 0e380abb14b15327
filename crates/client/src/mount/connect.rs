//! From an address to calls: one connection for measurements, persistent ones for mounts.

use std::net::SocketAddr;
use std::sync::Arc;

use net::call::{self, Recovery, Rpc};
use net::clock::Clock;
use net::error::ConnectError;
use net::processor::Processor;
use net::shape::Shape;
use net::transport::buffer::Pool;
use net::transport::private::Dialer;
use net::transport::tcp;
use net::transport::udp::Udp;
use net::transport::{RECORD_BYTES_MAX, Transport};
use perf::units::Nanos;

use super::{Options, Persistence, Ports, traits};
use crate::error::{Error, Service};
use crate::url::{Protocol, Version};

/// Connects to an NFS service, through the emulated link if there is one.
///
/// # Errors
/// [`Error::Connect`].
pub async fn connect(clock: &Clock, ports: &Ports, options: &Options) -> Result<Rpc, Error> {
    let failed = |cause| Error::Connect { service: Service::Nfs, cause };
    let persistent = options.persistence.as_ref();
    let calls = persistent.map(|wanted| call_options(wanted, options, clock, ports));
    if ports.protocol == Protocol::Udp {
        let socket = bind(ports.nfs, Service::Nfs)?;
        let processor = Processor::real(clock);
        let socket = options.links.around_datagrams(socket, &processor, clock);
        let socket = socket.map_err(|cause| failed(no_timer(ports.nfs, cause)))?;
        let (limit, xid) = (options.reply_limit, first_xid(clock));
        return Ok(match calls {
            None => Rpc::start_datagrams(socket, ports.nfs, clock, limit, xid),
            Some(calls) => Rpc::persistent_datagrams(socket, ports.nfs, clock, &calls),
        });
    }
    let way = Way {
        clock: clock.clone(),
        nfs: ports.nfs,
        private: options.private.clone(),
        limit: options.connect_limit,
        links: options.links.clone(),
        patience: calls.as_ref().map(|calls| (calls.timeo, calls.retrans)),
        pool: options.pool.clone(),
    };
    match calls {
        None => {
            let transport = way.connect(None).await.map_err(failed)?;
            Ok(Rpc::start(transport, clock, options.reply_limit, first_xid(clock)))
        }
        Some(calls) => {
            let connect = move |before: Option<SocketAddr>| {
                let way = way.clone();
                async move { way.connect(before).await }
            };
            Rpc::persistent(connect, clock, calls).await.map_err(failed)
        }
    }
}

/// How each connection is made.
#[derive(Clone)]
struct Way {
    clock: Clock,
    nfs: SocketAddr,
    private: Option<Dialer>,
    limit: Nanos,
    links: Shape,
    /// `timeo` and `retrans`, by which the system is to notice that the server is gone.
    patience: Option<(Nanos, u32)>,
    pool: Pool,
}

impl Way {
    /// From the port of the connection before, if there was one.
    async fn connect(
        &self,
        before: Option<SocketAddr>,
    ) -> Result<Box<dyn Transport>, ConnectError> {
        let Self { clock, nfs, private, limit, links, patience, pool } = self;
        let mut tcp = match before {
            Some(before) if private.is_none() => {
                let port = before.port();
                tcp::connect_from(clock, port, *nfs, *limit, pool, RECORD_BYTES_MAX).await?
            }
            _ => super::dial(clock, *nfs, private.as_ref(), *limit, pool).await?,
        };
        if let Some((timeo, retrans)) = patience {
            tcp.watch_peer(*timeo, *retrans);
            // A process that is killed leaves calls in the system's buffer. Behind a slow link they
            // would be done after those of the next process, which does them again.
            tcp.abort();
        }
        let around = links.around(tcp, &Processor::real(clock), clock);
        around.map_err(|cause| no_timer(*nfs, cause))
    }
}

/// The link that is to be emulated takes timers, and the system has none.
fn no_timer(address: SocketAddr, cause: std::io::Error) -> ConnectError {
    ConnectError::Unreachable { address, cause: Arc::new(cause) }
}

/// What the layer below is to do.
fn call_options(
    wanted: &Persistence,
    options: &Options,
    clock: &Clock,
    ports: &Ports,
) -> call::Options {
    let defaults = match ports.protocol {
        Protocol::Tcp => call::Options::stream(),
        Protocol::Udp => call::Options::datagrams(),
    };
    call::Options {
        nconnect: wanted.nconnect,
        recovery: if wanted.soft { Recovery::Soft } else { Recovery::Hard },
        timeo: wanted.timeo.unwrap_or(defaults.timeo),
        retrans: wanted.retrans.unwrap_or(defaults.retrans),
        insist: wanted.insist,
        first_reply_limit: options.reply_limit,
        traits: match ports.version {
            Version::Two => traits::NFS2,
            Version::Three => traits::NFS3,
        },
        first_xid: first_xid(clock),
        events: wanted.events.clone(),
        ..defaults
    }
}

/// Calls over UDP, which connects nothing: whether anybody is there, the first call tells.
pub(super) fn datagrams(
    clock: &Clock,
    server: SocketAddr,
    options: &Options,
    service: Service,
) -> Result<Rpc, Error> {
    let socket = bind(server, service)?;
    Ok(Rpc::start_datagrams(socket, server, clock, options.reply_limit, first_xid(clock)))
}

fn bind(server: SocketAddr, service: Service) -> Result<Udp, Error> {
    Udp::connect(server).map_err(|cause| {
        let cause = ConnectError::Unreachable { address: server, cause: Arc::new(cause) };
        Error::Connect { service, cause }
    })
}

/// Differs from connection to connection, so that a server's reply cache keeps them apart.
#[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
pub(super) fn first_xid(clock: &Clock) -> u32 {
    let nanos = clock.since_1970().as_nanos();
    (nanos ^ (nanos >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use net::error::TransportError;
    use wire::record::Message;

    use super::*;

    #[test]
    fn what_a_mount_has_not_sent_when_it_is_killed_is_not_sent_afterwards() {
        let received = net::runtime::block_on(async {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = tcp::Listener::bind(any, RECORD_BYTES_MAX).unwrap();
            let way = Way {
                clock: Clock::real(),
                nfs: listener.local_addr().unwrap(),
                private: None,
                limit: Nanos::from_secs(20),
                links: Shape::default(),
                patience: Some((Nanos::from_secs(60), 2)),
                pool: Pool::new(RECORD_BYTES_MAX),
            };
            let mut transport = way.connect(None).await.unwrap();
            let mut is_full = false;
            while !is_full {
                transport.send(Message::new(vec![7; RECORD_BYTES_MAX]));
                let flush = poll_fn(|cx| Poll::Ready(transport.poll_flush(cx)));
                is_full = flush.await.is_pending();
            }
            drop(transport);
            let mut server = listener.accept().await.unwrap();
            loop {
                match poll_fn(|cx| server.poll_receive(cx)).await {
                    Ok(Some(_)) => {}
                    ended => return ended,
                }
            }
        });
        // An end in order would show a record that is cut off.
        assert!(matches!(received.unwrap(), Err(TransportError::Io(_))));
    }
}
