//! Turns at moving data: one for each processor.
//!
//! Moving a MiB takes as long as hundreds of small calls, and the runtime's queue is fair between
//! tasks, not between clients: behind 150 connections that read, a small call would wait for 150
//! batches of data. So a task moves data only while it has a turn, for one poll, and those who wait
//! for one wait here. Also a turn that is free begins only when sockets have been looked at: the
//! queue may hold as many tasks that want one as there are connections, and each of them would find
//! the turn free that the one before has just ended.
//!
//! Hosts take turns, however many connections they have (start-time fair queueing, each turn
//! counting the same). Of one host, connections that have had little lately go first, as sparse
//! flows do in RFC 8290; but one turn in [`SPARSE_IN_A_ROW_MAX`] is for the others. A connection
//! that has only begun is none of the first.
//!
//! A turn whose task is in a system call that does not return is made up for by another one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use perf::units::{Instant, Nanos};

use super::budget::HostShare;
use crate::clock::Clock;
use crate::runtime::wake_after_events;
use crate::stalls;

/// One turn in so much time is little.
const LITTLE_INTERVAL: Nanos = Nanos::from_millis(10);

/// So many at once are little, too: a READ of 1 MiB takes two or three.
const LITTLE_TURNS: u64 = 3;

const SPARSE_IN_A_ROW_MAX: u8 = 8;

/// All turns; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    clock: Clock,
    /// Guards who has one, and who is next.
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    /// Below zero while more are had than there are, and `stalled` makes up for them.
    free: isize,
    /// Polls in system calls that have not returned: as many turns more.
    stalled: isize,
    /// The round that was served last.
    round: u64,
    /// The number of the next place in line, or host in order.
    next: u64,
    lines: HashMap<HostId, Line>,
    /// Hosts with somebody in line, by the round in which they are served, and in the order of
    /// coming.
    order: BTreeMap<(u64, u64), HostId>,
    /// Places that have been granted, and not been taken yet.
    granted: Vec<u64>,
}

/// Where a host's [`HostShare`] is, which lives as long as anybody of it is in line.
type HostId = usize;

/// Those of one host who wait, in the order of coming.
#[derive(Debug, Default)]
struct Line {
    /// Where the host is in order.
    at: (u64, u64),
    sparse: BTreeMap<u64, Waker>,
    others: BTreeMap<u64, Waker>,
    sparse_in_a_row: u8,
}

/// What a connection has had lately: the time until which it would have had it at one turn for each
/// [`LITTLE_INTERVAL`], in nanoseconds (the generic cell rate algorithm).
#[derive(Clone, Debug, Default)]
pub(crate) struct Lately(Arc<AtomicU64>);

/// What one task has of them.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    host: Arc<HostShare>,
    lately: Lately,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Idle,
    InLine(u64),
    /// Until what sockets have for others has been done.
    Begins,
    Held,
}

impl Turns {
    pub(crate) fn new(clock: Clock, count: usize) -> Self {
        let free = isize::try_from(count.max(1)).unwrap_or(isize::MAX);
        let table = Arc::new(Mutex::new(Table { free, ..Table::default() }));
        let of_stalls = Arc::downgrade(&table);
        stalls::listen(move |stalled| match of_stalls.upgrade() {
            Some(table) => {
                table.lock().make_up_for(stalled);
                true
            }
            None => false,
        });
        Self { clock, table }
    }

    /// Polls in system calls that have not returned.
    pub(crate) fn stalled(&self) -> u64 {
        u64::try_from(self.table.lock().stalled).unwrap_or(0)
    }

    /// Of a task of one connection, which shares `lately` with its other tasks.
    pub(crate) fn of(&self, host: Arc<HostShare>, lately: Lately) -> Turn {
        Turn { turns: self.clone(), host, lately, state: State::Idle }
    }
}

impl Table {
    fn join(&mut self, id: HostId, is_sparse: bool, waker: &Waker) -> u64 {
        let place = self.next;
        self.next += 1;
        let line = self.lines.entry(id).or_default();
        if line.is_empty() {
            line.at = (self.round + 1, place);
            self.order.insert(line.at, id);
        }
        let places = if is_sparse { &mut line.sparse } else { &mut line.others };
        places.insert(place, waker.clone());
        place
    }

    fn has_free(&self) -> bool {
        self.free + self.stalled > 0
    }

    fn make_up_for(&mut self, stalled: usize) {
        self.stalled = isize::try_from(stalled).unwrap_or(0);
        self.grant();
    }

