//! Notes on what these measurements do not separate, in sentences, with what would.

use harness::records::NEIGHBOURS_SHARE_MAX;
use load::probe::Stragglers;
use load::probe::concurrency::AtLeast;
use perf::model::transaction::{Bound, Server};
use perf::stats::Estimate;
use perf::units::Nanos;

use super::base;
use super::probed::Probed;
use crate::explain::{Forms, counted_as};

/// How the server treats its disk, as far as it shows: by the form that fits the sweep
/// better.
pub(super) fn form(outcome: &Probed) -> String {
    let explanation = &outcome.explanation;
    let Some(forms) = explanation.forms.first().copied().flatten() else { return String::new() };
    let Forms { stall_pct, concurrent_pct } = forms;
    if outcome.is_stable_only() {
        let whose = if outcome.version == 2 { "with version 2" } else { "of this server" };
        return format!(
            "Whether the server goes on working while its disk is busy cannot be decided {whose}, \
             of which each WRITE is stable when it is answered."
        );
    }
    if !Shown::of(outcome).storage() {
        return "Whether the server stops for its disk or goes on working does not show, as no time \
                of its storage does."
            .to_owned();
    }
    if !explanation.knows_form(0) {
        return format!(
            "Whether the server stops for its disk or goes on working cannot be decided: the forms \
             for either are off by {stall_pct:.1} and {concurrent_pct:.1} % at the median, and \
             differ by no more than the better one is off, or than repetitions do."
        );
    }
    match forms.better() {
        Server::Stall => format!(
            "The server stops for its disk, by the form that fits better: {stall_pct:.1} % off at \
             the median, and {concurrent_pct:.1} % if it went on working."
        ),
        Server::Concurrent => format!(
            "The server goes on working while its disk is busy, by the form that fits better: \
             {concurrent_pct:.1} % off at the median, and {stall_pct:.1} % if it stopped."
        ),
    }
}

/// Which parameters these measurements show. All sentences about one go by this, so that none
/// rests on what another calls not known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Shown {
    /// T_op of the server.
    pub(super) operation: bool,
    /// T_B of a stable WRITE, and of a COMMIT.
    pub(super) block: bool,
    pub(super) commit: bool,
    /// A stage that is full with the calls that were outstanding, predicted or measured.
    pub(super) limit: bool,
}

impl Shown {
    pub(super) fn of(outcome: &Probed) -> Self {
        let findings = &outcome.findings;
        let is_identified = |estimate: &Estimate| match estimate.ci95 {
            Some(ci95) => ci95.lo > 0.0,
            None => estimate.value > 0.0,
        };
        let explanation = &outcome.explanation;
        let is_stable_only = outcome.is_stable_only();
        Self {
            operation: is_identified(&findings.op_us),
            block: !is_stable_only && is_identified(&findings.block_us),
            commit: !is_stable_only && is_identified(&findings.commit_us),
            limit: explanation.errors.at.len() > CURVES_MAX
                || explanation.rows.iter().any(|row| {
                    let bound = explanation.choice.bound(row);
                    !matches!(bound, Bound::Cycle(_)) && row.configuration.outstanding > 1
                }),
        }
    }

    fn storage(self) -> bool {
        self.block || self.commit
    }
}

/// Each curve has a highest point: more points than curves near to it are a limit.
const CURVES_MAX: usize = 2;

