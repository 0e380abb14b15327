//! What this machine can do of the links that are requested.
//!
//! An emulated delay is as good as the timer that ends it, so an emulator that does not know its
//! own error reports nothing. Before it is used it sends messages through a [`Direction`] of its
//! own and looks how much later than requested each comes out: at the latency that was requested
//! (where there is none, at what else delays), and at ever higher rates. That takes 50 to 150 ms,
//! and more only where the first look was bad. Where an overhead o was requested, it is spent a few
//! times.
//!
//! The delays are to be right within [`bound`] at the median. Where the best of [`ROUNDS`] rounds
//! is worse than [`REFUSED`] times that, one by one or at the lowest rate, the machine cannot do
//! it, and [`Calibration::verdict`] says so; one bad moment is no reason. What transports and
//! wake-ups of the other side take is not seen here: `sweep.rs` measures over a socket.

mod sweep;

use std::fmt;
use std::io;
use std::task::Poll;

use perf::model::loggp::Link;
use perf::units::{Instant, Nanos};
use thiserror::Error;

pub use self::sweep::{Cell, LATENCIES, RATES, sweep};
use super::LinkPair;
use super::conditions::{Conditions, Jitter};
use super::controls::{Shape, Side};
use super::direction::Direction;
use super::profile::Profile;
use crate::clock::{Clock, Lateness};
use crate::processor::Processor;

/// Largest error at the median: this, or 2 % of what was requested if that is more.
pub const ERROR_MAX: Nanos = Nanos::from_micros(5);
const ERROR_SHARE: u64 = 50; // 2 %

/// How many times the bound is too bad to begin with.
pub const REFUSED: u64 = 2;

/// Rounds before it is refused, and the pause between them: other work comes and goes.
pub const ROUNDS: usize = 8;
const PAUSE: Nanos = Nanos::from_millis(100);

/// Messages at the latency requested, so far apart that each waits for a timer of its own.
const TRIALS: usize = 100;
const APART: Nanos = Nanos::from_micros(400);

/// Where there is neither L nor g, what this takes on the link is tried: a block of NFS v2.
const BLOCK_BYTES: u64 = 8192;

/// Overheads that are spent, and the longest that is tried.
const SPENT: usize = 50;
const SPENT_MAX: Nanos = Nanos::from_micros(200);

/// Longer delays are not tried out: their timers are no later.
const TRIED_MAX: Nanos = Nanos::from_millis(40);

/// Messages per second that are tried, each for so long.
const TRIED_RATES: [u64; 5] = [10_000, 30_000, 100_000, 300_000, 1_000_000];
const TRIED_FOR: Nanos = Nanos::from_millis(5);
/// How often a rate is tried before it is called too high.
const ATTEMPTS: usize = 3;

/// What the emulator found out about itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Calibration {
    /// The delay that was tried: of the two directions the shorter one, at most 40 ms; L, without
    /// it g, without that a block's time on the link. 0 where nothing delays.
    pub latency: Nanos,
    /// How much later than requested messages came out.
    pub late: Lateness,
    /// Processor time of the emulator for each message, its timers aside.
    pub cost: Nanos,
    /// Highest rate, of those tried, at which the delay was right; 0 if it never was.
    pub messages_per_sec_max: u64,
    /// At the lowest rate it was never less than [`REFUSED`] times the bound.
    pub fails_at_any_rate: bool,
    /// Where an overhead was requested: how long it was, and how much longer it took.
    pub spent: Option<(Nanos, Lateness)>,
}

/// This machine cannot delay messages as requested.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum CannotDelay {
    #[error(
        "this machine cannot delay messages by {latency}: they came {median} too late at the \
         median (99 %: {p99}), in the best of {rounds} rounds; at most {bound} would do",
        median = .late.median,
        p99 = .late.p99
    )]
    Late { latency: Nanos, late: Lateness, bound: Nanos, rounds: usize },
    #[error(
        "this machine cannot delay messages by {latency}: even {} a second came too late or too \
         slowly, in each of {rounds} rounds",
        TRIED_RATES[0]
    )]
    AtNoRate { latency: Nanos, rounds: usize },
}

/// By how much a delay may be wrong at the median.
pub fn bound(latency: Nanos) -> Nanos {
    ERROR_MAX.max(Nanos::from_nanos(latency.as_nanos() / ERROR_SHARE))
}

/// What is refused if it is more.
fn refused(latency: Nanos) -> Nanos {
    Nanos::from_nanos(bound(latency).as_nanos() * REFUSED)
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
        return Ok(Calibration {
            latency,
            late,
            cost: Nanos::ZERO,
            messages_per_sec_max,
            fails_at_any_rate: false,
            spent: None,
        });
    }
    // Where connections will be driven: not every thread of a runtime wakes equally soon.
    let (sender, outcome) = tokio::sync::oneshot::channel();
    let (own, overhead) = (clock.clone(), overhead_of(profile));
    clock.spawn(async move {
        sender.send(in_place(&own, latency, overhead).await).ok();
    });
    outcome.await.map_err(io::Error::other)?
}

