//! The parameters of a path, each measured by itself.
//!
//! | parameter | from |
//! |---|---|
//! | 2 T_prop | response time of NULL calls |
//! | T_ser | response time of UNSTABLE WRITEs against their size: the slope |
//! | T_op | the same line's intercept, less 2 T_prop |
//! | T_B | FILE_SYNC against UNSTABLE WRITEs of the same size, and COMMITs of many blocks |
//! | g, G | bursts of UNSTABLE WRITEs, many outstanding |
//! | o | bursts of two outstanding |
//! | what storage costs the network side | bursts with COMMITs in them |
//!
//! Trials go round by round, every size and stability once a round, so that what drifts drifts
//! under all of them. A parameter is the median over the rounds' own values, with an interval that
//! supposes no independence of neighbours ([`perf::stats::median_in_order`]). What is taken away
//! from a measurement, such as 2 T_prop, is that of the same portion, and its own uncertainty is
//! added.

pub mod bare_directory;
pub mod concurrency;
mod estimate;
mod stragglers;

use bytes::Bytes;
use client::session::Session;
use client::transfer::{Kind, Limit};
use futures_util::future::join_all;
use net::clock::Clock;
use perf::model::transaction::Path;
use perf::stats::{Estimate, Sample};
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, StableHow};

use crate::error::Error;
use crate::seqwrite::{self, Workload};

pub use estimate::storage;

/// Sizes of the single WRITEs.
pub const SIZES: [u32; 5] = [1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20];

/// The thesis's block: what T_B is reported for.
pub const BLOCK_BYTES: u32 = 8 << 10;

/// UNSTABLE WRITEs of one size in a row, of which the median counts. On a way of over 2 ms, where
/// neither processors nor caches matter, one must do.
const IN_A_ROW: usize = 5;

/// How many calls to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    pub null_calls: usize,
    /// Rounds of single WRITEs: at least the first, at most the second, as the time allows.
    pub rounds: (usize, usize),
    pub round_time: Nanos,
    /// Bursts of each kind, likewise, as `bursts_time` allows; and the time of one.
    pub bursts: (usize, usize),
    pub bursts_time: Nanos,
    pub burst_time: Nanos,
}

impl Amount {
    /// One of several portions; each has a round more, for its first is left out.
    #[must_use]
    pub fn portion(&self, portions: usize) -> Self {
        let share =
            |(least, most): (usize, usize)| (least.div_ceil(portions), most.div_ceil(portions));
        let (least, most) = share(self.rounds);
        Self {
            null_calls: self.null_calls.div_ceil(portions),
            rounds: (least + 1, most + 1),
            round_time: self.round_time / portions as u64,
            bursts: share(self.bursts),
            bursts_time: self.bursts_time / portions as u64,
            burst_time: self.burst_time,
        }
    }
}

/// How much to measure, and with which files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    pub amount: Amount,
    /// Bytes of a burst, at most, where the time would let it have more: the COMMIT at its end
    /// takes as long as they do on the disk.
    pub burst_bytes_max: u64,
    /// What a COMMIT of the sweep covers.
    pub commit_bytes: u64,
    /// What a COMMIT covers whose own time is taken: less on a slow way, where it hardly matters.
    pub commit_probe_bytes: u64,
    /// Length of the files of single WRITEs, and of the file of bursts.
    pub single_file_bytes: u64,
    pub burst_file_bytes: u64,
    pub outstanding: Outstanding,
    /// A rest before each call whose own time is taken, so that no gap after the one before is in
    /// it.
    pub rest: Nanos,
}

/// Calls outstanding in bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outstanding {
    pub small: usize,
    pub large: usize,
    /// Of the larger calls on a way of over 2 ms, where more would take too long.
    pub large_on_slow_way: usize,
    /// A burst has at least so many calls for each that is outstanding.
    pub windows: u64,
}

impl Outstanding {
    /// Enough for any way that a study is made on.
    pub const STUDY: Self = Self { small: 64, large: 4, large_on_slow_way: 2, windows: 2 };
}

