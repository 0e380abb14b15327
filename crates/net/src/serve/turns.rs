//! Turns at moving data: one for each processor.
//!
//! Moving a MiB takes as long as hundreds of small calls, and the runtime's queue is fair between
//! tasks, not between clients: behind 150 connections that read, a small call would wait for 150
//! batches of data. So a task moves data only while it has a turn, for one poll, and those who wait
//! for one wait here. Also a turn that is free begins only when sockets have been looked at: the
//! queue may hold as many tasks that want one as there are connections, and each of them would find
//! the turn free that the one before has just ended.
//!
//! Hosts take turns, however many connections they have: the first to wait of a host goes before
//! the second of another (start-time fair queueing, each turn counting the same).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::runtime::wake_after_events;

/// All turns; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Mutex<Table>>); // guards who has one, and who is next

#[derive(Debug)]
struct Table {
    free: usize,
    /// The round that was served last.
    round: u64,
    /// Makes places of one round distinct, in the order of coming.
    next: u64,
    /// By round; none where a place has been granted and not been taken yet.
    line: BTreeMap<Place, Waker>,
    granted: Vec<Place>,
}

/// Round, and number.
type Place = (u64, u64);

/// The last round in which a host has a place.
#[derive(Debug, Default)]
pub(crate) struct HostRound(AtomicU64);

/// What one task has of them.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    host: Arc<HostRound>,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Idle,
    InLine(Place),
    /// Until what sockets have for others has been done.
    Begins,
    Held,
}

impl Turns {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(Table {
            free: count.max(1),
            round: 0,
            next: 0,
            line: BTreeMap::new(),
            granted: Vec::new(),
        })))
    }

    pub(crate) fn of(&self, host: Arc<HostRound>) -> Turn {
        Turn { turns: self.clone(), host, state: State::Idle }
    }
}

impl Table {
    fn grant(&mut self) {
        while self.free > 0
            && let Some((place, waker)) = self.line.pop_first()
        {
            self.free -= 1;
            self.round = place.0;
            self.granted.push(place);
            waker.wake();
        }
    }
}

impl Turn {
    /// Ready when the turn has begun; else the task is woken when it does, or polls again.
    pub(crate) fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.state {
            State::Held => return Poll::Ready(()),
            State::Begins => {
                self.state = State::Held;
                return Poll::Ready(());
            }
            State::Idle | State::InLine(_) => {}
        }
        if self.is_granted(cx) {
            self.state = State::Begins;
            wake_after_events(cx);
        }
        Poll::Pending
    }

    fn is_granted(&mut self, cx: &Context<'_>) -> bool {
        let mut table = self.turns.0.lock();
        let State::InLine(place) = self.state else {
            if table.free > 0 && table.line.is_empty() {
                table.free -= 1;
                return true;
            }
            let round = table.round.max(self.host.0.load(Ordering::Relaxed)) + 1;
            self.host.0.store(round, Ordering::Relaxed);
            let place = (round, table.next);
            table.next += 1;
            table.line.insert(place, cx.waker().clone());
            self.state = State::InLine(place);
            return false;
        };
        if let Some(at) = table.granted.iter().position(|&granted| granted == place) {
            table.granted.swap_remove(at);
            return true;
        }
        if let Some(waker) = table.line.get_mut(&place) {
            waker.clone_from(cx.waker());
        }
        false
    }

    /// Gives the turn, or the place in line, to whoever is next.
    pub(crate) fn end(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Idle);
        if state == State::Idle {
            return;
        }
        let mut table = self.turns.0.lock();
        let had_one = match state {
            State::Idle => false,
            State::Begins | State::Held => true,
            State::InLine(place) => {
                let before = table.granted.len();
                table.granted.retain(|&granted| granted != place);
                table.line.remove(&place);
                table.granted.len() < before
            }
        };
        table.free += usize::from(had_one);
        table.grant();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls until sockets would have been looked at.
    fn take(turn: &mut Turn) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        turn.poll_take(&mut cx).is_ready() || turn.poll_take(&mut cx).is_ready()
    }

    #[test]
    fn a_turn_that_is_free_begins_when_others_have_been_woken() {
        let mut turn = Turns::new(1).of(Arc::default());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(turn.poll_take(&mut cx).is_pending());
        assert!(turn.poll_take(&mut cx).is_ready());
    }

    #[test]
    fn hosts_take_turns_however_many_connections_they_have() {
        let turns = Turns::new(1);
        let (greedy, modest): (Arc<HostRound>, Arc<HostRound>) = Default::default();
        let mut many: Vec<Turn> = (0..100).map(|_| turns.of(Arc::clone(&greedy))).collect();
        let had: Vec<bool> = many.iter_mut().map(take).collect();
        assert!(had[0] && !had[1..].iter().any(|&had| had));
        // Again and again, one of another host waits for one turn.
        let mut one = turns.of(modest);
        let mut holder = 0;
        for _ in 0..20 {
            assert!(!take(&mut one));
            many[holder].end();
            let before = (0..many.len()).find(|&at| take(&mut many[at]));
            if let Some(before) = before {
                // It had its place before.
                many[before].end();
                assert!(take(&mut one), "after one of the others");
            }
            assert!(take(&mut one));
            one.end();
            holder = (0..many.len()).find(|&at| take(&mut many[at])).unwrap();
        }
    }

    #[test]
    fn who_leaves_lets_the_next_through() {
        let turns = Turns::new(2);
        let mut all: Vec<Turn> = (0..5).map(|_| turns.of(Arc::default())).collect();
        let had: Vec<bool> = all.iter_mut().map(take).collect();
        assert_eq!(had, [true, true, false, false, false]);
        // The third is granted one, and goes without taking it; the fourth leaves the line.
        all[0].end();
        drop(all.remove(2));
        assert!(take(&mut all[2]), "the fourth");
        all[1].end();
        assert!(take(&mut all[3]), "the fifth");
        drop(all);
        let table = turns.0.lock();
        assert_eq!((table.free, table.line.len(), table.granted.len()), (2, 0, 0));
    }
}
