//! Stable WRITEs and COMMITs without a write log and with it, of a path that a probe found: by the
//! loop of the model, and by a world.

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use perf::model::saved::SavedPath;
use perf::model::transaction::{Path, Server, Storage};
use perf::model::whatif::of_path::{PathCase, StablePrediction};
use perf::model::whatif::{Change, WhatIfError};
use perf::model::write_log::{LOGGED_BYTES_MAX, LogDevice, Stable, commit_us};
use perf::record::Run as Record;

use super::text::{refused, times, whole, with_interval};
use crate::model::args::estimate::WhatIf;
use crate::model::page::{Page, or_dash, span};

/// Calls outstanding that are predicted, beside those of the probe.
const OUTSTANDING: [u32; 3] = [1, 16, 64];

/// COMMITs of so many bytes: a small file, and a large one.
const COMMIT_BYTES: [u64; 2] = [8 << 10, 4 << 20];

/// The part of a write log; nothing where none is among the changes.
pub(super) fn write(
    args: &WhatIf,
    before: &PathCase,
    saved: &SavedPath,
    page: &mut Page,
) -> Result<(), Failure> {
    let Some(log) = args.changes.iter().rev().find_map(|change| change.log) else {
        return Ok(());
    };
    if before.server == Server::Stall {
        page.line("");
        page.note("server-stops", STOPS, "probe a server with --commit-mode concurrent");
    }
    // What a server gains that stops no more is not the log's.
    let before = &PathCase { server: Server::Concurrent, ..*before };
    let readings = readings(before, saved);
    let mut table = table();
    let mut notes = Vec::new();
    for calls in stable_writes(before) {
        let pair = Pair::of(&readings, &args.changes, saved, (&log, calls)).map_err(refused)?;
        let Some(pair) = pair else { continue };
        notes.extend(pair.world.as_ref().err().map(|why| format!("no simulation: {why}")));
        pair.record(&mut page.record);
        table.row(pair.row());
    }
    page.line("");
    page.table(&table);
    match saved.stable_in_op {
        true => {
            page.line(device(&log));
            page.note("stable-in-op", &in_op(before), "the times of the server's own disk");
        }
        false => {
            let after = before.changed(&args.changes).map_err(refused)?;
            let commits = commits(before, &after, &log, &mut page.record);
            page.line(format_args!("{commits}\n{}", device(&log)));
            if let Some(lasting) = lasting(&after, &log) {
                page.line(format_args!("note: {lasting}"));
            }
        }
    }
    notes.iter().for_each(|note| page.note("no-simulation", note, ""));
    Ok(())
}

/// What the path may be: where T_B is in T_op, no part of that is the disk's, or all of it is.
fn readings(before: &PathCase, saved: &SavedPath) -> Vec<PathCase> {
    let PathCase { path, .. } = *before;
    let sync_us = path.storage.sync_us + path.op_us;
    let storage = Storage { sync_us, ..path.storage };
    let of_disk = PathCase { path: Path { op_us: 0.0, storage, ..path }, ..*before };
    [*before].into_iter().chain(saved.stable_in_op.then_some(of_disk)).collect()
}

/// Of a record without UNSTABLE WRITEs.
fn in_op(before: &PathCase) -> String {
    format!(
        "the probe could not distinguish T_op and T_B: of the {} of a WRITE the log takes nothing \
         away, or nearly all, and its gain is between the two",
        span(before.path.op_us)
    )
}

fn table() -> Table {
    let calls = [left("stable WRITEs/s"), right("outstanding")];
    let formula = [left("without a log"), left("with it"), right("together"), right("gain")];
    let rest = [right("simulation"), left("response time")];
    Table::new(calls.into_iter().chain(formula).chain(rest))
}

/// Of a probe that sees calls wait for other calls' syncs.
const STOPS: &str = "the probe takes this server for one that stops for its disk. The gain is the \
                     log's beside a server that does not stop: what ends the stopping is more, and \
                     not the log's";

/// WRITEs as programs make them that want them to be stable; and those of the probe, where a log
/// takes them.
fn stable_writes(before: &PathCase) -> Vec<Stable> {
    let small = OUTSTANDING.map(|outstanding| Stable { bytes: SMALL_BYTES, outstanding });
    let own = before.transfer;
    let outstanding = own.outstanding.min(OUTSTANDING_MAX);
    let bytes = if own.call_bytes <= LOGGED_BYTES_MAX { own.call_bytes } else { SMALL_BYTES };
    let mut all: Vec<Stable> = small.into_iter().chain([Stable { bytes, outstanding }]).collect();
    all.sort_unstable_by_key(|calls| (calls.bytes, calls.outstanding));
    all.dedup();
    all
}

