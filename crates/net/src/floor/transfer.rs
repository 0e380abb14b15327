//! So many bytes one way, then a sentinel back: the transfers of the 2002 thesis, section 7.1.

use std::io::{self, Write};

use perf::units::Nanos;

use super::MESSAGE_BYTES_MIN;
use super::error::FloorError;
use super::lines::{duration, read_words};
use super::mark::{HEADER_BYTES, Header, sentinel};
use super::near::{STALL_LIMIT, Way};
use super::pace::Pace;
use super::protocol::{Kind, Report, Request, SENTINEL};
use super::sockets::{connected, pattern, receive, send};

/// Within which a transfer will be over.
const TRANSFER_LIMIT: Nanos = Nanos::from_secs(600);

impl Way<'_> {
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
        let is_it = |answer: &[u8]| Header::of(answer) == Some(wanted);
        let arrived = receive(self.clock, &socket, &mut answer, until, is_it)
            .map_err(|cause| FloorError::of_socket(self.address, cause))?;
        let span = arrived.map(|(at, _)| at.since(started));
        Ok((span, control.ask(number)?))
    }
}

fn transfer(kind: Kind, bytes: u64, message_bytes: usize) -> Request {
    Request { kind, message_bytes: message_bytes as u64, bytes, limit: TRANSFER_LIMIT }
}
