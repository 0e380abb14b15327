//! Messages over TCP, by record marking (RFC 5531 section 11).
//!
//! Receiving: bytes go from the socket into a slab (see [`super::buffer`]); a record of one
//! fragment, which is what everybody sends, is a slice of it. Records of several fragments are put
//! together by copying.
//!
//! Sending: small messages are gathered into one buffer, large payloads are sent from where they
//! lie, all with one vectored write per wake-up.

mod connect;
mod listener;
mod refused;

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use perf::units::Nanos;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use wire::record::{FRAGMENT_HEADER_LEN, Fragment, Message, RecordError};

pub(super) use self::connect::privileged_ports;
pub use self::connect::{
    PRIVILEGED_PORTS_END, connect, connect_from, connect_unprivileged, resolve,
};
pub use self::listener::Listener;
pub(crate) use self::listener::is_shortage;
pub use self::refused::Refused;
use super::buffer::{Pool, ReceiveBuffer, SMALL_BYTES};
use super::{Transport, owner};
use crate::error::TransportError;
use crate::runtime::wake_after_events;

/// Payloads up to this size are copied behind their head: cheaper than another slice to send.
const INLINE_BYTES_MAX: usize = 4 << 10;

/// Slices per vectored write.
const SLICES_MAX: usize = 64;

/// Bytes received in one go, after which others have their turn.
const RECEIVED_BYTES_MAX: usize = 512 << 10;

/// The same of a connection whose first record is not there yet: where thousands begin at once, one
/// of them keeps the others as little time as a few small calls do.
const RECEIVED_AT_FIRST_BYTES_MAX: usize = 64 << 10;

/// Bytes queued for sending over which [`Transport::poll_ready`] waits: beside what the system
/// holds of a connection, enough to fill it again in one turn.
const QUEUE_BYTES_MAX: usize = 2 << 20;

/// A client that has been silent for so long gets a keepalive probe, and so often.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(120);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
const KEEPALIVE_PROBES: u32 = 6;
/// Most that Linux takes (TCP_KEEPCNT).
const KEEPALIVE_PROBES_MAX: u32 = 127;

/// Fragments per record: a record of one-byte fragments is an attack, not a message.
const FRAGMENTS_MAX: u32 = 1024;

/// A connection.
#[derive(Debug)]
pub struct Tcp {
    stream: TcpStream,
    peer: SocketAddr,
    local: Option<SocketAddr>,
    /// Of the peer, if we have accepted it.
    owner: Option<u32>,
    record_bytes_max: usize,
    buffer: ReceiveBuffer,
    room: Room,
    /// Earlier fragments of the record being received.
    fragments: Vec<u8>,
    fragment_count: u32,
    outgoing: Outgoing,
    /// The last message received had to be read.
    fresh: bool,
    /// A record has been received.
    has_begun: bool,
    ended: bool,
    /// Our half has been ended.
    shut: bool,
}

