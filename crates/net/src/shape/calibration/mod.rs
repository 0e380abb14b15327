//! What this machine can do of the links that are asked of it.
//!
//! An emulated delay is as good as the timer that ends it, so an apparatus that does not know its
//! own error reports nothing. Before it is used it sends messages through a [`Direction`] of its
//! own and looks how much later than asked each comes out: at the latency that was asked for, and
//! at ever higher rates. That takes 50 to 150 ms, and more only where the first look was bad.
//!
//! The delays are to be right within [`bound`] at the median. Where the best of [`ROUNDS`] rounds
//! is worse than [`REFUSED`] times that, the machine cannot do it, and [`Calibration::verdict`]
//! says so; one bad moment is no reason. What transports and wake-ups of the other side take is not
//! seen here: `sweep.rs` measures over a socket.

mod sweep;

use std::fmt;
use std::io;
use std::task::Poll;

use perf::model::loggp::Link;
use perf::units::{Instant, Nanos};
use thiserror::Error;

pub use self::sweep::{Cell, LATENCIES, RATES, sweep};
use super::LinkPair;
use super::controls::{Shape, Side};
use super::direction::Direction;
use super::profile::Profile;
use crate::clock::{Clock, Lateness};

/// Largest error at the median: this, or [`ERROR_SHARE`] of what was asked if that is more.
pub const ERROR_MAX: Nanos = Nanos::from_micros(5);
const ERROR_SHARE: u64 = 50; // 2 %

/// How many times the bound is too bad to begin with.
pub const REFUSED: u64 = 4;

/// Rounds before it is refused, and the pause between them.
pub const ROUNDS: usize = 5;
const PAUSE: Nanos = Nanos::from_millis(100);

/// Messages at the latency asked for, so far apart that each waits for a timer of its own.
const TRIALS: usize = 100;
const APART: Nanos = Nanos::from_micros(400);

/// Longer delays are not tried out: their timers are no later.
const TRIED_MAX: Nanos = Nanos::from_millis(40);

/// Messages per second that are tried, each for so long.
const TRIED_RATES: [u64; 5] = [10_000, 30_000, 100_000, 300_000, 1_000_000];
const TRIED_FOR: Nanos = Nanos::from_millis(5);
/// How often a rate is tried before it is called too high.
const ATTEMPTS: usize = 3;

/// What the apparatus found out about itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Calibration {
    /// The latency that was tried: of the two directions the shorter one, at most 40 ms.
    pub latency: Nanos,
    /// How much later than asked messages came out.
    pub late: Lateness,
    /// Processor time of the apparatus for each message, its timers aside.
    pub cost: Nanos,
    /// Highest rate, of those tried, at which the delay was right; 0 if it never was.
    pub messages_per_sec_max: u64,
}

/// This machine cannot delay messages as asked.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "this machine cannot delay messages by {latency}: they came {median} too late at the median \
     (99 %: {p99}), in the best of {rounds} rounds; at most {bound} would do",
    median = .late.median,
    p99 = .late.p99
)]
pub struct CannotDelay {
    pub latency: Nanos,
    pub late: Lateness,
    pub bound: Nanos,
    pub rounds: usize,
}

/// By how much a delay may be wrong at the median.
pub fn bound(latency: Nanos) -> Nanos {
    ERROR_MAX.max(Nanos::from_nanos(latency.as_nanos() / ERROR_SHARE))
}

/// Tries out the link of a profile. In a world, where time is exact, there is nothing to try.
///
/// # Errors
/// The system has no timers to give.
pub async fn measure(clock: &Clock, profile: &Profile) -> io::Result<Calibration> {
    let latency = latency_of(profile);
    if clock.is_virtual() {
        let late = Lateness { median: Nanos::ZERO, p99: Nanos::ZERO };
        let messages_per_sec_max = TRIED_RATES[TRIED_RATES.len() - 1];
        return Ok(Calibration { latency, late, cost: Nanos::ZERO, messages_per_sec_max });
    }
    // Where connections will be driven: not every thread of a runtime wakes equally soon.
    let (tell, told) = tokio::sync::oneshot::channel();
    let own = clock.clone();
    clock.spawn(async move {
        tell.send(in_place(&own, latency).await).ok();
    });
    told.await.map_err(io::Error::other)?
}

async fn in_place(clock: &Clock, latency: Nanos) -> io::Result<Calibration> {
    let mut best: Option<Lateness> = None;
    for round in 0..ROUNDS {
        if round > 0 {
            clock.sleep(PAUSE).await;
        }
        let run = Run { latency, apart: APART, messages: TRIALS };
        let (late, _) = run.measure(clock).await?;
        if best.is_none_or(|best| late.median < best.median) {
            best = Some(late);
        }
        if late.median <= bound(latency) {
            break;
        }
    }
    let late = best.unwrap_or(Lateness { median: Nanos::ZERO, p99: Nanos::ZERO });
    Ok(Calibration {
        latency,
        late,
        cost: cost(clock).await?,
        messages_per_sec_max: highest_rate(clock, latency).await?,
    })
}

/// The latency that the least error would show in.
fn latency_of(profile: &Profile) -> Nanos {
    let both = [&profile.there, &profile.back].map(|conditions| conditions.link.latency);
    let least = both.into_iter().filter(|&latency| latency > Nanos::ZERO).min();
    least.unwrap_or_default().min(TRIED_MAX)
}

