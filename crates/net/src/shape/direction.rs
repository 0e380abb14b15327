//! One direction for one peer: decides about each message, and holds it until it arrives.
//!
//! [`super::Shaped`] has one for each way, and a relay, which has no transport to wrap, can have
//! them for whatever it passes on. It is driven by one task, like a transport.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::Instant;
use wire::record::Message;

use super::controls::{Follower, Shape, Side};
use super::held::Held;
use super::lane::{Fate, Lost};
use crate::clock::Clock;

/// See the module's head.
#[derive(Debug)]
pub struct Direction<M> {
    shape: Shape,
    follower: Follower,
    held: Held<M>,
    departs: Option<Instant>,
    /// Somebody waits for room, and there may be some then.
    room_at: Option<Instant>,
}

/// A message that a bad network may damage.
pub trait Damage {
    /// Flips one bit; none if there is none of that number.
    fn flip(&mut self, bit: u64);
}

impl<M> Direction<M> {
    /// # Errors
    /// The system has no more timers to give.
    pub fn new(shape: &Shape, side: Side, clock: &Clock) -> io::Result<Self> {
        Ok(Self {
            shape: shape.clone(),
            follower: shape.follower(side),
            held: Held::new(clock, shape.tally(side).clone())?,
            departs: None,
            room_at: None,
        })
    }

    /// A message of a stream is sent, `bytes` with its mark.
    pub fn admit(&mut self, now: Instant, message: M, bytes: u64) -> Fate {
        let fate = self.follower.lane(&self.shape).message(now, bytes);
        self.held.tally().decided(bytes, &fate);
        self.departs = Some(fate.departs);
        // On a stream nothing is lost.
        let arrives = fate.arrival.unwrap_or(fate.departs);
        self.held.push(arrives, message, bytes);
        fate
    }

    /// Whether another message may be admitted: the link's queue has room, and so have we.
    pub fn has_room(&mut self, now: Instant) -> bool {
        self.follower.lane(&self.shape).has_room(now) && !self.held.is_full()
    }

    /// As [`Direction::has_room`]; the task is woken when that may have changed, if it goes on to
    /// ask for what has arrived.
    pub fn poll_room(&mut self, now: Instant) -> Poll<()> {
        if self.has_room(now) {
            return Poll::Ready(());
        }
        self.room_at = self.follower.lane.room_at();
        Poll::Pending
    }

    /// The next message if it has arrived; `None` when none is on its way.
    pub fn poll_arrived(&mut self, cx: &mut Context<'_>) -> Poll<Option<M>> {
        if let Some(at) = self.room_at {
            if self.held.poll_until(cx, at).is_pending() {
                return Poll::Pending;
            }
            self.room_at = None;
            cx.waker().wake_by_ref();
        }
        self.held.poll_arrived(cx)
    }

    /// Nothing of what is on its way arrives.
    pub fn lose(&mut self) {
        while self.held.pop().is_some() {}
    }

    /// When the last byte of what was last admitted leaves.
    pub fn departs(&self) -> Option<Instant> {
        self.departs
    }

    /// Bytes on their way.
    pub fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

/// Holds a datagram, or two, or none, as its fate has it.
pub(super) fn hold<M: Clone + Damage>(
    held: &mut Held<M>,
    mut fate: Fate,
    mut message: M,
    bytes: u64,
) {
    if fate.arrival.is_ok() && held.is_full() {
        fate.arrival = Err(Lost::Held);
    }
    if fate.arrival.is_err() {
        fate.again = None;
    }
    held.tally().decided(bytes, &fate);
    let Ok(arrives) = fate.arrival else { return };
    if let Some(again) = fate.again {
        held.push(again, message.clone(), bytes);
    }
    if let Some(bit) = fate.flipped_bit {
        message.flip(bit);
    }
    held.push(arrives, message, bytes);
}

impl Damage for Bytes {
    fn flip(&mut self, bit: u64) {
        let mut bytes = self.to_vec();
        flip(&mut bytes, bit);
        *self = bytes.into();
    }
}

impl Damage for Message {
    fn flip(&mut self, bit: u64) {
        let head_bits = self.head.len() as u64 * 8;
        match bit.checked_sub(head_bits) {
            None => flip(&mut self.head, bit),
            Some(bit) => self.payload.flip(bit),
        }
    }
}

fn flip(bytes: &mut [u8], bit: u64) {
    let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << (bit % 8);
    }
}
