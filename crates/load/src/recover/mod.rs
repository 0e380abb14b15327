//! LogGP put into a path and read back from it: the study's probe, once with and once without, in
//! alternation, and what the transaction model makes of the difference.
//!
//! The same in real time and in a world. What puts the delays in is the caller's: see
//! [`Emulator`].

mod injected;

use bytes::Bytes;
use client::error::Error as ClientError;
use client::session::Session;
use net::clock::Clock;
use perf::model::recovered::{Calls, Pair, Recovered};
use perf::units::Nanos;
use wire::nfs3::FileHandle;

pub use injected::{Injected, Parameter};

use crate::error::Error;
use crate::probe::{self, Amount, BLOCK_BYTES, Effort, Files, Outstanding};
use crate::scratch::file;
use crate::seqwrite::pattern;

/// The larger calls of the probe: at 1.25 MB/s a MiB would take most of a second.
const CALL_BYTES_MAX: u32 = 64 << 10;

/// Length of each of the files.
const FILE_BYTES: u64 = 1 << 20;

/// Calls outstanding at most, of a block and of [`CALL_BYTES_MAX`]: what a server takes from one
/// connection, and what passes in reasonable time.
const OUTSTANDING_MAX: (f64, f64) = (512.0, 64.0);

/// So long a burst goes on when this process does not get its processor.
const PAUSE_US: f64 = 5_000.0;

/// A rest after which no gap that is put in is left, and no processor time of the call before: the
/// coarse clock's smallest, and a half.
const REST: Nanos = Nanos::from_micros(1_500);

/// A call without work takes less than this on a bare path, and a burst's call more: what the
/// effort, and nothing else, is measured out by.
const BARE_US: (f64, f64) = (100.0, 5.0);

/// Something that reaches a server with delays of ours in the way.
#[allow(
    async_fn_in_trait,
    reason = "used in this workspace only, without the bounds that would ask for"
)]
pub trait Emulator {
    /// A new session with exactly this in its way.
    ///
    /// # Errors
    /// The server cannot be reached.
    async fn reach(&self, injected: &Injected) -> Result<Reached, ClientError>;

    /// Ends that spend the o that is put in: both, or our own alone.
    fn busy_ends(&self) -> u32;
}

/// A session, and a directory at its other end that three files may be made in.
#[derive(Clone, Debug)]
pub struct Reached {
    pub session: Session,
    pub dir: FileHandle,
}

/// How often, at least and at most, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeats {
    pub least: usize,
    pub most: usize,
    pub time: Nanos,
}

/// One point of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    pub injected: Injected,
    pub pairs: Vec<Pair>,
    pub calls: Calls,
    pub recovered: Recovered,
    /// Response times of single WRITEs of a block in microseconds: of the path as it is, and
    /// behind what was put in, each a median over the pairs.
    pub block_us: (f64, f64),
}

/// Puts `injected` into a way that has `base` already, and reads it back.
///
/// # Errors
/// Any call's, or too few answers.
pub async fn point(
    clock: &Clock,
    emulator: &impl Emulator,
    base: Injected,
    injected: Injected,
    repeats: Repeats,
) -> Result<Point, Error> {
    let sides = [
        Side::new(emulator, base, "bare").await?,
        Side::new(emulator, base.and(&injected), "behind").await?,
    ];
    let data = pattern(CALL_BYTES_MAX as usize);
    let mut found = Found::default();
    let started = clock.now();
    for repeat in 0..repeats.most.max(1) {
        if repeat >= repeats.least && clock.now().since(started) >= repeats.time {
            break;
        }
        // Each of the two is as often the first.
        let order = if repeat.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        let mut probed = [None, None];
        for at in order {
            let effort = sides[at].effort(&injected);
            probed[at] = Some(sides[at].probe(clock, &data, &effort).await?);
        }
        if let [Some(bare), Some(behind)] = probed {
            found.add(bare, behind);
        }
    }
    let effort = sides[1].effort(&injected);
    let calls = Calls {
        null_bytes: null_bytes(&sides[1].session).await?,
        burst_bytes: f64::from(BLOCK_BYTES),
        burst_outstanding: effort.outstanding.small as f64,
        busy_ends: f64::from(emulator.busy_ends()),
    };
    found.point(injected, calls)
}

