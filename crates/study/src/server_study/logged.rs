//! Stable WRITEs without a write log and with one: two servers of this process on one disk, in
//! alternation, beside what the model has of them.

use std::time::Duration;

use client::mount;
use harness::exit::Failure;
use harness::logged::{NAMES, Pair};
use harness::records;
use harness::verdict::Gain;
use load::stable::StableWrites;
use net::clock::Clock;
use net::shape::profile::Profile;
use perf::model::transaction::{Path as NfsPath, Server};
use perf::model::write_log::{LogDevice, Stable, StableRate, stable_rate};
use perf::record::Run as Record;
use perf::units::Nanos;
use report::{Curve, CurvePoint, Numbers, ThroughputPlot};
use server::store::dir::write_log::Latencies;

use crate::models::differ_pct;

/// WRITEs as the cycles have them.
const CALL_BYTES: u32 = 8 << 10;
const WINDOWS: [u32; 4] = [1, 4, 16, 64];
/// Of each server, in turn.
const ROUNDS: usize = 3;
pub(crate) const TIME: Nanos = Nanos::from_millis(300);
pub(crate) const TIME_QUICK: Nanos = Nanos::from_millis(60);
/// Most that waking threads for a sync is taken to be: two wakes of processors that have gone to
/// sleep, of some 40 us each, and a little; guess. More of a difference is the disk's.
const WAKE_US_MAX: f64 = 100.0;

/// Everything that a report or a record says of it.
#[derive(Debug)]
pub(crate) struct Logged {
    /// As measured at the start of the server; if it was.
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
    predicted: [Option<StableRate>; 2],
}

/// Measures both, with so much known of the path.
pub(crate) async fn measure(
    clock: &Clock,
    pair: &Pair,
    link: &Profile,
    (reply_limit, time): (Nanos, Nanos),
    path: &NfsPath,
) -> Result<Logged, Failure> {
    let mut sides = Vec::new();
    for (target, options) in pair.reach(reply_limit, &link.clone().into()) {
        let session = mount::mount(clock, &target, &options).await?.session;
        let side = StableWrites::begin(clock, session, CALL_BYTES).await?;
        // The file gets its length, and processors their speed.
        side.per_s(16, time).await?;
        sides.push(side);
    }
    let device = pair.latencies().map(|took| device(&took, path.storage.sync_us));
    let mut points = Vec::new();
    for outstanding in WINDOWS {
        let measured = alternated(&sides, outstanding, time).await?;
        let predicted = WindowPoint::predicted(path, device.as_ref(), outstanding);
        points.push(WindowPoint { outstanding, measured, predicted });
    }
    Ok(Logged { device, time, points })
}

/// WRITEs a second of both, in turn.
async fn alternated(
    sides: &[StableWrites],
    outstanding: u32,
    time: Nanos,
) -> Result<[Vec<f64>; 2], Failure> {
    let mut measured = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (side, rates) in sides.iter().zip(&mut measured) {
            rates.push(side.per_s(outstanding, time).await?);
        }
    }
    Ok(measured)
}

/// The log as it was measured. What a sync takes beyond the disk's part of it, by the probe, is the
/// processor's: threads that are woken for a sync, as others are for a frame.
fn device(took: &Latencies, sync_us: f64) -> LogDevice {
    let us = |took: Duration| took.as_secs_f64() * 1e6;
    let wake_us = match took.overwritten.is_zero() {
        true => 0.0,
        false => (sync_us - us(took.overwritten)).clamp(0.0, WAKE_US_MAX),
    };
    let write_us = us(took.log_used);
    // As many times that as two alone take: the server decides by those how many frames it begins.
    let alone_us = us(took.log).max(f64::MIN_POSITIVE);
    let both_us = write_us * (us(took.log_side_by_side) / alone_us).clamp(1.0, 10.0);
    LogDevice { write_us, both_us, us_per_kib: took.log_us_per_kib(), wake_us }
}

impl WindowPoint {
    fn predicted(
        path: &NfsPath,
        log: Option<&LogDevice>,
        outstanding: u32,
    ) -> [Option<StableRate>; 2] {
        let calls = Stable { bytes: CALL_BYTES.into(), outstanding };
        let of = |log| stable_rate(path, Server::Concurrent, log, &calls);
        [Some(of(None)), log.map(|log| of(Some(log)))]
    }

    /// The medians.
    fn per_s(&self) -> [f64; 2] {
        self.measured.each_ref().map(|rates| records::median(rates.clone()))
    }

