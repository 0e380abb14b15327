//! The far end of a measurement: takes messages, echoes them, counts them, and says what came.
//!
//! Anybody may connect, so everything has an end: [`CONNECTIONS_MAX`] connections, one more is
//! closed at once; [`HELLO_MAX`] until a request has come; one run at a time, another gets the
//! reply that we are busy; a run lasts no longer than it announced, and [`GRACE`]; a peer that
//! sends nothing for [`IDLE_MAX`] is left. Datagrams that belong to no run, or come from another
//! host than the one that requested it, are dropped; calls of the spray program (see
//! `spray_service.rs`) are always taken.
//!
//! Replies leave from the address that the system chooses: on a host with several addresses,
//! listen on the one that is called.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use perf::units::{Instant, Nanos};

use super::far_datagrams::DatagramRun;
use super::lines::{duration, read_up_to, read_words, write_words};
use super::pace;
use super::protocol::{GREETING, Kind, Report, Request, SENTINEL, Status};
use crate::clock::Clock;
use crate::transport::udp;

pub const CONNECTIONS_MAX: usize = 16;
/// Until a peer has sent its request.
pub const HELLO_MAX: Nanos = Nanos::from_secs(5);
/// A run without a byte.
pub const IDLE_MAX: Nanos = Nanos::from_secs(10);
/// What a run may take beside the time that it requested.
pub const GRACE: Nanos = Nanos::from_secs(15);
/// Times that a port is looked for which both protocols have free.
const BIND_ATTEMPTS: usize = 16;
/// Read at once from a stream.
const READ_BYTES_MAX: usize = 1 << 20;
const READ_BYTES_MIN: usize = 64 << 10;

/// The sockets, bound.
#[derive(Debug)]
pub struct Far {
    listener: TcpListener,
    socket: UdpSocket,
    hello_max: Nanos,
}

/// What connections and datagrams share.
#[derive(Debug)]
pub(super) struct FarState {
    pub(super) clock: Clock,
    /// Processor time of this process.
    pub(super) cpu: fn() -> Nanos,
    hello_max: Nanos,
    pub(super) socket: UdpSocket,
    connections: AtomicUsize,
    /// Held by the run in progress.
    turn: Mutex<()>,
    /// Guards the run with datagrams; held for the few additions of one datagram.
    pub(super) run: Mutex<Option<DatagramRun>>,
}

impl Far {
    /// Listens for both protocols on one port; port 0 takes a free one.
    ///
    /// # Errors
    /// The system's: the address is in use, or not ours.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let mut attempts = if address.port() == 0 { BIND_ATTEMPTS } else { 1 };
        loop {
            attempts -= 1;
            let listener = TcpListener::bind(address)?;
            match UdpSocket::bind(listener.local_addr()?) {
                Err(cause) if attempts > 0 && cause.kind() == io::ErrorKind::AddrInUse => {}
                socket => {
                    let socket = socket?;
                    udp::enlarge(&socket);
                    return Ok(Self { listener, socket, hello_max: HELLO_MAX });
                }
            }
        }
    }

    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends. `cpu` reads the process's processor time. Blocks.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn serve(self, clock: &Clock, cpu: fn() -> Nanos) -> io::Result<()> {
        let shared = Arc::new(FarState {
            clock: clock.clone(),
            cpu,
            hello_max: self.hello_max,
            socket: self.socket.try_clone()?,
            connections: AtomicUsize::new(0),
            turn: Mutex::new(()),
            run: Mutex::new(None),
        });
        let own = Arc::clone(&shared);
        let receive = move || own.receive(&self.socket);
        std::thread::Builder::new().name("nfskit-datagrams".to_owned()).spawn(receive)?;
        loop {
            let Ok((stream, peer)) = self.listener.accept() else {
                // Out of descriptors, or the peer has gone already: the next may do better.
                pace::rest(Nanos::from_millis(10));
                continue;
            };
            let place = Place::take(&shared);
            if shared.connections.load(Ordering::Relaxed) > CONNECTIONS_MAX {
                continue;
            }
            let converse = move || {
                // A peer that goes, or talks nonsense, is no failure of ours.
                place.0.converse(&stream, peer.ip().to_canonical()).ok();
            };
            // Without a thread the connection is closed, as one too many is.
            std::thread::Builder::new().name("nfskit-far".to_owned()).spawn(converse).ok();
        }
    }
}

/// One of the connections, until dropped.
struct Place(Arc<FarState>);