/// The files that a probe writes, so that a sync of one finds nothing of another.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    pub unstable: FileHandle,
    pub stable: FileHandle,
    pub burst: FileHandle,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Response times of NULL calls, in order.
    pub null_us: Vec<f64>,
    pub round_trip: Estimate,
    pub ser_us_per_kib: Estimate,
    pub op_us: Estimate,
    /// By how much a NULL call takes longer than a WRITE without data would. Above 0, NULL is no
    /// measure of the way, 2 T_prop is that of the WRITEs, and T_op does not show.
    pub null_excess_us: f64,
    /// T_B of one [`BLOCK_BYTES`] WRITE.
    pub block_us: Estimate,
    /// (bytes, median response time UNSTABLE, FILE_SYNC), for each size.
    pub writes_us: Vec<(u32, f64, f64)>,
    pub bursts: usize,
    /// What each COMMIT covered whose time was taken.
    pub commit_probe_bytes: u64,
    /// Time of those COMMITs, less 2 T_prop, on a server that writes on request.
    pub commit_us: Estimate,
    /// The same on the server that was probed, which may have begun to write before.
    pub commit_early_us: Estimate,
    /// No COMMIT was due: the server answers that UNSTABLE WRITEs are stable, or version 2 has
    /// none. What being stable takes is in the WRITEs' own times.
    pub stable_only: bool,
    pub overhead_us: Estimate,
    /// g, and G per KiB, as `path.capacity` has them; the intervals are those of the bursts' pairs.
    pub gap_us: Estimate,
    pub gap_us_per_kib: Estimate,
    pub rounds: usize,
    pub stragglers: Stragglers,
    pub path: Path,
}

/// Single UNSTABLE WRITEs that took ten times and more what is usual of their size, and that by
/// 10 ms: medians, which the parameters are, have none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stragglers {
    pub count: usize,
    /// With all others.
    pub of: usize,
    /// Of those that took so long, and of the others.
    pub median_us: f64,
    pub usual_us: f64,
}

/// Response times of NULL calls. A long way is probed with a few calls at a time, spaced so that
/// none waits for another.
///
/// # Errors
/// Any call's.
async fn null_times(
    clock: &Clock,
    session: &Session,
    count: usize,
    rest: Nanos,
) -> Result<Vec<f64>, Error> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..16 {
        session.null().await?; // warm-up
    }
    while rest > Nanos::ZERO && times.len() < count {
        clock.sleep(rest).await;
        times.push(session.null().await?.response_time().as_micros_f64());
    }
    let first = session.null().await?.response_time();
    let at_once = usize::try_from(first.as_nanos() / 1_000_000).unwrap_or(1).clamp(1, 16);
    let spacing = first / at_once as u64;
    while times.len() < count {
        let batch = (0..at_once.min(count - times.len())).map(|place| async move {
            if place > 0 {
                clock.sleep(spacing * place as u64).await;
            }
            session.null().await
        });
        for answer in join_all(batch).await {
            times.push(answer?.response_time().as_micros_f64());
        }
    }
    Ok(times)
}

/// What the portions of a probe measured. They are taken at different times, so that the parameters
/// rest on the same changing conditions as what they are to explain.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    portions: Vec<Portion>,
}

#[derive(Clone, Debug, Default)]
struct Portion {
    null_us: Vec<f64>,
    rounds: Vec<Round>,
    bursts: Bursts,
}

