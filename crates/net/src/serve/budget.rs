//! Bytes in flight that connections share, and each one's share of them.
//!
//! Who holds something may hold at most as much as is left free for others: one greedy connection
//! gets half of all there is, two get a third each, and n leave one part in n + 1 to whoever comes
//! next. Connections of one host count as one ([`HostShare`]), because they cost a host nothing.
//!
//! Who holds nothing gets one record before all who hold something. When there is not enough it
//! waits in line. Nobody in line holds anything back from others: who can be served is, although
//! somebody who requested more came first, but not more than [`PASSED_MAX`] times. The last quarter
//! is for hosts that hold nothing.
//!
//! Bytes are counted in units of 1 KiB, and taken and given back for a batch of calls at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// One permit stands for so many bytes.
pub(super) const PERMIT_BYTES: usize = 1024;

/// How often others may be served before one who requested more than there was.
const PASSED_MAX: u32 = 64;

/// Less than this at once is not worth remembering.
const PEAK_PERMITS_MIN: u32 = 16 << 10;

/// All there is; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    permits_max: u32,
    free: AtomicU32,
    /// Most that was used since it was last read, when that was much.
    peak: AtomicU32,
    /// Whether somebody is in line. Written by who has the lock of it.
    waited_for: AtomicBool,
    /// Guards who waits, in the order of asking.
    line: Mutex<Line>,
}

/// Who waits.
#[derive(Debug)]
struct Line {
    places: VecDeque<Arc<Place>>,
    /// With less than this free, nobody in line is served. So a line of thousands is not searched
    /// whenever a little is given back.
    least: u32,
    /// No place in line is served with less than this, whoever is before it.
    smallest: u32,
}

/// A place in line.
#[derive(Debug)]
struct Place {
    permits: u32,
    /// So many are left to others.
    floor: u32,
    /// How many have been served before it that came later. Changed under the line's lock.
    passed: AtomicU32,
    /// Guards whether it has been granted, and who is woken then.
    state: Mutex<PlaceState>,
}