impl Tcp {
    pub(super) fn new(stream: TcpStream, pool: &Pool, record_bytes_max: usize) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr()?;
        Ok(Self::of_prepared(stream, peer, pool, record_bytes_max))
    }

    /// Of a socket whose options are set.
    fn of_prepared(
        stream: TcpStream,
        peer: SocketAddr,
        pool: &Pool,
        record_bytes_max: usize,
    ) -> Self {
        Self {
            peer,
            local: stream.local_addr().ok(),
            owner: None,
            stream,
            record_bytes_max,
            buffer: ReceiveBuffer::new(pool.clone()),
            room: Room::Taken,
            fragments: Vec::new(),
            fragment_count: 0,
            outgoing: Outgoing::default(),
            fresh: false,
            has_begun: false,
            ended: false,
            shut: false,
        }
    }

    /// Whether the peer is on this host, too, as far as the addresses say.
    pub fn is_to_this_host(&self) -> bool {
        self.local.is_some_and(|local| owner::is_local(self.peer, local))
    }

    /// Has the system notice that the peer is gone: who does not acknowledge for `timeo` x
    /// (`retrans` + 1), probed or not, has the connection broken. Linux's client does the same.
    pub fn watch_peer(&self, timeo: Nanos, retrans: u32) {
        let timeo = Duration::from_nanos(timeo.as_nanos()).max(Duration::from_secs(1));
        let retries = retrans.saturating_add(1).min(KEEPALIVE_PROBES_MAX);
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(timeo)
            .with_interval(timeo)
            .with_retries(retries);
        let socket = socket2::SockRef::from(&self.stream);
        // Without it the connection is replaced all the same, when a call has waited too long.
        socket.set_tcp_keepalive(&keepalive).ok();
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(Some(timeo.saturating_mul(retries))).ok();
    }

    /// The next record that has been read already, or how many bytes its fragment has in all.
    fn parse(&mut self) -> Result<Parsed, TransportError> {
        loop {
            let Some((mark, rest)) = self.buffer.as_slice().split_first_chunk::<4>() else {
                return Ok(Parsed::Needs(4));
            };
            let fragment = Fragment::from_header(*mark);
            let len = usize::try_from(fragment.len).unwrap_or(usize::MAX);
            let record = self.fragments.len().saturating_add(len);
            if record > self.record_bytes_max {
                let max = self.record_bytes_max;
                return Err(RecordError::TooLong { max, got: record }.into());
            }
            if rest.len() < len {
                return Ok(Parsed::Needs(4 + len));
            }
            if self.room == Room::Requested && 4 + record > SMALL_BYTES {
                return Ok(Parsed::Needs(4 + len));
            }
            self.buffer.take(4);
            let body = self.buffer.take(len);
            if fragment.last {
                self.room = self.room.of_next();
            }
            if fragment.last && self.fragment_count == 0 {
                return Ok(Parsed::Record(body));
            }
            if self.fragments.capacity() < record {
                let at_once = if FRAGMENT_HEADER_LEN + record > SMALL_BYTES {
                    self.record_bytes_max
                } else {
                    SMALL_BYTES
                };
                self.fragments.reserve_exact(at_once - self.fragments.len());
            }
            self.fragments.extend_from_slice(&body);
            self.fragment_count += 1;
            if fragment.last {
                self.fragment_count = 0;
                return Ok(Parsed::Record(std::mem::take(&mut self.fragments).into()));
            }
            if self.fragment_count > FRAGMENTS_MAX {
                return Err(TransportError::TooManyFragments { max: FRAGMENTS_MAX });
            }
        }
    }
}

/// Who says whether there is room for a large record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Room {
    /// Nobody: it is taken.
    Taken,
    /// The owner, and it has not answered.
    Requested,
    /// The owner has, for the record being received.
    Allowed,
}

impl Room {
    fn of_next(self) -> Self {
        match self {
            Self::Taken => Self::Taken,
            Self::Requested | Self::Allowed => Self::Requested,
        }
    }
}

enum Parsed {
    Record(Bytes),
    /// The buffer's front belongs to a fragment of so many bytes, its mark included.
    Needs(usize),
}

impl Transport for Tcp {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        self.fresh = false;
        let most_bytes =
            if self.has_begun { RECEIVED_BYTES_MAX } else { RECEIVED_AT_FIRST_BYTES_MAX };
        let mut received_bytes = 0;
        loop {
            let needs = match self.parse()? {
                Parsed::Record(record) => {
                    self.has_begun = true;
                    return Poll::Ready(Ok(Some(record)));
                }
                Parsed::Needs(needs) => needs,
            };
            if self.ended {
                let whole = self.buffer.as_slice().is_empty() && self.fragment_count == 0;
                return Poll::Ready(if whole { Ok(None) } else { Err(TransportError::Truncated) });
            }
            if self.wanted_bytes().is_some() {
                return Poll::Pending;
            }
            if received_bytes >= most_bytes {
                wake_after_events(cx);
                return Poll::Pending;
            }
            let space = self.buffer.space(needs);
            let len = if self.has_begun { space.len() } else { space.len().min(most_bytes) };
            // This remembers that a read which fills less than it might has emptied the socket,
            // and so saves asking it again.
            let mut space = ReadBuf::new(&mut space[..len]);
            match Pin::new(&mut self.stream).poll_read(cx, &mut space) {
                Poll::Ready(Ok(())) => {
                    let count = space.filled().len();
                    self.ended = count == 0;
                    self.fresh = true;
                    self.buffer.advance(count);
                    received_bytes += count;
                }
                Poll::Ready(Err(cause)) => return Poll::Ready(Err(cause.into())),
                Poll::Pending => {
                    self.buffer.rest();
                    return Poll::Pending;
                }
            }
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        if self.outgoing.bytes < QUEUE_BYTES_MAX {
            return Poll::Ready(Ok(()));
        }
        match self.poll_flush(cx) {
            Poll::Pending if self.outgoing.bytes < QUEUE_BYTES_MAX => Poll::Ready(Ok(())),
            other => other,
        }
    }

