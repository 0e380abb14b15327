//! `nfskit papers loggp`: LogGP put into a path and read back.

mod emulator;
mod markdown;
mod outcome;
mod record;
mod table;
mod verdict;

use client::url::{Target, Version};
use harness::exit::Failure;
use harness::output::Bars;
use harness::scratch;
use harness::target::{self, Reached};
use harness::verbosity::Verbosity;
use load::cpu::Neighbours;
use load::recover::{Injected, Parameter, Point, Repeats, point};
use load::scratch::Scratch;
use net::clock::Clock;
use net::shape::Shape;
use perf::record::Run as Record;
use perf::units::Nanos;
use wire::nfs3::FileHandle;

use self::emulator::Bench;
use self::outcome::Outcome;
use self::verdict::Verdict;
use crate::papers::args::{Loggp, Symbol};
use crate::workload::{self, Conditions, Outputs, Workload};

/// The paper's ranges: L of 10 us to 4 ms (figure 5) and 40 ms (figure 11), o of up to 500 us on
/// top of what there is (figures 7 and 8), G of 26 MB/s down to 1.25 (figure 10), here in
/// nanoseconds per byte. It did not vary g.
const AMOUNTS: [(Parameter, &[f64]); 4] = [
    (Parameter::Latency, &[10.0, 50.0, 150.0, 500.0, 1_000.0, 4_000.0, 10_000.0, 40_000.0]),
    (Parameter::Overhead, &[25.0, 50.0, 100.0, 250.0, 500.0]),
    (Parameter::Gap, &[50.0, 100.0, 250.0, 500.0]),
    (Parameter::GapPerByte, &[1e3 / 26.0, 1e3 / 10.0, 1e3 / 5.0, 1e3 / 2.5, 1e3 / 1.25]),
];

impl Workload for Loggp {
    type Plan = ();
    type Measured = Outcome;

    fn plan(&self) -> Result<(), Failure> {
        check(self)
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.common.json)
    }

    async fn run(
        &self,
        (): &(),
        Conditions { clock, mut interrupts, verbosity }: Conditions,
    ) -> Result<workload::Outcome<Outcome>, Failure> {
        let mut points = Vec::new();
        let sweep = Sweep { clock: &clock, args: self, bars: Bars::new(verbosity) };
        let started = load::environment::rfc3339(&clock);
        let (begun, neighbours) = (clock.now(), Neighbours::watch(clock.now()));
        let ended = match &self.target {
            Some(target) => {
                let options = target::options(target, self.common.reply_limit, Shape::default());
                let plain = Reached::new(&clock, None, target, options);
                scratch::in_scratch(&plain, &mut interrupts, async |scratch: &Scratch| {
                    sweep.run(Some((target, scratch.dir())), &mut points).await
                })
                .await
            }
            None => interrupts.or(sweep.run(None, &mut points)).await,
        };
        let now = clock.now();
        let measured = (!points.is_empty()).then(|| Outcome {
            url: self.target.as_ref().map(ToString::to_string),
            started,
            took: now.since(begun),
            base_latency: self.base_latency,
            sweep: points,
            neighbours_share: neighbours.share(now),
        });
        Ok(workload::Outcome::until(measured, ended))
    }

    fn table(&self, _: &(), outcome: &Outcome, _: Verbosity) -> String {
        let text = if self.common.markdown { markdown::text } else { table::text };
        text(outcome)
    }

    fn record(&self, _: &(), outcome: &Outcome) -> Vec<Record> {
        vec![record::record(outcome)]
    }

    fn verdict(&self, outcome: Outcome) -> Result<(), Failure> {
        let verdict = Verdict::of(&outcome.sweep);
        self.common.verdict(verdict.is_met(), || verdict.to_string())
    }
}

/// What the arguments cannot mean together.
fn check(args: &Loggp) -> Result<(), Failure> {
    if args.point_time.is_some_and(|time| time < POINT_TIME_LEAST) {
        let time = args.point_time.unwrap_or_default();
        return Err(Failure::usage(
            format!("--point-time {time} is too short to read anything back"),
            format!("--point-time of at least {POINT_TIME_LEAST}"),
        ));
    }
    if args.target.as_ref().is_some_and(|target| target.version == Version::Two) {
        return Err(Failure::usage(
            "the probe writes calls of 64 KiB, which version 2 does not have",
            "version 3 of NFS in the URL",
        ));
    }
    Ok(())
}

const POINT_TIME_LEAST: Nanos = Nanos::from_millis(10);

/// The points in their order.
struct Sweep<'a> {
    clock: &'a Clock,
    args: &'a Loggp,
    bars: Bars,
}

impl Sweep<'_> {
    /// On servers of our own, or at `end`. Points stay where an interrupt ends the run.
    async fn run(
        mut self,
        end: Option<(&Target, FileHandle)>,
        points: &mut Vec<(Parameter, Point)>,
    ) -> Result<(), Failure> {
        let amounts = amounts(self.args);
        for (at, (parameter, amount)) in amounts.iter().enumerate() {
            let name = format!("{parameter} put in and read back");
            self.bars.show(&name, at as f64 / amounts.len() as f64);
            let injected = parameter.injected(*amount);
            let (clock, reply_limit) = (self.clock, self.args.common.reply_limit);
            let base = base(self.args, *parameter);
            let bench = match end {
                Some((target, dir)) => Bench::at(clock, reply_limit, base, target, dir),
                None => Bench::embedded(clock, reply_limit, base, &injected)?,
            };
            let point = point(clock, &bench, base, injected, self.repeats()).await?;
            points.push((*parameter, point));
        }
        self.bars.clear();
        Ok(())
    }

    /// Seven pairs have an interval of 95 %; on long ways, which differ by little, three must do.
    fn repeats(&self) -> Repeats {
        let (least, time) =
            if self.args.quick { (1, Nanos::from_millis(800)) } else { (3, Nanos::from_secs(8)) };
        Repeats { least, most: 15, time: self.args.point_time.unwrap_or(time) }
    }
}

/// The path as it is. A gap shows in bursts only, which keep the processors awake, and for which a
/// way that is watched would take processor time from the ends.
fn base(args: &Loggp, varied: Parameter) -> Injected {
    match varied {
        Parameter::Gap => Injected::default(),
        _ => Parameter::Latency.injected(args.base_latency.as_micros_f64()),
    }
}

/// What to put in, in the order of the symbols.
fn amounts(args: &Loggp) -> Vec<(Parameter, f64)> {
    let is_wanted =
        |parameter: &Parameter| args.only.is_empty() || args.only.contains(&symbol(*parameter));
    let wanted = AMOUNTS.iter().filter(|(parameter, _)| is_wanted(parameter));
    let of = |(parameter, amounts): &(Parameter, &[f64])| {
        let inner = 1..amounts.len().saturating_sub(1);
        let points =
            amounts.iter().enumerate().filter(|(at, _)| !args.quick || !inner.contains(at));
        points.map(|(_, amount)| (*parameter, *amount)).collect::<Vec<_>>()
    };
    wanted.flat_map(of).collect()
}

fn symbol(parameter: Parameter) -> Symbol {
    match parameter {
        Parameter::Latency => Symbol::Latency,
        Parameter::Overhead => Symbol::Overhead,
        Parameter::Gap => Symbol::Gap,
        Parameter::GapPerByte => Symbol::GapPerByte,
    }
}
