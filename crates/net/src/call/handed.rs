//! Tells callers when their message was handed over.
//!
//! Over a socket that is when the system has taken the message's last byte; over an emulated link,
//! which takes everything at once, when the last byte has left, because that is how long a sender
//! without a queue of its own would be busy. Nothing is counted or waited for unless a caller asks.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use perf::units::Instant;
use tokio::sync::oneshot;

use crate::clock::{Alarm, Clock};
use crate::transport::Transport;

/// Callers who want to know, in the order of their messages; at most as many as there are calls
/// under way.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// Bytes given to the transport since it was made, with 4 for each mark.
    given_bytes: u64,
    waiting: VecDeque<(Mark, oneshot::Sender<Instant>)>,
    alarm: Option<Alarm>,
}

/// When a message counts as handed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mark {
    /// When the system has taken so many bytes in all.
    Bytes(u64),
    At(Instant),
}

impl Handed {
    /// A message has just been given to the transport: `wire_bytes` of it.
    pub(super) fn given(
        &mut self,
        transport: &impl Transport,
        wire_bytes: usize,
        wants: Option<oneshot::Sender<Instant>>,
    ) {
        self.given_bytes += wire_bytes as u64 + 4;
        if let Some(sender) = wants {
            let mark = transport.departs().map_or(Mark::Bytes(self.given_bytes), Mark::At);
            self.waiting.push_back((mark, sender));
        }
    }

    /// Tells those whose time has come; to be called whenever the transport was flushed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, clock: &Clock, transport: &impl Transport) {
        if self.waiting.is_empty() {
            return;
        }
        let taken = self.given_bytes.saturating_sub(transport.unsent_bytes() as u64);
        while let Some(&(mark, _)) = self.waiting.front() {
            let is_handed_over = match mark {
                Mark::Bytes(end) => end <= taken,
                Mark::At(at) => self.poll_alarm(cx, clock, at).is_ready(),
            };
            if !is_handed_over {
                return;
            }
            if let Some((_, sender)) = self.waiting.pop_front() {
                sender.send(clock.now()).ok();
            }
        }
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>, clock: &Clock, at: Instant) -> Poll<()> {
        if self.alarm.is_none() {
            self.alarm = clock.alarm().ok();
        }
        // Without timers nobody waits.
        self.alarm.as_mut().map_or(Poll::Ready(()), |alarm| alarm.poll_at(cx, at))
    }
}
