//! Who is connected: a bounded number of seats, and fewer for each host. Of this host, each user is
//! counted as a host is: none takes the seats of another.
//!
//! When no seat is left, a new connection takes that of the idlest, of its own host if that has
//! all it may have, and of all otherwise. A connection with a call in progress, or with a reply
//! that its client has not taken, is busy and keeps its seat. Where all are busy the new one is
//! refused, and for [`FULL_FOR`] there is less patience with those that do nothing.
//!
//! Times are coarse: a connection is as idle as its last batch of calls by the clock of the last
//! arrival or look at any connection, so that a call costs no look at the clock.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::Mutex;
use perf::units::{Instant, Nanos};

use super::budget::HostShare;
use crate::transport::Transport;

/// How long it is remembered that somebody found no seat.
const FULL_FOR: Nanos = Nanos::from_secs(10);

/// Who has done something within this stays where descriptors are short: a burst of connections
/// passes, and ends no work of others.
const SHORT_IDLE_MIN: Nanos = Nanos::from_secs(3);

/// Whose connection it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Party {
    host: IpAddr,
    /// Of this host, the user's id.
    user: Option<u32>,
}

impl Party {
    pub(crate) fn of(connection: &impl Transport) -> Self {
        Self { host: connection.peer().ip().to_canonical(), user: connection.owner() }
    }
}

/// All seats of a server.
#[derive(Debug)]
pub(crate) struct Seats {
    seats_max: usize,
    per_host_max: usize,
    /// Who has done something within this keeps its seat, too.
    idle_min: Nanos,
    /// The coarse clock.
    now_ns: AtomicU64,
    /// When somebody last found no seat; 0 if nobody has.
    full_ns: AtomicU64,
    /// Guards who sits where.
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    seats: HashMap<u64, Arc<Seat>>,
    parties: BTreeMap<Party, OfParty>,
}

#[derive(Debug, Default)]
struct OfParty {
    seats: usize,
    share: Arc<HostShare>,
}

/// A connection's seat, as its task and those who want it see it.
#[derive(Debug)]
pub(crate) struct Seat {
    number: u64,
    party: Party,
    share: Arc<HostShare>,
    active_ns: AtomicU64,
    is_busy: AtomicBool,
    is_revoked: AtomicBool,
    /// Guards who is woken when the seat is revoked.
    waker: Mutex<Option<Waker>>,
}

/// Why there is no seat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NoSeat;

/// A seat that is taken, until this is dropped.
#[derive(Debug)]
pub(crate) struct Seated {
    seats: Arc<Seats>,
    seat: Arc<Seat>,
    /// Another had to leave for this one.
    pub(crate) has_evicted: bool,
}

impl Seats {
    pub(crate) fn new(seats_max: usize, per_host_max: usize, idle_min: Nanos) -> Self {
        Self {
            seats_max,
            per_host_max,
            idle_min,
            now_ns: AtomicU64::new(0),
            full_ns: AtomicU64::new(0),
            table: Mutex::default(),
        }
    }

    /// A seat for a connection of `party`, if need be another's.
    ///
    /// # Errors
    /// All are taken, by busy ones.
    pub(crate) fn enter(self: &Arc<Self>, party: Party, now: Instant) -> Result<Seated, NoSeat> {
        self.look_at(now);
        let mut table = self.table.lock();
        let own = table.parties.get(&party).map_or(0, |of_party| of_party.seats);
        let mut has_evicted = false;
        if own >= self.per_host_max || table.seats.len() >= self.seats_max {
            let of = (own >= self.per_host_max).then_some(party);
            has_evicted = self.evict(&mut table, of, (now, self.idle_min));
            if !has_evicted {
                return Err(NoSeat);
            }
        }
        Ok(self.seat(table, party, has_evicted))
    }

    /// Room for a connection that the system had none for: the idlest leaves, if it has done
    /// nothing for [`SHORT_IDLE_MIN`]. Whether one does.
    pub(crate) fn make_room(&self, now: Instant) -> bool {
        self.look_at(now);
        self.evict(&mut self.table.lock(), None, (now, SHORT_IDLE_MIN.max(self.idle_min)))
    }

    /// Has the idlest leave. Where it is not idle enough, it is remembered that somebody found no
    /// seat.
    fn evict(
        &self,
        table: &mut Table,
        of: Option<Party>,
        (now, idle_min): (Instant, Nanos),
    ) -> bool {
        let idlest = table.idlest(of).filter(|seat| seat.idle_ns(now) >= idle_min.as_nanos());
        match idlest {
            Some(idlest) => {
                table.remove(&idlest);
                idlest.revoke();
                true
            }
            None => {
                self.full_ns.store(now.as_nanos().max(1), Ordering::Relaxed);
                false
            }
        }
    }

    /// A seat whether there is one or not.
    pub(crate) fn enter_anyway(self: &Arc<Self>, party: Party) -> Seated {
        self.seat(self.table.lock(), party, false)
    }

