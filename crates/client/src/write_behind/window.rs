//! How many calls to keep outstanding: a decision without I/O, from throughput and response time.
//!
//! The window goes over a ladder of numbers, each a third or a half above the one below. For each
//! rung it keeps the throughput that was measured there, and it stands on the lowest rung that
//! gives at least [`ENOUGH`] of the best: a number beyond that buys nothing but response time.
//! First it doubles until doubling pays no more; then it stays, and now and then tries the rung
//! above and the one below, ever more rarely while nothing changes.
//!
//! A measurement counts whole rounds, a round being one response time: it begins when a call that
//! was sent after the window changed is answered, so that what it counts is the work of this
//! window, and it ends at the end of a round. A measurement during which there was not enough to
//! send says nothing about the path and is begun again.
//!
//! Why not simply delivery rate times least response time: the least response time is that of an
//! idle path. Where a call's time varies (threads, disks), calls under load take longer without
//! being queued, the product is too small, and a window that follows it spirals down. But it says
//! what is too much: throughput is noisy, and a window that believes every lucky measurement
//! climbs. So it never goes beyond [`TOO_MUCH`] times the product, with the least *mean* of a
//! measurement, which is allowed to grow slowly so that a path may become longer.

use perf::units::{Instant, Nanos};

/// The numbers of calls that are tried.
pub(super) const LADDER: [u32; 20] =
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];

/// Where the search begins: eight calls. A distant server is worth that many, and a near one does
/// not mind them for a moment.
const FIRST_RUNG: usize = 5;

/// A rung is as good as the best when it gives this share of its throughput.
const ENOUGH: f64 = 0.97;

/// Doubling pays when it gives this much more. Guess: half of a true doubling is 1.5.
const DOUBLING_PAYS: f64 = 1.15;

/// A change of throughput where we stand, beyond which what is known of other rungs is scaled.
const PATH_CHANGED: f64 = 0.3;

/// Times delivery rate and least mean response time that no window goes beyond.
const TOO_MUCH: f64 = 4.0;

/// How much the least mean response time grows with each measurement that is above it.
const FORGETTING: f64 = 1.1;

/// Measurements at home between two trials, while nothing changes: at most so many.
const PATIENCE_MAX: u32 = 16;

/// How many calls may be outstanding.
#[derive(Debug)]
pub(super) struct Window(Kind);

#[derive(Debug)]
enum Kind {
    Fixed(u32),
    Search(Box<Search>),
}

