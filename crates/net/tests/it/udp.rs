//! Calls in datagrams over real sockets of the loopback, as a bare client sees them.

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use net::clock::Clock;
use net::serve::{Carrier, Host, Limits, Peer};
use net::transport::datagram::{Datagram, Datagrams, Route};
use net::transport::udp::Udp;
use perf::units::Nanos;
use wire::record::Message;
use wire::rpc::{ReplyHeader, peek};
use wire::xdr::Encode;

const PATIENCE: Nanos = Nanos::from_secs(60);

fn in_time<T>(work: impl Future<Output = T>) -> T {
    net::runtime::block_on(async { Clock::real().within(PATIENCE, work).await.unwrap() }).unwrap()
}

/// Answers with the call's own bytes behind its XID.
async fn mirror(peer: Peer, record: Bytes) -> Option<Message> {
    assert_eq!(peer.carrier, Carrier::Datagram);
    let (xid, _) = peek(&record).ok()?;
    Some(Message { head: ReplyHeader::success(xid).to_bytes(), payload: record })
}

fn serve_at(ip: impl Into<IpAddr>) -> (Host, SocketAddr) {
    let clock = Clock::real();
    let socket = Udp::bind(SocketAddr::new(ip.into(), 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let host = Host::new(&clock, Limits::default());
    let own = host.clone();
    clock.spawn(async move { own.listen_datagrams(socket, mirror).await });
    (host, address)
}

fn call(xid: u32, bytes: usize) -> Message {
    let mut head = xid.to_be_bytes().to_vec();
    head.resize(8 + bytes, 7);
    head[4..8].fill(0);
    Message::new(head)
}

async fn send(socket: &mut Udp, server: SocketAddr, message: &Message) {
    let route = Route { peer: server, local: None };
    poll_fn(|cx| socket.poll_send(cx, message, &route)).await.unwrap();
}

async fn receive(socket: &mut Udp) -> Datagram {
    poll_fn(|cx| socket.poll_receive(cx)).await.unwrap()
}

/// Calls of all sizes, from a socket that takes replies from `server` only.
async fn exchange(server: SocketAddr) {
    let mut socket = Udp::connect(server).unwrap();
    for (xid, bytes) in (1..).zip([0, 4, 1_000, 8_184, 8_192, 33_000, 65_000]) {
        let message = call(xid, bytes);
        send(&mut socket, server, &message).await;
        let reply = receive(&mut socket).await;
        assert_eq!(reply.bytes[..4], xid.to_be_bytes());
        assert_eq!(reply.bytes[24..], message.head[..]);
        assert_eq!(reply.route.peer, server);
    }
}

#[test]
fn calls_of_any_size_are_answered() {
    in_time(async {
        let (host, server) = serve_at(Ipv4Addr::LOCALHOST);
        exchange(server).await;
        let counts = host.counts();
        assert_eq!((counts.datagrams, counts.datagrams_dropped), (7, 0));
        assert_eq!(counts.bytes_in_flight, 0);
    });
}

#[test]
fn replies_come_from_the_address_that_was_called() {
    in_time(async {
        let (_host, server) = serve_at(Ipv4Addr::UNSPECIFIED);
        for last in [1, 2, 77] {
            exchange((Ipv4Addr::new(127, 0, 0, last), server.port()).into()).await;
        }
    });
}

#[test]
fn a_socket_of_both_families_answers_each_from_where_it_was_called() {
    in_time(async {
        // Where there is no IPv6, there is nothing to see.
        if Udp::bind((Ipv6Addr::LOCALHOST, 0).into()).is_err() {
            return;
        }
        let (_host, server) = serve_at(Ipv6Addr::UNSPECIFIED);
        exchange((Ipv6Addr::LOCALHOST, server.port()).into()).await;
        exchange((Ipv4Addr::new(127, 0, 0, 3), server.port()).into()).await;
    });
}

#[test]
fn what_is_no_call_gets_no_answer_and_does_no_harm() {
    in_time(async {
        let (_host, server) = serve_at(Ipv4Addr::LOCALHOST);
        let mut socket = Udp::connect(server).unwrap();
        for head in [vec![], vec![1], vec![0xff; 60_000]] {
            send(&mut socket, server, &Message::new(head)).await;
        }
        send(&mut socket, server, &call(9, 0)).await;
        assert_eq!(receive(&mut socket).await.bytes[..4], 9_u32.to_be_bytes());
    });
}

#[test]
fn a_reply_too_large_for_a_datagram_is_dropped_and_counted() {
    in_time(async {
        let (host, server) = serve_at(Ipv4Addr::LOCALHOST);
        let mut socket = Udp::connect(server).unwrap();
        send(&mut socket, server, &call(1, 65_490)).await;
        send(&mut socket, server, &call(2, 0)).await;
        assert_eq!(receive(&mut socket).await.bytes[..4], 2_u32.to_be_bytes());
        assert_eq!(host.counts().replies_dropped, 1);
    });
}

#[test]
fn a_draining_host_lets_go_of_its_sockets() {
    in_time(async {
        let (host, server) = serve_at(Ipv4Addr::LOCALHOST);
        exchange(server).await;
        assert_eq!(host.drain(PATIENCE).await, Default::default());
        assert!(Udp::bind(server).is_ok());
    });
}
