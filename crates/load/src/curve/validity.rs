//! What a load point has to hold to count, and where a run differs from the benchmark's own rules.

use std::fmt;

use perf::units::Nanos;

use super::{Kind, Point, Settings};
use crate::fileset::layout::BYTES_PER_RATE;
use crate::mix::{Arrivals, Operation, Outcome, table::MIXES};

/// Percentage points that an operation's share may be off (SFS 3.0), in a run of many operations.
pub const MIX_POINTS_MAX: f64 = 1.5;

/// A deck has the shares over a whole run, and a point is a part of one: the share of an operation
/// there is off by chance, at most as with independent draws, of which one in 2,000 is off by more
/// than so many standard deviations.
const MIX_DEVIATIONS_MAX: f64 = 3.5;

/// Percentage points that an operation's share may be off in a run of so many operations.
pub fn mix_points_max(operations: u64) -> f64 {
    // Of a share of one half, which chance moves most.
    let deviation = 50.0 / (operations.max(1) as f64).sqrt();
    MIX_POINTS_MAX.max(MIX_DEVIATIONS_MAX * deviation)
}

/// The share of operations that may fail (SFS 3.0).
pub const ERRORS_MAX: f64 = 0.01;

/// The share of the working set that a point has to touch. Guess: nine in ten are it.
pub const TOUCHED_MIN: f64 = 0.9;

/// The share of its time that a generator's thread may work. Guess: over it, operations wait here.
pub const BUSY_MAX: f64 = 0.9;

/// The share of operations that may start late by the generator's own fault.
pub const LATE_MAX: f64 = 0.01;

/// The share of operations that may find nothing to do.
pub const HOLLOW_MAX: f64 = 0.01;

/// What may be missing of the load that was offered.
pub const SHORTFALL_MAX: f64 = 0.01;

/// How long SFS 3.0 warms up and measures at each point.
const SFS_TIME: Nanos = Nanos::from_secs(300);

/// Points that SFS 3.0 asks for.
const SFS_POINTS: usize = 10;

/// A rule that a point does not hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Breach {
    /// The run ended before its end.
    Partial {
        why: String,
    },
    NoAnswers,
    Mix {
        points: f64,
        /// What a run of so many operations may be off.
        points_max: f64,
    },
    Errors {
        share: f64,
        first: Option<String>,
    },
    /// `time` would have been enough.
    WorkingSet {
        touched: usize,
        accessed: usize,
        time: Option<Nanos>,
    },
    Generator {
        busiest: f64,
    },
    Late {
        share: f64,
    },
    /// The bound on what is outstanding held operations back that the server had time for.
    Held {
        share: f64,
    },
    /// Operations made what was there, or removed what was not.
    Hollow {
        share: f64,
    },
    /// Less came than was offered, although a higher load was sustained.
    Shortfall {
        offered_per_s: f64,
        achieved_per_s: f64,
    },
}

impl Breach {
    /// A constant word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Partial { .. } => "partial",
            Self::NoAnswers => "no-answers",
            Self::Mix { .. } => "mix",
            Self::Errors { .. } => "errors",
            Self::WorkingSet { .. } => "working-set",
            Self::Generator { .. } => "client-was-bottleneck",
            Self::Late { .. } => "late-starts",
            Self::Held { .. } => "outstanding-max",
            Self::Hollow { .. } => "hollow",
            Self::Shortfall { .. } => "shortfall",
        }
    }

    /// The server failed: what its generator does beside is no matter.
    pub const fn is_of_the_server(&self) -> bool {
        matches!(self, Self::Errors { .. } | Self::Partial { .. })
    }

    /// What to try.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Partial { .. } => "the server's log; run again",
            Self::NoAnswers => "a longer --time, or a higher load",
            Self::Mix { .. } => "a longer --time",
            Self::Errors { .. } => "the server's log, and its limits",
            Self::WorkingSet { .. } => "a longer --time, or a smaller --file-set-max",
            Self::Generator { .. } => "more --threads, or generators on more hosts",
            Self::Late { .. } => "more --threads, or a quieter machine",
            Self::Held { .. } => "more --outstanding-max",
            Self::Hollow { .. } => {
                "a mix that makes as many names as it removes, or a shorter --time"
            }
            Self::Shortfall { .. } => "again on a quieter machine, with a longer --time",
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partial { why } => write!(f, "the run ended before its end: {why}"),
            Self::NoAnswers => write!(f, "nothing was answered as expected"),
            Self::Mix { points, points_max } => {
                write!(f, "the mix is off by {points:.2} points (at most {points_max:.1})")
            }
            Self::Errors { share, first } => {
                let (share, most) = (100.0 * share, 100.0 * ERRORS_MAX);
                write!(f, "{share:.2} % of the operations failed (at most {most} %)")?;
                first.as_ref().map_or(Ok(()), |first| write!(f, ", as in: {first}"))
            }
            Self::WorkingSet { touched, accessed, time } => {
                let least = 100.0 * TOUCHED_MIN;
                write!(f, "{touched} of {accessed} files were touched (at least {least} %)")?;
                time.map_or(Ok(()), |time| {
                    let s = time.as_secs_f64().ceil();
                    write!(f, "; about {s} s of warm-up and run would do")
                })
            }
            Self::Generator { busiest } => {
                let (busiest, most) = (100.0 * busiest, 100.0 * BUSY_MAX);
                write!(
                    f,
                    "a generator's thread was busy {busiest:.0} % of its time (at most {most} %)"
                )
            }
            Self::Late { share } => {
                let (share, most) = (100.0 * share, 100.0 * LATE_MAX);
                write!(f, "{share:.2} % of the operations started late (at most {most} %)")
            }
            Self::Held { share } => {
                let (share, most) = (100.0 * share, 100.0 * LATE_MAX);
                write!(
                    f,
                    "{share:.2} % of the operations waited for others to be answered, which is no \
                     time of the server's (at most {most} %)"
                )
            }
            Self::Hollow { share } => {
                let (share, most) = (100.0 * share, 100.0 * HOLLOW_MAX);
                write!(f, "{share:.2} % of the operations found nothing to do (at most {most} %)")
            }
            Self::Shortfall { offered_per_s, achieved_per_s } => write!(
                f,
                "{achieved_per_s:.0} of {offered_per_s:.0} operations a second came, though the \
                 server keeps up with more"
            ),
        }
    }
}

