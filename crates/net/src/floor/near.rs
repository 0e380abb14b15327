//! The near end: asks a far end for a run, and drives streams. All of it blocks.
//!
//! Echoes are in [`super::echo`], transfers in `transfer.rs`.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use perf::units::Nanos;

use super::error::FloorError;
use super::far::GRACE;
use super::kernel_counts::Host;
use super::lines::{duration, read_up_to, read_words, write_words};
use super::mark::{HEADER_BYTES, Header};
use super::pace::{self, Pace};
use super::protocol::{GREETING, Kind, REPORT, Report, Request, Status, VERSION, greeted_version};
use super::sockets::{connected, dial, pattern, send};
use crate::clock::Clock;

/// How long a connection may take, and what a far end says at once.
pub const CONNECT_LIMIT: Nanos = Nanos::from_secs(5);
/// How long a far end may take nothing.
pub const STALL_LIMIT: Nanos = Nanos::from_secs(5);
/// How long a far end may be busy before we give up.
const BUSY_LIMIT: Nanos = Nanos::from_secs(1);
const BUSY_LOOK: Nanos = Nanos::from_millis(2);
/// A datagram that leaves so long after it was due is late.
pub const LATE: Nanos = Nanos::from_micros(100);

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
    pub(super) fn open(&self, request: Request) -> Result<Control<'a>, FloorError> {
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
        let mut greeting = [0; GREETING.len()];
        let (outcome, have) = read_up_to(self.clock, &stream, &mut greeting, until);
        self.greeted(&greeting[..have], outcome)?;
        let token = self.start(&stream, request).map_err(|cause| self.gone(cause))??;
        Ok(Control { way: *self, stream, token })
    }

    fn start(
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
    fn greeted(&self, greeting: &[u8], outcome: io::Result<()>) -> Result<(), FloorError> {
        let address = self.address;
        if greeting == GREETING {
            return Ok(());
        }
        if let Some(theirs) = greeted_version(greeting) {
            return Err(FloorError::Version { address, theirs, ours: VERSION });
        }
        match outcome {
            Err(cause) if greeting.is_empty() && cause.kind() == io::ErrorKind::TimedOut => {
                Err(FloorError::Silent { address, limit: CONNECT_LIMIT })
            }
            Err(cause) if greeting.is_empty() => Err(self.gone(cause)),
            _ => {
                let greeting = String::from_utf8_lossy(greeting).into_owned();
                Err(FloorError::NotOurs { address, greeting })
            }
        }
    }

    pub(super) fn gone(&self, cause: io::Error) -> FloorError {
        FloorError::Gone { address: self.address, cause }
    }

    pub(super) fn go_on(&self) -> Result<(), FloorError> {
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
    pub(super) fn wait(&self, pace: Pace, number: u64) -> u64 {
        let late = pace.due(number).map_or(Nanos::ZERO, |due| pace::until(self.clock, due));
        u64::from(late > LATE)
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

/// The connection that a run was requested over.
#[derive(Debug)]
pub(super) struct Control<'a> {
    pub(super) way: Way<'a>,
    pub(super) stream: TcpStream,
    pub(super) token: u64,
}

impl Control<'_> {
    pub(super) fn report(&self) -> Result<Report, FloorError> {
        let until = self.way.clock.now() + GRACE;
        let words = read_words(self.way.clock, &self.stream, until);
        words.map(Report::from_words).map_err(|cause| self.way.gone(cause))
    }

    /// Asks what came of `sent` datagrams.
    pub(super) fn ask(&mut self, sent: u64) -> Result<Report, FloorError> {
        write_words(&self.stream, &[REPORT, sent]).map_err(|cause| self.way.gone(cause))?;
        self.report()
    }
}
