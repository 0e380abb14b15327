//! Where the time goes: of all time that calls spent, the shares of client, network, server and
//! storage; and how much of the time the application left the mount alone.
//!
//! ```text
//!  made       sent                     reply        end
//!    |- queue --|- network | server | storage -|- rest -|
//!      client                                    client
//! ```
//!
//! The network is the round trip of TCP for each call, and no more than the whole of its time; the
//! storage what calls that must be stable take beyond the cheapest call, or beyond the round trip
//! where no call is known that does little. Both are differences of means, and given only where
//! their parts are known.

use super::finding::Layer;
use super::floor;
use super::stable;
use super::subject::Mounted;

/// See the module's head. The shares of calls add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Of the time that calls spent; of parts that cannot be distinguished their sum.
    pub of_calls: Vec<(Where, f64)>,
    /// Mean time of a call, of which these are shares.
    pub call_ms: f64,
    /// Of the time that passed, at least: no call was under way.
    pub application: Option<f64>,
}

/// A part of a call's time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Where {
    Layer(Layer),
    /// They cannot be distinguished.
    NetworkOrServer,
    ServerOrStorage,
    NetworkServerOrStorage,
}

impl Where {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Layer(layer) => layer.name(),
            Self::NetworkOrServer => "network or server",
            Self::ServerOrStorage => "server or storage",
            Self::NetworkServerOrStorage => "network, server or storage",
        }
    }
}

/// None without calls.
pub fn of(mount: &Mounted<'_>) -> Option<Shares> {
    let total = mount.total();
    let means = total.means()?;
    let all = total.execute_ms.max(total.rtt_ms);
    if all <= 0.0 {
        return None;
    }
    let calls = total.rtt_ms / means.rtt_ms.max(f64::MIN_POSITIVE);
    let floor = floor::of(mount).map(|floor| floor.ms);
    let network = floor.map(|floor| (floor * calls).min(total.rtt_ms));
    let rest = total.rtt_ms - network.unwrap_or(0.0);
    let storage = storage_ms(mount, floor).map(|storage| storage.min(rest));
    let client = (Where::Layer(Layer::Client), (all - total.rtt_ms).max(0.0));
    let of_calls = [client].into_iter().chain(beyond(network, storage, rest));
    let of_calls = of_calls.map(|(place, ms)| (place, ms / all)).collect();
    let application = mount.busy().map(|busy| (1.0 - busy).max(0.0));
    let call_ms = means.execute_ms.max(means.rtt_ms);
    Some(Shares { of_calls, call_ms, application })
}

/// What calls that must be stable take beyond one that does next to nothing; none where neither
/// such a call nor the round trip is known.
fn storage_ms(mount: &Mounted<'_>, floor: Option<f64>) -> Option<f64> {
    let stable = stable::calls(mount);
    if stable.calls == 0 {
        return Some(0.0);
    }
    let cheap = floor::cheapest_call_ms(mount).or(floor)?;
    Some((stable.rtt_ms - cheap * stable.calls as f64).max(0.0))
}

/// The time beyond the client: `rest` is what is not known to be the network.
fn beyond(network: Option<f64>, storage: Option<f64>, rest: f64) -> Vec<(Where, f64)> {
    let of = Where::Layer;
    match (network, storage) {
        (Some(network), Some(storage)) => vec![
            (of(Layer::Network), network),
            (of(Layer::Server), rest - storage),
            (of(Layer::Storage), storage),
        ],
        (Some(network), None) => {
            vec![(of(Layer::Network), network), (Where::ServerOrStorage, rest)]
        }
        (None, Some(storage)) => {
            vec![(Where::NetworkOrServer, rest - storage), (of(Layer::Storage), storage)]
        }
        (None, None) => vec![(Where::NetworkServerOrStorage, rest)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, mount, one};

    const CALLS: [&str; 2] =
        ["GETATTR: 1000 1000 0 0 0 100 400 600 0", "COMMIT: 100 100 0 0 0 0 1440 1440 0"];

    fn share(shares: &Shares, place: Where) -> f64 {
        shares.of_calls.iter().find(|(one, _)| *one == place).map_or(f64::NAN, |(_, share)| *share)
    }

    #[test]
    fn the_shares_add_up_and_each_is_where_it_belongs() {
        let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:0.2/1 minrtt:0.1\n";
        let stats = mount("rw,addr=10.0.0.1", &CALLS);
        let evidence = files(&[("proc/self/mountstats", &stats), ("ss.txt", ss)]);
        let shares = of(&Mounted::all(&evidence)[0]).unwrap();
        let sum: f64 = shares.of_calls.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{shares:?}");
        // 2,040 ms: 200 in the client, 110 on the way, 1,400 for the disk.
        assert!((share(&shares, Where::Layer(Layer::Client)) - 200.0 / 2040.0).abs() < 1e-9);
        assert!((share(&shares, Where::Layer(Layer::Network)) - 110.0 / 2040.0).abs() < 1e-9);
        assert!((share(&shares, Where::Layer(Layer::Storage)) - 1400.0 / 2040.0).abs() < 1e-9);
        assert_eq!(shares.application, None, "one sample says nothing of that");
    }

    #[test]
    fn storage_is_what_is_beyond_the_round_trip_where_no_call_is_cheap() {
        let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:0.2/1 minrtt:0.2\n";
        let calls =
            ["WRITE: 1000 1000 0 65000000 0 0 1000 1000 0", "COMMIT: 100 100 0 0 0 0 9000 9000 0"];
        let stats = mount("rw,addr=10.0.0.1", &calls);
        let with = files(&[("proc/self/mountstats", &*stats), ("ss.txt", ss)]);
        let shares = of(&Mounted::all(&with)[0]).unwrap();
        let storage = share(&shares, Where::Layer(Layer::Storage));
        assert!((storage - 8_980.0 / 10_000.0).abs() < 1e-9, "{shares:?}");
        let shares = of(&Mounted::all(&one(&stats))[0]).unwrap();
        assert_eq!(share(&shares, Where::NetworkServerOrStorage), 1.0, "{shares:?}");
        let reads = mount("rw,addr=10.0.0.1", &calls[..1]);
        let shares = of(&Mounted::all(&one(&reads))[0]).unwrap();
        assert_eq!(share(&shares, Where::Layer(Layer::Storage)), 0.0, "nothing was made stable");
    }

    #[test]
    fn the_storage_is_waited_for_by_writes_that_are_stable_when_they_are_answered() {
        let storage = |options: &str, bytes: u32| {
            let write = format!("WRITE: 1000 1000 0 {bytes} 0 0 10000 10000 0");
            let stats = mount(options, &["GETATTR: 1000 1000 0 0 0 0 200 200 0", &write]);
            share(&of(&Mounted::all(&one(&stats))[0]).unwrap(), Where::Layer(Layer::Storage))
        };
        // 200 of 10,200 ms are of the GETATTRs, and as much of the WRITEs.
        for (options, bytes) in [("rw", 4_200_000), ("rw,sync", 65_000_000)] {
            let all = storage(options, bytes);
            assert!((all - 9_800.0 / 10_200.0).abs() < 1e-9, "{options}: {all}");
        }
        assert_eq!(storage("rw", 65_000_000), 0.0, "a cache of the server takes these");
    }

    #[test]
    fn without_a_floor_network_and_server_are_one() {
        let evidence = one(&mount("rw", &CALLS));
        let shares = of(&Mounted::all(&evidence)[0]).unwrap();
        assert!(share(&shares, Where::NetworkOrServer) > 0.2);
        assert_eq!(of(&Mounted::all(&one(&mount("rw", &[])))[0]), None);
    }
}