    /// As measured, and as predicted.
    fn gains(&self) -> (f64, Option<f64>) {
        let [without, with] = self.per_s();
        let [without_log, with_log] = self.predicted;
        let ratio =
            |(with, without): (StableRate, StableRate)| with.turns.per_s / without.turns.per_s;
        (with / without, with_log.zip(without_log).map(ratio))
    }

    /// What became of the prediction, if there is one.
    fn verdict(&self) -> Option<&'static str> {
        let (measured, predicted) = self.gains();
        let predicted = predicted?;
        if self.is_limit() && measured <= predicted {
            return Some("within");
        }
        let noise = self.measured.iter().filter_map(|rates| differ_pct(rates));
        let noise_pct = noise.fold(0.0, f64::max);
        Some(Gain { predicted, measured, noise_pct }.verdict())
    }

    /// Whether the prediction is the most that can be: what the processor does for a record is not
    /// in it, and it has no time left.
    fn is_limit(&self) -> bool {
        self.predicted[1].is_some_and(|with| with.is_full)
    }

    fn record(&self, run: &mut Record) {
        let name = |what: &str| format!("log/{}/{what}", self.outstanding);
        let ([without, with], (gain, predicted)) = (self.per_s(), self.gains());
        run.metric(&name("without_per_s"), without, "1/s");
        run.metric(&name("with_per_s"), with, "1/s");
        run.metric(&name("gain"), gain, "ratio");
        run.metric_if_known(&name("gain_predicted"), predicted, "ratio");
        let [Some(without), Some(with)] = &self.predicted else { return };
        run.metric(&name("without_predicted_per_s"), without.turns.per_s, "1/s");
        run.metric(&name("with_predicted_per_s"), with.turns.per_s, "1/s");
        run.metric(&name("is_limit"), f64::from(u8::from(self.is_limit())), "");
    }

    fn predicted_text(&self, unit: &str) -> String {
        let at_most = if self.is_limit() { "at most " } else { "" };
        let text = |predicted| format!("{at_most}{predicted:.2}{unit}");
        self.gains().1.map_or_else(unknown, text)
    }

    fn cells(&self) -> [String; 6] {
        let [without, with] = self.per_s().map(|per_s| format!("{per_s:.0}"));
        let (n, gain) = (self.outstanding.to_string(), format!("{:.2} x", self.gains().0));
        [n, without, with, gain, self.predicted_text(" x"), self.difference()]
    }

    fn difference(&self) -> String {
        match (self.gains(), self.verdict()) {
            ((gain, Some(predicted)), Some(verdict)) if verdict != "within" => {
                format!("{:+.1} %, {verdict}", 100.0 * (predicted / gain - 1.0))
            }
            (_, verdict) => verdict.map_or_else(unknown, str::to_owned),
        }
    }
}

