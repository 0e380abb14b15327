//! An open loop of calls of one kind: each is due by a schedule, however long those before it take.

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
    /// Calls that were due within the time, and not started within it.
    pub not_started: u64,
    /// The first that had no answer, which ended the run.
    pub broken: Option<E>,
}

impl<E> Paced<E> {
    /// Whether all but one in a hundred were started within the time.
    pub fn keeps_pace(&self) -> bool {
        99 * self.not_started <= self.since_due.count()
    }
}

/// Makes calls until the time is over, and waits for the answers. A call gives when it was sent and
/// when it was answered.
///
/// # Errors
/// No timer.
pub async fn run<E, F: Future<Output = Result<(Instant, Instant), E>>>(
    clock: &Clock,
    pace: Pace,
    mut call: impl FnMut() -> F,
) -> Result<Paced<E>, Error> {
    let mut alarm = clock.alarm().map_err(Error::Timer)?;
    let (since_due, since_sent) = (Histogram::new(), Histogram::new());
    let mut paced = Paced { since_due, since_sent, not_started: 0, broken: None };
    let begin = clock.now();
    let end = begin + pace.time;
    // Equal distances draw nothing.
    let mut random = fastrand::Rng::with_seed(0);
    let mut schedule = Schedule::new(Arrivals::Fixed, pace.per_s, 0.0, begin);
    let mut due = schedule.next(&mut random);
    let mut calls: FuturesUnordered<Join<Ready<Instant>, F>> = FuturesUnordered::new();
    loop {
        let is_over = due >= end || clock.now() >= end;
        if is_over && calls.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            Some((due, answer)) = calls.next() => match answer {
                Ok((sent, answered)) => {
                    paced.since_due.record(answered.since(due));
                    paced.since_sent.record(answered.since(sent));
                }
                Err(error) => {
                    paced.broken = Some(error);
                    return Ok(paced);
                }
            },
            () = alarm.until(due), if !is_over && calls.len() < pace.outstanding_max => {
                calls.push(join(ready(due), call()));
                due = schedule.next(&mut random);
            }
        }
    }
    while due < end {
        paced.not_started += 1;
        due = schedule.next(&mut random);
    }
    Ok(paced)
}

#[cfg(test)]
mod tests {
    use net::clock::world::World;

    use super::*;

    /// Calls that take 10 ms each; the one of this number has no answer.
    fn paced(per_s: f64, outstanding_max: usize, broken: u32) -> Paced<u32> {
        let world = World::new();
        let clock = world.clock();
        let pace = Pace { per_s, time: Nanos::from_secs(1), outstanding_max };
        let run = async move {
            let mut calls = 0;
            let call = || {
                calls += 1;
                let (number, clock) = (calls, clock.clone());
                async move {
                    let sent = clock.now();
                    clock.sleep(Nanos::from_millis(10)).await;
                    if number == broken { Err(number) } else { Ok((sent, clock.now())) }
                }
            };
            run(&clock, pace, call).await.unwrap()
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
    fn a_call_without_an_answer_ends_it_and_what_came_before_stays() {
        let paced = paced(50.0, 1, 4);
        assert_eq!((paced.since_due.count(), paced.broken), (3, Some(4)));
    }
}
