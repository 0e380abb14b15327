//! A server's bytes in flight, in two budgets: an eighth is reserved for small calls.
//!
//! A call whose record and reply take at most [`SMALL_BYTES_MAX`] is paid from the reserve, and
//! from what is for all calls only where its connection has had its share of the reserve. So
//! neither data nor who does not take them keeps GETATTRs waiting.
//!
//! A call's bytes go on to its reply: they come back when the socket has taken it.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::budget::{Account, Budget, HostShare, Lent, PERMIT_BYTES};
use crate::transport::buffer::{COPIED_BYTES_MAX, SMALL_BYTES};

/// A small call takes no more than this: a record in a small slab, or a reply with 64 KiB of data.
pub(crate) const SMALL_BYTES_MAX: usize = SMALL_BYTES + COPIED_BYTES_MAX;

/// One part in so many is reserved.
const RESERVED_PART: usize = 8;

/// One part in so many that is free is little.
const SHORT_PART: usize = 8;

/// What all connections of a server share; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    small: Budget,
    large: Budget,
    /// There is no reserve where it would not hold a single call.
    has_reserve: bool,
}

/// What was taken, and of which budget.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Taken {
    permits: u32,
    is_reserved: bool,
}

impl Budgets {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let reserve = bytes_max / RESERVED_PART;
        let has_reserve = reserve >= SMALL_BYTES_MAX;
        let large = if has_reserve { bytes_max - reserve } else { bytes_max };
        Self { small: Budget::new(reserve), large: Budget::new(large), has_reserve }
    }

    /// The accounts of a connection, with what its host holds of the budget for all calls.
    pub(crate) fn accounts(&self, host: Option<Arc<HostShare>>) -> Accounts {
        Accounts {
            budgets: self.clone(),
            small: self.small.account(),
            large: self.large.account_of(host),
            unsent: [0; 2],
        }
    }

    pub(crate) fn bytes_used(&self) -> usize {
        self.small.bytes_used() + self.large.bytes_used()
    }

    /// Whether somebody waits, or soon will.
    pub(crate) fn is_short(&self) -> bool {
        let left = self.large.bytes_max() - self.large.bytes_used();
        left < self.large.bytes_max() / SHORT_PART
            || self.large.is_waited_for()
            || self.small.is_waited_for()
    }

    /// Most that was used since it was last read.
    pub(crate) fn take_peak_bytes(&self) -> usize {
        self.large.take_peak_bytes()
    }
}

/// What one connection holds.
#[derive(Debug)]
pub(crate) struct Accounts {
    budgets: Budgets,
    small: Account,
    large: Account,
    /// For replies that the socket has not taken yet: permits of the reserve, and of the rest.
    unsent: [u32; 2],
}

/// What came of charging for replies that were not sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Charged {
    /// They are paid for.
    Paid,
    /// And something came back.
    PaidBack,
    /// There was not enough.
    Overdrawn,
}

impl Accounts {
    /// Takes what `bytes` count for, if this connection's share allows it.
    pub(crate) fn try_take(&mut self, bytes: usize) -> Option<Taken> {
        if self.is_small(bytes) {
            let permits = self.budgets.small.permits_for(bytes);
            if self.small.try_take(permits) {
                return Some(Taken { permits, is_reserved: true });
            }
        }
        let permits = self.budgets.large.permits_for(bytes);
        self.large.try_take(permits).then_some(Taken { permits, is_reserved: false })
    }

    /// The same, and waits for it: see [`Account::poll_take`]. To be called with the same number
    /// until it is had.
    pub(crate) fn poll_take(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<Taken> {
        if let Some(taken) = self.try_take(bytes) {
            self.leave_line();
            return Poll::Ready(taken);
        }
        let is_reserved = self.is_small(bytes);
        let (budget, account) = match is_reserved {
            true => (&self.budgets.small, &mut self.small),
            false => (&self.budgets.large, &mut self.large),
        };
        let permits = budget.permits_for(bytes);
        ready!(account.poll_take(cx, permits));
        Poll::Ready(Taken { permits, is_reserved })
    }

    fn is_small(&self, bytes: usize) -> bool {
        self.budgets.has_reserve && bytes <= SMALL_BYTES_MAX
    }

    fn account(&mut self, taken: Taken) -> &mut Account {
        if taken.is_reserved { &mut self.small } else { &mut self.large }
    }

    pub(crate) fn give_back(&mut self, taken: Taken) {
        self.account(taken).give_back(taken.permits);
    }

    /// Keeps what a call has taken for its reply, until [`Accounts::charge_unsent`].
    pub(crate) fn keep_for_reply(&mut self, taken: Taken) {
        self.unsent[usize::from(!taken.is_reserved)] += taken.permits;
    }

    /// See [`Account::lend`].
    pub(crate) fn lend(&mut self, taken: Taken) -> Lent {
        self.account(taken).lend(taken.permits)
    }

    /// See [`Account::returned`].
    pub(crate) fn returned(&mut self, taken: Taken) {
        self.account(taken).returned(taken.permits);
    }

    /// Waits no longer.
    pub(crate) fn leave_line(&mut self) {
        self.small.leave_line();
        self.large.leave_line();
    }

    /// Holds what so many bytes of unsent replies count for, and gives the rest back.
    pub(crate) fn charge_unsent(&mut self, bytes: usize) -> Charged {
        let is_reserved = self.is_small(bytes);
        let needed = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX);
        let held = self.unsent[0] + self.unsent[1];
        if held < needed {
            let more = needed - held;
            let account = if is_reserved { &mut self.small } else { &mut self.large };
            if !account.try_take_over_share(more) {
                return Charged::Overdrawn;
            }
            self.unsent[usize::from(!is_reserved)] += more;
            return Charged::Paid;
        }
        // What is left to pay for should be of the budget that is for so much.
        let mut surplus = held - needed;
        for at in if is_reserved { [1, 0] } else { [0, 1] } {
            let permits = surplus.min(self.unsent[at]);
            self.unsent[at] -= permits;
            surplus -= permits;
            if permits > 0 {
                self.give_back(Taken { permits, is_reserved: at == 0 });
            }
        }
        if held > needed { Charged::PaidBack } else { Charged::Paid }
    }

