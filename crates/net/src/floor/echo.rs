//! Messages that a far end sends back, one at a time.

use std::io::{Read, Write};
use std::net::UdpSocket;

use perf::units::{Instant, Nanos};

use super::error::FloorError;
use super::lines::duration;
use super::mark::Header;
use super::near::{Control, STALL_LIMIT, Way};
use super::protocol::{Kind, RUN_BYTES_MAX, Request};
use super::sockets::{connected, pattern, receive, send};

impl<'a> Way<'a> {
    /// Messages that come back, over TCP; all within `limit`.
    ///
    /// # Errors
    /// [`FloorError`].
    pub fn tcp_echo(&self, message_bytes: usize, limit: Nanos) -> Result<TcpEcho<'a>, FloorError> {
        let request = Request {
            kind: Kind::TcpEcho,
            message_bytes: message_bytes as u64,
            bytes: RUN_BYTES_MAX,
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
            bytes: RUN_BYTES_MAX,
            limit,
        };
        let control = self.open(request)?;
        let socket = connected(self.address)?;
        let message = pattern(message_bytes);
        let received = vec![0; 1 << 16];
        Ok(UdpEcho { control, socket, message, received, number: 0, reply_limit })
    }
}

/// A connection whose far end sends back what it gets.
#[derive(Debug)]
pub struct TcpEcho<'a> {
    control: Control<'a>,
    message: Vec<u8>,
}

impl TcpEcho<'_> {
    /// One round trip of a message; when it was back.
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
    /// One round trip of a datagram: when it was back, or `None` when it was not in time.
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
        let is_it = |echo: &[u8]| Header::of(echo) == Some(header);
        let back = receive(way.clock, &self.socket, &mut self.received, until, is_it);
        Ok(back.map_err(failed)?.map(|(at, _)| at))
    }
}