#[derive(Debug)]
struct PlaceState {
    granted: bool,
    waker: Waker,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let permits_max = u32::try_from((bytes_max / PERMIT_BYTES).max(1)).unwrap_or(u32::MAX);
        Self(Arc::new(BudgetState {
            permits_max,
            free: AtomicU32::new(permits_max),
            peak: AtomicU32::new(0),
            waited_for: AtomicBool::new(false),
            line: Mutex::new(Line { places: VecDeque::new(), least: u32::MAX, smallest: u32::MAX }),
        }))
    }

    /// What `bytes` count for. More than all there is must still pass, alone.
    pub(crate) fn permits_for(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX).min(self.0.permits_max)
    }

    /// An account that holds nothing yet, of somebody who shares with nobody.
    pub(crate) fn account(&self) -> Account {
        self.account_of(None)
    }

    /// The account of a connection of this host.
    pub(crate) fn account_of(&self, host: Option<Arc<HostShare>>) -> Account {
        Account { budget: self.clone(), host, used: 0, lent: 0, spare: 0, place: None }
    }

    /// Takes what `bytes` count for, if there is so much, until the answer is dropped.
    pub(crate) fn lease(&self, bytes: usize) -> Option<Lent> {
        let permits = self.permits_for(bytes);
        self.take(permits, 0).then(|| Lent { budget: self.clone(), host: None, permits })
    }

    pub(crate) fn bytes_used(&self) -> usize {
        (self.0.permits_max - self.free()) as usize * PERMIT_BYTES
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.0.permits_max as usize * PERMIT_BYTES
    }

    /// Most that was used since it was last read; 0 if that was little.
    pub(crate) fn take_peak_bytes(&self) -> usize {
        self.0.peak.swap(0, Ordering::Relaxed) as usize * PERMIT_BYTES
    }

    /// Whether somebody who holds nothing waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.0.waited_for.load(Ordering::SeqCst)
    }

    fn free(&self) -> u32 {
        self.0.free.load(Ordering::SeqCst)
    }

    fn take(&self, permits: u32, floor: u32) -> bool {
        let least = permits.saturating_add(floor);
        let take = |free: u32| (free >= least).then(|| free - permits);
        self.0.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }

    fn give(&self, permits: u32) {
        let used = self.0.permits_max - self.0.free.fetch_add(permits, Ordering::SeqCst);
        debug_assert!(permits <= used, "{permits} of {used} used permits are given back");
        if used >= PEAK_PERMITS_MIN {
            self.0.peak.fetch_max(used, Ordering::Relaxed);
        }
        // Who joins the line after this has looked at what is free itself.
        if self.is_waited_for() {
            self.grant(&mut self.0.line.lock());
        }
    }

    fn join(&self, permits: u32, floor: u32, waker: &Waker) -> Arc<Place> {
        let state = PlaceState { granted: false, waker: waker.clone() };
        let place = Arc::new(Place {
            permits,
            floor: floor.min(self.0.permits_max - permits),
            passed: AtomicU32::new(0),
            state: Mutex::new(state),
        });
        let mut line = self.0.line.lock();
        line.least = line.least.min(place.least());
        line.smallest = line.smallest.min(place.least());
        line.places.push_back(Arc::clone(&place));
        self.0.waited_for.store(true, Ordering::SeqCst);
        self.grant(&mut line);
        place
    }

    /// Leaves the line; true if it had been granted already.
    fn leave(&self, place: &Arc<Place>) -> bool {
        let mut line = self.0.line.lock();
        let before = line.places.len();
        line.places.retain(|other| !Arc::ptr_eq(other, place));
        let was_granted = line.places.len() == before;
        // Others may have waited behind it.
        self.grant(&mut line);
        was_granted
    }

    /// Serves who waits, as far as there is enough.
    fn grant(&self, line: &mut Line) {
        if !line.places.is_empty() && self.free() < line.least {
            return;
        }
        let (mut at, mut least, mut is_all) = (0, u32::MAX, true);
        while let Some(place) = line.places.get(at) {
            if self.free() < line.smallest {
                (least, is_all) = (line.smallest, false);
                break;
            }
            if self.take(place.permits, place.floor) {
                for passed in line.places.iter().take(at) {
                    passed.passed.fetch_add(1, Ordering::Relaxed);
                }
                line.places.remove(at).into_iter().for_each(|place| place.grant());
                continue;
            }
            least = least.min(place.least());
            // What is reserved for others is no reason to keep others waiting.
            let is_short = self.free() < place.permits;
            if is_short && place.passed.load(Ordering::Relaxed) >= PASSED_MAX {
                // Those behind it wait at least until this is there.
                least = least.min(place.permits);
                is_all = false;
                break;
            }
            at += 1;
        }
        line.least = least;
        if is_all {
            line.smallest = least;
        }
        self.0.waited_for.store(!line.places.is_empty(), Ordering::SeqCst);
    }
}

impl Place {
    fn least(&self) -> u32 {
        self.permits.saturating_add(self.floor)
    }

    fn grant(&self) {
        let mut state = self.state.lock();
        state.granted = true;
        state.waker.wake_by_ref();
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.granted {
            return Poll::Ready(());
        }
        state.waker.clone_from(cx.waker());
        Poll::Pending
    }
}

/// What all connections of one host hold of a budget.
#[derive(Debug, Default)]
pub(crate) struct HostShare(AtomicU32);

impl HostShare {
    fn used(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, permits: u32) {
        self.0.fetch_add(permits, Ordering::Relaxed);
    }

    fn sub(&self, permits: u32) {
        let used = self.0.fetch_sub(permits, Ordering::Relaxed);
        debug_assert!(permits <= used, "a host gives {permits} of {used} permits back");
    }
}

/// What one connection holds.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Budget,
    host: Option<Arc<HostShare>>,
    used: u32,
    /// Of what is used: what goes back to the budget by itself.
    lent: u32,
    /// Taken from the budget, and not used at the moment.
    spare: u32,
    place: Option<Arc<Place>>,
}

