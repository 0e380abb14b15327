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
use perf::model::write_log::{LogDevice, Stable, stable_rate};
use perf::record::Run as Record;
use perf::stats::Sample;
use perf::units::Nanos;
use report::{Curve, CurvePoint, Numbers, ThroughputPlot};

/// WRITEs as the cycles have them.
const CALL_BYTES: u32 = 8 << 10;
const WINDOWS: [u32; 4] = [1, 4, 16, 64];
/// Of each server, in turn.
const ROUNDS: usize = 3;
pub(crate) const TIME: Nanos = Nanos::from_millis(300);
pub(crate) const TIME_QUICK: Nanos = Nanos::from_millis(60);

/// Everything that a report or a record says of it.
#[derive(Debug)]
pub(crate) struct Logged {
    /// As measured at the start of the server, and of any rate; if it was.
    device: Option<LogDevice>,
    /// Of each run.
    time: Nanos,
    points: Vec<WindowPoint>,
}

/// Of a window, first without the log: WRITEs a second.
#[derive(Debug)]
struct WindowPoint {
    outstanding: u32,
    measured: [Vec<f64>; 2],
    /// With the log only if it is known what a write of that takes.
    predicted: [Option<f64>; 2],
}

/// Measures both, with so much known of the path.
pub(crate) async fn measure(
    clock: &Clock,
    (dir, log): (&Path, &Path),
    link: &Profile,
    (reply_limit, time): (Nanos, Nanos),
    path: &NfsPath,
) -> Result<Logged, Failure> {
    let pair = Pair::start(dir, log, &local::tag(clock))?;
    let mut sides = Vec::new();
    for (target, options) in pair.reach(reply_limit, &link.clone().into()) {
        let session = mount::mount(clock, &target, &options).await?.session;
        let side = StableWrites::begin(clock, session, CALL_BYTES).await?;
        // The file gets its length, and processors their speed.
        side.per_s(16, time).await?;
        sides.push(side);
    }
    let device =
        pair.log_us().map(|(write_us, both_us)| LogDevice { write_us, both_us, us_per_kib: 0.0 });
    let mut points = Vec::new();
    for outstanding in WINDOWS {
        let mut measured = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (side, rates) in sides.iter().zip(&mut measured) {
                rates.push(side.per_s(outstanding, time).await?);
            }
        }
        let predicted = WindowPoint::predicted(path, device.as_ref(), outstanding);
        points.push(WindowPoint { outstanding, measured, predicted });
    }
    Ok(Logged { device, time, points })
}

impl WindowPoint {
    fn predicted(path: &NfsPath, log: Option<&LogDevice>, outstanding: u32) -> [Option<f64>; 2] {
        let calls = Stable { bytes: CALL_BYTES.into(), outstanding };
        let per_s = |log| stable_rate(path, Server::Concurrent, log, &calls).turns.per_s;
        [Some(per_s(None)), log.map(|log| per_s(Some(log)))]
    }

    /// The medians.
    fn per_s(&self) -> [f64; 2] {
        let median = |rates: &Vec<f64>| {
            Sample::new(rates.clone()).map_or(f64::NAN, |sample| sample.median())
        };
        [median(&self.measured[0]), median(&self.measured[1])]
    }

    /// As measured, and as predicted.
    fn gains(&self) -> (f64, Option<f64>) {
        let [without, with] = self.per_s();
        let [without_log, with_log] = self.predicted;
        let predicted = with_log.zip(without_log).map(|(with, without)| with / without);
        (with / without, predicted)
    }
}

