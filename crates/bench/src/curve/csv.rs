//! The points as CSV: one line for each, of all servers.

use harness::csv;
use load::mix::Operation;
use perf::histogram::Histogram;
use perf::stats::Estimate;

use super::outcome::Outcome;
use super::text::verdict;

const HEADING: &str = "target,load,offered_per_s,achieved_per_s,achieved_lo,achieved_hi,\
                       response_us,response_lo,response_hi,verdict,late,held,failed,touched,\
                       accessed,operation,count,p50_us,p99_us,p999_us";

/// A line for each point (its operation is `all`), and one for each of its operations.
pub(super) fn points(outcome: &Outcome) -> String {
    csv::text(HEADING, |rows| {
        for server in &outcome.servers {
            let target = server.name.clone();
            for point in &server.measured.points {
                let run = &point.outcome;
                let of_point = (
                    (&target, point.load.to_string(), format!("{:.3}", run.offered_per_s())),
                    estimate(Some(point.achieved_per_s())),
                    estimate(point.response_us()),
                    (verdict(point), run.late, run.held, run.failed()),
                    (run.touched, run.accessed),
                );
                let mut add = |name: &str, times: &Histogram| {
                    let us = |share| {
                        let known = times.quantile_if_known(share);
                        known.map(|time| format!("{:.3}", time.as_micros_f64()))
                    };
                    rows.add((&of_point, name, times.count(), us(0.5), us(0.99), us(0.999)));
                };
                add("all", &run.response_times());
                for operation in Operation::ALL {
                    if let Some(tally) = run.operations.get(&operation) {
                        add(operation.name(), &tally.response_time);
                    }
                }
            }
        }
    })
}

/// Value and interval, as far as they are known.
fn estimate(estimate: Option<Estimate>) -> [Option<String>; 3] {
    let ci95 = estimate.and_then(|estimate| estimate.ci95);
    let values = [estimate.map(|one| one.value), ci95.map(|ci| ci.lo), ci95.map(|ci| ci.hi)];
    values.map(|value| value.map(|value| format!("{value:.3}")))
}
