//! A connection to the server that is killed all the time: blocking, and made again when it breaks.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::rpc;

/// Far above what a reply takes, restart included.
const REPLY_WITHIN: Duration = Duration::from_secs(15);
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
const CONNECT_AGAIN_AFTER: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Connection<'a> {
    address: SocketAddr,
    /// Which process serves now; moves on before its successor is started.
    generation: &'a AtomicU64,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    stream: TcpStream,
    /// The process that answers here.
    generation: u64,
}

impl<'a> Connection<'a> {
    pub(super) fn new(address: SocketAddr, generation: &'a AtomicU64) -> Self {
        Self { address, generation, open: None }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The process at the other end.
    pub(super) fn generation(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.generation)
    }

    /// Connects to whoever serves, as soon as somebody does.
    pub(super) fn open(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + CONNECT_WITHIN;
        loop {
            // Read before: a process that came later could only make it too old, and then the
            // connection, made to its predecessor, is dead.
            let generation = self.generation.load(Ordering::SeqCst);
            match self.connect(generation) {
                Ok(open) if self.generation.load(Ordering::SeqCst) == generation => {
                    self.open = Some(open);
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if Instant::now() >= deadline => {
                    return Err(format!("no connection to {}: {error}", self.address));
                }
                Err(_) => thread::sleep(CONNECT_AGAIN_AFTER),
            }
        }
    }

    fn connect(&self, generation: u64) -> io::Result<Open> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_WITHIN))?;
        stream.set_write_timeout(Some(REPLY_WITHIN))?;
        Ok(Open { stream, generation })
    }

    /// Ends it, whatever is under way.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Sends a call with its record mark; an error closes the connection.
    pub(super) fn send(&mut self, call: &[u8]) -> io::Result<()> {
        let open = self.open.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let sent = open.stream.write_all(&rpc::record(call.to_vec()));
        self.close_on_error(sent)
    }

    /// Waits for one reply; an error, and a wait that is too long, closes the connection.
    pub(super) fn receive(&mut self) -> io::Result<Vec<u8>> {
        let open = self.open.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let received = rpc::receive(&mut open.stream);
        self.close_on_error(received)
    }

    fn close_on_error<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.is_err() {
            self.close();
        }
        outcome
    }
}
