//! `nfskit papers sun`: what a write log saves a disk, as Sun's guide of 1990s servers measured it
//! for NVRAM.

mod emulated;
mod measured;
mod report;

use std::fs;

use client::mount;
use client::session::Session;
use client::url::Target;
use counters::host::disk::{self, Disk};
use harness::exit::Failure;
use harness::output::Bars;
use harness::verbosity::Verbosity;
use harness::{scratch, target};
use load::scratch::Scratch;
use net::clock::Clock;
use net::shape::Shape;
use perf::record::Run as Record;
use perf::units::Nanos;

use crate::papers::args::Sun;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

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

#[derive(Clone, Copy, Debug, Default)]
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

/// Both servers.
#[derive(Clone, Debug)]
struct Pair {
    without: Side,
    with: Side,
}

#[derive(Debug)]
pub(crate) struct Found {
    /// Emulated disks, which have no inodes on them.
    emulated: Pair,
    /// Servers of this host, if some were given.
    real: Option<Pair>,
}

impl Workload for Sun {
    type Plan = ();
    type Measured = Found;

    fn plan(&self) -> Result<(), Failure> {
        self.disk.as_deref().map_or(Ok(()), |name| requests(name).map(drop))
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
        bars.show("emulated disks", 0.0);
        let emulated = emulated::pair(self.sim, self.sim_log, self.time).await?;
        let (Some(without), Some(with)) = (&self.without, &self.with) else {
            bars.clear();
            return Ok(Outcome { measured: Some(Found { emulated, real: None }), failed: None });
        };
        let mut sides = [Side::default(), Side::default()];
        for (index, (side, url)) in sides.iter_mut().zip([without, with]).enumerate() {
            bars.show("servers", index as f64 / 2.0);
            let options = target::options(url, self.common.reply_limit, Shape::default());
            let reached = target::Reached::new(&clock, None, url, options);
            *side = scratch::in_scratch(&reached, &mut interrupts, async |scratch: &Scratch| {
                let session = self.session(&clock, url).await?;
                let count = || self.disk.as_deref().map(requests).transpose();
                measured::side((&clock, &session, scratch), self.time, &count).await
            })
            .await?;
        }
        bars.clear();
        let [without, with] = sides;
        let real = Some(Pair { without, with });
        Ok(Outcome::whole(Found { emulated, real }))
    }

    fn table(&self, (): &(), found: &Found, _: Verbosity) -> String {
        report::text(found, self.common.markdown)
    }

    fn record(&self, (): &(), found: &Found) -> Vec<Record> {
        vec![report::record(self, found)]
    }

    fn verdict(&self, found: Found) -> Result<(), Failure> {
        self.common.verdict(found.pairs().all(|(_, pair)| pair.is_met()), || found.summary())
    }
}

impl Sun {
    async fn session(&self, clock: &Clock, url: &Target) -> Result<Session, Failure> {
        let options = target::options(url, self.common.reply_limit, Shape::default());
        Ok(mount::mount(clock, url, &options).await?.session)
    }
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

/// The same, as requests of a server.
fn requests(name: &str) -> Result<Requests, Failure> {
    let Disk { writes, flushes, .. } = count(name)?;
    Ok(Requests { writes, flushes })
}

impl Found {
    fn pairs(&self) -> impl Iterator<Item = (&'static str, &Pair)> {
        let real = self.real.iter().map(|pair| ("this disk", pair));
        std::iter::once(("emulated", &self.emulated)).chain(real)
    }

    fn summary(&self) -> String {
        let each = self.pairs().map(|(name, pair)| format!("{name}: {}", pair.summary()));
        each.collect::<Vec<_>>().join("\n")
    }
}

impl Pair {
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
