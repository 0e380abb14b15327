//! `nfskit papers sun`: what a write log saves a disk, as Sun's guide of 1990s servers measured it
//! for NVRAM.

mod report;

use std::fs;

use bytes::Bytes;
use client::error::Error as ClientError;
use client::mount;
use client::session::Session;
use client::url::Target;
use counters::host::disk::{self, Disk};
use harness::exit::Failure;
use harness::output::Bars;
use harness::verbosity::Verbosity;
use harness::{scratch, target};
use load::paced::{self, Pace};
use load::scratch::Scratch;
use load::seqwrite::pattern;
use net::clock::Clock;
use net::shape::Shape;
use perf::record::Run as Record;
use perf::units::Nanos;
use wire::nfs3::{FileHandle, StableHow};

use crate::papers::args::Sun;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

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

/// What the guide's disk wrote for a file of 1 MB: data, inode, indirect blocks.
const PAPER_WITHOUT: [u64; 3] = [128, 128, 116];
const PAPER_WITH: [u64; 3] = [128, 1, 1];

/// One of the two servers.
#[derive(Clone, Debug, Default)]
struct Side {
    /// Requests for a file of 1 MiB, if the disk was named.
    disk: Option<Requests>,
    /// Time for it.
    file: Nanos,
    /// WRITEs a second, and the times of single ones.
    curve: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
struct Requests {
    writes: u64,
    flushes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    rate: f64,
    mean: Nanos,
    p95: Nanos,
    is_kept: bool,
}

#[derive(Debug)]
pub(crate) struct Found {
    without: Side,
    with: Side,
}

impl Workload for Sun {
    type Plan = ();
    type Measured = Found;

    fn plan(&self) -> Result<(), Failure> {
        self.disk.as_deref().map_or(Ok(()), |name| count(name).map(drop))
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.common.json)
    }

    async fn run(
        &self,
        (): &(),
        conditions: Conditions,
    ) -> Result<Outcome<Self::Measured>, Failure> {
        let Conditions { clock, mut interrupts, verbosity } = conditions;
        let mut bars = Bars::new(verbosity);
        let mut sides = [Side::default(), Side::default()];
        for (index, (side, url)) in sides.iter_mut().zip([&self.without, &self.with]).enumerate() {
            bars.show("servers", index as f64 / 2.0);
            let options = target::options(url, self.common.reply_limit, Shape::default());
            let reached = target::Reached::new(&clock, None, url, options);
            *side = scratch::in_scratch(&reached, &mut interrupts, async |scratch: &Scratch| {
                let session = self.session(&clock, url).await?;
                self.side(&clock, &session, scratch).await
            })
            .await?;
        }
        bars.clear();
        let [without, with] = sides;
        Ok(Outcome::whole(Found { without, with }))
    }

    fn table(&self, (): &(), found: &Found, _: Verbosity) -> String {
        report::text(found, self.common.markdown)
    }

    fn record(&self, (): &(), found: &Found) -> Vec<Record> {
        vec![report::record(self, found)]
    }

    fn verdict(&self, found: Found) -> Result<(), Failure> {
        self.common.verdict(found.is_met(), || found.summary())
    }
}

impl Sun {
    async fn session(&self, clock: &Clock, url: &Target) -> Result<Session, Failure> {
        let options = target::options(url, self.common.reply_limit, Shape::default());
        Ok(mount::mount(clock, url, &options).await?.session)
    }

    async fn side(
        &self,
        clock: &Clock,
        session: &Session,
        scratch: &Scratch,
    ) -> Result<Side, Failure> {
        let file = scratch.file(session, "file").await?;
        // What making it has left for later.
        clock.sleep(SETTLED).await;
        let before = self.disk.as_deref().map(count).transpose()?;
        let begun = clock.now();
        let data = pattern(WRITE_BYTES as usize);
        for block in 0..FILE_BYTES / u64::from(WRITE_BYTES) {
            let offset = block * u64::from(WRITE_BYTES);
            session.write(file, offset, data.clone(), StableHow::FileSync).await?;
        }
        let took = clock.now().since(begun);
        clock.sleep(SETTLED).await;
        let after = self.disk.as_deref().map(count).transpose()?;
        let disk = before.zip(after).map(|(before, after)| {
            let Disk { writes, flushes, .. } = after.since(&before);
            Requests { writes, flushes }
        });
        let mut files = Vec::new();
        for number in 0..FILES {
            files.push(scratch.file(session, &format!("curve{number}")).await?);
        }
        let curve = self.curve(clock, session, &files, &data).await?;
        Ok(Side { disk, file: took, curve })
    }

    /// Rates, each twice the one before, up to the first that is not kept.
    async fn curve(
        &self,
        clock: &Clock,
        session: &Session,
        files: &[FileHandle],
        data: &Bytes,
    ) -> Result<Vec<Point>, Failure> {
        let (mut points, mut rate, mut number) = (Vec::new(), RATE_FIRST, 0u64);
        let blocks = CURVE_FILE_BYTES / u64::from(WRITE_BYTES);
        while points.len() < POINTS_MAX {
            let pace = Pace { per_s: rate, time: self.time, outstanding_max: OUTSTANDING_MAX };
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
}

fn index(number: u64, len: usize) -> usize {
    usize::try_from(number % len as u64).unwrap_or(0)
}

/// What a disk of this host has done.
fn count(name: &str) -> Result<Disk, Failure> {
    let path = "/proc/diskstats";
    let advice = "a name in /proc/diskstats, such as nvme0n1 or sda1, of the servers' disk";
    let text = fs::read(path).map_err(|cause| Failure::environment(cause, advice))?;
    let disks = disk::read(&text).map_err(|why| Failure::environment(why, advice))?;
    let found = disks.into_iter().find(|disk| disk.name == name);
    found.ok_or_else(|| Failure::environment(format!("{path} has no {name}"), advice))
}

impl Found {
    /// At rates that both keep: how many times the time with the log goes into that without.
    fn gains(&self) -> Vec<f64> {
        let both = self.without.curve.iter().zip(&self.with.curve);
        let kept = both.filter(|(without, with)| without.is_kept && with.is_kept);
        kept.map(|(a, b)| a.mean.as_secs_f64() / b.mean.as_secs_f64()).collect()
    }

    /// With the log there are no more requests, and no rate at which WRITEs take longer.
    fn is_met(&self) -> bool {
        let sum = |side: &Side| side.disk.map_or(0, |disk| disk.writes);
        sum(&self.with) <= sum(&self.without) && self.gains().iter().all(|gain| *gain >= 1.0)
    }

    fn summary(&self) -> String {
        let share = self.with.file.as_secs_f64() / self.without.file.as_secs_f64();
        let gains = self.gains();
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains.iter().copied().fold(0.0, f64::max);
        let rates = match gains.is_empty() {
            true => "no rate is kept by both".to_owned(),
            false => format!("WRITEs at rates that both keep 1/{most:.2} to 1/{least:.2}"),
        };
        format!("with the log a file takes {share:.2} of the time, {rates}")
    }
}