    fn seat(
        self: &Arc<Self>,
        mut table: parking_lot::MutexGuard<'_, Table>,
        party: Party,
        has_evicted: bool,
    ) -> Seated {
        let number = table.next;
        table.next += 1;
        let of_party = table.parties.entry(party).or_default();
        of_party.seats += 1;
        let seat = Arc::new(Seat {
            number,
            party,
            share: Arc::clone(&of_party.share),
            active_ns: AtomicU64::new(self.now_ns.load(Ordering::Relaxed)),
            is_busy: AtomicBool::new(false),
            is_revoked: AtomicBool::new(false),
            waker: Mutex::default(),
        });
        table.seats.insert(seat.number, Arc::clone(&seat));
        debug_assert!(table.adds_up());
        Seated { seats: Arc::clone(self), seat, has_evicted }
    }

    /// Revokes the seats of hosts that may not be here any more; gives how many there were.
    pub(crate) fn keep(&self, may_stay: impl Fn(IpAddr) -> bool) -> usize {
        let mut table = self.table.lock();
        let leaving: Vec<Arc<Seat>> =
            table.seats.values().filter(|seat| !may_stay(seat.party.host)).cloned().collect();
        for seat in &leaving {
            table.remove(seat);
            seat.revoke();
        }
        leaving.len()
    }

    /// Whether a connection of `host` is here: it has answered our half of a handshake, so that
    /// nobody else speaks in its name.
    pub(crate) fn holds(&self, host: IpAddr) -> bool {
        let first = Party { host, user: None };
        let table = self.table.lock();
        table.parties.range(first..).next().is_some_and(|(party, _)| party.host == host)
    }

    /// Connections that have nothing in progress.
    pub(crate) fn idle(&self) -> usize {
        self.table
            .lock()
            .seats
            .values()
            .filter(|seat| !seat.is_busy.load(Ordering::Relaxed))
            .count()
    }

    /// Moves the coarse clock on.
    pub(crate) fn look_at(&self, now: Instant) {
        self.now_ns.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    /// Whether somebody has found no seat lately.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        let full = self.full_ns.load(Ordering::Relaxed);
        full != 0 && now.as_nanos().saturating_sub(full) < FULL_FOR.as_nanos()
    }
}

impl Table {
    fn idlest(&self, of: Option<Party>) -> Option<Arc<Seat>> {
        self.seats
            .values()
            .filter(|seat| of.is_none_or(|party| seat.party == party))
            .filter(|seat| !seat.is_busy.load(Ordering::Relaxed))
            .min_by_key(|seat| (seat.active_ns.load(Ordering::Relaxed), seat.number))
            .cloned()
    }

    /// Whoever has left already leaves no second time.
    fn remove(&mut self, seat: &Seat) {
        if self.seats.remove(&seat.number).is_none() {
            return;
        }
        if let Some(of_party) = self.parties.get_mut(&seat.party) {
            of_party.seats -= 1;
            if of_party.seats == 0 {
                self.parties.remove(&seat.party);
            }
        }
        debug_assert!(self.adds_up());
    }

    /// Every seat is counted for its party, and no party stays without one.
    fn adds_up(&self) -> bool {
        let counted: usize = self.parties.values().map(|of_party| of_party.seats).sum();
        counted == self.seats.len() && self.parties.values().all(|of_party| of_party.seats > 0)
    }
}

impl Seat {
    fn revoke(&self) {
        self.is_revoked.store(true, Ordering::Release);
        self.waker.lock().take().into_iter().for_each(Waker::wake);
    }

    fn idle_ns(&self, now: Instant) -> u64 {
        now.as_nanos().saturating_sub(self.active_ns.load(Ordering::Relaxed))
    }

    /// Whether the connection has to leave.
    pub(crate) fn is_revoked(&self) -> bool {
        self.is_revoked.load(Ordering::Acquire)
    }

    /// Has this task woken when the seat is revoked from now on.
    pub(crate) fn watch(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    pub(crate) fn is_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::Relaxed);
    }
}

impl Seated {
    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// What the host, or user, of this connection holds.
    pub(crate) fn share(&self) -> Arc<HostShare> {
        Arc::clone(&self.seat.share)
    }