impl Logged {
    /// Both servers over the windows, with what the model has.
    pub(crate) fn plot(&self) -> ThroughputPlot {
        let mib = |per_s: f64| per_s * f64::from(CALL_BYTES) / 1_048_576.0;
        let point = |side: usize, point: &WindowPoint| CurvePoint {
            n: point.outstanding,
            measured_mib_s: Some(mib(point.per_s()[side])),
            predicted_mib_s: point.predicted[side].map(|of| mib(of.turns.per_s)),
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
        let caption = format!(
            "FILE_SYNC WRITEs of 8 KiB to one file of each of two servers on one disk, {ROUNDS} \
             runs of {} in alternation, medians. {}",
            self.time,
            self.basis()
        );
        let rows = self.points.iter().map(WindowPoint::cells);
        Numbers::new("With a write log and without", &caption, columns, rows)
    }

    /// What the predictions are made from.
    fn basis(&self) -> String {
        let Some(LogDevice { write_us, both_us, us_per_kib, wake_us }) = self.device else {
            return "What a write of the log takes is not known, and so no gain is predicted."
                .to_owned();
        };
        let rate = match us_per_kib > 0.0 {
            true => format!(",rate={:.0}MB/s", 1024.0 / us_per_kib),
            false => String::new(),
        };
        let limit = match self.points.iter().any(WindowPoint::is_limit) {
            true => {
                " At most: the processor has no time left, and what it does for a record is not \
                 in the model."
            }
            false => "",
        };
        format!(
            "A write of the log takes {write_us:.0} us, each of two {both_us:.0} us, and threads \
             woken for it {wake_us:.0} us: what a sync takes by the probe beyond one of the disk. \
             Predicted by the probe and these, as nfskit model whatif \
             write-log={write_us:.0}us,both={both_us:.0}us{rate},wake={wake_us:.0}us does.{limit}"
        )
    }

    /// As a summary says it.
    pub(crate) fn sentence(&self) -> String {
        let gain = |point: &WindowPoint| {
            let (gain, predicted) = (point.gains().0, point.predicted_text(""));
            let verdict = point.verdict().map_or(String::new(), |verdict| format!(": {verdict}"));
            let n = point.outstanding;
            format!("{gain:.2} x with {n} outstanding (predicted {predicted}{verdict})")
        };
        let all: Vec<String> = self.points.iter().map(gain).collect();
        format!("Stable WRITEs a second with the write log, of those without: {}.", all.join(", "))
    }

    /// How many predictions are off by more than the runs differ, if any.
    pub(crate) fn missed(&self) -> Option<String> {
        let (count, of) = (self.points.iter().filter(is_missed).count(), self.points.len());
        let what = "predictions of what the write log changes missed: see its table";
        (count > 0).then(|| format!("{count} of {of} {what}"))
    }

    pub(crate) fn record(&self, run: &mut Record) {
        if let Some(device) = &self.device {
            run.metric("log/write_us", device.write_us, "us");
            run.metric("log/both_us", device.both_us, "us");
            run.metric("log/us_per_kib", device.us_per_kib, "us/KiB");
            run.metric("log/wake_us", device.wake_us, "us");
        }
        self.points.iter().for_each(|point| point.record(run));
    }
}

fn is_missed(point: &&WindowPoint) -> bool {
    point.verdict() == Some("missed")
}

fn unknown() -> String {
    "not known".to_owned()
}

#[cfg(test)]
mod tests {
    use perf::model::gathered::Turns;
    use perf::record::Tool;

    use super::*;

    fn of(per_s: f64, is_full: bool) -> StableRate {
        let turns = Turns { per_s, together: 1.0 };
        StableRate { turns, response_us: 4e6 / per_s, lasting_per_s: per_s, is_full }
    }

    fn logged(device: Option<LogDevice>, is_full: bool) -> Logged {
        let with = device.map(|_| of(3000.0, is_full));
        let point = WindowPoint {
            outstanding: 4,
            measured: [vec![1000.0, 900.0, 1100.0], vec![2000.0; 3]],
            predicted: [Some(of(1000.0, false)), with],
        };
        Logged { device, time: TIME, points: vec![point] }
    }

    const MISSED: &str = "1 of 1 predictions of what the write log changes missed";

    #[test]
    fn a_gain_is_predicted_where_a_write_of_the_log_is_known() {
        let device = LogDevice { us_per_kib: 1.024, wake_us: 30.0, ..LogDevice::of_sync(100.0) };
        let of = logged(Some(device), false);
        assert!(of.sentence().contains("2.00 x with 4 outstanding (predicted 3.00: missed)"));
        assert_eq!(of.missed().unwrap().split(':').next(), Some(MISSED));
        assert!(of.table().caption.contains("=100us,both=200us,rate=1000MB/s,wake=30us"));
        assert_eq!(of.table().rows[0][3..], ["2.00 x", "3.00 x", "+50.0 %, missed"]);
    }

    #[test]
    fn where_the_processor_is_full_the_prediction_is_a_limit() {
        let of = logged(Some(LogDevice::of_sync(100.0)), true);
        assert!(of.sentence().contains("(predicted at most 3.00: within)"));
        assert_eq!(of.missed(), None);
        assert!(of.table().caption.contains("both=200us,wake=0us does. At most: the processor"));
        assert_eq!(of.table().rows[0][3..], ["2.00 x", "at most 3.00 x", "within"]);
    }

    #[test]
    fn threads_that_are_woken_are_what_the_disk_does_not_take_of_a_sync() {
        let wake_us = |sync_us: f64, disk_us: u64| {
            let overwritten = Duration::from_micros(disk_us);
            device(&Latencies { overwritten, ..Latencies::default() }, sync_us).wake_us
        };
        assert_eq!((wake_us(150.0, 110), wake_us(100.0, 110)), (40.0, 0.0));
        assert_eq!((wake_us(150.0, 0), wake_us(9_000.0, 8_000)), (0.0, WAKE_US_MAX));
    }

    #[test]
    fn where_it_is_not_known_that_is_reported() {
        let of = logged(None, false);
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
