//! A number of permits that hosts share: one that takes all it can get keeps nobody else waiting.
//!
//! While more than half are free, a permit is a subtraction. From there on they are counted by
//! host, and who waits for one waits by host: one that is given back goes to the host with the
//! fewest, and to the call of it that came first. Of 32 and more permits, one in 32 is reserved for
//! hosts that hold none.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// One permit in so many is reserved for hosts that hold none.
const RESERVED_PART: usize = 32;

#[derive(Debug)]
pub(crate) struct Permits {
    max: usize,
    reserved: usize,
    free: AtomicUsize,
    /// Somebody waits. Written under the lock of `hosts`.
    is_waited_for: AtomicBool,
    /// Guards who holds what, and who waits.
    hosts: Mutex<Hosts>,
}

#[derive(Debug, Default)]
struct Hosts {
    known: HashMap<IpAddr, Host>,
    /// Those of them who wait, by how many they hold, and when they began to wait.
    line: BTreeMap<(usize, u64), IpAddr>,
    waited_ever: u64,
}

#[derive(Debug, Default)]
struct Host {
    /// Permits that were counted.
    held: usize,
    /// Its calls that wait, in their order.
    calls: VecDeque<oneshot::Sender<()>>,
    /// Since when the first of them has been in line.
    since: u64,
}

/// The right to be served, until dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Permit<'p> {
    permits: &'p Permits,
    /// Whose it is, where that was counted.
    host: Option<IpAddr>,
}

/// A call in line; one that was granted and not heard of it gives the permit back.
struct Waiting<'p> {
    permits: &'p Permits,
    host: IpAddr,
    granted: oneshot::Receiver<()>,
}

impl Permits {
    pub(crate) fn new(max: usize) -> Self {
        let max = max.max(1);
        Self {
            max,
            reserved: max / RESERVED_PART,
            free: AtomicUsize::new(max),
            is_waited_for: AtomicBool::new(false),
            hosts: Mutex::default(),
        }
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(&self, host: IpAddr) -> Permit<'_> {
        if !self.is_waited_for.load(Ordering::SeqCst) && self.take(self.max / 2) {
            return Permit { permits: self, host: None };
        }
        let granted = {
            let mut hosts = self.hosts.lock();
            let (granted, receiver) = oneshot::channel();
            hosts.join(host, granted);
            self.grant(&mut hosts);
            receiver
        };
        Waiting { permits: self, host, granted }.permit().await
    }

    /// Takes one if it leaves `rest` at least.
    fn take(&self, rest: usize) -> bool {
        let take = |free: usize| (free > rest).then(|| free - 1);
        self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }

    fn give(&self, host: Option<IpAddr>) {
        let free = self.free.fetch_add(1, Ordering::SeqCst);
        debug_assert!(free < self.max, "a permit is given back once");
        // Who joins the line after this has looked at what is free itself.
        if host.is_some() || self.is_waited_for.load(Ordering::SeqCst) {
            let mut hosts = self.hosts.lock();
            host.into_iter().for_each(|host| hosts.holds(host, |held| held - 1));
            self.grant(&mut hosts);
        }
    }

    /// Serves who waits, as far as there are permits.
    fn grant(&self, hosts: &mut Hosts) {
        while let Some((&(held, _), &host)) = hosts.line.first_key_value() {
            if !self.take(if held == 0 { 0 } else { self.reserved }) {
                break;
            }
            match hosts.next_call(host).is_some_and(|call| call.send(()).is_ok()) {
                true => hosts.holds(host, |held| held + 1),
                // It waits no longer.
                false => drop(self.free.fetch_add(1, Ordering::SeqCst)),
            }
        }
        self.is_waited_for.store(!hosts.line.is_empty(), Ordering::SeqCst);
    }
}

impl Hosts {
    fn join(&mut self, host: IpAddr, call: oneshot::Sender<()>) {
        debug_assert!(self.line.len() <= self.known.len(), "a host stands in line once");
        let known = self.known.entry(host).or_default();
        known.calls.push_back(call);
        if known.calls.len() == 1 {
            self.waited_ever += 1;
            known.since = self.waited_ever;
            self.line.insert((known.held, known.since), host);
        }
    }

    /// Takes the host's first call out of the line.
    fn next_call(&mut self, host: IpAddr) -> Option<oneshot::Sender<()>> {
        let known = self.known.get_mut(&host)?;
        let call = known.calls.pop_front();
        if known.calls.is_empty() {
            self.line.remove(&(known.held, known.since));
        }
        self.forget_idle(host);
        call
    }

