//! How many calls a server works on side by side, and what a call costs the client: from the
//! client's side alone.
//!
//! | found | from |
//! |---|---|
//! | time per call of a full pipe | bursts of WRITEs, UNSTABLE and FILE_SYNC, many outstanding |
//! | the same without work | bursts of NULL calls |
//! | T_op of the client | its processor's time in the small bursts, over their calls |
//!
//! A server with m processors answers a call every T_op / m. So m is T_op over the time per call,
//! where the server is what the calls wait for: if NULL calls come no faster, the client or the way
//! is, and m is a least number. For stable WRITEs the same with T_B: how many a server makes stable
//! together, on several disks or in one sync.

use bytes::Bytes;
use client::session::Session;
use client::transfer::Limit;
use futures_util::stream::{FuturesUnordered, StreamExt};
use net::clock::Clock;
use perf::stats::{Estimate, Interval, median_in_order};
use perf::units::Nanos;
use wire::nfs3::{FileHandle, StableHow};

use super::reply_spacing;
use crate::error::Error;
use crate::seqwrite::{self, Workload};

/// Data of a small WRITE: little of its time is theirs.
pub const SMALL_BYTES: u32 = 512;

/// Bytes of a stable WRITE: the block that T_B is about.
pub const STABLE_BYTES: u32 = super::BLOCK_BYTES;

/// Calls outstanding in a full pipe.
const OUTSTANDING: usize = 48;

/// NULL calls closer together than so many of a WRITE's say that the server is the limit.
const NULL_IS_FASTER: f64 = 0.85;

/// One server, within what its parameters are known to.
const ONE: f64 = 0.9;

/// The client's processor time so far; `None` where it cannot be known.
pub type Busy<'a> = &'a (dyn Fn() -> Option<Nanos> + Sync);

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    pub count: usize,
    pub burst_time: Nanos,
    pub file_bytes: u64,
}

/// One value a round, us per call; of each portion apart.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    null: Vec<Vec<f64>>,
    small: Vec<Vec<f64>>,
    stable: Vec<Vec<f64>>,
    client: Vec<Vec<f64>>,
}

/// A number of servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Servers {
    pub count: Estimate,
    /// Something else is the limit: there may be more.
    pub at_least: Option<AtLeast>,
}

/// Why servers are a least number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AtLeast {
    /// Calls without work come no faster.
    NullIsNoFaster,
    /// Calls come slower than a single server would answer them.
    Idle,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Concurrency {
    pub rounds: usize,
    /// Time per call of full pipes, us.
    pub null_us: Estimate,
    pub small_us: Estimate,
    pub stable_us: Estimate,
    /// The client's processor, per small WRITE, us.
    pub client_us: Option<Estimate>,
    /// That work on WRITEs; `None` where a WRITE's T_op is not above 0.
    pub servers: Option<Servers>,
    /// Stable WRITEs that are made stable together; `None` where T_B is not above 0.
    pub stable_servers: Option<Servers>,
}

/// One portion.
///
/// # Errors
/// Any call's.
pub async fn sample(
    clock: &Clock,
    session: &Session,
    file: FileHandle,
    data: &Bytes,
    rounds: &Rounds,
    busy: Busy<'_>,
) -> Result<Samples, Error> {
    let (mut null, mut small) = (Vec::new(), Vec::new());
    let (mut stable, mut client) = (Vec::new(), Vec::new());
    let stable_bytes = STABLE_BYTES.min(session.sizes().write_bytes_max);
    for _ in 0..rounds.count {
        null.push(nulls(clock, session, rounds.burst_time).await?);
        let burst = Burst { clock, session, file, data, rounds };
        let before = busy();
        let (us, calls) = burst.call_time(SMALL_BYTES, StableHow::Unstable).await?;
        if let (Some(before), Some(after)) = (before, busy()) {
            client.push(after.saturating_sub(before).as_micros_f64() / calls as f64);
        }
        small.push(us);
        stable.push(burst.call_time(stable_bytes, StableHow::FileSync).await?.0);
    }
    let [null, small, stable, client] = [null, small, stable, client].map(|values| vec![values]);
    Ok(Samples { null, small, stable, client })
}

impl Samples {
    pub fn absorb(&mut self, other: Self) {
        self.null.extend(other.null);
        self.small.extend(other.small);
        self.stable.extend(other.stable);
        self.client.extend(other.client);
    }