/// A note on a parameter: a code for the record, and a sentence.
type Note = (&'static str, String);

/// Who else used the processors.
pub(super) fn neighbours(outcome: &Probed) -> Option<String> {
    let share = outcome.neighbours_share.filter(|share| *share > NEIGHBOURS_SHARE_MAX)?;
    let percent = 100.0 * share;
    Some(format!(
        "The machine was busy: others used {percent:.0} % of the processors here, a server on this \
         host among them; measure again when it is quiet."
    ))
}

/// Each with a code for the record.
pub(super) fn unidentified(outcome: &Probed) -> Vec<Note> {
    let shown = Shown::of(outcome);
    let all = [
        stability(outcome, &shown),
        operation(outcome, &shown),
        overhead(outcome),
        servers(outcome),
        unmeasured(outcome),
        stragglers(outcome),
        held(outcome),
        saturation(outcome, &shown),
        limiter(outcome),
        Some(("way", way(outcome))),
    ];
    all.into_iter().flatten().collect()
}

fn stability(outcome: &Probed, shown: &Shown) -> Option<Note> {
    if outcome.version == 2 {
        let text = "T_op and T_B cannot be distinguished: every WRITE of version 2 is stable, and \
                    T_B is in T_op here; version=3 in the URL tells them apart";
        return Some(("stable", text.to_owned()));
    }
    if outcome.is_stable_only() {
        let text = "T_op and T_B cannot be distinguished: the server answers that UNSTABLE WRITEs \
                    are stable (FILE_SYNC), so there are no COMMITs, and T_B is in T_op here";
        return Some(("stable", text.to_owned()));
    }
    if let Some(text) = open_stability(outcome, shown) {
        return Some(("open-stability", text));
    }
    if !shown.storage() {
        let text = "T_B does not show: FILE_SYNC takes no longer than UNSTABLE, and a COMMIT no \
                    longer than NULL; the server keeps data in memory, or in storage that is as \
                    fast, which cannot be distinguished from here";
        return Some(("free-stability", text.to_owned()));
    }
    let text = "T_B of 8 KiB does not show: FILE_SYNC of a block takes no longer than UNSTABLE, \
                while a COMMIT of many takes time";
    (!shown.block).then(|| ("small-stability", text.to_owned()))
}

/// What T_B may be, where its interval goes from nothing to what would matter.
fn open_stability(outcome: &Probed, shown: &Shown) -> Option<String> {
    let findings = &outcome.findings;
    let [block, commit] = [(shown.block, &findings.block_us), (shown.commit, &findings.commit_us)]
        .map(|(shown, estimate)| at_most_us(outcome, estimate).filter(|_| !shown));
    if shown.storage() {
        let at_most_us = block?;
        return Some(format!(
            "T_B of 8 KiB cannot be told: FILE_SYNC of a block takes 0 to {at_most_us:.0} us \
             longer than UNSTABLE; measure again when the machine is quiet"
        ));
    }
    block.or(commit)?;
    Some(format!(
        "T_B cannot be told: FILE_SYNC of a block takes 0 to {:.0} us longer than UNSTABLE, and a \
         COMMIT 0 to {:.0} us longer than NULL; measure again when the machine is quiet",
        block.unwrap_or(findings.block_us.value),
        commit.unwrap_or(findings.commit_us.value)
    ))
}

/// How much a time of storage may be at most, where that is no small part of a call: over half of a
/// network round trip (a guess). An interval that only reaches 0 does not show that there is none.
fn at_most_us(outcome: &Probed, estimate: &Estimate) -> Option<f64> {
    let half_us = outcome.findings.round_trip.value / 2.0;
    estimate.ci95.map(|ci95| ci95.hi).filter(|hi| *hi > half_us)
}

fn operation(outcome: &Probed, shown: &Shown) -> Option<Note> {
    let excess_us = outcome.findings.null_excess_us;
    let text = match excess_us > 0.0 {
        true => format!(
            "T_op of the server does not show: a WRITE without data would be answered \
             {excess_us:.1} us sooner than a NULL call is, so NULL is no measure of the path here, \
             and 2 T_prop is that of the WRITEs"
        ),
        false => "T_op of the server may be 0: a WRITE without data takes hardly longer \
                  than a NULL call, and what both take is in 2 T_prop"
            .to_owned(),
    };
    (!shown.operation).then_some(("operation", text))
}

fn overhead(outcome: &Probed) -> Option<Note> {
    let findings = &outcome.findings;
    let counted_us = findings.path.overhead_us;
    let text = || {
        format!(
            "two calls at a time delay each other by more (o) than a call occupies the slowest \
             stage for: something else makes them wait, and the model takes {counted_us:.1} us of \
             it"
        )
    };
    (findings.overhead_us.value > counted_us).then(|| ("overhead", text()))
}

fn servers(outcome: &Probed) -> Option<Note> {
    let at_least = outcome.concurrency.servers.and_then(|servers| servers.at_least)?;
    let why = match at_least {
        AtLeast::NullIsNoFaster => "NULL calls come no faster than WRITEs",
        AtLeast::Idle => "WRITEs come slower than one server would answer them",
    };
    let text = format!(
        "how many calls the server works on is a least number: {why}, so the client or the path is \
         the limit"
    );
    Some(("servers", text))
}

fn unmeasured(outcome: &Probed) -> Option<Note> {
    let (unanswered, runs) = outcome.unanswered;
    let counted_as = counted_as(outcome.unmeasured(), outcome.explanation.rows.len());
    let within = format!("within {:.1} s after the run", outcome.drain_most.as_secs_f64());
    let without = match outcome.is_stable_only() {
        true => format!("too few WRITEs were answered {within}"),
        false => {
            format!("no COMMIT was answered {within}, or none that covered enough of it")
        }
    };
    let text = || {
        format!(
            "in {unanswered} of {runs} runs {without}: {counted_as}; a run without --quick, or \
             fewer calls outstanding"
        )
    };
    (unanswered > 0).then(|| ("throughput", text()))
}

/// Fewer are chance.
const STRAGGLERS_MIN: usize = 3;
const STRAGGLERS_SHARE_MIN: f64 = 0.01;

fn stragglers(outcome: &Probed) -> Option<Note> {
    let Stragglers { count, of, median_us, usual_us } = outcome.findings.stragglers;
    let text = || {
        let (slow, usual) = (Nanos::from_micros_f64(median_us), Nanos::from_micros_f64(usual_us));
        format!(
            "{count} of {of} single WRITEs took {slow} at the median, and the others {usual}: the \
             parameters are those of the others, and the model has nothing that makes some calls \
             wait; `nfskit trace` of a capture shows which"
        )
    };
    let is_known = count >= STRAGGLERS_MIN && count as f64 >= STRAGGLERS_SHARE_MIN * of as f64;
    is_known.then(|| ("stragglers", text()))
}

/// Which of two throughputs a change is held to.
fn held(outcome: &Probed) -> Option<Note> {
    let pct = outcome.base.differs_pct?;
    let than = if pct < 0.0 { "less" } else { "more" };
    let text = format!(
        "runs of {:.0} s have {:.0} % {than} throughput than the sweep's short ones: what `model \
         whatif` says of a change is held to the longer",
        base::TIME.as_secs_f64(),
        pct.abs()
    );
    Some(("base", text))
}

fn saturation(outcome: &Probed, shown: &Shown) -> Option<Note> {
    let is_measured = outcome.unmeasured() < outcome.explanation.rows.len();
    let text = "no window of the sweep fills the path: what limits in the end was seen in bursts \
                only";
    (!shown.limit && is_measured).then(|| ("saturation", text.to_owned()))
}

fn limiter(outcome: &Probed) -> Option<Note> {
    let rows = &outcome.explanation.rows;
    let points = rows.iter().filter_map(|row| {
        let outstanding = row.configuration.outstanding;
        Some((outstanding, row.prediction.mib_per_s, row.measured_mib_per_s?))
    });
    limited(&points.collect::<Vec<_>>()).map(|text| ("rate-limiter", text))
}

/// Windows that show a rate limiter, at least.
const LIMITED_MIN: usize = 4;
/// Throughputs that differ by less are one rate, and a model that is off by more has another: both
/// as shares, and guesses.
const ONE_RATE: f64 = 0.1;
const UNLIKE: f64 = 0.25;

/// Of calls outstanding, MiB/s by the model, and measured: whether every window has one rate,
/// which the times of single calls and of bursts do not explain. A token bucket lets these pass,
/// and holds what lasts longer to its rate; a slow link delays them as well.
fn limited(points: &[(usize, f64, f64)]) -> Option<String> {
    let off = points.iter().filter(|(_, model, found)| (model / found - 1.0).abs() > UNLIKE);
    let rates = points.iter().map(|(.., found)| *found);
    let (least, most) = (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max));
    let has_one = points.iter().any(|(outstanding, ..)| *outstanding == 1);
    let is_one_rate = has_one && most <= (1.0 + ONE_RATE) * least;
    (points.len() >= LIMITED_MIN && is_one_rate && off.count() * 2 > points.len()).then(|| {
        format!(
            "all {} windows, from one call at a time on, had {least:.1} to {most:.1} MiB/s, and \
             the times of single calls and bursts say otherwise: something lets a burst pass and \
             holds the rest to a rate (a token bucket, a policer, the quota of a volume); that \
             rate is what was measured, and the gain of another change than of it cannot be told",
            points.len()
        )
    })
}