/// What one run holds or not, by itself.
pub(super) fn breaches(outcome: &Outcome, kind: Kind, settings: &Settings) -> Vec<Breach> {
    let mut found = Vec::new();
    if let Some(why) = &outcome.broken {
        found.push(Breach::Partial { why: why.clone() });
    }
    let responses: u64 = outcome.operations.values().map(|tally| tally.response_time.count()).sum();
    let failed = outcome.failed();
    let errors = failed as f64 / (responses + failed).max(1) as f64;
    let are_too_many = errors > ERRORS_MAX;
    if are_too_many {
        found.push(Breach::Errors { share: errors, first: outcome.first_failure.clone() });
    }
    if responses == 0 || outcome.answered == 0 {
        // Where all failed, no longer run helps.
        found.extend((!are_too_many).then_some(Breach::NoAnswers));
        return found;
    }
    let points = outcome.mix_error_points(&settings.mix);
    let points_max = mix_points_max(responses + failed);
    if points > points_max {
        found.push(Breach::Mix { points, points_max });
    }
    if let Some(breach) = untouched(outcome, settings) {
        found.push(breach);
    }
    if let Some(effort) = outcome.effort.filter(|effort| effort.busiest > BUSY_MAX) {
        found.push(Breach::Generator { busiest: effort.busiest });
    }
    let late = outcome.late as f64 / outcome.meant.max(1) as f64;
    if kind == Kind::Open && late > LATE_MAX {
        found.push(Breach::Late { share: late });
    }
    let held = outcome.held as f64 / outcome.meant.max(1) as f64;
    if kind == Kind::Open && held > LATE_MAX && keeps_up(outcome) {
        found.push(Breach::Held { share: held });
    }
    let hollow = outcome.hollow as f64 / outcome.meant.max(1) as f64;
    if hollow > HOLLOW_MAX {
        found.push(Breach::Hollow { share: hollow });
    }
    found
}

/// Whether an operation asks for one of the files that are counted.
const fn touches(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Getattr
            | Operation::Setattr
            | Operation::Lookup
            | Operation::Access
            | Operation::Read
            | Operation::Write
    )
}

fn untouched(outcome: &Outcome, settings: &Settings) -> Option<Breach> {
    let (touched, accessed) = (outcome.touched, outcome.accessed);
    let count = |of: &dyn Fn(Operation) -> bool| -> u64 {
        let found = outcome.operations.iter().filter(|(operation, _)| of(**operation));
        found.map(|(_, tally)| tally.response_time.count() + tally.failed).sum()
    };
    let touching = count(&touches);
    if touching == 0 || touched as f64 >= TOUCHED_MIN * accessed as f64 {
        return None;
    }
    // Files are chosen at random: so many choices leave one in ten out. Not each choice is one of
    // all files: a third of the LOOKUPs ask for none, whole blocks are those of larger files. In
    // the named mixes that makes 1.5 times as many.
    let choices = accessed as f64 * -(1.0 - TOUCHED_MIN).ln();
    let per_s = touching as f64 / outcome.span.as_secs_f64();
    let time = (per_s > 0.0).then(|| Nanos::from_secs_f64(1.6 * choices / per_s));
    let planned = settings.warm_up + settings.time;
    Some(Breach::WorkingSet { touched, accessed, time: time.filter(|time| *time > planned) })
}

