//! A connection from where none may come. Of each of its calls the head is read, which is enough
//! for a refusal, and what follows is thrown away: it takes a buffer of its own and no memory of
//! others.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;
use wire::record::{FRAGMENT_HEADER_LEN, Fragment, Message};

/// As much as an MNT has with the longest path and the largest credential, and some more.
const HEAD_BYTES_MAX: usize = 2048;

/// Calls that are answered: as many as a kernel has outstanding of a mount.
const CALLS_MAX: usize = 64;

/// Bytes of calls that are read; guess: more than any call of a mount that begins.
const BYTES_MAX: u64 = 4 << 20;

/// It is closed when this is dropped.
#[derive(Debug)]
pub struct Refused {
    stream: TcpStream,
    peer: SocketAddr,
}

impl Refused {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> Self {
        Self { stream, peer }
    }

    /// Whose it is; an IPv4 address is given as one, whatever the socket's family.
    pub fn peer(&self) -> SocketAddr {
        (self.peer.ip().to_canonical(), self.peer.port()).into()
    }

    pub fn local(&self) -> Option<SocketAddr> {
        self.stream.local_addr().ok()
    }

    /// Answers calls until there have been enough of them, or one that gets no answer.
    ///
    /// # Errors
    /// The peer has closed the connection, or it is broken.
    pub async fn answer(&mut self, answer: impl Fn(&[u8]) -> Option<Message>) -> io::Result<()> {
        let (mut head, mut left) = (vec![0; HEAD_BYTES_MAX], BYTES_MAX);
        for _ in 0..CALLS_MAX {
            let mut mark = [0; FRAGMENT_HEADER_LEN];
            self.stream.read_exact(&mut mark).await?;
            let Fragment { last, len } = Fragment::from_header(mark);
            let (len, read) = (u64::from(len), (len as usize).min(HEAD_BYTES_MAX));
            left = left.saturating_sub(len);
            if !last || left == 0 {
                break;
            }
            self.stream.read_exact(&mut head[..read]).await?;
            let Some(reply) = answer(&head[..read]) else { break };
            self.stream.write_all(&[&reply.marker()[..], &reply.to_vec()].concat()).await?;
            copy(&mut (&mut self.stream).take(len - read as u64), &mut sink()).await?;
        }
        Ok(())
    }
}
