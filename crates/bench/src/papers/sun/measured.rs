//! One server: what its disk writes for a file, and the times of WRITEs at rates that double.

use bytes::Bytes;
use client::error::Error as ClientError;
use client::session::Session;
use harness::exit::Failure;
use load::paced::{self, Pace};
use load::scratch::Scratch;
use load::seqwrite::pattern;
use net::clock::Clock;
use perf::units::Nanos;
use wire::nfs3::{FileHandle, StableHow};

use super::disk;
use super::found::{Pair, Point, Side};

/// WRITEs of NFS version 2, which the guide measured.
const WRITE_BYTES: u32 = 8 << 10;
const FILE_BYTES: u64 = 1 << 20;
/// After so long a log has brought everything to its place, and file systems have written what
/// they put off.
const SETTLED: Nanos = Nanos::from_secs(12);
/// The curve's first point, and how much further each next is.
const RATE_FIRST: f64 = 50.0;
const RATE_FACTOR: f64 = 2.0;
const POINTS_MAX: usize = 12;
const OUTSTANDING_MAX: usize = 256;
/// Runs of each rate where two servers take turns.
const ROUNDS: usize = 3;
/// Files that the curve's WRITEs are spread over, and how long each becomes.
const FILES: usize = 8;
const CURVE_FILE_BYTES: u64 = 4 << 20;

/// What its disks have done so far, where that is known.
pub(super) type Count<'a> = dyn Fn() -> Result<disk::Pair, Failure> + Send + Sync + 'a;

/// A server, and where its files are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) clock: &'a Clock,
    pub(super) session: &'a Session,
    pub(super) scratch: &'a Scratch,
}

/// All of one server, one thing after the other.
pub(super) async fn side(
    place: Place<'_>,
    time: Nanos,
    count: &Count<'_>,
) -> Result<Side, Failure> {
    let mut side = file(place, count).await?;
    let mut curve = Curve::begin(place).await?;
    while let Some(rate) = curve.next() {
        let run = curve.run(rate, time).await?;
        curve.take(rate, vec![run]);
    }
    side.curve = curve.points;
    Ok(side)
}

/// Of two servers: first a file of each alone, because they share disks; then the rates in
/// alternation, [`ROUNDS`] times each, because what a disk takes changes with time.
pub(super) async fn pair(
    places: [Place<'_>; 2],
    time: Nanos,
    count: &Count<'_>,
) -> Result<Pair, Failure> {
    let [without, with] = places;
    let mut sides = [file(without, count).await?, file(with, count).await?];
    let mut curves = [Curve::begin(without).await?, Curve::begin(with).await?];
    while let Some(rate) = curves.iter().find_map(Curve::next) {
        let mut runs = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for at in [round % 2, 1 - round % 2] {
                if curves[at].next().is_some() {
                    runs[at].push(curves[at].run(rate, time / ROUNDS as u64).await?);
                }
            }
        }
        for (curve, runs) in curves.iter_mut().zip(runs) {
            curve.take(rate, runs);
        }
    }
    for (side, curve) in sides.iter_mut().zip(curves) {
        side.curve = curve.points;
    }
    let [without, with] = sides;
    Ok(Pair { without, with })
}

/// What its disks do for a file, and how long that takes.
async fn file(place: Place<'_>, count: &Count<'_>) -> Result<Side, Failure> {
    let Place { clock, session, scratch } = place;
    let file = scratch.file(session, "file").await?;
    // What making it has left for later.
    settled(clock, session, file).await?;
    let before = count()?;
    let begun = clock.now();
    let data = pattern(WRITE_BYTES as usize);
    for block in 0..FILE_BYTES / u64::from(WRITE_BYTES) {
        let offset = block * u64::from(WRITE_BYTES);
        session.write(file, offset, data.clone(), StableHow::FileSync).await?;
    }
    let took = clock.now().since(begun);
    settled(clock, session, file).await?;
    Ok(Side { disks: count()?.since(&before), file: took, curve: Vec::new() })
}

/// Waits; an emulated store does nothing before somebody asks.
async fn settled(clock: &Clock, session: &Session, file: FileHandle) -> Result<(), Failure> {
    for _ in 0..2 {
        clock.sleep(SETTLED / 2).await;
        session.getattr(file).await?;
    }
    Ok(())
}

/// Rates, each twice the one before, up to the first that is not reached.
struct Curve<'a> {
    place: Place<'a>,
    files: Vec<FileHandle>,
    data: Bytes,
    /// WRITEs so far.
    number: u64,
    points: Vec<Point>,
}

impl<'a> Curve<'a> {
    async fn begin(place: Place<'a>) -> Result<Self, Failure> {
        let mut files = Vec::new();
        for number in 0..FILES {
            files.push(place.scratch.file(place.session, &format!("curve{number}")).await?);
        }
        let data = pattern(WRITE_BYTES as usize);
        Ok(Self { place, files, data, number: 0, points: Vec::new() })
    }

    /// The next rate, until one is not reached.
    fn next(&self) -> Option<f64> {
        match self.points.last() {
            None => Some(RATE_FIRST),
            Some(last) => (last.is_reached && self.points.len() < POINTS_MAX)
                .then_some(last.rate * RATE_FACTOR),
        }
    }

    async fn run(&mut self, rate: f64, time: Nanos) -> Result<Point, Failure> {
        let Self { place, files, data, number, .. } = self;
        let session = place.session;
        let blocks = CURVE_FILE_BYTES / u64::from(WRITE_BYTES);
        let pace = Pace { per_s: rate, time, outstanding_max: OUTSTANDING_MAX };
        let call = || {
            let (file, data) = (files[index(*number, files.len())], data.clone());
            let block = *number / files.len() as u64 % blocks;
            *number += 1;
            async move {
                let offset = block * u64::from(WRITE_BYTES);
                let written = session.write(file, offset, data, StableHow::FileSync).await?;
                Ok::<_, ClientError>((written.answer.sent, written.answer.received))
            }
        };
        let paced = paced::run(place.clock, pace, call, std::future::pending()).await?;
        if let Some(error) = paced.broken {
            return Err(error.into());
        }
        let (mean, p95) = (paced.since_due.mean(), paced.since_due.quantile_if_known(0.95));
        Ok(Point { rate, mean, p95, is_reached: paced.keeps_pace() })
    }

    /// The middle one of the runs of a rate; it is reached if most have reached it.
    fn take(&mut self, rate: f64, mut runs: Vec<Point>) {
        let reached = runs.iter().filter(|run| run.is_reached).count();
        let is_reached = 2 * reached > runs.len();
        runs.sort_by_key(|run| run.mean);
        if let Some(middle) = runs.get(runs.len() / 2) {
            self.points.push(Point { rate, is_reached, ..*middle });
        }
    }
}

fn index(number: u64, len: usize) -> usize {
    usize::try_from(number % len as u64).unwrap_or(0)
}