impl Logged {
    /// Both servers over the windows, with what the model has.
    pub(crate) fn plot(&self) -> ThroughputPlot {
        let mib = |per_s: f64| per_s * f64::from(CALL_BYTES) / 1_048_576.0;
        let point = |side: usize, point: &WindowPoint| CurvePoint {
            n: point.outstanding,
            measured_mib_s: Some(mib(point.per_s()[side])),
            predicted_mib_s: point.predicted[side].map(mib),
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
        let row = |point: &WindowPoint| {
            let ([without, with], (gain, predicted)) = (point.per_s(), point.gains());
            [
                point.outstanding.to_string(),
                format!("{without:.0}"),
                format!("{with:.0}"),
                format!("{gain:.2} x"),
                predicted.map_or_else(unknown, |predicted| format!("{predicted:.2} x")),
                predicted.map_or_else(unknown, |predicted| {
                    format!("{:+.1} %", 100.0 * (predicted / gain - 1.0))
                }),
            ]
        };
        let caption = format!(
            "FILE_SYNC WRITEs of 8 KiB to one file of each of two servers on one disk, {ROUNDS} \
             runs of {} in alternation, medians. {}",
            self.time,
            self.basis()
        );
        let rows = self.points.iter().map(row);
        Numbers::new("With a write log and without", &caption, columns, rows)
    }

    /// What the predictions are made from.
    fn basis(&self) -> String {
        let Some(LogDevice { write_us, both_us, .. }) = self.device else {
            return "What a write of the log takes is not known, and so no gain is predicted."
                .to_owned();
        };
        format!(
            "A write of the log takes {write_us:.0} us, each of two {both_us:.0} us. Predicted by \
             the probe and these, as nfskit model whatif \
             write-log={write_us:.0}us,both={both_us:.0}us does."
        )
    }

    /// As a summary says it.
    pub(crate) fn sentence(&self) -> String {
        let gain = |point: &WindowPoint| {
            let (gain, predicted) = point.gains();
            let predicted = predicted.map_or_else(unknown, |predicted| format!("{predicted:.2}"));
            format!("{gain:.2} x with {} outstanding (predicted {predicted})", point.outstanding)
        };
        let all: Vec<String> = self.points.iter().map(gain).collect();
        format!("Stable WRITEs gain by the write log: {}.", all.join(", "))
    }

    pub(crate) fn record(&self, run: &mut Record) {
        if let Some(device) = &self.device {
            run.metric("log/write_us", device.write_us, "us");
            run.metric("log/both_us", device.both_us, "us");
        }
        for point in &self.points {
            let name = |what: &str| format!("log/{}/{what}", point.outstanding);
            let ([without, with], (gain, predicted)) = (point.per_s(), point.gains());
            run.metric(&name("without_per_s"), without, "1/s");
            run.metric(&name("with_per_s"), with, "1/s");
            run.metric(&name("gain"), gain, "ratio");
            run.metric_if_known(&name("gain_predicted"), predicted, "ratio");
        }
    }
}

fn unknown() -> String {
    "not known".to_owned()
}

#[cfg(test)]
mod tests {
    use perf::record::Tool;

    use super::*;

    fn logged(device: Option<LogDevice>) -> Logged {
        let with = device.map(|_| 3000.0);
        let point = WindowPoint {
            outstanding: 4,
            measured: [vec![1000.0, 900.0, 1100.0], vec![2000.0; 3]],
            predicted: [Some(1000.0), with],
        };
        Logged { device, time: TIME, points: vec![point] }
    }

    #[test]
    fn a_gain_is_predicted_where_a_write_of_the_log_is_known() {
        let of = logged(Some(LogDevice::of_sync(100.0)));
        assert!(of.sentence().contains("2.00 x with 4 outstanding (predicted 3.00)"));
        assert!(of.table().caption.contains("write-log=100us,both=200us"));
        assert_eq!(of.table().rows[0][3..], ["2.00 x", "3.00 x", "+50.0 %"]);
    }

    #[test]
    fn where_it_is_not_known_that_is_said() {
        let of = logged(None);
        assert!(of.sentence().contains("(predicted not known)"));
        assert!(of.table().caption.ends_with("and so no gain is predicted."));
        assert_eq!(of.table().rows[0][3..], ["2.00 x", "not known", "not known"]);
        assert_eq!(of.plot().curves[1].points[0].predicted_mib_s, None);
        let mut run = Record::new(Tool::default(), "2026-01-01T00:00:00Z");
        of.record(&mut run);
        let mut names = run.metrics().keys();
        assert!(names.all(|name| !name.contains("predicted") && !name.ends_with("_us")));
    }
}