/// One portion of everything about a path. `commit_session` is the server that a COMMIT finds
/// idle (one that does not write back early), which is `session` itself where there is only one;
/// `commit_file` is the file of bursts, as that server names it.
///
/// # Errors
/// Any call's, and [`Error::TooFew`].
pub async fn sample(
    clock: &Clock,
    session: &Session,
    (commit_session, commit_file): (&Session, FileHandle),
    files: Files,
    data: &Bytes,
    effort: &Effort,
    mut progress: impl FnMut(f64),
) -> Result<Samples, Error> {
    let null_us = null_times(clock, session, effort.amount.null_calls, effort.rest).await?;
    progress(0.3);
    let round_trip_us = median(null_us.clone(), "2 T_prop")?;
    let slow = round_trip_us > 2_000.0;
    let rounds = single_writes(clock, session, files, data, effort, slow).await?;
    progress(0.6);
    let mut bursts = Bursts::default();
    let (least, most) = effort.amount.bursts;
    let started = clock.now();
    for burst in 0..most {
        if burst >= least && clock.now().since(started) >= effort.amount.bursts_time {
            break;
        }
        let target = Burst { clock, session, files, data, effort };
        let on_commit_file = Burst {
            session: commit_session,
            files: Files { burst: commit_file, ..files },
            ..target
        };
        let commit = on_commit_file.commit_time().await?;
        bursts.due += usize::from(commit.is_some());
        bursts.commits.push(commit.unwrap_or(0.0));
        bursts.early_commits.push(target.commit_time().await?.unwrap_or(0.0));
        bursts
            .small
            .push(target.call_time(BLOCK_BYTES, effort.outstanding.small, u64::MAX).await?.0);
        bursts.pairs.push(target.call_time(BLOCK_BYTES, 2, u64::MAX).await?.0);
        let large = large_bytes(session);
        let Outstanding { large: outstanding, large_on_slow_way, .. } = effort.outstanding;
        let outstanding = if slow { large_on_slow_way } else { outstanding };
        let (alone, took) = target.call_time(large, outstanding, u64::MAX).await?;
        bursts.large.push(alone);
        // On a slow way, where a burst with COMMITs would take long, storage hides well.
        let mib = f64::from(large) / f64::from(1 << 20);
        let committing = effort.commit_bytes as f64 / f64::from(1 << 20) / mib * alone;
        if committing < 2.0 * effort.amount.burst_time.as_micros_f64().max(took) {
            let (both, _) = target.call_time(large, outstanding, effort.commit_bytes).await?;
            bursts.unhidden.push((both - alone) / mib / 1024.0);
        }
        progress(0.6 + 0.4 * (burst + 1) as f64 / most as f64);
    }
    Ok(Samples { portions: vec![Portion { null_us, rounds, bursts }] })
}

impl Samples {
    /// Adds other portions.
    pub fn absorb(&mut self, other: Self) {
        self.portions.extend(other.portions);
    }

    /// The parameters.
    ///
    /// # Errors
    /// [`Error::TooFew`].
    pub fn findings(&self, session: &Session, commit_bytes: u64) -> Result<Findings, Error> {
        estimate::findings(&self.portions, large_bytes(session), commit_bytes)
    }
}

/// What one portion of a simulated probe has, us: NULL calls; rounds of trials, and the block after
/// a rest; bursts as COMMIT, small, pair and large.
#[derive(Clone, Debug)]
pub struct Simulated {
    pub null_us: Vec<f64>,
    pub rounds: Vec<(Vec<Trial>, f64)>,
    pub bursts: Vec<[f64; 4]>,
}

/// The parameters of a probe that was simulated.
///
/// # Errors
/// As of a probe: no parameters explain what was measured.
pub fn of_simulated(portions: Vec<Simulated>) -> Result<Findings, Error> {
    let portion = |simulated: Simulated| {
        let of = |at: usize| simulated.bursts.iter().map(|burst| burst[at]).collect::<Vec<f64>>();
        let (commits, early_commits) = (of(0), of(0));
        let (small, pairs, large) = (of(1), of(2), of(3));
        let unhidden = Vec::new();
        let due = commits.len();
        let bursts = Bursts { commits, early_commits, due, small, pairs, large, unhidden };
        let rounds = simulated.rounds.into_iter();
        let round = |(trials, rested)| Round { trials, singles: Vec::new(), rested };
        let rounds = rounds.map(round).collect();
        Portion { null_us: simulated.null_us, rounds, bursts }
    };
    let portions: Vec<Portion> = portions.into_iter().map(portion).collect();
    estimate::findings(&portions, LARGE_BYTES, 8 << 20)
}

fn large_bytes(session: &Session) -> u32 {
    LARGE_BYTES.min(session.sizes().write_bytes_max)
}

/// The larger calls of bursts.
const LARGE_BYTES: u32 = 1 << 20;

