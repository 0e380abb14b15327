//! Stable WRITEs without a write log and with one: two servers of this process on one disk, in
//! alternation, beside what the model has of them.

use std::path::Path;

use client::mount;
use harness::exit::Failure;
use harness::local;
use harness::logged::{NAMES, Pair};
use load::stable::StableWrites;
use net::clock::Clock;
use net::shape::profile::Profile;
use perf::model::transaction::{Path as NfsPath, Server};
use perf::model::write_log::{LogDevice, Stable, outlook};
use perf::record::Run as Record;
use perf::stats::Sample;
use perf::units::Nanos;
use report::{Curve, CurvePoint, Numbers, ThroughputPlot};

/// WRITEs as the cycles have them.
const CALL_BYTES: u32 = 8 << 10;
const WINDOWS: [u32; 4] = [1, 4, 16, 64];
/// Of each server, in turn.
const ROUNDS: usize = 3;
const TIME: Nanos = Nanos::from_millis(300);

/// Everything that a report or a record says of it.
#[derive(Debug)]
pub(crate) struct Logged {
    /// As measured at the start of the server, and of any rate.
    device: LogDevice,
    points: Vec<Point>,
}

/// Of a window, first without the log: WRITEs a second.
#[derive(Debug)]
struct Point {
    outstanding: u32,
    measured: [Vec<f64>; 2],
    predicted: [f64; 2],
}

/// Measures both, with so much known of the path.
pub(crate) async fn measure(
    clock: &Clock,
    (dir, log): (&Path, &Path),
    link: &Profile,
    reply_limit: Nanos,
    path: &NfsPath,
) -> Result<Logged, Failure> {
    let pair = Pair::start(dir, log, &local::tag(clock))?;
    let mut sides = Vec::new();
    for (target, options) in pair.reach(reply_limit, &link.clone().into()) {
        let session = mount::mount(clock, &target, &options).await?.session;
        let side = StableWrites::begin(clock, session, CALL_BYTES).await?;
        // The file gets its length, and processors their speed.
        side.per_s(16, TIME).await?;
        sides.push(side);
    }
    let (write_us, both_us) = pair.log_us().unwrap_or_default();
    let device = LogDevice { write_us, both_us, us_per_kib: 0.0 };
    let mut points = Vec::new();
    for outstanding in WINDOWS {
        let calls = Stable { bytes: CALL_BYTES.into(), outstanding };
        let of = |log| outlook(path, Server::Concurrent, log, &calls).turns.per_s;
        let predicted = [of(None), of(Some(&device))];
        let mut measured = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (side, rates) in sides.iter().zip(&mut measured) {
                rates.push(side.per_s(outstanding, TIME).await?);
            }
        }
        points.push(Point { outstanding, measured, predicted });
    }
    Ok(Logged { device, points })
}

impl Point {
    /// The medians.
    fn per_s(&self) -> [f64; 2] {
        let median = |rates: &Vec<f64>| {
            Sample::new(rates.clone()).map_or(f64::NAN, |sample| sample.median())
        };
        [median(&self.measured[0]), median(&self.measured[1])]
    }

    fn gains(&self) -> (f64, f64) {
        let [without, with] = self.per_s();
        (with / without, self.predicted[1] / self.predicted[0])
    }
}

impl Logged {
    /// Both servers over the windows, with what the model has.
    pub(crate) fn plot(&self) -> ThroughputPlot {
        let mib = |per_s: f64| per_s * f64::from(CALL_BYTES) / 1_048_576.0;
        let point = |side: usize, point: &Point| CurvePoint {
            n: point.outstanding,
            measured_mib_s: Some(mib(point.per_s()[side])),
            predicted_mib_s: Some(mib(point.predicted[side])),
            ..CurvePoint::default()
        };
        let curve = |side: usize| Curve {
            name: NAMES[side].to_owned(),
            points: self.points.iter().map(|of| point(side, of)).collect(),
        };
        ThroughputPlot {
            title: "8 KiB writes, each stable when it is answered".to_owned(),
            curves: vec![curve(0), curve(1)],
            ceilings: Vec::new(),
        }
    }

    pub(crate) fn table(&self) -> Numbers {
        let columns =
            ["outstanding", "without, 1/s", "with, 1/s", "gain", "predicted", "difference"];
        let row = |point: &Point| {
            let ([without, with], (gain, predicted)) = (point.per_s(), point.gains());
            vec![
                point.outstanding.to_string(),
                format!("{without:.0}"),
                format!("{with:.0}"),
                format!("{gain:.2} x"),
                format!("{predicted:.2} x"),
                format!("{:+.1} %", 100.0 * (predicted / gain - 1.0)),
            ]
        };
        let LogDevice { write_us, both_us, .. } = self.device;
        Numbers {
            title: "With a write log and without".to_owned(),
            caption: format!(
                "FILE_SYNC WRITEs of 8 KiB to one file of each of two servers on one disk, \
                 {ROUNDS} runs of {TIME} in alternation, medians. A write of the log takes \
                 {write_us:.0} us, each of two {both_us:.0} us. Predicted by the probe and these, \
                 as nfskit model whatif write-log={write_us:.0}us,both={both_us:.0}us does."
            ),
            columns: columns.map(str::to_owned).into(),
            rows: self.points.iter().map(row).collect(),
        }
    }

    /// As a summary says it.
    pub(crate) fn sentence(&self) -> String {
        let gain = |point: &Point| {
            let (gain, predicted) = point.gains();
            format!("{gain:.2} x with {} outstanding (predicted {predicted:.2})", point.outstanding)
        };
        let all: Vec<String> = self.points.iter().map(gain).collect();
        format!("Stable WRITEs gain by the write log: {}.", all.join(", "))
    }

    pub(crate) fn record(&self, run: &mut Record) {
        run.metric("log/write_us", self.device.write_us, "us");
        run.metric("log/both_us", self.device.both_us, "us");
        for point in &self.points {
            let name = |what: &str| format!("log/{}/{what}", point.outstanding);
            let ([without, with], (gain, predicted)) = (point.per_s(), point.gains());
            run.metric(&name("without_per_s"), without, "1/s");
            run.metric(&name("with_per_s"), with, "1/s");
            run.metric(&name("gain"), gain, "ratio");
            run.metric(&name("gain_predicted"), predicted, "ratio");
        }
    }
}