async fn in_place(
    clock: &Clock,
    latency: Nanos,
    overhead: Option<Nanos>,
) -> io::Result<Calibration> {
    let mut best: Option<Lateness> = None;
    for round in 0..ROUNDS {
        if latency == Nanos::ZERO {
            break;
        }
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
    let (messages_per_sec_max, fails_at_any_rate) = highest_rate(clock, latency).await?;
    Ok(Calibration {
        latency,
        late,
        cost: cost(clock).await?,
        messages_per_sec_max,
        fails_at_any_rate,
        spent: overhead.map(|span| (span, spent(clock, span))),
    })
}

/// The delay that the least error would show in.
fn latency_of(profile: &Profile) -> Nanos {
    let both = [&profile.there, &profile.back].map(|Conditions { link, jitter, .. }| {
        let jitter = match *jitter {
            Jitter::None => Nanos::ZERO,
            Jitter::Uniform(span) | Jitter::Normal(span) | Jitter::Exponential(span) => span,
            Jitter::Pareto { scale, .. } => scale,
        };
        let delays = [link.latency, link.gap, link.serialization(BLOCK_BYTES), jitter];
        delays.into_iter().find(|&delay| delay > Nanos::ZERO)
    });
    both.into_iter().flatten().min().unwrap_or_default().min(TRIED_MAX)
}

/// The shorter overhead of the two that there are.
fn overhead_of(profile: &Profile) -> Option<Nanos> {
    let both = [profile.overhead.send, profile.overhead.receive];
    let least = both.into_iter().filter(|&span| span > Nanos::ZERO).min();
    least.map(|span| span.min(SPENT_MAX))
}

/// How much longer than requested the processor is busy.
fn spent(clock: &Clock, span: Nanos) -> Lateness {
    let processor = Processor::real(clock);
    let longer = (0..SPENT).map(|_| {
        let begun = clock.now();
        processor.claim(begun, span);
        clock.now().since(begun).saturating_sub(span)
    });
    Lateness::of(longer.collect())
}

/// The highest rate at which it is right, and whether there is none at which it is nearly so.
async fn highest_rate(clock: &Clock, latency: Nanos) -> io::Result<(u64, bool)> {
    if latency == Nanos::ZERO {
        return Ok((0, false));
    }
    let (bound, refused) = (bound(latency), refused(latency));
    // A millisecond holds enough of them, and the rest would be waiting.
    let latency = latency.min(Nanos::from_millis(1));
    let (mut highest, mut fails) = (0, true);
    for rate in TRIED_RATES {
        let apart = Nanos::from_secs(1) / rate;
        let messages = TRIED_FOR.as_nanos() / apart.as_nanos();
        let messages = usize::try_from(messages).unwrap_or(usize::MAX);
        let run = Run { latency, apart, messages };
        let planned = TRIED_FOR + latency;
        let mut is_right = false;
        for attempt in 0..ROUNDS {
            if attempt >= ATTEMPTS {
                if !fails {
                    break;
                }
                // It would be refused: it gets its time.
                clock.sleep(PAUSE).await;
            }
            let (late, took) = run.measure(clock).await?;
            let is_in_time = took <= planned + planned / 4;
            fails &= !(late.median <= refused && is_in_time);
            is_right = late.median <= bound && is_in_time;
            if is_right {
                break;
            }
        }
        if !is_right {
            break;
        }
        highest = rate;
    }
    Ok((highest, fails))
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
        let Self { latency, late, .. } = *self;
        let (bound, rounds) = (refused(latency), ROUNDS);
        match (late.median > bound, self.fails_at_any_rate) {
            _ if latency == Nanos::ZERO => Ok(()),
            (true, _) => Err(CannotDelay::Late { latency, late, bound, rounds }),
            (false, true) => Err(CannotDelay::AtNoRate { latency, rounds }),
            (false, false) => Ok(()),
        }
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { latency, late: Lateness { median, p99 }, cost, .. } = self;
        match (*latency, self.messages_per_sec_max) {
            (Nanos::ZERO, _) => write!(f, "messages cost {cost} each")?,
            (_, rate) => {
                write!(
                    f,
                    "delays of {latency} are {median} too long at the median (99 %: {p99}), a \
                     message costs {cost}"
                )?;
                match rate {
                    0 => f.write_str("; at no rate that was tried they are right")?,
                    _ => write!(f, ", right up to {}k messages/s", rate / 1000)?,
                }
            }
        }
        if let Some((span, Lateness { median, p99 })) = self.spent {
            write!(f, "; o of {span} is {median} too long (99 %: {p99})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
