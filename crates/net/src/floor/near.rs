//! The near end: asks a far end for a run and drives it. All of it blocks.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perf::units::{Instant, Nanos};

use super::MESSAGE_BYTES_MIN;
use super::counters::Host;
use super::datagram::{HEADER_BYTES, Header, sentinel};
use super::error::FloorError;
use super::far::GRACE;
use super::lines::{duration, is_passing, read_up_to, read_words, write_words};
use super::pace::{self, Pace};
use super::protocol::{
    GREETING, Kind, REPORT, Report, Request, SENTINEL, Status, VERSION, greeted_version,
};
use crate::clock::Clock;
use crate::error::ConnectError;
use crate::transport::udp;

/// How long a connection may take, and what a far end says at once.
pub const CONNECT_LIMIT: Nanos = Nanos::from_secs(5);
/// How long a far end may take nothing.
pub const STALL_LIMIT: Nanos = Nanos::from_secs(5);
/// How long a far end may be busy before we give up.
const BUSY_LIMIT: Nanos = Nanos::from_secs(1);
const BUSY_LOOK: Nanos = Nanos::from_millis(2);
/// A datagram that leaves so long after it was due is late.
pub const LATE: Nanos = Nanos::from_micros(100);
/// Times that a full queue of the system is asked again before a datagram counts as refused.
const SEND_ATTEMPTS: u32 = 1_000;

/// Where the far end is, and what may end a run before its time.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    pub clock: &'a Clock,
    pub address: SocketAddr,
    pub stop: &'a AtomicBool,
}

/// What a stream is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    pub message_bytes: usize,
    pub time: Nanos,
    /// Ends it, should it come before the time.
    pub bytes_max: u64,
    /// Messages in a second; `None` as fast as they go.
    pub per_s: Option<f64>,
}

/// What became of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streamed {
    /// Messages that the system took, and their bytes.
    pub messages: u64,
    pub bytes: u64,
    /// From the first call to the last one's return.
    pub span: Nanos,
    /// Messages that left more than [`LATE`] after they were due.
    pub late: u64,
    /// Datagrams that the system did not take.
    pub refused: u64,
    /// What this host counted meanwhile, of everybody's datagrams.
    pub host: Host,
    /// What the far end saw.
    pub far: Report,
}