    /// Gives what is spare back to the budgets.
    pub(crate) fn settle(&mut self) {
        self.small.settle();
        self.large.settle();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    const MIB: usize = 1 << 20;

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn small_calls_are_paid_from_a_reserve_that_large_ones_cannot_touch() {
        let budgets = Budgets::new(64 * MIB);
        let mut readers: Vec<Accounts> = (0..100).map(|_| budgets.accounts(None)).collect();
        for reader in &mut readers {
            while reader.try_take(MIB + 200).is_some() {}
        }
        assert!(budgets.is_short());
        let used = budgets.bytes_used();
        assert!((55 * MIB..=56 * MIB).contains(&used), "{used}");
        // Somebody waits for a MiB, and 10 others for small ones do not wait behind.
        assert!(budgets.accounts(None).poll_take(&mut cx(), MIB).is_pending());
        for _ in 0..10 {
            let mut small = budgets.accounts(None);
            let taken = small.try_take(300).unwrap();
            assert!(taken.is_reserved);
            small.give_back(taken);
        }
    }

    #[test]
    fn many_connections_of_one_host_hold_no_more_than_one_would() {
        let budgets = Budgets::new(64 * MIB);
        let host: Arc<HostShare> = Arc::default();
        let mut greedy: Vec<Accounts> =
            (0..30).map(|_| budgets.accounts(Some(Arc::clone(&host)))).collect();
        for accounts in &mut greedy {
            while accounts.try_take(MIB).is_some() {}
        }
        // Half of what is not reserved; and one each for those who hold nothing, as long as a
        // quarter is left to others.
        assert_eq!(budgets.bytes_used(), 42 * MIB);
        // Of another host there is no first record that has to wait, and a share of the rest.
        let mut other = budgets.accounts(Some(Arc::default()));
        assert_eq!((0..).take_while(|_| other.try_take(MIB).is_some()).count(), 7);
    }

    #[test]
    fn a_reply_is_paid_with_what_its_call_took() {
        let budgets = Budgets::new(8 * MIB);
        let mut accounts = budgets.accounts(None);
        let taken = accounts.try_take(MIB + 1024).unwrap();
        accounts.keep_for_reply(taken);
        assert_eq!(accounts.charge_unsent(MIB), Charged::PaidBack);
        accounts.settle();
        assert_eq!(budgets.bytes_used(), MIB);
        // The rest is so little that it belongs to the reserve, but is paid for already.
        assert_eq!(accounts.charge_unsent(5000), Charged::PaidBack);
        assert_eq!(accounts.charge_unsent(5000), Charged::Paid);
        accounts.settle();
        assert_eq!(budgets.bytes_used(), 5 << 10);
        // What nobody had announced is paid for, too, while there is enough.
        assert_eq!(accounts.charge_unsent(2 * MIB), Charged::Paid);
        assert_eq!(accounts.charge_unsent(20 * MIB), Charged::Overdrawn);
        assert_eq!(accounts.charge_unsent(0), Charged::PaidBack);
        accounts.settle();
        assert_eq!(budgets.bytes_used(), 0);
    }

    #[test]
    fn where_a_reserve_would_hold_no_call_there_is_none() {
        let budgets = Budgets::new(4096);
        let mut accounts = budgets.accounts(None);
        assert!(!accounts.try_take(4096).unwrap().is_reserved);
        assert_eq!(accounts.try_take(1), None);
        assert_eq!(budgets.bytes_used(), 4096);
    }
}