    fn grant(&mut self) {
        debug_assert_eq!(self.order.len(), self.lines.len(), "a host in line is in order once");
        while self.has_free()
            && let Some(((round, _), id)) = self.order.pop_first()
        {
            let Some(line) = self.lines.get_mut(&id) else { continue };
            let next = line.pop();
            if line.is_empty() {
                self.lines.remove(&id);
            } else {
                line.at = (round + 1, self.next);
                self.next += 1;
                self.order.insert(line.at, id);
            }
            let Some((place, waker)) = next else { continue };
            self.free -= 1;
            self.round = round;
            self.granted.push(place);
            waker.wake();
        }
    }

    /// Leaves the line; true if the place had been granted.
    fn leave(&mut self, id: HostId, place: u64) -> bool {
        let granted = self.granted.len();
        self.granted.retain(|&granted| granted != place);
        if let Some(line) = self.lines.get_mut(&id) {
            line.sparse.remove(&place);
            line.others.remove(&place);
            if line.is_empty() {
                self.order.remove(&line.at);
                self.lines.remove(&id);
            }
        }
        self.granted.len() < granted
    }
}

impl Line {
    fn is_empty(&self) -> bool {
        self.sparse.is_empty() && self.others.is_empty()
    }

    fn pop(&mut self) -> Option<(u64, Waker)> {
        let is_others_turn =
            self.sparse_in_a_row >= SPARSE_IN_A_ROW_MAX - 1 && !self.others.is_empty();
        if let Some(first) = (!is_others_turn).then(|| self.sparse.pop_first()).flatten() {
            self.sparse_in_a_row = self.sparse_in_a_row.saturating_add(1);
            return Some(first);
        }
        self.sparse_in_a_row = 0;
        self.others.pop_first()
    }

    fn waker(&mut self, place: u64) -> Option<&mut Waker> {
        self.sparse.get_mut(&place).or_else(|| self.others.get_mut(&place))
    }
}

impl Lately {
    /// Of a connection that begins: as if it had just had all that counts as little. Many that come
    /// at once would go before one that has been there for long, else.
    pub(crate) fn of_newcomer(now: Instant) -> Self {
        Self(Arc::new(AtomicU64::new(now.as_nanos() + LITTLE_TURNS * LITTLE_INTERVAL.as_nanos())))
    }

    fn is_little(&self, now: Instant) -> bool {
        let ahead = self.0.load(Ordering::Relaxed).saturating_sub(now.as_nanos());
        ahead <= (LITTLE_TURNS - 1) * LITTLE_INTERVAL.as_nanos()
    }

    fn had_one(&self, now: Instant) {
        let until = self.0.load(Ordering::Relaxed).max(now.as_nanos()) + LITTLE_INTERVAL.as_nanos();
        self.0.store(until, Ordering::Relaxed);
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
        let now = self.turns.clock.now();
        if self.is_granted(cx, now) {
            self.lately.had_one(now);
            self.state = State::Begins;
            wake_after_events(cx);
        }
        Poll::Pending
    }

    fn is_granted(&mut self, cx: &Context<'_>, now: Instant) -> bool {
        let mut table = self.turns.table.lock();
        let State::InLine(place) = self.state else {
            if table.has_free() && table.order.is_empty() {
                table.free -= 1;
                return true;
            }
            let is_sparse = self.lately.is_little(now);
            self.state = State::InLine(table.join(self.host_id(), is_sparse, cx.waker()));
            return false;
        };
        if let Some(at) = table.granted.iter().position(|&granted| granted == place) {
            table.granted.swap_remove(at);
            return true;
        }
        let line = table.lines.get_mut(&self.host_id());
        if let Some(waker) = line.and_then(|line| line.waker(place)) {
            waker.clone_from(cx.waker());
        }
        false
    }

    fn host_id(&self) -> HostId {
        Arc::as_ptr(&self.host).addr()
    }

    /// Gives the turn, or the place in line, to whoever is next.
    pub(crate) fn end(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Idle);
        if state == State::Idle {
            return;
        }
        let mut table = self.turns.table.lock();
        let had_one = match state {
            State::Idle => false,
            State::Begins | State::Held => true,
            State::InLine(place) => table.leave(self.host_id(), place),
        };
        table.free += isize::from(had_one);
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

    fn turns(count: usize) -> Turns {
        Turns::new(Clock::real(), count)
    }

    /// As many as there are connections of one host.
    fn of_one_host(turns: &Turns, count: usize) -> (Arc<HostShare>, Vec<Turn>) {
        let host: Arc<HostShare> = Arc::default();
        let turn = || turns.of(Arc::clone(&host), Lately::default());
        let all = (0..count).map(|_| turn()).collect();
        (host, all)
    }

    #[test]
    fn a_turn_that_is_free_begins_when_others_have_been_woken() {
        let (_, mut all) = of_one_host(&turns(1), 1);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(all[0].poll_take(&mut cx).is_pending());
        assert!(all[0].poll_take(&mut cx).is_ready());
    }