/// What bursts showed, in microseconds (per KiB for `unhidden`), one value a repetition; COMMITs
/// with their 2 T_prop, 0 where none was due.
#[derive(Clone, Debug, Default)]
struct Bursts {
    commits: Vec<f64>,
    early_commits: Vec<f64>,
    /// Bursts in which a COMMIT was due.
    due: usize,
    small: Vec<f64>,
    pairs: Vec<f64>,
    large: Vec<f64>,
    unhidden: Vec<f64>,
}

/// A size, and the response times of an unstable and of a stable WRITE of it.
pub type Trial = (u32, f64, f64);

/// One round, in microseconds.
#[derive(Clone, Debug)]
struct Round {
    /// Response time of each size, unstable and stable.
    trials: Vec<Trial>,
    /// Of every unstable one, of which a trial has the median.
    singles: Vec<(u32, f64)>,
    /// Of an unstable block after a rest as long as the stable one took. While a disk works,
    /// processors of both ends go to sleep, and waking them is no storage: this has it, too.
    rested: f64,
}

async fn single_writes(
    clock: &Clock,
    session: &Session,
    files: Files,
    data: &Bytes,
    effort: &Effort,
    slow: bool,
) -> Result<Vec<Round>, Error> {
    let sizes: Vec<u32> =
        SIZES.into_iter().filter(|&size| size <= session.sizes().write_bytes_max).collect();
    let in_a_row = if slow { 1 } else { IN_A_ROW };
    let started = clock.now();
    let mut rounds = Vec::new();
    let mut offset = 0;
    let time = |stable, offset, size: u32| {
        let data = data.slice(..size as usize);
        let file = if stable == StableHow::Unstable { files.unstable } else { files.stable };
        async move {
            if effort.rest > Nanos::ZERO {
                clock.sleep(effort.rest).await;
            }
            let timed = session.write(file, offset, data, stable).await?;
            Ok::<f64, Error>(timed.answer.response_time().as_micros_f64())
        }
    };
    let next = |offset: &mut u64, size: u32| {
        if *offset + u64::from(size) > effort.single_file_bytes {
            *offset = 0;
        }
        let at = *offset;
        *offset += u64::from(size);
        at
    };
    let (least, most) = effort.amount.rounds;
    while rounds.len() < least
        || (rounds.len() < most && clock.now().since(started) < effort.amount.round_time)
    {
        // Each size several times in a row, as a transfer would send it: a call that follows a
        // sync, or a pause, finds processors asleep and caches cold.
        let mut unstable = Vec::with_capacity(sizes.len());
        let mut singles = Vec::with_capacity(sizes.len() * in_a_row);
        for &size in &sizes {
            let mut times = Vec::with_capacity(IN_A_ROW);
            for _ in 0..in_a_row {
                times.push(time(StableHow::Unstable, next(&mut offset, size), size).await?);
            }
            singles.extend(times.iter().map(|us| (size, *us)));
            unstable.push(median(times, "T_ser")?);
        }
        let mut round = Vec::with_capacity(sizes.len());
        for (&size, unstable) in sizes.iter().zip(unstable) {
            let stable = time(StableHow::FileSync, next(&mut offset, size), size).await?;
            round.push((size, unstable, stable));
        }
        let block = BLOCK_BYTES.min(sizes.last().copied().unwrap_or(BLOCK_BYTES));
        let took = round.iter().find(|trial| trial.0 == block).map_or(0.0, |trial| trial.2);
        clock.sleep(Nanos::from_micros_f64(took)).await;
        let rested = time(StableHow::Unstable, next(&mut offset, block), block).await?;
        rounds.push(Round { trials: round, singles, rested });
    }
    // The first round pays for what is cold.
    rounds.remove(0);
    // Leave nothing dirty behind for the bursts to pay for.
    session.commit(files.unstable, 0, 0).await?;
    Ok(rounds)
}

/// Bursts on one server.
#[derive(Clone, Copy)]
struct Burst<'a> {
    clock: &'a Clock,
    session: &'a Session,
    files: Files,
    data: &'a Bytes,
    effort: &'a Effort,
}