impl Account {
    /// Takes `permits`. When it is pending, the task is woken when it is worth asking again, or it
    /// holds something: then that is as soon as it gives something back.
    pub(crate) fn poll_take(&mut self, cx: &mut Context<'_>, permits: u32) -> Poll<()> {
        if self.place.as_ref().is_some_and(|place| place.permits != permits) {
            self.leave_line();
        }
        let place = match self.place.clone() {
            Some(place) => place,
            None if self.try_take(permits) => return Poll::Ready(()),
            None if self.used > 0 => return Poll::Pending,
            None => {
                self.settle();
                let place = self.budget.join(permits, self.floor(), cx.waker());
                Arc::clone(self.place.insert(place))
            }
        };
        std::task::ready!(place.poll(cx));
        self.place = None;
        self.use_more(permits);
        Poll::Ready(())
    }

    /// Takes `permits` if this account's share allows it and nobody waits.
    pub(crate) fn try_take(&mut self, permits: u32) -> bool {
        if self.budget.is_waited_for() && self.spare < permits {
            return false;
        }
        let free = self.budget.free().saturating_add(self.spare);
        let least = match self.used {
            0 => permits.saturating_add(self.floor().min(self.budget.0.permits_max - permits)),
            used => {
                let of_host = self.host.as_ref().map_or(used, |host| host.used().max(used));
                of_host.saturating_add(permits)
            }
        };
        least <= free && self.try_take_over_share(permits)
    }

    /// Takes `permits` if there are so many, whatever the share.
    pub(crate) fn try_take_over_share(&mut self, permits: u32) -> bool {
        if self.spare < permits {
            if !self.budget.take(permits - self.spare, 0) {
                return false;
            }
            self.spare = permits;
        }
        self.spare -= permits;
        self.use_more(permits);
        true
    }

    /// What a first record leaves to others.
    fn floor(&self) -> u32 {
        match &self.host {
            Some(host) if host.used() > 0 => self.budget.0.permits_max / 4,
            _ => 0,
        }
    }

    fn use_more(&mut self, permits: u32) {
        self.used += permits;
        self.host.iter().for_each(|host| host.add(permits));
    }

    /// Waits no longer.
    pub(crate) fn leave_line(&mut self) {
        if let Some(place) = self.place.take()
            && self.budget.leave(&place)
        {
            self.spare += place.permits;
        }
    }

    pub(crate) fn give_back(&mut self, permits: u32) {
        assert!(permits + self.lent <= self.used, "what is lent comes back by itself");
        self.used -= permits;
        self.spare += permits;
        self.host.iter().for_each(|host| host.sub(permits));
    }

    /// Passes `permits` on to something that may outlive the account. They count as used here
    /// until [`Account::returned`].
    pub(crate) fn lend(&mut self, permits: u32) -> Lent {
        self.lent += permits;
        Lent { budget: self.budget.clone(), host: self.host.clone(), permits }
    }

    /// What was lent has come back to the budget.
    pub(crate) fn returned(&mut self, permits: u32) {
        assert!(permits <= self.lent && self.lent <= self.used, "only what was lent returns");
        self.used -= permits;
        self.lent -= permits;
    }

    /// Gives what is spare back to the budget.
    pub(crate) fn settle(&mut self) {
        if self.spare > 0 {
            self.budget.give(std::mem::take(&mut self.spare));
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.leave_line();
        self.give_back(self.used - self.lent);
        self.settle();
    }
}

/// Permits that go back to the budget when this is dropped.
#[derive(Debug)]
pub(crate) struct Lent {
    budget: Budget,
    host: Option<Arc<HostShare>>,
    permits: u32,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.host.iter().for_each(|host| host.sub(self.permits));
        self.budget.give(self.permits);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    /// How many of 1 KiB each an account gets when it takes all it can.
    fn greed(account: &mut Account) -> u32 {
        (0..).take_while(|_| account.try_take(1)).map(|_: u32| 1).sum()
    }

    #[test]
    fn the_greedy_leave_as_much_as_each_of_them_has() {
        let budget = Budget::new(1200 * PERMIT_BYTES);
        let mut accounts: Vec<Account> = (0..3).map(|_| budget.account()).collect();
        let got: Vec<u32> = accounts.iter_mut().map(greed).collect();
        assert_eq!(got, [600, 300, 150]);
        // When the first gives back what is over its share of now, the others get theirs.
        accounts[0].give_back(450);
        accounts[0].settle();
        assert_eq!(greed(&mut accounts[1]) + greed(&mut accounts[2]), 300);
        let used: Vec<u32> = accounts.iter().map(|account| account.used).collect();
        let free = 1200 - used.iter().sum::<u32>();
        assert!(free >= 300, "{used:?}");
        for account in &mut accounts {
            account.give_back(account.used);
        }
        drop(accounts);
        assert_eq!(budget.bytes_used(), 0);
    }

