//! The pace of the busiest connection, and the gaps of all.

use perf::units::Nanos;
use trace::{Analyzer, Cause, Flow, FlowId, Gap, Jump, Pace, Phase, Rtt, RttOf, Spread};

use super::FEW;

/// The pace of the flow with the most calls.
pub(super) fn pace(analyzer: &Analyzer) -> String {
    let Some((id, flow)) = busiest(analyzer) else { return String::new() };
    let Pace { write_cycle, read_cycle, think, .. } = &flow.pace;
    let is_answered = flow.tallies.total().calls() > 0;
    let one = flow.pace.stop_and_wait().filter(|_| flow.streams.cut == 0 && is_answered);
    let times = [
        ("WRITE cycle", write_cycle),
        ("READ cycle", read_cycle),
        ("think time (reply to next call)", think),
    ];
    let known = times.into_iter().filter(|(_, times)| times.count() >= 10);
    let rtt = analyzer.flows().round_trip(id).map(|rtt| round_trip(analyzer, rtt));
    let lines = one.map(|one| concurrency(one, &flow.pace)).into_iter();
    let lines = lines.chain(known.map(|(name, times)| times_line(name, times))).chain(rtt);
    format!("\npace        {}\n{}", analyzer.flows().name(id), lines.collect::<String>())
}

fn times_line(name: &str, times: &Spread) -> String {
    let [p25, p50, p75] = [0.25, 0.5, 0.75].map(|share| times.quantile(share));
    format!("            {name} {p50} (half of them {p25} to {p75})\n")
}

/// How many calls were outstanding, by the share of the busy time with exactly one.
fn concurrency(one: f64, pace: &Pace) -> String {
    let verdict = match one {
        share if share > 0.9 => "stop-and-wait",
        share if share > 0.5 => "mostly stop-and-wait",
        _ => "several at once",
    };
    let (percent, most) = (one * 100.0, pace.outstanding_max);
    format!(
        "            {verdict}: exactly one call outstanding in {percent:.0} % of the busy time, \
         at most {most}\n"
    )
}

/// The round trip, by the best clock that there is, and its jumps.
fn round_trip(analyzer: &Analyzer, rtt: &Rtt) -> String {
    let clocks = RttOf::ALL.into_iter().filter(|of| rtt.times(*of).count() > 0);
    let of = |of: RttOf| {
        let times = rtt.times(of);
        format!("{} {} at least, {} at the median", of.name(), times.min(), times.quantile(0.5))
    };
    let times = match clocks.map(of).collect::<Vec<String>>() {
        none if none.is_empty() => String::new(),
        times => format!("round trip  {}\n", times.join("; ")),
    };
    times + &jumps(&rtt.jumps(), analyzer.span_ns().0)
}

fn jumps(jumps: &[Jump], begin_ns: u64) -> String {
    let shown = jumps.iter().take(FEW).map(|jump| {
        let times = [jump.at_ns.saturating_sub(begin_ns), jump.before_ns, jump.after_ns];
        let ([at, before, after], of) = (times.map(Nanos::from_nanos), jump.of.name());
        format!("            jumped at {at}: {of} from {before} to {after}\n")
    });
    let more = jumps.len().checked_sub(FEW).filter(|more| *more > 0);
    let more = more.map(|more| format!("            and {more} jumps more (--json)\n"));
    shown.chain(more).collect()
}

pub(super) fn gaps(analyzer: &Analyzer) -> String {
    let causes = causes(analyzer);
    if causes.is_empty() {
        return String::new();
    }
    let (begin, _) = analyzer.span_ns();
    let several = analyzer.flows().admitted().nth(1).is_some();
    let line = |(id, gap): &(FlowId, Gap)| {
        let name = several.then(|| format!(", {}", analyzer.flows().name(*id)));
        gap_line(gap, begin, &name.unwrap_or_default())
    };
    let lines: String = longest(analyzer).iter().take(FEW).map(line).collect();
    format!("\ngaps        {}\n{lines}{}", causes.join(", "), phases(analyzer, begin))
}