/// What 2 T_prop is made of.
fn way(outcome: &Probed) -> String {
    let latency_us = outcome.latency_us();
    if latency_us == 0.0 {
        return "L and the fixed costs of both ends cannot be distinguished from one end: 2 T_prop \
                has them all; a run behind a link with a known L, or a capture at the server, \
                tells them apart"
            .to_owned();
    }
    let rest_us = (outcome.findings.round_trip.value - 2.0 * latency_us).max(0.0);
    format!(
        "of 2 T_prop, {:.0} us are those of the emulated link; the other {rest_us:.0} us are the \
         L of the path behind it and the fixed costs of both ends, which cannot be distinguished \
         from one end",
        2.0 * latency_us
    )
}

#[cfg(test)]
mod tests {
    use harness::verdict::Errors;
    use load::probe::Findings;
    use load::probe::concurrency::{Concurrency, Servers};
    use load::study::Configuration;
    use net::shape::profile::Profile;
    use perf::model::transaction::{Capacity, Path, Storage};
    use perf::stats::Interval;

    use super::*;
    use crate::explain::Explanation;
    use crate::models::{Choice, Model};
    use crate::probe::base::Base;
    use crate::probe::screen::text;

    fn all(value: f64) -> Estimate {
        Estimate { value, ci95: Some(Interval { lo: 0.9 * value, hi: 1.1 * value }) }
    }