/// Whether what was offered came, but for what may be under way at either end of the run.
pub fn keeps_up(outcome: &Outcome) -> bool {
    let answered = (outcome.answered + outcome.unexpected) as f64;
    let meant = outcome.meant as f64;
    let response_s = outcome.response_mean().map_or(0.0, Nanos::as_secs_f64);
    let under_way = response_s * answered / outcome.span.as_secs_f64();
    // Independent of each other, as many more or less as their root.
    let slack = 2.0 * (1.0 + under_way.max(0.0).sqrt());
    meant - answered <= (SHORTFALL_MAX * meant).max(slack)
}

/// Of open points in the order of their load: those that do not keep up although a later one does.
pub(super) fn shortfalls(points: &mut [Point]) {
    let Some(last) = points.iter().rposition(|point| point.keeps_up) else { return };
    for point in &mut points[..last] {
        if !point.keeps_up && point.kind == Kind::Open {
            let offered_per_s = point.outcome.offered_per_s();
            let achieved_per_s = point.outcome.achieved_per_s();
            point.breaches.push(Breach::Shortfall { offered_per_s, achieved_per_s });
        }
    }
}

/// Where settings differ from those of SFS 3.0, which makes results that are not comparable with
/// published ones; in whole sentences' parts, for people.
pub fn deviations(settings: &Settings, made: Option<(u64, f64)>) -> Vec<String> {
    let mut found = Vec::new();
    let mut differs = |is: bool, what: String| found.extend(is.then_some(what));
    let named = MIXES.iter().any(|mix| mix.name == settings.mix.name);
    differs(!named, format!("mix: {}", settings.mix.name));
    differs(settings.time < SFS_TIME, format!("time: {} a point, not {SFS_TIME}", settings.time));
    let warm_up = settings.warm_up;
    differs(warm_up < SFS_TIME, format!("warm-up: {warm_up} a point, not {SFS_TIME}"));
    let points = settings.loads.count();
    differs(points < SFS_POINTS, format!("points: {points}, not {SFS_POINTS} or more"));
    match settings.kind() {
        Kind::Closed => differs(true, "loop: closed, not by a schedule".to_owned()),
        Kind::Open => differs(
            settings.arrivals != Arrivals::Poisson && settings.arrivals != Arrivals::Uniform,
            format!("arrivals: {}, not random", settings.arrivals),
        ),
    }
    let scale = &settings.files;
    if let Some((bytes, peak_per_s)) = made.filter(|(_, peak_per_s)| *peak_per_s > 0.0) {
        let per_rate = bytes as f64 / peak_per_s / f64::from(1 << 20);
        let want = (BYTES_PER_RATE >> 20) as f64;
        differs(
            per_rate < 0.95 * want,
            format!("file set: {per_rate:.3} MiB per operation a second, not {want}"),
        );
    }
    let accessed = 100.0 * scale.accessed;
    differs((accessed - 10.0).abs() > 0.01, format!("accessed: {accessed} % of the files, not 10"));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_of_which_all_fails_is_one_of_errors_and_not_too_short() {
        use crate::curve::{Files, Loads};
        use crate::mix::outcome::Tally;
        let settings = Settings {
            mix: MIXES[0],
            arrivals: Arrivals::Fixed,
            loads: Loads::Rates(vec![20.0]),
            warm_up: Nanos::ZERO,
            time: Nanos::from_secs(2),
            repeats: 1,
            outstanding_max: 8,
            files: Files::at_most(1 << 20),
            seed: 1,
        };
        let codes = |failed| {
            let mut outcome = Outcome { meant: 37, ..Outcome::default() };
            let tally = Tally { failed, ..Tally::default() };
            outcome.operations.insert(Operation::Read, tally);
            let found = breaches(&outcome, Kind::Open, &settings);
            found.iter().map(Breach::code).collect::<Vec<_>>()
        };
        assert_eq!((codes(37), codes(0)), (vec!["errors"], vec!["no-answers"]));
    }

    #[test]
    fn a_short_run_may_be_off_by_chance_and_a_long_one_by_the_rule() {
        assert_eq!(mix_points_max(1_000_000), MIX_POINTS_MAX);
        let short = mix_points_max(1_000);
        assert!(short > 5.0 && short < 6.0, "{short}");
        assert!(mix_points_max(0).is_finite());
    }
}
