//! A relay of datagrams on the loopback that loses some: what a kernel's netem does, where there is
//! none.
//!
//! It loses packets, not datagrams: a datagram that would cross an Ethernet in so many fragments
//! survives only if each of them does. A large WRITE over UDP meets what it meets on a real wire.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

/// Data of a fragment: an MTU of 1500 less the header of IP.
const FRAGMENT_BYTES: usize = 1480;
/// Sources that are told apart; those that come later are not served.
const CLIENTS_MAX: usize = 64;
/// How often threads look whether they are to end.
const LOOK: Duration = Duration::from_millis(100);
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Runs until it is dropped.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) port: u16,
    stop: Arc<AtomicBool>,
}

impl Relay {
    /// Relays to `server` on the loopback, losing each packet with chance `loss`.
    pub(super) fn start(server: u16, loss: f64, seed: u64) -> io::Result<Self> {
        let front = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
        front.set_read_timeout(Some(LOOK))?;
        let port = front.local_addr()?.port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || forward(&front, server, loss, seed, &stopped));
        Ok(Self { port, stop })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What clients send, each through a socket of its own, so that replies find their way back.
fn forward(front: &Arc<UdpSocket>, server: u16, loss: f64, seed: u64, stop: &Arc<AtomicBool>) {
    let mut rng = Rng::with_seed(seed);
    let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    while !stop.load(Ordering::Relaxed) {
        let Ok((count, client)) = front.recv_from(&mut buffer) else { continue };
        if !clients.contains_key(&client) {
            if clients.len() == CLIENTS_MAX {
                continue;
            }
            let Ok(back) = connected(server) else { continue };
            let back = Arc::new(back);
            clients.insert(client, Arc::clone(&back));
            let (front, stop, seed) = (Arc::clone(front), Arc::clone(stop), rng.u64(..));
            thread::spawn(move || reply(&back, &front, client, loss, seed, &stop));
        }
        if let Some(back) = clients.get(&client)
            && !is_lost(&mut rng, count, loss)
        {
            // A server that is not there refuses: a loss like any other.
            back.send(&buffer[..count]).ok();
        }
    }
}

/// What the server answers to one client.
fn reply(
    back: &UdpSocket,
    front: &UdpSocket,
    client: SocketAddr,
    loss: f64,
    seed: u64,
    stop: &AtomicBool,
) {
    let mut rng = Rng::with_seed(seed);
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    while !stop.load(Ordering::Relaxed) {
        let Ok(count) = back.recv(&mut buffer) else { continue };
        if !is_lost(&mut rng, count, loss) {
            front.send_to(&buffer[..count], client).ok();
        }
    }
}

fn connected(server: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, server))?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

fn is_lost(rng: &mut Rng, bytes: usize, loss: f64) -> bool {
    (0..bytes.div_ceil(FRAGMENT_BYTES).max(1)).any(|_| rng.f64() < loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_datagrams_are_lost_as_often_as_their_fragments_are() {
        let mut rng = Rng::with_seed(3);
        let mut lost = |bytes| (0..10_000).filter(|_| is_lost(&mut rng, bytes, 0.01)).count();
        let (small, large) = (lost(100), lost(32 << 10));
        assert!((50..200).contains(&small), "{small} of 10,000; 100 expected");
        // 23 fragments: 1 - 0.99^23 = 0.206.
        assert!((1_850..2_300).contains(&large), "{large} of 10,000; 2,060 expected");
    }

    #[test]
    fn datagrams_go_both_ways_when_nothing_is_lost() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start(server.local_addr().unwrap().port(), 0.0, 1).unwrap();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.connect((Ipv4Addr::LOCALHOST, relay.port)).unwrap();
        client.send(b"call").unwrap();
        let mut buffer = [0; 100];
        let (count, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"call");
        server.send_to(b"reply", from).unwrap();
        let count = client.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"reply");
    }
}