    fn unidentified(value: f64) -> Estimate {
        Estimate { value, ci95: Some(Interval { lo: 0.0, hi: value }) }
    }

    /// A server whose parameters all show.
    fn outcome() -> Probed {
        let path = Path {
            round_trip_us: 200.0,
            ser_us_per_kib: 9.0,
            op_us: 60.0,
            overhead_us: 1.0,
            capacity: Capacity { call_us: 5.0, us_per_kib: 8.0 },
            storage: Storage {
                sync_us: 500.0,
                us_per_kib: 5.0,
                left_us_per_kib: 5.0,
                unhidden_us_per_kib: 0.0,
            },
        };
        let findings = Findings {
            null_us: vec![200.0; 9],
            round_trip: all(200.0),
            ser_us_per_kib: all(9.0),
            op_us: all(60.0),
            null_excess_us: 0.0,
            block_us: all(540.0),
            writes_us: Vec::new(),
            bursts: 6,
            commit_probe_bytes: 8 << 20,
            commit_us: all(40_000.0),
            commit_early_us: all(40_000.0),
            stable_only: false,
            overhead_us: all(1.0),
            gap_us: all(5.0),
            gap_us_per_kib: all(8.0),
            rounds: 8,
            stragglers: Stragglers::default(),
            path,
        };
        let counted = Some(Servers { count: all(3.0), at_least: None });
        let configuration = Configuration { subject: 0, call_bytes: 8192, outstanding: 1 };
        Probed {
            url: "nfs://server/export".to_owned(),
            version: 3,
            proto: "tcp",
            link: Profile::none(),
            started: String::new(),
            took: Nanos::from_secs(9),
            findings,
            concurrency: Concurrency {
                rounds: 6,
                null_us: all(5.0),
                small_us: all(20.0),
                stable_us: all(180.0),
                client_us: Some(all(4.0)),
                servers: counted,
                stable_servers: counted,
            },
            explanation: Explanation {
                rows: Vec::new(),
                servers: vec![Server::Stall],
                forms: vec![Some(Forms { stall_pct: 2.0, concurrent_pct: 30.0 })],
                error_pct_median: 2.0,
                error_pct_worst: 4.0,
                errors: Errors { below: vec![2.0], at: vec![1.0; 4] },
                choice: Choice {
                    best: Model::Formula,
                    errors_pct: vec![(Model::Formula, 2.0)],
                    noise_pct: Some(1.0),
                },
                before: configuration,
                after: configuration,
                is_stable_only: false,
            },
            commit_bytes: 8 << 20,
            base: Base::default(),
            noise_pct: Some(1.0),
            repeats: 3,
            unanswered: (0, 42),
            drain_most: Nanos::from_millis(500),
            neighbours_share: None,
        }
    }

