//! `nfskit papers predict`: the upper load points of a server from its lower ones.

mod record;
mod table;

use std::path::Path;

use harness::exit::Failure;
use harness::local;
use harness::output::Bars;
use harness::records;
use harness::verbosity::Verbosity;
use harness::verdict::Errors;
use load::cpu::Neighbours;
use net::clock::Clock;
use perf::model::informed::{Form, Informed, Seen};
use perf::model::least_squares::FitError;
use perf::record::Run as Record;
use perf::stats::{Estimate, Interval, Sample};
use perf::units::Nanos;
use wire::nfs3::StableHow;

use super::writes::{Ran, Setting, Writes, run_time};
use crate::papers::args::Predict;
use crate::workload::{self, Conditions, Outputs, Workload};

/// Calls outstanding: the lower half, which the model sees, and the upper.
const LOWER: [u32; 5] = [1, 2, 3, 4, 5];
const UPPER: [u32; 5] = [6, 8, 10, 12, 16];

/// So many that the server always finds one.
const SATURATED: u32 = 64;

/// The aims: of the median, and of the worst error; percent.
const AIMS: (f64, f64) = (5.0, 15.0);

/// A kind of server.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    key: &'static str,
    in_memory: bool,
    stable: StableHow,
}

const KINDS: [Kind; 3] = [
    Kind { name: "memory", key: "memory", in_memory: true, stable: StableHow::Unstable },
    Kind {
        name: "directory, UNSTABLE",
        key: "unstable",
        in_memory: false,
        stable: StableHow::Unstable,
    },
    Kind {
        name: "directory, FILE_SYNC",
        key: "file_sync",
        in_memory: false,
        stable: StableHow::FileSync,
    },
];

impl Kind {
    fn forms(&self) -> &'static [Form] {
        match self.stable {
            StableHow::Unstable => &PLAIN,
            _ => &STABLE,
        }
    }

    /// Syncs take milliseconds, and differ: it takes a while until there are many.
    fn time(&self, time: Nanos) -> Nanos {
        if self.stable == StableHow::Unstable { time } else { time * 2 }
    }
}

const PLAIN: [Form; 2] = [Form::Corner, Form::Variable];

/// A call that is answered when it is stable waits for a sync. Of what the processor spends on it,
/// half is for its reply: o is spent on both, and is most of it.
const STABLE: [Form; 3] = [Form::Corner, Form::Variable, Form::Gathered { after: 0.5 }];

/// One number of calls outstanding.
#[derive(Clone, Debug)]
struct Point {
    outstanding: u32,
    /// Calls a second: the median of the runs, and the lowest and highest of them.
    measured: Estimate,
    model: Estimate,
    /// The server's processor for a call, us.
    server_us: f64,
    is_predicted: bool,
}

impl Point {
    fn error_pct(&self) -> f64 {
        100.0 * (self.model.value / self.measured.value - 1.0)
    }
}

/// What became of one kind of server.
#[derive(Debug)]
struct Server {
    kind: Kind,
    informed: Informed,
    /// Typical error of each form that fits.
    forms: Vec<(Form, f64)>,
    points: Vec<Point>,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    link: String,
    overhead: Nanos,
    started: String,
    took: Nanos,
    repeats: usize,
    servers: Vec<Server>,
    /// A server that no form explains is refused, and its residuals printed.
    refused: Vec<(Kind, FitError)>,
    neighbours_share: Option<f64>,
}

impl Outcome {
    fn errors_pct(&self) -> Vec<f64> {
        let points = self.servers.iter().flat_map(|server| &server.points);
        points.filter(|point| point.is_predicted).map(|point| point.error_pct().abs()).collect()
    }

    /// Of predicted points, those at a server's saturation apart from those below it.
    fn errors(&self) -> Errors {
        let of = |(at, server): (usize, &Server)| {
            let predicted = server.points.iter().filter(|point| point.is_predicted);
            let points =
                predicted.map(move |point| (at, point.measured.value, point.error_pct().abs()));
            points.collect::<Vec<_>>()
        };
        Errors::of_curves(self.servers.iter().enumerate().flat_map(of))
    }

    /// Median and worst.
    fn verdict(&self) -> (f64, f64) {
        let errors = self.errors_pct();
        let worst = errors.iter().copied().fold(0.0, f64::max);
        (Sample::new(errors).map_or(f64::NAN, |sample| sample.median()), worst)
    }

    fn is_met(&self) -> bool {
        let (median, worst) = self.verdict();
        self.refused.is_empty() && median <= AIMS.0 && worst <= AIMS.1
    }