    /// The connection has done something.
    pub(crate) fn is_active(&self) {
        let now = self.seats.now_ns.load(Ordering::Relaxed);
        self.seat.active_ns.store(now, Ordering::Relaxed);
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.seats.table.lock().remove(&self.seat);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn host(number: u8) -> Party {
        Party { host: Ipv4Addr::new(10, 0, 0, number).into(), user: None }
    }

    fn at(secs: u64) -> Instant {
        Instant::EPOCH + Nanos::from_secs(secs)
    }

    fn seats(seats_max: usize, per_host_max: usize) -> Arc<Seats> {
        Arc::new(Seats::new(seats_max, per_host_max, Nanos::ZERO))
    }

    #[test]
    fn the_idlest_leaves_for_a_new_one_and_a_busy_one_never() {
        let seats = seats(3, 3);
        let mut sitting: Vec<Seated> =
            (0..3).map(|number| seats.enter(host(number), at(number.into())).unwrap()).collect();
        // The first has been idle for longest, but has a call in progress.
        sitting[0].seat().is_busy(true);
        seats.look_at(at(10));
        sitting[1].is_active();
        let new = seats.enter(host(9), at(11)).unwrap();
        assert!(new.has_evicted);
        let revoked = |sitting: &[Seated]| -> Vec<bool> {
            sitting.iter().map(|seated| seated.seat().is_revoked()).collect()
        };
        assert_eq!(revoked(&sitting), [false, false, true]);
        sitting.push(new);
        sitting.iter().for_each(|seated| seated.seat().is_busy(true));
        assert!(!seats.is_full(at(11)));
        assert_eq!(seats.enter(host(8), at(12)).unwrap_err(), NoSeat);
        assert!(seats.is_full(at(13)) && !seats.is_full(at(23)));
        // Whoever was evicted gives no seat back when its task ends.
        sitting.remove(2);
        assert_eq!(seats.enter(host(8), at(12)).unwrap_err(), NoSeat);
        sitting.remove(0);
        assert!(!seats.enter(host(8), at(12)).unwrap().has_evicted);
    }

    #[test]
    fn who_was_active_a_moment_ago_keeps_its_seat_where_that_is_wanted() {
        let seats = Arc::new(Seats::new(1, 1, Nanos::from_secs(5)));
        let first = seats.enter(host(1), at(10)).unwrap();
        assert_eq!(seats.enter(host(2), at(14)).unwrap_err(), NoSeat);
        assert!(seats.enter(host(2), at(15)).unwrap().has_evicted);
        assert!(first.seat().is_revoked());
    }

    #[test]
    fn the_idlest_makes_room_where_descriptors_are_short_and_who_was_just_active_does_not() {
        let seats = seats(10, 10);
        assert!(!seats.make_room(at(1)), "nobody is here");
        let sitting = [1, 2].map(|secs| seats.enter(host(1), at(secs)).unwrap());
        sitting[0].seat().is_busy(true);
        assert!(!seats.make_room(at(4)) && seats.is_full(at(5)), "who waits has less patience");
        assert!(seats.make_room(at(5)));
        assert!(!sitting[0].seat().is_revoked() && sitting[1].seat().is_revoked());
        assert!(!seats.make_room(at(9)), "the other is busy");
    }

    #[test]
    fn a_host_over_its_number_evicts_its_own() {
        let seats = seats(10, 2);
        let other = seats.enter(host(1), at(0)).unwrap();
        let own: Vec<Seated> = (1..4).map(|secs| seats.enter(host(2), at(secs)).unwrap()).collect();
        assert!(own[0].seat().is_revoked() && !own[1].seat().is_revoked());
        assert!(!other.seat().is_revoked(), "it is idler, and of another host");
        own[1].seat().is_busy(true);
        own[2].seat().is_busy(true);
        assert!(seats.enter(host(2), at(5)).is_err());
        assert!(seats.enter(host(1), at(5)).is_ok());
    }

    #[test]
    fn a_user_of_this_host_takes_no_seat_of_another() {
        let seats = seats(10, 2);
        let user = |user| Party { user: Some(user), ..host(1) };
        let idle = seats.enter(user(0), at(0)).unwrap();
        let busy: Vec<Seated> = (0..2).map(|_| seats.enter(user(27001), at(1)).unwrap()).collect();
        busy.iter().for_each(|seated| seated.seat().is_busy(true));
        assert!(seats.enter(user(27001), at(2)).is_err(), "all that one user may have are busy");
        assert!(!idle.seat().is_revoked());
        assert!(!seats.enter(user(0), at(3)).unwrap().has_evicted);
        drop((idle, busy));
        assert!(!seats.holds(host(1).host));
        let _other = seats.enter(user(27001), at(4)).unwrap();
        assert!(seats.holds(host(1).host) && !seats.holds(host(0).host));
    }

    #[test]
    fn hosts_that_may_not_stay_leave_and_are_forgotten() {
        let seats = seats(10, 10);
        let (one, other) = (seats.enter(host(1), at(0)).unwrap(), seats.enter_anyway(host(2)));
        assert!(seats.holds(host(1).host) && seats.holds(host(2).host));
        assert_eq!(seats.keep(|address| address == host(2).host), 1);
        assert!(one.seat().is_revoked() && !other.seat().is_revoked());
        assert!(!seats.holds(host(1).host));
        drop((one, other));
        let table = seats.table.lock();
        assert!(table.seats.is_empty() && table.parties.is_empty());
    }
}