const SMALL_BYTES: u64 = 8 << 10;

/// Of a world, in which each call keeps its data in memory.
const OUTSTANDING_MAX: u32 = 1024;

/// WRITEs without the log and with it, as the formula has them and a world. With it there is a
/// number for each reading of the path.
struct Pair {
    calls: Stable,
    without: StablePrediction,
    with: Vec<StablePrediction>,
    world: Result<(f64, Vec<f64>), String>,
}

/// Names of the readings in a record, where there are two.
const READINGS: [&str; 2] = ["_if_op", "_if_disk"];

impl Pair {
    /// None where no change is a log.
    fn of(
        readings: &[PathCase],
        changes: &[Change],
        saved: &SavedPath,
        (log, calls): (&LogDevice, Stable),
    ) -> Result<Option<Self>, WhatIfError> {
        let (mut without, mut with) = (None, Vec::new());
        for reading in readings {
            let both = reading.stable(changes, &calls, &saved.spread())?;
            let Some([before, after]) = both else { return Ok(None) };
            without.get_or_insert(before);
            with.push(after);
        }
        let after = readings.iter().map(|reading| reading.changed(changes));
        let after: Vec<PathCase> = after.collect::<Result<_, _>>()?;
        let world = simulated(&readings[0], &after, log, &calls);
        Ok(without.map(|without| Self { calls, without, with, world }))
    }

    fn gains(&self) -> Vec<f64> {
        let with = self.with.iter();
        with.map(|with| with.per_s.value / self.without.per_s.value).collect()
    }

    fn simulated_gains(&self) -> Option<Vec<f64>> {
        let (without, with) = self.world.as_ref().ok()?;
        Some(with.iter().map(|with| with / without).collect())
    }

    fn record(&self, record: &mut Record) {
        let of = format!("stable/{}/{}", self.calls.bytes, self.calls.outstanding);
        let mut predicted = |name: &str, of_name: &StablePrediction| {
            record.estimate(&format!("{of}/{name}/per_s"), &of_name.per_s, "1/s", 1);
            let response = format!("{of}/{name}/response_us");
            record.metric(&response, of_name.rate.response_us, "us");
        };
        let suffixes: &[&str] = if self.with.len() > 1 { &READINGS } else { &[""] };
        predicted("without", &self.without);
        for (suffix, with) in suffixes.iter().zip(&self.with) {
            predicted(&format!("with{suffix}"), with);
        }
        let simulated = self.simulated_gains().unwrap_or_default();
        for (name, gains) in [("gain", self.gains()), ("simulated_gain", simulated)] {
            for (suffix, gain) in suffixes.iter().zip(gains) {
                record.metric(&format!("{of}/{name}{suffix}"), gain, "ratio");
            }
        }
    }

    fn row(&self) -> [String; 8] {
        let Self { calls, without, with, .. } = self;
        let each = |text: &dyn Fn(&StablePrediction) -> String| {
            with.iter().map(text).collect::<Vec<_>>().join(" to ")
        };
        [
            format!("of {}", scaled(calls.bytes as f64)),
            calls.outstanding.to_string(),
            with_interval(&without.per_s, whole),
            each(&|with| with_interval(&with.per_s, whole)),
            each(&|with| format!("{:.1}", with.rate.turns.together)),
            factors(&self.gains()),
            or_dash(self.simulated_gains().map(|gains| factors(&gains))),
            format!(
                "{} -> {}",
                span(without.rate.response_us),
                each(&|with| span(with.rate.response_us))
            ),
        ]
    }
}

/// `1.06 x to 42.10 x`
fn factors(gains: &[f64]) -> String {
    gains.iter().copied().map(times).collect::<Vec<_>>().join(" to ")
}

/// WRITEs a second in worlds without the log, and with it for each reading.
fn simulated(
    before: &PathCase,
    after: &[PathCase],
    log: &LogDevice,
    calls: &Stable,
) -> Result<(f64, Vec<f64>), String> {
    let of = |case: &PathCase, log: Option<&LogDevice>| {
        world::path::stable_per_s(case, log, calls).map_err(|error| error.to_string())
    };
    let with = after.iter().map(|after| of(after, Some(log)));
    Ok((of(before, None)?, with.collect::<Result<_, _>>()?))
}

