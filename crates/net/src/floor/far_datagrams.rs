//! The far end of runs with datagrams: one socket for all, one run at a time.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};

use perf::units::{Instant, Nanos};

use super::arrivals::Tally;
use super::far::FarState;
use super::kernel_counts::{self, Host};
use super::lines::{is_passing, read_words, write_words};
use super::mark::{Header, sentinel};
use super::pace;
use super::protocol::{Kind, REPORT, Report, Request};
use super::spray_service::SprayService;

/// Datagrams may be on their way when their sender says that it is done: until none has come for
/// so long.
const QUIET: Nanos = Nanos::from_millis(200);
const QUIET_LOOK: Nanos = Nanos::from_millis(5);

/// A run with datagrams.
#[derive(Debug)]
pub(super) struct DatagramRun {
    token: u64,
    peer: IpAddr,
    request: Request,
    tally: Tally,
    /// Of a run of transfers, the one in progress.
    transfer: u32,
}

impl FarState {
    /// Lets the peer's datagrams in until it goes, and reports when it asks.
    pub(super) fn datagrams(
        &self,
        stream: &TcpStream,
        peer: IpAddr,
        request: Request,
        until: Instant,
    ) -> io::Result<()> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let token = u64::from_ne_bytes(random);
        let tally = Tally::new();
        let (cpu, host) = ((self.cpu)(), Host::now());
        let drops = kernel_counts::drops(&self.socket);
        *self.run.lock() = Some(DatagramRun { token, peer, request, tally, transfer: 0 });
        let _end = End(self);
        Self::go(stream, token)?;
        loop {
            let [order, sent] = read_words(&self.clock, stream, until)?;
            if order != REPORT {
                return Ok(());
            }
            self.settle(sent, until);
            let mut report = Report { cpu: (self.cpu)().saturating_sub(cpu), ..Report::default() };
            Host::now().since(host).put_into(&mut report);
            let dropped = kernel_counts::drops(&self.socket);
            report.socket_drops = dropped.zip(drops).map(|(now, then)| now.wrapping_sub(then));
            if let Some(DatagramRun { tally, .. }) = &*self.run.lock() {
                report.bytes = tally.bytes;
                report.first_bytes = tally.first_bytes;
                report.span = tally.span();
                report.messages = tally.datagrams;
                report.duplicates = tally.duplicates;
                report.reordered = tally.reordered;
            }
            write_words(stream, &report.words())?;
        }
    }

    /// Waits until `sent` datagrams have come, or none comes any more.
    fn settle(&self, sent: u64, until: Instant) {
        let began = self.clock.now();
        loop {
            let (came, last) = match &*self.run.lock() {
                Some(run) => (run.tally.datagrams, run.tally.last().unwrap_or(began)),
                None => return,
            };
            let now = self.clock.now();
            let quiet = now.since(last.max(began)) >= QUIET;
            if came >= sent || quiet || now >= until {
                return;
            }
            pace::rest(QUIET_LOOK);
        }
    }

    /// Takes datagrams for ever.
    pub(super) fn receive(&self, socket: &UdpSocket) {
        let mut buffer = vec![0; 1 << 16];
        let mut spray = SprayService::new(self.clock.now());
        loop {
            match socket.recv_from(&mut buffer) {
                Ok((count, peer)) => {
                    let now = self.clock.now();
                    self.take(socket, &buffer[..count], peer, &mut spray, now);
                }
                // What a reply met on its way, mostly; anything else must not make us spin.
                Err(cause) if is_passing(&cause) => {}
                Err(_) => pace::rest(Nanos::from_millis(1)),
            }
        }
    }

    fn take(
        &self,
        socket: &UdpSocket,
        datagram: &[u8],
        peer: SocketAddr,
        spray: &mut SprayService,
        now: Instant,
    ) {
        // A reply that does not get through is a lost one, which the near end counts.
        let Some(header) = Header::of(datagram) else {
            if let Some(reply) = spray.answer(datagram, now) {
                socket.send_to(&reply, peer).ok();
            }
            return;
        };
        let mut run = self.run.lock();
        let Some(run) = run.as_mut() else { return };
        if header.token != run.token || peer.ip().to_canonical() != run.peer {
            return;
        }
        match run.request.kind {
            Kind::UdpEcho => {
                socket.send_to(datagram, peer).ok();
            }
            Kind::UdpTransfer => {
                if let Some(sentinel) = run.transferred(header, datagram.len(), now) {
                    socket.send_to(&sentinel, peer).ok();
                }
            }
            _ => {
                run.tally.arrived(header.number, datagram.len(), now);
            }
        }
    }
}

impl DatagramRun {
    /// A datagram of a transfer has come; the sentinel if it was the last.
    fn transferred(&mut self, header: Header, bytes: usize, now: Instant) -> Option<Vec<u8>> {
        let transfer = u32::try_from(header.number >> 32).unwrap_or(0);
        if transfer > self.transfer {
            self.transfer = transfer;
            self.tally = Tally::new();
        }
        if transfer < self.transfer {
            return None; // a straggler
        }
        let is_new = self.tally.arrived(header.number & 0xffff_ffff, bytes, now);
        if !is_new || self.tally.bytes < self.request.bytes {
            return None;
        }
        let mut sentinel_datagram = vec![0; super::MESSAGE_BYTES_MIN];
        Header { token: self.token, number: sentinel(transfer) }.put(&mut sentinel_datagram);
        Some(sentinel_datagram)
    }
}

/// Ends a run with datagrams when dropped.
struct End<'a>(&'a FarState);

impl Drop for End<'_> {
    fn drop(&mut self) {
        *self.0.run.lock() = None;
    }
}