    fn holds(&mut self, host: IpAddr, change: impl FnOnce(usize) -> usize) {
        let known = self.known.entry(host).or_default();
        let was_in_line = self.line.remove(&(known.held, known.since)).is_some();
        known.held = change(known.held);
        if was_in_line {
            // Behind others who hold as many.
            self.waited_ever += 1;
            known.since = self.waited_ever;
            self.line.insert((known.held, known.since), host);
        }
        self.forget_idle(host);
    }

    fn forget_idle(&mut self, host: IpAddr) {
        if self.known.get(&host).is_some_and(|known| known.held == 0 && known.calls.is_empty()) {
            self.known.remove(&host);
        }
    }
}

impl<'p> Waiting<'p> {
    async fn permit(mut self) -> Permit<'p> {
        // The sender is dropped only when it has been used.
        let _ = (&mut self.granted).await;
        Permit { permits: self.permits, host: Some(self.host) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.granted.close();
        if self.granted.try_recv().is_ok() {
            self.permits.give(Some(self.host));
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.permits.give(self.host);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::net::Ipv4Addr;
    use std::pin::Pin;

    use futures_util::FutureExt;

    use super::*;

    fn host(number: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
    }

    type Waiting<'p> = Pin<Box<dyn Future<Output = Permit<'p>> + 'p>>;

    /// Those of `count` calls that get a permit at once, and those that wait.
    fn ask(permits: &Permits, number: u8, count: usize) -> (Vec<Permit<'_>>, Vec<Waiting<'_>>) {
        let (mut got, mut waiting): (Vec<_>, Vec<Waiting<'_>>) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let mut waiter: Waiting<'_> = Box::pin(permits.acquire(host(number)));
            match waiter.as_mut().now_or_never() {
                Some(permit) => got.push(permit),
                None => waiting.push(waiter),
            }
        }
        (got, waiting)
    }

    fn free(permits: &Permits) -> usize {
        permits.free.load(Ordering::SeqCst)
    }

    #[test]
    fn one_host_has_all_that_is_not_reserved_and_a_new_one_is_served_at_once() {
        let permits = Permits::new(256);
        let (held, waiting) = ask(&permits, 1, 1000);
        assert_eq!((held.len(), waiting.len(), free(&permits)), (248, 752, 8));
        for _ in 0..100 {
            assert_eq!(ask(&permits, 2, 1).0.len(), 1, "it holds none");
        }
        assert_eq!(ask(&permits, 2, 3).0.len(), 1, "three at once are more than that");
        drop((held, waiting));
        assert_eq!((free(&permits), permits.hosts.lock().known.len()), (256, 0));
        assert!(!permits.is_waited_for.load(Ordering::SeqCst));
    }

    #[test]
    fn a_few_permits_are_all_for_who_asks() {
        for max in [1, 2, 8, 31] {
            let permits = Permits::new(max);
            assert_eq!(ask(&permits, 1, 100).0.len(), max);
        }
        assert_eq!(ask(&Permits::new(0), 1, 3).0.len(), 1);
    }

    #[test]
    fn what_comes_back_goes_to_who_has_fewest_in_the_order_of_asking() {
        let permits = Permits::new(4);
        let (mut held, mut greedy) = ask(&permits, 1, 100);
        let (_, mut second) = ask(&permits, 2, 3);
        let (_, mut third) = ask(&permits, 3, 1);
        let mut served = Vec::new();
        let mut taken = Vec::new();
        for _ in 0..4 {
            held.pop();
            for (number, line) in [(1, &mut greedy), (2, &mut second), (3, &mut third)] {
                if let Some(first) = line.first_mut()
                    && let Some(permit) = first.as_mut().now_or_never()
                {
                    drop(line.remove(0));
                    served.push(number);
                    taken.push(permit);
                }
            }
        }
        // The first host's first two came while half was free, and were not counted.
        assert_eq!(served, [2, 3, 1, 2]);
    }

    #[test]
    fn who_gives_up_waiting_leaves_the_way_clear() {
        let permits = Permits::new(1);
        let (held, waiting) = ask(&permits, 1, 3);
        let (_, mut others) = ask(&permits, 2, 1);
        drop(waiting);
        // Granted, and gone before it has heard of it.
        drop(held);
        drop(others.pop());
        assert_eq!((free(&permits), permits.hosts.lock().known.len()), (1, 0));
        assert_eq!(ask(&permits, 3, 1).0.len(), 1);
    }
}