/// Which the log answers where they are of little.
fn commits(before: &PathCase, after: &PathCase, log: &LogDevice, record: &mut Record) -> String {
    let times = COMMIT_BYTES.map(|bytes| {
        let without_us = commit_us(&before.path, before.server, None, bytes);
        let with_us = commit_us(&after.path, after.server, Some(log), bytes);
        record.metric(&format!("commit/{bytes}/without/response_us"), without_us, "us");
        record.metric(&format!("commit/{bytes}/with/response_us"), with_us, "us");
        format!("{} of {}", scaled(bytes as f64), span(without_us))
            + &format!(" -> {}", span(with_us))
    });
    format!(
        "COMMITs of up to 64 KiB come from the log where that is sooner; others sync the file as \
         without one, and wait for the log where it has WRITEs of the file: {}",
        times.join(", ")
    )
}

fn device(log: &LogDevice) -> String {
    let LogDevice { write_us, both_us, us_per_kib, wake_us } = *log;
    let rate = match us_per_kib > 0.0 {
        true => format!("{:.0} MB/s", 1024.0 / us_per_kib),
        false => "any rate".to_owned(),
    };
    let at_a_time = if log.at_a_time() == 1 { "one frame" } else { "two frames" };
    let woken = match wake_us > 0.0 {
        true => format!(", threads woken for it {}", span(wake_us)),
        false => String::new(),
    };
    format!(
        "the log: 4 KiB in {}, each of two in {}, {rate}{woken}: {at_a_time} at a time",
        span(write_us),
        span(both_us)
    )
}

/// What the disk behind a log takes for ever.
fn lasting(after: &PathCase, log: &LogDevice) -> Option<String> {
    let calls =
        Stable { bytes: SMALL_BYTES, outstanding: OUTSTANDING.into_iter().max().unwrap_or(1) };
    let most = perf::model::write_log::stable_rate(&after.path, after.server, Some(log), &calls);
    (most.lasting_per_s < 0.99 * most.turns.per_s).then(|| {
        format!(
            "so many WRITEs a second are what the log takes until it is full, at {} outstanding; \
             for ever it is {:.0}, the rate of the disk behind it",
            calls.outstanding, most.lasting_per_s
        )
    })
}

#[cfg(test)]
mod tests {
    use perf::model::transaction::{Capacity, Transfer};
    use perf::model::whatif::of_path::Spread;

    use super::*;

    /// 12 ms of each WRITE are processing, or a disk.
    fn case() -> PathCase {
        let storage = Storage {
            sync_us: 0.0,
            us_per_kib: 0.0,
            left_us_per_kib: 0.0,
            unhidden_us_per_kib: 0.0,
        };
        let path = Path {
            round_trip_us: 220.0,
            ser_us_per_kib: 2.0,
            op_us: 12_000.0,
            overhead_us: 0.0,
            capacity: Capacity { call_us: 20.0, us_per_kib: 2.0 },
            storage,
        };
        let transfer = Transfer { call_bytes: 8192, outstanding: 1, commit_bytes: 16 << 20 };
        PathCase::of(path, Server::Concurrent, transfer)
    }

    fn pair(saved: &SavedPath) -> Pair {
        let changes: Vec<Change> = vec!["write-log=sim:nvram".parse().unwrap()];
        let log = changes[0].log.unwrap();
        let calls = Stable { bytes: 8192, outstanding: 1 };
        Pair::of(&readings(&case(), saved), &changes, saved, (&log, calls)).unwrap().unwrap()
    }

    #[test]
    fn what_may_be_the_disk_may_be_what_a_log_takes_away() {
        let known = SavedPath::of(&case(), &Spread::default(), Vec::new());
        assert_eq!(pair(&known).gains().len(), 1);
        assert!((pair(&known).gains()[0] - 1.0).abs() < 0.1, "{:?}", pair(&known).gains());
        let pair = pair(&SavedPath { stable_in_op: true, ..known });
        let [least, most] = pair.gains()[..] else { panic!("{:?}", pair.gains()) };
        assert!(least < 1.1 && most > 20.0, "{least} {most}");
        let simulated = pair.simulated_gains().unwrap();
        assert!(simulated[0] < 1.1 && simulated[1] > 20.0, "{simulated:?}");
        assert!(pair.row()[5].contains(" x to "), "{:?}", pair.row());
        let mut record = harness::records::computed(harness::records::now());
        pair.record(&mut record);
        let has = |name: &str| record.value(name).is_some();
        assert!(has("stable/8192/1/gain_if_disk") && !has("stable/8192/1/gain"));
    }
}