    #[test]
    fn hosts_take_turns_however_many_connections_they_have() {
        let turns = turns(1);
        let (_, mut many) = of_one_host(&turns, 100);
        let (_, mut one) = of_one_host(&turns, 1);
        let had: Vec<bool> = many.iter_mut().map(take).collect();
        assert!(had[0] && !had[1..].iter().any(|&had| had));
        // Again and again, one of another host waits for one turn.
        let mut holder = 0;
        for _ in 0..20 {
            assert!(!take(&mut one[0]));
            many[holder].end();
            let before = (0..many.len()).find(|&at| take(&mut many[at]));
            if let Some(before) = before {
                // Its place was in the same round.
                many[before].end();
                assert!(take(&mut one[0]), "after one of the others");
            }
            assert!(take(&mut one[0]));
            one[0].end();
            holder = (0..many.len()).find(|&at| take(&mut many[at])).unwrap();
        }
    }

    #[test]
    fn a_turn_that_does_not_end_is_made_up_for_until_it_does() {
        let turns = turns(1);
        let (_, mut all) = of_one_host(&turns, 4);
        assert!(take(&mut all[0]) && !take(&mut all[1]));
        turns.table.lock().make_up_for(1);
        assert!(take(&mut all[1]) && !take(&mut all[2]));
        all[0].end();
        assert!(take(&mut all[2]), "it is still made up for");
        turns.table.lock().make_up_for(0);
        all[1].end();
        assert!(!take(&mut all[3]));
        all[2].end();
        assert!(take(&mut all[3]));
    }

    #[test]
    fn of_one_host_who_has_had_little_goes_first_but_not_always() {
        let turns = turns(1);
        let (host, mut greedy) = of_one_host(&turns, 10);
        for turn in &mut greedy {
            // Seconds ahead, so that the time that the test takes does not matter.
            for _ in 0..100 * LITTLE_TURNS {
                assert!(take(turn));
                turn.end();
            }
        }
        assert!(take(&mut greedy[0]));
        assert!(!greedy[1..].iter_mut().any(take));
        let modest = || turns.of(Arc::clone(&host), Lately::default());
        let mut modest: Vec<Turn> = (0..20).map(|_| modest()).collect();
        assert!(!modest.iter_mut().any(take));
        greedy[0].end();
        // Who has the turn, in order; each ends it at once.
        let mut order = Vec::new();
        for _ in 0..16 {
            let holder = modest.iter_mut().chain(&mut greedy).enumerate();
            let (at, turn) =
                holder.into_iter().find_map(|(at, turn)| take(turn).then_some((at, turn))).unwrap();
            order.push(at);
            turn.end();
        }
        let of_greedy: Vec<usize> = (0..16).filter(|&at| order[at] >= modest.len()).collect();
        assert_eq!(of_greedy, [7, 15], "{order:?}");
    }

    #[test]
    fn what_was_had_is_forgotten() {
        let lately = Lately::default();
        let at = Instant::from_nanos;
        for _ in 0..LITTLE_TURNS {
            assert!(lately.is_little(at(5)));
            lately.had_one(at(5));
        }
        assert!(!lately.is_little(at(5)));
        assert!(lately.is_little(at(5 + LITTLE_INTERVAL.as_nanos())));
    }

    #[test]
    fn who_begins_has_to_wait_until_little_is_forgiven() {
        let at = Instant::from_nanos;
        let lately = Lately::of_newcomer(at(5));
        assert!(!lately.is_little(at(5)));
        let interval = LITTLE_INTERVAL.as_nanos();
        assert!(lately.is_little(at(5 + interval)));
        lately.had_one(at(5 + interval));
        assert!(!lately.is_little(at(5 + interval)));
        assert!(lately.is_little(at(5 + 2 * interval)));
    }

    #[test]
    fn who_leaves_lets_the_next_through() {
        let turns = turns(2);
        let mut all: Vec<Turn> = (0..5).flat_map(|_| of_one_host(&turns, 1).1).collect();
        let had: Vec<bool> = all.iter_mut().map(take).collect();
        assert_eq!(had, [true, true, false, false, false]);
        // The third is granted one, and goes without taking it; the fourth leaves the line.
        all[0].end();
        drop(all.remove(2));
        assert!(take(&mut all[2]), "the fourth");
        all[1].end();
        assert!(take(&mut all[3]), "the fifth");
        drop(all);
        let table = turns.table.lock();
        assert_eq!((table.free, table.lines.len(), table.order.len()), (2, 0, 0));
        assert!(table.granted.is_empty());
    }
}
