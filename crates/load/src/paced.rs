//! An open loop of calls of one kind: each is due by a schedule, however long those before it take.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::future::{Join, Ready, join, ready};
use futures_util::stream::FuturesUnordered;
use net::clock::Clock;
use perf::histogram::Histogram;
use perf::units::{Instant, Nanos};

use crate::error::Error;
use crate::mix::Arrivals;
use crate::mix::arrivals::Schedule;

/// Calls at equal distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    pub per_s: f64,
    pub time: Nanos,
    /// With so many outstanding the next one waits, and starts late.
    pub outstanding_max: usize,
}

/// What came of them.
#[derive(Clone, Debug)]
pub struct Paced<E> {
    /// From when a call was due to its answer.
    pub since_due: Histogram,
    /// From when it was sent.
    pub since_sent: Histogram,
    /// Calls that were due within the time, and not started within it. Of a broken run, until it
    /// broke.
    pub not_started: u64,
    /// Those of the first half of the time, and of the second.
    pub halves: [Half; 2],
    /// What ended the run before its time: the first call that had no answer, or who stopped it.
    pub broken: Option<E>,
    /// How long calls were due: the whole time, or until the run broke.
    pub lasted: Nanos,
    /// What was outstanding when the run broke: its times are in neither histogram.
    pub unanswered: Unanswered,
}

/// Calls that had no answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Unanswered {
    pub count: u64,
    /// The longest that one had waited since it was due.
    pub longest: Nanos,
}

/// Calls of a half of the time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Half {
    pub due: u64,
    /// Answered in it, whenever they were due.
    pub answered: u64,
}

/// Of the calls that are due in the second half, as many may be more than were answered in it.
const BEHIND_MAX: f64 = 0.01;

impl<E> Paced<E> {
    /// Whether calls were answered as fast as they were due: those that wait do not become more in
    /// the second half of the time, but for one in a hundred, or chance. Started is not enough: a
    /// queue takes any rate until it is full. What is answered after the time does not count. A run
    /// that broke shows it for no part of the time.
    pub fn keeps_pace(&self) -> bool {
        if self.broken.is_some() {
            return false;
        }
        let [first, second] = self.halves;
        let waiting = first.due.saturating_sub(first.answered) as f64;
        // Independent of each other, they vary by their root.
        let chance = 1.0 + waiting.sqrt();
        let behind = second.due as f64 - second.answered as f64;
        behind <= chance.max(BEHIND_MAX * second.due as f64)
    }

    /// Calls that were due within the time, and those of them that were answered within it.
    pub fn within(&self) -> Half {
        let [first, second] = self.halves;
        Half { due: first.due + second.due, answered: first.answered + second.answered }
    }
}

