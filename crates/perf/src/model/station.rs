//! A station of queueing theory: m servers and one line before them, first come, first served.
//!
//! It decides when a job is done, and nothing else: a processor with m cores, a disk that works on
//! m requests at a time. The same type predicts (in models) and delays (in worlds).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::{Instant, Nanos};

/// See the module's head. Jobs have to be given in the order of their times.
#[derive(Clone, Debug)]
pub struct Station {
    servers: usize,
    /// Until when each server that ever worked has work to do; at most one entry for each server.
    busy_until: BinaryHeap<Reverse<Instant>>,
    busy: Nanos,
    jobs: u64,
    waited: Nanos,
}

impl Station {
    /// `servers` of 0 are taken as 1.
    pub fn new(servers: usize) -> Self {
        Self {
            servers: servers.max(1),
            busy_until: BinaryHeap::new(),
            busy: Nanos::ZERO,
            jobs: 0,
            waited: Nanos::ZERO,
        }
    }

    /// When a job that comes at `now`, and has to be served for so long, is done.
    pub fn claim(&mut self, now: Instant, service: Nanos) -> Instant {
        self.claim_with(now, |_| service)
    }

    /// As [`Self::claim`], where how long it takes depends on when it begins.
    pub fn claim_with(&mut self, now: Instant, service: impl FnOnce(Instant) -> Nanos) -> Instant {
        let free_at = match self.busy_until.peek() {
            Some(&Reverse(first)) if self.busy_until.len() == self.servers => {
                self.busy_until.pop();
                first
            }
            // There are idle servers; one that has been busy before is as good.
            Some(&Reverse(first)) if first <= now => {
                self.busy_until.pop();
                first
            }
            _ => now,
        };
        let begins = now.max(free_at);
        let service = service(begins);
        let done = begins + service;
        self.busy_until.push(Reverse(done));
        self.busy += service;
        self.waited += begins.since(now);
        self.jobs += 1;
        done
    }

    /// When a job is done that goes before all that wait, and interrupts what is being served: the
    /// second part of a job that has waited already. What was claimed before keeps its times; what
    /// comes later is put off.
    pub fn claim_ahead(&mut self, now: Instant, service: Nanos) -> Instant {
        let free_at = match self.busy_until.peek() {
            Some(&Reverse(first)) if self.busy_until.len() == self.servers || first <= now => {
                self.busy_until.pop();
                first
            }
            _ => now,
        };
        self.busy_until.push(Reverse(now.max(free_at) + service));
        self.busy += service;
        self.jobs += 1;
        now + service
    }

    pub fn servers(&self) -> usize {
        self.servers
    }

    /// Servers that have work at `now`.
    pub fn busy_at(&self, now: Instant) -> usize {
        self.busy_until.iter().filter(|Reverse(until)| *until > now).count()
    }

    /// When the last of the jobs given is done.
    pub fn idle_at(&self) -> Instant {
        self.busy_until.iter().map(|Reverse(until)| *until).max().unwrap_or(Instant::EPOCH)
    }

    /// Work given so far, over all servers; some of it may lie ahead.
    pub fn busy(&self) -> Nanos {
        self.busy
    }

    /// How long all jobs waited in the line, together.
    pub fn waited(&self) -> Nanos {
        self.waited
    }

    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Of it, what is done by `now`.
    pub fn busy_by(&self, now: Instant) -> Nanos {
        let ahead = self.busy_until.iter().map(|Reverse(until)| until.since(now));
        self.busy - ahead.fold(Nanos::ZERO, |sum, span| sum + span)
    }

    /// Share of the servers' time from the epoch to `now` in which they worked, of 1.
    pub fn utilization(&self, now: Instant) -> f64 {
        let capacity = now.since(Instant::EPOCH).as_secs_f64() * self.servers as f64;
        if capacity > 0.0 { self.busy_by(now).as_secs_f64() / capacity } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done_at(station: &mut Station, jobs: &[(u64, u64)]) -> Vec<u64> {
        let claim = |&(now, service)| {
            station.claim(Instant::from_nanos(now), Nanos::from_nanos(service)).as_nanos()
        };
        jobs.iter().map(claim).collect()
    }

    #[test]
    fn one_server_takes_one_job_after_the_other() {
        let mut station = Station::new(1);
        assert_eq!(done_at(&mut station, &[(0, 10), (0, 10), (5, 1), (100, 3)]), [10, 20, 21, 103]);
        assert_eq!(station.busy(), Nanos::from_nanos(24));
        assert_eq!(station.waited(), Nanos::from_nanos(10 + 15));
        assert_eq!(station.jobs(), 4);
    }

    #[test]
    fn the_first_of_several_servers_that_is_free_takes_the_next_job() {
        let mut station = Station::new(2);
        assert_eq!(done_at(&mut station, &[(0, 10), (0, 4), (1, 4), (9, 4)]), [10, 4, 8, 13]);
        assert_eq!(station.busy_at(Instant::from_nanos(11)), 1);
        assert_eq!(station.idle_at(), Instant::from_nanos(13));
    }

    #[test]
    fn what_goes_ahead_waits_for_nobody_and_puts_off_who_comes_later() {
        let mut station = Station::new(1);
        assert_eq!(done_at(&mut station, &[(0, 10), (0, 10)]), [10, 20]);
        let ahead = station.claim_ahead(Instant::from_nanos(5), Nanos::from_nanos(3));
        assert_eq!(ahead.as_nanos(), 8);
        assert_eq!(done_at(&mut station, &[(6, 1)]), [24]);
        assert_eq!(station.busy(), Nanos::from_nanos(24));
        let mut idle = Station::new(2);
        idle.claim_ahead(Instant::from_nanos(5), Nanos::from_nanos(3));
        assert_eq!(done_at(&mut idle, &[(6, 1)]), [7]);
    }

    #[test]
    fn work_that_lies_ahead_is_no_utilization_yet() {
        let mut station = Station::new(2);
        done_at(&mut station, &[(0, 100), (0, 20)]);
        let close = |now, share: f64| {
            assert!((station.utilization(Instant::from_nanos(now)) - share).abs() < 1e-9);
        };
        close(10, 1.0);
        close(40, 60.0 / 80.0);
        close(240, 120.0 / 480.0);
    }
}