    /// With T_op and T_B as the single calls have them.
    ///
    /// # Errors
    /// [`Error::TooFew`].
    pub fn findings(&self, op: &Estimate, block: &Estimate) -> Result<Concurrency, Error> {
        let null_us = estimate(&self.null, "NULL calls of a full pipe")?;
        let small_us = estimate(&self.small, "WRITEs of a full pipe")?;
        let stable_us = estimate(&self.stable, "stable WRITEs of a full pipe")?;
        Ok(Concurrency {
            rounds: self.small.iter().map(Vec::len).sum(),
            servers: servers(op, &small_us, null_us.value),
            stable_servers: servers(block, &stable_us, small_us.value),
            client_us: estimate(&self.client, "the client's T_op").ok(),
            null_us,
            small_us,
            stable_us,
        })
    }
}

fn estimate(portions: &[Vec<f64>], what: &'static str) -> Result<Estimate, Error> {
    median_in_order(portions).map_err(|_| Error::TooFew { what })
}

/// `work` over the time per call; `without` is the time per call without that work.
fn servers(work: &Estimate, call: &Estimate, without: f64) -> Option<Servers> {
    if work.ci95.map_or(work.value, |ci95| ci95.lo) <= 0.0 {
        return None;
    }
    let value = work.value / call.value;
    let half = |estimate: &Estimate| {
        let ci95 = estimate.ci95?;
        Some((ci95.hi - ci95.lo) / 2.0 / estimate.value)
    };
    let half = half(work).zip(half(call)).map(|(work, call)| (work.powi(2) + call.powi(2)).sqrt());
    let ci95 = half.map(|half| Interval { lo: value / (1.0 + half), hi: value * (1.0 + half) });
    // A server that is waited for is not idle: below one, the calls wait for something else.
    let at_least = match value < ONE {
        true => Some(AtLeast::Idle),
        false => (without > NULL_IS_FASTER * call.value).then_some(AtLeast::NullIsNoFaster),
    };
    let value = if at_least.is_some() { value.max(1.0) } else { value };
    Some(Servers { count: Estimate { value, ci95: ci95.filter(|_| at_least.is_none()) }, at_least })
}

/// NULL calls in a full pipe: us per call.
async fn nulls(clock: &Clock, session: &Session, time: Nanos) -> Result<f64, Error> {
    let mut calls: FuturesUnordered<_> = (0..OUTSTANDING).map(|_| session.null()).collect();
    let (started, mut first, mut count) = (clock.now(), None, 0_u64);
    while let Some(answer) = calls.next().await {
        answer?;
        let now = clock.now();
        // The first round of replies only fills the pipe.
        count += 1;
        if count == OUTSTANDING as u64 {
            first = Some(now);
        }
        let enough = count >= 4 * OUTSTANDING as u64 && now.since(started) >= time;
        if let (true, Some(first)) = (enough, first) {
            let counted = count - OUTSTANDING as u64;
            // What is outstanding is answered before anything else is measured.
            while let Some(answer) = calls.next().await {
                answer?;
            }
            return Ok(now.since(first).as_micros_f64() / counted as f64);
        }
        calls.push(session.null());
    }
    Err(Error::TooFew { what: "NULL calls of a full pipe" })
}

struct Burst<'a> {
    clock: &'a Clock,
    session: &'a Session,
    file: FileHandle,
    data: &'a Bytes,
    rounds: &'a Rounds,
}

impl Burst<'_> {
    /// Time per call in a full pipe, and how many calls it took to find it.
    async fn call_time(&self, call_bytes: u32, stable: StableHow) -> Result<(f64, usize), Error> {
        let least = 6 * OUTSTANDING as u64 * u64::from(call_bytes);
        let workload = Workload {
            call_bytes,
            outstanding: OUTSTANDING,
            file_bytes: self.rounds.file_bytes,
            total_bytes: least,
            commit_bytes: u64::MAX,
            stable,
            limit: Limit::default(),
        };
        let run = async |workload| {
            seqwrite::run(self.clock, self.session, self.file, self.data, workload).await
        };
        let mut ran = run(workload).await?;
        let mut calls = ran.events.len();
        if ran.elapsed < self.rounds.burst_time {
            let limit = Limit { time: Some(self.rounds.burst_time), drain: None };
            ran = run(Workload { total_bytes: u64::MAX, limit, ..workload }).await?;
            calls += ran.events.len();
        }
        Ok((reply_spacing(&ran.events, OUTSTANDING)?, calls))
    }
}
