//! `nfskit papers whatif`: five changes predicted, applied and measured.

mod changes;
mod record;
mod table;

use harness::exit::Failure;
use harness::output::Bars;
use harness::records;
use harness::records::median;
use harness::verbosity::Verbosity;
use harness::verdict::{Gain, HELD_PCT};
use load::cpu::Neighbours;
use load::scratch::Scratch;
use load::study::{self as sweep, Plan, Subject};
use net::clock::Clock;
use net::shape::profile::Profile;
use perf::model::transaction::Path;
use perf::model::whatif::believed::{Held, Model, believed};
use perf::model::whatif::of_path::PathCase;
use perf::record::Run as Record;
use perf::stats::{Estimate, Interval, Sample};
use perf::units::Nanos;

use self::changes::{Applied, OUTSTANDING, all, base, case};
use super::writes::{CALL_BYTES, Writes, run_time};
use crate::papers::args::WhatIf;
use crate::workload::{self, Conditions, Outputs, Workload};

/// The aims: of the median, and of the worst error of what is believed; percent.
const AIMS_PCT: (f64, f64) = (5.0, HELD_PCT);

/// One change.
#[derive(Debug)]
struct Verified {
    name: &'static str,
    /// By the formula, by mean value analysis, in a world.
    formula: f64,
    closed: f64,
    world: Option<f64>,
    /// Which of them was believed before anything of the change was measured, and its gain.
    believed: (Model, f64),
    /// Median of the runs' ratios, and their range.
    measured: Estimate,
}

impl Verified {
    /// Of the predictions.
    fn gain(&self) -> Gain {
        let (value, range) = (self.measured.value, self.measured.ci95);
        let noise_pct = range.map_or(0.0, |ci95| 50.0 * (ci95.hi - ci95.lo) / value);
        Gain { predicted: self.believed.1, measured: value, noise_pct }
    }

    fn error_pct(&self) -> f64 {
        self.gain().error_pct()
    }

    fn formula_error_pct(&self) -> f64 {
        100.0 * (self.formula / self.measured.value - 1.0)
    }
}

#[derive(Debug)]
pub(crate) struct Outcome {
    link: String,
    started: String,
    took: Nanos,
    repeats: usize,
    base: PathCase,
    base_per_s: f64,
    /// What the models have of the path as it is.
    held: Vec<Held>,
    verified: Vec<Verified>,
    neighbours_share: Option<f64>,
}

impl Outcome {
    fn errors_pct(&self) -> Vec<f64> {
        self.verified.iter().map(|verified| verified.error_pct().abs()).collect()
    }

    fn median_pct(&self) -> f64 {
        median(self.errors_pct())
    }

    fn worst_pct(&self) -> f64 {
        self.errors_pct().into_iter().fold(0.0, f64::max)
    }

    fn is_met(&self) -> bool {
        self.median_pct() <= AIMS_PCT.0 && self.worst_pct() <= AIMS_PCT.1
    }

    fn summary(&self) -> String {
        let held = self.verified.iter().filter(|verified| verified.gain().is_held()).count();
        let formula = self.verified.iter().map(|verified| verified.formula_error_pct().abs());
        format!(
            "{held} of {} predictions held; they are {:.1} % off at the median, worst \
             {:.1} % (aim {} and {HELD_PCT} %); the formula alone {:.1} %",
            self.verified.len(),
            self.median_pct(),
            self.worst_pct(),
            AIMS_PCT.0,
            median(formula.collect())
        )
    }
}

impl Workload for WhatIf {
    type Plan = Nanos;
    type Measured = Outcome;

    fn plan(&self) -> Result<Nanos, Failure> {
        run_time(self.time, self.quick)
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.common.json)
    }

    async fn run(
        &self,
        &time: &Nanos,
        Conditions { clock, mut interrupts, verbosity }: Conditions,
    ) -> Result<workload::Outcome<Outcome>, Failure> {
        let started = records::now();
        let (begun, neighbours) = (clock.now(), Neighbours::watch(clock.now()));
        // An even number, so that each order comes as often.
        let repeats = if self.quick { 4 } else { 10 };
        let (mut bars, mut found) = (Bars::new(verbosity), Found::default());
        // Its servers are in memory: there is nothing to clean up.
        let ended =
            interrupts.or(verify(&clock, self, (repeats, time), &mut bars, &mut found)).await;
        bars.clear();
        let now = clock.now();
        let Found { base, verified, rates } = found;
        let measured = base.filter(|_| !verified.is_empty()).map(|(base, held)| Outcome {
            link: self.link.to_string(),
            started,
            took: now.since(begun),
            repeats,
            base,
            held,
            base_per_s: Sample::new(rates).map_or(f64::NAN, |sample| sample.median()),
            verified,
            neighbours_share: neighbours.share(now),
        });
        Ok(workload::Outcome::until(measured, ended))
    }

    fn table(&self, _: &Nanos, outcome: &Outcome, _: Verbosity) -> String {
        table::text(outcome, self.common.markdown)
    }

    fn record(&self, _: &Nanos, outcome: &Outcome) -> Vec<Record> {
        vec![record::record(outcome)]
    }

    fn verdict(&self, outcome: Outcome) -> Result<(), Failure> {
        self.common.verdict(outcome.is_met(), || outcome.summary())
    }
}

/// What there is so far: it stays where an interrupt ends the run.
#[derive(Default)]
struct Found {
    /// With what the models have of it.
    base: Option<(PathCase, Vec<Held>)>,
    verified: Vec<Verified>,
    /// Of the unchanged path, calls a second.
    rates: Vec<f64>,
}

