//! A closed model of a mount, fitted to its counters, and what changes would give.
//!
//! N calls are on the way, on average (Little's law: the rate times the mean time of a call); each
//! spends the floor of the path and then queues for service. The demand of that queue is the one
//! for which the solved network ([`perf::model::closed`]) has the mean time that was measured. Two
//! networks bound the truth: one in which all but the floor is a queue for one server, so that more
//! calls gain least, and one in which nothing is, so that they gain most.

use perf::model::closed::network::{Center, Class, Kind, Network};
use perf::model::transaction::{Capacity, Path, Server, Storage};
use perf::model::write_log::{LogDevice, Stable, stable_rate};

use super::finding::Gain;

/// How a gain is predicted by this module.
pub const CLOSED: &str = "a closed model";
/// How what a log gives is predicted: `nfskit model whatif write-log=` has the same model.
pub const LOGGED: &str = "the model of a write log on a device of 30 to 200 us a write";
/// What such a device takes, us: an NVMe device with a protected cache, and an SSD of which every
/// write has to reach the flash (guesses).
const LOG_US: (f64, f64) = (30.0, 200.0);
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
    let network = Center::new("network", Kind::Delay, &[floor_ms * 1e3]);
    let service = Center::new("service", Kind::Queue, &[demand_ms * 1e3]);
    let solved = Network::new(vec![class], vec![network, service]).ok()?.solve().ok()?;
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

/// Calls that must be stable, of which each takes `stable_ms` and `on_way` are outstanding, have
/// `share` of the time of all. Answered from a fast log, what they take is the floor, which is
/// between these, and the log's write.
pub fn logged(share: f64, stable_ms: f64, floor_ms: (f64, f64), on_way: f64) -> Gain {
    let all = [floor_ms.0, floor_ms.1].into_iter().flat_map(|floor_ms| {
        let devices = [LOG_US.0, LOG_US.1].into_iter();
        devices.flat_map(move |log_us| {
            [on_way.floor(), on_way.ceil()]
                .map(|callers| gone(stable_ms, floor_ms, log_us, callers))
        })
    });
    let (least, most) =
        all.fold((1.0, 0.0), |(least, most): (f64, f64), gone| (least.min(gone), most.max(gone)));
    match without_share(share, (least, most)) {
        Gain::Faster { of, least, most, .. } => Gain::Faster { of, least, most, model: LOGGED },
        unpredicted @ Gain::Unpredicted(_) => unpredicted,
    }
}

/// The share of a stable call's time that a log takes away.
fn gone(stable_ms: f64, floor_ms: f64, log_us: f64, callers: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 256")]
    let calls = Stable { bytes: SMALL_BYTES, outstanding: callers.clamp(1.0, 256.0) as u32 };
    let floor_us = floor_ms.clamp(0.0, stable_ms) * 1e3;
    let response_us = |sync_us: f64, log: Option<&LogDevice>| {
        stable_rate(&small(floor_us, sync_us), Server::Concurrent, log, &calls).response_us
    };
    // The sync with which the calls take what was measured, halved in.
    let (mut low_us, mut high_us) = (0.0, stable_ms * 1e3);
    for _ in 0..SYNC_STEPS {
        let middle = f64::midpoint(low_us, high_us);
        let is_more = response_us(middle, None) > stable_ms * 1e3;
        if is_more { high_us = middle } else { low_us = middle }
    }
    let log = LogDevice::of_sync(log_us);
    let (without, with) = (response_us(high_us, None), response_us(high_us, Some(&log)));
    (1.0 - with / without).max(0.0)
}

/// A WRITE as programs make it that want it to be stable.
const SMALL_BYTES: u64 = 4096;
/// To a thousandth of a sync.
const SYNC_STEPS: usize = 12;

/// A path of which nothing but the way and the sync is known.
fn small(floor_us: f64, sync_us: f64) -> Path {
    Path {
        round_trip_us: floor_us,
        ser_us_per_kib: 0.0,
        op_us: 0.0,
        overhead_us: 0.0,
        capacity: Capacity { call_us: 0.0, us_per_kib: 0.0 },
        storage: Storage {
            sync_us,
            us_per_kib: 0.0,
            left_us_per_kib: 0.0,
            unhidden_us_per_kib: 0.0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_takes_the_sync_and_leaves_the_way() {
        // 10 ms, of which 0.5 are the way: 0.53 to 0.7 ms are left of each.
        let (least, most) = bounds(&logged(1.0, 10.0, (0.5, 0.5), 1.0));
        assert!(
            (least - 10.0 / 0.7).abs() < 0.2 && (most - 10.0 / 0.53).abs() < 0.4,
            "{least} {most}"
        );
        // Of half of the time, no more than twice the work.
        let (least, most) = bounds(&logged(0.5, 10.0, (0.5, 1.5), 8.0));
        assert!(least > 1.6 && most < 2.0, "{least} {most}");
        // Where storage is as fast as a log there is nothing to gain.
        let (_, most) = bounds(&logged(1.0, 0.55, (0.5, 0.5), 1.0));
        assert!(most < 1.1, "{most}");
    }

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