impl<'a> Way<'a> {
    /// Asks for a run. Our last one may be ending there, still.
    fn open(&self, request: Request) -> Result<Control<'a>, FloorError> {
        let until = self.clock.now() + BUSY_LIMIT;
        loop {
            match self.open_now(request) {
                Err(FloorError::Busy { .. }) if self.clock.now() < until => {
                    self.go_on()?;
                    pace::rest(BUSY_LOOK);
                }
                opened => return opened,
            }
        }
    }

    fn open_now(&self, request: Request) -> Result<Control<'a>, FloorError> {
        let stream = dial(self.address, CONNECT_LIMIT)?;
        let until = self.clock.now() + CONNECT_LIMIT;
        let mut said = [0; GREETING.len()];
        let (outcome, have) = read_up_to(self.clock, &stream, &mut said, until);
        self.greeted(&said[..have], outcome)?;
        let token = self.asked(&stream, request).map_err(|cause| self.gone(cause))??;
        Ok(Control { way: *self, stream, token })
    }

    fn asked(
        &self,
        mut stream: &TcpStream,
        request: Request,
    ) -> io::Result<Result<u64, FloorError>> {
        let address = self.address;
        stream.write_all(GREETING)?;
        write_words(stream, &request.words())?;
        let until = self.clock.now() + CONNECT_LIMIT;
        let [status, token] = read_words(self.clock, stream, until)?;
        Ok(match status {
            status if status == Status::Go as u64 => Ok(token),
            status if status == Status::Busy as u64 => Err(FloorError::Busy { address }),
            _ => Err(FloorError::Refused { address }),
        })
    }

    /// Whether what it says is a greeting of ours.
    fn greeted(&self, said: &[u8], outcome: io::Result<()>) -> Result<(), FloorError> {
        let address = self.address;
        if said == GREETING {
            return Ok(());
        }
        if let Some(theirs) = greeted_version(said) {
            return Err(FloorError::Version { address, theirs, ours: VERSION });
        }
        match outcome {
            Err(cause) if said.is_empty() && cause.kind() == io::ErrorKind::TimedOut => {
                Err(FloorError::Silent { address, limit: CONNECT_LIMIT })
            }
            Err(cause) if said.is_empty() => Err(self.gone(cause)),
            _ => {
                let said = String::from_utf8_lossy(said).into_owned();
                Err(FloorError::NotOurs { address, said })
            }
        }
    }

    fn gone(&self, cause: io::Error) -> FloorError {
        FloorError::Gone { address: self.address, cause }
    }

    fn go_on(&self) -> Result<(), FloorError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(FloorError::Stopped),
            false => Ok(()),
        }
    }

    /// Messages one way over TCP, until the time or the bytes have come.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn tcp_stream(&self, what: Stream) -> Result<Streamed, FloorError> {
        let request = what.request(Kind::TcpStream);
        let control = self.open(request)?;
        let gone = |cause| self.gone(cause);
        let mut stream = &control.stream;
        stream.set_write_timeout(Some(duration(STALL_LIMIT))).map_err(gone)?;
        let message = pattern(what.message_bytes);
        let mut streamed = Streamed::default();
        let started = self.clock.now();
        let pace = Pace::new(started, what.per_s);
        while streamed.span < what.time && streamed.bytes + request.message_bytes <= request.bytes {
            self.go_on()?;
            streamed.late += self.wait(pace, streamed.messages);
            stream.write_all(&message).map_err(gone)?;
            streamed.messages += 1;
            streamed.bytes += request.message_bytes;
            streamed.span = self.clock.now().since(started);
        }
        control.stream.shutdown(Shutdown::Write).map_err(gone)?;
        streamed.far = control.report()?;
        Ok(streamed)
    }

    /// Datagrams one way, until the time or the bytes have come.
    ///
    /// # Errors
    /// [`FloorError`]. Datagrams that are lost are none.
    pub fn udp_stream(&self, what: Stream) -> Result<Streamed, FloorError> {
        let request = what.request(Kind::UdpStream);
        let mut control = self.open(request)?;
        let socket = connected(self.address)?;
        let mut message = pattern(what.message_bytes.max(HEADER_BYTES));
        let host = Host::now();
        let mut streamed = Streamed::default();
        let started = self.clock.now();
        let pace = Pace::new(started, what.per_s);
        let mut number = 0;
        while streamed.span < what.time && streamed.bytes + request.message_bytes <= request.bytes {
            self.go_on()?;
            streamed.late += self.wait(pace, number);
            Header { token: control.token, number }.put(&mut message);
            match send(&socket, &message) {
                Ok(true) => {
                    streamed.messages += 1;
                    streamed.bytes += request.message_bytes;
                }
                Ok(false) => streamed.refused += 1,
                Err(cause) => return Err(FloorError::of_socket(self.address, cause)),
            }
            number += 1;
            streamed.span = self.clock.now().since(started);
        }
        streamed.far = control.ask(streamed.messages)?;
        streamed.host = Host::now().since(host);
        Ok(streamed)
    }

    /// Waits until message `number` is due; 1 when that was late.
    fn wait(&self, pace: Pace, number: u64) -> u64 {
        let late = pace.due(number).map_or(Nanos::ZERO, |due| pace::until(self.clock, due));
        u64::from(late > LATE)
    }

    /// Messages that come back, over TCP; all within `limit`.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn tcp_echo(&self, message_bytes: usize, limit: Nanos) -> Result<TcpEcho<'a>, FloorError> {
        let request = Request {
            kind: Kind::TcpEcho,
            message_bytes: message_bytes as u64,
            bytes: super::protocol::RUN_BYTES_MAX,
            limit,
        };
        let control = self.open(request)?;
        control
            .stream
            .set_read_timeout(Some(duration(STALL_LIMIT)))
            .map_err(|cause| self.gone(cause))?;
        Ok(TcpEcho { control, message: pattern(message_bytes) })
    }

    /// The same as datagrams; one that has not come back within `reply_limit` is lost.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn udp_echo(
        &self,
        message_bytes: usize,
        limit: Nanos,
        reply_limit: Nanos,
    ) -> Result<UdpEcho<'a>, FloorError> {
        let request = Request {
            kind: Kind::UdpEcho,
            message_bytes: message_bytes as u64,
            bytes: super::protocol::RUN_BYTES_MAX,
            limit,
        };
        let control = self.open(request)?;
        let socket = connected(self.address)?;
        let message = pattern(message_bytes);
        let received = vec![0; 1 << 16];
        Ok(UdpEcho { control, socket, message, received, number: 0, reply_limit })
    }

    /// `bytes` one way over TCP in messages of `message_bytes`, then the sentinel back: the time
    /// from the first byte to the sentinel.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn tcp_transfer(&self, bytes: u64, message_bytes: usize) -> Result<Nanos, FloorError> {
        let request = transfer(Kind::TcpTransfer, bytes, message_bytes);
        let control = self.open(request)?;
        let mut stream = &control.stream;
        let gone = |cause| self.gone(cause);
        stream.set_write_timeout(Some(duration(STALL_LIMIT))).map_err(gone)?;
        let message = pattern(message_bytes);
        let started = self.clock.now();
        let mut rest = bytes;
        while rest > 0 {
            self.go_on()?;
            let count = usize::try_from(rest).unwrap_or(usize::MAX).min(message.len());
            stream.write_all(&message[..count]).map_err(gone)?;
            rest -= count as u64;
        }
        let until = self.clock.now() + STALL_LIMIT;
        let [word] = read_words(self.clock, stream, until).map_err(gone)?;
        let span = self.clock.now().since(started);
        match word {
            SENTINEL => Ok(span),
            _ => Err(gone(io::ErrorKind::InvalidData.into())),
        }
    }

    /// The same as datagrams, in a run of its own: the time, or `None` when datagrams were lost,
    /// and what the far end saw.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn udp_transfer(
        &self,
        bytes: u64,
        message_bytes: usize,
        per_s: Option<f64>,
        reply_limit: Nanos,
    ) -> Result<(Option<Nanos>, Report), FloorError> {
        let request = transfer(Kind::UdpTransfer, bytes, message_bytes);
        let mut control = self.open(request)?;
        let socket = connected(self.address)?;
        let mut message = pattern(message_bytes.max(HEADER_BYTES));
        let started = self.clock.now();
        let pace = Pace::new(started, per_s);
        let (mut rest, mut number) = (bytes, 0);
        while rest > 0 {
            self.go_on()?;
            self.wait(pace, number);
            let count = usize::try_from(rest).unwrap_or(usize::MAX).min(message_bytes);
            // The last may be shorter than a header.
            let count_sent = count.max(HEADER_BYTES);
            Header { token: control.token, number }.put(&mut message);
            send(&socket, &message[..count_sent])
                .map_err(|cause| FloorError::of_socket(self.address, cause))?;
            rest -= count as u64;
            number += 1;
        }
        let until = self.clock.now() + reply_limit;
        let mut answer = [0; MESSAGE_BYTES_MIN];
        let wanted = Header { token: control.token, number: sentinel(0) };
        let arrived =
            self.receive(&socket, &mut answer, until, |answer| Header::of(answer) == Some(wanted))?;
        let span = arrived.map(|at| at.since(started));
        Ok((span, control.ask(number)?))
    }

    /// Receives until `is_it` knows what came: when that was, or `None` at `until`.
    fn receive(
        &self,
        socket: &UdpSocket,
        buffer: &mut [u8],
        until: Instant,
        is_it: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Instant>, FloorError> {
        let came = receive(self.clock, socket, buffer, until, is_it)
            .map_err(|cause| FloorError::of_socket(self.address, cause))?;
        Ok(came.map(|(at, _)| at))
    }
}

