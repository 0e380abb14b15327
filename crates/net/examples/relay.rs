//! What the relay costs: round trips and throughput over loopback TCP, direct and through it.
//!
//! ```text
//! cargo run --release -p nfskit-net --example relay
//! ```

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use net::clock::Clock;
use net::error::TransportError;
use net::relay::{Callers, Limits, Relay};
use net::runtime::{self, Background};
use net::shape::LinkPair;
use net::transport::buffer::Pool;
use net::transport::tcp::{self, Listener};
use net::transport::{RECORD_BYTES_MAX, Transport};
use perf::model::loggp::Link;
use perf::units::Nanos;
use wire::record::Message;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const LIMIT: Nanos = Nanos::from_secs(5);
const REPLY_BYTES: usize = 24;
const OUTSTANDING: usize = 16;

fn main() -> io::Result<()> {
    let (_server, server) = Background::start(1, || async { listen(None) })?;
    let server = server?;
    let mut places = vec![("direct".to_owned(), server)];
    let mut relays = Vec::new();
    for latency in [Nanos::ZERO, Nanos::from_micros(100)] {
        let link = LinkPair::symmetric(Link { latency, ..Link::default() });
        let (relay, address) =
            Background::start(1, move || async move { listen(Some((server, link))) })?;
        places.push((format!("relay, L {latency}"), address?));
        relays.push(relay);
    }
    for (bytes, count, outstanding, what) in [
        (40, 5_000, 1, "NULL, one at a time"),
        (8 << 10, 50_000, OUTSTANDING, "8 KiB"),
        (1 << 20, 1_000, OUTSTANDING, "1 MiB"),
    ] {
        for (name, address) in &places {
            // The best of three: the machine has other things to do.
            let mut best = f64::INFINITY;
            for _ in 0..3 {
                let took = runtime::block_on(exchange(*address, bytes, count, outstanding))?;
                best = best.min(took.map_err(io::Error::other)?.as_secs_f64());
            }
            let each_us = best * 1e6 / count as f64;
            let mib_per_s = (bytes * count) as f64 / best / f64::from(1 << 20);
            println!("{what:20} {name:20} {each_us:9.2} us each {mib_per_s:9.1} MiB/s");
        }
    }
    Ok(())
}

/// Answers every record, or relays.
fn listen(relay: Option<(SocketAddr, LinkPair)>) -> io::Result<SocketAddr> {
    let clock = Clock::real();
    let listener = Listener::bind(ANY, RECORD_BYTES_MAX)?;
    let address = listener.local_addr()?;
    let own = clock.clone();
    match relay {
        Some((server, links)) => {
            let events = Arc::new(|_| {});
            let relay = Relay::new(&clock, links.into(), Limits::default(), events, None);
            clock.spawn(async move { relay.listen(listener, server, Callers::Everybody).await });
        }
        None => {
            clock.spawn(async move {
                while let Ok(tcp) = listener.accept().await {
                    own.spawn(async move {
                        answer(tcp).await.ok();
                    });
                }
            });
        }
    }
    Ok(address)
}

async fn answer(mut tcp: impl Transport) -> Result<(), TransportError> {
    while poll_fn(|cx| tcp.poll_receive(cx)).await?.is_some() {
        poll_fn(|cx| tcp.poll_ready(cx)).await?;
        tcp.send(Message::new(vec![0; REPLY_BYTES]));
        poll_fn(|cx| tcp.poll_flush(cx)).await?;
    }
    Ok(())
}

async fn exchange(
    address: SocketAddr,
    bytes: usize,
    count: usize,
    outstanding: usize,
) -> Result<Nanos, Box<dyn std::error::Error + Send + Sync>> {
    let clock = Clock::real();
    let pool = Pool::new(RECORD_BYTES_MAX);
    let mut tcp = tcp::connect(&clock, address, LIMIT, &pool, RECORD_BYTES_MAX).await?;
    let payload = Bytes::from(vec![7; bytes]);
    let (mut sent, mut answered) = (0, 0);
    let began = clock.now();
    while answered < count {
        while sent < count && sent - answered < outstanding {
            tcp.send(Message { head: Vec::new(), payload: payload.clone() });
            sent += 1;
        }
        let received = poll_fn(|cx| {
            if let std::task::Poll::Ready(Err(error)) = tcp.poll_flush(cx) {
                return std::task::Poll::Ready(Err(error));
            }
            tcp.poll_receive(cx)
        });
        received.await?.ok_or("the connection has ended")?;
        answered += 1;
    }
    Ok(clock.now().since(began))
}
