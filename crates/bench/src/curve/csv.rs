//! The points as CSV: one line for each, of all servers.

use harness::output::field;
use load::mix::Operation;
use perf::stats::Estimate;
use perf::units::Nanos;

use super::Outcome;
use super::text::verdict;

const HEADING: &str = "target,load,offered_per_s,achieved_per_s,achieved_lo,achieved_hi,\
                       response_us,response_lo,response_hi,verdict,late,held,failed,touched,\
                       accessed,operation,count,p50_us,p99_us,p999_us";

/// A line for each point (its operation is `all`), and one for each of its operations.
pub(super) fn points(outcome: &Outcome) -> String {
    let mut text = format!("{HEADING}\n");
    for server in &outcome.servers {
        let target = field(&server.target.to_string());
        for point in &server.measured.points {
            let run = &point.outcome;
            let [achieved, achieved_lo, achieved_hi] = estimate(Some(point.achieved_per_s()));
            let [response, response_lo, response_hi] = estimate(point.response_us());
            let all = format!(
                "{target},{},{:.3},{achieved},{achieved_lo},{achieved_hi},{response},{response_lo},\
                 {response_hi},{},{},{},{},{},{}",
                point.load,
                run.offered_per_s(),
                field(&verdict(point)),
                run.late,
                run.held,
                run.failed(),
                run.touched,
                run.accessed,
            );
            let mut line = |name: &str, histogram: &perf::histogram::Histogram| {
                let us = |share| Nanos::as_micros_f64(histogram.quantile(share));
                text += &format!(
                    "{all},{name},{},{:.3},{:.3},{:.3}\n",
                    histogram.count(),
                    us(0.5),
                    us(0.99),
                    us(0.999),
                );
            };
            line("all", &run.response_times());
            for operation in Operation::ALL {
                if let Some(tally) = run.operations.get(&operation) {
                    line(operation.name(), &tally.response_time);
                }
            }
        }
    }
    text
}

/// Value and interval, as far as they are known.
fn estimate(estimate: Option<Estimate>) -> [String; 3] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    let ci95 = estimate.and_then(|estimate| estimate.ci95);
    [
        number(estimate.map(|estimate| estimate.value)),
        number(ci95.map(|ci| ci.lo)),
        number(ci95.map(|ci| ci.hi)),
    ]
}