    fn summary(&self) -> String {
        if self.errors_pct().is_empty() {
            let servers = self.refused.len();
            return format!("no predictions: none of {servers} servers could be explained: missed");
        }
        let median = self.verdict().0;
        let verdict = if self.is_met() { "held" } else { "missed" };
        format!(
            "{} predictions, error {}; {median:.1} % at the median of all (aim {} %, and {} % at \
             worst): {verdict}",
            self.errors_pct().len(),
            self.errors().sentence(),
            AIMS.0,
            AIMS.1
        )
    }
}

impl Workload for Predict {
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
        let repeats = if self.quick { 2 } else { 7 };
        let mut bars = Bars::new(verbosity);
        let (mut servers, mut refused) = (Vec::new(), Vec::new());
        let measuring = async {
            for kind in KINDS {
                let runs = sweep(&clock, self, kind, (repeats, time), &mut bars).await?;
                match explain(kind, &runs) {
                    Ok(server) => servers.push(server),
                    Err(error) => refused.push((kind, error)),
                }
            }
            Ok(())
        };
        let ended = interrupts.or(measuring).await;
        bars.clear();
        let now = clock.now();
        let is_any = !servers.is_empty() || !refused.is_empty();
        let measured = is_any.then(|| Outcome {
            link: self.link.to_string(),
            overhead: self.overhead,
            started,
            took: now.since(begun),
            repeats,
            servers,
            refused,
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

fn windows() -> impl Iterator<Item = u32> {
    LOWER.into_iter().chain(UPPER).chain([SATURATED])
}

/// All runs of each window.
type Runs = Vec<(u32, Vec<Ran>)>;

/// All windows, over and over: what drifts drifts under all of them.
async fn sweep(
    clock: &Clock,
    args: &Predict,
    kind: Kind,
    (repeats, time): (usize, Nanos),
    bars: &mut Bars,
) -> Result<Runs, Failure> {
    let made = (!kind.in_memory).then(|| directory(args.dir.as_deref())).transpose()?;
    let setting = Setting {
        dir: made.as_ref().map(tempfile::TempDir::path),
        stable: kind.stable,
        link: args.link.clone(),
        overhead: args.overhead,
        threads: 256,
    };
    let writes = Writes::begin(clock, args.common.reply_limit, &setting).await?;
    let time = kind.time(time);
    writes.run(4, time).await?; // warm-up
    let mut runs: Runs = windows().map(|window| (window, Vec::new())).collect();
    let all = (repeats * runs.len()) as f64;
    for repeat in 0..repeats {
        for at in 0..runs.len() {
            bars.show(kind.name, (repeat * runs.len() + at) as f64 / all);
            let (window, own) = &mut runs[at];
            own.push(writes.run(*window, time).await?);
        }
    }
    Ok(runs)
}

fn directory(parent: Option<&Path>) -> Result<tempfile::TempDir, Failure> {
    local::private(parent, "--dir DIR, or a TMPDIR that this user may write in")
}

/// The lower half explained, and what follows for the upper.
fn explain(kind: Kind, runs: &Runs) -> Result<Server, FitError> {
    let lower = runs.iter().filter(|(window, _)| LOWER.contains(window));
    let seen: Vec<Seen> = lower
        .flat_map(|(window, own)| {
            own.iter().map(|ran| Seen {
                outstanding: *window,
                per_s: ran.per_s,
                busy_us: ran.server_us,
            })
        })
        .collect();
    let (informed, forms) = Informed::best(&seen, kind.forms())?;
    let point = |(window, own): &(u32, Vec<Ran>)| {
        let sample = Sample::new(own.iter().map(|ran| ran.per_s).collect::<Vec<f64>>())
            .map_err(|_| FitError::NotFinite)?;
        let spread = Interval { lo: sample.min(), hi: sample.max() };
        let busy = Sample::new(own.iter().map(|ran| ran.server_us).collect::<Vec<f64>>())
            .map_err(|_| FitError::NotFinite)?;
        let model = informed.per_s(*window).map_err(|_| FitError::NotFinite)?;
        Ok(Point {
            outstanding: *window,
            measured: Estimate { value: sample.median(), ci95: Some(spread) },
            model,
            server_us: busy.median(),
            is_predicted: !LOWER.contains(window),
        })
    };
    let points = runs.iter().map(point).collect::<Result<Vec<Point>, FitError>>()?;
    Ok(Server { kind, informed, forms, points })
}