/// Bytes of a NULL call and its reply, with their marks.
async fn null_bytes(session: &Session) -> Result<f64, Error> {
    let total = || {
        let counters = session.rpc().counters();
        let procedures = counters.procedures.first();
        procedures.map_or(0, |null| null.bytes_sent + null.bytes_received)
    };
    let before = total();
    session.null().await?;
    Ok((total() - before) as f64 + 8.0)
}

/// The path as it is, or behind something.
struct Side {
    session: Session,
    files: Files,
    injected: Injected,
}

impl Side {
    async fn new(emulator: &impl Emulator, injected: Injected, name: &str) -> Result<Self, Error> {
        let Reached { session, dir } = emulator.reach(&injected).await?;
        let session = session.limited(CALL_BYTES_MAX, CALL_BYTES_MAX);
        let made = async |what: &str| file(&session, dir, &format!("{name}-{what}")).await;
        let files = Files {
            unstable: made("unstable").await?,
            stable: made("stable").await?,
            burst: made("burst").await?,
        };
        Ok(Self { session, files, injected })
    }

    async fn probe(
        &self,
        clock: &Clock,
        data: &Bytes,
        effort: &Effort,
    ) -> Result<probe::Findings, Error> {
        let session = &self.session;
        let committing = (session, self.files.burst);
        let samples =
            probe::sample(clock, session, committing, self.files, data, effort, |_| {}).await?;
        samples.findings(session, effort.commit_probe_bytes)
    }

    /// How much to measure: so many calls outstanding that the way is full, but not more than pass
    /// in reasonable time; and rests where `varied` has a gap.
    fn effort(&self, varied: &Injected) -> Effort {
        let delay_us = 2.0 * self.injected.delay().as_micros_f64();
        let rate_us = |bytes: u32| {
            let link = &self.injected.link;
            let link_us = link.serialization(u64::from(bytes)).max(link.gap).as_micros_f64();
            let spent_us = 2.0 * self.injected.overhead.as_micros_f64();
            link_us.max(spent_us) + BARE_US.1
        };
        let outstanding = |bytes: u32, least: f64, most: f64| {
            let full = PAUSE_US.max(4.0 * (BARE_US.0 + delay_us)) / rate_us(bytes);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let calls = full.clamp(least, most) as usize;
            calls
        };
        let large = outstanding(CALL_BYTES_MAX, 2.0, OUTSTANDING_MAX.1);
        let is_long = delay_us > 2_000.0;
        Effort {
            amount: Amount {
                null_calls: if is_long { 32 } else { 200 },
                rounds: (4, if is_long { 4 } else { 12 }),
                round_time: Nanos::from_millis(80),
                bursts: (1, 3),
                bursts_time: Nanos::from_millis(120),
                burst_time: Nanos::from_millis(20),
            },
            burst_bytes_max: u64::MAX,
            // Nothing about storage is needed.
            commit_bytes: u64::MAX,
            commit_probe_bytes: u64::from(CALL_BYTES_MAX),
            single_file_bytes: FILE_BYTES,
            burst_file_bytes: FILE_BYTES,
            outstanding: Outstanding {
                small: outstanding(BLOCK_BYTES, 8.0, OUTSTANDING_MAX.0),
                large,
                large_on_slow_way: large,
                windows: 6,
            },
            rest: match varied.link.gap.max(varied.overhead) {
                Nanos::ZERO => Nanos::ZERO,
                _ => REST,
            },
        }
    }
}

/// What the probes of a point have found so far.
#[derive(Default)]
struct Found {
    pairs: Vec<Pair>,
    blocks_us: [Vec<f64>; 2],
}

impl Found {
    fn add(&mut self, bare: probe::Findings, behind: probe::Findings) {
        self.pairs.push(Pair { bare: bare.path, behind: behind.path });
        for (times, findings) in self.blocks_us.iter_mut().zip([bare, behind]) {
            let block = findings.writes_us.iter().find(|(bytes, ..)| *bytes == BLOCK_BYTES);
            times.extend(block.map(|(_, unstable, _)| *unstable));
        }
    }

    fn point(self, injected: Injected, calls: Calls) -> Result<Point, Error> {
        let recovered = Recovered::from_pairs(&self.pairs, &calls)
            .ok_or(Error::TooFew { what: "the parameters of LogGP" })?;
        let [bare, behind] = self.blocks_us.map(|times| {
            perf::stats::Sample::new(times).map_or(f64::NAN, |sample| sample.median())
        });
        Ok(Point { injected, pairs: self.pairs, calls, recovered, block_us: (bare, behind) })
    }
}
