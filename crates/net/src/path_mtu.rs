//! The largest packet that passes to a host and back: echo requests that nobody on the way may
//! break into fragments (ICMP, RFC 792; what `ping -M do` sends). IPv4 only.
//!
//! The kernel may let anybody ask (`net.ipv4.ping_group_range`) or root only. A host, or a firewall
//! before it, may answer none at all, which says nothing about NFS.

use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use perf::units::{Instant, Nanos};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::Clock;

/// Headers of IPv4 and ICMP.
const HEAD_BYTES: u32 = 28;
const IP_BYTES: usize = 20;
/// Every host takes packets of this size (RFC 791, section 3.1).
const BYTES_MIN: u32 = 576;
/// What passes is read so often before it counts as lost.
const TRIES: u32 = 2;
/// A reply is waited for so many times the smallest one's time, and no less than this.
const PATIENCE: u64 = 4;
const WAIT_MIN: Nanos = Nanos::from_millis(50);

/// What is known of packets to a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Passed {
    /// Packets of so many bytes are answered in full; larger ones are not, or were not tried.
    Bytes(u32),
    /// Nothing was answered, small as it was.
    Silence,
}

/// Tries packets of up to `most` bytes. Waits on a thread of its own, `limit` for the first reply.
///
/// # Errors
/// This host lets only root ask, or has no way there.
pub async fn largest(clock: &Clock, host: Ipv4Addr, most: u32, limit: Nanos) -> io::Result<Passed> {
    let clock = clock.clone();
    let work = move || Echo::open(&clock, host).and_then(|echo| echo.largest(most, limit));
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

struct Echo<'a> {
    clock: &'a Clock,
    socket: Socket,
    /// Replies come with the header of IP, and those of others, too.
    is_raw: bool,
    identifier: u16,
}

impl<'a> Echo<'a> {
    fn open(clock: &'a Clock, host: Ipv4Addr) -> io::Result<Self> {
        let open = |kind| Socket::new(Domain::IPV4, kind, Some(Protocol::ICMPV4));
        let (socket, is_raw) = match open(Type::DGRAM) {
            Ok(socket) => (socket, false),
            Err(_) => (open(Type::RAW)?, true),
        };
        socket.connect(&SocketAddr::V4(SocketAddrV4::new(host, 0)).into())?;
        // What the kernel believes of the way does not count: it is to be found out.
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
        let identifier = u16::try_from(std::process::id() & 0xffff).unwrap_or(1);
        Ok(Self { clock, socket, is_raw, identifier })
    }

    fn largest(&self, most: u32, limit: Nanos) -> io::Result<Passed> {
        let most = most.clamp(BYTES_MIN, u32::from(u16::MAX));
        let begin = self.clock.now();
        if !self.passes(HEAD_BYTES + 8, 0, limit)? {
            return Ok(Passed::Silence);
        }
        let wait = self.clock.now().since(begin).as_nanos().saturating_mul(PATIENCE);
        let wait = Nanos::from_nanos(wait).max(WAIT_MIN).min(limit);
        let mut sequence = 1;
        let mut passes = |bytes| -> io::Result<bool> {
            for _ in 0..TRIES {
                sequence += 1;
                if self.passes(bytes, sequence, wait)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        if passes(most)? {
            return Ok(Passed::Bytes(most));
        }
        // One that passes, and one that does not.
        let (mut least, mut too_large) = (HEAD_BYTES + 8, most);
        while too_large - least > 1 {
            let middle = u32::midpoint(least, too_large);
            if passes(middle)? { least = middle } else { too_large = middle }
        }
        Ok(Passed::Bytes(least))
    }

    /// Whether a packet of so many bytes is answered in time.
    fn passes(&self, bytes: u32, sequence: u16, wait: Nanos) -> io::Result<bool> {
        let request = request(self.identifier, sequence, (bytes - HEAD_BYTES) as usize);
        match self.socket.send(&request) {
            Ok(_) => {}
            // Larger than the interface takes; a router, or the host itself, has refused.
            Err(cause)
                if cause.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) =>
            {
                return Ok(false);
            }
            Err(cause) => return Err(cause),
        }
        let until = self.clock.now() + wait;
        let mut buffer = vec![0; request.len() + 2 * IP_BYTES + 64];
        loop {
            let Some(left) = left(self.clock.now(), until) else { return Ok(false) };
            self.socket.set_read_timeout(Some(Duration::from_nanos(left.as_nanos())))?;
            match (&self.socket).read(&mut buffer) {
                Ok(count) if self.is_reply(&buffer[..count], sequence, request.len()) => {
                    return Ok(true);
                }
                Ok(_) => {}
                Err(cause)
                    if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(false);
                }
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause)
                    if cause.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) =>
                {
                    return Ok(false);
                }
                Err(cause) => return Err(cause),
            }
        }
    }

    fn is_reply(&self, packet: &[u8], sequence: u16, len: usize) -> bool {
        let message = match (self.is_raw, packet.first()) {
            (true, Some(first)) => packet.get(usize::from(first & 0x0f) * 4..).unwrap_or_default(),
            _ => packet,
        };
        let word = |at: usize| Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?));
        // Of one that is not raw, the kernel chooses the identifier, and gives it its own only.
        let is_ours = !self.is_raw || word(4) == Some(self.identifier);
        message.first() == Some(&0) && is_ours && word(6) == Some(sequence) && message.len() == len
    }
}

/// None where nothing is left.
fn left(now: Instant, until: Instant) -> Option<Nanos> {
    (until > now).then(|| until.since(now).max(Nanos::from_millis(1)))
}

/// Type 8, with its checksum (RFC 1071).
fn request(identifier: u16, sequence: u16, payload: usize) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0];
    message.extend(identifier.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.extend((0..payload).map(|at| u8::try_from(at & 0xff).unwrap_or(0)));
    message.truncate(payload + 8);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

fn checksum(message: &[u8]) -> u16 {
    let words = message
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_its_checksum_sums_up_to_nothing() {
        for payload in [0, 1, 8, 1_472] {
            let message = request(7, 3, payload);
            assert_eq!(message.len(), 8 + payload);
            assert_eq!(checksum(&message), 0, "{payload}");
        }
    }

    #[test]
    fn only_the_reply_to_the_last_request_counts() {
        let clock = Clock::real();
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let echo = Echo { clock: &clock, socket, is_raw: true, identifier: 7 };
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet.extend(request(7, 3, 8));
        assert!(!echo.is_reply(&packet, 3, 16), "a request is no reply");
        packet[20] = 0;
        assert!(echo.is_reply(&packet, 3, 16));
        assert!(!echo.is_reply(&packet, 4, 16) && !echo.is_reply(&packet, 3, 17));
        assert!(!echo.is_reply(&[], 3, 16) && !echo.is_reply(&[0x4f], 3, 16));
    }

    #[test]
    fn to_this_host_everything_passes_where_asking_is_allowed() {
        let clock = Clock::real();
        match Echo::open(&clock, Ipv4Addr::LOCALHOST) {
            Ok(echo) => {
                let passed = echo.largest(9_000, Nanos::from_secs(10)).unwrap();
                assert_eq!(passed, Passed::Bytes(9_000));
            }
            Err(cause) => assert_eq!(cause.kind(), ErrorKind::PermissionDenied, "{cause}"),
        }
    }
}
