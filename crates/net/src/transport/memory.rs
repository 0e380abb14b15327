//! Messages inside one process, for worlds: no delay of its own, a bounded queue each way.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use wire::record::Message;

use super::Transport;
use crate::error::TransportError;

/// Bytes that one direction holds before the sender waits: what two socket buffers would.
const QUEUE_BYTES_MAX: usize = 4 << 20;

/// One end of a connection.
#[derive(Debug)]
pub struct Memory {
    incoming: Arc<Mutex<Queue>>,
    outgoing: Arc<Mutex<Queue>>,
    /// What [`Transport::send`] was given beyond the bound, until it fits.
    waiting: VecDeque<Bytes>,
    /// Of `waiting`, with 4 for each mark.
    waiting_bytes: usize,
    peer: SocketAddr,
    own: SocketAddr,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Bytes>,
    bytes: usize,
    closed: bool,
    receiver: Option<Waker>,
    sender: Option<Waker>,
}

/// Two connected ends. `number` makes their addresses distinct.
pub fn pair(number: u16) -> (Memory, Memory) {
    let address = |host| SocketAddr::from((Ipv4Addr::new(127, 1, 0, host), number));
    pair_between(address(2), address(1))
}

/// Two connected ends at these addresses: the client's, and the server's.
pub fn pair_between(client: SocketAddr, server: SocketAddr) -> (Memory, Memory) {
    let (there, back) = (Arc::default(), Arc::default());
    let (at_client, at_server) = (client, server);
    let client = Memory {
        incoming: Arc::clone(&back),
        outgoing: Arc::clone(&there),
        waiting: VecDeque::new(),
        waiting_bytes: 0,
        peer: at_server,
        own: at_client,
    };
    let server = Memory {
        incoming: there,
        outgoing: back,
        waiting: VecDeque::new(),
        waiting_bytes: 0,
        peer: at_client,
        own: at_server,
    };
    (client, server)
}

impl Transport for Memory {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        let mut queue = self.incoming.lock();
        match queue.messages.pop_front() {
            Some(message) => {
                queue.bytes -= message.len();
                let sender = queue.sender.take();
                drop(queue);
                sender.into_iter().for_each(Waker::wake);
                Poll::Ready(Ok(Some(message)))
            }
            None if queue.closed => Poll::Ready(Ok(None)),
            None => {
                queue.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.poll_flush(cx)
    }

    fn send(&mut self, message: Message) {
        self.waiting_bytes += 4 + message.wire_len();
        self.waiting.push_back(message.into_bytes());
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let mut queue = self.outgoing.lock();
        let mut moved = false;
        while queue.bytes < QUEUE_BYTES_MAX && !queue.closed {
            let Some(message) = self.waiting.pop_front() else {
                break;
            };
            self.waiting_bytes -= 4 + message.len();
            queue.bytes += message.len();
            queue.messages.push_back(message);
            moved = true;
        }
        let receiver = if moved { queue.receiver.take() } else { None };
        let poll = if queue.closed && !self.waiting.is_empty() {
            let gone = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
            Poll::Ready(Err(gone.into()))
        } else if self.waiting.is_empty() {
            Poll::Ready(Ok(()))
        } else {
            queue.sender = Some(cx.waker().clone());
            Poll::Pending
        };
        drop(queue);
        receiver.into_iter().for_each(Waker::wake);
        poll
    }

    fn local(&self) -> Option<SocketAddr> {
        Some(self.own)
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn unsent_bytes(&self) -> usize {
        self.waiting_bytes
    }

    fn end_sending(&mut self) {
        let mut queue = self.outgoing.lock();
        queue.closed = true;
        let receiver = queue.receiver.take();
        drop(queue);
        receiver.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for queue in [&self.incoming, &self.outgoing] {
            let mut queue = queue.lock();
            queue.closed = true;
            let wakers = [queue.receiver.take(), queue.sender.take()];
            drop(queue);
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }
}
