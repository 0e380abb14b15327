//! Messages on their way, each with the moment of its arrival.
//!
//! They come out in the order in which they arrive; of those that arrive together, the first sent
//! comes first. The bytes are bounded by who puts them in: [`Held::is_full`] says when.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use perf::units::Instant;

use super::conditions::HELD_BYTES_MAX;
use super::tally::Tally;
use crate::clock::{Alarm, Clock};

/// What a message costs in memory beside its bytes, so that empty ones are bounded, too.
const ENTRY_BYTES: u64 = 256;

/// Bytes held in one direction of all connections together.
pub const HELD_TOGETHER_BYTES_MAX: u64 = 1 << 30;

/// See the module's head.
#[derive(Debug)]
pub struct Held<M> {
    heap: BinaryHeap<Entry<M>>,
    sequence: u64,
    bytes: u64,
    tally: Arc<Tally>,
    alarm: Alarm,
}

#[derive(Debug)]
struct Entry<M> {
    arrives: Instant,
    sequence: u64,
    bytes: u64,
    message: M,
}

impl<M> Entry<M> {
    fn key(&self) -> (Instant, u64) {
        (self.arrives, self.sequence)
    }
}

impl<M> PartialEq for Entry<M> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<M> Eq for Entry<M> {}

impl<M> PartialOrd for Entry<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> Ord for Entry<M> {
    /// The greatest is the one that arrives first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<M> Held<M> {
    /// # Errors
    /// The system has no more timers to give.
    pub fn new(clock: &Clock, tally: Arc<Tally>) -> io::Result<Self> {
        let alarm = clock.alarm()?;
        Ok(Self { heap: BinaryHeap::new(), sequence: 0, bytes: 0, tally, alarm })
    }

    pub fn push(&mut self, arrives: Instant, message: M, bytes: u64) {
        self.sequence += 1;
        self.bytes += bytes;
        self.tally.entered(bytes);
        self.heap.push(Entry { arrives, sequence: self.sequence, bytes, message });
    }

    /// The next message if it has arrived; `None` when none is on its way.
    pub fn poll_arrived(&mut self, cx: &mut Context<'_>) -> Poll<Option<M>> {
        let Some(arrives) = self.next() else {
            return Poll::Ready(None);
        };
        ready!(self.alarm.poll_at(cx, arrives));
        Poll::Ready(self.pop())
    }

    /// Pending, and woken at `at` or when the next message arrives.
    pub fn poll_until(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        let first = self.next().map_or(at, |arrives| arrives.min(at));
        self.alarm.poll_at(cx, first)
    }

    /// When the next message arrives.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.arrives)
    }

    /// Takes out the next message, arrived or not.
    pub fn pop(&mut self) -> Option<M> {
        let Entry { bytes, message, .. } = self.heap.pop()?;
        self.bytes -= bytes;
        self.tally.left(1, bytes);
        Some(message)
    }

    /// Whether it holds, or all connections hold together, as much as they may. Something of its
    /// own is on its way then, which makes room when it arrives.
    pub fn is_full(&self) -> bool {
        let own = self.bytes + self.heap.len() as u64 * ENTRY_BYTES;
        own >= HELD_BYTES_MAX
            || (self.tally.held_bytes() >= HELD_TOGETHER_BYTES_MAX && !self.heap.is_empty())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl<M> Drop for Held<M> {
    fn drop(&mut self) {
        self.tally.left(self.heap.len() as u64, self.bytes);
    }
}
