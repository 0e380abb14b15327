//! The pace of the busiest connection, and the gaps of all.

use std::fmt::Write;

use perf::units::Nanos;
use trace::{Analyzer, Cause, Flow, FlowId, Gap, Pace, Phase, Rtt, RttOf, Spread};

use super::FEW;

/// The pace of the flow with the most calls.
pub(super) fn pace(out: &mut String, analyzer: &Analyzer) {
    let Some((id, flow)) = busiest(analyzer) else { return };
    let pace = &flow.pace;
    writeln!(out, "\npace        {}", analyzer.flows().name(id)).ok();
    let is_cut = flow.streams.cut > 0;
    out.extend(pace.stop_and_wait().filter(|_| !is_cut).map(|one| concurrency(one, pace)));
    for (name, cycle) in [("WRITE", &pace.write_cycle), ("READ", &pace.read_cycle)] {
        if cycle.count() >= 10 {
            writeln!(out, "            {name} cycle {}", spread(cycle)).ok();
        }
    }
    if pace.think.count() >= 10 {
        writeln!(out, "            think time (reply to next call) {}", spread(&pace.think)).ok();
    }
    if let Some(rtt) = analyzer.flows().round_trip(id) {
        round_trip(out, analyzer, rtt);
    }
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
fn round_trip(out: &mut String, analyzer: &Analyzer, rtt: &Rtt) {
    let clocks = RttOf::ALL.into_iter().filter(|of| rtt.times(*of).count() > 0);
    let of = |of: RttOf| {
        let times = rtt.times(of);
        format!("{} {} at least, {} at the median", of.name(), times.min(), times.quantile(0.5))
    };
    let times: Vec<String> = clocks.map(of).collect();
    if !times.is_empty() {
        writeln!(out, "round trip  {}", times.join("; ")).ok();
    }
    let jumps = rtt.jumps();
    let (begin, _) = analyzer.span_ns();
    for jump in jumps.iter().take(FEW) {
        let times = [jump.at_ns.saturating_sub(begin), jump.before_ns, jump.after_ns];
        let ([at, before, after], of) = (times.map(Nanos::from_nanos), jump.of.name());
        writeln!(out, "            jumped at {at}: {of} from {before} to {after}").ok();
    }
    if jumps.len() > FEW {
        writeln!(out, "            and {} jumps more (--json)", jumps.len() - FEW).ok();
    }
}

pub(super) fn gaps(out: &mut String, analyzer: &Analyzer) {
    let causes = causes(analyzer);
    if causes.is_empty() {
        return;
    }
    writeln!(out, "\ngaps        {}", causes.join(", ")).ok();
    let (begin, _) = analyzer.span_ns();
    let several = analyzer.flows().admitted().nth(1).is_some();
    for (id, gap) in longest(analyzer).iter().take(FEW) {
        let name = several.then(|| format!(", {}", analyzer.flows().name(*id)));
        out.push_str(&gap_line(gap, begin, &name.unwrap_or_default()));
    }
    phases(out, analyzer, begin);
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
    let Gap { cause, begin_frame, end_frame, .. } = gap;
    let cause = cause.name();
    format!(
        "            at {at}: {span} of {cause}{again}{name} (frames {begin_frame} to \
         {end_frame})\n"
    )
}

/// The times between gaps in which the busiest connection did most.
fn phases(out: &mut String, analyzer: &Analyzer, begin: u64) {
    let Some((_, flow)) = busiest(analyzer) else { return };
    let mut phases = flow.pace.phases(flow.first_ns);
    phases.sort_by_key(|phase| std::cmp::Reverse(phase.done.replies));
    phases.truncate(FEW);
    phases.sort_by_key(|phase| phase.begin_ns);
    if !phases.is_empty() {
        writeln!(out, "between     the busiest connection moved").ok();
    }
    phases.iter().for_each(|phase| out.push_str(&between(phase, begin)));
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

fn spread(spread: &Spread) -> String {
    let [p25, p50, p75] = [0.25, 0.5, 0.75].map(|share| spread.quantile(share));
    format!("{p50} (half of them {p25} to {p75})")
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
        let said = "2.00 ms to 2.00 s: 1.0 MiB/s, a reply every 500 ms, one outstanding in 25 %";
        assert_eq!(apart.trim(), said);
    }
}
