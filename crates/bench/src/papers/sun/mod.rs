//! `nfskit papers sun`: what a write log saves a disk, as Sun's guide of 1990s servers measured it
//! for NVRAM.

mod disk;
mod emulated;
mod measured;
mod report;

use client::url::Target;
use harness::exit::Failure;
use harness::output::Bars;
use harness::scratch::{Held, REMOVE_LIMIT};
use harness::signals::Interrupts;
use harness::target;
use harness::verbosity::Verbosity;
use load::study::Subject;
use net::clock::Clock;
use net::shape::Shape;
use perf::record::Run as Record;
use perf::units::Nanos;

use self::disk::Named;
use self::measured::Place;
use crate::papers::args::Sun;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// What the guide's disk wrote for a file of 1 MB: data, inode, indirect blocks.
const PAPER_WITHOUT: [u64; 3] = [128, 128, 116];
const PAPER_WITH: [u64; 3] = [128, 1, 1];

/// In less than that 50 WRITEs a second are too few for a mean.
const TIME_LEAST: Nanos = Nanos::from_secs(1);

/// One of the two servers.
#[derive(Clone, Debug, Default)]
struct Side {
    /// Requests for a file of 1 MiB, if the disks were named.
    disks: disk::Pair,
    /// Time for it.
    file: Nanos,
    /// WRITEs a second, and the times of single ones.
    curve: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    rate: f64,
    mean: Nanos,
    p95: Option<Nanos>,
    is_reached: bool,
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
    /// What is to be known of their disks' numbers.
    note: Option<String>,
}

impl Workload for Sun {
    type Plan = ();
    type Measured = Found;

    fn plan(&self) -> Result<(), Failure> {
        if self.time < TIME_LEAST {
            let what = format!("--time {} is too short for a rate", self.time);
            return Err(Failure::usage(what, format!("{TIME_LEAST} or more")));
        }
        self.disks().read().map(drop)
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
        // A world does not listen, and is left behind on an interrupt.
        let emulated = emulated::pair(self.sim, self.sim_log, self.time);
        let emulated = interrupts.or(emulated).await?;
        let (Some(without), Some(with)) = (&self.without, &self.with) else {
            bars.clear();
            return Ok(Outcome::whole(Found { emulated, real: None, note: None }));
        };
        bars.show("servers", 0.0);
        let measured = self.measured(&clock, &mut interrupts, [without, with]).await;
        bars.clear();
        let real = Some(measured?);
        Ok(Outcome::whole(Found { emulated, real, note: self.disks().note() }))
    }

    fn table(&self, (): &(), found: &Found, _: Verbosity) -> String {
        report::text(found, self.common.markdown)
    }

    fn record(&self, (): &(), found: &Found) -> Vec<Record> {
        vec![report::record(self, found)]
    }

    fn verdict(&self, found: Found) -> Result<(), Failure> {
        let is_met = found.pairs().all(|(_, pair)| pair.missed().is_empty());
        self.common.verdict(is_met, || found.summary())
    }
}

impl Sun {
    fn disks(&self) -> Named<'_> {
        Named { files: self.disk.as_deref(), log: self.log_disk.as_deref() }
    }

    /// Both servers of this host, each in a scratch directory of its own.
    async fn measured(
        &self,
        clock: &Clock,
        interrupts: &mut Interrupts,
        urls: [&Target; 2],
    ) -> Result<Pair, Failure> {
        let reached = urls.map(|url| self.reached(clock, url));
        let [without, with] = &reached;
        let first = Held::make(without, interrupts).await?;
        let outcome = match Held::make(with, interrupts).await {
            Ok(second) => {
                let work = async {
                    let sessions = [without.connect().await?, with.connect().await?];
                    let scratches = [&first.scratch, &second.scratch];
                    let place =
                        |at: usize| Place { clock, session: &sessions[at], scratch: scratches[at] };
                    let count = || self.disks().read();
                    measured::pair([place(0), place(1)], self.time, &count).await
                };
                let outcome = interrupts.or(work).await;
                second.clear(with, REMOVE_LIMIT, outcome).await
            }
            Err(failure) => Err(failure),
        };
        first.clear(without, REMOVE_LIMIT, outcome).await
    }

    fn reached(&self, clock: &Clock, url: &Target) -> target::Reached {
        let options = target::options(url, self.common.reply_limit, Shape::default());
        target::Reached::new(clock, None, url, options)
    }
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
        let reached = both.filter(|(without, with)| without.is_reached && with.is_reached);
        reached.map(|(a, b)| a.mean.as_secs_f64() / b.mean.as_secs_f64()).collect()
    }

    /// What the guide says of NVRAM and a log does not do here.
    fn missed(&self) -> Vec<&'static str> {
        let mut gains = self.gains();
        gains.sort_by(f64::total_cmp);
        let middle = gains.get(gains.len() / 2);
        let (without, with) = (self.without.rate_reached(), self.with.rate_reached());
        let disks = self.with.disks.files.zip(self.without.disks.files);
        let claims = [
            ("fewer writes of the disk", disks.is_none_or(|(a, b)| a.writes < b.writes)),
            ("no more flushes of the disk", disks.is_none_or(|(a, b)| a.flushes <= b.flushes)),
            ("WRITEs no slower at the median of the rates", middle.is_none_or(|gain| *gain >= 1.0)),
            ("a rate as high is reached", with >= without && with > 0.0),
        ];
        claims.into_iter().filter(|(_, is_met)| !is_met).map(|(claim, _)| claim).collect()
    }

    fn summary(&self) -> String {
        let share = self.with.file.as_secs_f64() / self.without.file.as_secs_f64();
        let gains = self.gains();
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains.iter().copied().fold(0.0, f64::max);
        let rates = match gains.is_empty() {
            true => "no rate is reached by both".to_owned(),
            false => format!("WRITEs at rates that both reach 1/{most:.2} to 1/{least:.2}"),
        };
        let disks = self.with.disks.files.zip(self.without.disks.files);
        let writes = disks.map_or_else(String::new, |(with, without)| {
            let share = |a: u64, b: u64| if b == 0 { 1.0 } else { a as f64 / b as f64 };
            let paper = share(PAPER_WITH.iter().sum(), PAPER_WITHOUT.iter().sum());
            let (writes, flushes) =
                (share(with.writes, without.writes), share(with.flushes, without.flushes));
            format!(
                "{writes:.2} of the writes (the guide: {paper:.2}) and {flushes:.2} of the \
                 flushes, "
            )
        });
        let missed: String =
            self.missed().iter().map(|claim| format!("; missed: {claim}")).collect();
        format!("with the log {writes}a file takes {share:.2} of the time, {rates}{missed}")
    }
}

impl Side {
    /// The highest rate that it reaches, or 0.
    fn rate_reached(&self) -> f64 {
        let reached = self.curve.iter().filter(|point| point.is_reached);
        reached.map(|point| point.rate).fold(0.0, f64::max)
    }
}