/// Makes calls until the time is over, and waits for the answers; `stopped` ends it before. A call
/// gives when it was sent and when it was answered.
///
/// # Errors
/// No timer.
pub async fn run<E, F: Future<Output = Result<(Instant, Instant), E>>>(
    clock: &Clock,
    pace: Pace,
    mut call: impl FnMut() -> F,
    stopped: impl Future<Output = E>,
) -> Result<Paced<E>, Error> {
    let mut alarm = clock.alarm().map_err(Error::Timer)?;
    let (since_due, since_sent) = (Histogram::new(), Histogram::new());
    let halves = [Half::default(); 2];
    let lasted = pace.time;
    let unanswered = Unanswered::default();
    let mut paced =
        Paced { since_due, since_sent, not_started: 0, halves, broken: None, lasted, unanswered };
    let begin = clock.now();
    let (middle, end) = (begin + pace.time / 2, begin + pace.time);
    let half = |at: Instant| (at < end).then_some(usize::from(at >= middle));
    // Equal distances draw nothing.
    let mut random = fastrand::Rng::with_seed(0);
    let mut schedule = Schedule::new(Arrivals::Fixed, pace.per_s, 0.0, begin);
    let mut due = schedule.next(&mut random);
    let mut calls: FuturesUnordered<Join<Ready<Instant>, F>> = FuturesUnordered::new();
    // When each of them was due, as many as there are calls.
    let mut outstanding = BTreeSet::new();
    let mut stopped = pin!(stopped);
    loop {
        let is_over = due >= end || clock.now() >= end;
        if is_over && calls.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            why = &mut stopped => {
                paced.broken = Some(why);
                break;
            }
            Some((due, answer)) = calls.next() => match answer {
                Ok((sent, answered)) => {
                    outstanding.remove(&due);
                    paced.since_due.record(answered.since(due));
                    paced.since_sent.record(answered.since(sent));
                    half(answered).into_iter().for_each(|at| paced.halves[at].answered += 1);
                }
                Err(error) => {
                    paced.broken = Some(error);
                    break;
                }
            },
            () = alarm.until(due), if !is_over && calls.len() < pace.outstanding_max => {
                calls.push(join(ready(due), call()));
                outstanding.insert(due);
                half(due).into_iter().for_each(|at| paced.halves[at].due += 1);
                due = schedule.next(&mut random);
            }
        }
    }
    if paced.broken.is_some() {
        let now = clock.now();
        paced.lasted = now.min(end).since(begin);
        let longest = outstanding.first().map_or(Nanos::ZERO, |due| now.since(*due));
        paced.unanswered = Unanswered { count: outstanding.len() as u64, longest };
    }
    let until = begin + paced.lasted;
    paced.not_started = schedule.starts(due, until);
    let before = schedule.starts(due, until.min(middle));
    paced.halves[0].due += before;
    paced.halves[1].due += paced.not_started - before;
    Ok(paced)
}

#[cfg(test)]
mod tests {
    use net::clock::world::World;

    use super::*;

    const TEN_MS: Nanos = Nanos::from_millis(10);

    /// A second of calls that take 10 ms each; the one of this number has no answer.
    fn paced(per_s: f64, outstanding_max: usize, broken: u32) -> Paced<u32> {
        let pace = Pace { per_s, time: Nanos::from_secs(1), outstanding_max };
        of_server(pace, Nanos::ZERO, TEN_MS, broken)
    }

    /// A server does one call after the other, each in `service`; `latency` comes on top.
    fn of_server(pace: Pace, service: Nanos, latency: Nanos, broken: u32) -> Paced<u32> {
        let world = World::new();
        let clock = world.clock();
        let run = async move {
            let (mut calls, mut free) = (0, clock.now());
            let call = || {
                calls += 1;
                let (number, clock, sent) = (calls, clock.clone(), clock.now());
                free = free.max(sent) + service;
                let answered = free + latency;
                async move {
                    clock.sleep(answered.since(sent)).await;
                    if number == broken { Err(number) } else { Ok((sent, clock.now())) }
                }
            };
            run(&clock, pace, call, std::future::pending()).await.unwrap()
        };
        world.run(run).unwrap()
    }

    #[test]
    fn every_call_that_is_due_is_made_and_none_waits_for_another() {
        let paced = paced(500.0, 6, 0);
        assert_eq!((paced.since_due.count(), paced.not_started), (499, 0));
        assert!(paced.keeps_pace());
        assert_eq!(paced.since_due.quantile(1.0), paced.since_sent.quantile(1.0));
    }

    #[test]
    fn a_pace_that_is_not_reached_is_reported_and_waiting_counts() {
        let paced = paced(500.0, 1, 0);
        assert_eq!((paced.since_due.count(), paced.not_started), (100, 399));
        assert!(!paced.keeps_pace());
        assert!(paced.since_sent.max() < Nanos::from_millis(11));
        assert!(paced.since_due.max() > Nanos::from_millis(700));
    }

