//! Stable WRITEs and COMMITs without a write log and with it, of a path that a probe found: by the
//! loop of the model, and by a world.

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use perf::model::saved::SavedPath;
use perf::model::transaction::Server;
use perf::model::whatif::of_path::{PathCase, StablePrediction};
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
    let after = before.changed(&args.changes).map_err(refused)?;
    let mut table = table();
    let mut notes = Vec::new();
    for calls in stable_writes(before) {
        let answers = before.stable(&args.changes, &calls, &saved.spread()).map_err(refused)?;
        let Some([without, with]) = answers else { continue };
        let world = simulated(before, &after, &log, &calls);
        let world = world.map_err(|why| notes.push(format!("no simulation: {why}"))).ok();
        let pair = Pair { calls: &calls, without, with, world };
        pair.record(&mut page.record);
        table.row(pair.row());
    }
    page.line("");
    page.table(&table);
    let commits = commits(before, &after, &log, &mut page.record);
    page.line(format_args!("{commits}\n{}", device(&log)));
    if let Some(lasting) = lasting(&after, &log) {
        page.line(format_args!("note: {lasting}"));
    }
    notes.iter().for_each(|note| page.note("no-simulation", note, ""));
    Ok(())
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

/// WRITEs a second in worlds without the log and with it.
fn simulated(
    before: &PathCase,
    after: &PathCase,
    log: &LogDevice,
    calls: &Stable,
) -> Result<[f64; 2], String> {
    let of = |case: &PathCase, log: Option<&LogDevice>| {
        world::path::stable_per_s(case, log, calls).map_err(|error| error.to_string())
    };
    Ok([of(before, None)?, of(after, Some(log))?])
}

/// WRITEs without the log and with it: as the formula has them, and a world.
struct Pair<'a> {
    calls: &'a Stable,
    without: StablePrediction,
    with: StablePrediction,
    world: Option<[f64; 2]>,
}

impl Pair<'_> {
    fn gain(&self) -> f64 {
        self.with.per_s.value / self.without.per_s.value
    }

    fn simulated_gain(&self) -> Option<f64> {
        self.world.map(|[without, with]| with / without)
    }

    fn record(&self, record: &mut Record) {
        let of = format!("stable/{}/{}", self.calls.bytes, self.calls.outstanding);
        for (name, prediction) in [("without", &self.without), ("with", &self.with)] {
            let metric = |what: &str| format!("{of}/{name}/{what}");
            record.estimate(&metric("per_s"), &prediction.per_s, "1/s", 1);
            record.metric(&metric("response_us"), prediction.rate.response_us, "us");
        }
        record.metric(&format!("{of}/gain"), self.gain(), "ratio");
        record.metric_if_known(&format!("{of}/simulated_gain"), self.simulated_gain(), "ratio");
    }

    fn row(&self) -> [String; 8] {
        let Self { calls, without, with, .. } = self;
        let response_us = [without, with].map(|of| span(of.rate.response_us));
        [
            format!("of {}", scaled(calls.bytes as f64)),
            calls.outstanding.to_string(),
            with_interval(&without.per_s, whole),
            with_interval(&with.per_s, whole),
            format!("{:.1}", with.rate.turns.together),
            times(self.gain()),
            or_dash(self.simulated_gain().map(times)),
            response_us.join(" -> "),
        ]
    }
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