/// Receives until `is_it` knows what came: when that was and how long it is, or `None` at `until`.
pub(super) fn receive(
    clock: &Clock,
    socket: &UdpSocket,
    buffer: &mut [u8],
    until: Instant,
    is_it: impl Fn(&[u8]) -> bool,
) -> io::Result<Option<(Instant, usize)>> {
    loop {
        match socket.recv(buffer) {
            Ok(count) if is_it(&buffer[..count]) => return Ok(Some((clock.now(), count))),
            Ok(_) => {}
            Err(cause) if is_passing(&cause) => {}
            Err(cause) => return Err(cause),
        }
        if clock.now() >= until {
            return Ok(None);
        }
    }
}

impl Stream {
    fn request(&self, kind: Kind) -> Request {
        Request {
            kind,
            message_bytes: self.message_bytes as u64,
            bytes: self.bytes_max,
            limit: self.time,
        }
    }
}

fn transfer(kind: Kind, bytes: u64, message_bytes: usize) -> Request {
    Request { kind, message_bytes: message_bytes as u64, bytes, limit: GRACE }
}

/// The connection that a run was asked for over.
#[derive(Debug)]
struct Control<'a> {
    way: Way<'a>,
    stream: TcpStream,
    token: u64,
}

impl Control<'_> {
    fn report(&self) -> Result<Report, FloorError> {
        let until = self.way.clock.now() + GRACE;
        let words = read_words(self.way.clock, &self.stream, until);
        words.map(Report::from_words).map_err(|cause| self.way.gone(cause))
    }

    /// Asks what came of `sent` datagrams.
    fn ask(&mut self, sent: u64) -> Result<Report, FloorError> {
        write_words(&self.stream, &[REPORT, sent]).map_err(|cause| self.way.gone(cause))?;
        self.report()
    }
}