    #[test]
    fn who_has_nothing_gets_one_record_however_large_and_in_turn() {
        let budget = Budget::new(10 * PERMIT_BYTES);
        let (mut first, mut second) = (budget.account(), budget.account());
        let all = budget.permits_for(1 << 30);
        assert!(first.poll_take(&mut cx(), 8).is_ready());
        assert!(first.poll_take(&mut cx(), 8).is_pending(), "it has something");
        assert!(second.poll_take(&mut cx(), all).is_pending());
        first.give_back(8);
        first.settle();
        // The second was before it.
        assert!(first.poll_take(&mut cx(), 1).is_pending());
        first.leave_line();
        assert!(second.poll_take(&mut cx(), all).is_ready());
        second.give_back(all);
        drop(second);
        assert!(first.poll_take(&mut cx(), 1).is_ready());
        first.give_back(1);
        drop(first);
        assert_eq!(budget.bytes_used(), 0);
    }

    #[test]
    fn who_asks_for_little_does_not_wait_behind_who_asks_for_much() {
        let budget = Budget::new(10 * PERMIT_BYTES);
        let mut holder = budget.account();
        assert!(holder.try_take(9));
        let mut much = budget.account();
        assert!(much.poll_take(&mut cx(), 8).is_pending());
        for _ in 0..PASSED_MAX {
            let mut little = budget.account();
            assert!(little.poll_take(&mut cx(), 1).is_ready());
        }
        // But not for ever.
        let mut little = budget.account();
        assert!(little.poll_take(&mut cx(), 1).is_pending());
        holder.give_back(9);
        holder.settle();
        assert!(much.poll_take(&mut cx(), 8).is_ready());
        assert!(little.poll_take(&mut cx(), 1).is_ready());
        drop((holder, much, little));
        assert_eq!(budget.bytes_used(), 0);
    }

    #[test]
    fn who_leaves_the_line_lets_the_others_through() {
        let budget = Budget::new(10 * PERMIT_BYTES);
        let mut holder = budget.account();
        assert!(holder.try_take(10));
        let (mut first, mut second) = (budget.account(), budget.account());
        assert!(first.poll_take(&mut cx(), 10).is_pending());
        assert!(second.poll_take(&mut cx(), 10).is_pending());
        holder.give_back(10);
        holder.settle();
        // It has been granted, and is not taken.
        drop(first);
        assert!(second.poll_take(&mut cx(), 10).is_ready());
        assert!(!budget.is_waited_for());
    }

    #[test]
    fn a_quarter_is_for_hosts_that_hold_nothing() {
        let budget = Budget::new(100 * PERMIT_BYTES);
        let host: Arc<HostShare> = Arc::default();
        let mut greedy: Vec<Account> =
            (0..100).map(|_| budget.account_of(Some(Arc::clone(&host)))).collect();
        let got: u32 = greedy.iter_mut().map(greed).sum();
        assert_eq!(got, 75);
        let mut same = budget.account_of(Some(Arc::clone(&host)));
        assert!(same.poll_take(&mut cx(), 20).is_pending());
        // What one host may not have keeps no other waiting.
        let mut other = budget.account_of(Some(Arc::default()));
        assert!(other.poll_take(&mut cx(), 20).is_ready());
        drop(other);
        drop(greedy);
        assert!(same.poll_take(&mut cx(), 20).is_ready());
        drop(same);
        assert_eq!((budget.bytes_used(), host.used()), (0, 0));
    }

    #[test]
    fn what_is_lent_comes_back_when_its_borrower_is_done() {
        let budget = Budget::new(10 * PERMIT_BYTES);
        let mut account = budget.account();
        assert!(account.try_take(4));
        let lent = account.lend(4);
        drop(account);
        assert_eq!(budget.bytes_used(), 4 * PERMIT_BYTES);
        drop(lent);
        assert_eq!(budget.bytes_used(), 0);
    }
}
