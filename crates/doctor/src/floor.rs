//! What the network takes of a call: the floor of a mount's path, which no call is below, and the
//! most that it may be.
//!
//! TCP's smallest round trip is the floor: what the network took at its best moment, of the last
//! minutes (`tcp_min_rtt_wlen`). It says nothing of a delay that came since. TCP's smoothed round
//! trip does, and it is too much: the other end may acknowledge a small call with its reply
//! only (for 40 ms Linux waits for that), and then the server's time is in it. So both are bounds.
//! A call that does little is another: the network took no longer than that, unless the
//! mount's own bytes make queues, which small calls between them do not see.

use super::flow::Flow;
use super::subject::Mounted;

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    pub ms: f64,
    /// TCP's smoothed round trip now.
    pub now_ms: Option<f64>,
    /// What of a call may be the network at most, by what TCP and calls show.
    pub most_ms: f64,
}

/// By what TCP has measured on the mount's connections. None where that is not known, and where
/// calls refute it.
pub fn of(mount: &Mounted<'_>) -> Option<Floor> {
    measured(mount).filter(|_| refuted(mount).is_none())
}

/// A floor that is above what calls take, and what they take: it is of other connections, or of
/// another time.
pub fn refuted(mount: &Mounted<'_>) -> Option<(Floor, f64)> {
    let floor = measured(mount)?;
    least_call_ms(mount).filter(|least| *least < floor.ms).map(|least| (floor, least))
}

/// The mean of the operation that takes least.
fn least_call_ms(mount: &Mounted<'_>) -> Option<f64> {
    let means = mount.rates.operations.iter().filter_map(|one| {
        let means = mount.group(&[&one.name]).means().filter(|_| one.calls >= CALLS_MIN)?;
        // The kernel's sums are of whole milliseconds.
        Some(means.rtt_ms + 1.0 / one.calls as f64)
    });
    means.reduce(f64::min)
}

/// Calls of an operation, from which on their mean is one.
const CALLS_MIN: u64 = 20;

fn measured(mount: &Mounted<'_>) -> Option<Floor> {
    let smallest = mount.connections.iter().filter_map(|one| one.rtt_min_ms).reduce(f64::min);
    let now_ms = mount.smoothed_ms().1;
    let ms = smallest.or(now_ms)?;
    (ms > 0.0).then(|| Floor { ms, now_ms, most_ms: most_ms(mount, ms) })
}

/// Of both looks at TCP the longer one, and no more than calls take.
fn most_ms(mount: &Mounted<'_>, least_ms: f64) -> f64 {
    let (before, now) = mount.smoothed_ms();
    let Some(by_tcp) = before.into_iter().chain(now).reduce(f64::max) else { return least_ms };
    let flow = Flow::of(mount);
    let is_own_queue = !mount.is_lifetime()
        && flow.fills(by_tcp - least_ms, Flow::QUEUE_BYTES)
        && !flow.is_in_bursts(Flow::DELIVERED);
    let by_calls = least_call_ms(mount).filter(|_| !is_own_queue).unwrap_or(f64::INFINITY);
    by_tcp.min(by_calls).max(least_ms)
}

/// The mean time of the calls that do least, which is at least the floor and their service.
pub fn cheapest_call_ms(mount: &Mounted<'_>) -> Option<f64> {
    let cheap = ["GETATTR", "ACCESS", "LOOKUP", "NULL", "FSSTAT", "SEQUENCE", "RENEW"];
    let means = cheap.iter().filter_map(|name| {
        let group = mount.group(&[name]);
        (group.calls >= CALLS_MIN).then(|| group.means()).flatten()
    });
    means.map(|means| means.rtt_ms).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use counters::socket::Connection;

    use super::*;
    use crate::testing;

    #[test]
    fn the_floor_is_what_tcp_has_seen_at_least() {
        let text = testing::mount("rw,addr=10.0.0.1", &["GETATTR: 100 100 0 0 0 1 50 55 0"]);
        let mut evidence = testing::one(&text);
        assert_eq!(of(&Mounted::all(&evidence)[0]), None);
        let connection = |rtt, min| Connection {
            peer: "10.0.0.1:2049".to_owned(),
            rtt_ms: Some(rtt),
            rtt_min_ms: min,
            ..Connection::default()
        };
        evidence.last.connections = vec![connection(0.9, Some(0.2)), connection(0.5, None)];
        let mounted = &Mounted::all(&evidence)[0];
        assert_eq!(of(mounted), Some(Floor { ms: 0.2, now_ms: Some(0.5), most_ms: 0.5 }));
        assert_eq!(cheapest_call_ms(mounted), Some(0.5));
    }

    #[test]
    fn calls_that_take_less_refute_it() {
        let floor = |minrtt: &str| {
            let ss = format!("ESTAB 0 0 10.0.0.2:7 10.0.0.1:2049\n\t rtt:9/1 minrtt:{minrtt}\n");
            let calls = ["LOOKUP: 1000 1000 0 0 0 0 900 950 0", "WRITE: 10 10 0 0 0 0 0 0 0"];
            let stats = testing::mount("rw,addr=10.0.0.1", &calls);
            let files = [("proc/self/mountstats", &*stats), ("ss.txt", &*ss)];
            let evidence = testing::files(&files);
            let mount = &Mounted::all(&evidence)[0];
            (of(mount).map(|floor| floor.ms), refuted(mount).is_some())
        };
        assert_eq!(floor("2.5"), (None, true));
        assert_eq!(floor("0.9"), (Some(0.9), false));
    }

    /// 10 s in which these calls were made, and what TCP had measured before and behind them.
    fn most_ms(calls: &[&str], smoothed_ms: [&str; 2]) -> f64 {
        let ss =
            |ms: &str| format!("ESTAB 0 0 10.0.0.2:7 10.0.0.1:2049\n\t rtt:{ms}/1 minrtt:0.1\n");
        let stats = |calls: &[&str]| testing::mount("rw,addr=10.0.0.1", calls);
        let none: Vec<String> =
            calls.iter().filter_map(|one| Some(one.split_once(':')?.0.to_owned())).collect();
        let none: Vec<String> =
            none.iter().map(|name| format!("{name}: 0 0 0 0 0 0 0 0 0")).collect();
        let none: Vec<&str> = none.iter().map(String::as_str).collect();
        let last = stats(calls).replace("age:\t1234", "age:\t1244");
        let (first_ss, last_ss) = (ss(smoothed_ms[0]), ss(smoothed_ms[1]));
        let files = [("1/ss.txt", &*first_ss), ("2/ss.txt", &*last_ss)];
        let path = "proc/self/mountstats";
        let evidence = testing::host_twice(path, &stats(&none), &last, &files);
        of(&Mounted::all(&evidence)[0]).unwrap().most_ms
    }

    #[test]
    fn the_network_may_take_what_tcp_takes_and_no_more_than_calls_do() {
        let commits = "COMMIT: 900 900 0 90000 90000 0 9000 9000 0";
        assert_eq!(most_ms(&[commits], ["0.1", "8.0"]), 8.0);
        assert_eq!(most_ms(&[commits], ["8.0", "0.1"]), 8.0, "it was so before");
        let light = "GETATTR: 100 100 0 10000 10000 0 40 40 0";
        assert!((most_ms(&[commits, light], ["8.0", "8.0"]) - 0.41).abs() < 1e-9);
        // 10 MB/s: a queue of 8 ms may be its own, which nobody else has to wait behind.
        let writes = "WRITE: 900 900 0 100000000 90000 0 9000 9000 0";
        assert_eq!(most_ms(&[writes, light], ["8.0", "8.0"]), 8.0);
    }
}
