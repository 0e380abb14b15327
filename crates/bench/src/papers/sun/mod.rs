//! `nfskit papers sun`: what a write log saves a disk, as Sun's guide of 1990s servers measured it
//! for NVRAM.

mod disk;
mod emulated;
mod found;
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
use self::found::{Found, Pair};
use self::measured::Place;
use crate::papers::args::Sun;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// In less than that 50 WRITEs a second are too few for a mean.
const TIME_LEAST: Nanos = Nanos::from_secs(1);

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
        let (real, ended) = match measured {
            Ok(real) => (Some(real), Ok(())),
            Err(failure) => (None, Err(failure)),
        };
        Ok(Outcome::until(Some(Found { emulated, real, note: self.disks().note() }), ended))
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