/// Of all connections together, the one that took most first.
fn causes(analyzer: &Analyzer) -> Vec<String> {
    let total = |(place, cause): (usize, Cause)| {
        let of = analyzer.flows().admitted().map(|(_, flow)| flow.pace.by_cause[place]);
        let (count, ns) = of.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (count > 0).then_some((cause, count, Nanos::from_nanos(ns)))
    };
    let mut causes: Vec<(Cause, u64, Nanos)> =
        Cause::ALL.into_iter().enumerate().filter_map(total).collect();
    causes.sort_by_key(|(_, _, time)| std::cmp::Reverse(*time));
    let text =
        |(cause, count, time): &(Cause, u64, Nanos)| format!("{count} {} ({time})", cause.name());
    causes.iter().map(text).collect()
}

fn gap_line(gap: &Gap, begin_ns: u64, name: &str) -> String {
    let again = match gap.retransmissions {
        0 => String::new(),
        1 => ", a call retransmitted".to_owned(),
        n => format!(", {n} calls retransmitted"),
    };
    let [at, span] = [gap.begin_ns.saturating_sub(begin_ns), gap.ns()].map(Nanos::from_nanos);
    let (Gap { begin_frame, end_frame, .. }, cause) = (gap, gap.cause.name());
    format!(
        "            at {at}: {span} of {cause}{again}{name} (frames {begin_frame} to \
         {end_frame})\n"
    )
}

/// The times between gaps in which the busiest connection did most.
fn phases(analyzer: &Analyzer, begin: u64) -> String {
    let Some((_, flow)) = busiest(analyzer) else { return String::new() };
    let mut phases = flow.pace.phases(flow.first_ns);
    phases.sort_by_key(|phase| std::cmp::Reverse(phase.done.replies));
    phases.truncate(FEW);
    phases.sort_by_key(|phase| phase.begin_ns);
    let head = if phases.is_empty() { "" } else { "between     the busiest connection moved\n" };
    head.to_owned() + &phases.iter().map(|phase| between(phase, begin)).collect::<String>()
}

/// A line on a time between two gaps, counted from when the capture began.
fn between(phase: &Phase, begin_ns: u64) -> String {
    let at = |ns: u64| Nanos::from_nanos(ns.saturating_sub(begin_ns));
    let (begin, end, replies) = (at(phase.begin_ns), at(phase.end_ns), phase.done.replies);
    let Some(turn) = phase.turn_ns() else {
        return format!("            at {begin}: {replies} replies at once\n");
    };
    let slope = phase.bytes_per_s().map_or_else(
        || format!("{replies} replies"),
        |rate| format!("{:.1} MiB/s", rate / f64::from(1 << 20)),
    );
    let one = phase.stop_and_wait().map(|one| one * 100.0);
    let one = one.map_or_else(String::new, |one| format!(", one outstanding in {one:.0} %"));
    let turn = Nanos::from_nanos(turn);
    format!("            {begin} to {end}: {slope}, a reply every {turn}{one}\n")
}

/// The gaps of all connections, the longest first.
pub(crate) fn longest(analyzer: &Analyzer) -> Vec<(FlowId, Gap)> {
    let flows = analyzer.flows().admitted();
    let gaps = flows.flat_map(|(id, flow)| flow.pace.gaps.iter().map(move |gap| (id, *gap)));
    let mut all: Vec<(FlowId, Gap)> = gaps.collect();
    all.sort_by_key(|(id, gap)| (std::cmp::Reverse(gap.ns()), *id));
    all
}

/// The flow with the most calls.
fn busiest(analyzer: &Analyzer) -> Option<(FlowId, &Flow)> {
    analyzer.flows().admitted().max_by_key(|(id, flow)| {
        let calls: u64 = flow.tallies.iter().map(|(_, tally)| tally.calls()).sum();
        (calls, std::cmp::Reverse(*id))
    })
}

#[cfg(test)]
mod tests {
    use trace::Done;

    use super::*;

    #[test]
    fn replies_of_one_moment_are_at_once_and_others_some_time_apart() {
        let done =
            Done { replies: 4, moved_bytes: 2 << 20, one_ns: 500_000_000, more_ns: 1_500_000_000 };
        let line = |end_ns, done| between(&Phase { begin_ns: 3_000_000, end_ns, done }, 1_000_000);
        let at_once = line(3_000_000, Done { one_ns: 0, more_ns: 0, ..done });
        assert_eq!(at_once.trim(), "at 2.00 ms: 4 replies at once");
        let apart = line(2_003_000_000, done);
        let line = "2.00 ms to 2.00 s: 1.0 MiB/s, a reply every 500 ms, one outstanding in 25 %";
        assert_eq!(apart.trim(), line);
    }
}