    #[test]
    fn one_rate_of_all_windows_that_no_parameter_explains_is_a_rate_limiters() {
        let swept = |model: [f64; 4], found: [f64; 4]| {
            let outstanding = [1, 4, 16, 64];
            let all = outstanding.into_iter().zip(model).zip(found);
            limited(&all.map(|((n, model), found)| (n, model, found)).collect::<Vec<_>>())
        };
        let bucket = swept([1.1, 2.7, 3.6, 3.7], [5.6, 5.6, 5.6, 5.7]).unwrap();
        assert!(bucket.starts_with("all 4 windows, from one call at a time on, had 5.6 to 5.7"));
        assert!(swept([40.0, 110.0, 110.0, 110.0], [5.6, 5.6, 5.6, 5.7]).is_some());
        // A slow link: its parameters have it. Windows that fill, and too few.
        assert_eq!(swept([5.5, 5.6, 5.6, 5.6], [5.6, 5.6, 5.6, 5.7]), None);
        assert_eq!(swept([1.1, 2.7, 3.6, 3.7], [2.2, 4.4, 5.6, 5.7]), None);
        assert_eq!(limited(&[(1, 1.0, 5.6), (4, 2.0, 5.6)]), None);
    }

    #[test]
    fn the_page_has_the_verdict_and_the_busy_machine_of_the_screen() {
        let mut outcome = outcome();
        outcome.neighbours_share = Some(0.6);
        let page = super::super::page::html(&outcome);
        assert!(page.contains("Best: calls of"), "{page}");
        assert!(page.contains("The machine was busy"), "{page}");
        outcome.neighbours_share = Some(0.1);
        assert!(!super::super::page::html(&outcome).contains("The machine was busy"));
    }

    #[test]
    fn what_shows_is_reported_without_a_note_that_takes_it_back() {
        let printed = text(&outcome());
        for part in ["T_op, server", "servers", "stable together", "The server stops for its disk"]
        {
            assert!(printed.contains(part), "no {part:?} in {printed}");
        }
        for part in ["does not show", "may be 0", "least number", "no window of the sweep"] {
            assert!(!printed.contains(part), "{part:?} in {printed}");
        }
    }

    #[test]
    fn nothing_is_stated_that_rests_on_what_a_note_says_is_not_known() {
        let mut memory = outcome();
        memory.findings.block_us = unidentified(3.0);
        memory.findings.commit_us = unidentified(10.0);
        let printed = text(&memory);
        assert!(printed.contains("T_B does not show"), "{printed}");
        for part in ["The server stops", "goes on working while", "stable together"] {
            assert!(!printed.contains(part), "{part:?} in {printed}");
        }
        // One form fits better, but by less than it is off itself.
        let mut near = outcome();
        near.explanation.forms = vec![Some(Forms { stall_pct: 2.2, concurrent_pct: 3.0 })];
        let printed = text(&near);
        assert!(printed.contains(
            "goes on working cannot be decided: the forms for either are off by 2.2 and"
        ));
        assert!(!printed.contains("The server stops"), "{printed}");
        let mut slow_commits = outcome();
        slow_commits.findings.block_us = unidentified(3.0);
        let printed = text(&slow_commits);
        assert!(printed.contains("T_B of 8 KiB does not show"), "{printed}");
        assert!(!printed.contains("keeps data in memory"), "{printed}");
        assert!(printed.contains("The server stops for its disk"), "{printed}");
    }

    #[test]
    fn storage_that_may_take_long_is_neither_memory_nor_as_fast_as_unstable() {
        let mut busy = outcome();
        busy.findings.block_us = unidentified(12_216.0);
        let printed = text(&busy);
        assert!(printed.contains("T_B of 8 KiB cannot be told"), "{printed}");
        assert!(printed.contains("0 to 12216 us longer"), "{printed}");
        busy.findings.commit_us = unidentified(10.0);
        let printed = text(&busy);
        assert!(printed.contains("T_B cannot be told"), "{printed}");
        for part in ["keeps data in memory", "takes no longer than", "does not show: FILE_SYNC"] {
            assert!(!printed.contains(part), "{part:?} in {printed}");
        }
        // A tenth of a round trip is as good as nothing.
        busy.findings.block_us = unidentified(20.0);
        assert!(text(&busy).contains("the server keeps data in memory"), "{}", text(&busy));
    }

