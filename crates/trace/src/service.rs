//! A server, with all of its clients: whether it stands still for all of them at once.

use super::pace::{Pace, Reply};
use crate::capture::End;

/// What a server's clients wait for together.
#[derive(Debug, Default)]
pub struct Service {
    /// None for all servers that found no place of their own.
    pub server: Option<End>,
    /// Of all calls to it.
    pub pace: Pace,
    pub stalls: Stalls,
    /// Clients with calls outstanding; with such that need nothing stable; with such that do.
    waiting: Waiting,
    since_ns: u64,
    /// Since the last reply to anybody: several clients waited, one of them for nothing stable; and
    /// of that the time in which another waited for something stable.
    shared_ns: u64,
    behind_ns: u64,
}

/// Times without a reply to anybody, while several clients waited: gaps of the server's pace.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stalls {
    pub count: u64,
    pub ns: u64,
    pub longest_ns: u64,
    /// Those in which a COMMIT or a stable WRITE was outstanding for more than half of it.
    pub behind_sync: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    any: u32,
    other: u32,
    sync: u32,
}

/// What one client waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Waits {
    other: bool,
    sync: bool,
}

impl Waits {
    pub(super) const fn of(pace: &Pace) -> Self {
        Self { other: pace.waits_for_other(), sync: pace.waits_for_sync() }
    }

    const fn any(self) -> bool {
        self.other || self.sync
    }
}

impl Service {
    pub(super) fn new(server: Option<End>) -> Self {
        Self { server, ..Self::default() }
    }

    /// Time goes on until `now`; then a client waits for something else than before.
    fn advance(&mut self, now: u64, before: Waits, after: Waits) {
        let ns = now.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(now);
        let Waiting { any, other, sync } = self.waiting;
        if any >= 2 && other >= 1 {
            self.shared_ns += ns;
            self.behind_ns += if sync >= 1 { ns } else { 0 };
        }
        let step = |count: &mut u32, before: bool, after: bool| {
            *count = (*count + u32::from(after)).saturating_sub(u32::from(before));
        };
        step(&mut self.waiting.any, before.any(), after.any());
        step(&mut self.waiting.other, before.other, after.other);
        step(&mut self.waiting.sync, before.sync, after.sync);
    }

    /// Calls were made, or are no longer outstanding, of a client that waits for something else
    /// then.
    pub(super) fn changed(
        &mut self,
        now: u64,
        (before, after): (Waits, Waits),
        change: impl FnOnce(&mut Pace),
    ) {
        self.advance(now, before, after);
        change(&mut self.pace);
    }

    pub(super) fn replied(&mut self, reply: Reply, (before, after): (Waits, Waits)) {
        self.advance(reply.now, before, after);
        let (shared, behind) = (self.shared_ns, self.behind_ns);
        (self.shared_ns, self.behind_ns) = (0, 0);
        let Some(ns) = self.pace.replied(reply) else { return };
        if shared > ns / 2 {
            let stalls = &mut self.stalls;
            stalls.count += 1;
            stalls.ns += ns;
            stalls.longest_ns = stalls.longest_ns.max(ns);
            stalls.behind_sync += u64::from(behind > ns / 2);
        }
    }
}
