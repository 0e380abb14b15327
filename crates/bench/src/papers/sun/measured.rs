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

use super::{Point, Requests, Side};

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
/// Files that the curve's WRITEs are spread over, and how long each becomes.
const FILES: usize = 8;
const CURVE_FILE_BYTES: u64 = 4 << 20;

/// What its disk has done so far, where that is known.
pub(super) type Count<'a> = dyn Fn() -> Result<Option<Requests>, Failure> + Send + Sync + 'a;

/// All of one server.
pub(super) async fn side(
    (clock, session, scratch): (&Clock, &Session, &Scratch),
    time: Nanos,
    count: &Count<'_>,
) -> Result<Side, Failure> {
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
    let disk = before.zip(count()?).map(|(before, after)| Requests {
        writes: after.writes.saturating_sub(before.writes),
        flushes: after.flushes.saturating_sub(before.flushes),
    });
    let mut files = Vec::new();
    for number in 0..FILES {
        files.push(scratch.file(session, &format!("curve{number}")).await?);
    }
    let curve = curve((clock, session), time, &files, &data).await?;
    Ok(Side { disk, file: took, curve })
}

/// Waits; an emulated store does nothing before somebody asks.
async fn settled(clock: &Clock, session: &Session, file: FileHandle) -> Result<(), Failure> {
    for _ in 0..2 {
        clock.sleep(SETTLED / 2).await;
        session.getattr(file).await?;
    }
    Ok(())
}

/// Rates, each twice the one before, up to the first that is not kept.
async fn curve(
    (clock, session): (&Clock, &Session),
    time: Nanos,
    files: &[FileHandle],
    data: &Bytes,
) -> Result<Vec<Point>, Failure> {
    let (mut points, mut rate, mut number) = (Vec::new(), RATE_FIRST, 0u64);
    let blocks = CURVE_FILE_BYTES / u64::from(WRITE_BYTES);
    while points.len() < POINTS_MAX {
        let pace = Pace { per_s: rate, time, outstanding_max: OUTSTANDING_MAX };
        let call = || {
            let (file, data) = (files[index(number, files.len())], data.clone());
            let block = number / files.len() as u64 % blocks;
            number += 1;
            async move {
                let offset = block * u64::from(WRITE_BYTES);
                let written = session.write(file, offset, data, StableHow::FileSync).await?;
                Ok::<_, ClientError>((written.answer.sent, written.answer.received))
            }
        };
        let paced = paced::run(clock, pace, call).await?;
        if let Some(error) = paced.broken {
            return Err(error.into());
        }
        let is_kept = paced.keeps_pace();
        let (mean, p95) = (paced.since_due.mean(), paced.since_due.quantile(0.95));
        points.push(Point { rate, mean, p95, is_kept });
        if !is_kept {
            break;
        }
        rate *= RATE_FACTOR;
    }
    Ok(points)
}

fn index(number: u64, len: usize) -> usize {
    usize::try_from(number % len as u64).unwrap_or(0)
}
