//! The bytes in flight that all connections of a server share, and each one's share of them.
//!
//! Who holds something may hold at most as much as is left free for others: one greedy connection
//! gets half of all there is, two get a third each, and n leave one part in n + 1 to whoever comes
//! next. Who holds nothing always gets one record, in the order of asking when there is not enough.
//!
//! Bytes are counted in units of 1 KiB, and taken and given back for a batch of calls at a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// One permit stands for so many bytes.
const PERMIT_BYTES: usize = 1024;

/// All there is; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    permits_max: u32,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let permits = (bytes_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        let permits_max = u32::try_from(permits).unwrap_or(u32::MAX);
        Self { permits: Arc::new(Semaphore::new(permits_max as usize)), permits_max }
    }

    /// What `bytes` count for. More than all there is must still pass, alone.
    pub(crate) fn permits_for(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX).min(self.permits_max)
    }

    /// An account that holds nothing yet.
    pub(crate) fn account(&self) -> Account {
        Account { budget: self.clone(), used: 0, lent: 0, spare: 0, waiting: None }
    }

    /// Takes what `bytes` count for, if there is so much, until the answer is dropped.
    pub(crate) fn lease(&self, bytes: usize) -> Option<Lent> {
        let permits = self.permits_for(bytes);
        self.permits.try_acquire_many(permits).ok()?.forget();
        Some(Lent { budget: self.clone(), permits })
    }

    pub(crate) fn bytes_used(&self) -> usize {
        (self.permits_max as usize - self.permits.available_permits()) * PERMIT_BYTES
    }
}

type Acquire = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// What one connection holds.
pub(crate) struct Account {
    budget: Budget,
    used: u32,
    /// Of what is used: what goes back to the budget by itself.
    lent: u32,
    /// Taken from the budget, and not used at the moment.
    spare: u32,
    /// In line for so many, with nothing in hand.
    waiting: Option<(u32, Acquire)>,
}

impl Account {
    /// Takes `permits`. When it is pending, the task is woken when it is worth asking again, or it
    /// holds something: then that is as soon as it gives something back.
    pub(crate) fn poll_take(&mut self, cx: &mut Context<'_>, permits: u32) -> Poll<()> {
        if self.waiting.is_none() {
            if self.try_take(permits) {
                return Poll::Ready(());
            }
            if self.used > 0 {
                return Poll::Pending;
            }
            self.settle();
            let acquire = Arc::clone(&self.budget.permits).acquire_many_owned(permits);
            self.waiting = Some((permits, Box::pin(acquire)));
        }
        let Some((count, acquire)) = &mut self.waiting else {
            return Poll::Pending;
        };
        let count = *count;
        if let Ok(permit) = std::task::ready!(acquire.as_mut().poll(cx)) {
            permit.forget();
            self.spare += count;
        }
        self.waiting = None;
        // The semaphore is never closed, and the same number is asked for until it is had.
        self.spare -= permits.min(self.spare);
        self.used += permits;
        Poll::Ready(())
    }

    /// Takes `permits` if this account's share allows it.
    pub(crate) fn try_take(&mut self, permits: u32) -> bool {
        if self.used > 0 {
            let free = self.budget.permits.available_permits() + self.spare as usize;
            if self.used as usize + permits as usize > free {
                return false;
            }
        }
        self.try_take_over_share(permits)
    }

    /// Takes `permits` if there are so many, whatever the share.
    pub(crate) fn try_take_over_share(&mut self, permits: u32) -> bool {
        if self.spare < permits {
            let Ok(taken) = self.budget.permits.try_acquire_many(permits - self.spare) else {
                return false;
            };
            taken.forget();
            self.spare = permits;
        }
        self.spare -= permits;
        self.used += permits;
        true
    }

    /// Waits no longer.
    pub(crate) fn leave_line(&mut self) {
        self.waiting = None;
    }

    pub(crate) fn give_back(&mut self, permits: u32) {
        self.used -= permits;
        self.spare += permits;
    }

    /// Hands `permits` over to something that may outlive the account. They count as used here
    /// until [`Account::returned`].
    pub(crate) fn lend(&mut self, permits: u32) -> Lent {
        self.lent += permits;
        Lent { budget: self.budget.clone(), permits }
    }

    /// What was lent has come back to the budget.
    pub(crate) fn returned(&mut self, permits: u32) {
        self.used -= permits;
        self.lent -= permits;
    }

    /// Gives what is spare back to the budget.
    pub(crate) fn settle(&mut self) {
        if self.spare > 0 {
            self.budget.permits.add_permits(self.spare as usize);
            self.spare = 0;
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.spare += self.used - self.lent;
        self.settle();
    }
}

/// Permits that go back to the budget when this is dropped.
#[derive(Debug)]
pub(crate) struct Lent {
    budget: Budget,
    permits: u32,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.budget.permits.add_permits(self.permits as usize);
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