async fn verify(
    clock: &Clock,
    args: &WhatIf,
    (repeats, time): (usize, Nanos),
    bars: &mut Bars,
    found: &mut Found,
) -> Result<(), Failure> {
    let unchanged = base(&args.link);
    let before = Writes::begin(clock, args.common.reply_limit, &unchanged).await?;
    bars.show("the parts", 0.0);
    let base = probed(clock, &before, args.quick).await?;
    let (base, held) = calibrated(&before, &base, &unchanged.link, repeats, time).await?;
    found.base = Some((base, held.clone()));
    let changes = all(&unchanged);
    for (at, Applied { name, change, setting, outstanding }) in changes.iter().enumerate() {
        let after = Writes::begin(clock, args.common.reply_limit, setting).await?;
        after.run(*outstanding, time).await?; // warm-up
        let pair = [(&before, OUTSTANDING), (&after, *outstanding)];
        let mut ratios = Vec::with_capacity(repeats);
        for repeat in 0..repeats {
            let share = (at * repeats + repeat) as f64 / (changes.len() * repeats) as f64;
            bars.show("changes", share);
            let [unchanged, changed] = rates(&pair, in_turn(repeat), time).await?;
            ratios.push(changed / unchanged);
            found.rates.push(unchanged);
        }
        found.verified.push(predicted(name, change, &base, &held, ratios)?);
    }
    Ok(())
}

/// Calls a second of both, in this order.
async fn rates(
    pair: &[(&Writes<'_>, u32); 2],
    order: [usize; 2],
    time: Nanos,
) -> Result<[f64; 2], Failure> {
    let mut rates = [0.0; 2];
    for which in order {
        let (writes, outstanding) = pair[which];
        rates[which] = writes.run(outstanding, time).await?.per_s;
    }
    Ok(rates)
}

/// Base and change, each as often before the other: what a machine becomes slower by in the
/// meantime is no effect of the change.
fn in_turn(repeat: usize) -> [usize; 2] {
    if repeat.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// The unchanged path's throughput and its server's processor time, which no probe of single calls
/// shows.
async fn calibrated(
    writes: &Writes<'_>,
    probed: &Path,
    link: &Profile,
    repeats: usize,
    time: Nanos,
) -> Result<(PathCase, Vec<Held>), Failure> {
    let (mut rates, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        let ran = writes.run(OUTSTANDING, time).await?;
        rates.push(ran.per_s);
        busy.push(ran.server_us);
    }
    let mib_per_s = median(rates) * f64::from(CALL_BYTES) / f64::from(1 << 20);
    let found = case(*probed, link, median(busy));
    let held = world::path::case_mib_per_s(&found).ok().map(|simulated| Held {
        measured: mib_per_s,
        formula: found.formula().mib_per_s,
        simulated,
    });
    Ok((found.calibrated(mib_per_s), held.into_iter().collect()))
}

/// The parameters of the unchanged path. With what [`calibrated`] adds they are all that the
/// predictions rest on.
async fn probed(clock: &Clock, writes: &Writes<'_>, quick: bool) -> Result<Path, Failure> {
    let plan = if quick { Plan::PROBE_QUICK } else { Plan::PROBE };
    let subjects = [writes.reached()];
    let session = subjects[0].connect().await?;
    let scratch = Scratch::create(&session, &Scratch::name_for("probe")).await?;
    let mut study = sweep::Study::begin(clock, plan, &subjects, &scratch).await?;
    study.warm_up().await?;
    for _ in 0..=plan.repeats.0 {
        study.probe(&mut |_, _| {}).await?;
    }
    let path = study.findings()?.path;
    drop(study);
    scratch.remove(&session).await?;
    Ok(path)
}

fn predicted(
    name: &'static str,
    change: &str,
    base: &PathCase,
    held: &[Held],
    ratios: Vec<f64>,
) -> Result<Verified, Failure> {
    let impossible = |error: &dyn std::fmt::Display| Failure::check(error, "report this as a bug");
    let change = change.parse().map_err(|error| impossible(&error))?;
    let after = base.changed(&[change]).map_err(|error| impossible(&error))?;
    let closed = |case: &PathCase| case.closed_mib_per_s().map_err(|error| impossible(&error));
    let world = |case: &PathCase| world::path::case_mib_per_s(case).ok();
    let sample = Sample::new(ratios).map_err(|error| impossible(&error))?;
    let range = Interval { lo: sample.min(), hi: sample.max() };
    let (world_before, world_after) = (world(base), world(&after));
    let in_world = world_before.zip(world_after);
    // The base is held to what was measured of it, and what a world is off by there is no gain.
    let measured = base.formula().mib_per_s;
    let held_world = in_world.map(|(before, after)| measured * after / before);
    let believed = believed(after.formula().mib_per_s, held_world.or(world_after), held);
    let believed_gain = believed.mib_per_s / measured;
    Ok(Verified {
        believed: (believed.model, believed_gain),
        name,
        formula: after.formula().mib_per_s / base.formula().mib_per_s,
        closed: closed(&after)? / closed(base)?,
        world: in_world.map(|(before, after)| after / before),
        measured: Estimate { value: sample.median(), ci95: Some(range) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_becomes_slower_shows_as_no_change() {
        // Each run takes 2 % more time than the one before.
        let mut rate = 1_000.0;
        let ratio = |repeat| {
            let mut rates = [0.0; 2];
            for which in in_turn(repeat) {
                rates[which] = rate;
                rate /= 1.02;
            }
            rates[1] / rates[0]
        };
        let ratios: Vec<f64> = (0..10).map(ratio).collect();
        assert!((median(ratios) - 1.0).abs() < 1e-3);
    }
}