async fn highest_rate(clock: &Clock, latency: Nanos) -> io::Result<u64> {
    // A millisecond holds enough of them, and the rest would be waiting.
    let latency = latency.min(Nanos::from_millis(1));
    let mut highest = 0;
    for rate in TRIED_RATES {
        let apart = Nanos::from_secs(1) / rate;
        let messages = TRIED_FOR.as_nanos() / apart.as_nanos();
        let messages = usize::try_from(messages).unwrap_or(usize::MAX);
        let run = Run { latency, apart, messages };
        let planned = TRIED_FOR + latency;
        let mut is_right = false;
        for _ in 0..ATTEMPTS {
            let (late, took) = run.measure(clock).await?;
            is_right = late.median <= bound(latency) && took <= planned + planned / 4;
            if is_right {
                break;
            }
        }
        if !is_right {
            break;
        }
        highest = rate;
    }
    Ok(highest)
}

/// Time for a message that does not wait, the best of a few runs.
async fn cost(clock: &Clock) -> io::Result<Nanos> {
    const MESSAGES: u32 = 1000;
    let mut best = Nanos::from_secs(1);
    for _ in 0..3 {
        let run = Run { latency: Nanos::ZERO, apart: Nanos::ZERO, messages: MESSAGES as usize };
        let (_, took) = run.measure(clock).await?;
        best = best.min(took / u64::from(MESSAGES));
    }
    Ok(best)
}

/// Messages through a direction of their own.
struct Run {
    latency: Nanos,
    apart: Nanos,
    messages: usize,
}

impl Run {
    /// How late they came out, and how long all took.
    async fn measure(&self, clock: &Clock) -> io::Result<(Lateness, Nanos)> {
        let link = Link { latency: self.latency, ..Link::default() };
        let shape = Shape::from(LinkPair::symmetric(link));
        let mut direction: Direction<Instant> = Direction::new(&shape, Side::There, clock)?;
        let mut pace = clock.alarm()?;
        let mut late = Vec::with_capacity(self.messages);
        let begun = clock.now();
        let (mut next, mut sent) = (begun, 0);
        std::future::poll_fn(|cx| {
            loop {
                while let Poll::Ready(Some(due)) = direction.poll_arrived(cx) {
                    late.push(clock.now().since(due));
                }
                if late.len() == self.messages {
                    return Poll::Ready(());
                }
                if sent == self.messages || pace.poll_at(cx, next).is_pending() {
                    return Poll::Pending;
                }
                let now = clock.now();
                direction.admit(now, now + self.latency, 128);
                sent += 1;
                next += self.apart;
            }
        })
        .await;
        Ok((Lateness::of(late), clock.now().since(begun)))
    }
}

impl Calibration {
    /// The bound that this machine keeps for the latency that was tried, or does not.
    pub fn bound(&self) -> Nanos {
        bound(self.latency)
    }

    /// Whether delays are within their bound.
    pub fn is_good(&self) -> bool {
        self.late.median <= self.bound()
    }

    /// # Errors
    /// The delays are so wrong that nothing should be measured through them.
    pub fn verdict(&self) -> Result<(), CannotDelay> {
        let bound = Nanos::from_nanos(self.bound().as_nanos() * REFUSED);
        let Self { latency, late, .. } = *self;
        match late.median > bound {
            true => Err(CannotDelay { latency, late, bound, rounds: ROUNDS }),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { latency, late, cost, messages_per_sec_max } = self;
        write!(
            f,
            "delays of {latency} are {} too long at the median (99 %: {}), a message costs {cost}",
            late.median, late.p99
        )?;
        match messages_per_sec_max {
            0 => f.write_str("; at no rate that was tried they are right"),
            rate => write!(f, ", right up to {}k messages/s", rate / 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(latency: Nanos, median: Nanos) -> Calibration {
        let late = Lateness { median, p99: median };
        Calibration { latency, late, cost: Nanos::ZERO, messages_per_sec_max: 0 }
    }

    #[test]
    fn what_is_right_is_5_us_or_2_percent_and_what_is_refused_four_times_that() {
        let (us, ms) = (Nanos::from_micros, Nanos::from_millis);
        assert!(found(us(10), us(5)).is_good());
        assert!(!found(us(10), us(6)).is_good());
        assert!(found(ms(5), us(100)).is_good());
        assert_eq!(found(us(100), us(20)).verdict(), Ok(()));
        // A machine whose timers tick in milliseconds.
        let refused = found(us(100), us(900)).verdict().unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("by 100 us: they came 900 us too late"), "{said}");
        assert!(said.contains("at most 20.0 us"), "{said}");
        assert!(found(ms(40), ms(4)).verdict().is_err());
    }

    #[test]
    fn a_machine_is_tried_out_and_says_how_it_was() {
        let profile: Profile = "50us/1g,back.L=20us".parse().unwrap();
        let clock = Clock::real();
        let found = crate::runtime::block_on(async { measure(&clock, &profile).await });
        let found = found.unwrap().unwrap();
        assert_eq!(found.latency, Nanos::from_micros(20));
        assert!(found.cost > Nanos::ZERO && found.late.p99 >= found.late.median, "{found:?}");
        assert!(found.to_string().starts_with("delays of 20.0 us are"), "{found}");
    }

    #[test]
    fn in_a_world_delays_are_exact() {
        let world = crate::clock::world::World::new();
        let clock = world.clock();
        let found = world.run(async move {
            let run = Run { latency: Nanos::from_micros(10), apart: APART, messages: TRIALS };
            (run.measure(&clock).await.unwrap().0, measure(&clock, &Profile::none()).await.unwrap())
        });
        let (late, measured) = found.unwrap();
        assert_eq!((late.median, late.p99), (Nanos::ZERO, Nanos::ZERO));
        assert!(measured.is_good());
    }
}