#[derive(Debug)]
struct Search {
    /// Rungs in use; the window never stands beyond them.
    rungs: usize,
    /// Bytes per second where measured.
    rates: [Option<f64>; LADDER.len()],
    /// The rung in force.
    at: usize,
    /// The rung to come back to after a trial.
    home: usize,
    phase: Phase,
    measuring: Measuring,
    /// Seconds; the least mean of a measurement.
    least_response: f64,
    /// The highest rung that is not too much.
    ceiling: usize,
    /// The last measurement at home was far from what was known.
    was_surprised: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Doubling; how many doublings in a row did not pay.
    Start {
        unpaid: u32,
    },
    /// Standing at home.
    Home {
        left: u32,
        patience: u32,
        next_up: bool,
    },
    Trial {
        patience: u32,
        up: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Measuring {
    /// Until a call that was sent after this is answered.
    Settling {
        since: Instant,
    },
    Counting(Count),
}

#[derive(Clone, Copy, Debug)]
struct Count {
    from: Instant,
    round: Instant,
    rounds: u32,
    replies: u32,
    bytes: u64,
    /// Sum of the response times.
    responses: Nanos,
}

impl Window {
    pub(super) fn fixed(outstanding: u32) -> Self {
        Self(Kind::Fixed(outstanding.max(1)))
    }

    /// Searches; never beyond `outstanding_max`.
    pub(super) fn searching(outstanding_max: u32) -> Self {
        let rungs = LADDER.iter().filter(|&&rung| rung <= outstanding_max.max(1)).count().max(1);
        let at = FIRST_RUNG.min(rungs - 1);
        Self(Kind::Search(Box::new(Search {
            rungs,
            rates: [None; LADDER.len()],
            at,
            home: at,
            phase: Phase::Start { unpaid: 0 },
            measuring: Measuring::Settling { since: Instant::EPOCH },
            least_response: f64::INFINITY,
            ceiling: rungs - 1,
            was_surprised: false,
        })))
    }

    /// Calls that may be outstanding now.
    pub(super) fn limit(&self) -> u32 {
        match &self.0 {
            Kind::Fixed(outstanding) => *outstanding,
            Kind::Search(search) => LADDER[search.at],
        }
    }

    /// There was room for a call and nothing to send.
    pub(super) fn on_idle(&mut self, now: Instant) {
        if let Kind::Search(search) = &mut self.0 {
            search.measuring = Measuring::Settling { since: now };
        }
    }

    /// A call that was sent then has been answered now, and took `bytes` there.
    pub(super) fn on_reply(&mut self, sent: Instant, now: Instant, bytes: u64) {
        if let Kind::Search(search) = &mut self.0 {
            search.on_reply(sent, now, bytes);
        }
    }
}

impl Search {
    fn on_reply(&mut self, sent: Instant, now: Instant, bytes: u64) {
        let count = match &mut self.measuring {
            Measuring::Settling { since } => {
                if sent >= *since {
                    self.measuring = Measuring::Counting(Count {
                        from: now,
                        round: now,
                        rounds: 0,
                        replies: 0,
                        bytes: 0,
                        responses: Nanos::ZERO,
                    });
                }
                return;
            }
            Measuring::Counting(count) => count,
        };
        count.replies += 1;
        count.bytes += bytes;
        count.responses += now.since(sent);
        if sent < count.round {
            return;
        }
        count.round = now;
        count.rounds += 1;
        // Of some milliseconds, because threads are late by fractions of one.
        let (least_rounds, least_replies, least_span) = match self.phase {
            Phase::Start { .. } => (1, 16, Nanos::from_millis(1)),
            Phase::Home { .. } | Phase::Trial { .. } => (2, 32, Nanos::from_millis(4)),
        };
        let (count, span) = (*count, now.since(count.from));
        let is_enough = count.rounds >= least_rounds && count.replies >= least_replies;
        if is_enough && span >= least_span && span > Nanos::ZERO {
            self.measuring = Measuring::Settling { since: now };
            self.limit_by_response(&count, span);
            self.on_measured(count.bytes as f64 / span.as_secs_f64());
        }
    }

    /// Notes what is too much.
    fn limit_by_response(&mut self, count: &Count, span: Nanos) {
        let replies = f64::from(count.replies);
        let response = count.responses.as_secs_f64() / replies;
        self.least_response = response.min(self.least_response * FORGETTING);
        let product = replies / span.as_secs_f64() * self.least_response;
        let too_much = TOO_MUCH * product.max(1.0);
        let is_fine = |rung: &&u32| f64::from(**rung) <= too_much;
        self.ceiling = LADDER[..self.rungs].iter().take_while(is_fine).count().max(1) - 1;
    }

    fn on_measured(&mut self, rate: f64) {
        debug_assert!(self.at.max(self.home).max(self.ceiling) < self.rungs);
        self.learn(rate);
        match self.phase {
            Phase::Start { unpaid } => self.after_doubling(rate, unpaid),
            Phase::Home { left, patience, next_up } => {
                let best = self.lowest_that_is_enough();
                if best != self.home {
                    self.go_home(best, 1, best > self.home);
                } else if left > 1 {
                    self.phase = Phase::Home { left: left - 1, patience, next_up };
                } else {
                    self.try_neighbour(patience, next_up);
                }
            }
            Phase::Trial { patience, up } => {
                let best = self.lowest_that_is_enough();
                if best == self.home {
                    self.go_home(best, (patience * 2).min(PATIENCE_MAX), !up);
                } else {
                    // On in the direction that paid.
                    self.go_home(best, 1, best > self.home);
                }
            }
        }
    }

    fn after_doubling(&mut self, rate: f64, unpaid: u32) {
        let half = self.at.checked_sub(2).and_then(|rung| self.rates[rung]);
        let pays = half.is_none_or(|half| rate >= half * DOUBLING_PAYS);
        let unpaid = if pays { 0 } else { unpaid + 1 };
        if unpaid >= 2 || self.at >= self.ceiling {
            let best = self.lowest_that_is_enough();
            self.go_home(best, 1, false);
        } else {
            self.phase = Phase::Start { unpaid };
            // Two rungs are twice as many from four on.
            self.at = (self.at + 2).min(self.ceiling);
        }
    }

    fn go_home(&mut self, home: usize, patience: u32, next_up: bool) {
        self.home = home;
        self.at = home;
        self.phase = Phase::Home { left: patience, patience, next_up };
    }

    fn try_neighbour(&mut self, patience: u32, up: bool) {
        let up = (up && self.home < self.ceiling) || self.home == 0;
        let neighbour = if up { (self.home + 1).min(self.ceiling) } else { self.home - 1 };
        self.at = neighbour;
        self.phase = Phase::Trial { patience, up };
    }

    /// Notes what this rung gives. When that has changed much where we stand, twice in a row, the
    /// path has, and what is known of the other rungs changes in proportion.
    fn learn(&mut self, rate: f64) {
        let at = self.at;
        let Some(known) = self.rates[at].filter(|known| *known > 0.0) else {
            self.rates[at] = Some(rate);
            return;
        };
        let ratio = rate / known;
        let is_surprise = at == self.home && (ratio - 1.0).abs() > PATH_CHANGED;
        if is_surprise && std::mem::replace(&mut self.was_surprised, true) {
            self.rates.iter_mut().flatten().for_each(|other| *other *= ratio);
        } else {
            self.rates[at] = Some((known + rate) / 2.0);
        }
        if at == self.home {
            self.was_surprised = is_surprise;
        }
    }

    fn lowest_that_is_enough(&self) -> usize {
        let best = self.rates.iter().flatten().fold(0.0, |best: f64, rate| best.max(*rate));
        let is_enough = |rate: &Option<f64>| rate.is_some_and(|rate| rate >= best * ENOUGH);
        self.rates.iter().position(is_enough).unwrap_or(self.at).min(self.ceiling)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::*;

    /// A path that takes one call every `service` and adds `latency` to each.
    struct Path {
        service: Nanos,
        latency: Nanos,
        free_at: Instant,
        under_way: BinaryHeap<Reverse<(Instant, Instant)>>,
        now: Instant,
    }

    impl Path {
        fn new(service_us: u64, latency_us: u64) -> Self {
            Self {
                service: Nanos::from_micros(service_us),
                latency: Nanos::from_micros(latency_us),
                free_at: Instant::EPOCH,
                under_way: BinaryHeap::new(),
                now: Instant::EPOCH,
            }
        }

        /// Keeps the window full for `replies`; gives replies per second.
        fn run(&mut self, window: &mut Window, replies: u32) -> f64 {
            let begun = self.now;
            for _ in 0..replies {
                while self.under_way.len() < window.limit() as usize {
                    self.free_at = self.free_at.max(self.now) + self.service;
                    self.under_way.push(Reverse((self.free_at + self.latency, self.now)));
                }
                let Reverse((at, sent)) = self.under_way.pop().unwrap();
                self.now = self.now.max(at);
                window.on_reply(sent, self.now, 8192);
            }
            f64::from(replies) / self.now.since(begun).as_secs_f64()
        }
    }

    #[test]
    fn the_window_ends_at_the_lowest_rung_that_fills_the_path() {
        // (service, latency) in microseconds, and the least number that fills the path.
        for (service, latency) in [
            (65_u64, 20_u64),
            (65, 200),
            (65, 2_000),
            (65, 20_000),
            (7, 20),
            (7, 2_000),
            (650, 100),
        ] {
            let needed = u32::try_from((service + latency).div_ceil(service)).unwrap();
            let mut path = Path::new(service, latency);
            let mut window = Window::searching(1024);
            path.run(&mut window, 60_000);
            let rate = path.run(&mut window, 60_000);
            let Kind::Search(search) = &window.0 else { panic!() };
            let home = LADDER[search.home];
            let best = 1e6 / service as f64;
            assert!(rate >= best * 0.9, "{service} {latency}: {rate} of {best} at {home}");
            assert!(home <= needed + needed / 2 + 1, "{service} {latency}: {home}, {needed}");
        }
    }

    #[test]
    fn a_path_that_gets_longer_gets_more_and_one_that_gets_shorter_fewer() {
        let mut path = Path::new(65, 200);
        let mut window = Window::searching(1024);
        path.run(&mut window, 20_000);
        path.latency = Nanos::from_micros(6_500);
        path.run(&mut window, 100_000);
        let rate = path.run(&mut window, 20_000);
        assert!(rate >= 0.9 * 1e6 / 65.0, "{rate} at {}", window.limit());
        path.latency = Nanos::from_micros(200);
        path.run(&mut window, 200_000);
        assert!(window.limit() <= 8, "{}", window.limit());
    }

    #[test]
    fn bursts_of_replies_do_not_drive_the_window_up() {
        // 65 us a call and 120 us there and back, seen by a thread that is away for 4 ms at times.
        let mut path = Path::new(65, 120);
        let mut window = Window::searching(1024);
        let (mut limits, mut calls) = (0_u64, 0_u64);
        for pause in 0..400_u64 {
            path.run(&mut window, u32::try_from(1 + pause * 7 % 61).unwrap());
            path.now += Nanos::from_micros(pause * 37 % 4_000);
            limits += u64::from(window.limit());
            calls += 1;
        }
        assert!(limits / calls <= 64, "{}", limits / calls);
    }

    #[test]
    fn a_window_that_is_not_filled_stays_where_it_is() {
        let mut window = Window::searching(1024);
        let first = window.limit();
        for at in 0..1_000 {
            let now = Instant::from_nanos(at * 1_000_000);
            window.on_idle(now);
            window.on_reply(now, now + Nanos::from_micros(10), 8192);
        }
        assert_eq!(window.limit(), first);
    }

    #[test]
    fn a_window_keeps_within_its_bounds() {
        assert_eq!(Window::fixed(0).limit(), 1);
        let mut window = Window::searching(0);
        assert_eq!(window.limit(), 1);
        Path::new(1, 100_000).run(&mut window, 10_000);
        assert_eq!(window.limit(), 1);
    }
}