impl Place {
    fn take(shared: &Arc<FarState>) -> Self {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl FarState {
    fn converse(&self, mut stream: &TcpStream, peer: IpAddr) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(duration(IDLE_MAX)))?;
        // A host that is gone says nothing: the system finds out for the runs that only wait.
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(duration(IDLE_MAX / 2))
            .with_interval(duration(IDLE_MAX / 10))
            .with_retries(5);
        socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)?;
        stream.write_all(GREETING)?;
        let until = self.clock.now() + self.hello_max;
        let mut greeting = [0; GREETING.len()];
        read_up_to(&self.clock, stream, &mut greeting, until).0?;
        if greeting != *GREETING {
            return Ok(());
        }
        let Some(request) = Request::from_words(read_words(&self.clock, stream, until)?) else {
            return write_words(stream, &[Status::Refused as u64, 0]);
        };
        let Some(_turn) = self.turn.try_lock() else {
            return write_words(stream, &[Status::Busy as u64, 0]);
        };
        let until = self.clock.now() + request.limit + GRACE;
        match request.kind {
            Kind::TcpStream => self.stream(stream, request, until),
            Kind::TcpEcho => self.echo(stream, request, until),
            Kind::TcpTransfer => self.transfers(stream, request, until),
            _ => self.datagrams(stream, peer, request, until),
        }
    }

    pub(super) fn go(stream: &TcpStream, token: u64) -> io::Result<()> {
        write_words(stream, &[Status::Go as u64, token])
    }

    /// Counts what comes until the peer ends its half, and reports.
    fn stream(&self, mut stream: &TcpStream, request: Request, until: Instant) -> io::Result<()> {
        Self::go(stream, 0)?;
        let mut buffer = vec![0; read_bytes(request.message_bytes)];
        let cpu = (self.cpu)();
        let mut report = Report::default();
        let mut first = None;
        stream.set_read_timeout(Some(duration(IDLE_MAX)))?;
        loop {
            let count = match stream.read(&mut buffer) {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let now = self.clock.now();
            let first = *first.get_or_insert_with(|| {
                report.first_bytes = count as u64;
                now
            });
            report.span = now.since(first);
            if count == 0 {
                break;
            }
            report.bytes += count as u64;
            report.messages += 1;
            if now >= until || report.bytes > request.bytes {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        report.cpu = (self.cpu)().saturating_sub(cpu);
        write_words(stream, &report.words())
    }

    /// Sends back each message until the peer ends its half.
    fn echo(&self, mut stream: &TcpStream, request: Request, until: Instant) -> io::Result<()> {
        Self::go(stream, 0)?;
        let mut message = vec![0; usize::try_from(request.message_bytes).unwrap_or(0)];
        stream.set_read_timeout(Some(duration(IDLE_MAX)))?;
        loop {
            match stream.read_exact(&mut message) {
                Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            if self.clock.now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.write_all(&message)?;
        }
    }

    /// Answers each so many bytes with a sentinel until the peer ends its half.
    fn transfers(
        &self,
        mut stream: &TcpStream,
        request: Request,
        until: Instant,
    ) -> io::Result<()> {
        Self::go(stream, 0)?;
        let mut buffer = vec![0; read_bytes(request.message_bytes)];
        stream.set_read_timeout(Some(duration(IDLE_MAX)))?;
        let mut left = request.bytes;
        loop {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let count = match stream.read(&mut buffer[..most]) {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) => return Ok(()),
                read => read?,
            };
            left -= count as u64;
            if left == 0 {
                write_words(stream, &[SENTINEL])?;
                left = request.bytes;
            }
            if self.clock.now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

fn read_bytes(message_bytes: u64) -> usize {
    usize::try_from(message_bytes).unwrap_or(READ_BYTES_MAX).clamp(READ_BYTES_MIN, READ_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::floor::error::FloorError;
    use crate::floor::near::{Stream, Way};
    use crate::floor::rpc::{NullCalls, Service};
    use crate::floor::spray::{self, Spray};

    static GO_ON: AtomicBool = AtomicBool::new(false);
    const SECOND: Nanos = Nanos::from_secs(1);

    /// A far end of this process, which ends with it.
    fn far() -> (Clock, SocketAddr) {
        far_waiting(HELLO_MAX)
    }

    fn far_waiting(hello_max: Nanos) -> (Clock, SocketAddr) {
        let (clock, own) = (Clock::real(), Clock::real());
        let far = Far::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let far = Far { hello_max, ..far };
        let address = far.local_addr().unwrap();
        std::thread::spawn(move || far.serve(&own, || Nanos::ZERO));
        (clock, address)
    }

    fn stream(message_bytes: usize) -> Stream {
        let bytes_max = 20 * message_bytes as u64;
        Stream { message_bytes, time: Nanos::from_secs(20), bytes_max, per_s: None }
    }

    #[test]
    fn streams_arrive_and_are_reported() {
        let (clock, address) = far();
        let way = Way { clock: &clock, address, stop: &GO_ON };
        let tcp = way.tcp_stream(stream(100_000)).unwrap();
        assert_eq!((tcp.messages, tcp.bytes, tcp.far.bytes), (20, 2_000_000, 2_000_000));
        let paced = Stream { per_s: Some(2_000.0), ..stream(1_000) };
        let udp = way.udp_stream(paced).unwrap();
        assert_eq!((udp.messages, udp.far.messages, udp.far.duplicates), (20, 20, 0));
        assert!(udp.span >= Nanos::from_micros(9_500), "{udp:?}");
        assert_eq!(udp.far.socket_drops.unwrap_or(0), 0);
    }

    #[test]
    fn echoes_and_transfers_come_back() {
        let (clock, address) = far();
        let way = Way { clock: &clock, address, stop: &GO_ON };
        let mut tcp = way.tcp_echo(4_096, SECOND).unwrap();
        let busy = way.udp_echo(64, SECOND, SECOND).err().unwrap();
        assert!(matches!(busy, FloorError::Busy { .. }), "{busy}");
        let first = tcp.trial().unwrap();
        assert!(tcp.trial().unwrap() >= first);
        drop(tcp);
        let mut udp = way.udp_echo(64, SECOND, SECOND).unwrap();
        (0..5).for_each(|_| assert!(udp.trial().unwrap().is_some()));
        drop(udp);
        assert!(way.tcp_transfer(1 << 20, 1_472).unwrap() > Nanos::ZERO);
        // The last datagram is shorter than a header.
        let (span, report) = way.udp_transfer(4_001, 1_000, None, SECOND).unwrap();
        assert!(span.is_some() && report.messages == 5, "{report:?}");
    }

    #[test]
    fn calls_without_replies_are_counted_and_null_is_answered() {
        let (clock, address) = far();
        let service = Service { address, program: 100_012, version: 1, is_udp: true };
        let what = Spray {
            call_bytes: 1_000,
            calls: 50,
            per_s: Some(5_000.0),
            delay: Nanos::ZERO,
            reply_limit: SECOND,
        };
        let sprayed = spray::classic(&clock, service, &what, &GO_ON).unwrap();
        assert_eq!((sprayed.sent, sprayed.came, sprayed.bytes), (50, 50, 50_000));
        let nulls = spray::null(&clock, service, &what, &GO_ON).unwrap();
        assert_eq!((nulls.sent, nulls.came, nulls.response_times.len()), (50, 50, 50));
        assert!(nulls.heard >= nulls.span.max(nulls.response_times[0]), "{nulls:?}");
        let mut null = NullCalls::open(&clock, service, 0, SECOND).unwrap();
        assert!(null.trial().unwrap().is_some() && null.is_refused().is_none());
        let nfs = Service { program: 100_003, ..service };
        let mut null = NullCalls::open(&clock, nfs, 0, SECOND).unwrap();
        assert!(null.trial().unwrap().is_some() && null.is_refused().is_some());
    }

    #[test]
    fn noise_and_peers_that_go_leave_it_standing() {
        let (clock, address) = far();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for noise in [&b""[..], b"NFSKITst", &[0; 24], &[0xff; 9_000]] {
            socket.send_to(noise, address).unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(noise).ok();
        }
        let mut unusual = TcpStream::connect(address).unwrap();
        unusual.write_all(GREETING).unwrap();
        write_words(&unusual, &[u64::MAX; 4]).unwrap();
        let mut answer = [0; 32];
        unusual.read_exact(&mut answer).unwrap();
        assert_eq!(answer[16..24], (Status::Refused as u64).to_be_bytes());
        // More than may be at once: those over the limit are closed, and then there is room again.
        let crowd: Vec<_> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
        drop(crowd);
        let way = Way { clock: &clock, address, stop: &GO_ON };
        let until = clock.now() + HELLO_MAX * 2;
        while way.tcp_echo(64, SECOND).is_err() {
            assert!(clock.now() < until);
        }
    }

    #[test]
    fn who_says_nothing_is_left() {
        let (_, address) = far_waiting(Nanos::from_millis(20));
        let mut silent = TcpStream::connect(address).unwrap();
        let mut got = Vec::new();
        silent.read_to_end(&mut got).unwrap();
        assert_eq!(got, GREETING);
        // And who begins and does not go on.
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(&GREETING[..5]).unwrap();
        got.clear();
        assert!(slow.read_to_end(&mut got).is_ok() || got == GREETING);
    }

    #[test]
    fn a_far_end_of_another_version_or_kind_is_reported() {
        let refusal_of = |what: &'static [u8]| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(what).unwrap();
            });
            let way = Way { clock: &Clock::real(), address, stop: &GO_ON };
            way.tcp_transfer(100, 100).unwrap_err()
        };
        let newer = refusal_of(b"nfskit-stream 2\nmore");
        assert!(matches!(newer, FloorError::Version { theirs: 2, ours: 1, .. }), "{newer}");
        let other = refusal_of(b"SSH-2.0-OpenSSH_9.2p1\r\n");
        assert!(other.to_string().contains("SSH-2.0"), "{other}");
        assert!(matches!(refusal_of(b""), FloorError::NotOurs { .. } | FloorError::Gone { .. }));
    }
}