    fn send(&mut self, message: Message) {
        self.outgoing.push(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        while !self.outgoing.is_empty() {
            let written = {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                let count = self.outgoing.slices(&mut slices);
                Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..count])
            };
            self.outgoing.consume(ready!(written)?);
        }
        Poll::Ready(Ok(()))
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    fn owner(&self) -> Option<u32> {
        self.owner
    }

    fn unsent_bytes(&self) -> usize {
        self.outgoing.bytes
    }

    fn retained_bytes(&self, message_bytes: usize) -> usize {
        self.buffer.retained_bytes(message_bytes)
    }

    fn is_within_record(&self) -> bool {
        !self.buffer.as_slice().is_empty() || self.fragment_count > 0
    }

    fn ask_for_room(&mut self) {
        self.room = Room::Requested;
    }

    fn wanted_bytes(&self) -> Option<usize> {
        let mark = self.buffer.as_slice().first_chunk()?;
        let Fragment { last, len } = Fragment::from_header(*mark);
        let len = FRAGMENT_HEADER_LEN + usize::try_from(len).unwrap_or(usize::MAX);
        if self.room != Room::Requested || self.fragments.len() + len <= SMALL_BYTES {
            return None;
        }
        Some(match last && self.fragment_count == 0 {
            true => self.buffer.retained_bytes(len),
            // Nobody knows how many more follow, and each is read before it joins the others.
            false => 2 * self.record_bytes_max,
        })
    }

    fn allow(&mut self) {
        self.room = Room::Allowed;
    }

    fn take_error(&mut self) -> Option<TransportError> {
        // What the socket has as an error may be a host that was out of reach for a moment, unless
        // epoll(7) reports it.
        let mut cx = Context::from_waker(Waker::noop());
        let is_broken = pin!(self.stream.ready(Interest::ERROR)).poll(&mut cx).is_ready();
        let error = if is_broken { self.stream.take_error().ok().flatten() } else { None };
        error.map(TransportError::from)
    }

    fn is_fresh(&self) -> bool {
        self.fresh
    }

    fn end_sending(&mut self) {
        if !self.shut {
            self.shut = true;
            socket2::SockRef::from(&self.stream).shutdown(Shutdown::Write).ok();
        }
    }

    fn abort(&mut self) {
        // Closed by a reset, it leaves nothing that rests (TIME_WAIT).
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).ok();
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A record that will never be whole takes no memory while the peer takes its time.
        self.buffer.discard();
        self.fragments = Vec::new();
        self.end_sending();
        // A socket that is closed with unread bytes resets the connection, and the peer may lose
        // what it has not read yet.
        let mut discarded = [MaybeUninit::uninit(); 4 << 10];
        while !self.ended {
            let mut space = ReadBuf::uninit(&mut discarded);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut space)) {
                Ok(()) => self.ended = space.filled().is_empty(),
                Err(_) => self.ended = true,
            }
        }
        Poll::Ready(())
    }
}

/// What waits to be sent: runs of small messages, and large payloads between them.
#[derive(Debug, Default)]
struct Outgoing {
    done: VecDeque<Bytes>,
    /// The run that is still growing, behind `done`.
    tail: BytesMut,
    bytes: usize,
}

impl Outgoing {
    fn push(&mut self, message: Message) {
        self.bytes += 4 + message.wire_len();
        self.tail.extend_from_slice(&message.marker());
        self.tail.extend_from_slice(&message.head);
        let padding = message.padding();
        if message.payload.len() <= INLINE_BYTES_MAX {
            self.tail.extend_from_slice(&message.payload);
        } else {
            self.done.push_back(self.tail.split().freeze());
            self.done.push_back(message.payload);
        }
        self.tail.extend_from_slice(padding);
    }

    fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let all = self.done.iter().map(|run| &run[..]).chain([&self.tail[..]]);
        let filled = all.filter(|run| !run.is_empty()).zip(slices.iter_mut());
        filled.map(|(run, slice)| *slice = IoSlice::new(run)).count()
    }

    fn consume(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(front) = self.done.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.done.pop_front();
        }
        self.tail.advance(count);
        if self.tail.is_empty() {
            self.tail.clear();
        }
    }
}
