//! The floor of a mount's path: what one network round trip takes, without any service.

use super::subject::Mounted;

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    pub ms: f64,
    /// The smoothed round trip of TCP now; much above the floor, queues are on the way.
    pub now_ms: Option<f64>,
}

/// By what TCP has measured on the mount's connections: its smallest round trip. None where that is
/// not known, and where calls refute it.
pub fn of(mount: &Mounted<'_>) -> Option<Floor> {
    measured(mount).filter(|_| refuted(mount).is_none())
}

/// A floor that is above what calls take, and what they take: it is of other connections, or of
/// another time.
pub fn refuted(mount: &Mounted<'_>) -> Option<(Floor, f64)> {
    let floor = measured(mount)?;
    let means = mount.rates.operations.iter().filter_map(|one| {
        let means = mount.group(&[&one.name]).means().filter(|_| one.calls >= CALLS_MIN)?;
        // The kernel's sums are of whole milliseconds.
        Some(means.rtt_ms + 1.0 / one.calls as f64)
    });
    means.reduce(f64::min).filter(|least| *least < floor.ms).map(|least| (floor, least))
}

/// Calls of an operation, from which on their mean is one.
const CALLS_MIN: u64 = 20;

fn measured(mount: &Mounted<'_>) -> Option<Floor> {
    let least = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
    let connections = &mount.connections;
    let now_ms = least(&mut connections.iter().filter_map(|one| one.rtt_ms));
    let ms = least(&mut connections.iter().filter_map(|one| one.rtt_min_ms)).or(now_ms)?;
    (ms > 0.0).then_some(Floor { ms, now_ms })
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
        assert_eq!(of(mounted), Some(Floor { ms: 0.2, now_ms: Some(0.5) }));
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
}