    #[test]
    fn an_operation_is_not_distinguished_from_nothing_exactly_where_its_interval_says_so() {
        let mut small = outcome();
        // Small beside the way, and known.
        small.findings.op_us = all(5.0);
        assert!(!text(&small).contains("may be 0"), "{}", text(&small));
        let mut nothing = outcome();
        nothing.findings.op_us = unidentified(4.0);
        let printed = text(&nothing);
        assert!(printed.contains("T_op of the server may be 0"), "{printed}");
        assert!(!printed.lines().any(|line| line.starts_with("servers ")), "{printed}");
        // NULL takes 19 us longer: no time is negative, and the reason is given.
        nothing.findings.null_excess_us = 19.0;
        nothing.findings.op_us = Estimate { value: -19.0, ci95: None }.not_negative();
        let printed = text(&nothing);
        assert!(printed.contains("19.0 us sooner than a NULL call"), "{printed}");
        assert!(!printed.contains("-1"), "{printed}");
    }

    #[test]
    fn version_2_and_an_emulated_link_are_known_by_what_they_leave_open() {
        let printed = text(&Probed { version: 2, ..outcome() });
        assert!(printed.contains("T_op + T_B") && !printed.contains("T_B, 8 KiB"), "{printed}");
        assert!(!printed.contains("stable together"), "{printed}");
        let link = "L=80us".parse().unwrap();
        let printed = text(&Probed { link, ..outcome() });
        assert!(
            printed.contains("160 us are those of the emulated link; the other 40 us"),
            "{printed}"
        );
        assert!(!printed.contains("a run behind a link with a known L"), "{printed}");
    }

    #[test]
    fn runs_without_an_answer_are_of_the_calls_that_there_are() {
        let mut outcome = outcome();
        assert!(!text(&outcome).contains("of 42 runs"), "{}", text(&outcome));
        outcome.unanswered = (1, 42);
        let with_commits = unmeasured(&outcome).unwrap().1;
        assert!(with_commits.contains("no COMMIT was answered within 0.5 s"), "{with_commits}");
        outcome.findings.stable_only = true;
        let without = unmeasured(&outcome).unwrap().1;
        assert!(without.contains("too few WRITEs were answered within 0.5 s"), "{without}");
        assert!(!without.contains("COMMIT"), "{without}");
    }

    #[test]
    fn writes_of_a_second_hump_are_reported_where_they_are_no_chance() {
        let mut outcome = outcome();
        let with = |count, of| Stragglers { count, of, median_us: 400_000.0, usual_us: 1_000.0 };
        for (few, of) in [(0, 200), (2, 40), (9, 1_000)] {
            outcome.findings.stragglers = with(few, of);
            assert!(!text(&outcome).contains("single WRITEs took"), "{few} of {of}");
        }
        outcome.findings.stragglers = with(10, 200);
        let printed = text(&outcome).split_whitespace().collect::<Vec<_>>().join(" ");
        let part = "10 of 200 single WRITEs took 400 ms at the median, and the others 1.00 ms";
        assert!(printed.contains(part), "{printed}");
    }

    #[test]
    fn a_saved_path_says_where_what_being_stable_takes_is() {
        let mut outcome = outcome();
        assert!(!outcome.saved().stable_in_op);
        outcome.findings.stable_only = true;
        assert!(outcome.saved().stable_in_op);
    }

    #[test]
    fn an_o_that_the_model_does_not_take_whole_is_reported_with_what_it_takes() {
        let mut outcome = outcome();
        outcome.findings.path.overhead_us = 44.8;
        outcome.findings.overhead_us = all(120.0);
        let printed = text(&outcome);
        assert!(printed.contains("the model takes 44.8 us of it"), "{printed}");
        outcome.findings.overhead_us = all(44.8);
        assert!(!text(&outcome).contains("the model takes"));
    }

    #[test]
    fn a_least_number_of_servers_has_its_own_reason() {
        let mut least = outcome();
        let with = |least: &mut Probed, why| {
            let servers = Servers { count: all(3.0), at_least: Some(why) };
            least.concurrency.servers = Some(servers);
            text(least)
        };
        assert!(with(&mut least, AtLeast::NullIsNoFaster).contains("NULL calls come no faster"));
        let idle = with(&mut least, AtLeast::Idle);
        assert!(idle.contains("WRITEs come slower") && !idle.contains("NULL calls come"), "{idle}");
    }
}