impl Burst<'_> {
    /// Response time of a COMMIT of `commit_bytes` unstable bytes; `None` where all of them were
    /// stable when their WRITEs were answered.
    async fn commit_time(&self) -> Result<Option<f64>, Error> {
        let call_bytes = large_bytes(self.session);
        let bytes = self.effort.commit_probe_bytes;
        let run = self.run(call_bytes, 4, u64::MAX, bytes, None).await?;
        let commit = run.events.iter().rev().find(|event| event.kind == Kind::Commit);
        Ok(commit.map(|commit| commit.received.since(commit.sent).as_micros_f64()))
    }

    /// Time per call, from the first reply to the last, and the time of the whole burst.
    async fn call_time(
        &self,
        call_bytes: u32,
        outstanding: usize,
        commit_bytes: u64,
    ) -> Result<(f64, f64), Error> {
        let windows = self.effort.outstanding.windows;
        let least = windows * outstanding as u64 * u64::from(call_bytes);
        let time = self.effort.amount.burst_time;
        let mut run = self.run(call_bytes, outstanding, commit_bytes, least, None).await?;
        if run.elapsed < time {
            let most = self.effort.burst_bytes_max.max(least);
            run = self.run(call_bytes, outstanding, commit_bytes, most, Some(time)).await?;
        }
        Ok((reply_spacing(&run.events, outstanding)?, run.elapsed.as_micros_f64()))
    }

    async fn run(
        &self,
        call_bytes: u32,
        outstanding: usize,
        commit_bytes: u64,
        total_bytes: u64,
        time: Option<Nanos>,
    ) -> Result<seqwrite::Run, Error> {
        let workload = Workload {
            call_bytes,
            outstanding,
            file_bytes: self.effort.burst_file_bytes,
            total_bytes,
            commit_bytes,
            stable: StableHow::Unstable,
            limit: Limit { time, drain: None },
        };
        seqwrite::run(self.clock, self.session, self.files.burst, self.data, workload).await
    }
}

/// Time between replies, in a long burst without its beginning and its end: the calls before the
/// first reply, and the replies after the last call, cost one end only half of what others do.
fn reply_spacing(events: &[client::transfer::Event], outstanding: usize) -> Result<f64, Error> {
    let replies: Vec<Instant> = events
        .iter()
        .filter(|event| event.kind == Kind::Write)
        .map(|event| event.received)
        .collect();
    let steady = match replies.len() {
        count if count >= 4 * outstanding => &replies[outstanding..count - outstanding],
        _ => &replies[..],
    };
    spacing_us(steady, outstanding).ok_or(Error::TooFew { what: "the rate of a burst" })
}

/// The mean time between replies. Those of a server that works on several calls come in groups, of
/// which the first is no interval: so each reply is taken with the one a window later, which is in
/// the same place of its group.
fn spacing_us(replies: &[Instant], outstanding: usize) -> Option<f64> {
    let apart = match replies.len() {
        count if count > outstanding => outstanding.max(1),
        count => count.saturating_sub(1).max(1),
    };
    let pairs = replies.iter().zip(replies.get(apart..)?);
    let spans: Vec<f64> = pairs.map(|(a, b)| b.since(*a).as_micros_f64()).collect();
    let count = spans.len() as f64;
    (count > 0.0).then(|| spans.iter().sum::<f64>() / count / apart as f64)
}

fn median(values: Vec<f64>, what: &'static str) -> Result<f64, Error> {
    Sample::new(values).map(|sample| sample.median()).map_err(|_| Error::TooFew { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_that_come_in_groups_are_as_far_apart_as_all_of_them_are() {
        let at = |us: &[u64]| -> Vec<Instant> {
            us.iter().map(|us| Instant::EPOCH + Nanos::from_micros(*us)).collect()
        };
        // Two processors of 6 ms each, four calls outstanding: a call each 3 ms.
        let pairs = at(&[6, 6, 12, 12, 18, 18, 24, 24].map(|ms| ms * 1_000));
        assert_eq!(spacing_us(&pairs, 4), Some(3_000.0));
        let regular = at(&[10, 20, 30, 40, 50, 60]);
        assert_eq!(spacing_us(&regular, 2), Some(10.0));
        // Fewer replies than calls outstanding, and too few for anything.
        assert_eq!(spacing_us(&regular, 64), Some(10.0));
        assert_eq!(spacing_us(&regular[..1], 4), None);
        assert_eq!(spacing_us(&[], 4), None);
    }
}