    #[test]
    fn a_queue_that_grows_keeps_no_pace_although_every_call_is_started() {
        let run = |per_s, time, service, latency| {
            let time = Nanos::from_millis(time);
            of_server(Pace { per_s, time, outstanding_max: 256 }, service, latency, 0)
        };
        let over = run(500.0, 300, TEN_MS, Nanos::ZERO);
        assert_eq!((over.not_started, over.since_due.count()), (0, 149));
        assert_eq!(over.within(), Half { due: 149, answered: 29 });
        assert!(!over.keeps_pace());
        // A little too much shows where there is time for it.
        assert!(!run(104.0, 20_000, TEN_MS, Nanos::ZERO).keeps_pace());
        assert!(run(98.0, 20_000, TEN_MS, Nanos::ZERO).keeps_pace());
        // Calls that are under way all the time do not become more.
        let far = run(500.0, 1_000, Nanos::ZERO, TEN_MS * 20);
        assert_eq!(far.within(), Half { due: 499, answered: 399 });
        assert!(far.keeps_pace());
    }

    #[test]
    fn a_call_without_an_answer_ends_it_and_what_came_before_stays() {
        let paced = paced(50.0, 1, 4);
        assert_eq!((paced.since_due.count(), paced.broken), (3, Some(4)));
        assert_eq!(paced.within(), Half { due: 4, answered: 3 });
        assert_eq!((paced.not_started, paced.lasted), (0, Nanos::from_millis(90)));
        assert_eq!(paced.unanswered, Unanswered { count: 1, longest: TEN_MS });
        assert!(!paced.keeps_pace());
    }

    #[test]
    fn calls_that_wait_when_a_silent_server_ends_it_are_counted_with_their_wait() {
        // The fifth waits for a second, and those behind it, too: ten a second.
        let pace = Pace { per_s: 10.0, time: Nanos::from_secs(4), outstanding_max: 256 };
        let world = World::new();
        let clock = world.clock();
        let run = async move {
            let mut calls = 0;
            let call = || {
                calls += 1;
                let (number, clock) = (calls, clock.clone());
                async move {
                    let sent = clock.now();
                    clock.sleep(if number < 5 { TEN_MS } else { Nanos::from_secs(1) }).await;
                    if number < 5 { Ok((sent, clock.now())) } else { Err(number) }
                }
            };
            run(&clock, pace, call, std::future::pending()).await.unwrap()
        };
        let paced = world.run(run).unwrap();
        assert_eq!((paced.since_due.count(), paced.broken), (4, Some(5)));
        let (count, longest) = (paced.unanswered.count, paced.unanswered.longest);
        assert!((10..=11).contains(&count), "{count}");
        assert_eq!(longest, Nanos::from_secs(1));
    }

    #[test]
    fn who_stops_it_has_what_was_answered_until_then() {
        let world = World::new();
        let clock = world.clock();
        let run = async move {
            let pace = Pace { per_s: 100.0, time: Nanos::from_secs(60), outstanding_max: 256 };
            let call = async || Ok((clock.now(), clock.now()));
            let stopped = async {
                clock.sleep(Nanos::from_millis(1_005)).await;
                "interrupted"
            };
            run(&clock, pace, call, stopped).await.unwrap()
        };
        let paced = world.run(run).unwrap();
        assert_eq!(
            (paced.within(), paced.broken),
            (Half { due: 100, answered: 100 }, Some("interrupted"))
        );
        assert_eq!(paced.not_started, 0);
    }

    #[test]
    fn what_is_left_of_a_day_is_not_counted_one_by_one() {
        let pace = Pace { per_s: 1e6, time: Nanos::from_secs(86_400), outstanding_max: 1 };
        let hour = Nanos::from_secs(3_600);
        // The first is due after a microsecond.
        let lasted = hour + Nanos::from_micros(1);
        let broken = of_server(pace, hour, Nanos::ZERO, 1);
        assert_eq!(broken.within(), Half { due: 3_600_000_000, answered: 0 });
        assert_eq!((broken.not_started, broken.lasted), (3_599_999_999, lasted));
        // Every hour one; the last is answered when the day is over.
        let slow = of_server(pace, hour, Nanos::ZERO, 0);
        assert_eq!(slow.within(), Half { due: 86_399_999_999, answered: 23 });
        assert_eq!(slow.not_started, 86_399_999_999 - 24);
        assert_eq!(slow.halves.map(|half| half.due), [43_199_999_999, 43_200_000_000]);
    }
}