/// A connection whose far end sends back what it gets.
#[derive(Debug)]
pub struct TcpEcho<'a> {
    control: Control<'a>,
    message: Vec<u8>,
}

impl TcpEcho<'_> {
    /// One message there and back; when it was back.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn trial(&mut self) -> Result<Instant, FloorError> {
        let mut stream = &self.control.stream;
        let exchanged =
            stream.write_all(&self.message).and_then(|()| stream.read_exact(&mut self.message));
        exchanged.map_err(|cause| self.control.way.gone(cause))?;
        Ok(self.control.way.clock.now())
    }
}

/// A socket whose far end sends back what it gets.
#[derive(Debug)]
pub struct UdpEcho<'a> {
    control: Control<'a>,
    socket: UdpSocket,
    message: Vec<u8>,
    received: Vec<u8>,
    number: u64,
    reply_limit: Nanos,
}

impl UdpEcho<'_> {
    /// One datagram there and back: when it was back, or `None` when it was not in time.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn trial(&mut self) -> Result<Option<Instant>, FloorError> {
        let Control { way, token, .. } = &self.control;
        let header = Header { token: *token, number: self.number };
        self.number += 1;
        header.put(&mut self.message);
        let failed = |cause| FloorError::of_socket(way.address, cause);
        send(&self.socket, &self.message).map_err(failed)?;
        let until = way.clock.now() + self.reply_limit;
        way.receive(&self.socket, &mut self.received, until, |echo| {
            Header::of(echo) == Some(header)
        })
    }
}

/// A connection within `limit`.
///
/// # Errors
/// [`FloorError::Connect`].
pub(super) fn dial(address: SocketAddr, limit: Nanos) -> Result<TcpStream, FloorError> {
    let connected = TcpStream::connect_timeout(&address, duration(limit));
    let stream = connected.map_err(|cause| match cause.kind() {
        io::ErrorKind::ConnectionRefused => ConnectError::Refused { address },
        io::ErrorKind::TimedOut => ConnectError::TimedOut { address, limit },
        _ => ConnectError::Unreachable { address, cause: Arc::new(cause) },
    })?;
    stream.set_nodelay(true).map_err(FloorError::System)?;
    Ok(stream)
}

/// A socket for one peer, whose reads give up now and then so that limits can be looked at.
pub(super) fn connected(address: SocketAddr) -> Result<UdpSocket, FloorError> {
    /// A tenth of the shortest limit that makes sense.
    const LOOK: Nanos = Nanos::from_millis(20);
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let made = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        socket.set_read_timeout(Some(duration(LOOK)))?;
        udp::enlarge(&socket);
        Ok(socket)
    });
    made.map_err(|cause| ConnectError::Unreachable { address, cause: Arc::new(cause) }.into())
}

/// Sends a datagram; false when the system has no room for it for long.
pub(super) fn send(socket: &UdpSocket, message: &[u8]) -> io::Result<bool> {
    for _ in 0..SEND_ATTEMPTS {
        match socket.send(message) {
            Ok(_) => return Ok(true),
            // ENOBUFS has no kind of its own.
            Err(cause) if is_passing(&cause) || is_full(&cause) => std::thread::yield_now(),
            Err(cause) => return Err(cause),
        }
    }
    Ok(false)
}

fn is_full(cause: &io::Error) -> bool {
    cause.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}

/// Bytes that no card or kernel finds the same pattern in.
pub(super) fn pattern(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        // xorshift64 (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        pattern.extend_from_slice(&state.to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}
