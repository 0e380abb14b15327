//! NULL calls of any RPC program, one at a time, through a plain socket.
//!
//! NULL takes no arguments (RFC 5531 section 11.1). A larger call carries bytes behind its header
//! all the same: a server that looks refuses them with GARBAGE_ARGS, which comes back as fast as a
//! reply, and so counts as one; [`NullCalls::is_refused`] tells.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};

use perf::units::{Instant, Nanos};
use wire::record::{Fragment, RecordError};
use wire::rpc::{self, CallHeader, MessageType, OpaqueAuth};
use wire::xdr::Encode;

use super::MESSAGE_BYTES_MIN;
use super::error::FloorError;
use super::lines::duration;
use super::near::CONNECT_LIMIT;
use super::sockets::{connected, dial, pattern, receive, send};
use crate::call;
use crate::clock::Clock;
use crate::error::{CallError, Refusal, TransportError};

/// Longest reply to NULL that is one: a header with the longest verifier.
const REPLY_BYTES_MAX: usize = 512;

/// Where a program is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Service {
    pub address: SocketAddr,
    pub program: u32,
    pub version: u32,
    pub is_udp: bool,
}

/// See the module's head.
#[derive(Debug)]
pub struct NullCalls<'a> {
    clock: &'a Clock,
    service: Service,
    socket: Socket,
    /// Mark and call; over UDP without the mark.
    call: Vec<u8>,
    xid: u32,
    reply: Vec<u8>,
    reply_limit: Nanos,
    refused: Option<Refusal>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

/// A call of NULL with `call_bytes` in all, rounded down to whole words as XDR has them.
pub(super) fn null_call(service: Service, procedure: u32, call_bytes: usize) -> Vec<u8> {
    let Service { program, version, .. } = service;
    let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
    let mut call = Vec::with_capacity(call_bytes);
    CallHeader { xid: 0, program, version, procedure, credential, verifier }.encode(&mut call);
    let words = (call_bytes.max(MESSAGE_BYTES_MIN) - MESSAGE_BYTES_MIN) / 4;
    call.extend_from_slice(&pattern(words * 4));
    call
}

/// The mark of a record of so many bytes.
pub(super) fn mark(call: &[u8]) -> [u8; 4] {
    Fragment { last: true, len: u32::try_from(call.len()).unwrap_or(0) }.to_header()
}

/// The length that a record's mark announces, if it is one we take.
pub(super) fn reply_bytes(mark: [u8; 4]) -> io::Result<usize> {
    let len = usize::try_from(Fragment::from_header(mark).len).unwrap_or(usize::MAX);
    match len {
        0..=REPLY_BYTES_MAX => Ok(len),
        got => {
            let error = RecordError::TooLong { max: REPLY_BYTES_MAX, got };
            Err(io::Error::new(io::ErrorKind::InvalidData, error))
        }
    }
}

/// Connects to a service over TCP.
pub(super) fn dial_server(service: Service) -> Result<TcpStream, FloorError> {
    dial(service.address, CONNECT_LIMIT).map_err(|error| match error {
        FloorError::Connect(cause) => FloorError::NoServer(cause),
        other => other,
    })
}

impl<'a> NullCalls<'a> {
    /// Connects; over UDP no call is made yet.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn open(
        clock: &'a Clock,
        service: Service,
        call_bytes: usize,
        reply_limit: Nanos,
    ) -> Result<Self, FloorError> {
        let mut call = null_call(service, 0, call_bytes);
        let socket = match service.is_udp {
            true => Socket::Udp(connected(service.address)?),
            false => {
                let stream = dial_server(service)?;
                let limit = Some(duration(reply_limit));
                stream.set_read_timeout(limit).map_err(FloorError::System)?;
                stream.set_write_timeout(limit).map_err(FloorError::System)?;
                call.splice(..0, mark(&call));
                Socket::Tcp(stream)
            }
        };
        // Different from the last program's that had this port.
        let xid = clock.since_1970().subsec_nanos();
        let reply = vec![0; REPLY_BYTES_MAX];
        Ok(Self { clock, service, socket, call, xid, reply, reply_limit, refused: None })
    }

    /// Where the calls go.
    pub fn address(&self) -> SocketAddr {
        self.service.address
    }

    /// Bytes of a call.
    pub fn call_bytes(&self) -> usize {
        match self.socket {
            Socket::Tcp(_) => self.call.len() - 4,
            Socket::Udp(_) => self.call.len(),
        }
    }

    /// What the server answered instead of a reply, the last time.
    pub fn is_refused(&self) -> Option<Refusal> {
        self.refused
    }

    /// One call: when the reply had come, or `None` when it had not in time (over UDP).
    ///
    /// # Errors
    /// [`FloorError`]; a refusal is none, see the module's head.
    pub fn trial(&mut self) -> Result<Option<Instant>, FloorError> {
        self.xid = self.xid.wrapping_add(1);
        let (address, xid) = (self.service.address, self.xid);
        let at = if matches!(self.socket, Socket::Tcp(_)) { 4 } else { 0 };
        self.call[at..at + 4].copy_from_slice(&xid.to_be_bytes());
        let (came, count) = match &self.socket {
            Socket::Udp(socket) => {
                let failed = |cause| FloorError::of_socket(address, cause);
                send(socket, &self.call).map_err(failed)?;
                let until = self.clock.now() + self.reply_limit;
                let wanted = (xid, MessageType::Reply);
                let is_it = |reply: &[u8]| rpc::peek(reply) == Ok(wanted);
                let came = receive(self.clock, socket, &mut self.reply, until, is_it);
                let Some(came) = came.map_err(failed)? else { return Ok(None) };
                came
            }
            Socket::Tcp(stream) => {
                let count = exchange(stream, &self.call, &mut self.reply)
                    .map_err(|cause| self.failed(cause))?;
                (self.clock.now(), count)
            }
        };
        let reply = &self.reply[..count];
        match rpc::peek(reply) {
            Ok((found, MessageType::Reply)) if found == xid => {}
            Ok((_, MessageType::Call)) => return Err(self.error_of(CallError::Echo)),
            Ok(_) => return Err(self.error_of(CallError::Unsolicited { count: 1 })),
            Err(cause) => return Err(self.error_of(cause.into())),
        }
        self.refused = match call::results_at(reply) {
            Ok(_) => None,
            Err(CallError::Refused(refusal)) => Some(refusal),
            Err(cause) => return Err(self.error_of(cause)),
        };
        Ok(Some(came))
    }

    fn error_of(&self, cause: CallError) -> FloorError {
        FloorError::Call { address: self.service.address, cause }
    }

    fn failed(&self, cause: io::Error) -> FloorError {
        let (address, limit) = (self.service.address, self.reply_limit);
        let record = cause.get_ref().and_then(|inner| inner.downcast_ref::<RecordError>());
        match (cause.kind(), record) {
            (io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut, _) => {
                FloorError::NoAnswer { address, count: 1, limit }
            }
            (_, Some(record)) => self.error_of(TransportError::Record(*record).into()),
            (io::ErrorKind::UnexpectedEof, _) => self.error_of(CallError::Closed),
            _ => self.error_of(TransportError::from(cause).into()),
        }
    }
}

/// Sends a call and reads one record, which is one fragment; its length.
fn exchange(mut stream: &TcpStream, call: &[u8], reply: &mut [u8]) -> io::Result<usize> {
    stream.write_all(call)?;
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let count = reply_bytes(mark)?;
    stream.read_exact(&mut reply[..count])?;
    Ok(count)
}
