//! A closed model of a mount, fitted to its counters, and what changes would give.
//!
//! N calls are on the way, on average (Little's law: the rate times the mean time of a call); each
//! spends the floor of the path and then queues for service. The demand of that queue is the one
//! for which the solved network ([`perf::model::closed`]) has the mean time that was measured. Two
//! networks bound the truth: one in which all but the floor is a queue for one server, so that more
//! calls gain least, and one in which nothing is, so that they gain most.

use perf::model::closed::network::{Center, Class, Kind, Network};

use super::finding::Gain;

/// How a gain is predicted by this module.
pub const CLOSED: &str = "a closed model";
/// By shares of the time alone.
pub const SHARES: &str = "shares of the time";

/// Calls that wait before they are sent: what sending them at once would give.
///
/// `on_way` calls are outstanding on average, of which each takes `rtt_ms`, `floor_ms` of that in
/// the network; `queue_ms` is what each waits before.
pub fn more_outstanding(on_way: f64, rtt_ms: f64, queue_ms: f64, floor_ms: Option<f64>) -> Gain {
    const CALLERS_MAX: f64 = 4096.0;
    if !(rtt_ms > 0.0 && queue_ms >= 0.0 && on_way > 0.0) {
        return Gain::unpredicted("there are no times of calls");
    }
    let factor = (rtt_ms + queue_ms) / rtt_ms;
    let callers = on_way.round().clamp(1.0, CALLERS_MAX);
    let more = (callers * factor).round().clamp(callers, CALLERS_MAX);
    let floor_ms = floor_ms.unwrap_or(0.0).clamp(0.0, rtt_ms);
    let least = fitted_demand(callers, rtt_ms, floor_ms)
        .and_then(|demand| Some(rate(more, floor_ms, demand)? / rate(callers, floor_ms, demand)?));
    match least {
        Some(least) => Gain::faster("calls", (least, factor), CLOSED),
        None => Gain::unpredicted("no closed model fits the times of these calls"),
    }
}

/// The queue's service takes so many times less: what that would give to the calls that are
/// outstanding now, of which there is a whole number.
pub fn faster_service(on_way: f64, rtt_ms: f64, floor_ms: f64, times: f64) -> Gain {
    let floor_ms = floor_ms.clamp(0.0, rtt_ms);
    let gain = |callers: f64| {
        let callers = callers.clamp(1.0, 4096.0);
        let demand = fitted_demand(callers, rtt_ms, floor_ms)?;
        Some(rate(callers, floor_ms, demand / times)? / rate(callers, floor_ms, demand)?)
    };
    match gain(on_way.floor()).zip(gain(on_way.ceil())) {
        Some(bounds) => Gain::faster("bytes", bounds, CLOSED),
        None => Gain::unpredicted("no closed model fits the times of these calls"),
    }
}

/// Calls a second of so many callers, each with a floor and a demand on one queue, per ms.
fn rate(callers: f64, floor_ms: f64, demand_ms: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 4096")]
    let class = Class { callers: callers as u32, think_us: 0.0 };
    let centers = vec![
        Center::new("network", Kind::Delay, &[floor_ms * 1e3]),
        Center::new("service", Kind::Queue, &[demand_ms * 1e3]),
    ];
    let solved = Network::new(vec![class], centers).ok()?.solve().ok()?;
    solved.throughput_per_s.first().copied().filter(|rate| *rate > 0.0)
}

/// The demand for which a call takes as long as was measured: R rises with it, so it is halved in.
fn fitted_demand(callers: f64, rtt_ms: f64, floor_ms: f64) -> Option<f64> {
    const STEPS: usize = 40;
    let (mut low, mut high) = (0.0, rtt_ms);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        let response_ms = callers / rate(callers, floor_ms, middle)? * 1e3;
        if response_ms > rtt_ms { high = middle } else { low = middle }
    }
    Some(high)
}

/// Transfers of `to_bytes` instead of `bytes`: a call of `rtt_ms` has a part that does not depend
/// on them, which is between `fixed_ms`.0 and `fixed_ms`.1.
pub fn larger_transfers(rtt_ms: f64, bytes: f64, to_bytes: f64, fixed_ms: (f64, f64)) -> Gain {
    if !(rtt_ms > 0.0 && bytes > 0.0 && to_bytes > bytes) {
        return Gain::unpredicted("the sizes of the transfers are not known");
    }
    let times = to_bytes / bytes;
    let gain = |fixed_ms: f64| {
        let fixed_ms = fixed_ms.clamp(0.0, rtt_ms);
        times * rtt_ms / (fixed_ms + (rtt_ms - fixed_ms) * times)
    };
    Gain::faster(
        "bytes",
        (gain(fixed_ms.0), gain(fixed_ms.1)),
        "one time for each call and one for each byte",
    )
}

/// A share of the time of all calls goes away: at least and at most so much of it.
pub fn without_share(share: f64, gone: (f64, f64)) -> Gain {
    let rate = |gone: f64| 1.0 / (1.0 - (share * gone).clamp(0.0, 0.99));
    Gain::faster("work", (rate(gone.0), rate(gone.1)), SHARES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(gain: &Gain) -> (f64, f64) {
        match gain {
            Gain::Faster { least, most, .. } => (*least, *most),
            Gain::Unpredicted(why) => panic!("{why}"),
        }
    }

    #[test]
    fn where_the_way_is_all_the_time_more_calls_gain_in_proportion() {
        let (least, most) = bounds(&more_outstanding(2.0, 10.0, 30.0, Some(10.0)));
        assert!((least - 4.0).abs() < 0.01 && (most - 4.0).abs() < 1e-9, "{least} {most}");
    }

    #[test]
    fn where_the_server_is_all_the_time_they_may_gain_nothing() {
        let (least, most) = bounds(&more_outstanding(2.0, 10.0, 30.0, None));
        assert!((least - 1.0).abs() < 0.01 && (most - 4.0).abs() < 1e-9, "{least} {most}");
        let between = bounds(&more_outstanding(2.0, 10.0, 30.0, Some(8.0)));
        assert!(between.0 > 1.2 && between.0 < 4.0, "{between:?}");
    }

    #[test]
    fn what_leaves_everything_open_is_no_prediction() {
        assert!(matches!(more_outstanding(1.0, 1.0, 50.0, None), Gain::Unpredicted(_)));
        assert!(matches!(more_outstanding(1.0, 0.0, 5.0, None), Gain::Unpredicted(_)));
        assert!(matches!(larger_transfers(1.0, 0.0, 5.0, (0.0, 1.0)), Gain::Unpredicted(_)));
    }

    #[test]
    fn larger_transfers_gain_what_each_call_costs_by_itself() {
        // 1 ms for the call and 1 ms for its 4 KiB: with 64 KiB, 16 times as much in 17 ms.
        let (least, most) = bounds(&larger_transfers(2.0, 4096.0, 65_536.0, (1.0, 1.0)));
        assert!((least - 32.0 / 17.0).abs() < 1e-9 && (most - least).abs() < 1e-9);
    }

    #[test]
    fn a_share_that_goes_away_is_a_rate_that_rises() {
        let (least, most) = bounds(&without_share(0.5, (0.5, 1.0)));
        assert!((least - 4.0 / 3.0).abs() < 1e-9 && (most - 2.0).abs() < 1e-9);
    }
}
